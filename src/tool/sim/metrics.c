#include "sim/worker.h"

#include <stdio.h>

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
static double preemptions(const struct sim_engine_stats *s) { return (double)s->preempted; }
static double prompt(const struct sim_engine_stats *s) { return (double)s->prompt_tok; }
static double computed(const struct sim_engine_stats *s) { return (double)(s->prompt_tok - s->hit_tok); }
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
	{ "vllm:external_prefix_cache_hits_total", "counter", "External prefix cache hits.", none, "" },
	{ "vllm:num_preemptions_total", "counter", "Cumulative number of preemption from the engine.", preemptions, "" },
	{ "vllm:prompt_tokens_total", "counter", "Number of prefill tokens processed.", prompt, "" },
	{ "vllm:prompt_tokens_by_source_total", "counter", "Number of prompt tokens by source.", computed, ",source=\"local_compute\"" },
	{ "vllm:prompt_tokens_by_source_total", NULL, NULL, hits, ",source=\"local_cache_hit\"" },
	{ "vllm:prompt_tokens_by_source_total", NULL, NULL, none, ",source=\"external_kv_transfer\"" },
	{ "vllm:prompt_tokens_cached_total", "counter", "Number of cached prompt tokens (local + external).", hits, "" },
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

static enum err put_rank(const struct sim_rank *r, struct buf *out)
{
	struct sim_engine_stats s = sim_engine_stats(r->engine);
	return buf_printf(out,
		"%s{\"rank\":%u,\"begun\":%llu,\"ended\":%llu,\"aborted\":%llu,\"preempted\":%llu,\"steps\":%llu,\"running\":%u,"
		"\"waiting\":%u,"
		"\"prompt_tok\":%llu,\"query_tok\":%llu,\"hit_tok\":%llu,\"generated_tok\":%llu,\"used_blocks\":%u,\"held_blocks\":%u,"
		"\"size_blocks\":%u,\"events_seq\":%llu}",
		r->n ? "," : "", r->n, (unsigned long long)s.begun, (unsigned long long)s.ended, (unsigned long long)s.aborted,
		(unsigned long long)s.preempted, (unsigned long long)s.steps, s.running, s.waiting, (unsigned long long)s.prompt_tok,
		(unsigned long long)s.query_tok, (unsigned long long)s.hit_tok, (unsigned long long)s.generated_tok, s.used_blocks,
		s.held_blocks, s.size_blocks, (unsigned long long)r->seq);
}

static struct sim_engine_stats sum(const struct sim_worker *w)
{
	struct sim_engine_stats t = { 0 };
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++) {
		struct sim_engine_stats s = sim_engine_stats(w->ranks[r].engine);
		t.begun += s.begun, t.ended += s.ended, t.aborted += s.aborted, t.steps += s.steps;
		t.running += s.running, t.waiting += s.waiting, t.used_blocks += s.used_blocks;
		t.hit_tok += s.hit_tok, t.query_tok += s.query_tok, t.prompt_tok += s.prompt_tok;
	}
	return t;
}

enum err sim_stats_write(const struct sim_worker *w, struct buf *out)
{
	struct sim_engine_stats s = sum(w);
	const struct sim_counts *c = &w->counts;
	TRY(buf_printf(out,
		"{\"worker\":%u,\"running\":%u,\"waiting\":%u,\"begun\":%llu,\"ended\":%llu,\"aborted\":%llu,\"steps\":%llu,\"used_"
		"blocks\":%u,\"prompt_tok\":%llu,"
		"\"query_tok\":%llu,\"hit_tok\":%llu,\"http_calls\":%llu,\"inference_calls\":%llu,\"tokenize_calls\":%llu,\"render_calls\":"
		"%llu,\"errors\":%llu,"
		"\"clients_gone\":%llu,\"open_calls\":%u,\"open_connections\":%llu,\"virtual_us\":%lld,\"ranks\":[",
		w->n, s.running, s.waiting, (unsigned long long)s.begun, (unsigned long long)s.ended, (unsigned long long)s.aborted,
		(unsigned long long)s.steps, s.used_blocks, (unsigned long long)s.prompt_tok, (unsigned long long)s.query_tok,
		(unsigned long long)s.hit_tok, (unsigned long long)c->calls, (unsigned long long)c->inference,
		(unsigned long long)c->tokenize, (unsigned long long)c->render, (unsigned long long)c->bad, (unsigned long long)c->gone,
		w->open_calls - 1, (unsigned long long)http_server_stats(w->server).open_conns, (long long)sim_worker_now_us(w)));
	for (uint32_t r = 0; r < w->fleet->o->ranks; r++)
		TRY(put_rank(&w->ranks[r], out));
	return buf_add(out, STR("]}"));
}
