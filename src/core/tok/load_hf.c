/* load_hf.c: tokenizer.json as an allow-list. Each component is read by the function of its type; a type, a member or a
 * combination that is not here is refused by name. */
#include <stdlib.h>
#include <string.h>

#include "tok/tok_priv.h"
#include "wire/json.h"

static const struct str MARK = STR_INIT("\xe2\x96\x81");

struct loading {
	struct tok *t;
	struct tok_why why;
	struct tok_pipeline p;
	bool no_op_split, templated;
	struct tok_adding adding;
	struct tok_config c;
	enum tok_loader loader;
};

static struct str type_of(const struct json_val *v)
{
	struct str type = STR("of no type");
	(void)json_str(json_get(v, STR("type")), &type);
	return type;
}

/* Refuses members that are not in the list (separated by spaces): one day they would mean something. */
static enum err only(struct loading *l, const struct json_val *v, const char *what, const char *members)
{
	for (struct json_iter it = json_each(v); json_next(&it);) {
		struct str left = str_of(members), word;
		bool known = false;
		while (!known && left.n) {
			(void)str_cut(left, ' ', &word, &left);
			known = str_eq(word, it.key);
		}
		if (!known)
			return tok_say(l->why, ERR_UNSUPPORTED, "%s has the unknown member %.*s", what, STR_ARG(it.key));
	}
	return ERR_OK;
}

static bool is_str(const struct json_val *v, struct str want)
{
	struct str s;
	return json_str(v, &s) && str_eq(s, want);
}

/* ---- normalizers */

static enum err read_form(struct loading *l, enum tok_form form)
{
	if (l->p.form != TOK_FORM_NONE || l->p.replaces || l->p.prepends)
		return tok_say(l->why, ERR_UNSUPPORTED, "a normal form beside another normalizer is not supported");
	l->p.form = form;
	return ERR_OK;
}

static enum err read_replace(struct loading *l, const struct json_val *v)
{
	TRY(only(l, v, "the normalizer Replace", "type pattern content"));
	if (!is_str(json_get(json_get(v, STR("pattern")), STR("String")), STR(" ")) || !is_str(json_get(v, STR("content")), MARK))
		return tok_say(l->why, ERR_UNSUPPORTED, "a normalizer Replace other than of the space by U+2581 is not supported");
	if (l->p.form != TOK_FORM_NONE)
		return tok_say(l->why, ERR_UNSUPPORTED, "the normalizer Replace behind a normal form is not supported");
	l->p.replaces = true;
	return ERR_OK;
}

static enum err read_prepend(struct loading *l, const struct json_val *v)
{
	TRY(only(l, v, "the normalizer Prepend", "type prepend"));
	if (!is_str(json_get(v, STR("prepend")), MARK) || l->p.prepends || l->p.form != TOK_FORM_NONE)
		return tok_say(l->why, ERR_UNSUPPORTED, "a normalizer Prepend other than one of U+2581 is not supported");
	l->p.prepends = true;
	return ERR_OK;
}

static enum err read_normalizer(struct loading *l, const struct json_val *v)
{
	static const struct {
		struct str type;
		enum tok_form form;
	} FORMS[] = {
		{ STR_INIT("NFC"), TOK_FORM_NFC },
		{ STR_INIT("NFD"), TOK_FORM_NFD },
		{ STR_INIT("NFKC"), TOK_FORM_NFKC },
		{ STR_INIT("NFKD"), TOK_FORM_NFKD },
	};
	if (json_absent(v))
		return ERR_OK;
	struct str type = type_of(v);
	for (size_t i = 0; i < ARRAY_LEN(FORMS); i++)
		if (str_eq(type, FORMS[i].type))
			return read_form(l, FORMS[i].form);
	if (str_eq(type, STR("Replace")))
		return read_replace(l, v);
	if (str_eq(type, STR("Prepend")))
		return read_prepend(l, v);
	return tok_say(l->why, ERR_UNSUPPORTED, "the normalizer %.*s is not supported", STR_ARG(type));
}

