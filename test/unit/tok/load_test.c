/* The loader is an allow-list: what it does not know it refuses by name; what the files say about tokens counts as in the
 * reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "tok/tok.h"

#define BYTE_LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}"
#define MODEL                                                                                                                              \
	"{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"\\u0120\":4,\"<\":5,\">\":6,\"x\":7,\"abc\":8},\"merges\":[\"a "  \
	"b\",[\"ab\",\"c\"]]}"

static enum err load(
	const char *normalizer, const char *pre, const char *model, const char *rest, const char *config, char *why, struct tok **ret_t)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	assert_int_equal(
		buf_printf(&b, "{\"version\":\"1.0\",\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":%s%s}", normalizer, pre, model, rest),
		ERR_OK);
	struct tok_files f = { .tokenizer_json = buf_str(&b), .config = str_of(config) };
	enum err e = tok_load(&f, why, 256, ret_t);
	buf_done(&b);
	return e;
}

static void refused(const char *normalizer, const char *pre, const char *model, const char *rest, const char *word)
{
	char why[256] = "";
	struct tok *t;
	assert_int_equal(load(normalizer, pre, model, rest, "", why, &t), ERR_UNSUPPORTED);
	if (!strstr(why, word))
		fail_msg("\"%s\" does not name %s", why, word);
}

static void test_refused_by_name(void **state)
{
	(void)state;
	refused("{\"type\":\"Lowercase\"}", BYTE_LEVEL, MODEL, "", "Lowercase");
	refused("{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\"}", BYTE_LEVEL, MODEL, "", "Precompiled");
	refused("{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},{\"type\":\"StripAccents\"}]}", BYTE_LEVEL, MODEL, "",
		"StripAccents");
	refused("{\"type\":\"Replace\",\"pattern\":{\"String\":\"x\"},\"content\":\"y\"}", BYTE_LEVEL, MODEL, "", "Replace");
	refused("null", "{\"type\":\"Whitespace\"}", MODEL, "", "Whitespace");
	refused("null", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\w+\"},\"behavior\":\"Isolated\",\"invert\":false}", MODEL, "",
		"\\w+");
	refused("null", "{\"type\":\"Split\",\"pattern\":{\"String\":\"\\\\p{N}\"},\"behavior\":\"Isolated\",\"invert\":false}", MODEL, "",
		"Split");
	refused("null", "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}\"},\"behavior\":\"Removed\",\"invert\":true}", MODEL, "",
		"behavior");
	refused("null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}", MODEL, "", "add_prefix_space");
	refused("null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"news\":1}", MODEL, "", "news");
	refused("null", "{\"type\":\"Sequence\",\"pretokenizers\":[" BYTE_LEVEL ",{\"type\":\"Digits\",\"individual_digits\":true}]}",
		MODEL, "", "Digits");
	refused("null", "null", MODEL, "", "combination");
	refused("null", BYTE_LEVEL, "{\"type\":\"Unigram\",\"vocab\":[]}", "", "Unigram");
	refused("null", BYTE_LEVEL, "{\"type\":\"WordPiece\",\"vocab\":{}}", "", "WordPiece");
	refused("null", BYTE_LEVEL, "{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{},\"merges\":[]}", "", "dropout");
	refused("null", BYTE_LEVEL, "{\"type\":\"BPE\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{},\"merges\":[]}", "", "suffix");
	refused("null", BYTE_LEVEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}", "", "id 0");
	refused("null", BYTE_LEVEL, MODEL, ",\"post_processor\":{\"type\":\"BertProcessing\"}", "BertProcessing");
}

/* llama.cpp pull 29211: a pattern written as a String is a literal, not a regex: not known, so refused. */
static void test_broken_files(void **state)
{
	(void)state;
	char why[256] = "";
	struct tok *t;
	assert_int_equal(tok_load(&(struct tok_files){ .tokenizer_json = STR("{") }, why, sizeof(why), &t), ERR_SYNTAX);
	assert_int_equal(tok_load(&(struct tok_files){ .config = STR("{}") }, why, sizeof(why), &t), ERR_NOT_FOUND);
	assert_int_equal(
		load("null", BYTE_LEVEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}", "", "", why, &t), ERR_SYNTAX);
	assert_non_null(strstr(why, "merge 0"));
	assert_int_equal(
		load("null", BYTE_LEVEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}", "", "", why, &t), ERR_SYNTAX);
	assert_int_equal(
		load("null", BYTE_LEVEL, "{\"type\":\"BPE\",\"vocab\":{\"a\":99999999},\"merges\":[]}", "", "", why, &t), ERR_LIMIT);
	assert_int_equal(load("null", BYTE_LEVEL, MODEL, ",\"added_tokens\":[{}]", "", why, &t), ERR_SYNTAX);
	assert_int_equal(tok_load(&(struct tok_files){ .tekken = STR("{}") }, why, sizeof(why), &t), ERR_SYNTAX);
	assert_int_equal(tok_load(&(struct tok_files){ .tiktoken = STR("YQ== 0\n") }, why, sizeof(why), &t), ERR_UNSUPPORTED);
	assert_int_equal(tok_load(&(struct tok_files){ .tiktoken = STR("YQ== 0\n"), .config = STR("{\"tokenizer_class\":\"X\"}") }, why,
				 sizeof(why), &t),
		ERR_UNSUPPORTED);
	assert_non_null(strstr(why, "class X"));
}

static void ids_are(const struct tok *t, struct str text, const uint32_t *want, size_t n)
{
	struct tok_scratch *s = tok_scratch_new(t, 4096);
	struct tok_ids ids = { 0 };
	assert_int_equal(tok_encode(t, s, &(struct tok_job){ .text = text, .add_bos = true, .add_eos = true }, &ids), ERR_OK);
	assert_int_equal(ids.n, n);
	if (n)
		assert_memory_equal(ids.p, want, n * sizeof(*want));
	tok_ids_done(&ids);
	tok_scratch_free(s);
}
#define IDS_ARE(t, text, ...) ids_are(t, STR(text), (uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static struct tok *loaded(const char *rest, const char *config)
{
	char why[256] = "";
	struct tok *t = NULL;
	if (load("null", BYTE_LEVEL, MODEL, rest, config, why, &t) != ERR_OK)
		fail_msg("%s", why);
	return t;
}

#define TOKEN(content, flags) "{\"id\":77,\"content\":\"" content "\"" flags "}"

static void test_merges_and_missing_bytes(void **state)
{
	(void)state;
	struct tok *t = loaded("", "");
	IDS_ARE(t, "abc ab", 8, 4, 3);
	IDS_ARE(t, "zabz", 3); /* z is not in the vocabulary: the library drops it */
	IDS_ARE(t, "azb", 3); /* and what stood around it merges */
	tok_free(t);
}

/* Far more ids than pieces, in no order; an added token may get the id of a piece and then goes before it. */
static void test_ids_far_apart(void **state)
{
	(void)state;
	char why[256] = "";
	struct tok *t;
	assert_int_equal(load("null", BYTE_LEVEL,
				 "{\"type\":\"BPE\",\"vocab\":{\"b\":3,\"a\":500000,\"ab\":40,\"\\u0120\":7,\"cd\":5},\"merges\":[\"a b\"]}",
				 ",\"added_tokens\":[" TOKEN("<x>", ",\"normalized\":false") "]", "", why, &t),
		ERR_OK);
	IDS_ARE(t, "ab a<x>", 40, 7, 500000, 5);
	assert_int_equal(tok_vocab_size(t), 500001);
	assert_true(str_eq(tok_piece(t, 5), STR("<x>")) && tok_piece(t, 4).n == 0 && str_eq(tok_piece(t, 500000), STR("a")));
	struct buf b;
	buf_init(&b, 100);
	assert_int_equal(tok_decode(t, &(struct tok_decode_job){ .ids = (uint32_t[]){ 40, 7, 500000, 5 }, .n = 4 }, &b), ERR_OK);
	assert_true(str_eq(buf_str(&b), STR("ab   a <x>")));
	buf_done(&b);
	tok_free(t);
	assert_int_equal(load("null", BYTE_LEVEL,
				 "{\"type\":\"BPE\",\"vocab\":{\"a\":3,\"b\":500000,\"c\":3},\"merges\":[]}", "", "", why, &t),
		ERR_UNSUPPORTED);
	assert_non_null(strstr(why, "the id 3"));
}

/* The id is the vocabulary's or the next free one, whatever the file says; the last word on a token counts. */
static void test_added_tokens(void **state)
{
	(void)state;
	struct tok *t = loaded(",\"added_tokens\":[" TOKEN("<x>", ",\"normalized\":false") "," TOKEN(
				       "c", ",\"normalized\":false") "," TOKEN("<y>", ",\"special\":true") "]",
		"");
	uint32_t id = 0;
	IDS_ARE(t, "a<x>b", 0, 9, 1);
	IDS_ARE(t, "abc<y>", 3, 2, 10);
	assert_true(tok_id_of(t, STR("<y>"), &id) && id == 10 && tok_is_special(t, 10) && !tok_is_special(t, 9));
	assert_true(str_eq(tok_piece(t, 10), STR("<y>")) && str_eq(tok_piece(t, 3), STR("ab")));
	assert_int_equal(tok_vocab_size(t), 11);
	tok_free(t);
	t = loaded(",\"added_tokens\":[" TOKEN("<x>", ",\"normalized\":false") "," TOKEN(
			   "<x>", ",\"normalized\":false,\"rstrip\":true,\"lstrip\":true") "]",
		"");
	IDS_ARE(t, "a <x> b", 0, 9, 1);
	tok_free(t);
}

static void test_longest_token_wins_and_single_words(void **state)
{
	(void)state;
	struct tok *t = loaded(",\"added_tokens\":[" TOKEN("<x", "") "," TOKEN("<x>", "") "," TOKEN("ab", ",\"single_word\":true") "]", "");
	IDS_ARE(t, "<x><xb", 10, 9, 1);
	IDS_ARE(t, "ab abc ab", 3, 4, 8, 4, 3); /* the token's id is that of the piece */
	tok_free(t);
}

static void test_config_adds_tokens_and_names(void **state)
{
	(void)state;
	struct tok *t = loaded(",\"added_tokens\":[" TOKEN("<x>", ",\"normalized\":false,\"special\":true") "]",
		"{\"bos_token\":{\"content\":\"<x>\"},\"eos_token\":\"<e>\",\"pad_token\":null,\"add_bos_token\":true,\"add_eos_token\":"
		"true,"
		"\"added_tokens_decoder\":{\"9\":{\"content\":\"<x>\",\"rstrip\":true,\"normalized\":false,\"special\":true},\"10\":{"
		"\"content\":\"<t>\",\"normalized\":false}}}");
	struct str s;
	IDS_ARE(t, "a<t><x> b", 9, 0, 10, 9, 1, 11);
	assert_true(tok_special_text(t, STR("bos_token"), &s) && str_eq(s, STR("<x>")));
	assert_true(tok_special_text(t, STR("eos_token"), &s) && str_eq(s, STR("<e>")));
	assert_false(tok_special_text(t, STR("pad_token"), &s));
	tok_free(t);
}

/* transformers 5 builds the pipeline of some classes anew (transformers issue 45488): the loader is told which one it is. */
#define SPACED                                                                                                                             \
	"{\"version\":\"1.0\",\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},"       \
	"{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"}]},\"pre_tokenizer\":null,"                           \
	"\"model\":{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"\u2581\":1,\"a\":2,\"<s>\":3,\"</"                   \
	"s>\":4},\"merges\":[]}}"
