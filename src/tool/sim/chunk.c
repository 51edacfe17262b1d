#include "sim/chunk.h"

static enum err put_ids(struct buf *out, const uint32_t *tok, size_t n, bool wanted)
{
	if (!wanted)
		return buf_add(out, STR("null"));
	for (size_t i = 0; i < n; i++)
		TRY(buf_printf(out, "%c%u", i ? ',' : '[', tok[i]));
	return buf_add(out, n ? STR("]") : STR("[]"));
}

/* ---- usage ---------------------------------------------------------------------------------------------------- */

static enum err put_plain_usage(struct buf *out, const struct sim_usage *u)
{
	return buf_printf(out, "\"prompt_tokens\":%llu,\"total_tokens\":%llu,\"completion_tokens\":%llu", (unsigned long long)u->prompt_tok,
		(unsigned long long)(u->prompt_tok + u->new_tok), (unsigned long long)u->new_tok);
}

/* A stream leaves null members out, a whole answer shows them. */
static enum err put_usage(struct buf *out, const struct sim_answer *a, const struct sim_usage *u, bool stream)
{
	unsigned long long cached = u->cached_tok;
	TRY(buf_add(out, STR("\"usage\":{")));
	TRY(put_plain_usage(out, u));
	if (u->old) {
		if (cached)
			return buf_printf(out, ",\"prompt_tokens_details\":{\"cached_tokens\":%llu}}", cached);
		return buf_add(out, stream ? STR("}") : STR(",\"prompt_tokens_details\":null}"));
	}
	TRY(buf_printf(out, ",\"prompt_tokens_details\":{\"cached_tokens\":%llu", cached));
	if (a->api == SIM_CHAT)
		TRY(buf_printf(out, ",\"created_cache_tokens\":%llu", (unsigned long long)u->created_tok));
	else if (!stream)
		TRY(buf_add(out, STR(",\"created_cache_tokens\":null")));
	return buf_add(out, stream ? STR("}}") : STR(",\"multimodal_tokens\":null},\"completion_tokens_details\":null}"));
}

static enum err put_messages_usage(struct buf *out, const struct sim_usage *u)
{
	unsigned long long in = u->prompt_tok - u->cached_tok - (u->old ? 0 : u->created_tok);
	return buf_printf(out,
		"\"usage\":{\"input_tokens\":%llu,\"output_tokens\":%llu,\"cache_creation_input_tokens\":%llu,\"cache_read_input_tokens\":%"
		"llu}",
		in, (unsigned long long)u->new_tok, (unsigned long long)(u->old ? 0 : u->created_tok), (unsigned long long)u->cached_tok);
}

/* ---- chat and completions, piece by piece ---------------------------------------------------------------------- */

enum err sim_chunk_open(struct sim_answer *a)
{
	buf_init(&a->head, 8 << 10);
	TRY(buf_printf(&a->head, "data: {\"id\":\"%.*s\",\"object\":\"%s\",\"created\":%lld,\"model\":", STR_ARG(a->id),
		a->api == SIM_CHAT ? "chat.completion.chunk" : "text_completion", (long long)a->created_s));
	TRY(json_quote(&a->head, a->model));
	return buf_add(&a->head, STR(",\"choices\":["));
}

void sim_chunk_close(struct sim_answer *a) { buf_done(&a->head); }

static enum err open_event(struct buf *out, const struct sim_answer *a) { return buf_add(out, buf_str(&a->head)); }

static enum err put_running_usage(struct buf *out, const struct sim_answer *a, const struct sim_usage *u)
{
	if (!a->continuous_usage)
		return ERR_OK;
	TRY(buf_add(out, STR(",\"usage\":{")));
	TRY(put_plain_usage(out, u));
	return buf_add(out, u->old ? STR("}") : STR(",\"completion_tokens_details\":null}"));
}

/* Behind the choices: running usage, the fingerprint where no usage chunk will carry it, the end of the event. */
static enum err close_event(struct buf *out, const struct sim_answer *a, const struct sim_piece *p)
{
	TRY(put_running_usage(out, a, &p->usage));
	if (p->last && !a->include_usage)
		TRY(buf_printf(out, ",\"system_fingerprint\":\"%s\"", a->fingerprint));
	return buf_add(out, STR("}\n\n"));
}

