/* truth.c: recordings through the real index. What a gateway would know at each moment, and no more. */
#include "bench/truth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "bench/recording.h"
#include "engine/engine.h"
#include "kv/index.h"
#include "kv/rank.h"

/* Why a reader of the events cannot know a hit. */
enum excuse { NONE, BEFORE_EVENTS, RESET_UNANNOUNCED, ADAPTER_RELOADED, SALT_UNSAID, ADAPTER_UNSAID, PARTIAL_TAIL, N_EXCUSES };
static const char *const EXCUSES[N_EXCUSES] = { "", "before-first-event", "reset-not-announced", "adapter-reloaded-over-another-path",
	"salt-not-on-the-wire", "adapter-not-on-the-wire", "partial-tail" };

struct worker {
	struct str name;
	struct replay *run;
	struct kv_rank *rank;
	kv_rank_id id;
	struct kv_group groups[KV_MAX_GROUPS];
	bool any; /* an event or a replayed batch was seen */
	bool reset; /* the cache was reset, its clear has not come */
	bool salts_unsaid; /* its stores carry no extra keys */
	bool adapters_unsaid; /* its stores number adapters and do not name them */
	bool tails; /* it stores partial tails */
	struct map salted; /* first-block keys, without their salt, of prompts sent with one */
	struct map paths; /* adapter -> hash of the path it was loaded from */
	struct map reloaded; /* adapters that changed their path */
};

struct outcome {
	struct str id;
	struct worker *w;
	uint32_t prompt_tok, predicted, reported;
	enum excuse excuse;
};
struct flying {
	uint64_t request;
	kv_flight f;
};

struct replay {
	struct bench_recording *rec;
	const struct engine *engine;
	struct kv_index *index;
	VEC(struct worker *) workers;
	uint32_t sizes[KV_MAX_SIZES];
	uint32_t n_sizes;
	VEC(struct flying) flying;
	VEC(struct outcome) outcomes;
	uint32_t skipped, bad_batches;
};

/* ---- workers ---- */

static void on_deltas(void *arg, const struct kv_delta *d, size_t n)
{
	struct worker *w = arg;
	kv_index_apply(w->run->index, w->id, d, n);
}

static void on_clear(void *arg)
{
	struct worker *w = arg;
	kv_index_clear(w->run->index, w->id);
}

static void add_size(struct replay *r, uint32_t size)
{
	for (uint32_t i = 0; i < r->n_sizes; i++)
		if (r->sizes[i] == size)
			return;
	if (size && r->n_sizes < KV_MAX_SIZES)
		r->sizes[r->n_sizes++] = size;
}

static void on_groups(void *arg, const struct kv_group *g, size_t n)
{
	struct worker *w = arg;
	for (size_t i = 0; i < n; i++)
		add_size(w->run, g[i].block_size);
	kv_index_groups(w->run->index, w->id, g, n);
}

static struct worker *find_worker(const struct replay *r, struct str name)
{
	for (size_t i = 0; i < r->workers.n; i++)
		if (str_eq(r->workers.p[i]->name, name))
			return r->workers.p[i];
	return NULL;
}

static struct worker *get_worker(struct replay *r, struct str name)
{
	static const struct kv_rank_sink sink = { on_deltas, on_clear, on_groups };
	struct worker *w = find_worker(r, name);
	if (w)
		return w;
	w = must_calloc(1, sizeof(*w));
	w->name = name;
	w->run = r;
	w->rank = kv_rank_new(&sink, w);
	if (kv_index_rank_add(r->index, &w->id) != ERR_OK)
		abort();
	/* What a scrape tells before the first event does. */
	kv_index_groups(r->index, w->id, &(struct kv_group){ KV_GROUP_FULL, 0, r->rec->block_size }, r->rec->block_size != 0);
	VEC_PUSH(&r->workers, w);
	return w;
}

static void free_worker(struct worker *w)
{
	kv_rank_free(w->rank);
	map_done(&w->salted);
	map_done(&w->paths);
	map_done(&w->reloaded);
	free(w);
}

