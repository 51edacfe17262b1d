#include "sim/worker.h"

#include "wire/json.h"


struct line {
	const char *name, *type, *help;
	double (*value)(const struct sim_engine_stats *s);
	const char *label;
};

static double running(const struct sim_engine_stats *s) { return s->running; }
static double waiting(const struct sim_engine_stats *s) { return s->waiting; }
static double none(const struct sim_engine_stats *s)
{
	(void)s;
	return 0;
}
static double one(const struct sim_engine_stats *s)
{
	(void)s;
	return 1;
}
static double usage(const struct sim_engine_stats *s) { return (double)s->used_blocks / s->size_blocks; }
static double queries(const struct sim_engine_stats *s) { return (double)s->query_tok; }
static double hits(const struct sim_engine_stats *s) { return (double)s->hit_tok; }
static double loads(const struct sim_engine_stats *s) { return (double)s->load_tok; }
static double found(const struct sim_engine_stats *s) { return (double)(s->hit_tok + s->load_tok); }
static double preemptions(const struct sim_engine_stats *s) { return (double)s->preempted; }
static double prompt(const struct sim_engine_stats *s) { return (double)s->prompt_tok; }
static double computed(const struct sim_engine_stats *s) { return (double)(s->prompt_tok - s->hit_tok - s->load_tok); }
static double generated(const struct sim_engine_stats *s) { return (double)s->generated_tok; }
static double ended(const struct sim_engine_stats *s) { return (double)s->ended; }

/* A row with help opens a family; rows of one family stand together. */
static const struct line lines[] = {
	{ "vllm:num_requests_running", "gauge", "Number of requests in model execution batches.", running, "" },
	{ "vllm:num_requests_waiting", "gauge", "Number of requests waiting to be processed.", waiting, "" },
	{ "vllm:num_requests_waiting_by_reason", "gauge", "Number of waiting requests by reason.", waiting, ",reason=\"capacity\"" },
	{ "vllm:num_requests_waiting_by_reason", NULL, NULL, none, ",reason=\"deferred\"" },
	{ "vllm:engine_sleep_state", "gauge", "Engine sleep state.", one, ",sleep_state=\"awake\"" },
	{ "vllm:engine_sleep_state", NULL, NULL, none, ",sleep_state=\"weights_offloaded\"" },
	{ "vllm:engine_sleep_state", NULL, NULL, none, ",sleep_state=\"discard_all\"" },
	{ "vllm:kv_cache_usage_perc", "gauge", "KV-cache usage. 1 means 100 percent usage.", usage, "" },
	{ "vllm:prefix_cache_queries_total", "counter", "Prefix cache queries, in terms of number of queried tokens.", queries, "" },
	{ "vllm:prefix_cache_hits_total", "counter", "Prefix cache hits, in terms of number of cached tokens.", hits, "" },
	{ "vllm:external_prefix_cache_queries_total", "counter", "External prefix cache queries.", none, "" },
	{ "vllm:external_prefix_cache_hits_total", "counter", "External prefix cache hits.", loads, "" },
	{ "vllm:num_preemptions_total", "counter", "Cumulative number of preemption from the engine.", preemptions, "" },
	{ "vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", prompt, "" },
	{ "vllm:prompt_tokens_by_source_total", "counter", "Number of prompt tokens by source.", computed, ",source=\"local_compute\"" },
	{ "vllm:prompt_tokens_by_source_total", NULL, NULL, hits, ",source=\"local_cache_hit\"" },
	{ "vllm:prompt_tokens_by_source_total", NULL, NULL, loads, ",source=\"external_kv_transfer\"" },
	{ "vllm:prompt_tokens_cached_total", "counter", "Number of cached prompt tokens (local + external).", found, "" },
	{ "vllm:generation_tokens_total", "counter", "Number of generation tokens processed.", generated, "" },
	{ "vllm:request_success_total", "counter", "Count of successfully processed requests.", ended, ",finished_reason=\"length\"" },
	{ "vllm:request_success_total", NULL, NULL, none, ",finished_reason=\"abort\"" },
};

static enum err put_line(const struct sim_worker *w, struct buf *out, const struct line *l)
{
	if (l->type)
		TRY(buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", l->name, l->help, l->name, l->type));
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++) {
		struct sim_engine_stats s = sim_engine_stats(w->ranks[r].engine);
		TRY(buf_printf(out, "%s{engine=\"%u\",model_name=\"%.*s\"%s} %.17g\n", l->name, r, STR_ARG(w->serving.model), l->label,
			l->value(&s)));
	}
	return ERR_OK;
}

