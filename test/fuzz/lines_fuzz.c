/* lines_fuzz.c: any text as a discovery file, line by line: a worker has an address, a bad line says why. */
#include <stdint.h>
#include <string.h>

#include "base/must.h"
#include "conf/worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct conf_pool pool = { .name = STR_INIT("p") };
	struct arena a;
	struct str rest = str_from(data, size), line;
	arena_init(&a, 0);
	while (rest.n > 0) {
		struct conf_worker w;
		const char *what;
		str_cut(rest, '\n', &line, &rest);
		enum conf_line kind = conf_worker_line(line, &pool, &a, &w, &what);
		must(kind != CONF_LINE_BAD || (what && strlen(what) > 0));
		must(kind != CONF_LINE_WORKER || (w.url.n > 7 && w.host.n > 0 && w.port > 0 && !conf_worker_ranks(&w, 1, &a)));
	}
	arena_done(&a);
	return 0;
}
