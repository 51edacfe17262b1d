/* body_fuzz.c: any request body through a model's templates and tokenizer. The first byte picks the template, the worker's version
 * and the form of the body. Asked: no crash, no leak, a reason for every refusal, and the same ids twice. */
#include <stdint.h>
#include <stdlib.h>

#include "base/must.h"
#include "text/local.h"

static const char TOKENIZER[] =
	"{\"version\":\"1.0\",\"added_tokens\":[{\"id\":4,\"content\":\"<s>\",\"special\":true,\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false}],"
	"\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
	"\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
	"\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,"
	"\"byte_fallback\":false,\"ignore_merges\":false,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3},\"merges\":[[\"a\",\"b\"]]}}";
static const char CONFIG[] = "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"bos_token\":\"<s>\"}";
static const char *const TEMPLATES[] = {
	"{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}{{ c|tojson }}{% endfor %}{{ m.reasoning }}{% endfor %}{{ tools|tojson }}",
	"{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{{ m }}{% endfor %}{{ documents }}{{ enable_thinking }}{% if add_generation_prompt %}>{% endif %}",
};

static struct text_local_scratch *models[ARRAY_LEN(TEMPLATES)][2];

static void load(size_t t, bool known)
{
	struct text_local_files f = { .known_version = known };
	struct text_local *l;
	char why[256];
	f.text[TEXT_FILE_TOKENIZER] = str_of(TOKENIZER);
	f.text[TEXT_FILE_CONFIG] = str_of(CONFIG);
	f.text[TEXT_FILE_TEMPLATE] = str_of(TEMPLATES[t]);
	must(text_local_load(&f, why, sizeof(why), &l) == ERR_OK && text_local_has_chat(l));
	models[t][known] = text_local_scratch_new(l, 1 << 16);
	text_local_unref(l);
}

static void same(const struct text_ids *a, const struct text_ids *b)
{
	must(a->n == b->n);
	for (size_t p = 0; p < a->n; p++) {
		must(a->prompts[p].n == b->prompts[p].n);
		for (size_t i = 0; i < a->prompts[p].n; i++)
			must(a->prompts[p].ids[i] == b->prompts[p].ids[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	size_t t = data[0] % ARRAY_LEN(TEMPLATES);
	bool known = data[0] & 4;
	static const enum text_form FORMS[] = { TEXT_CHAT, TEXT_COMPLETIONS, TEXT_RESPONSES, TEXT_MESSAGES };
	if (!models[t][known])
		load(t, known);
	struct text_local_job job = { .form = FORMS[data[0] >> 3 & 3], .body = str_from(data + 1, size - 1), .now_s = 1772366096, .max_tok = 1 << 20 };
	struct text_ids *ids, *again;
	const char *why = NULL;
	if (text_local_ids(models[t][known], &job, &ids, &why) != ERR_OK) {
		must(why != NULL);
		return 0;
	}
	must(text_local_ids(models[t][known], &job, &again, &why) == ERR_OK);
	same(ids, again);
	text_ids_unref(ids);
	text_ids_unref(again);
	return 0;
}