/* ---- events ---- */

/* What the shape of a batch tells about what this worker leaves unsaid. */
static void look_at_shape(struct worker *w, const struct kv_batch *b)
{
	for (size_t i = 0; i < b->n_events; i++) {
		const struct kv_event *e = &b->events[i];
		if (e->type == KV_EVENT_CLEARED)
			w->reset = false;
		if (e->type != KV_EVENT_STORED || e->group >= KV_MAX_GROUPS)
			continue;
		w->salts_unsaid |= e->n_hashes && !e->extras;
		w->adapters_unsaid |= e->adapter.n && e->adapter.p[0] == '\x01';
		struct kv_group *g = &w->groups[e->group];
		w->tails |= g->block_size && e->block_size != g->block_size;
		g->block_size = MAX(g->block_size, e->block_size);
	}
}

static uint64_t sequence(struct str s)
{
	uint64_t n = 0;
	for (size_t i = 0; i < s.n; i++)
		n = n << 8 | (uint8_t)s.p[i];
	return n;
}

enum { MAX_FRAMES = 8 };

/* Frames are read from the end: payload last, sequence last but one, in every version and on both sockets. */
static bool frames_of(struct arena *a, const struct json_val *frames, uint64_t *ret_seq, struct str *ret_payload)
{
	struct str raw[MAX_FRAMES];
	size_t n = 0;
	for (struct json_iter it = json_each(frames); json_next(&it);) {
		struct str hex;
		if (n == MAX_FRAMES || !json_str(it.val, &hex) || !bench_recording_hex(a, hex, &raw[n++]))
			return false;
	}
	if (n < 2 || raw[n - 2].n != 8)
		return false;
	*ret_seq = sequence(raw[n - 2]);
	*ret_payload = raw[n - 1];
	return true;
}

/* Is it the end marker of a replay? */
static bool take_frames(struct worker *w, const struct json_val *frames, bool from_replay)
{
	struct arena a;
	uint64_t seq;
	struct str payload;
	struct kv_batch b;
	bool end = false;
	arena_init(&a, 0);
	if (!frames_of(&a, frames, &seq, &payload)) {
		w->run->bad_batches++;
	} else if (payload.n == 0) {
		end = true;
	} else if (w->run->engine->events(payload, &a, &b) != ERR_OK) {
		w->run->bad_batches++;
	} else {
		w->any = true;
		look_at_shape(w, &b);
		kv_rank_batch(w->rank, seq, &b, from_replay);
	}
	arena_done(&a);
	return end;
}

static void take_replay(struct worker *w, const struct json_val *line)
{
	int64_t from = 0;
	json_i64(json_get(line, STR("from")), &from);
	enum kv_act act = KV_ACT_NONE;
	kv_rank_has_replay(w->rank, true);
	/* The recorder asked for what it liked; it serves as the answer to our question if it begins early enough. */
	act = kv_rank_reconnected(w->rank);
	for (int turn = 0; turn < 3 && act == KV_ACT_REPLAY; turn++) {
		bool serves = from >= 0 && (uint64_t)from <= kv_rank_want_seq(w->rank), all = false;
		for (struct json_iter it = json_each(json_get(line, STR("messages"))); serves && json_next(&it);)
			all |= take_frames(w, it.val, true);
		act = kv_rank_replay_end(w->rank, all);
	}
	kv_rank_has_replay(w->rank, false);
}

/* ---- requests ---- */

struct prompt {
	struct kv_prompt kv;
	const uint32_t *ids;
	size_t n_ids;
};

static size_t read_ids(struct arena *a, const struct json_val *v, const uint32_t **ret)
{
	uint32_t *ids = arena_new(a, uint32_t, json_len(v));
	size_t n = 0;
	for (struct json_iter it = json_each(v); json_next(&it);) {
		uint64_t id = 0;
		json_u64(it.val, &id);
		ids[n++] = (uint32_t)id;
	}
	*ret = ids;
	return n;
}

