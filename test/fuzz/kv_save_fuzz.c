/* kv_save_fuzz.c: any bytes as a saved rank: refused, and the rank is as new; or loaded, and not believed. */
#include <stdint.h>

#include "base/must.h"
#include "kv/rank.h"

static void ignore_deltas(void *arg, const struct kv_delta *d, size_t n) { (void)arg, (void)d, (void)n; }
static void ignore_clear(void *arg) { (void)arg; }
static void ignore_groups(void *arg, const struct kv_group *g, size_t n) { (void)arg, (void)g, (void)n; }

static const struct kv_rank_sink sink = { ignore_deltas, ignore_clear, ignore_groups };

/* Nothing that is not proven is saved again. */
static void stays_unproven(struct kv_rank *r)
{
	struct buf saved;
	buf_init(&saved, 1 << 20);
	must(kv_rank_stats(r).uncertain && kv_rank_save(r, &saved) == ERR_NOT_FOUND);
	kv_rank_has_replay(r, true);
	must(kv_rank_reconnected(r) == KV_ACT_REPLAY && kv_rank_save(r, &saved) == ERR_NOT_FOUND);
	(void)kv_rank_replay_end(r, false);
	must(kv_rank_save(r, &saved) == ERR_NOT_FOUND && saved.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kv_rank *r = kv_rank_new(&sink, NULL);
	if (kv_rank_load(r, str_from(data, size)) != ERR_OK) {
		struct kv_rank_stats s = kv_rank_stats(r);
		must(!s.seen_any && !s.uncertain && s.blocks == 0 && s.lower_blocks == 0);
	} else {
		stays_unproven(r);
	}
	kv_rank_free(r);
	return 0;
}
