/* How long a decision takes: ask to plan, keys given, and what the plan leaves for later (the prompt in flight, owner
 * memory), which runs while the request is on its way. brain_bench [WORKERS [PROMPT_TOKENS [ROUNDS]]]
 *
 *   full     every worker holds every block of the prompt
 *   spread   each of 40 prompts is held by 8 workers to different depths
 * Times are CPU time of the thread, so that other programs count only by what they take of the caches; the yardstick is as
 * many independent random reads of memory as the prompt has blocks, on the same machine at the same time.
 *   warm     the same prompt again and again; cold: another prompt each time, and the CPU's caches overwritten before it */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/must.h"
#include "brain/brain.h"

enum { PROMPTS = 40, SWEEP_BYTES = 64 << 20 };

static double now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_row(const char *what, double *us, int n)
{
	qsort(us, (size_t)n, sizeof(*us), by_value);
	printf("%-44s p50 %8.1f us   p90 %8.1f us   p99 %8.1f us   (%d decisions)\n", what, us[n / 2], us[n * 9 / 10], us[n * 99 / 100], n);
}

struct bench {
	struct brain *b;
	uint32_t workers, tokens, blocks, rounds;
	brain_worker *w;
	uint64_t *keys[PROMPTS];
	char *sweep;
};

static void hold(struct bench *x, uint32_t worker, uint32_t prompt, uint32_t blocks)
{
	struct kv_delta *d = must_malloc(blocks * sizeof(*d));
	for (uint32_t i = 0; i < blocks; i++)
		d[i] = (struct kv_delta){ .key = x->keys[prompt][i], .add_groups = 1 };
	for (uint32_t i = 0; i < blocks; i += 2000)
		brain_kv_deltas(x->b, x->w[worker], 0, d + i, MIN(2000u, blocks - i));
	free(d);
}

static void setup(struct bench *x, bool full)
{
	x->b = brain_new(&(struct brain_opts){ .seed = 1 }, NULL, NULL);
	x->w = must_calloc(x->workers, sizeof(*x->w));
	struct str name = STR("m");
	for (uint32_t i = 0; i < x->workers; i++) {
		char url[40];
		(void)snprintf(url, sizeof(url), "http://w%u:8000", i);
		must(brain_worker_add(x->b, &(struct brain_worker_conf){ .url = str_of(url) }, (struct mono){ 0 }, &x->w[i]) == ERR_OK);
		brain_fact_models(x->b, x->w[i], &(struct brain_models){ .names = &name, .n_names = 1 }, (struct mono){ 0 });
		brain_fact_cache(x->b, x->w[i], 16, 300000, 1, true, (struct mono){ 0 });
		brain_kv_status(x->b, x->w[i], 0, true, false, (struct mono){ 0 });
		brain_fact_probe(x->b, x->w[i], BRAIN_PROBE_OK, (struct mono){ 0 });
		brain_kv_groups(x->b, x->w[i], 0, &(struct kv_group){ .kind = KV_GROUP_FULL, .block_size = 16 }, 1);
	}
	for (uint32_t p = 0; p < PROMPTS; p++)
		for (uint32_t i = 0; i < x->workers; i++)
			if (full)
				hold(x, i, p, x->blocks);
			else if ((i + p) % (x->workers / 8 + 1) == 0)
				hold(x, i, p, x->blocks * (1 + (i + p) % 8) / 8);
}

static void teardown(struct bench *x)
{
	brain_free(x->b);
	free(x->w);
}

