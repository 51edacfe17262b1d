/* tokenize.c: what the gateway's way from a request's body to block keys costs, on one thread. Lines of name, value and unit. */
#include "bench/tokenize.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/vec.h"
#include "io/file.h"
#include "kv/key.h"
#include "text/local.h"
#include "wire/json.h"

enum { CHATS = 100, CHAT_TOK = 10000, TURN_BYTES = 1500, NEW_BYTES = 900, BLOCK_TOK = 16, TEXT_MAX_BYTES = 64 << 20, RUN_BYTES = 1000000 };

static const char usage[] =
	"usage: kvasir-bench tokenize --model-dir DIR [--write-chats FILE] TEXT_FILE\n\n"
	"What token ids cost with the tokenizer and the chat template of DIR, one thread, CPU time. Texts and chats of about 10,000\n"
	"tokens are made of TEXT_FILE (UTF-8, of some hundred KB at least). Each line: what, value, unit.\n"
	"Undisturbed: of those before and after which a fixed loop ran at its best speed (a neighbour on the same core slows both).\n"
	"--write-chats: the chats measured, each line a body, behind each chat its next turn: for a comparison with others.\n";

struct took {
	double ms, loop_ms; /* of a chat; of the fixed loop beside it */
};

struct bench {
	struct text_local *l;
	struct text_local_scratch *s;
	struct str text;
	VEC(struct took) took;
	double best_loop_ms; /* ever */
	size_t n_tok;
};

static void print(const char *name, double value, const char *unit) { printf("%-60s %10.3f %s\n", name, value, unit); }

static int by_ms(const void *a, const void *b)
{
	double x = ((const struct took *)a)->ms, y = ((const struct took *)b)->ms;
	return (x > y) - (x < y);
}

/* Moves those to the front beside which the loop was hardly slower than ever. */
static size_t undisturbed(struct took *p, size_t n, double best_ms)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (p[i].loop_ms < best_ms * 1.2)
			p[kept++] = p[i];
	return kept;
}

static void print_times(struct bench *b, const char *name)
{
	char line[128];
	struct took *p = b->took.p;
	qsort(p, b->took.n, sizeof(*p), by_ms);
	snprintf(line, sizeof(line), "%s, p50", name);
	print(line, p[b->took.n / 2].ms, "ms");
	snprintf(line, sizeof(line), "%s, p99", name);
	print(line, p[b->took.n * 99 / 100].ms, "ms");
	size_t n = undisturbed(p, b->took.n, b->best_loop_ms);
	snprintf(line, sizeof(line), "%s, undisturbed", name);
	print(line, 100.0 * (double)n / (double)b->took.n, "%");
	snprintf(line, sizeof(line), "%s, p50 of those", name);
	if (n)
		print(line, p[n / 2].ms, "ms");
	b->took.n = 0;
}

/* Of this thread's CPU: what others do on the machine is not in it. */
static double now_ms(void) { return (double)io_thread_cpu_ns() / 1e6; }

/* Some 20 us of arithmetic, always the same, that fills the core. */
static double loop_ms(void)
{
	double start = now_ms();
	uint64_t v[4] = { 1, 2, 3, 4 };
	for (uint64_t i = 0; i < 20000; i++) {
		v[0] = v[0] * 3 + i;
		v[1] ^= v[1] << 1;
		v[2] += v[1] >> 3;
		v[3] = v[3] * 5 + 1;
	}
	__asm__ volatile("" : : "r"(v[0] ^ v[1] ^ v[2] ^ v[3])); /* it is wanted */
	return now_ms() - start;
}

/* ---- bodies */

/* n bytes or so of the text, whole characters, from some place of it on (round and round). */
static struct str piece(const struct bench *b, size_t from, size_t n)
{
	from %= b->text.n - n - 8;
	while (((unsigned char)b->text.p[from] & 0xc0) == 0x80)
		from++;
	while (((unsigned char)b->text.p[from + n] & 0xc0) == 0x80)
		n++;
	return str_sub(b->text, from, n);
}

/* The first `bytes` of chat number k, and with `turn` its next turn: an answer and a question. */
static void make_chat(const struct bench *b, struct buf *out, size_t k, size_t bytes, bool turn)
{
	size_t n = bytes / TURN_BYTES / 2 * 2 + 1, at = k * 7919;
	buf_clear(out);
	must(buf_add(out, STR("{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"You are a helpful assistant.\"}")) ==
		ERR_OK);
	for (size_t i = 0; i < n + (turn ? 2 : 0); i++) {
		must(buf_printf(out, ",{\"role\":\"%s\",\"content\":", i % 2 ? "assistant" : "user") == ERR_OK);
		must(json_quote(out, piece(b, at + i * TURN_BYTES, i < n ? TURN_BYTES : NEW_BYTES / 2)) == ERR_OK);
		must(buf_add(out, STR("}")) == ERR_OK);
	}
	must(buf_add(out, STR("]}")) == ERR_OK);
}

