/* load_worker.c: which pipeline the worker's own loader makes of the files. transformers 4 takes tokenizer.json as it stands.
 * transformers 5 looks at the model's type and at tokenizer_class, and for some classes builds the pipeline anew from
 * vocabulary and merges, whatever tokenizer.json says. The lists below are those of its 5.19. */
#include "tok/tok_priv.h"
#include "wire/json.h"

#define S(x) STR_INIT(x)

/* Model types whose class on the hub is known to be wrong: tokenizer.json counts. */
static const struct str FILE_TYPES[] = {
	S("arctic"),
	S("aria"),
	S("chameleon"),
	S("chatlm"),
	S("deepseek_ocr"),
	S("deepseek_ocr2"),
	S("deepseek_v2"),
	S("deepseek_v3"),
	S("deepseek_v32"),
	S("deepseek_v4"),
	S("deepseek_vl"),
	S("deepseek_vl_hybrid"),
	S("deepseek_vl_v2"),
	S("ernie4_5"),
	S("ernie4_5_moe"),
	S("flex_olmo"),
	S("fuyu"),
	S("glm"),
	S("glm4"),
	S("glm4_moe"),
	S("glm4_moe_lite"),
	S("glm4v"),
	S("glm4v_moe"),
	S("glm_image"),
	S("glmasr"),
	S("got_ocr2"),
	S("gpt_bigcode"),
	S("granite"),
	S("granitemoe"),
	S("granitemoehybrid"),
	S("granitemoeshared"),
	S("h2ovl_chat"),
	S("hyperclovax"),
	S("hyperclovax_vlm"),
	S("internlm2"),
	S("jamba"),
	S("janus"),
	S("kimi_k25"),
	S("kimi_linear"),
	S("llava"),
	S("llava_next"),
	S("mimo_v2_flash"),
	S("minicpm3"),
	S("minicpmv"),
	S("minicpmv4_6"),
	S("minicpmv4_7"),
	S("minimax_m2"),
	S("molmo"),
	S("molmo2"),
	S("nemotron"),
	S("nvfp4"),
	S("olmo2"),
	S("olmo3"),
	S("olmo_hybrid"),
	S("opencua"),
	S("openvla"),
	S("paddleocr_vl"),
	S("persimmon"),
	S("phi3"),
	S("phi3_v"),
	S("phimoe"),
	S("pix2struct"),
	S("smolvlm"),
	S("stablelm"),
	S("step3_vl"),
	S("step3p5"),
	S("vipllava"),
};
/* Mistral's: tokenizer.json too, unless the folder is in their own format. */
static const struct str MISTRAL_TYPES[] = {
	S("ministral"),
	S("ministral3"),
	S("mistral"),
	S("mistral3"),
	S("mixtral"),
	S("pixtral"),
	S("voxtral"),
	S("voxtral_realtime"),
};
/* Model types whose own class counts, whatever the hub says. */
static const struct {
	struct str type, class;
} FORCED[] = {
	{ S("qwen2"), S("Qwen2Tokenizer") },
	{ S("qwen3_5"), S("Qwen3_5Tokenizer") },
	{ S("qwen3_5_moe"), S("Qwen3_5Tokenizer") },
	{ S("qwen3_5_moe_text"), S("Qwen3_5Tokenizer") },
	{ S("qwen4_exp"), S("Qwen3_5Tokenizer") },
};
/* Without a tokenizer_class the model's type names it; of a type that is not here tokenizer.json counts. */
static const struct {
	struct str class, types;
} OWN_CLASS[] = {
	{ S("Qwen2Tokenizer"),
		S(" audioflamingo3 colqwen2 cosmos3_omni fun_asr_nano hunyuan_vl internvl ovis2 qianfan_ocr qwen2 qwen2_5_omni qwen2_5_vl "
		  "qwen2_audio qwen2_moe qwen2_vl qwen3 qwen3_asr qwen3_moe qwen3_next qwen3_omni_moe qwen3_vl qwen3_vl_moe ") },
	{ S("Qwen3_5Tokenizer"), S(" qwen3_5_text ") },
	{ S("CohereTokenizer"), S(" aya_vision cohere cohere2 ") },
	{ S("GPT2Tokenizer"), S(" codegen dbrx emu3 gpt2 gpt_neo gptj jais2 opt phi starcoder2 ") },
	{ S("GemmaTokenizer"),
		S(" diffusion_gemma gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text recurrent_gemma shieldgemma2 t5gemma zaya ") },
	{ S("GPTNeoXTokenizer"), S(" falcon_mamba gpt_neox mamba mamba2 mpt olmo olmoe rwkv ") },
	{ S("LlamaTokenizer"), S(" idefics idefics2 ") },
	{ S("CodeLlamaTokenizer"), S(" code_llama ") },
};
static const struct str FILE_CLASSES[] = { S("PreTrainedTokenizer"), S("TokenizersBackend"), S("PythonBackend") };