static enum err put_finish(struct buf *out, const char *finish)
{
	return finish ? buf_printf(out, "\"finish_reason\":\"%s\",\"stop_reason\":null", finish)
		      : buf_add(out, STR("\"finish_reason\":null"));
}

static enum err chat_role(struct buf *out, const struct sim_answer *a, const struct sim_piece *p)
{
	const struct sim_prompt *prompt = &a->call->prompts.p[0];
	struct sim_usage before = { .prompt_tok = p->usage.prompt_tok, .old = p->usage.old };
	TRY(open_event(out, a));
	TRY(buf_printf(out, "{\"index\":%u,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}]",
		p->choice));
	TRY(put_running_usage(out, a, &before));
	TRY(buf_add(out, STR(",\"prompt_token_ids\":")));
	TRY(put_ids(out, prompt->tok.p, prompt->tok.n, a->return_ids));
	return buf_add(out, STR(",\"prompt_text\":null}\n\n"));
}

static enum err chat_piece(struct buf *out, const struct sim_answer *a, const struct sim_piece *p)
{
	if (p->nth == 0)
		TRY(chat_role(out, a, p));
	TRY(open_event(out, a));
	TRY(buf_printf(out, "{\"index\":%u,\"delta\":{\"content\":", p->choice));
	TRY(json_quote(out, p->text));
	TRY(buf_add(out, STR("},\"logprobs\":null,")));
	TRY(put_finish(out, p->finish));
	TRY(buf_add(out, STR(",\"token_ids\":")));
	TRY(put_ids(out, &p->tok, 1, a->return_ids));
	TRY(buf_add(out, STR("}]")));
	return close_event(out, a, p);
}

static enum err completion_piece(struct buf *out, const struct sim_answer *a, const struct sim_piece *p)
{
	TRY(open_event(out, a));
	TRY(buf_printf(out, "{\"index\":%u,\"text\":", p->choice));
	TRY(json_quote(out, p->text));
	TRY(buf_add(out, STR(",\"logprobs\":null,")));
	TRY(p->finish ? put_finish(out, p->finish) : buf_add(out, STR("\"finish_reason\":null,\"stop_reason\":null")));
	TRY(buf_add(out, STR(",\"prompt_token_ids\":null,\"token_ids\":")));
	TRY(put_ids(out, &p->tok, 1, a->return_ids));
	TRY(buf_add(out, STR("}]")));
	return close_event(out, a, p);
}

static enum err generate_piece(struct buf *out, const struct sim_answer *a, const struct sim_piece *p)
{
	TRY(buf_printf(out, "data: {\"request_id\":\"%.*s\",\"usage\":null,\"output_mode\":\"tokens\",\"choices\":[{\"index\":%u,",
		STR_ARG(a->id), p->choice));
	TRY(p->finish ? buf_printf(out, "\"finish_reason\":\"%s\"", p->finish) : buf_add(out, STR("\"finish_reason\":null")));
	return buf_printf(out,
		",\"stop_reason\":null,\"token_ids\":[%u],\"routed_experts\":null,\"sampling_mask\":null,\"weight_versions\":null,"
		"\"logprobs\":null}]}\n\n",
		p->tok);
}

/* ---- messages -------------------------------------------------------------------------------------------------- */

static enum err messages_start(struct buf *out, const struct sim_answer *a, const struct sim_usage *u)
{
	TRY(buf_printf(out,
		"event: message_start\ndata: "
		"{\"type\":\"message_start\",\"message\":{\"id\":\"%.*s\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],"
		"\"model\":",
		STR_ARG(a->id)));
	TRY(json_quote(out, a->model));
	TRY(buf_printf(out, ",\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":%llu,\"output_tokens\":0}}}\n\n",
		(unsigned long long)u->prompt_tok));
	return buf_add(out, STR("event: content_block_start\ndata: "
				"{\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"},\"index\":0}\n\n"));
}

