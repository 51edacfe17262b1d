/* answer_fuzz.c: any bytes as a worker's answer: chunks and whole bodies of all dialects, lists of models, token ids. */
#include <stdint.h>
#include <string.h>

#include "api/answer.h"
#include "api/models.h"
#include "base/must.h"
#include "text/ask.h"

static void whole(enum api_dialect d, struct str body)
{
	struct api_whole w;
	struct api_result r;
	api_whole_init(&w);
	size_t half = body.n / 2;
	api_whole_feed(&w, str_sub(body, 0, half));
	api_whole_feed(&w, str_skip(body, half));
	/* the tail's reader, which otherwise needs a megabyte */
	w.cut = body.n % 2;
	api_whole_read(&w, d, &r);
	must(strlen(r.id) < sizeof(r.id));
	api_whole_done(&w);
}

static void ids(enum text_form form, enum text_call call, struct str body)
{
	struct text_ids *t = NULL;
	if (text_read_answer(form, call, body, 10000, &t) != ERR_OK) {
		must(!t);
		return;
	}
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++) {
		n += t->prompts[i].n;
		for (size_t k = 0; k < t->prompts[i].n_mm; k++)
			must(t->prompts[i].mm[k].offset_tok + (uint64_t)t->prompts[i].mm[k].len_tok <= t->prompts[i].n);
	}
	must(n <= 10000);
	text_ids_unref(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str body = str_from(data, size);
	struct arena a;
	const struct api_model *m;
	size_t n;
	for (int d = API_OPENAI; d <= API_RESPONSES; d++) {
		struct api_chunk c;
		api_chunk_read((enum api_dialect)d, body, &c);
		must(strlen(c.id) < sizeof(c.id));
		whole((enum api_dialect)d, body);
	}
	arena_init(&a, 0);
	if (api_models_read(body, &a, &m, &n) == ERR_OK)
		for (size_t i = 0; i < n; i++)
			must(m[i].id.n > 0);
	arena_done(&a);
	ids(TEXT_CHAT, TEXT_RENDER, body);
	ids(TEXT_COMPLETIONS, TEXT_RENDER, body);
	ids(TEXT_CHAT, TEXT_TOKENIZE, body);
	return 0;
}