#define NAMED(name, text)                                                                                                                  \
	{                                                                                                                                  \
		S(name), S(text)                                                                                                           \
	}
#define ENDOFTEXT "<|endoftext|>"
#define QWEN "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?"
#define QWEN_ENDS "[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct tok_worker_class CLASSES[] = {
	{ S("Qwen2Tokenizer"), TOK_FORM_NFC, { S(QWEN "\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+" QWEN_ENDS) }, TOK_CLASS_BYTES, true,
		{ NAMED("unk_token", ENDOFTEXT), NAMED("eos_token", ENDOFTEXT), NAMED("pad_token", ENDOFTEXT) } },
	{ S("Qwen3_5Tokenizer"), TOK_FORM_NFC, { S(QWEN "[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+" QWEN_ENDS) }, TOK_CLASS_BYTES, false,
		{ NAMED("unk_token", ENDOFTEXT), NAMED("eos_token", ENDOFTEXT), NAMED("pad_token", ENDOFTEXT) } },
	{ S("CohereTokenizer"), TOK_FORM_NFC, { S("<digits>"), S("<gpt2>") }, TOK_CLASS_BYTES, false,
		{ NAMED("unk_token", "<UNK>"), NAMED("bos_token", "<BOS_TOKEN>"), NAMED("eos_token", "<|END_OF_TURN_TOKEN|>"),
			NAMED("pad_token", "<PAD>"), NAMED("cls_token", "<CLS>"), NAMED("sep_token", "<SEP>"),
			NAMED("mask_token", "<MASK_TOKEN>") } },
	{ S("GPT2Tokenizer"), TOK_FORM_NONE, { S("<gpt2>") }, TOK_CLASS_BYTES, false,
		{ NAMED("unk_token", ENDOFTEXT), NAMED("bos_token", ENDOFTEXT), NAMED("eos_token", ENDOFTEXT) } },
	{ S("GPTNeoXTokenizer"), TOK_FORM_NFC, { S("<gpt2>") }, TOK_CLASS_BYTES, false,
		{ NAMED("unk_token", ENDOFTEXT), NAMED("bos_token", ENDOFTEXT), NAMED("eos_token", ENDOFTEXT),
			NAMED("pad_token", "<|padding|>") } },
	{ S("LlamaTokenizer"), TOK_FORM_NONE, { { NULL, 0 } }, TOK_CLASS_METASPACE, false,
		{ NAMED("unk_token", "<unk>"), NAMED("bos_token", "<s>"), NAMED("eos_token", "</s>") } },
	{ S("GemmaTokenizer"), TOK_FORM_NONE, { { NULL, 0 } }, TOK_CLASS_SPACES, false,
		{ NAMED("unk_token", "<unk>"), NAMED("bos_token", "<bos>"), NAMED("eos_token", "<eos>"), NAMED("pad_token", "<pad>"),
			NAMED("mask_token", "<mask>") } },
};

static bool among(struct str s, const struct str *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(s, list[i]))
			return true;
	return false;
}
#define AMONG(s, list) among(s, list, ARRAY_LEN(list))

static struct str text_of(const struct json_val *v)
{
	struct str s = { "", 0 };
	(void)json_str(v, &s);
	return s;
}

static struct str plain_name(struct str class) { return str_ends(class, STR("Fast")) ? str_sub(class, 0, class.n - 4) : class; }

