/* patch.c: edits sorted by place; pieces between them point into the body. */
#include "api/patch.h"

#include <string.h>

enum err api_patch_add(struct api_patch *p, struct str body, struct api_edit e)
{
	if (p->n == API_PATCH_EDITS)
		return ERR_LIMIT;
	if (e.off > body.n || e.cut > body.n - e.off)
		return ERR_RANGE;
	size_t i = p->n;
	while (i > 0 && p->edits[i - 1].off > e.off)
		i--;
	if (i > 0 && p->edits[i - 1].off + p->edits[i - 1].cut > e.off)
		return ERR_RANGE;
	if (i < p->n && e.off + e.cut > p->edits[i].off)
		return ERR_RANGE;
	memmove(&p->edits[i + 1], &p->edits[i], (p->n - i) * sizeof(e));
	p->edits[i] = e;
	p->n++;
	return ERR_OK;
}

/* Inside the object that is there: behind its last member, because the last of two equal members counts. A client that
 * asked for usage in each chunk but not for usage gets none from a worker; our asking must not change that. */
static struct api_edit into_object(struct str object, size_t off, bool usage_each)
{
	static const struct str PUT[2][2] = {
		{ STR_INIT(",\"include_usage\":true"), STR_INIT(",\"include_usage\":true,\"continuous_usage_stats\":false") },
		{ STR_INIT("\"include_usage\":true"), STR_INIT("\"include_usage\":true,\"continuous_usage_stats\":false") },
	};
	bool empty = json_scan_members(object, NULL, 0) == 0;
	return (struct api_edit){ .off = off + object.n - 1, .put = PUT[empty][usage_each] };
}

bool api_patch_usage(struct api_patch *p, const struct api_facts *f, struct str body)
{
	if (!f->stream || f->usage_asked)
		return false;
	struct json_span at = f->at_stream_options.val;
	struct api_edit e;
	if (at.n == 0)
		e = (struct api_edit){ .off = f->insert_at,
			.put = f->empty_object ? STR("\"stream_options\":{\"include_usage\":true}")
					       : STR("\"stream_options\":{\"include_usage\":true},") };
	else if (f->stream_options_object)
		e = into_object(json_span_str(body, at), at.off, f->usage_each);
	else if (str_eq(json_span_str(body, at), STR("null")))
		e = (struct api_edit){ .off = at.off, .cut = at.n, .put = STR("{\"include_usage\":true}") };
	else
		return false;
	return api_patch_add(p, body, e) == ERR_OK;
}

/* Every value of kv_cache_report_mode in the object at `at`. False: there is none, or it may hide (a key with escapes, more
 * members than are looked at, more values than can be replaced): the last one counts, so none may be missed. */
static bool replace_mode(struct api_patch *p, struct str body, struct json_span at)
{
	struct json_member in[64];
	struct str object = json_span_str(body, at);
	size_t n = json_scan_members(object, in, ARRAY_LEN(in)), found = 0;
	for (size_t i = 0; i < n; i++) {
		if (i == ARRAY_LEN(in) || str_find(json_span_str(object, in[i].key), STR("\\")) != SIZE_MAX)
			return false;
		if (!str_eq(json_span_str(object, in[i].key), STR("\"kv_cache_report_mode\"")))
			continue;
		struct api_edit e = { .off = at.off + in[i].val.off, .cut = in[i].val.n, .put = STR("\"incremental\"") };
		if (api_patch_add(p, body, e) != ERR_OK)
			return false;
		found++;
	}
	return found > 0;
}

static bool find_and_replace_mode(struct api_patch *p, struct str body)
{
	struct json_member top[128];
	size_t n = MIN(json_scan_members(body, top, ARRAY_LEN(top)), ARRAY_LEN(top));
	for (size_t i = 0; i < n; i++)
		if (str_eq(json_span_str(body, top[i].key), STR("\"vllm_xargs\"")))
			return replace_mode(p, body, top[i].val);
	return false;
}

enum err api_patch_report(struct api_patch *p, const struct api_facts *f, struct str body, struct api_fault *ret_fault)
{
	if (!f->report_full || find_and_replace_mode(p, body))
		return ERR_OK;
	*ret_fault = (struct api_fault){ "kv_cache_report_mode must be written once and without escapes", "vllm_xargs" };
	return ERR_BAD_REQUEST;
}

size_t api_patch_pieces(const struct api_patch *p, struct str body, struct str pieces[API_PATCH_PIECES], size_t *ret_bytes)
{
	size_t n = 0, at = 0, bytes = 0;
	for (size_t i = 0; i <= p->n; i++) {
		size_t end = i < p->n ? p->edits[i].off : body.n;
		struct str two[2] = { str_sub(body, at, end - at), i < p->n ? p->edits[i].put : STR("") };
		for (size_t k = 0; k < 2; k++) {
			if (two[k].n)
				pieces[n++] = two[k];
			bytes += two[k].n;
		}
		at = i < p->n ? end + p->edits[i].cut : end;
	}
	if (ret_bytes)
		*ret_bytes = bytes;
	return n;
}
