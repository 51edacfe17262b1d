/* /metrics: the hands' and the feed's tables, then what is read from the brain at this moment: workers, ranks, the index,
 * the process. Rows are tables, so that doc/reference/metrics.md is made from the same words. */
#include "obs/text.h"
#include "ops/ops_priv.h"

struct worker_row { const char *name; enum obs_kind kind; const char *help; double (*value)(const struct ops_seen *s); };
struct seen_rank { const struct brain_rank_view *r; const struct feed_rank_info *f; };
struct rank_row { const char *name; enum obs_kind kind; const char *help; double (*value)(const struct seen_rank *s); };

#define WORKER_VALUE(fn, expr) static double fn(const struct ops_seen *s) { return (double)(expr); }
WORKER_VALUE(w_usable, (s->v->health == BRAIN_HEALTHY || s->v->health == BRAIN_DEGRADED) && !s->v->draining)
WORKER_VALUE(w_block_size, s->v->block_size)
WORKER_VALUE(w_blocks, s->v->blocks)
WORKER_VALUE(w_requests, s->v->requests)
WORKER_VALUE(w_failures, s->v->failures)
WORKER_VALUE(w_predictions, s->v->predictions)
WORKER_VALUE(w_exact, s->v->predicted_exact)
WORKER_VALUE(w_told, s->v->told)
WORKER_VALUE(w_not_told, s->v->not_told)
WORKER_VALUE(w_share, s->v->predictions > 0 ? s->v->predicted_exact_share : 1.0)
WORKER_VALUE(w_mismatch, s->v->predictions >= 20 && s->v->predicted_exact_share < 0.9)
WORKER_VALUE(w_slow, s->v->slow_factor)
WORKER_VALUE(w_ttft, s->v->ttft_ewma_us * 1e-6)
WORKER_VALUE(w_ttft_error, s->v->ttft_error_ewma)
WORKER_VALUE(w_probes, s->f != NULL ? s->f->probes : 0)
WORKER_VALUE(w_probe_failures, s->f != NULL ? s->f->probe_failures : 0)
WORKER_VALUE(w_scrape_failures, s->f != NULL ? s->f->scrape_failures : 0)
WORKER_VALUE(w_restarts, s->f != NULL ? s->f->restarts : 0)

static const struct worker_row worker_rows[] = {
	{ "kvasir_worker_usable", OBS_GAUGE, "1 while the worker is healthy or degraded and not draining.", w_usable },
	{ "kvasir_worker_block_size_tokens", OBS_GAUGE, "Tokens per KV cache block, as events say or, before them, as the worker's metrics say.", w_block_size },
	{ "kvasir_worker_blocks", OBS_GAUGE, "Capacity of the worker's KV cache in blocks, all ranks.", w_blocks },
	{ "kvasir_worker_requests_total", OBS_COUNTER, "Requests sent to the worker.", w_requests },
	{ "kvasir_worker_failures_total", OBS_COUNTER, "Requests that failed on the worker.", w_failures },
	{ "kvasir_worker_predictions_total", OBS_COUNTER, "Requests whose reported cached tokens were compared with the prediction.", w_predictions },
	{ "kvasir_worker_predictions_exact_total", OBS_COUNTER, "Of those, the ones where prediction and report were equal.", w_exact },
	{ "kvasir_worker_prompts_told_total", OBS_COUNTER, "Prompts that ended well whose last whole block the worker's events told within half a second.", w_told },
	{ "kvasir_worker_prompts_not_told_total", OBS_COUNTER, "Those whose last whole block they did not tell: token ids or keys differ, events are late, or it was evicted.", w_not_told },
	{ "kvasir_worker_predicted_exact_ratio", OBS_GAUGE, "Share of recent requests whose cached tokens were predicted exactly (1 before the first).", w_share },
	{ "kvasir_worker_prediction_mismatch", OBS_GAUGE, "1 while predicted and reported cached tokens disagree persistently; the log names the likely cause.", w_mismatch },
	{ "kvasir_worker_slow_factor", OBS_GAUGE, "Measured time to first token over the profile's, moving.", w_slow },
	{ "kvasir_worker_ttft_seconds", OBS_GAUGE, "Time to first token, moving average.", w_ttft },
	{ "kvasir_worker_ttft_error_ratio", OBS_GAUGE, "Distance of predicted from measured time to first token over measured, moving average.", w_ttft_error },
	{ "kvasir_worker_probes_total", OBS_COUNTER, "Health probes sent.", w_probes },
	{ "kvasir_worker_probe_failures_total", OBS_COUNTER, "Health probes that failed.", w_probe_failures },
	{ "kvasir_worker_scrape_failures_total", OBS_COUNTER, "Scrapes of the worker's metrics that failed.", w_scrape_failures },
	{ "kvasir_worker_restarts_total", OBS_COUNTER, "Times the worker came back or turned out to be another process.", w_restarts },
};

