#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/rand.h"
#include "fleet/fleet.h"
#include "fleet/health.h"
#include "fleet/ledger.h"

static int ranks_alive, panics, changes;
static void on_health(void *arg, struct fleet_worker *w, enum fleet_health from, const char *why) { (void)arg, (void)w, (void)from, (void)why, changes++; }
static void on_panic(void *arg, struct fleet_pool *p, bool on) { (void)arg, (void)p, panics += on; }
static void on_rank(void *arg, struct fleet_worker *w, uint32_t rank, bool added) { (void)arg, (void)w, (void)rank, ranks_alive += added ? 1 : -1; }
static const struct fleet_ops ops = { on_health, on_panic, on_rank };

static struct mono at_ms(int64_t ms) { return (struct mono){ ms * 1000 }; }

static struct fleet *fresh(void)
{
	ranks_alive = panics = changes = 0;
	return fleet_new(&ops, NULL);
}

static struct fleet_worker *add(struct fleet *f, const char *pool, const char *url, const char *model)
{
	struct fleet_worker *w = NULL;
	assert_int_equal(fleet_add(f, str_of(pool), str_of(url), STR(""), at_ms(0), &w), ERR_OK);
	struct str name = str_of(model);
	fleet_fact_models(f, w, &(struct fleet_models_fact){ .names = &name, .n_names = name.n != 0, .max_model_len = 4096 }, at_ms(0));
	return w;
}

static struct fleet_worker *healthy(struct fleet *f, const char *url)
{
	struct fleet_worker *w = add(f, "", url, "m");
	fleet_probed(f, w, FLEET_PROBE_OK, at_ms(0));
	return w;
}

static void models_are_found_by_pool_and_anywhere(void **state)
{
	(void)state;
	struct fleet *f = fresh();
	struct fleet_worker *a = add(f, "x", "http://a", "m"), *b = add(f, "y", "http://b", "m");
	assert_int_equal(fleet_model_of(f, STR(""), STR("m"))->workers.n, 2);
	assert_int_equal(fleet_model_of(f, STR("y"), STR("m"))->workers.n, 1);
	assert_ptr_equal(fleet_model_of(f, STR("y"), STR("m"))->workers.p[0], b);
	assert_null(fleet_model_of(f, STR("z"), STR("m")));
	assert_null(fleet_model_of(f, STR(""), STR("other")));
	struct str names[] = { STR_INIT("m"), STR_INIT("alias") }, lora = STR_INIT("lora");
	assert_true(fleet_fact_models(f, a, &(struct fleet_models_fact){ names, 2, &lora, 1, 0 }, at_ms(1)));
	assert_false(fleet_fact_models(f, a, &(struct fleet_models_fact){ names, 2, &lora, 1, 0 }, at_ms(2)));
	assert_int_equal(fleet_model_of(f, STR(""), STR("alias"))->workers.n, 1);
	assert_true(fleet_is_adapter(f, STR("lora")));
	assert_false(fleet_is_adapter(f, STR("alias")));
	bool many;
	assert_non_null(fleet_model_default(f, STR(""), &many));      /* b lists one of a's names: one base model */
	add(f, "x", "http://c", "n");
	assert_null(fleet_model_default(f, STR(""), &many));
	assert_true(many);
	assert_non_null(fleet_model_default(f, STR("y"), &many));
	fleet_free(f);
}

static void round_robin_turn_survives_a_new_worker(void **state)
{
	(void)state;
	struct fleet *f = fresh();
	add(f, "", "http://a", "m");
	fleet_model_of(f, STR(""), STR("m"))->turn = 7;
	add(f, "", "http://b", "m");
	assert_int_equal(fleet_model_of(f, STR(""), STR("m"))->turn, 7);
	fleet_free(f);
}