/* ---- measuring */

/* One body all the way: parsed, rendered, tokenised, keyed. */
static bool run(struct bench *b, struct text_local_scratch *s, struct str body, struct tok_memo *memo)
{
	struct text_local_job job = { .form = TEXT_CHAT, .body = body, .now_s = 1772366096, .max_tok = 1 << 24, .memo = memo };
	struct text_ids *ids;
	const char *why = "";
	double loop = loop_ms(), start = now_ms();
	if (text_local_ids(s, &job, &ids, &why) != ERR_OK) {
		fprintf(stderr, "kvasir-bench tokenize: the template or tokenizer refuses a chat: %s\n", why);
		return false;
	}
	size_t n = ids->prompts[0].n;
	uint64_t *keys = must_malloc((n / BLOCK_TOK + 1) * sizeof(*keys));
	(void)kv_prompt_keys(kv_seed((struct str){ 0 }), ids->prompts[0].ids, n, BLOCK_TOK, NULL, keys);
	struct took took = { .ms = now_ms() - start };
	double again = loop_ms();
	took.loop_ms = MAX(loop, again);
	b->best_loop_ms = MIN(b->best_loop_ms, MIN(loop, again));
	VEC_PUSH(&b->took, took);
	b->n_tok = n;
	free(keys);
	text_ids_unref(ids);
	return true;
}

static bool write_chats(const struct bench *b, size_t bytes, const char *path)
{
	FILE *f = fopen(path, "w");
	struct buf body;
	buf_init(&body, TEXT_MAX_BYTES);
	for (size_t i = 0; f && i < 2 * CHATS; i++) {
		make_chat(b, &body, i / 2, bytes, i % 2);
		fprintf(f, "%.*s\n", (int)body.n, body.p);
	}
	buf_done(&body);
	if (f && fclose(f) == 0)
		return true;
	fprintf(stderr, "kvasir-bench tokenize: %s: cannot be written\n", path);
	return false;
}

static bool chats(struct bench *b, size_t bytes)
{
	struct buf body;
	struct tok_memo *memo = tok_memo_new(&(struct tok_memo_opts){ .max_bytes = 256 << 20, .least_bytes = TOK_MEMO_LEAST_BYTES });
	bool ok = true;
	buf_init(&body, TEXT_MAX_BYTES);
	for (size_t k = 0; ok && k < CHATS / 4; k++) {
		struct text_local_scratch *cold = text_local_scratch_new(b->l, TOK_CACHE_BYTES);
		make_chat(b, &body, k, bytes, false);
		ok = run(b, cold, buf_str(&body), NULL);
		text_local_scratch_free(cold);
	}
	if (ok)
		print_times(b, "chat of 10k tokens, empty word cache");
	for (size_t k = 0; ok && k < 2 * CHATS; k++) {
		make_chat(b, &body, k % CHATS, bytes, false);
		ok = run(b, b->s, buf_str(&body), NULL);
		b->took.n = k == CHATS - 1 ? 0 : b->took.n;
	}
	if (ok)
		print_times(b, "chat of 10k tokens, words known");
	for (size_t k = 0; ok && k < CHATS; k++) {
		make_chat(b, &body, k, bytes, false);
		ok = run(b, b->s, buf_str(&body), memo);
		b->took.n -= ok;
		make_chat(b, &body, k, bytes, true);
		ok = ok && run(b, b->s, buf_str(&body), memo);
	}
	if (ok) {
		print_times(b, "its next turn");
		print("tokens of the last chat", (double)b->n_tok, "tokens");
		print("the fixed loop at best", b->best_loop_ms * 1e3, "us");
	}
	buf_done(&body);
	tok_memo_unref(memo);
	return ok;
}

/* The text in parts of n bytes: each with an empty word cache, then again with its words known. */
static void parts(struct bench *b, size_t n)
{
	const struct tok *t = text_local_tok(b->l);
	double ms[2] = { 0 };
	size_t done = 0;
	for (; done + n + 8 < b->text.n; done += n) {
		struct tok_scratch *s = tok_scratch_new(t, TOK_CACHE_BYTES);
		for (size_t i = 0; i < 2; i++) {
			struct tok_ids ids = { 0 };
			double start = now_ms();
			must(tok_encode(t, s, &(struct tok_job){ .text = piece(b, done, n) }, &ids) == ERR_OK);
			ms[i] += now_ms() - start;
			tok_ids_done(&ids);
		}
		tok_scratch_free(s);
	}
	print("texts of 10k tokens, empty word cache", (double)done / 1e3 / ms[0], "MB/s");
	print("texts of 10k tokens, words known", (double)done / 1e3 / ms[1], "MB/s");
}