/* With several ranks num_gpu_blocks is the sum over them, as vLLM says it. */
static enum err put_config(const struct sim_worker *w, struct buf *out)
{
	const struct sim_options *o = w->fleet->o;
	TRY(buf_add(
		out, STR("# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n# TYPE vllm:cache_config_info gauge\n")));
	for (uint32_t r = 0; r < o->ranks; r++) {
		const struct sim_engine *e = w->ranks[r].engine;
		uint32_t b = sim_engine_block_tok(e), n = sim_engine_blocks(e);
		TRY(buf_printf(out,
			"vllm:cache_config_info{_block_size_resolved=\"True\",block_size=\"%u\",cache_dtype=\"auto\",enable_prefix_caching="
			"\"%s\",engine=\"%u\","
			"gpu_memory_utilization=\"0.92\",hash_block_size=\"None\",kv_cache_size_tokens=\"%llu\",mamba_block_size=\"None\","
			"num_cpu_blocks=\"None\","
			"num_gpu_blocks=\"%u\",num_gpu_blocks_override=\"None\",prefix_caching_hash_algo=\"sha256\",prefix_match_unit="
			"\"None\",sliding_window=\"None\"} 1.0\n",
			b, o->caching_off ? "False" : "True", r, (unsigned long long)b * n, n * o->ranks));
	}
	return ERR_OK;
}

enum err sim_metrics_write(const struct sim_worker *w, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		TRY(put_line(w, out, &lines[i]));
	return put_config(w, out);
}

/* ---- /sim/stats --------------------------------------------------------------------------------------------- */

struct number {
	const char *name;
	uint64_t value;
};

static void put_numbers(struct json_writer *j, const struct number *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_put_key(j, str_of(v[i].name));
		json_put_u64(j, v[i].value);
	}
}

static void put_engine(struct json_writer *j, const struct sim_engine_stats *s)
{
	const struct number v[] = { { "running", s->running }, { "waiting", s->waiting }, { "begun", s->begun }, { "ended", s->ended },
		{ "aborted", s->aborted }, { "preempted", s->preempted }, { "steps", s->steps }, { "prompt_tok", s->prompt_tok },
		{ "query_tok", s->query_tok }, { "hit_tok", s->hit_tok }, { "load_tok", s->load_tok }, { "cpu_blocks", s->cpu_blocks }, { "generated_tok", s->generated_tok },
		{ "used_blocks", s->used_blocks }, { "held_blocks", s->held_blocks }, { "size_blocks", s->size_blocks } };
	put_numbers(j, v, ARRAY_LEN(v));
}

static void put_calls(struct json_writer *j, const struct sim_worker *w)
{
	const struct sim_counts *c = &w->counts;
	const struct number v[] = { { "http_calls", c->calls }, { "received_calls", c->received }, { "repeated_ids", c->repeated },
		{ "inference_calls", c->inference }, { "tokenize_calls", c->tokenize }, { "render_calls", c->render }, { "errors", c->bad },
		{ "clients_gone", c->gone }, { "open_calls", w->open_calls - 1u },
		{ "open_connections", http_server_stats(w->server).open_conns } };
	put_numbers(j, v, ARRAY_LEN(v));
}

static struct sim_engine_stats sum(const struct sim_worker *w)
{
	struct sim_engine_stats t = { 0 };
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++) {
		struct sim_engine_stats s = sim_engine_stats(w->ranks[r].engine);
		t.begun += s.begun, t.ended += s.ended, t.aborted += s.aborted, t.preempted += s.preempted, t.steps += s.steps;
		t.running += s.running, t.waiting += s.waiting, t.prompt_tok += s.prompt_tok, t.query_tok += s.query_tok;
		t.load_tok += s.load_tok, t.cpu_blocks += s.cpu_blocks, t.hit_tok += s.hit_tok, t.generated_tok += s.generated_tok, t.used_blocks += s.used_blocks;
		t.held_blocks += s.held_blocks, t.size_blocks += s.size_blocks;
	}
	return t;
}

/* The sums over the ranks, the calls, then each rank. The call that asks is not counted as open. */
enum err sim_stats_write(const struct sim_worker *w, struct buf *out)
{
	struct json_writer j = json_writer(out);
	struct sim_engine_stats all = sum(w);
	json_put_open(&j, '{');
	json_put_key(&j, STR("worker"));
	json_put_u64(&j, w->n);
	put_engine(&j, &all);
	put_calls(&j, w);
	json_put_key(&j, STR("ranks"));
	json_put_open(&j, '[');
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++) {
		struct sim_engine_stats s = sim_engine_stats(w->ranks[r].engine);
		json_put_open(&j, '{');
		put_engine(&j, &s);
		json_put_key(&j, STR("events_seq"));
		json_put_u64(&j, w->ranks[r].seq);
		json_put_close(&j, '}');
	}
	json_put_close(&j, ']');
	json_put_close(&j, '}');
	return json_writer_done(&j);
}
