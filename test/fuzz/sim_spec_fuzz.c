/* sim_spec_fuzz.c: any bytes as a fault SPEC and as the body of each of the simulator's calls. */
#include <stdint.h>

#include "base/must.h"
#include "sim/fault.h"
#include "sim/spec.h"

static struct sim_vocab *vocab;

static void call(enum sim_api api, const struct json_val *body)
{
	struct sim_serving s = { .model = STR("m"), .max_model_tok = 4096, .default_new_tok = 8, .vocab = vocab };
	struct sim_spec_call c;
	struct sim_fail f;
	struct buf b;
	if (!sim_spec_read(&s, api, body, &c, &f)) {
		buf_init(&b, 16 << 10);
		must(f.status >= 400 && f.status < 500 && sim_fail_write(&f, &b) == ERR_OK);
		buf_done(&b);
		return;
	}
	must(c.n >= 1 && c.max_new >= 1 && c.prompts.n >= 1);
	for (size_t i = 0; i < c.prompts.n; i++) {
		const struct sim_prompt *p = &c.prompts.p[i];
		must(p->tok.n < s.max_model_tok);
		for (size_t k = 0; k < p->tok.n; k++)
			must(p->tok.p[k] < SIM_VOCAB);
	}
	sim_spec_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum sim_api apis[] = { SIM_CHAT, SIM_COMPLETION, SIM_RESPONSES, SIM_MESSAGES, SIM_GENERATE };
	struct str text = str_from(data, size);
	struct json_doc *doc;
	struct sim_fault f;
	if (!vocab)
		vocab = sim_vocab_new();
	if (sim_fault_parse(text, &f) == ERR_OK)
		must(f.kind < SIM_FAULT_COUNT_ && f.from <= f.to);
	if (json_parse(text, 64 << 10, &doc) != ERR_OK)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(apis); i++)
		call(apis[i], json_root(doc));
	json_free(doc);
	return 0;
}
