/* learn_fuzz.c: any answer of a worker, as its models, its metrics, its event sources: facts stay in their bounds. */
#include <stdint.h>

#include "base/must.h"
#include "feed/learn.h"

static void check_models(struct str text, struct arena *a)
{
	struct feed_models m;
	if (feed_learn_models(text, a, &m) != ERR_OK)
		return;
	must(m.n <= FEED_MAX_MODELS);
	for (size_t i = 0; i < m.n; i++)
		must(m.p[i].id.n > 0 && m.p[i].id.n <= FEED_MAX_NAME_BYTES);
}

static void check_metrics(struct str text)
{
	struct feed_metrics m;
	feed_learn_metrics(engine_of(STR("")), text, &m);
	must(m.n_ranks >= 1 && m.n_ranks <= BRAIN_MAX_RANKS_PER_WORKER && m.blocks < UINT32_MAX && m.block_size <= 65536);
	for (uint32_t i = 0; i < m.n_ranks; i++)
		must(m.ranks[i].kv_usage >= 0 && m.ranks[i].kv_usage <= 1);
}

static void check_sources(struct str text, struct arena *a)
{
	static const struct conf_worker workers[] = { { .host = STR_INIT("10.0.0.1"), .port = 80 }, { .host = STR_INIT("::1"), .ipv6 = true, .port = 80 } };
	for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
		struct feed_sources s;
		if (feed_learn_sources(text, &workers[i], a, &s) == ERR_OK)
			must(s.n <= BRAIN_MAX_RANKS_PER_WORKER && (s.n > 0 || s.why));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_from(data, size);
	struct arena a;
	arena_init(&a, 0);
	check_models(text, &a);
	check_metrics(text);
	check_sources(text, &a);
	arena_done(&a);
	return 0;
}
