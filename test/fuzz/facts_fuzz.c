/* facts_fuzz.c: any body on both kv-routed paths: facts, the patch, and both calls for token ids. The patched body must be
 * JSON that asks for usage; a body for /tokenize must be JSON too. */
#include <stdint.h>

#include "api/patch.h"
#include "base/must.h"
#include "text/ask.h"

static void check_patch(const struct api_path *path, const struct api_facts *f, struct str body, struct arena *a)
{
	struct api_patch p = { 0 };
	struct api_facts g;
	struct api_fault fault;
	struct str pieces[API_PATCH_PIECES];
	struct buf b;
	size_t bytes;
	if (!api_patch_usage(&p, f, body))
		return;
	buf_init(&b, body.n + 1000);
	size_t n = api_patch_pieces(&p, body, pieces, &bytes);
	for (size_t i = 0; i < n; i++)
		must(buf_add(&b, pieces[i]) == ERR_OK);
	must(bytes == b.n);
	must(api_facts_read(path, buf_str(&b), &(struct json_body_opts){ .max_bytes = b.n }, a, &g, &fault) == ERR_OK && g.usage_asked && g.stream);
	must(g.digest.lo == f->digest.lo && g.digest.hi == f->digest.hi);
	buf_done(&b);
}

static void check_ask(enum text_form form, struct str body)
{
	struct buf b;
	struct json_doc *d;
	buf_init(&b, body.n + 1000);
	must(text_put_ask(&b, form, TEXT_RENDER, body) == (text_has_render(form) ? ERR_OK : ERR_UNSUPPORTED));
	buf_clear(&b);
	if (text_put_ask(&b, form, TEXT_TOKENIZE, body) == ERR_OK) {
		must(json_parse(buf_str(&b), b.n, &d) == ERR_OK);
		json_free(d);
	}
	buf_done(&b);
}

static void check(const char *target, enum text_form form, struct str body)
{
	const struct api_path *path = api_path_find(STR("POST"), str_of(target), NULL);
	struct arena a;
	struct api_facts f;
	struct api_fault fault = { 0 };
	arena_init(&a, 0);
	if (api_facts_read(path, body, &(struct json_body_opts){ .max_bytes = 1 << 20 }, &a, &f, &fault) == ERR_OK) {
		must(f.prompt_head.n <= 1024 && f.prompt_text_bytes <= 2 * body.n);
		check_patch(path, &f, body, &a);
		check_ask(form, body);
	} else {
		must(fault.message);
	}
	arena_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str body = str_from(data, size);
	check("/v1/chat/completions", TEXT_CHAT, body);
	check("/v1/completions", TEXT_COMPLETIONS, body);
	check("/v1/embeddings", TEXT_EMBEDDINGS, body);
	check("/v1/rerank", TEXT_SCORE, body);
	(void)api_form_model(STR("multipart/form-data; boundary=BB"), body);
	return 0;
}
