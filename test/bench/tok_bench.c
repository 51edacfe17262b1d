/* How fast a tokenizer loads and gives ids: tok_bench MODEL_DIR TEXT_FILE... For each file: the whole of it with an empty
 * and with a warm word cache, then prompts of about 10,000 tokens taken from it, warm (p50 and p99), each time also
 * with an empty cache. Then a run of one letter, once and twice as long. CPU time of this thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/must.h"
#include "tok/tok.h"

static struct str read_file(const char *folder, const char *name)
{
	char path[4096];
	struct buf b;
	buf_init(&b, TOK_MAX_FILE_BYTES);
	snprintf(path, sizeof(path), "%s%s%s", folder, *folder ? "/" : "", name);
	FILE *f = fopen(path, "rb");
	char *room;
	for (size_t n = 1; f && n;) {
		must(buf_reserve(&b, 1 << 20, &room) == ERR_OK);
		n = fread(room, 1, 1 << 20, f);
		buf_commit(&b, n);
	}
	if (f)
		fclose(f);
	return buf_str(&b);
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double encode_ms(const struct tok *t, struct tok_scratch *s, struct str text, struct tok_ids *ids)
{
	struct tok_job job = { .text = text };
	ids->n = 0;
	double start = now_ms();
	must(tok_encode(t, s, &job, ids) == ERR_OK);
	return now_ms() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* n bytes from `from` on, cut at characters. */
static struct str window(struct str text, size_t from, size_t n)
{
	while (from < text.n && ((unsigned char)text.p[from] & 0xc0) == 0x80)
		from++;
	struct str w = str_sub(text, from, n);
	while (w.n && from + w.n < text.n && ((unsigned char)text.p[from + w.n] & 0xc0) == 0x80)
		w.n--;
	return w;
}

static void prompts(const struct tok *t, struct tok_scratch *s, struct str text, size_t bytes, struct tok_ids *ids)
{
	enum { N = 200 };
	double ms[N], cold = 0;
	for (size_t i = 0; i < N; i++) {
		struct str w = window(text, text.n > bytes ? i * (text.n - bytes) / N : 0, bytes);
		encode_ms(t, s, w, ids);
		ms[i] = encode_ms(t, s, w, ids);
		if (i % 20 == 0) {
			struct tok_scratch *empty = tok_scratch_new(t, TOK_CACHE_BYTES);
			cold += encode_ms(t, empty, w, ids) / (N / 20.0);
			tok_scratch_free(empty);
		}
	}
	qsort(ms, N, sizeof(ms[0]), by_value);
	printf("   10k tokens (%zu bytes): warm p50 %.3f ms p99 %.3f ms, empty cache %.2f ms\n", bytes, ms[N / 2], ms[N * 99 / 100], cold);
}

static void bench_file(const struct tok *t, const char *path)
{
	struct str text = window(read_file("", path), 0, TOK_MAX_TEXT_BYTES);
	struct tok_ids ids = { 0 };
	must(text.n);
	struct tok_scratch *s = tok_scratch_new(t, TOK_CACHE_BYTES), *none = tok_scratch_new(t, 0);
	double first = encode_ms(t, s, text, &ids), again = encode_ms(t, s, text, &ids), plain = encode_ms(t, none, text, &ids);
	double mb = (double)text.n / 1e6;
	printf("%s: %.2f MB, %zu ids: empty cache %.1f MB/s, warm %.1f MB/s, no cache %.1f MB/s\n", path, mb, ids.n, mb / first * 1e3,
		mb / again * 1e3, mb / plain * 1e3);
	prompts(t, s, text, (size_t)((double)text.n / (double)ids.n * 10000), &ids);
	tok_scratch_free(s);
	tok_scratch_free(none);
	tok_ids_done(&ids);
	free((void *)(uintptr_t)text.p);
}

static void bench_run(const struct tok *t, const char *unit, size_t bytes)
{
	double ms[2];
	struct tok_ids ids = { 0 };
	struct tok_scratch *s = tok_scratch_new(t, 0);
	char *p = must_malloc(2 * bytes);
	for (size_t i = 0; i < 2 * bytes; i++)
		p[i] = unit[i % strlen(unit)];
	for (int i = 0; i < 2; i++)
		ms[i] = encode_ms(t, s, window((struct str){ p, 2 * bytes }, 0, bytes << i), &ids);
	printf("run of \"%s\": %.2f MB %.0f ms, twice as long %.2f times as long\n", unit, (double)bytes / 1e6, ms[0], ms[1] / ms[0]);
	tok_scratch_free(s);
	tok_ids_done(&ids);
	free(p);
}

int main(int argc, char **argv)
{
	char why[512];
	struct tok *t;
	if (argc < 2)
		return 2;
	struct tok_files files = { .tokenizer_json = read_file(argv[1], "tokenizer.json"),
		.config = read_file(argv[1], "tokenizer_config.json"),
		.tekken = read_file(argv[1], "tekken.json") };
	double start = now_ms();
	if (tok_load(&files, why, sizeof(why), &t) != ERR_OK) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	printf("%s: scheme %s, loaded in %.0f ms, %.1f MB, %zu ids\n", argv[1], tok_scheme_name(t), now_ms() - start,
		(double)tok_bytes_held(t) / 1e6, tok_vocab_size(t));
	for (int i = 2; i < argc; i++)
		bench_file(t, argv[i]);
	const char *units[] = { "a", "A", " ", "\n", "1", "!", "\xe4\xb8\xad", "\xf0\x9f\x98\x80", "ab" };
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		bench_run(t, units[i], 999996);
	tok_free(t);
	return 0;
}