static void read_mm(struct arena *a, const struct json_val *v, struct kv_prompt_extras *x)
{
	struct kv_mm_item *mm = arena_new(a, struct kv_mm_item, json_len(v));
	x->mm = mm;
	for (struct json_iter it = json_each(v); json_next(&it);) {
		uint64_t n[3] = { 0 };
		size_t i = 0;
		struct kv_mm_item *m = &mm[x->n_mm++];
		for (struct json_iter part = json_each(it.val); json_next(&part) && i < 3; i++)
			if (!json_str(part.val, &m->hash))
				json_u64(part.val, &n[i]);
		m->offset_tok = (uint32_t)n[1];
		m->len_tok = (uint32_t)n[2];
	}
}

static void key_prompt(struct replay *r, struct arena *a, const struct json_val *truth, struct prompt *p)
{
	struct kv_prompt_extras x = { .cache_salt = bench_recording_text(truth, STR("cache_salt")) };
	read_mm(a, json_get(truth, STR("mm")), &x);
	p->kv.n_tok = (uint32_t)p->n_ids;
	for (uint32_t i = 0; i < r->n_sizes; i++) {
		uint64_t *keys = arena_new(a, uint64_t, p->n_ids / r->sizes[i] + 1);
		size_t n = kv_prompt_keys(kv_seed(bench_recording_text(truth, STR("lora"))), p->ids, p->n_ids, r->sizes[i], &x, keys);
		p->kv.sets[p->kv.n_sets++] = (struct kv_keyset){ r->sizes[i], (uint32_t)n, keys };
	}
}

/* One prompt, or several in one body. */
static size_t read_prompts(struct replay *r, struct arena *a, const struct json_val *truth, struct prompt **ret)
{
	const struct json_val *ids = json_get(truth, STR("prompt_token_ids"));
	struct json_iter first = json_each(ids);
	bool several = json_next(&first) && json_is(first.val, JSON_ARRAY);
	size_t n = several ? json_len(ids) : 1, i = 0;
	struct prompt *p = arena_new(a, struct prompt, n);
	if (several)
		for (struct json_iter it = json_each(ids); json_next(&it); i++)
			p[i].n_ids = read_ids(a, it.val, &p[i].ids);
	else
		p[0].n_ids = read_ids(a, ids, &p[0].ids);
	for (i = 0; i < n; i++)
		key_prompt(r, a, truth, &p[i]);
	*ret = p;
	return n;
}

static bool is_stream(struct arena *a, const struct json_val *request)
{
	struct str text;
	const struct json_val *body = json_get(request, STR("body"));
	struct json_doc *d = NULL;
	bool stream = json_true(json_get(body, STR("stream")));
	if (json_str(body, &text) && json_parse(arena_str(a, text), SIZE_MAX, &d) == ERR_OK)
		stream = json_true(json_get(json_root(d), STR("stream")));
	json_free(d);
	return stream;
}

static bool is_there(const struct json_val *o, struct str key)
{
	const struct json_val *v = json_get(o, key);
	return v && !json_is(v, JSON_NULL);
}

/* Which prompt's number the response carries: of a stream the first, else the last, which meets what came before it. */
static uint32_t predict(struct worker *w, const struct json_val *truth, const struct prompt *p, size_t n, bool stream)
{
	struct kv_index *x = w->run->index;
	uint64_t choices = 1;
	json_u64(json_get(truth, STR("n")), &choices);
	if (is_there(truth, STR("prompt_logprobs")) || (json_true(json_get(truth, STR("echo"))) && is_there(truth, STR("logprobs"))))
		return 0; /* the worker does not look */
	size_t ahead = stream ? 0 : n - 1 + (choices > 1);
	kv_flight *f = must_calloc(ahead + 1, sizeof(*f));
	for (size_t i = 0; i < ahead; i++)
		f[i] = kv_index_flight_begin(x, w->id, &p[i].kv);
	uint32_t hit = 0;
	kv_index_hits(x, &p[stream ? 0 : n - 1].kv, &w->id, 1, &hit, NULL);
	for (size_t i = 0; i < ahead; i++)
		kv_index_flight_end(x, f[i]);
	free(f);
	return hit;
}

