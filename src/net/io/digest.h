/* io/digest.h: cryptographic digests, as lower-case hexadecimal text. */
#ifndef IO_DIGEST_H
#define IO_DIGEST_H

#include "base/str.h"

enum { IO_SHA256_HEX = 64, IO_SHA1_HEX = 40 };

void io_sha256(struct str s, char ret_hex[IO_SHA256_HEX + 1]);
/* What git calls a file of this content. */
void io_git_blob(struct str s, char ret_hex[IO_SHA1_HEX + 1]);

#endif
