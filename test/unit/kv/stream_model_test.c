/* A worker, a lossy event socket, a replay socket and restarts of both ends, at random: when the dust has settled, the view is the
 * worker's cache, or it says that it may not be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/rand.h"
#include "kit.h"

enum { SEEDS = 60, LOG = 4000, STEPS = 300 };

struct step { char kind; uint32_t seed; double ts; };          /* '+' stored, '-' removed, '0' cleared */

struct world {
	struct kit k;
	struct rand r;
	struct step log[LOG];
	uint32_t n;                    /* batches of this life of the worker */
	int copies[SEEDS];
	double clock;
	bool wants;                    /* a replay was asked for */
	bool failed;                   /* some replay did not come to its end */
	uint32_t loss;                 /* in 100 */
};

static void build(struct world *w, const struct step *s)
{
	if (s->kind == '+')
		kit_store(&w->k, s->seed, 0, 1, 4);
	else if (s->kind == '-')
		kit_remove(&w->k, s->seed, 0);
	else
		kit_clear(&w->k);
}

static void obey(struct world *w, enum kv_act act) { w->wants = act == KV_ACT_REPLAY || (w->wants && act == KV_ACT_NONE); }

static void deliver(struct world *w, uint32_t seq)
{
	build(w, &w->log[seq]);
	obey(w, kit_send_at(&w->k, seq, w->log[seq].ts, false));
}

static void work(struct world *w)
{
	struct step s = { '+', (uint32_t)rand_below(&w->r, SEEDS), w->clock += 0.5 };
	uint64_t dice = rand_below(&w->r, 100);
	if (dice == 0) {
		s.kind = '0';
		memset(w->copies, 0, sizeof(w->copies));
	} else if (w->copies[s.seed] && dice < 60) {
		s.kind = '-';
		w->copies[s.seed]--;
	} else {
		w->copies[s.seed]++;
	}
	w->log[w->n++] = s;
	if (rand_below(&w->r, 100) >= w->loss)
		deliver(w, w->n - 1);
	if (rand_below(&w->r, 50) == 0)
		deliver(w, w->n - 1);          /* twice */
}

/* The worker goes on while it answers. */
static void replay(struct world *w, bool may_fail)
{
	uint64_t want = kv_rank_want_seq(w->k.r);
	bool all = !may_fail || rand_below(&w->r, 10) != 0;
	w->wants = false;
	for (uint64_t seq = want; seq < w->n; seq++) {
		build(w, &w->log[seq]);
		kit_send_at(&w->k, seq, w->log[seq].ts, true);
		if (!all && rand_below(&w->r, 4) == 0)
			break;
		if (rand_below(&w->r, 20) == 0 && w->n < LOG)
			work(w);
	}
	w->failed |= !all;
	obey(w, kv_rank_replay_end(w->k.r, all));
}

static void restart(struct world *w)
{
	w->n = 0;
	w->clock += 60;
	memset(w->copies, 0, sizeof(w->copies));
	if (rand_below(&w->r, 2))
		obey(w, kv_rank_reconnected(w->k.r));
}

/* What was sent meanwhile is lost; the worker may be another one when the new gateway looks. */
static void gateway_restarts(struct world *w)
{
	kit_start_again(&w->k, true);
	w->wants = false;
	if (rand_below(&w->r, 2)) {
		restart(w);
		w->wants = false;
	}
	obey(w, kv_rank_reconnected(w->k.r));
}

static void settle(struct world *w)
{
	w->loss = 0;
	obey(w, kv_rank_reconnected(w->k.r));
	for (int turn = 0; turn < 50 && w->wants; turn++)
		replay(w, false);
	assert_false(w->wants);
	work(w);
	for (int turn = 0; turn < 50 && w->wants; turn++)
		replay(w, false);
}

static void compare(struct world *w)
{
	for (uint32_t i = 0; i < SEEDS; i++)
		assert_int_equal(kit_holds(&w->k, kit_key(&w->k, i, 0, 4), 0), w->copies[i] > 0);
	assert_int_equal(w->k.wrong, 0);
}

static void run(uint64_t seed, bool may_fail)
{
	static struct world w;
	memset(&w, 0, sizeof(w));
	kit_init(&w.k);
	w.r.s = seed;
	w.clock = 1e6;
	w.loss = 10;
	kv_rank_has_replay(w.k.r, true);
	obey(&w, kv_rank_reconnected(w.k.r));
	for (int i = 0; i < STEPS; i++) {
		work(&w);
		if (w.wants && rand_below(&w.r, 3) == 0)
			replay(&w, may_fail);
		if (rand_below(&w.r, 100) == 0)
			restart(&w);
		if (rand_below(&w.r, 100) == 0)
			gateway_restarts(&w);
	}
	settle(&w);
	if (!w.failed) {
		assert_false(kv_rank_stats(w.k.r).uncertain);
		compare(&w);
	} else if (!kv_rank_stats(w.k.r).uncertain) {
		compare(&w);
	}
	kit_done(&w.k);
}

static void the_view_is_the_workers_cache_in_the_end(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 150; seed++)
		run(seed, false);
}

static void a_view_that_may_be_wrong_says_so(void **state)
{
	(void)state;
	for (uint64_t seed = 1000; seed <= 1150; seed++)
		run(seed, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_view_is_the_workers_cache_in_the_end),
		cmocka_unit_test(a_view_that_may_be_wrong_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