static void measure(struct bench *x, const char *what, bool cold)
{
	double *plan = must_calloc(x->rounds, sizeof(*plan)), *later = must_calloc(x->rounds, sizeof(*later));
	int n = 0;
	for (uint32_t r = 0; r < x->rounds; r++) {
		uint32_t p = cold ? r % PROMPTS : 0;
		struct kv_prompt prompt = { .n_tok = x->tokens, .n_sets = 1, .sets = { { 16, x->blocks, x->keys[p] } } };
		struct brain_ask a = { .model = STR("m"), .prompt = &prompt, .stream = true, .kv_routed = true, .request_id = "bench" };
		struct brain_plan out;
		struct mono now = { (int64_t)r * 100000 };
		if (cold)
			memset(x->sweep, (int)r, SWEEP_BYTES);
		double t0 = now_us();
		must(brain_ask(x->b, &a, now, &out) == ERR_OK);
		double t1 = now_us();
		brain_tell(x->b, &(struct brain_tell){ .ticket = out.ticket, .kind = BRAIN_TELL_SENT }, now);
		double t2 = now_us();
		brain_tell(x->b, &(struct brain_tell){ .ticket = out.ticket, .kind = BRAIN_TELL_FIRST_TOKEN }, mono_add_us(now, 40000));
		brain_tell(x->b, &(struct brain_tell){ .ticket = out.ticket, .kind = BRAIN_TELL_END }, mono_add_us(now, 50000));
		if (r >= 5) {
			plan[n] = t1 - t0;
			later[n++] = t2 - t1;
		}
	}
	char line[64];
	(void)snprintf(line, sizeof(line), "%s: ask to plan", what);
	print_row(line, plan, n);
	(void)snprintf(line, sizeof(line), "%s: after the plan", what);
	print_row(line, later, n);
	free(plan);
	free(later);
}

static void yardstick(struct bench *x)
{
	double us[101];
	uint64_t at = 1, sum = 0;
	for (int r = 0; r < 101; r++) {
		double t0 = now_us();
		for (uint32_t i = 0; i < x->blocks; i++) {
			at = at * 6364136223846793005u + 1442695040888963407u;
			sum += (uint8_t)x->sweep[(at >> 33) % SWEEP_BYTES];
		}
		us[r] = now_us() - t0;
	}
	print_row(sum ? "yardstick: random reads" : "yardstick", us, 101);
}

static uint32_t argument(int argc, char **argv, int i, uint32_t otherwise)
{
	uint64_t v;
	return argc > i && str_to_u64(str_of(argv[i]), &v) ? (uint32_t)v : otherwise;
}

int main(int argc, char **argv)
{
	struct bench x = { .workers = argument(argc, argv, 1, 100), .tokens = argument(argc, argv, 2, 100000), .rounds = argument(argc, argv, 3, 1000) };
	x.blocks = x.tokens / 16;
	x.sweep = must_malloc(SWEEP_BYTES);
	for (uint32_t p = 0; p < PROMPTS; p++) {
		x.keys[p] = must_malloc(x.blocks * sizeof(uint64_t) + 1);
		for (uint32_t i = 0; i < x.blocks; i++)
			x.keys[p][i] = hash_bytes(&(uint64_t[]){ p, i }, 16, 7);
	}
	printf("%u workers, %u tokens (%u blocks of 16). Bars: p50 <= 100 us warm, <= 300 us cold, p99 <= 500 us\n", x.workers, x.tokens, x.blocks);
	memset(x.sweep, 1, SWEEP_BYTES);
	yardstick(&x);
	for (int full = 1; full >= 0; full--) {
		setup(&x, full);
		struct kv_index_stats s = brain_index_stats(x.b);
		printf("%s holders: %llu keys, %llu (block, rank), %.1f bytes each\n", full ? "full" : "spread", (unsigned long long)s.entries,
			(unsigned long long)s.holdings, (double)s.bytes / (double)MAX(s.holdings, 1u));
		measure(&x, full ? "full, warm" : "spread, warm", false);
		x.rounds = MIN(x.rounds, 200u);
		measure(&x, full ? "full, cold" : "spread, cold", true);
		x.rounds = argument(argc, argv, 3, 1000);
		teardown(&x);
	}
	for (uint32_t p = 0; p < PROMPTS; p++)
		free(x.keys[p]);
	free(x.sweep);
	return 0;
}
