/* api/patch.h: changes to a body without writing it anew: edits become pieces that point into the old body.
 *
 *   struct api_patch p = {0};
 *   if (api_patch_usage(&p, &facts, body)) ...        // stream_options.include_usage = true
 *   size_t n = api_patch_pieces(&p, body, pieces);     // pieces[API_PATCH_PIECES], for struct http_call_opts
 *
 * Slices of inserted text are static or live in the patch. Pure; owns nothing on the heap. */
#ifndef API_PATCH_H
#define API_PATCH_H

#include "api/facts.h"

enum { API_PATCH_EDITS = 4, API_PATCH_PIECES = 2 * API_PATCH_EDITS + 1 };

struct api_edit {
	size_t off, cut;
	struct str put;
};
struct api_patch {
	struct api_edit edits[API_PATCH_EDITS]; /* ascending, not overlapping */
	size_t n;
};

/* LIMIT: too many. RANGE: overlaps another edit, or lies outside the body. */
must_use enum err api_patch_add(struct api_patch *p, struct str body, struct api_edit e);
/* Adds or replaces so that stream_options.include_usage is true; false: nothing to do (no stream, asked already, or not
 * possible: stream_options of a wrong type, which the worker will refuse itself). */
bool api_patch_usage(struct api_patch *p, const struct api_facts *f, struct str body);
/* vllm_xargs.kv_cache_report_mode "full" becomes "incremental": such a request makes a worker announce blocks again that it
 * holds already, an event that looks like a second copy and is none, after which no index can count (the shared facts,
 * vllm-observed I.4). BAD_REQUEST: the member is there but hidden behind escapes or too many others. */
must_use enum err api_patch_report(struct api_patch *p, const struct api_facts *f, struct str body, struct api_fault *ret_fault);
/* Non-empty pieces that, joined, are the patched body. Returns how many; *ret_bytes (may be NULL): their sum. */
size_t api_patch_pieces(const struct api_patch *p, struct str body, struct str pieces[API_PATCH_PIECES], size_t *ret_bytes);

#endif
