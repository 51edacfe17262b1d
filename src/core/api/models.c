/* models.c: the list of models, read leniently and written as OpenAI does. */
#include "api/models.h"

#include "wire/json.h"

enum { MODELS_MAX_BYTES = 8 << 20 };

static struct str text_of(const struct json_val *v, struct arena *a)
{
	struct str s = STR("");
	return json_str(v, &s) ? arena_str(a, s) : STR("");
}

static enum err read_list(const struct json_val *data, struct arena *a, const struct api_model **ret_models, size_t *ret_n)
{
	size_t n = 0;
	if (!json_is(data, JSON_ARRAY))
		return ERR_SYNTAX;
	if (json_len(data) > API_MAX_MODELS)
		return ERR_LIMIT;
	struct api_model *m = arena_new(a, struct api_model, json_len(data));
	for (struct json_iter it = json_each(data); json_next(&it);) {
		uint64_t len;
		m[n].id = text_of(json_get(it.val, STR("id")), a);
		if (m[n].id.n == 0)
			continue;
		m[n].root = text_of(json_get(it.val, STR("root")), a);
		m[n].parent = text_of(json_get(it.val, STR("parent")), a);
		if (json_u64(json_get(it.val, STR("max_model_len")), &len) && len <= UINT32_MAX)
			m[n].max_model_len = (uint32_t)len;
		n++;
	}
	*ret_models = m;
	*ret_n = n;
	return ERR_OK;
}

enum err api_models_read(struct str body, struct arena *a, const struct api_model **ret_models, size_t *ret_n)
{
	struct json_doc *d;
	TRY(json_parse(body, MODELS_MAX_BYTES, &d));
	enum err e = read_list(json_get(json_root(d), STR("data")), a, ret_models, ret_n);
	json_free(d);
	return e;
}

static void put_text(struct json_writer *w, struct str key, struct str value)
{
	json_put_key(w, key);
	if (value.n)
		json_put_str(w, value);
	else
		json_put_null(w);
}

static void put_model(struct json_writer *w, const struct api_model *m, int64_t created_s)
{
	json_put_open(w, '{');
	put_text(w, STR("id"), m->id);
	put_text(w, STR("object"), STR("model"));
	json_put_key(w, STR("created"));
	json_put_i64(w, created_s);
	put_text(w, STR("owned_by"), STR("kvasir"));
	put_text(w, STR("root"), m->root);
	put_text(w, STR("parent"), m->parent);
	json_put_key(w, STR("max_model_len"));
	if (m->max_model_len)
		json_put_u64(w, m->max_model_len);
	else
		json_put_null(w);
	json_put_close(w, '}');
}

enum err api_model_put(struct buf *b, const struct api_model *m, int64_t created_s)
{
	struct json_writer w = json_writer(b);
	put_model(&w, m, created_s);
	return json_writer_done(&w);
}

enum err api_models_put(struct buf *b, const struct api_model *models, size_t n, int64_t created_s)
{
	struct json_writer w = json_writer(b);
	json_put_open(&w, '{');
	put_text(&w, STR("object"), STR("list"));
	json_put_key(&w, STR("data"));
	json_put_open(&w, '[');
	for (size_t i = 0; i < n; i++)
		put_model(&w, &models[i], created_s);
	json_put_close(&w, ']');
	json_put_close(&w, '}');
	return json_writer_done(&w);
}