/* Without its salt a prompt's first block looks like this. */
static uint64_t bare_first_key(const struct prompt *p, uint32_t block_size)
{
	uint64_t key = 0;
	if (block_size && p->n_ids >= block_size)
		kv_prompt_keys(kv_seed(STR("")), p->ids, block_size, block_size, NULL, &key);
	return key;
}

static enum excuse excuse_of(struct worker *w, const struct json_val *truth, const struct prompt *p)
{
	struct str adapter = bench_recording_text(truth, STR("lora")), salt = bench_recording_text(truth, STR("cache_salt"));
	uint64_t key = bare_first_key(p, w->run->rec->block_size), unused;
	if (salt.n)
		map_put(&w->salted, key, 1);
	if (!w->any)
		return BEFORE_EVENTS;
	if (w->reset)
		return RESET_UNANNOUNCED;
	if (adapter.n && map_get(&w->reloaded, hash_str(adapter, 0), &unused))
		return ADAPTER_RELOADED;
	if (adapter.n && w->adapters_unsaid)
		return ADAPTER_UNSAID;
	if (w->salts_unsaid && map_get(&w->salted, key, &unused))
		return SALT_UNSAID;
	return NONE;
}

/* Which rank a request went to, or NULL when that is not known. */
static struct worker *target_of(struct replay *r, const struct json_val *request, const struct json_val *truth)
{
	struct str name = bench_recording_text(request, STR("worker"));
	uint64_t rank;
	if (json_u64(json_get(truth, STR("rank")), &rank))
		return get_worker(r, str_of(arena_printf(&r->rec->a, "%.*s/dp%u", STR_ARG(name), (unsigned)rank)));
	struct str first = str_of(arena_printf(&r->rec->a, "%.*s/dp0", STR_ARG(name)));
	return find_worker(r, first) ? NULL : get_worker(r, name);
}