static void test_case_transformers_45488_worker_classes(void **state)
{
	(void)state;
	char why[256] = "";
	struct tok *t;
	struct tok_files f = { .tokenizer_json = STR(SPACED),
		.config = STR("{\"tokenizer_class\":\"LlamaTokenizerFast\",\"legacy\":true}") };
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	IDS_ARE(t, " a", 1, 1, 2); /* Prepend puts a mark before the mark */
	tok_free(t);
	f.loader = TOK_LOADER_5;
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	IDS_ARE(t, " a", 1, 2); /* Metaspace only when there is none */
	IDS_ARE(t, "a<s>a", 1, 2, 3, 1, 2); /* the class's own BOS is a token by default */
	tok_free(t);
	f.loader = TOK_LOADER_ANY;
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_UNSUPPORTED);
	assert_non_null(strstr(why, "transformers"));
	f.model_config = STR("{\"model_type\":\"deepseek_v3\"}"); /* its class on the hub is known to be wrong */
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	IDS_ARE(t, " a", 1, 1, 2);
	tok_free(t);
	f.config = STR("{}"); /* no class: the model's type names it, or nothing does */
	f.model_config = STR("{\"model_type\":\"code_llama\"}");
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_UNSUPPORTED);
	assert_non_null(strstr(why, "CodeLlamaTokenizer"));
	f.model_config = STR("{\"model_type\":\"llama\"}");
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	tok_free(t);
	f.config = STR("{\"tokenizer_class\":\"NewTokenizer\"}");
	f.model_config = STR("{\"model_type\":\"new\"}");
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_UNSUPPORTED);
	assert_non_null(strstr(why, "NewTokenizer"));
	f.config = STR("{\"tokenizer_class\":\"PreTrainedTokenizerFast\"}");
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	tok_free(t);
	f.config = STR("{\"auto_map\":{\"AutoTokenizer\":[\"x.Y\",null]}}");
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_UNSUPPORTED);
}