/* ---- pre-tokenizers */

static enum err add_stage(struct loading *l, struct str pattern)
{
	const struct tok_splitter *s = tok_splitter_find(pattern);
	must(s);
	if (l->p.n_stages == TOK_MAX_STAGES)
		return tok_say(l->why, ERR_UNSUPPORTED, "more than %d pre-tokenizers in turn are not supported", TOK_MAX_STAGES);
	l->p.stages[l->p.n_stages++] = s;
	return ERR_OK;
}

/* Files write line ends in a pattern as such or escaped: we look it up escaped. */
static enum err known_pattern(struct loading *l, struct str regex, const struct tok_splitter **ret_s)
{
	struct buf b;
	enum err e = ERR_OK;
	buf_init(&b, 1 << 16);
	for (size_t i = 0; i < regex.n && e == ERR_OK; i++)
		e = regex.p[i] == '\r'   ? buf_add(&b, STR("\\r"))
		    : regex.p[i] == '\n' ? buf_add(&b, STR("\\n"))
					 : buf_add_byte(&b, regex.p[i]);
	*ret_s = e == ERR_OK ? tok_splitter_find(buf_str(&b)) : NULL;
	buf_done(&b);
	return *ret_s ? ERR_OK : tok_say(l->why, ERR_UNSUPPORTED, "this split pattern is not known: %.*s", STR_ARG(str_sub(regex, 0, 300)));
}

static enum err read_split(struct loading *l, const struct json_val *v)
{
	const struct json_val *pattern = json_get(v, STR("pattern")), *behavior = json_get(v, STR("behavior"));
	bool invert = json_true(json_get(v, STR("invert")));
	struct str text;
	const struct tok_splitter *s;
	TRY(only(l, v, "the pre-tokenizer Split", "type pattern behavior invert"));
	if (is_str(json_get(pattern, STR("String")), STR(" ")) && is_str(behavior, STR("MergedWithPrevious")) && !invert) {
		l->no_op_split = true; /* there is no space left to split at: checked in settle_kind */
		return ERR_OK;
	}
	if (!json_str(json_get(pattern, STR("Regex")), &text))
		return tok_say(l->why, ERR_UNSUPPORTED, "the pre-tokenizer Split by a string is not supported");
	TRY(known_pattern(l, text, &s));
	bool isolated = is_str(behavior, STR("Isolated")) && !invert, removed = is_str(behavior, STR("Removed")) && invert && s->covers;
	if (!isolated && !removed)
		return tok_say(l->why, ERR_UNSUPPORTED, "the pre-tokenizer Split with this behavior is not supported");
	return add_stage(l, s->pattern);
}

static enum err read_byte_level(struct loading *l, const struct json_val *v)
{
	TRY(only(l, v, "the pre-tokenizer ByteLevel", "type add_prefix_space trim_offsets use_regex"));
	bool regex = true;
	if (json_true(json_get(v, STR("add_prefix_space"))))
		return tok_say(l->why, ERR_UNSUPPORTED, "the pre-tokenizer ByteLevel with add_prefix_space is not supported");
	(void)json_bool(json_get(v, STR("use_regex")), &regex);
	l->p.byte_level = true;
	return regex ? add_stage(l, STR("<gpt2>")) : ERR_OK;
}

static enum err read_digits(struct loading *l, const struct json_val *v)
{
	TRY(only(l, v, "the pre-tokenizer Digits", "type individual_digits"));
	if (!json_true(json_get(v, STR("individual_digits"))))
		return tok_say(l->why, ERR_UNSUPPORTED, "the pre-tokenizer Digits without individual_digits is not supported");
	return add_stage(l, STR("<digits>"));
}