static void case_smg_1706_too_many_workers_is_an_error(void **state)
{
	(void)state;
	struct fleet *f = fresh();
	char url[32];
	struct fleet_worker *w;
	for (int i = 0; i < FLEET_MAX_WORKERS; i++) {
		(void)snprintf(url, sizeof(url), "http://w%d", i);
		assert_int_equal(fleet_add(f, STR(""), str_of(url), STR(""), at_ms(0), &w), ERR_OK);
		assert_ptr_equal(fleet_worker_of(f, w->id), w);
	}
	assert_int_equal(fleet_add(f, STR(""), STR("http://one-more"), STR(""), at_ms(0), &w), ERR_LIMIT);
	assert_int_equal(ranks_alive, FLEET_MAX_WORKERS);
	fleet_free(f);
}

static void a_url_is_in_a_pool_once(void **state)
{
	(void)state;
	struct fleet *f = fresh();
	struct fleet_worker *w;
	assert_int_equal(fleet_add(f, STR("p"), STR("http://a"), STR(""), at_ms(0), &w), ERR_OK);
	assert_int_equal(fleet_add(f, STR("p"), STR("http://a"), STR(""), at_ms(0), &w), ERR_DUPLICATE);
	assert_int_equal(fleet_add(f, STR("q"), STR("http://a"), STR(""), at_ms(0), &w), ERR_OK);
	fleet_free(f);
}

/* llm-d-router 1739: a worker leaves and comes back while its streams run. */
static void case_llmd_1739_a_worker_that_comes_back_is_a_new_object(void **state)
{
	(void)state;
	struct fleet *f = fresh();
	struct fleet_worker *old = healthy(f, "http://a"), *again;
	uint32_t old_id = old->id;
	struct fleet_charge c[3] = { 0 };
	for (int i = 0; i < 3; i++)
		fleet_charge_begin(&c[i], old, 0, 100, 60);
	fleet_drain(f, old, at_ms(1));
	assert_int_equal(fleet_add(f, STR(""), STR("http://a"), STR(""), at_ms(2), &again), ERR_OK);
	assert_int_not_equal(again->id, old_id);
	assert_int_equal(again->ranks[0].load.requests, 0);
	assert_int_equal(fleet_load_of(again, 0).requests, 3);        /* what still runs there is seen */
	assert_int_equal(fleet_load_of(again, 0).prefill_tok, 180);
	for (int i = 0; i < 3; i++)
		fleet_charge_end(f, &c[i]);
	assert_null(fleet_worker_of(f, old_id));                       /* its last request took it along */
	assert_int_equal(fleet_load_of(again, 0).requests, 0);
	assert_true(fleet_is_idle(f));
	assert_int_equal(ranks_alive, 1);
	fleet_free(f);
}

static void the_ledger_moves_a_request_from_prefill_to_decode(void **state)
{
	(void)state;
	struct fleet *f = fresh();
	struct fleet_worker *w = healthy(f, "http://a");
	struct fleet_charge c = { 0 };
	fleet_charge_begin(&c, w, 0, 1000, 400);
	assert_int_equal(w->ranks[0].load.prefill_tok, 400);
	fleet_charge_decoding(&c);                                     /* predicted */
	assert_int_equal(w->ranks[0].load.prefill_tok, 0);
	assert_int_equal(w->ranks[0].load.contexts, 1);
	assert_int_equal(w->ranks[0].load.unanswered, 1);
	fleet_charge_answered(&c);
	fleet_charge_answered(&c);
	assert_int_equal(w->ranks[0].load.unanswered, 0);
	fleet_charge_grow(&c, 25);
	assert_int_equal(w->ranks[0].load.context_tok, 1025);
	fleet_charge_end(f, &c);
	fleet_charge_end(f, &c);
	assert_true(fleet_is_idle(f));
	fleet_free(f);
}

static void any_mix_of_charges_ends_at_zero(void **state)
{
	(void)state;
	enum { N = 64 };
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct fleet *f = fresh();
		struct rand r = { seed };
		struct fleet_worker *w[4];
		char url[32];
		for (int i = 0; i < 4; i++) {
			(void)snprintf(url, sizeof(url), "http://%d", i);
			w[i] = healthy(f, url);
		}
		struct fleet_charge c[N] = { 0 };
		for (int step = 0; step < 2000; step++) {
			struct fleet_charge *x = &c[rand_below(&r, N)];
			switch (rand_below(&r, 5)) {
			case 0:
				if (!x->worker)
					fleet_charge_begin(x, w[rand_below(&r, 4)], 0, 50, (uint32_t)rand_below(&r, 51));
				break;
			case 1: fleet_charge_decoding(x); break;
			case 2: fleet_charge_answered(x); break;
			case 3: fleet_charge_grow(x, (uint32_t)rand_below(&r, 9)); break;
			default: fleet_charge_end(f, x);
			}
		}
		for (int i = 0; i < N; i++)
			fleet_charge_end(f, &c[i]);
		assert_true(fleet_is_idle(f));
		fleet_free(f);
	}
}

