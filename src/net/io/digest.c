/* digest.c: OpenSSL's digests. */
#include "io/digest.h"

#include <openssl/evp.h>
#include <stdio.h>

#include "base/must.h"

static void digest(const EVP_MD *kind, struct str head, struct str s, char *ret_hex)
{
	unsigned char raw[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	must(c && EVP_DigestInit_ex(c, kind, NULL) == 1);
	must(EVP_DigestUpdate(c, head.p, head.n) == 1 && EVP_DigestUpdate(c, s.p, s.n) == 1 && EVP_DigestFinal_ex(c, raw, &n) == 1);
	EVP_MD_CTX_free(c);
	for (unsigned i = 0; i < n; i++)
		snprintf(ret_hex + 2 * i, 3, "%02x", raw[i]);
}

void io_sha256(struct str s, char ret_hex[IO_SHA256_HEX + 1]) { digest(EVP_sha256(), STR(""), s, ret_hex); }

void io_git_blob(struct str s, char ret_hex[IO_SHA1_HEX + 1])
{
	char head[40];
	int n = snprintf(head, sizeof(head), "blob %zu", s.n);
	digest(EVP_sha1(), str_from(head, (size_t)n + 1), s, ret_hex);   /* with the NUL */
}