static enum err read_metaspace(struct loading *l, const struct json_val *v)
{
	static const struct {
		struct str name;
		enum tok_prepend prepend;
	} SCHEMES[] = {
		{ STR_INIT("always"), TOK_PREPEND_MISSING },
		{ STR_INIT("first"), TOK_PREPEND_FIRST },
		{ STR_INIT("never"), TOK_PREPEND_NEVER },
	};
	struct str scheme = STR("always");
	bool add = true, split = true;
	TRY(only(l, v, "the pre-tokenizer Metaspace", "type replacement prepend_scheme split add_prefix_space str_rep"));
	(void)json_str(json_get(v, STR("prepend_scheme")), &scheme);
	(void)json_bool(json_get(v, STR("add_prefix_space")), &add);
	(void)json_bool(json_get(v, STR("split")), &split);
	if (!is_str(json_get(v, STR("replacement")), MARK) || (!add && !str_eq(scheme, STR("never"))) || l->p.metaspace)
		return tok_say(l->why, ERR_UNSUPPORTED, "this form of the pre-tokenizer Metaspace is not supported");
	l->p.metaspace = true;
	l->p.split = split;
	for (size_t i = 0; i < ARRAY_LEN(SCHEMES); i++)
		if (str_eq(scheme, SCHEMES[i].name)) {
			l->p.prepend = SCHEMES[i].prepend;
			return ERR_OK;
		}
	return tok_say(l->why, ERR_UNSUPPORTED, "the prepend_scheme %.*s of Metaspace is not supported", STR_ARG(scheme));
}

static enum err read_pre_tokenizer(struct loading *l, const struct json_val *v)
{
	static const struct {
		struct str type;
		enum err (*read)(struct loading *, const struct json_val *);
	} TYPES[] = {
		{ STR_INIT("Split"), read_split },
		{ STR_INIT("ByteLevel"), read_byte_level },
		{ STR_INIT("Digits"), read_digits },
		{ STR_INIT("Metaspace"), read_metaspace },
	};
	if (json_absent(v))
		return ERR_OK;
	struct str type = type_of(v);
	if (l->p.byte_level)
		return tok_say(l->why, ERR_UNSUPPORTED, "the pre-tokenizer %.*s behind ByteLevel is not supported", STR_ARG(type));
	for (size_t i = 0; i < ARRAY_LEN(TYPES); i++)
		if (str_eq(type, TYPES[i].type))
			return TYPES[i].read(l, v);
	return tok_say(l->why, ERR_UNSUPPORTED, "the pre-tokenizer %.*s is not supported", STR_ARG(type));
}

/* ---- post-processors: only those that change ids */

struct around {
	uint32_t before[16], after[16];
	size_t n_before, n_after;
};

static enum err template_ids(struct loading *l, const struct json_val *tokens, struct str name, uint32_t *out, size_t *n)
{
	const struct json_val *ids = json_get(json_get(tokens, name), STR("ids"));
	uint64_t id;
	for (struct json_iter it = json_each(ids); json_next(&it);) {
		if (!json_u64(it.val, &id) || id >= TOK_MAX_VOCAB || *n == 16)
			return tok_say(l->why, ERR_UNSUPPORTED, "the post-processor TemplateProcessing has too many or bad ids");
		out[(*n)++] = (uint32_t)id;
	}
	return json_is(ids, JSON_ARRAY) ? ERR_OK
					: tok_say(l->why, ERR_SYNTAX, "the post-processor TemplateProcessing names an unknown token");
}

static enum err read_template(struct loading *l, const struct json_val *v)
{
	struct around a = { .n_before = 0 };
	bool behind = false;
	TRY(only(l, v, "the post-processor TemplateProcessing", "type single pair special_tokens"));
	for (struct json_iter it = json_each(json_get(v, STR("single"))); json_next(&it);) {
		struct str name;
		const struct json_val *special = json_get(it.val, STR("SpecialToken")), *seq = json_get(it.val, STR("Sequence"));
		if (json_str(json_get(special, STR("id")), &name)) {
			TRY(template_ids(l, json_get(v, STR("special_tokens")), name, behind ? a.after : a.before,
				behind ? &a.n_after : &a.n_before));
		} else if (is_str(json_get(seq, STR("id")), STR("A")) && !behind) {
			behind = true;
		} else {
			return tok_say(l->why, ERR_UNSUPPORTED, "this form of the post-processor TemplateProcessing is not supported");
		}
	}
	if (!behind || l->templated)
		return tok_say(l->why, ERR_UNSUPPORTED, "this form of the post-processor TemplateProcessing is not supported");
	l->templated = true;
	tok_set_around(l->t, a.before, a.n_before, a.after, a.n_after);
	return ERR_OK;
}