#define RANK_VALUE(fn, expr) static double fn(const struct seen_rank *s) { return (double)(expr); }
RANK_VALUE(r_requests, s->r->in_flight_requests)
RANK_VALUE(r_prompt, s->r->in_flight_prompt_tok)
RANK_VALUE(r_contexts, s->r->in_flight_contexts)
RANK_VALUE(r_context_tok, s->r->context_tok)
RANK_VALUE(r_running, s->r->running)
RANK_VALUE(r_waiting, s->r->waiting)
RANK_VALUE(r_usage, s->r->kv_usage)
RANK_VALUE(r_index, s->r->index_blocks)
RANK_VALUE(r_lower, s->r->lower_blocks)
RANK_VALUE(r_seen, s->r->events_seen)
RANK_VALUE(r_uncertain, s->r->uncertain)
RANK_VALUE(r_lag, s->r->events_seen ? (double)s->r->events_lag_us * 1e-6 : 0.0)
RANK_VALUE(r_batches, s->f != NULL ? s->f->kv.batches : 0)
RANK_VALUE(r_stored, s->f != NULL ? s->f->kv.stored_blocks : 0)
RANK_VALUE(r_removed, s->f != NULL ? s->f->kv.removed_blocks : 0)
RANK_VALUE(r_clears, s->f != NULL ? s->f->kv.clears : 0)
RANK_VALUE(r_gaps, s->f != NULL ? s->f->kv.gaps : 0)
RANK_VALUE(r_restarts, s->f != NULL ? s->f->kv.restarts : 0)
RANK_VALUE(r_replays, s->f != NULL ? s->f->kv.replays : 0)
RANK_VALUE(r_duplicates, s->f != NULL ? s->f->kv.duplicates : 0)
RANK_VALUE(r_skipped, s->f != NULL ? s->f->kv.skipped : 0)
RANK_VALUE(r_odd, s->f != NULL ? s->f->kv.odd_parts : 0)
RANK_VALUE(r_unplaced, s->f != NULL ? s->f->kv.unplaced : 0)
RANK_VALUE(r_over, s->f != NULL ? s->f->kv.over_capacity : 0)
RANK_VALUE(r_queue, s->f != NULL ? s->f->queue_bytes : 0)

static const struct rank_row rank_rows[] = {
	{ "kvasir_worker_in_flight_requests", OBS_GAUGE, "Requests of ours in flight on the rank.", r_requests },
	{ "kvasir_worker_in_flight_prompt_tokens", OBS_GAUGE, "Uncached prompt tokens of ours that wait for their first token.", r_prompt },
	{ "kvasir_worker_in_flight_contexts", OBS_GAUGE, "Contexts of ours that are decoding.", r_contexts },
	{ "kvasir_worker_context_tokens", OBS_GAUGE, "Tokens in those contexts.", r_context_tok },
	{ "kvasir_worker_running_requests", OBS_GAUGE, "Running requests, as the worker reports.", r_running },
	{ "kvasir_worker_waiting_requests", OBS_GAUGE, "Waiting requests, as the worker reports.", r_waiting },
	{ "kvasir_worker_kv_usage_ratio", OBS_GAUGE, "KV cache in use, as the worker reports.", r_usage },
	{ "kvasir_worker_index_blocks", OBS_GAUGE, "Blocks the index holds for the rank.", r_index },
	{ "kvasir_worker_index_lower_blocks", OBS_GAUGE, "Blocks the index holds for the rank on tiers below the GPU.", r_lower },
	{ "kvasir_worker_events_followed", OBS_GAUGE, "1 while the rank's KV events are followed; 0: its cache is guessed from our own requests.", r_seen },
	{ "kvasir_worker_events_uncertain", OBS_GAUGE, "1 while events may have been missed and could not be asked for again.", r_uncertain },
	{ "kvasir_worker_events_lag_seconds", OBS_GAUGE, "Age of the newest applied event batch when it was applied (clocks of two machines).", r_lag },
	{ "kvasir_worker_event_batches_total", OBS_COUNTER, "KV event batches applied.", r_batches },
	{ "kvasir_worker_event_stored_blocks_total", OBS_COUNTER, "Blocks announced as stored.", r_stored },
	{ "kvasir_worker_event_removed_blocks_total", OBS_COUNTER, "Blocks announced as removed.", r_removed },
	{ "kvasir_worker_event_clears_total", OBS_COUNTER, "Clears of the whole cache.", r_clears },
	{ "kvasir_worker_event_gaps_total", OBS_COUNTER, "Gaps in the sequence of batches.", r_gaps },
	{ "kvasir_worker_event_restarts_total", OBS_COUNTER, "Sequences that began anew: the worker's cache was lost.", r_restarts },
	{ "kvasir_worker_event_replays_total", OBS_COUNTER, "Replays that ended.", r_replays },
	{ "kvasir_worker_event_duplicates_total", OBS_COUNTER, "Batches that had been applied before.", r_duplicates },
	{ "kvasir_worker_event_skipped_total", OBS_COUNTER, "Events of unknown kinds or unusable ones, skipped.", r_skipped },
	{ "kvasir_worker_event_odd_parts_total", OBS_COUNTER, "Parts of events that are not understood and were passed over: unknown fields, strange extra keys.", r_odd },
	{ "kvasir_worker_event_unplaced_total", OBS_COUNTER, "Stored blocks that could not be tied to tokens.", r_unplaced },
	{ "kvasir_worker_event_over_capacity_total", OBS_COUNTER, "Blocks announced beyond the rank's capacity.", r_over },
	{ "kvasir_worker_event_queue_bytes", OBS_GAUGE, "Event bytes that wait to be decoded.", r_queue },
};