/* transformers 4 obeys add_bos_token, 5 does not: with an unknown loader only prompts without BOS have known ids. */
static void test_bos_depends_on_the_loader(void **state)
{
	(void)state;
	char why[256] = "";
	struct tok *t;
	struct tok_ids ids = { 0 };
	struct tok_files f = { .tokenizer_json = STR("{\"version\":\"1.0\",\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":" MODEL "}"),
		.config = STR("{\"bos_token\":\"x\",\"add_bos_token\":true,\"tokenizer_class\":\"PreTrainedTokenizerFast\"}") };
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	IDS_ARE(t, "a", 7, 0);
	tok_free(t);
	f.loader = TOK_LOADER_5;
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	IDS_ARE(t, "a", 0);
	tok_free(t);
	f.loader = TOK_LOADER_ANY;
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	struct tok_scratch *s = tok_scratch_new(t, 0);
	assert_int_equal(tok_encode(t, s, &(struct tok_job){ .text = STR("a"), .add_bos = true }, &ids), ERR_UNSUPPORTED);
	assert_int_equal(tok_encode(t, s, &(struct tok_job){ .text = STR("a") }, &ids), ERR_OK);
	assert_int_equal(ids.n, 1);
	tok_ids_done(&ids);
	tok_scratch_free(s);
	tok_free(t);
}

