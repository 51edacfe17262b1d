/* Questions about tokens that the tokenizer in this process can answer: /tokenize, /detokenize, /v1/messages/count_tokens, in the words
 * of a vLLM 0.32 worker. Everything that is not surely what the worker would say goes on to it: another member, a long body, a prompt
 * that does not fit the model, a tokenizer that ever differed or was never compared. The outcome in log and metrics tells which: own, or done. */
#include "gate/gate_priv.h"

enum { TEXT_MAX_BYTES = 16 << 20 };

static bool fits(const struct gate_req *r, size_t n_tok) { return r->model->max_model_len && n_tok < r->model->max_model_len; }

/* The only prompt's ids, or NULL: one reference. */
static struct text_ids *ids_of(struct gate_req *r, enum text_form form)
{
	const char *why;
	struct text_ids *ids = NULL;
	if (!gate_local_only(r, form, &ids, &why)) {
		gate_local_left(r->gate, why);
		return NULL;
	}
	if (ids->n == 1 && fits(r, ids->prompts[0].n))
		return ids;
	text_ids_unref(ids);
	return NULL;
}

/* ---- what is asked for, and the answer */

static void put_ids(struct json_writer *w, const struct text_prompt *p, uint32_t max_model_len)
{
	json_put_key(w, STR("count"));
	json_put_u64(w, p->n);
	json_put_key(w, STR("max_model_len"));
	json_put_u64(w, max_model_len);
	json_put_key(w, STR("tokens"));
	json_put_open(w, '[');
	for (size_t i = 0; i < p->n; i++)
		json_put_u64(w, p->ids[i]);
	json_put_close(w, ']');
	json_put_key(w, STR("token_strs"));
	json_put_null(w);
}

static bool tokenize(struct gate_req *r, const struct json_val *body, struct json_writer *w)
{
	static const struct str TEXT[] = { STR_INIT("model"), STR_INIT("prompt"), STR_INIT("add_special_tokens") };
	static const struct str CHAT[] = { STR_INIT("model"), STR_INIT("messages"), STR_INIT("add_special_tokens"), STR_INIT("add_generation_prompt"),
		STR_INIT("continue_final_message"), STR_INIT("chat_template_kwargs"), STR_INIT("tools") };
	bool text = json_is(json_get(body, STR("prompt")), JSON_STRING) && json_only(body, TEXT, ARRAY_LEN(TEXT));
	if (!text && (!json_only(body, CHAT, ARRAY_LEN(CHAT)) || model_is_harmony(r->model->tokenizer)))
		return false;
	struct text_ids *ids = ids_of(r, text ? TEXT_COMPLETIONS : TEXT_CHAT);
	if (!ids)
		return false;
	put_ids(w, &ids->prompts[0], r->model->max_model_len);
	text_ids_unref(ids);
	return true;
}

static bool count_tokens(struct gate_req *r, const struct json_val *body, struct json_writer *w)
{
	struct text_ids *ids = ids_of(r, TEXT_MESSAGES);
	(void)body;
	if (!ids)
		return false;
	json_put_key(w, STR("input_tokens"));
	json_put_u64(w, ids->prompts[0].n);
	json_put_key(w, STR("context_management"));
	json_put_open(w, '{');
	json_put_key(w, STR("original_input_tokens"));
	json_put_u64(w, ids->prompts[0].n);
	json_put_close(w, '}');
	text_ids_unref(ids);
	return true;
}

static bool read_ids(struct gate_req *r, const struct json_val *list, struct tok_decode_job *ret_job)
{
	uint32_t *ids = arena_new(&r->arena, uint32_t, json_len(list) + 1);
	size_t n = 0;
	uint64_t id;
	for (struct json_iter it = json_each(list); json_next(&it);) {
		if (!json_is(it.val, JSON_NUMBER) || !json_u64(it.val, &id) || id > UINT32_MAX)
			return false;
		ids[n++] = (uint32_t)id;
	}
	*ret_job = (struct tok_decode_job){ .ids = ids, .n = n };
	return json_is(list, JSON_ARRAY);
}

static bool detokenize(struct gate_req *r, const struct json_val *body, struct json_writer *w)
{
	static const struct str NAMES[] = { STR_INIT("model"), STR_INIT("tokens") };
	const struct text_local *l = model_local(r->model->tokenizer);
	struct tok_decode_job job;
	struct buf text;
	if (!l || !text_local_decodes_plainly(l) || !json_only(body, NAMES, ARRAY_LEN(NAMES)) || !read_ids(r, json_get(body, STR("tokens")), &job))
		return false;
	buf_init(&text, TEXT_MAX_BYTES);
	enum err e = tok_decode(text_local_tok(l), &job, &text);
	if (e == ERR_OK) {
		json_put_key(w, STR("prompt"));
		json_put_str(w, buf_str(&text));
	}
	buf_done(&text);
	return e == ERR_OK;
}

/* ---- the stage */

static const struct { struct str path; bool (*answer)(struct gate_req *r, const struct json_val *body, struct json_writer *w); } CALLS[] = {
	{ STR_INIT("/tokenize"), tokenize },
	{ STR_INIT("/detokenize"), detokenize },
	{ STR_INIT("/v1/messages/count_tokens"), count_tokens },
};

/* Where workers may be asked, one has agreed with it before. */
static bool trusted(const struct gate_req *r)
{
	const struct model *m = r->model ? r->model->tokenizer : NULL;
	if (!m || !r->hr || !r->facts.model.n || r->body_bytes > GATE_LOCAL_INLINE_BYTES || model_state(m) != MODEL_READY)
		return false;
	struct model_info i = model_info(m);
	return i.different == 0 && (i.agreed || !r->model->text_from_workers);
}

static bool put_answer(struct gate_req *r, size_t call, struct buf *out)
{
	struct json_doc *d;
	struct json_writer w = json_writer(out);
	if (json_parse((struct str){ r->body, r->body_bytes }, r->body_bytes, &d) != ERR_OK)
		return false;
	json_put_open(&w, '{');
	bool ok = CALLS[call].answer(r, json_root(d), &w);
	json_put_close(&w, '}');
	json_free(d);
	return ok && json_writer_done(&w) == ERR_OK;
}

bool gate_here(struct gate_req *r)
{
	struct buf out;
	bool done = false;
	for (size_t i = 0; i < ARRAY_LEN(CALLS) && !done; i++) {
		if (!str_eq(r->path->path, CALLS[i].path) || !trusted(r))
			continue;
		buf_init(&out, GATE_IDS_ANSWER_MAX_BYTES);
		done = put_answer(r, i, &out);
		if (done) {
			r->outcome = GATE_OUT_OWN;
			gate_reply(r, 200, (struct http_headers){ 0 }, buf_str(&out));
		}
		buf_done(&out);
	}
	return done;
}