static void gauges_only_add_what_is_not_ours_and_fade(void **state)
{
	(void)state;
	struct fleet *f = fresh();
	struct fleet_worker *w = healthy(f, "http://a");
	struct fleet_charge c[4] = { 0 };
	for (int i = 0; i < 4; i++)
		fleet_charge_begin(&c[i], w, 0, 10, 10);
	fleet_fact_gauges(w, 0, 3, 1, 0.5, at_ms(0));
	assert_true(fleet_foreign(&w->ranks[0], at_ms(0)) == 0);
	for (int i = 0; i < 4; i++)
		fleet_charge_end(f, &c[i]);
	fleet_fact_gauges(w, 0, 4, 0, 0.5, at_ms(100));               /* the scrape is older than the ends */
	assert_true(fleet_foreign(&w->ranks[0], at_ms(100)) == 0);
	fleet_fact_gauges(w, 0, 6, 2, 0.95, at_ms(200));
	assert_true(fleet_foreign(&w->ranks[0], at_ms(200)) == 8);
	assert_true(fleet_pressed(&w->ranks[0], at_ms(200)));
	double later = fleet_foreign(&w->ranks[0], at_ms(6200));
	assert_true(later > 3.9 && later < 4.1);
	assert_true(fleet_foreign(&w->ranks[0], at_ms(10200)) == 0);  /* stale gauges fail open */
	assert_false(fleet_pressed(&w->ranks[0], at_ms(10200)));
	fleet_free(f);
}

static void ranks_come_and_go_with_the_facts(void **state)
{
	(void)state;
	struct fleet *f = fresh();
	struct fleet_worker *w = healthy(f, "http://a");
	struct fleet_cache_fact c = { .block_size = 16, .blocks = 4000, .ranks = 4, .prefix_caching = true };
	assert_true(fleet_fact_cache(f, w, &c, at_ms(0)));
	assert_false(fleet_fact_cache(f, w, &c, at_ms(1)));
	assert_int_equal(w->n_ranks, 4);
	assert_int_equal(fleet_rank_capacity(w), 1000);
	uint32_t sizes[FLEET_MAX_SIZES];
	assert_int_equal(fleet_rank_sizes(w, 3, sizes), 1);
	assert_int_equal(sizes[0], 16);
	assert_true(fleet_fact_sizes(w, 3, (uint32_t[]){ 32, 64, 32 }, 3));   /* events win */
	assert_int_equal(fleet_rank_sizes(w, 3, sizes), 2);
	assert_int_equal(sizes[1], 64);
	c.ranks = 1;
	assert_true(fleet_fact_cache(f, w, &c, at_ms(2)));
	assert_int_equal(w->n_ranks, 1);
	assert_null(fleet_rank_of(f, w, FLEET_MAX_RANKS));
	fleet_free(f);
	(void)ranks_alive;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(models_are_found_by_pool_and_anywhere), cmocka_unit_test(round_robin_turn_survives_a_new_worker),
		cmocka_unit_test(case_smg_1706_too_many_workers_is_an_error), cmocka_unit_test(a_url_is_in_a_pool_once),
		cmocka_unit_test(case_llmd_1739_a_worker_that_comes_back_is_a_new_object),
		cmocka_unit_test(the_ledger_moves_a_request_from_prefill_to_decode), cmocka_unit_test(any_mix_of_charges_ends_at_zero),
		cmocka_unit_test(gauges_only_add_what_is_not_ours_and_fade), cmocka_unit_test(ranks_come_and_go_with_the_facts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