/* A table of so many rows for each of the workers seen, row by row: p->at counts cells. */
static bool cells(struct ops_page *p, size_t n_rows, enum err (*head)(struct buf *b, size_t row), enum err (*cell)(struct buf *b, size_t row, const struct ops_seen *s))
{
	size_t n = p->seen.n, end = MIN(p->at + OPS_PIECE_LINES, n * n_rows);
	for (; p->at < end && p->e == ERR_OK; p->at++) {
		size_t row = p->at / n, i = p->at % n;
		p->e = i == 0 ? head(&p->out, row) : ERR_OK;
		p->e = p->e == ERR_OK ? cell(&p->out, row, &p->seen.p[i]) : p->e;
	}
	return p->at < n * n_rows;
}

static enum err worker_head(struct buf *b, size_t row) { return obs_text_family(b, worker_rows[row].name, worker_rows[row].kind, worker_rows[row].help); }

static enum err worker_cell(struct buf *b, size_t row, const struct ops_seen *s)
{
	static const char *const labels[] = { "worker", "pool" };
	return obs_text_sample(b, worker_rows[row].name, labels, (struct str[]){ s->v->url, s->v->pool }, 2, worker_rows[row].value(s));
}

static bool put_workers(struct ops_page *p) { return cells(p, ARRAY_LEN(worker_rows), worker_head, worker_cell); }

static enum err rank_head(struct buf *b, size_t row) { return obs_text_family(b, rank_rows[row].name, rank_rows[row].kind, rank_rows[row].help); }

static enum err rank_cell(struct buf *b, size_t row, const struct ops_seen *s)
{
	static const char *const labels[] = { "worker", "pool", "rank" };
	for (uint32_t i = 0; i < s->v->n_ranks; i++) {
		char room[STR_U64_MAX];
		const struct brain_rank_view *r = &s->v->ranks[i];
		struct seen_rank sr = { r, s->f != NULL && r->rank < s->f->n_ranks ? &s->f->ranks[r->rank] : NULL };
		TRY(obs_text_sample(b, rank_rows[row].name, labels, (struct str[]){ s->v->url, s->v->pool, str_of_u64(r->rank, room) }, 3, rank_rows[row].value(&sr)));
	}
	return ERR_OK;
}

static bool put_ranks(struct ops_page *p) { return cells(p, ARRAY_LEN(rank_rows), rank_head, rank_cell); }

/* ---- one state of five */

#define STATE_NAME "kvasir_worker_state"
#define STATE_HELP "1 for the state the worker is in, 0 for the others."

static enum err state_head(struct buf *b, size_t row)
{
	(void)row;
	return obs_text_family(b, STATE_NAME, OBS_GAUGE, STATE_HELP);
}