static enum err read_post_processor(struct loading *l, const struct json_val *v)
{
	if (json_absent(v) || str_eq(type_of(v), STR("ByteLevel")))
		return ERR_OK; /* ByteLevel moves offsets only */
	if (str_eq(type_of(v), STR("TemplateProcessing")))
		return read_template(l, v);
	return tok_say(l->why, ERR_UNSUPPORTED, "the post-processor %.*s is not supported", STR_ARG(type_of(v)));
}

/* ---- decoders: an unknown one only makes tok_decode refuse */

static bool read_decoder_step(struct loading *l, const struct json_val *v, size_t i)
{
	static const struct str STEPS[] = { STR_INIT("Replace"), STR_INIT("ByteFallback"), STR_INIT("Fuse"), STR_INIT("Strip") };
	uint64_t n;
	if (i >= ARRAY_LEN(STEPS) || !str_eq(type_of(v), STEPS[i]))
		return false;
	if (i == 0)
		return is_str(json_get(json_get(v, STR("pattern")), STR("String")), MARK) && is_str(json_get(v, STR("content")), STR(" "));
	if (i < 3)
		return true;
	if (!is_str(json_get(v, STR("content")), STR(" ")) || !json_u64(json_get(v, STR("stop")), &n) || n != 0 ||
		!json_u64(json_get(v, STR("start")), &n))
		return false;
	l->t->strip_left = (size_t)n;
	return true;
}

static void read_decoder(struct loading *l, const struct json_val *v)
{
	size_t i = 0;
	bool known = true;
	if (json_absent(v))
		l->t->decoder = TOK_DECODE_RAW;
	else if (str_eq(type_of(v), STR("ByteLevel")))
		l->t->decoder = TOK_DECODE_BYTES;
	for (struct json_iter it = json_each(json_get(v, STR("decoders"))); json_next(&it);)
		known &= read_decoder_step(l, it.val, i++);
	if (known && i >= 3)
		l->t->decoder = TOK_DECODE_SPACES;
}

/* ---- the whole */

/* A component that may be a Sequence of others. */
typedef enum err (*read_fn)(struct loading *l, const struct json_val *v);
static enum err read_each(struct loading *l, const struct json_val *v, struct str list, read_fn read)
{
	if (!str_eq(type_of(v), STR("Sequence")))
		return read(l, v);
	for (struct json_iter it = json_each(json_get(v, list)); json_next(&it);)
		TRY(read(l, it.val));
	return ERR_OK;
}

static enum err check_file(struct loading *l)
{
	const struct tok_pipeline *p = &l->p;
	bool spaces = p->replaces || p->metaspace;
	if (p->byte_level == spaces || (spaces && p->n_stages) || (p->replaces && p->metaspace) || (p->prepends && !p->replaces) ||
		(l->no_op_split && !p->replaces))
		return tok_say(l->why, ERR_UNSUPPORTED, "this combination of normalizers and pre-tokenizers is not supported");
	if (p->prepends)
		l->p.prepend = TOK_PREPEND_PIECE;
	return p->byte_level && p->n_stages == 0 ? add_stage(l, STR("<whole>")) : ERR_OK;
}

