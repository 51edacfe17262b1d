/* body_fuzz.c: any request body through a model's templates (or the harmony form) and tokenizer. The first byte picks the template, the worker's version,
 * the form of the body, and whether the text before its images will do. Asked: no crash, no leak, a reason for every refusal, and the same ids twice. */
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
/* As much of o200k_harmony as its prompts need. */
static const char HARMONY[] =
	"{\"version\":\"1.0\",\"added_tokens\":["
#define TOKEN(id, text) "{\"id\":" #id ",\"content\":\"" text "\",\"special\":true,\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false}"
	TOKEN(200005, "<|channel|>") "," TOKEN(200006, "<|start|>") "," TOKEN(200007, "<|end|>") "," TOKEN(200008, "<|message|>") "," TOKEN(200012, "<|call|>")
	"],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":\""
	"[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
	"[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?[\\\\p{Lu}\\\\p{Lt}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]+[\\\\p{Ll}\\\\p{Lm}\\\\p{Lo}\\\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
	"\\\\p{N}{1,3}| ?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n/]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},"
	"{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}]},"
	"\"post_processor\":null,\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
	"\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":false,"
	"\"byte_fallback\":false,\"ignore_merges\":true,\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"\\u0120\":3,"
	"\"<|channel|>\":200005,\"<|start|>\":200006,\"<|end|>\":200007,\"<|message|>\":200008,\"<|call|>\":200012},\"merges\":[[\"a\",\"b\"]]}}";
static const char CONFIG[] = "{\"tokenizer_class\":\"PreTrainedTokenizerFast\",\"bos_token\":\"<s>\"}";
static const char *const TEMPLATES[] = {
	"{{ bos_token }}{% for m in messages %}{{ m.role }}:{{ m.content }}{% for c in m.tool_calls or [] %}{{ c|tojson }}{% endfor %}{{ m.reasoning }}{% endfor %}{{ tools|tojson }}",
	"{% for m in messages %}{% for c in m.content %}{{ c }}{% endfor %}{{ m }}{% endfor %}{{ documents }}{{ enable_thinking }}{% if add_generation_prompt %}>{% endif %}",
};

enum { HARMONY_AT = ARRAY_LEN(TEMPLATES), MODELS };   /* the last one is GPT-OSS */
static struct text_local_scratch *models[MODELS][2];

static void load(size_t t, bool known)
{
	struct text_local_files f = { .known_version = known };
	struct text_local *l;
	char why[256];
	f.text[TEXT_FILE_TOKENIZER] = t == HARMONY_AT ? str_of(HARMONY) : str_of(TOKENIZER);
	f.text[TEXT_FILE_CONFIG] = str_of(CONFIG);
	if (t == HARMONY_AT)
		f.text[TEXT_FILE_MODEL] = STR("{\"model_type\":\"gpt_oss\"}");
	else
		f.text[TEXT_FILE_TEMPLATE] = str_of(TEMPLATES[t]);
	must(text_local_load(&f, why, sizeof(why), &l) == ERR_OK && (text_local_has_chat(l) || (t == HARMONY_AT && !known)));
	models[t][known] = text_local_scratch_new(l, 1 << 16);
	text_local_unref(l);
}

static void same(const struct text_ids *a, const struct text_ids *b)
{
	must(a->n == b->n && text_ids_is_prefix(a) == text_ids_is_prefix(b));
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
	size_t t = data[0] & 1;
	bool known = data[0] & 4;
	if (data[0] & 2)
		t = HARMONY_AT;
	static const enum text_form FORMS[] = { TEXT_CHAT, TEXT_COMPLETIONS, TEXT_RESPONSES, TEXT_MESSAGES, TEXT_EMBEDDINGS, TEXT_SCORE };
	if (!models[t][known])
		load(t, known);
	struct text_local_job job = { .form = FORMS[(data[0] >> 3 & 7) % ARRAY_LEN(FORMS)], .body = str_from(data + 1, size - 1), .now_s = 1772366096, .max_tok = 1 << 20, .model_tok = 24,
		.prefix_will_do = data[0] & 0x40 };
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