static enum err state_cell(struct buf *b, size_t row, const struct ops_seen *s)
{
	static const char *const labels[] = { "worker", "pool", "state" };
	const struct brain_worker_view *v = s->v;
	enum brain_health now = v->draining ? BRAIN_DRAINING : v->health;
	(void)row;
	for (int h = BRAIN_UNKNOWN; h <= BRAIN_DOWN; h++)
		TRY(obs_text_sample(b, STATE_NAME, labels, (struct str[]){ v->url, v->pool, str_of(brain_health_name((enum brain_health)h)) }, 3, now == (enum brain_health)h));
	return ERR_OK;
}

static bool put_states(struct ops_page *p) { return cells(p, 1, state_head, state_cell); }

/* ---- process and index: one sample each */

struct single { const char *name; enum obs_kind kind; const char *help; double (*value)(const struct ops *o); };
#define SINGLE(fn, expr) static double fn(const struct ops *o) { return (double)(expr); }
SINGLE(s_uptime, (double)mono_diff_us(io_now(o->loop), o->started) * 1e-6)
SINGLE(s_generation, conf_store_status(o->store).generation)
SINGLE(s_ok, conf_store_status(o->store).faults == NULL)
SINGLE(s_reloads, conf_store_status(o->store).reloads)
SINGLE(s_failed, conf_store_status(o->store).failed_reloads)
SINGLE(s_ready, feed_view_now(o->feed)->any_usable && !o->draining)
SINGLE(s_entries, brain_index_stats(feed_brain(o->feed)).entries)
SINGLE(s_holdings, brain_index_stats(feed_brain(o->feed)).holdings)
SINGLE(s_flights, brain_index_stats(feed_brain(o->feed)).flights)
SINGLE(s_owners, brain_index_stats(feed_brain(o->feed)).owners)
SINGLE(s_bytes, brain_index_stats(feed_brain(o->feed)).bytes)
SINGLE(s_body, o->shared != NULL ? gate_shared_body_bytes(o->shared) : 0)
#define TEXT(o) (o->shared != NULL ? gate_shared_text(o->shared) : (struct tok_memo_stats){ 0 })
SINGLE(s_text_known, TEXT(o).known_bytes)
SINGLE(s_text_new, TEXT(o).new_bytes)
SINGLE(s_text_bytes, TEXT(o).table.bytes)
SINGLE(s_text_evicted, TEXT(o).table.evicted)
SINGLE(s_turns, o->stall.turns)
SINGLE(s_busy, (double)o->stall.busy_us * 1e-6)
SINGLE(s_stalls, o->stall.over_1ms)
SINGLE(s_worst, (double)o->stall.worst_us * 1e-6)

static const struct single singles[] = {
	{ "kvasir_ready", OBS_GAUGE, "1 while a worker is usable and the process is not shutting down.", s_ready },
	{ "kvasir_uptime_seconds", OBS_GAUGE, "Time since the start.", s_uptime },
	{ "kvasir_config_generation", OBS_GAUGE, "Number of the running configuration.", s_generation },
	{ "kvasir_config_ok", OBS_GAUGE, "0 when the files on disk were refused and an older configuration runs on.", s_ok },
	{ "kvasir_config_reloads_total", OBS_COUNTER, "Configurations taken over since the start.", s_reloads },
	{ "kvasir_config_refused_total", OBS_COUNTER, "Reloads refused because of faults.", s_failed },
	{ "kvasir_index_entries", OBS_GAUGE, "Block keys in the index.", s_entries },
	{ "kvasir_index_holdings", OBS_GAUGE, "Pairs of block and rank in the index.", s_holdings },
	{ "kvasir_index_flights", OBS_GAUGE, "Prompts in flight that count as held.", s_flights },
	{ "kvasir_index_owners", OBS_GAUGE, "Prefixes in the owner memory.", s_owners },
	{ "kvasir_index_bytes", OBS_GAUGE, "Memory of the index.", s_bytes },
	{ "kvasir_body_memory_bytes", OBS_GAUGE, "Request bodies held now.", s_body },
	{ "kvasir_tokens_text_known_bytes_total", OBS_COUNTER, "Text of prompts tokenised here whose token ids were known: by this over the sum with the new text is the hit rate.", s_text_known },
	{ "kvasir_tokens_text_new_bytes_total", OBS_COUNTER, "Text of prompts tokenised here whose token ids were not known.", s_text_new },
	{ "kvasir_tokens_text_memory_bytes", OBS_GAUGE, "Memory of the text that is known: parsed elements of bodies, and stretches of prompts with their token ids.", s_text_bytes },
	{ "kvasir_tokens_text_evicted_total", OBS_COUNTER, "Pieces of such text that were forgotten for want of memory.", s_text_evicted },
	{ "kvasir_loop_turns_total", OBS_COUNTER, "Turns of the hub's event loop.", s_turns },
	{ "kvasir_loop_busy_seconds_total", OBS_COUNTER, "Time the hub's event loop was busy.", s_busy },
	{ "kvasir_loop_stalls_total", OBS_COUNTER, "Turns of the hub's event loop that took over 1 ms.", s_stalls },
	{ "kvasir_loop_worst_turn_seconds", OBS_GAUGE, "Longest turn of the hub's event loop since the last scrape.", s_worst },
};