static void test_unknown_loader_wants_the_same_tokens(void **state)
{
	(void)state;
	char why[256] = "";
	struct tok *t;
	struct buf b;
	buf_init(&b, 1 << 16);
	assert_int_equal(buf_printf(&b, "{\"version\":\"1.0\",\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":" MODEL
					",\"added_tokens\":[" TOKEN("<x>", ",\"special\":true") "]}"),
		ERR_OK);
	struct tok_files f = { .tokenizer_json = buf_str(&b),
		.loader = TOK_LOADER_ANY,
		.config = STR("{\"tokenizer_class\":\"GPT2Tokenizer\",\"added_tokens_decoder\":{\"9\":{\"content\":\"<x>\",\"special\":"
			      "true}}}") };
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	tok_free(t);
	f.config = STR("{\"tokenizer_class\":\"GPT2Tokenizer\",\"added_tokens_decoder\":{}}");
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_UNSUPPORTED);
	f.loader = TOK_LOADER_5;
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	IDS_ARE(t, "<x>", 5, 7, 6);
	tok_free(t);
	buf_done(&b);
}

/* What tokenizers 0.23.3 (as the file stands) and transformers 5.19 (a class that builds anew) make of ids that do not fit: the first
 * gives tokens ids in the file's order, the second in the order of the file's ids, of one id the last. */
