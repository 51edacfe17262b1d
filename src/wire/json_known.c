/* json_known.c: large elements through the table of what was read before, the text between them through the library. */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "wire/json_priv.h"

static const struct hash128 KIND = { 0x6e6f736a, 0x6e776f6e6b };

struct value {
	struct memo_item item;
	yyjson_doc *doc;
	char text[];
};

static void value_free(struct memo_item *it)
{
	struct value *v = container_of(it, struct value, item);
	yyjson_doc_free(v->doc);
	free(v);
}

/* The reader takes memory for a sixth of a text's bytes as values, a hundred times what a message needs: a copy has its own size. */
static yyjson_doc *close_copy(yyjson_doc *loose)
{
	yyjson_mut_doc *between = yyjson_doc_mut_copy(loose, &json_alc);
	yyjson_doc *doc = yyjson_mut_doc_imut_copy(between, &json_alc);
	yyjson_mut_doc_free(between);
	yyjson_doc_free(loose);
	must(doc);
	return doc;
}

static struct memo_item *value_new(struct str text)
{
	yyjson_doc *loose = yyjson_read_opts((char *)(uintptr_t)text.p, text.n, YYJSON_READ_NUMBER_AS_RAW, &json_alc, NULL);
	if (!loose)
		return NULL;
	struct value *v = must_malloc(sizeof(*v) + text.n);
	memo_item_init(&v->item);
	v->doc = close_copy(loose);
	v->item.kind = KIND;
	v->item.text = (struct str){ memcpy(v->text, text.p, text.n), text.n };
	v->item.bytes = sizeof(*v) + sizeof(*v->doc) + 2 * text.n + yyjson_doc_get_val_count(v->doc) * sizeof(yyjson_val);
	v->item.free = value_free;
	return &v->item;
}

static bool take_values(const struct json_scan *c, struct memo *memo, struct json_known *k)
{
	for (size_t i = 0; i < c->n_large; i++) {
		struct str text = json_span_str(c->s, c->large[i]);
		struct memo_item *it = memo_find(memo, KIND, text);
		if (!it && (it = value_new(text)) != NULL)
			memo_keep(memo, it);
		if (!it)
			return false;
		k->values[k->n++] = it;
	}
	return true;
}

/* The text with a 0 in each large element's place. */
static yyjson_doc *read_rest(const struct json_scan *c, struct json_known *k)
{
	size_t n = 0, from = 0;
	k->rest = must_malloc(c->s.n + YYJSON_PADDING_SIZE);
	for (size_t i = 0; i <= c->n_large; i++) {
		size_t to = i < c->n_large ? c->large[i].off : c->s.n;
		memcpy(k->rest + n, c->s.p + from, to - from);
		n += to - from;
		if (i == c->n_large)
			break;
		k->rest[n++] = '0';
		from = to + c->large[i].n;
	}
	memset(k->rest + n, 0, YYJSON_PADDING_SIZE);
	return yyjson_read_opts(k->rest, n, YYJSON_READ_INSITU | YYJSON_READ_NUMBER_AS_RAW, &json_alc, NULL);
}

/* In the order of the text; a link's place is known by where its 0 stood: so much less than in the text as was left out before. */
static void link_values(const struct json_scan *c, yyjson_val *root, const struct json_known *k)
{
	size_t i = 0, less = 0;
	yyjson_obj_iter members = yyjson_obj_iter_with(root);
	for (yyjson_val *key; i < k->n && (key = yyjson_obj_iter_next(&members));) {
		yyjson_arr_iter elements = yyjson_arr_iter_with(yyjson_obj_iter_get_val(key));
		for (yyjson_val *v; i < k->n && (v = yyjson_arr_iter_next(&elements));) {
			if (!yyjson_is_raw(v) || v->uni.str != k->rest + c->large[i].off - less)
				continue;
			yyjson_doc *doc = container_of(k->values[i], struct value, item)->doc;
			must(yyjson_set_raw(v, (const char *)yyjson_doc_get_root(doc), 0));
			less += c->large[i++].n - 1;
		}
	}
	must(i == k->n);
}

yyjson_doc *json_known_read(const struct json_scan *c, struct memo *memo, struct json_known *ret_k)
{
	*ret_k = (struct json_known){ .values = must_malloc(c->n_large * sizeof(*ret_k->values)) };
	if (!take_values(c, memo, ret_k))
		return NULL;
	yyjson_doc *doc = read_rest(c, ret_k);
	if (doc)
		link_values(c, yyjson_doc_get_root(doc), ret_k);
	return doc;
}

void json_known_done(struct json_known *k)
{
	for (size_t i = 0; i < k->n; i++)
		memo_item_unref(k->values[i]);
	free(k->values);
	free(k->rest);
	*k = (struct json_known){ 0 };
}
