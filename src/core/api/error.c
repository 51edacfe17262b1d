/* error.c: one error, three shapes. The words for `type` are those the vendors' SDKs and documents use. */
#include "api/error.h"

#include "wire/json.h"

static const struct type_row {
	int status;
	struct str openai, anthropic;
} TYPES[] = {
	{ 400, STR_INIT("invalid_request_error"), STR_INIT("invalid_request_error") },
	{ 401, STR_INIT("authentication_error"), STR_INIT("authentication_error") },
	{ 403, STR_INIT("permission_error"), STR_INIT("permission_error") },
	{ 404, STR_INIT("invalid_request_error"), STR_INIT("not_found_error") },
	{ 405, STR_INIT("invalid_request_error"), STR_INIT("invalid_request_error") },
	{ 408, STR_INIT("timeout_error"), STR_INIT("timeout_error") },
	{ 413, STR_INIT("invalid_request_error"), STR_INIT("request_too_large") },
	{ 429, STR_INIT("rate_limit_error"), STR_INIT("rate_limit_error") },
	{ 431, STR_INIT("invalid_request_error"), STR_INIT("invalid_request_error") },
	{ 503, STR_INIT("server_error"), STR_INIT("overloaded_error") },
	{ 504, STR_INIT("server_error"), STR_INIT("timeout_error") },
};

int api_error_status(const struct api_error *e)
{
	int status = e->status ? e->status : err_http(e->why);
	return status >= 400 ? status : 500;
}

static struct str type_of(const struct api_error *e, enum api_dialect d)
{
	int status = api_error_status(e);
	if (e->type)
		return str_of(e->type);
	for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
		if (TYPES[i].status == status)
			return d == API_ANTHROPIC ? TYPES[i].anthropic : TYPES[i].openai;
	if (status < 500)
		return STR("invalid_request_error");
	return d == API_ANTHROPIC ? STR("api_error") : STR("server_error");
}

static struct str message_of(const struct api_error *e) { return str_of(e->message ? e->message : err_text(e->why)); }

/* The word that SDK users compare with; where the field has one of its own, that one. */
static struct str code_of(const struct api_error *e)
{
	return e->why == ERR_UNKNOWN_MODEL ? STR("model_not_found") : str_of(err_label(e->why));
}

static void put_pair(struct json_writer *w, struct str key, struct str value)
{
	json_put_key(w, key);
	json_put_str(w, value);
}

static void put_param(struct json_writer *w, const struct api_error *e)
{
	json_put_key(w, STR("param"));
	if (e->param)
		json_put_str(w, str_of(e->param));
	else
		json_put_null(w);
}

static void put_anthropic(struct json_writer *w, const struct api_error *e)
{
	json_put_open(w, '{');
	put_pair(w, STR("type"), STR("error"));
	json_put_key(w, STR("error"));
	json_put_open(w, '{');
	put_pair(w, STR("type"), type_of(e, API_ANTHROPIC));
	put_pair(w, STR("message"), message_of(e));
	put_pair(w, STR("reason"), str_of(err_label(e->why)));
	json_put_close(w, '}');
	if (e->request_id)
		put_pair(w, STR("request_id"), str_of(e->request_id));
	json_put_close(w, '}');
}

static void put_openai(struct json_writer *w, const struct api_error *e)
{
	json_put_open(w, '{');
	json_put_key(w, STR("error"));
	json_put_open(w, '{');
	put_pair(w, STR("message"), message_of(e));
	put_pair(w, STR("type"), type_of(e, API_OPENAI));
	put_param(w, e);
	put_pair(w, STR("code"), code_of(e));
	put_pair(w, STR("reason"), str_of(err_label(e->why)));
	if (e->request_id)
		put_pair(w, STR("request_id"), str_of(e->request_id));
	json_put_close(w, '}');
	json_put_close(w, '}');
}

static void put_responses_event(struct json_writer *w, const struct api_error *e, uint64_t sequence)
{
	json_put_open(w, '{');
	put_pair(w, STR("type"), STR("error"));
	put_pair(w, STR("code"), code_of(e));
	put_pair(w, STR("message"), message_of(e));
	put_param(w, e);
	json_put_key(w, STR("sequence_number"));
	json_put_u64(w, sequence);
	put_pair(w, STR("reason"), str_of(err_label(e->why)));
	json_put_close(w, '}');
}

enum err api_error_put(struct buf *b, enum api_dialect d, const struct api_error *e)
{
	struct json_writer w = json_writer(b);
	if (d == API_ANTHROPIC)
		put_anthropic(&w, e);
	else
		put_openai(&w, e);
	return json_writer_done(&w);
}

enum err api_error_put_event(struct buf *b, enum api_dialect d, const struct api_error *e, uint64_t next_sequence)
{
	struct json_writer w = json_writer(b);
	TRY(buf_add(b, d == API_OPENAI ? STR("data: ") : STR("event: error\ndata: ")));
	switch (d) {
	case API_OPENAI: put_openai(&w, e); break;
	case API_ANTHROPIC: put_anthropic(&w, e); break;
	case API_RESPONSES: put_responses_event(&w, e, next_sequence); break;
	}
	TRY(json_writer_done(&w));
	return buf_add(b, STR("\n\n"));
}