static void test_ids_that_do_not_fit(void **state)
{
	(void)state;
#define OWN(id, content) "{\"id\":" #id ",\"content\":\"" content "\",\"normalized\":false,\"special\":true}"
	enum { MOST = 7 };
	static const struct {
		const char *name, *list;
		uint32_t files[MOST], anew[MOST];
		size_t n_files, n_anew;
		const char *unknown; /* a word of the refusal when the loader is not known; NULL: it loads */
	} CASES[] = {
		{ "as they are", OWN(9, "<x>") "," OWN(10, "<y>"), { 0, 9, 1, 10, 3 }, { 0, 9, 1, 10, 3 }, 5, 5, NULL },
		{ "a gap", OWN(20, "<x>") "," OWN(22, "<y>"), { 0, 9, 1, 10, 3 }, { 0, 9, 1, 10, 3 }, 5, 5, NULL },
		{ "two with one id", OWN(9, "<x>") "," OWN(9, "<y>"), { 0, 9, 1, 10, 3 }, { 0, 5, 7, 6, 1, 9, 3 }, 5, 7, "different" },
		{ "out of order", OWN(10, "<x>") "," OWN(9, "<y>"), { 0, 9, 1, 10, 3 }, { 0, 10, 1, 9, 3 }, 5, 5, "different" },
		{ "another piece's", OWN(3, "<x>"), { 0, 9, 1, 5, 6, 3 }, { 0, 9, 1, 5, 6, 3 }, 6, 6, NULL },
		{ "a piece under another id", OWN(20, "ab"), { 0, 5, 7, 6, 1, 5, 6 }, { 0, 5, 7, 6, 1, 5, 6 }, 7, 7, NULL },
		{ "one twice", OWN(9, "<x>") "," OWN(10, "<x>"), { 0, 9, 1, 5, 6, 3 }, { 0, 9, 1, 5, 6, 3 }, 6, 6, NULL },
	};
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		char why[256] = "";
		struct buf b;
		struct tok *t;
		struct str text = strstr(CASES[i].list, "ab") ? STR("a<x>b<y>") : STR("a<x>b<y>ab");
		buf_init(&b, 1 << 16);
		assert_int_equal(buf_printf(&b, "{\"version\":\"1.0\",\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":" MODEL ",\"added_tokens\":[%s]}",
					 CASES[i].list),
			ERR_OK);
		struct tok_files f = { .tokenizer_json = buf_str(&b), .config = STR("{\"tokenizer_class\":\"GPT2Tokenizer\"}") };
		print_message("%s\n", CASES[i].name);
		assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
		ids_are(t, text, CASES[i].files, CASES[i].n_files);
		tok_free(t);
		f.loader = TOK_LOADER_ANY;
		assert_int_equal(tok_load(&f, why, sizeof(why), &t), CASES[i].unknown ? ERR_UNSUPPORTED : ERR_OK);
		if (CASES[i].unknown)
			assert_non_null(strstr(why, CASES[i].unknown));
		else
			tok_free(t);
		f.loader = TOK_LOADER_5;
		assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
		ids_are(t, text, CASES[i].anew, CASES[i].n_anew);
		tok_free(t);
		buf_done(&b);
	}
}

/* The config's list by id: with an unknown loader its order must be the file's. */
static void test_two_lists_in_another_order(void **state)
{
	(void)state;
	char why[256] = "";
	struct tok *t;
	struct tok_files f = { .tokenizer_json = STR("{\"version\":\"1.0\",\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":" MODEL
						     ",\"added_tokens\":[" OWN(9, "<x>") "," OWN(10, "<y>") "]}"),
		.config = STR("{\"tokenizer_class\":\"GPT2Tokenizer\",\"added_tokens_decoder\":{\"10\":" OWN(10, "<x>") ",\"9\":" OWN(9, "<y>") "}}") };
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	IDS_ARE(t, "<x><y>", 9, 10);
	tok_free(t);
	f.loader = TOK_LOADER_5;
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	IDS_ARE(t, "<x><y>", 10, 9);
	tok_free(t);
	f.loader = TOK_LOADER_ANY;
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_UNSUPPORTED);
	assert_non_null(strstr(why, "different tokens"));
}

/* Which flags count depends on the order in which a loader tells tokens: refused, but for the file as it stands. */
static void test_other_flags(void **state)
{
	(void)state;
	static const struct {
		const char *list, *config;
	} CASES[] = {
		{ OWN(9, "<x>") ",{\"id\":10,\"content\":\"<x>\",\"rstrip\":true}", "{\"tokenizer_class\":\"GPT2Tokenizer\"}" },
		{ OWN(9, "<x>"), "{\"added_tokens_decoder\":{\"9\":{\"content\":\"<x>\",\"normalized\":true}}}" },
		{ "{\"id\":9,\"content\":\"<x>\",\"lstrip\":true,\"special\":true}", "{\"tokenizer_class\":\"Qwen2Tokenizer\",\"eos_token\":\"<x>\"}" },
	};
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		char why[256] = "";
		struct buf b;
		struct tok *t;
		buf_init(&b, 1 << 16);
		assert_int_equal(buf_printf(&b, "{\"version\":\"1.0\",\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":" MODEL ",\"added_tokens\":[%s]}",
					 CASES[i].list),
			ERR_OK);
		struct tok_files f = { .tokenizer_json = buf_str(&b), .config = str_of(CASES[i].config) };
		assert_int_equal(tok_load(&f, why, sizeof(why), &t), i == 2 ? ERR_UNSUPPORTED : ERR_OK);
		if (i < 2)
			tok_free(t);
		f.loader = TOK_LOADER_5;
		assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_UNSUPPORTED);
		assert_non_null(strstr(why, "<x>"));
		buf_done(&b);
	}
}

