/* recording.c: run.json and timeline.jsonl of a folder. */
#include "bench/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

enum { MAX_LINE_BYTES = 64 << 20, MAX_FILE_BYTES = 1 << 30 };

static enum err read_file(const char *dir, const char *name, struct arena *a, struct str *ret)
{
	FILE *f = fopen(arena_printf(a, "%s/%s", dir, name), "rb");
	if (!f)
		return ERR_NOT_FOUND;
	enum err e = ERR_IO;
	long n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
	if (n >= 0 && n <= MAX_FILE_BYTES && fseek(f, 0, SEEK_SET) == 0) {
		char *p = arena_new(a, char, (size_t)n + 1);
		if (fread(p, 1, (size_t)n, f) == (size_t)n) {
			*ret = (struct str){ p, (size_t)n };
			e = ERR_OK;
		}
	}
	fclose(f);
	return e;
}

static enum err add_doc(struct bench_recording *r, struct str text, const struct json_val **ret)
{
	struct json_doc *d;
	TRY(json_parse(text, MAX_LINE_BYTES, &d));
	VEC_PUSH(&r->docs, d);
	*ret = json_root(d);
	return ERR_OK;
}

struct str bench_recording_text(const struct json_val *v, struct str key)
{
	struct str s = { "", 0 };
	json_str(json_get(v, key), &s);
	return s;
}

const struct json_val *bench_recording_line(const struct map *m, struct str id) { return map_get_ptr(m, hash_str(id, 0)); }

static void remember(struct map *m, const struct json_val *line)
{
	map_put_ptr(m, hash_str(bench_recording_text(line, STR("id")), 0), (void *)(uintptr_t)line);
}

static enum err read_timeline(const char *dir, struct bench_recording *r)
{
	struct str text, line;
	TRY(read_file(dir, "timeline.jsonl", &r->a, &text));
	while (text.n) {
		const struct json_val *v;
		if (!str_cut(text, '\n', &line, &text))
			text.n = 0;
		if (str_trim(line).n == 0)
			continue;
		TRY(add_doc(r, line, &v));
		VEC_PUSH(&r->lines, v);
		struct str kind = bench_recording_text(v, STR("kind"));
		if (str_eq(kind, STR("truth")))
			remember(&r->truth, v);
		else if (str_eq(kind, STR("request")))
			remember(&r->request, v);
	}
	return ERR_OK;
}

static void read_version(struct bench_recording *r)
{
	struct str s = bench_recording_text(r->run, STR("version")), part;
	for (size_t i = 0; i < ARRAY_LEN(r->version); i++) {
		uint64_t n = 0;
		str_cut(s, '.', &part, &s);
		r->version[i] = str_to_u64(part, &n) ? (uint32_t)n : 0;
	}
}

static struct str last_part(struct str path)
{
	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	size_t from = path.n;
	while (from && path.p[from - 1] != '/')
		from--;
	return str_skip(path, from);
}

static enum err read_run(const char *dir, struct bench_recording *r)
{
	struct str text;
	uint64_t block_size = 0;
	TRY(read_file(dir, "run.json", &r->a, &text));
	TRY(add_doc(r, text, &r->run));
	r->engine = bench_recording_text(r->run, STR("engine"));
	json_u64(json_get(r->run, STR("block_size")), &block_size);
	r->block_size = block_size <= UINT32_MAX ? (uint32_t)block_size : 0;
	read_version(r);
	return ERR_OK;
}

enum err bench_recording_read(const char *dir, struct bench_recording *ret_r)
{
	struct bench_recording r = { .name = last_part(str_of(dir)) };
	arena_init(&r.a, 0);
	enum err e = read_run(dir, &r);
	if (e == ERR_OK)
		e = read_timeline(dir, &r);
	if (e == ERR_OK)
		*ret_r = r;
	else
		bench_recording_free(&r);
	return e;
}

void bench_recording_free(struct bench_recording *r)
{
	for (size_t i = 0; i < r->docs.n; i++)
		json_free(r->docs.p[i]);
	VEC_FREE(&r->docs);
	VEC_FREE(&r->lines);
	map_done(&r->truth);
	map_done(&r->request);
	arena_done(&r->a);
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool bench_recording_hex(struct arena *a, struct str hex, struct str *ret_bytes)
{
	if (hex.n % 2)
		return false;
	char *p = arena_new(a, char, hex.n / 2 + 1);
	for (size_t i = 0; i < hex.n / 2; i++) {
		int hi = digit(hex.p[2 * i]), lo = digit(hex.p[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return false;
		p[i] = (char)(hi << 4 | lo);
	}
	*ret_bytes = (struct str){ p, hex.n / 2 };
	return true;
}