static enum err put_singles(struct buf *b, const struct ops *o)
{
	for (size_t i = 0; i < ARRAY_LEN(singles); i++) {
		TRY(obs_text_family(b, singles[i].name, singles[i].kind, singles[i].help));
		TRY(obs_text_sample(b, singles[i].name, NULL, NULL, 0, singles[i].value(o)));
	}
	return ERR_OK;
}

#define BUILD_NAME "kvasir_build_info"
#define BUILD_HELP "Always 1; the version is in its label."

static enum err put_build(struct buf *b)
{
	TRY(obs_text_family(b, BUILD_NAME, OBS_GAUGE, BUILD_HELP));
	return obs_text_sample(b, BUILD_NAME, (const char *[]){ "version" }, (struct str[]){ STR(KVASIR_VERSION) }, 1, 1);
}

static bool put_own(struct ops_page *p)
{
	struct ops *o = p->ops;
	struct io_stall stall = io_loop_stall(o->loop);
	o->stall = (struct io_stall){ o->stall.turns + stall.turns, o->stall.busy_us + stall.busy_us, o->stall.over_1ms + stall.over_1ms, stall.worst_us };
	p->e = put_build(&p->out);
	p->e = p->e == ERR_OK ? put_singles(&p->out, o) : p->e;
	return false;
}

/* ---- what the hands and the feed count: a metric at a time */

static bool put_hands(struct ops_page *p)
{
	VEC(const struct obs_set *) sets = { 0 };
	for (size_t i = 0; i < p->ops->gates.n; i++)
		VEC_PUSH(&sets, gate_metrics(p->ops->gates.p[i]));
	uint32_t n = sets.n > 0 ? obs_rows(sets.p[0]) : 0;
	if (p->at < n)
		p->e = obs_write(&p->out, sets.p, sets.n, (uint32_t)p->at++);
	VEC_FREE(&sets);
	return p->at < n;
}

static bool put_feed(struct ops_page *p)
{
	const struct obs_set *set = feed_metrics(p->ops->feed);
	p->e = obs_write(&p->out, &set, 1, (uint32_t)p->at++);
	return p->at < obs_rows(set);
}

ops_part *const ops_metrics[] = { put_own, put_hands, put_feed, ops_gather, put_states, put_workers, put_ranks, NULL };

/* ---- for doc/reference */

enum { N_ROWS = 2 + ARRAY_LEN(singles) + ARRAY_LEN(worker_rows) + ARRAY_LEN(rank_rows) };

size_t ops_metric_rows(const struct ops_metric_row **ret_rows)
{
	static struct ops_metric_row rows[N_ROWS];
	size_t n = 0;
	rows[n++] = (struct ops_metric_row){ BUILD_NAME, "gauge", "version", BUILD_HELP };
	for (size_t i = 0; i < ARRAY_LEN(singles); i++)
		rows[n++] = (struct ops_metric_row){ singles[i].name, obs_kind_name(singles[i].kind), "", singles[i].help };
	rows[n++] = (struct ops_metric_row){ STATE_NAME, "gauge", "worker pool state", STATE_HELP };
	for (size_t i = 0; i < ARRAY_LEN(worker_rows); i++)
		rows[n++] = (struct ops_metric_row){ worker_rows[i].name, obs_kind_name(worker_rows[i].kind), "worker pool", worker_rows[i].help };
	for (size_t i = 0; i < ARRAY_LEN(rank_rows); i++)
		rows[n++] = (struct ops_metric_row){ rank_rows[i].name, obs_kind_name(rank_rows[i].kind), "worker pool rank", rank_rows[i].help };
	*ret_rows = rows;
	return n;
}