static enum err read_components(struct loading *l, const struct json_val *root)
{
	struct str version;
	if (!json_str(json_get(root, STR("version")), &version) || !str_eq(version, STR("1.0")))
		return tok_say(l->why, ERR_UNSUPPORTED, "tokenizer.json is not of version 1.0");
	TRY(read_each(l, json_get(root, STR("normalizer")), STR("normalizers"), read_normalizer));
	TRY(read_each(l, json_get(root, STR("pre_tokenizer")), STR("pretokenizers"), read_pre_tokenizer));
	TRY(check_file(l));
	TRY(read_each(l, json_get(root, STR("post_processor")), STR("processors"), read_post_processor));
	read_decoder(l, json_get(root, STR("decoder")));
	return ERR_OK;
}

/* The pipeline that counts: the file's, or the one that the worker's class builds. */
static enum err choose_pipeline(struct loading *l, const struct tok_files *f, const struct json_val *model)
{
	struct tok *t = l->t;
	struct tok_pipeline built;
	l->p.whole_words = t->whole_words;
	l->p.byte_fallback = t->byte_fallback;
	l->p.fuse_unk = t->fuse_unk;
	l->p.unk_known = t->unk_id != TOK_NONE;
	if (l->loader == TOK_LOADER_FILES)
		return ERR_OK;
	TRY(tok_worker_class_find(l->c.config, model, f->tekken.n > 0, &l->c.class, l->why));
	if (!l->c.class)
		return ERR_OK;
	TRY(tok_worker_pipeline(l->c.class, l->c.config, &built, l->why));
	if (l->loader == TOK_LOADER_ANY && !tok_pipeline_same(&l->p, &built))
		return tok_say(l->why, ERR_UNSUPPORTED,
			"transformers 4 and 5 read this tokenizer differently, and the worker's version is not known");
	l->p = built;
	return ERR_OK;
}

static enum err use_pipeline(struct loading *l)
{
	struct tok *t = l->t;
	const struct tok_pipeline *p = &l->p;
	struct str unk = STR("<unk>");
	t->kind = p->byte_level ? TOK_BYTES : TOK_SPACES;
	t->late_spaces = p->metaspace;
	t->split_spaces = p->split;
	t->prepend = p->prepend;
	t->n_stages = p->n_stages;
	for (size_t i = 0; i < p->n_stages; i++)
		t->stages[i] = p->stages[i];
	t->scheme = p->byte_level ? t->stages[t->n_stages - 1]->name : p->metaspace ? "metaspace" : "spaces";
	t->whole_words = p->whole_words;
	t->byte_fallback = p->byte_fallback;
	t->fuse_unk = p->fuse_unk;
	if (!p->unk_known)
		t->unk_id = TOK_NONE;
	(void)json_str(json_get(l->c.config, STR("unk_token")), &unk);
	if (p->unk_known && l->c.class && (t->unk_id = tok_pool_find(&t->pieces, unk)) == TOK_NONE)
		return tok_say(l->why, ERR_UNSUPPORTED, "the unknown token is not in the vocabulary");
	tok_normal_init(&t->normal, p->form);
	return ERR_OK;
}

static enum err tell_in_order(struct loading *l, const struct json_val *list, struct tok_adding *a)
{
	for (struct json_iter it = json_each(list); json_next(&it);) {
		struct tok_define d;
		TRY(tok_define_read(it.val, &d, l->why));
		TRY(tok_adding_add(a, &d, l->why));
	}
	return ERR_OK;
}

static enum err tell_by_id(struct loading *l, const struct json_val *list, struct tok_adding *a)
{
	size_t n = json_len(list), i = 0;
	if (n > TOK_MAX_ADDED)
		return tok_say(l->why, ERR_LIMIT, "too many added tokens");
	struct tok_define *d = must_calloc(n + 1, sizeof(*d));
	enum err e = ERR_OK;
	for (struct json_iter it = json_each(list); e == ERR_OK && json_next(&it); i++)
		e = tok_define_read(it.val, &d[i], l->why);
	if (e == ERR_OK)
		e = tok_adding_by_id(a, d, n, l->why);
	free(d);
	return e;
}

