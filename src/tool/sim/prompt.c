/* The calls that turn prompts into ids and back without running the model. */
#include <stdio.h>

#include "sim/route.h"

static void put_u32s(struct json_writer *w, const uint32_t *p, size_t n)
{
	json_put_open(w, '[');
	for (size_t i = 0; i < n; i++)
		json_put_u64(w, p[i]);
	json_put_close(w, ']');
}

static void answer(struct sim_exch *x, const struct json_writer *w)
{
	if (json_writer_done(w) == ERR_OK)
		sim_exch_json(x, 200, buf_str(&x->out));
	else
		sim_exch_json(x, 500,
			STR("{\"error\":{\"message\":\"the answer is too "
			    "large\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}"));
}

static struct json_writer writer(struct sim_exch *x)
{
	buf_clear(&x->out);
	return json_writer(&x->out);
}

/* ---- tokenize, detokenize ------------------------------------------------------------------------------------------ */

static void put_tokenized(struct sim_exch *x, const struct sim_prompt *p, bool strings)
{
	struct json_writer w = writer(x);
	char room[16];
	json_put_open(&w, '{');
	json_put_key(&w, STR("count"));
	json_put_u64(&w, p->tok.n);
	json_put_key(&w, STR("max_model_len"));
	json_put_u64(&w, x->w->serving.max_model_tok);
	json_put_key(&w, STR("tokens"));
	put_u32s(&w, p->tok.p, p->tok.n);
	json_put_key(&w, STR("token_strs"));
	if (strings) {
		json_put_open(&w, '[');
		for (size_t i = 0; i < p->tok.n; i++)
			json_put_str(&w, sim_token_text(x->w->serving.vocab, p->tok.p[i], room));
		json_put_close(&w, ']');
	} else {
		json_put_null(&w);
	}
	json_put_close(&w, '}');
	answer(x, &w);
}

/* Model, then prompt or messages; false: an error was put into f. */
static bool read_tokenize(struct sim_exch *x, const struct json_val *body, struct arena *a, struct sim_prompt *p, struct sim_fail *f)
{
	struct str text, model;
	struct sim_identity lora = { 0 };
	if (!sim_spec_model(&x->w->serving, body, &model, &lora, f))
		return false;
	if (json_str(json_get(body, STR("prompt")), &text)) {
		sim_render_text(x->w->serving.vocab, text, p);
		return true;
	}
	if (!sim_spec_messages(body, f))
		return false;
	if (sim_render_chat(x->w->serving.vocab, body, a, p) == ERR_OK)
		return true;
	sim_fail_set(f, 400, "BadRequestError", "", "The prompt is too long to be rendered");
	return false;
}

void sim_prompt_tokenize(struct sim_exch *x)
{
	struct json_doc *doc = sim_route_json(x);
	struct sim_prompt p = { 0 };
	struct sim_fail f;
	struct arena a;
	x->w->counts.tokenize++;
	if (!doc)
		return;
	arena_init(&a, 0);
	if (read_tokenize(x, json_root(doc), &a, &p, &f))
		put_tokenized(x, &p, json_true(json_get(json_root(doc), STR("return_token_strs"))));
	else
		sim_exch_fail(x, &f);
	sim_prompt_done(&p);
	arena_done(&a);
	json_free(doc);
}

void sim_prompt_detokenize(struct sim_exch *x)
{
	struct json_doc *doc = sim_route_json(x);
	char room[16];
	struct buf text;
	if (!doc)
		return;
	buf_init(&text, 64 << 20);
	enum err e = ERR_OK;
	for (struct json_iter it = json_each(json_get(json_root(doc), STR("tokens"))); json_next(&it) && e == ERR_OK;) {
		uint64_t id = 0;
		(void)json_u64(it.val, &id);
		e = buf_add(&text, sim_token_text(x->w->serving.vocab, (uint32_t)id, room));
	}
	struct json_writer w = writer(x);
	json_put_open(&w, '{');
	json_put_key(&w, STR("prompt"));
	json_put_str(&w, buf_str(&text));
	json_put_close(&w, '}');
	answer(x, &w);
	buf_done(&text);
	json_free(doc);
}

/* ---- render -------------------------------------------------------------------------------------------------------- */

static enum err put_features(struct buf *out, const struct sim_prompt *p)
{
	if (!p->mm.n)
		return buf_add(out, STR("null"));
	TRY(buf_add(out, STR("{\"mm_hashes\":{\"image\":[")));
	for (size_t i = 0; i < p->mm.n; i++)
		TRY(buf_printf(out, "%s\"%.*s\"", i ? "," : "", STR_ARG(p->mm.p[i].hash)));
	TRY(buf_add(out, STR("]},\"mm_placeholders\":{\"image\":[")));
	for (size_t i = 0; i < p->mm.n; i++)
		TRY(buf_printf(out, "%s{\"offset\":%u,\"length\":%u}", i ? "," : "", p->mm.p[i].at_tok, p->mm.p[i].n_tok));
	return buf_add(out, STR("]},\"kwargs_data\":null,\"mm_metadata\":null}"));
}

