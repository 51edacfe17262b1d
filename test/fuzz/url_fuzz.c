/* url_fuzz.c: what is taken apart can be put together and taken apart again, what is escaped can be read back. */
#include <stdint.h>

#include "base/must.h"
#include "wire/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_from(data, size);
	struct url u;
	struct url_host_port hp, again;
	if (url_parse(text, &u) == ERR_OK)
		must(u.port > 0 && u.host.n > 0 && u.host.n < 256);
	if (url_parse_host_port(text, 80, &hp) == ERR_OK) {
		struct buf b;
		buf_init(&b, 1024);
		must(url_put_host_port(&b, hp.host, hp.ipv6, hp.port) == ERR_OK);
		must(url_parse_host_port(buf_str(&b), 0, &again) == ERR_OK);
		must(str_eq(again.host, hp.host) && again.port == hp.port && again.ipv6 == hp.ipv6);
		buf_done(&b);
	}
	struct buf plain, escaped, back;
	buf_init(&plain, size + 1);
	buf_init(&escaped, 3 * size + 1);
	buf_init(&back, size + 1);
	if (url_put_unescaped(&plain, text) == ERR_OK) {
		must(url_put_escaped(&escaped, buf_str(&plain)) == ERR_OK);
		must(memchr(text.p ? text.p : "", 0, text.n) || (url_put_unescaped(&back, buf_str(&escaped)) == ERR_OK && str_eq(buf_str(&back), buf_str(&plain))));
	}
	buf_done(&plain);
	buf_done(&escaped);
	buf_done(&back);
	return 0;
}