/* `anew`: by a class that builds its pipeline anew. It forgets the file's tokens when the config lists some, else it takes them in the
 * order of the ids that the file gives them, of one id the last. */
static enum err tell_tokens(struct loading *l, const struct json_val *list, bool anew, struct tok_adding *a)
{
	if (!anew)
		TRY(tell_in_order(l, list, a));
	else if (!tok_config_lists(&l->c))
		TRY(tell_by_id(l, list, a));
	return tok_config_tokens(&l->c, a, l->why);
}

/* With an unknown loader both ways must give the same tokens. */
static enum err read_tokens(struct loading *l, const struct json_val *list)
{
	TRY(tell_tokens(l, list, l->c.class && l->loader == TOK_LOADER_5, &l->adding));
	if (!l->c.class || l->loader != TOK_LOADER_ANY)
		return ERR_OK;
	struct tok_adding anew;
	tok_adding_init(&anew, l->adding.pieces, l->adding.vocab_size);
	anew.strict = true;
	enum err e = tell_tokens(l, list, true, &anew);
	if (e == ERR_OK && !tok_adding_same(&l->adding, &anew))
		e = tok_say(
			l->why, ERR_UNSUPPORTED, "transformers 4 and 5 add different tokens here, and the worker's version is not known");
	tok_adding_done(&anew);
	return e;
}

static enum err read_all(struct loading *l, const struct tok_files *f, const struct json_val *root, const struct json_val *model)
{
	uint32_t vocab_size;
	TRY(read_components(l, root));
	TRY(tok_load_model(l->t, json_get(root, STR("model")), &vocab_size, l->why));
	TRY(choose_pipeline(l, f, model));
	TRY(use_pipeline(l));
	tok_adding_init(&l->adding, &l->t->pieces, vocab_size);
	l->adding.strict = l->loader != TOK_LOADER_FILES;
	TRY(read_tokens(l, json_get(root, STR("added_tokens"))));
	TRY(tok_config_read(l->t, &l->c, l->why));
	TRY(tok_adding_finish(&l->adding, l->t, l->why));
	return tok_config_around(l->t, &l->c, l->loader, l->why);
}

enum { DOCS = 5 };

/* An absent file is no document. */
static enum err parse_files(const struct tok_files *f, struct json_doc *docs[DOCS], struct tok_why why)
{
	const struct {
		struct str text;
		const char *name;
	} files[DOCS] = {
		{ f->tokenizer_json, "tokenizer.json" },
		{ f->config, "tokenizer_config.json" },
		{ f->special_map, "special_tokens_map.json" },
		{ f->model_config, "config.json" },
		{ f->added, "added_tokens.json" },
	};
	for (size_t i = 0; i < DOCS; i++) {
		enum err e = files[i].text.n ? json_parse_file(files[i].text, TOK_MAX_FILE_BYTES, &docs[i]) : ERR_OK;
		if (e != ERR_OK)
			return tok_say(why, e, "%s is not JSON that we take: %s", files[i].name, err_text(e));
	}
	return ERR_OK;
}

static const struct json_val *root_of(const struct json_doc *d) { return d ? json_root(d) : NULL; }

enum err tok_load_hf(struct tok *t, const struct tok_files *f, struct tok_why why)
{
	struct json_doc *docs[DOCS] = { NULL };
	struct loading l = { .t = t, .why = why, .loader = f->loader };
	tok_adding_init(&l.adding, &t->pieces, 0);
	enum err e = parse_files(f, docs, why);
	if (e == ERR_OK) {
		l.c = (struct tok_config){
			.config = root_of(docs[1]), .map = root_of(docs[2]), .added = root_of(docs[4]), .add_bos = -1, .add_eos = -1
		};
		e = read_all(&l, f, root_of(docs[0]), root_of(docs[3]));
	}
	tok_adding_done(&l.adding);
	for (size_t i = 0; i < DOCS; i++)
		json_free(docs[i]);
	return e == ERR_OK ? tok_finish_model(t, why) : e;
}