static enum err put_sampling(struct buf *out, const struct sim_spec_call *c)
{
	TRY(buf_add(
		out, STR("{\"presence_penalty\":0.0,\"frequency_penalty\":0.0,\"repetition_penalty\":1.0,\"temperature\":1.0,\"top_p\":1.0,"
			 "\"min_p\":0.0,\"stop\":[],\"stop_token_ids\":[]")));
	if (c->ignore_eos)
		TRY(buf_add(out, STR(",\"ignore_eos\":true")));
	if (c->max_given)
		TRY(buf_printf(out, ",\"max_tokens\":%u", c->max_new));
	return buf_add(out, STR(",\"output_kind\":2,\"skip_clone\":true,\"bad_words\":[],\"skip_reading_prefix_cache\":false}"));
}

/* Members in the order of vLLM 0.32. */
static enum err put_rendered(struct buf *out, const struct sim_spec_call *c, const struct sim_prompt *p, const char *id)
{
	struct json_writer w = json_writer(out);
	TRY(buf_printf(out, "{\"request_id\":\"%s\",\"token_ids\":", id));
	put_u32s(&w, p->tok.p, p->tok.n);
	TRY(json_writer_done(&w));
	TRY(buf_add(out, STR(",\"token_offsets\":null,\"features\":")));
	TRY(put_features(out, p));
	TRY(buf_add(out, STR(",\"content_parts\":null,\"sampling_params\":")));
	TRY(put_sampling(out, c));
	TRY(buf_add(out, STR(",\"model\":")));
	TRY(json_quote(out, c->model));
	TRY(buf_printf(out,
		",\"reasoning_ended\":null,\"reasoning_parser_kwargs\":null,\"return_token_ids\":null,\"output_mode\":\"tokens\","
		"\"stream\":%s,\"stream_options\":null,\"cache_salt\":",
		c->stream ? "true" : "false"));
	TRY(c->salt.n ? json_quote(out, c->salt) : buf_add(out, STR("null")));
	return buf_add(out, STR(",\"priority\":0,\"kv_transfer_params\":null,\"ec_transfer_params\":null}"));
}

static enum err put_all_rendered(struct sim_exch *x, const struct sim_spec_call *c)
{
	bool list = c->api == SIM_COMPLETION;
	char id[64];
	uint64_t random = sim_worker_random(x->w);
	buf_clear(&x->out);
	if (list)
		TRY(buf_add(&x->out, STR("[")));
	for (size_t i = 0; i < c->prompts.n; i++) {
		snprintf(id, sizeof(id), c->prompts.n > 1 ? "%s-%016llx-%zu" : "%s-%016llx", list ? "cmpl" : "chatcmpl",
			(unsigned long long)random, i);
		if (i)
			TRY(buf_add(&x->out, STR(",")));
		TRY(put_rendered(&x->out, c, &c->prompts.p[i], id));
	}
	return list ? buf_add(&x->out, STR("]")) : ERR_OK;
}

static void render(struct sim_exch *x, enum sim_api api)
{
	struct sim_fail f;
	struct sim_spec_call c;
	x->w->counts.render++;
	if (!x->w->fleet->o->enable_render) {
		sim_fail_set(&f, 403, "PermissionDeniedError", "", "This endpoint needs --enable-render.");
		sim_exch_fail(x, &f);
		return;
	}
	struct json_doc *doc = sim_route_json(x);
	if (!doc)
		return;
	if (!sim_spec_read(&x->w->serving, api, json_root(doc), &c, &f)) {
		sim_exch_fail(x, &f);
	} else {
		if (put_all_rendered(x, &c) == ERR_OK)
			sim_exch_json(x, 200, buf_str(&x->out));
		else
			sim_exch_json(x, 500, STR("{}"));
		sim_spec_done(&c);
	}
	json_free(doc);
}

void sim_prompt_render_chat(struct sim_exch *x) { render(x, SIM_CHAT); }
void sim_prompt_render_completion(struct sim_exch *x) { render(x, SIM_COMPLETION); }

/* ---- others -------------------------------------------------------------------------------------------------------- */

void sim_prompt_count_tokens(struct sim_exch *x)
{
	struct json_doc *doc = sim_route_json(x);
	struct sim_prompt p = { 0 };
	struct sim_fail f;
	struct arena a;
	if (!doc)
		return;
	arena_init(&a, 0);
	if (!sim_spec_messages(json_root(doc), &f)) {
		sim_exch_fail(x, &f);
	} else if (sim_render_messages(x->w->serving.vocab, json_root(doc), &a, &p) != ERR_OK) {
		sim_exch_json(x, 400, STR("{}"));
	} else {
		buf_clear(&x->out);
		must(buf_printf(&x->out, "{\"input_tokens\":%zu,\"context_management\":{\"original_input_tokens\":%zu}}", p.tok.n,
			     p.tok.n) == ERR_OK);
		sim_exch_json(x, 200, buf_str(&x->out));
	}
	sim_prompt_done(&p);
	arena_done(&a);
	json_free(doc);
}