/* added_tokens.json is taken when it says nothing new. */
static void test_old_list_of_added_tokens(void **state)
{
	(void)state;
	char why[256] = "";
	struct tok *t;
	struct tok_files f = { .tokenizer_json = STR("{\"version\":\"1.0\",\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":" MODEL
						     ",\"added_tokens\":[" OWN(9, "<x>") "]}"),
		.added = STR("{\"<x>\":9}") };
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	tok_free(t);
	static const char *const NEWS[] = { "{\"<x>\":9,\"<z>\":10}", "{\"<x>\":8}" };
	for (size_t i = 0; i < 2; i++) {
		f.added = str_of(NEWS[i]);
		assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_UNSUPPORTED);
		assert_non_null(strstr(why, "added_tokens.json"));
	}
	f.config = STR("{\"added_tokens_decoder\":{\"9\":" OWN(9, "<x>") "}}"); /* then nobody reads it */
	assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
	tok_free(t);
}

/* gigatoken issue 37: U+1FAE8 is a symbol in Unicode 16 and nothing in 14. */
static void test_an_unknown_unicode_version_is_not_guessed(void **state)
{
	(void)state;
	char why[256] = "";
	struct tok *t;
	struct tok_ids ids = { 0 };
	struct tok_files f = { .tokenizer_json = STR("{\"version\":\"1.0\",\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":" MODEL "}") };
	const struct tok_job job = { .text = STR("a \xf0\x9f\xab\xa8 b") };
	for (enum tok_unicode u = TOK_UNICODE_16; u <= TOK_UNICODE_ANY; u++) {
		f.unicode = u;
		assert_int_equal(tok_load(&f, why, sizeof(why), &t), ERR_OK);
		struct tok_scratch *s = tok_scratch_new(t, 0);
		assert_int_equal(tok_encode(t, s, &job, &ids), u == TOK_UNICODE_ANY ? ERR_UNSUPPORTED : ERR_OK);
		IDS_ARE(t, "a \xe4\xb8\xad\xc3\xa9\xf0\x9f\x98\x80 b", 0, 4, 4, 1); /* on these they agree */
		tok_scratch_free(s);
		tok_free(t);
	}
	tok_ids_done(&ids);
}

static void test_fingerprint_depends_on_all(void **state)
{
	(void)state;
	struct tok *a = loaded("", ""), *b = loaded("", ""), *c = loaded("", "{\"pad_token\":\"<p>\"}"), *d = loaded(",\"x\":1", "");
	struct hash128 h = tok_fingerprint(a);
	assert_true(h.lo == tok_fingerprint(b).lo && h.hi == tok_fingerprint(b).hi);
	assert_true(h.lo != tok_fingerprint(c).lo && h.lo != tok_fingerprint(d).lo);
	assert_string_equal(tok_scheme_name(a), "gpt2");
	assert_true(tok_bytes_held(a) > 1000);
	tok_free(a);
	tok_free(b);
	tok_free(c);
	tok_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_by_name),
		cmocka_unit_test(test_broken_files),
		cmocka_unit_test(test_merges_and_missing_bytes),
		cmocka_unit_test(test_ids_far_apart),
		cmocka_unit_test(test_added_tokens),
		cmocka_unit_test(test_longest_token_wins_and_single_words),
		cmocka_unit_test(test_config_adds_tokens_and_names),
		cmocka_unit_test(test_case_transformers_45488_worker_classes),
		cmocka_unit_test(test_bos_depends_on_the_loader),
		cmocka_unit_test(test_unknown_loader_wants_the_same_tokens),
		cmocka_unit_test(test_ids_that_do_not_fit),
		cmocka_unit_test(test_two_lists_in_another_order),
		cmocka_unit_test(test_other_flags),
		cmocka_unit_test(test_old_list_of_added_tokens),
		cmocka_unit_test(test_an_unknown_unicode_version_is_not_guessed),
		cmocka_unit_test(test_fingerprint_depends_on_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