/* Bytes of text of CHAT_TOK tokens; the whole text is done once for it. */
static bool measure_text(struct bench *b, size_t *ret_bytes)
{
	const struct tok *t = text_local_tok(b->l);
	struct tok_scratch *s = tok_scratch_new(t, TOK_CACHE_BYTES);
	struct tok_ids ids = { 0 };
	double start = now_ms();
	bool ok = tok_encode(t, s, &(struct tok_job){ .text = b->text }, &ids) == ERR_OK && ids.n;
	if (ok) {
		print("the whole text, empty word cache", (double)b->text.n / 1e3 / (now_ms() - start), "MB/s");
		print("tokens of the whole text", (double)ids.n, "tokens");
		*ret_bytes = b->text.n * CHAT_TOK / ids.n;
	}
	tok_ids_done(&ids);
	tok_scratch_free(s);
	return ok;
}

static void one_letter(struct bench *b)
{
	const struct tok *t = text_local_tok(b->l);
	struct tok_scratch *s = tok_scratch_new(t, 0);
	char *text = must_malloc(2 * RUN_BYTES);
	double ms[2];
	memset(text, 'a', 2 * RUN_BYTES);
	for (size_t i = 0; i < 2; i++) {
		struct tok_ids ids = { 0 };
		double start = now_ms();
		must(tok_encode(t, s, &(struct tok_job){ .text = { text, (size_t)RUN_BYTES << i } }, &ids) == ERR_OK);
		ms[i] = now_ms() - start;
		tok_ids_done(&ids);
	}
	print("1 MB of one letter", ms[0], "ms");
	print("2 MB of it, as many times as long", ms[1] / ms[0], "times");
	free(text);
	tok_scratch_free(s);
}

static enum err load(const char *folder, struct bench *b, char *why, size_t why_cap)
{
	struct buf bufs[TEXT_FILE_COUNT] = { 0 };
	struct text_local_files f = { .known_version = true };
	char path[4096];
	for (size_t i = 0; i < TEXT_FILE_COUNT; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, text_file_names[i]);
		if (io_file_read(path, TOK_MAX_FILE_BYTES, &bufs[i]) == ERR_OK)
			f.text[i] = buf_str(&bufs[i]);
	}
	double start = now_ms();
	enum err e = text_local_load(&f, why, why_cap, &b->l);
	if (e == ERR_OK) {
		print("loading", now_ms() - start, "ms");
		print("memory of the tokenizer", (double)text_local_bytes(b->l) / 1e6, "MB");
	}
	for (size_t i = 0; i < TEXT_FILE_COUNT; i++)
		buf_done(&bufs[i]);
	return e;
}

static bool measure_all(struct bench *b, const char *chats_path)
{
	size_t bytes = 0;
	if (!measure_text(b, &bytes))
		return false;
	parts(b, MIN(bytes, b->text.n / 2));
	one_letter(b);
	if (chats_path && !write_chats(b, bytes, chats_path))
		return false;
	return !text_local_has_chat(b->l) || chats(b, bytes);
}

static int measure(struct bench *b, const char *folder, const char *file, const char *chats_path)
{
	struct buf text;
	char why[512] = "";
	if (io_file_read(file, TEXT_MAX_BYTES, &text) != ERR_OK || text.n < 100000) {
		fprintf(stderr, "kvasir-bench tokenize: %s: not a text of 100 KB or more\n", file);
		return 2;
	}
	b->text = buf_str(&text);
	bool ok = load(folder, b, why, sizeof(why)) == ERR_OK;
	if (!ok)
		fprintf(stderr, "kvasir-bench tokenize: %s: %s\n", folder, why);
	if (ok) {
		b->s = text_local_scratch_new(b->l, TOK_CACHE_BYTES);
		ok = measure_all(b, chats_path);
		text_local_scratch_free(b->s);
		text_local_unref(b->l);
	}
	VEC_FREE(&b->took);
	buf_done(&text);
	return ok ? 0 : 1;
}

int bench_tokenize(int argc, char **argv)
{
	static const struct option options[] = { { "model-dir", 1, 0, 'm' }, { "write-chats", 1, 0, 'w' }, { "help", 0, 0, 'h' }, { 0 } };
	struct bench b = { .best_loop_ms = loop_ms() };
	const char *folder = NULL, *chats_path = NULL;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (c == 'm')
			folder = optarg;
		else if (c == 'w')
			chats_path = optarg;
		else
			return 2;
	}
	if (!folder || optind + 1 != argc) {
		fputs(usage, stderr);
		return 2;
	}
	return measure(&b, folder, argv[optind], chats_path);
}