/* What the worker reported; false if it did not. Builds before 0.24 say null for none. */
static bool reported(const struct bench_recording *rec, const struct json_val *truth, uint32_t *ret)
{
	uint64_t n = 0;
	bool old = rec->version[0] == 0 && rec->version[1] < 24;
	if (!json_u64(json_get(truth, STR("cached_tokens")), &n) && !old)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static void fly(struct replay *r, struct worker *w, struct str id, const struct prompt *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		VEC_PUSH(&r->flying, (struct flying){ hash_str(id, 0), kv_index_flight_begin(r->index, w->id, &p[i].kv) });
}

static void take_request(struct replay *r, const struct json_val *line, struct arena *a)
{
	struct str id = bench_recording_text(line, STR("id"));
	const struct json_val *truth = bench_recording_line(&r->rec->truth, id);
	struct worker *w = truth ? target_of(r, line, truth) : NULL;
	struct outcome o = { .id = id, .w = w };
	uint64_t prompt_tok = 0;
	if (!truth)
		return;
	if (!w || !reported(r->rec, truth, &o.reported)) {
		r->skipped++;
		return;
	}
	struct prompt *p;
	size_t n = read_prompts(r, a, truth, &p);
	o.excuse = excuse_of(w, truth, &p[n - 1]);
	o.predicted = predict(w, truth, p, n, is_stream(a, line));
	json_u64(json_get(truth, STR("prompt_tokens")), &prompt_tok);
	o.prompt_tok = (uint32_t)prompt_tok;
	VEC_PUSH(&r->outcomes, o);
	fly(r, w, id, p, n);
}

/* ---- what passes by: resets and adapters ---- */

static void take_adapter(struct worker *w, struct str path, struct str body)
{
	struct json_doc *d;
	if (str_find(path, STR("/load_lora_adapter")) == SIZE_MAX || json_parse(body, SIZE_MAX, &d) != ERR_OK)
		return;
	uint64_t name = hash_str(bench_recording_text(json_root(d), STR("lora_name")), 0), was;
	uint64_t from = hash_str(bench_recording_text(json_root(d), STR("lora_path")), 0);
	if (map_get(&w->paths, name, &was) && was != from)
		map_put(&w->reloaded, name, 1);
	map_put(&w->paths, name, from);
	json_free(d);
}

static bool is_reset(const struct replay *r, const struct json_val *line)
{
	const struct json_val *request = bench_recording_line(&r->rec->request, bench_recording_text(line, STR("id")));
	return str_find(bench_recording_text(request, STR("path")), STR("/reset_prefix_cache")) != SIZE_MAX;
}

static struct worker *worker_of(struct replay *r, const struct json_val *line)
{
	const struct json_val *request = bench_recording_line(&r->rec->request, bench_recording_text(line, STR("id")));
	return get_worker(r, bench_recording_text(request, STR("worker")));
}

static void take_end(struct replay *r, const struct json_val *line)
{
	uint64_t id = hash_str(bench_recording_text(line, STR("id")), 0);
	for (size_t i = 0; i < r->flying.n;)
		if (r->flying.p[i].request == id) {
			kv_index_flight_end(r->index, r->flying.p[i].f);
			r->flying.p[i] = r->flying.p[--r->flying.n];
		} else {
			i++;
		}
}

static void take_response(struct replay *r, const struct json_val *line)
{
	uint64_t status = 0;
	json_u64(json_get(line, STR("status")), &status);
	if (status == 200 && is_reset(r, line))
		worker_of(r, line)->reset = true;
}

static void take_chunk(struct replay *r, const struct json_val *line)
{
	struct str data = bench_recording_text(line, STR("data"));
	if (is_reset(r, line) && str_find(data, STR("\"success\":false")) != SIZE_MAX)
		worker_of(r, line)->reset = false;
}

static void take_line(struct replay *r, const struct json_val *line)
{
	struct str kind = bench_recording_text(line, STR("kind")), worker = bench_recording_text(line, STR("worker"));
	struct arena a;
	arena_init(&a, 0);
	if (str_eq(kind, STR("event"))) {
		take_frames(get_worker(r, worker), json_get(line, STR("frames")), false);
	} else if (str_eq(kind, STR("replay"))) {
		take_replay(get_worker(r, worker), line);
	} else if (str_eq(kind, STR("request"))) {
		take_adapter(get_worker(r, worker), bench_recording_text(line, STR("path")), bench_recording_text(line, STR("body")));
		take_request(r, line, &a);
	} else if (str_eq(kind, STR("response"))) {
		take_response(r, line);
	} else if (str_eq(kind, STR("chunk"))) {
		take_chunk(r, line);
	} else if (str_eq(kind, STR("end"))) {
		take_end(r, line);
	}
	arena_done(&a);
}

/* ---- the verdict ---- */

static enum excuse final_excuse(const struct outcome *o) { return o->excuse == NONE && o->w->tails ? PARTIAL_TAIL : o->excuse; }

static void print_details(const struct replay *r, const uint32_t *by_kind)
{
	for (size_t i = 0; i < r->outcomes.n; i++) {
		const struct outcome *o = &r->outcomes.p[i];
		if (o->predicted != o->reported)
			printf("  miss %.*s at %.*s: prompt %u, predicted %u, reported %u%s%s\n", STR_ARG(o->id), STR_ARG(o->w->name),
				o->prompt_tok, o->predicted, o->reported, final_excuse(o) ? ", excused: " : "", EXCUSES[final_excuse(o)]);
	}
	for (int k = 1; k < N_EXCUSES; k++)
		if (by_kind[k])
			printf("  excused %s: %u\n", EXCUSES[k], by_kind[k]);
	if (r->skipped)
		printf("  not predicted (rank or report not known): %u\n", r->skipped);
	if (r->bad_batches)
		printf("  batches that could not be read: %u\n", r->bad_batches);
	for (size_t i = 0; i < r->workers.n; i++) {
		struct kv_rank_stats s = kv_rank_stats(r->workers.p[i]->rank);
		if (s.batches)
			printf("  %.*s: %llu batches, %llu stored, %llu removed, %llu unplaced, %llu restarts\n",
				STR_ARG(r->workers.p[i]->name), (unsigned long long)s.batches, (unsigned long long)s.stored_blocks,
				(unsigned long long)s.removed_blocks, (unsigned long long)s.unplaced, (unsigned long long)s.restarts);
	}
}

static int print_verdict(const struct replay *r, bool verbose)
{
	uint32_t by_kind[N_EXCUSES] = { 0 }, exact = 0, missed = 0;
	for (size_t i = 0; i < r->outcomes.n; i++) {
		const struct outcome *o = &r->outcomes.p[i];
		if (o->predicted == o->reported)
			exact++;
		else if (final_excuse(o) == NONE)
			missed++;
		else
			by_kind[final_excuse(o)]++;
	}
	uint32_t n = exact + missed;
	printf("%.*s requests=%u exact=%u share=%.4f\n", STR_ARG(r->rec->name), n, exact, n ? (double)exact / n : 1.0);
	if (verbose)
		print_details(r, by_kind);
	return missed != 0;
}

static void read_started_adapters(struct replay *r)
{
	bool names = false;
	for (struct json_iter it = json_each(json_get(r->rec->run, STR("args"))); json_next(&it);) {
		struct str arg = { "", 0 }, name, path;
		json_str(it.val, &arg);
		names = str_starts(arg, STR("--")) ? str_eq(arg, STR("--lora-modules")) : names;
		for (size_t i = 0; names && i < r->workers.n; i++)
			if (str_cut(arg, '=', &name, &path))
				map_put(&r->workers.p[i]->paths, hash_str(name, 0), hash_str(path, 0));
	}
}

static void make_workers(struct replay *r)
{
	for (size_t i = 0; i < r->rec->lines.n; i++) {
		struct str name = bench_recording_text(r->rec->lines.p[i], STR("worker"));
		if (name.n)
			get_worker(r, name);
	}
	read_started_adapters(r);
}

static void free_replay(struct replay *r)
{
	for (size_t i = 0; i < r->workers.n; i++)
		free_worker(r->workers.p[i]);
	VEC_FREE(&r->workers);
	VEC_FREE(&r->flying);
	VEC_FREE(&r->outcomes);
	kv_index_free(r->index);
}

enum { NO_RECORDING = -1 };

static int check(const char *dir, bool verbose)
{
	struct bench_recording rec;
	enum err e = bench_recording_read(dir, &rec);
	if (e == ERR_NOT_FOUND) {
		fprintf(stderr, "%s: no recording, passed over\n", dir);
		return NO_RECORDING;
	}
	if (e != ERR_OK) {
		fprintf(stderr, "%s: %s\n", dir, err_text(e));
		return 2;
	}
	int rc = 2;
	struct replay r = { .rec = &rec, .engine = engine_of(rec.engine) };
	if (r.engine) {
		r.index = kv_index_new();
		add_size(&r, rec.block_size);
		make_workers(&r);
		for (size_t i = 0; i < rec.lines.n; i++)
			take_line(&r, rec.lines.p[i]);
		rc = print_verdict(&r, verbose);
		free_replay(&r);
	} else {
		fprintf(stderr, "%s: an engine named '%.*s' is not known\n", dir, STR_ARG(rec.engine));
	}
	bench_recording_free(&rec);
	return rc;
}

int bench_truth(int argc, char **argv)
{
	bool verbose = false;
	int rc = 0, seen = 0;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-v") == 0) {
			verbose = true;
		} else if (argv[i][0] == '-') {
			bool help = strcmp(argv[i], "--help") == 0;
			fprintf(help ? stdout : stderr, "usage: kvasir-bench truth [-v] RECORDING_DIR...\n");
			return help ? 0 : 2;
		}
	}
	for (int i = 1; i < argc; i++)
		if (argv[i][0] != '-') {
			int one = check(argv[i], verbose);
			rc = MAX(rc, one);
			seen += one != NO_RECORDING;
		}
	if (!seen)
		fprintf(stderr, "kvasir-bench truth: no recording among what was named\n");
	return seen ? rc : 2;
}