static enum err messages_piece(struct buf *out, const struct sim_answer *a, const struct sim_piece *p)
{
	if (p->nth == 0)
		TRY(messages_start(out, a, &p->usage));
	TRY(buf_add(out,
		STR("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":")));
	TRY(json_quote(out, p->text));
	return buf_add(out, STR("},\"index\":0}\n\n"));
}

static const char *messages_stop(const char *finish) { return finish[0] == 'l' ? "max_tokens" : "end_turn"; }

static enum err messages_end(struct buf *out, const struct sim_usage *u, const char *finish)
{
	TRY(buf_add(out, STR("event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n")));
	TRY(buf_printf(out,
		"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\",\"stop_sequence\":null},",
		messages_stop(finish)));
	TRY(put_messages_usage(out, u));
	return buf_add(out, STR("}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
}

/* ---- responses ------------------------------------------------------------------------------------------------- */

static enum err response_usage(struct buf *out, const struct sim_usage *u)
{
	if (!u)
		return buf_add(out, STR("\"usage\":null"));
	return buf_printf(out,
		"\"usage\":{\"input_tokens\":%llu,\"input_tokens_details\":{\"cached_tokens\":%llu,\"cache_write_tokens\":%llu,\"input_"
		"tokens_per_turn\":[],"
		"\"cached_tokens_per_turn\":[]},\"output_tokens\":%llu,\"output_tokens_details\":{\"reasoning_tokens\":0,\"tool_output_"
		"tokens\":0,"
		"\"output_tokens_per_turn\":[],\"tool_output_tokens_per_turn\":[]},\"total_tokens\":%llu}",
		(unsigned long long)u->prompt_tok, (unsigned long long)u->cached_tok, (unsigned long long)u->created_tok,
		(unsigned long long)u->new_tok, (unsigned long long)(u->prompt_tok + u->new_tok));
}

/* u NULL: still in progress. */
static enum err response_object(struct buf *out, const struct sim_answer *a, const struct sim_usage *u, struct str text, const char *finish)
{
	bool cut = u && finish[0] == 'l';
	TRY(buf_printf(out,
		"{\"id\":\"%.*s\",\"created_at\":%lld,\"incomplete_details\":%s,\"instructions\":null,\"metadata\":null,\"model\":",
		STR_ARG(a->id), (long long)a->created_s, cut ? "{\"reason\":\"max_output_tokens\"}" : "null"));
	TRY(json_quote(out, a->model));
	TRY(buf_add(out, STR(",\"object\":\"response\",\"output\":[")));
	if (u) {
		TRY(buf_printf(out, "{\"id\":\"msg_%.*s\",\"content\":[{\"annotations\":[],\"text\":", STR_ARG(str_skip(a->id, 5))));
		TRY(json_quote(out, text));
		TRY(buf_add(out, STR(",\"type\":\"output_text\",\"logprobs\":null}],\"role\":\"assistant\",\"status\":\"completed\","
				     "\"type\":\"message\",\"phase\":null}")));
	}
	TRY(buf_add(out, STR("],\"parallel_tool_calls\":true,\"temperature\":1.0,\"tool_choice\":\"none\",\"tools\":[],\"top_p\":1.0,"
			     "\"background\":false,")));
	TRY(buf_printf(out, "\"max_output_tokens\":%u,\"max_tool_calls\":null,\"previous_response_id\":", a->call->max_new));
	TRY(a->call->previous.n ? json_quote(out, a->call->previous) : buf_add(out, STR("null")));
	TRY(buf_printf(out,
		",\"prompt\":null,\"reasoning\":null,\"service_tier\":\"auto\",\"status\":\"%s\",\"text\":null,\"top_logprobs\":null,"
		"\"truncation\":\"disabled\",",
		!u    ? "in_progress"
		: cut ? "incomplete"
		      : "completed"));
	TRY(response_usage(out, u));
	return buf_add(out, STR(",\"user\":null,\"presence_penalty\":0.0,\"frequency_penalty\":0.0,\"kv_transfer_params\":null,\"ec_"
				"transfer_params\":null,"
				"\"input_messages\":null,\"output_messages\":null}"));
}

static enum err response_state(struct buf *out, const struct sim_answer *a, const char *name, unsigned seq)
{
	TRY(buf_printf(out, "event: response.%s\ndata: {\"response\":", name));
	TRY(response_object(out, a, NULL, STR(""), ""));
	return buf_printf(out, ",\"sequence_number\":%u,\"type\":\"response.%s\"}\n\n", seq, name);
}

static enum err response_part(struct buf *out, struct str text, bool done)
{
	TRY(buf_add(out, STR("{\"annotations\":[],\"text\":")));
	TRY(json_quote(out, text));
	return buf_add(out, done ? STR(",\"type\":\"output_text\",\"logprobs\":null}") : STR(",\"type\":\"output_text\",\"logprobs\":[]}"));
}

/* What comes before the first token. */
static enum err responses_start(struct buf *out, const struct sim_answer *a)
{
	struct str item = str_skip(a->id, 5);
	TRY(response_state(out, a, "created", 0));
	TRY(response_state(out, a, "in_progress", 1));
	TRY(buf_printf(out,
		"event: response.output_item.added\ndata: "
		"{\"item\":{\"id\":\"msg_%.*s\",\"content\":[],\"role\":\"assistant\",\"status\":\"in_progress\","
		"\"type\":\"message\",\"phase\":null},\"output_index\":0,\"sequence_number\":2,\"type\":\"response.output_item.added\"}"
		"\n\n",
		STR_ARG(item)));
	TRY(buf_printf(out,
		"event: response.content_part.added\ndata: {\"content_index\":0,\"item_id\":\"msg_%.*s\",\"output_index\":0,\"part\":",
		STR_ARG(item)));
	TRY(response_part(out, STR(""), false));
	return buf_add(out, STR(",\"sequence_number\":3,\"type\":\"response.content_part.added\"}\n\n"));
}

static enum err responses_piece(struct buf *out, const struct sim_answer *a, const struct sim_piece *p)
{
	if (p->nth == 0)
		TRY(responses_start(out, a));
	TRY(buf_add(out, STR("event: response.output_text.delta\ndata: {\"content_index\":0,\"delta\":")));
	TRY(json_quote(out, p->text));
	return buf_printf(out,
		",\"item_id\":\"msg_%.*s\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":%u,\"type\":\"response.output_text."
		"delta\"}\n\n",
		STR_ARG(str_skip(a->id, 5)), p->nth + 4);
}

static enum err responses_end(struct buf *out, const struct sim_answer *a, const struct sim_usage *u, struct str all, const char *finish)
{
	struct str item = str_skip(a->id, 5);
	unsigned seq = (unsigned)u->new_tok + 4;
	TRY(buf_printf(out,
		"event: response.output_text.done\ndata: "
		"{\"content_index\":0,\"item_id\":\"msg_%.*s\",\"logprobs\":[],\"output_index\":0,\"sequence_number\":%u,\"text\":",
		STR_ARG(item), seq));
	TRY(json_quote(out, all));
	TRY(buf_printf(out,
		",\"type\":\"response.output_text.done\"}\n\nevent: response.content_part.done\ndata: "
		"{\"content_index\":0,\"item_id\":\"msg_%.*s\",\"output_index\":0,\"part\":",
		STR_ARG(item)));
	TRY(response_part(out, all, true));
	TRY(buf_printf(out,
		",\"sequence_number\":%u,\"type\":\"response.content_part.done\"}\n\nevent: response.output_item.done\ndata: "
		"{\"item\":{\"id\":\"msg_%.*s\",\"content\":[",
		seq + 1, STR_ARG(item)));
	TRY(response_part(out, all, true));
	TRY(buf_printf(out,
		"],\"role\":\"assistant\",\"status\":\"completed\",\"type\":\"message\",\"phase\":null},\"output_index\":0,\"sequence_"
		"number\":%u,"
		"\"type\":\"response.output_item.done\"}\n\nevent: response.completed\ndata: {\"response\":",
		seq + 2));
	TRY(response_object(out, a, u, all, finish));
	return buf_printf(out, ",\"sequence_number\":%u,\"type\":\"response.completed\"}\n\n", seq + 3);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

enum err sim_chunk_piece(struct buf *out, const struct sim_answer *a, const struct sim_piece *p)
{
	switch (a->api) {
	case SIM_CHAT: return chat_piece(out, a, p);
	case SIM_COMPLETION: return completion_piece(out, a, p);
	case SIM_RESPONSES: return responses_piece(out, a, p);
	case SIM_MESSAGES: return messages_piece(out, a, p);
	case SIM_GENERATE: return generate_piece(out, a, p);
	case SIM_EMBEDDING:
	case SIM_SCORE:
	case SIM_RERANK: break; /* there are no streams of them */
	}
	return ERR_OK;
}

enum err sim_chunk_end(struct buf *out, const struct sim_answer *a, const struct sim_usage *u, struct str all, const char *finish)
{
	if (a->api == SIM_MESSAGES)
		return messages_end(out, u, finish);
	if (a->api == SIM_RESPONSES)
		return responses_end(out, a, u, all, finish);
	if (a->include_usage && a->api != SIM_GENERATE) {
		TRY(open_event(out, a));
		TRY(buf_add(out, STR("],")));
		TRY(put_usage(out, a, u, true));
		TRY(buf_printf(out, ",\"system_fingerprint\":\"%s\"}\n\n", a->fingerprint));
	}
	return buf_add(out, STR("data: [DONE]\n\n"));
}

/* ---- whole answers ---------------------------------------------------------------------------------------------- */

static enum err whole_choice(struct buf *out, const struct sim_answer *a, uint32_t i, const struct sim_choice_text *c)
{
	TRY(buf_printf(out, "%s{\"index\":%u,", i ? "," : "", i));
	if (a->api == SIM_CHAT) {
		TRY(buf_add(out, STR("\"message\":{\"role\":\"assistant\",\"content\":")));
		TRY(json_quote(out, c->text));
		TRY(buf_add(out, STR(",\"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,\"reasoning\":null},")));
	} else {
		TRY(buf_add(out, STR("\"text\":")));
		TRY(json_quote(out, c->text));
		TRY(buf_add(out, STR(",")));
	}
	TRY(buf_printf(out, "\"logprobs\":null,\"finish_reason\":\"%s\",\"stop_reason\":null,\"token_ids\":", c->finish));
	TRY(put_ids(out, c->tok, c->n_tok, a->return_ids));
	if (a->api == SIM_COMPLETION)
		TRY(buf_add(out, STR(",\"prompt_logprobs\":null,\"prompt_token_ids\":null")));
	return buf_add(out, STR(",\"routed_experts\":null}"));
}

/* NIXL's, of the prefill side: only whole answers carry it. The blocks' numbers are made up: nobody fetches them. */
static enum err put_transfer(struct buf *out, const struct sim_answer *a, const struct sim_usage *u)
{
	if (!a->call->remote_decode)
		return buf_add(out, STR("\"kv_transfer_params\":null"));
	TRY(buf_add(out, STR("\"kv_transfer_params\":{\"do_remote_prefill\":true,\"do_remote_decode\":false,\"remote_block_ids\":[[")));
	for (uint64_t i = 0; i < div_ceil_u64(u->prompt_tok, a->block_tok); i++)
		TRY(buf_printf(out, "%s%llu", i ? "," : "", (unsigned long long)i + 1));
	return buf_printf(out,
		"]],\"remote_engine_id\":\"%.*s\",\"remote_request_id\":\"%.*s\",\"remote_host\":\"%.*s\",\"remote_port\":%u,\"tp_size\":1,"
		"\"remote_num_tokens\":%llu}",
		STR_ARG(a->engine_id), STR_ARG(a->id), STR_ARG(a->host), a->side_port, (unsigned long long)u->prompt_tok);
}

static enum err whole_openai(
	struct buf *out, const struct sim_answer *a, const struct sim_choice_text *c, size_t n, const struct sim_usage *u)
{
	const struct sim_prompt *prompt = &a->call->prompts.p[0];
	TRY(buf_printf(out, "{\"id\":\"%.*s\",\"object\":\"%s\",\"created\":%lld,\"model\":", STR_ARG(a->id),
		a->api == SIM_CHAT ? "chat.completion" : "text_completion", (long long)a->created_s));
	TRY(json_quote(out, a->model));
	TRY(buf_add(out, STR(",\"choices\":[")));
	for (size_t i = 0; i < n; i++)
		TRY(whole_choice(out, a, (uint32_t)i, &c[i]));
	TRY(buf_printf(out, "],\"service_tier\":null,\"system_fingerprint\":\"%s\",", a->fingerprint));
	TRY(put_usage(out, a, u, false));
	if (a->api == SIM_CHAT) {
		TRY(buf_add(out, STR(",\"prompt_logprobs\":null,\"prompt_token_ids\":")));
		TRY(put_ids(out, prompt->tok.p, prompt->tok.n, a->return_ids));
		TRY(buf_add(out, STR(",\"prompt_text\":null")));
	}
	TRY(buf_add(out, STR(",")));
	TRY(put_transfer(out, a, u));
	return buf_add(out, STR(",\"ec_transfer_params\":null,\"metrics\":null}"));
}

static enum err whole_messages(struct buf *out, const struct sim_answer *a, const struct sim_choice_text *c, const struct sim_usage *u)
{
	TRY(buf_printf(out,
		"{\"id\":\"%.*s\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":", STR_ARG(a->id)));
	TRY(json_quote(out, c->text));
	TRY(buf_add(out, STR("}],\"model\":")));
	TRY(json_quote(out, a->model));
	TRY(buf_printf(out, ",\"stop_reason\":\"%s\",", messages_stop(c->finish)));
	TRY(put_messages_usage(out, u));
	return buf_add(out, STR("}"));
}

static enum err whole_generate(
	struct buf *out, const struct sim_answer *a, const struct sim_choice_text *c, size_t n, const struct sim_usage *u)
{
	TRY(buf_printf(out, "{\"request_id\":\"%.*s\",\"model\":", STR_ARG(a->id)));
	TRY(json_quote(out, a->model));
	TRY(buf_printf(out, ",\"created\":%lld,", (long long)a->created_s));
	TRY(put_usage(out, a, u, false));
	TRY(buf_add(out, STR(",\"prompt_logprobs\":null,\"prompt_token_ids\":null,\"metrics\":null,")));
	TRY(put_transfer(out, a, u));
	TRY(buf_add(out, STR(",\"ec_transfer_params\":null,\"output_mode\":\"tokens\",\"choices\":[")));
	for (size_t i = 0; i < n; i++) {
		TRY(buf_printf(out, "%s{\"index\":%zu,\"finish_reason\":\"%s\",\"stop_reason\":null,\"token_ids\":", i ? "," : "", i,
			c[i].finish));
		TRY(put_ids(out, c[i].tok, c[i].n_tok, true));
		TRY(buf_add(out, STR(",\"routed_experts\":null,\"sampling_mask\":null,\"logprobs\":null}")));
	}
	return buf_add(out, STR("]}"));
}

/* Four numbers an input: enough to see that the call came through. What was cached is not told. */
static enum err whole_embeddings(struct buf *out, const struct sim_answer *a, size_t n, const struct sim_usage *u)
{
	unsigned long long tok = u->prompt_tok;
	TRY(buf_printf(out, "{\"id\":\"%.*s\",\"object\":\"list\",\"created\":%lld,\"model\":", STR_ARG(a->id), (long long)a->created_s));
	TRY(json_quote(out, a->model));
	TRY(buf_add(out, STR(",\"data\":[")));
	for (size_t i = 0; i < n; i++)
		TRY(buf_printf(out, "%s{\"index\":%zu,\"object\":\"embedding\",\"embedding\":[0.5,-0.5,0.5,-0.5]}", i ? "," : "", i));
	return buf_printf(out,
		"],\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu,\"completion_tokens\":0,\"prompt_tokens_details\":null,"
		"\"completion_tokens_details\":null}}",
		tok, tok);
}

/* Every document is worth the same: the order stays. */
static enum err whole_scores(struct buf *out, const struct sim_answer *a, size_t n, const struct sim_usage *u)
{
	bool ranks = a->api == SIM_RERANK;
	unsigned long long tok = u->prompt_tok;
	TRY(buf_printf(out, "{\"id\":\"%.*s\",%s\"model\":", STR_ARG(a->id), ranks ? "" : "\"object\":\"list\","));
	TRY(json_quote(out, a->model));
	TRY(buf_printf(out, ",\"%s\":[", ranks ? "results" : "data"));
	for (size_t i = 0; i < n; i++)
		TRY(buf_printf(out, "%s{\"index\":%zu,%s:0.5}", i ? "," : "", i, ranks ? "\"relevance_score\"" : "\"object\":\"score\",\"score\""));
	return buf_printf(out, "],\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu}}", tok, tok);
}

enum err sim_chunk_whole(struct buf *out, const struct sim_answer *a, const struct sim_choice_text *c, size_t n, const struct sim_usage *u)
{
	switch (a->api) {
	case SIM_CHAT:
	case SIM_COMPLETION: return whole_openai(out, a, c, n, u);
	case SIM_RESPONSES: return response_object(out, a, u, c->text, c->finish);
	case SIM_MESSAGES: return whole_messages(out, a, c, u);
	case SIM_GENERATE: return whole_generate(out, a, c, n, u);
	case SIM_EMBEDDING: return whole_embeddings(out, a, n, u);
	case SIM_SCORE:
	case SIM_RERANK: return whole_scores(out, a, n - a->call->n_queries, u);
	}
	return ERR_OK;
}