static struct str own_class(struct str type)
{
	for (size_t i = 0; i < ARRAY_LEN(OWN_CLASS) && type.n; i++)
		for (struct str left = OWN_CLASS[i].types, word; left.n;) {
			(void)str_cut(left, ' ', &word, &left);
			if (str_eq(word, type))
				return OWN_CLASS[i].class;
		}
	return (struct str){ "", 0 };
}

enum err tok_worker_class_find(const struct json_val *config, const struct json_val *model, bool own_format,
	const struct tok_worker_class **ret_c, struct tok_why why)
{
	struct str type = text_of(json_get(model, STR("model_type"))), hub = text_of(json_get(config, STR("tokenizer_class")));
	if (hub.n == 0)
		hub = text_of(json_get(model, STR("tokenizer_class")));
	struct str class = plain_name(hub);
	*ret_c = NULL;
	if (json_get(json_get(config, STR("auto_map")), STR("AutoTokenizer")) && !AMONG(type, FILE_TYPES))
		return tok_say(why, ERR_UNSUPPORTED, "this tokenizer brings code of its own");
	if (AMONG(type, FILE_TYPES))
		return ERR_OK;
	if (AMONG(type, MISTRAL_TYPES))
		return own_format ? tok_say(why, ERR_UNSUPPORTED,
					    "this folder holds Mistral's own format beside tokenizer.json: which one counts is not known")
				  : ERR_OK;
	if (class.n == 0)
		class = own_class(type);
	for (size_t i = 0; i < ARRAY_LEN(FORCED); i++)
		if (str_eq(type, FORCED[i].type))
			class = FORCED[i].class;
	if (AMONG(class, FILE_CLASSES) || class.n == 0)
		return ERR_OK;
	for (size_t i = 0; i < ARRAY_LEN(CLASSES); i++)
		if (str_eq(class, CLASSES[i].name)) {
			*ret_c = &CLASSES[i];
			return ERR_OK;
		}
	return tok_say(why, ERR_UNSUPPORTED, "what the worker makes of the class %.*s is not known", STR_ARG(class));
}

/* The pipeline that the class builds. */
enum err tok_worker_pipeline(
	const struct tok_worker_class *c, const struct json_val *config, struct tok_pipeline *ret_p, struct tok_why why)
{
	struct tok_pipeline p = {
		.form = c->form, .byte_level = c->kind == TOK_CLASS_BYTES, .byte_fallback = c->kind != TOK_CLASS_BYTES, .fuse_unk = true
	};
	bool prefix = c->kind == TOK_CLASS_METASPACE, legacy = false;
	(void)json_bool(json_get(config, STR("add_prefix_space")), &prefix);
	(void)json_bool(json_get(config, STR("legacy")), &legacy);
	if (prefix && c->kind == TOK_CLASS_BYTES)
		return tok_say(why, ERR_UNSUPPORTED, "add_prefix_space is not supported");
	for (size_t i = 0; i < ARRAY_LEN(c->stages) && c->stages[i].n; i++)
		p.stages[p.n_stages++] = tok_splitter_find(c->stages[i]);
	p.replaces = c->kind == TOK_CLASS_SPACES;
	p.metaspace = c->kind == TOK_CLASS_METASPACE;
	if (p.metaspace)
		p.prepend = !prefix ? TOK_PREPEND_NEVER : legacy ? TOK_PREPEND_MISSING : TOK_PREPEND_FIRST;
	p.unk_known = p.replaces;
	*ret_p = p;
	return ERR_OK;
}

bool tok_pipeline_same(const struct tok_pipeline *a, const struct tok_pipeline *b)
{
	bool same = a->form == b->form && a->byte_level == b->byte_level && a->replaces == b->replaces && a->prepends == b->prepends &&
		    a->metaspace == b->metaspace && a->prepend == b->prepend && a->split == b->split && a->n_stages == b->n_stages &&
		    a->whole_words == b->whole_words && a->byte_fallback == b->byte_fallback && a->unk_known == b->unk_known &&
		    (!a->unk_known || a->fuse_unk == b->fuse_unk);
	for (size_t i = 0; i < a->n_stages && same; i++)
		same = a->stages[i]->split == b->stages[i]->split;
	return same;
}
