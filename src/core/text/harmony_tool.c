/* harmony_tool.c: the tools of a request as the library prints them: each function a type of TypeScript, its JSON schema with the comments
 * that the library makes of titles, descriptions, examples and defaults. Rule by rule as oss-harmony 0.0.11 does it, oddities included. */
#include "text/harmony_priv.h"

static const struct jinja_val *member(const struct jinja_val *v, struct str key) { return v && v->type == JINJA_DICT ? jinja_dict_get_str(v->dict, key) : NULL; }

static bool text_of(const struct jinja_val *v, struct str *ret_s)
{
	if (!v || v->type != JINJA_STR)
		return false;
	*ret_s = v->s;
	return true;
}

static const struct jinja_list *list_of(const struct jinja_val *v) { return v && v->type == JINJA_LIST ? v->list : NULL; }

static enum err put_indent(struct buf *b, unsigned indent)
{
	for (; indent; indent--)
		TRY(buf_add_byte(b, ' '));
	return ERR_OK;
}

/* A text of the client's, which may hold any character, between two of ours. */
static enum err put_between(struct buf *b, struct str before, struct str text, struct str after)
{
	TRY(buf_add(b, before));
	TRY(buf_add(b, text));
	return buf_add(b, after);
}

static enum err put_quoted(struct buf *b, struct str text) { return put_between(b, STR("\""), text, STR("\"")); }

static enum err put_comment(struct buf *b, unsigned indent, struct str text)
{
	TRY(put_indent(b, indent));
	return put_between(b, STR("// "), text, STR("\n"));
}

/* ---- defaults */

/* Numbers between these are printed alike by both libraries on the way. */
static bool plain_numbers(const struct jinja_val *v)
{
	if (v->type == JINJA_FLOAT) {
		double x = v->f < 0 ? -v->f : v->f;
		return x == 0 || (x >= 1e-4 && x < 1e16);
	}
	for (size_t i = 0; v->type == JINJA_LIST && i < v->list->n; i++)
		if (!plain_numbers(&v->list->p[i]))
			return false;
	for (size_t i = 0; v->type == JINJA_DICT && i < v->dict->n; i++)
		if (!plain_numbers(&v->dict->p[i].val))
			return false;
	return v->type != JINJA_BIGINT;
}

static bool is_enum(const struct jinja_val *schema)
{
	const struct jinja_list *l = list_of(member(schema, STR("enum")));
	return l && l->n > 0;
}

/* bare_enum: a default that is one of an enum's words stands without quotes. */
static enum err put_default(struct buf *b, const struct jinja_val *schema, bool bare_enum)
{
	static const struct jinja_json_opts JSON = { .indent = -1, .item_sep = STR_INIT(","), .key_sep = STR_INIT(":") };
	const struct jinja_val *v = member(schema, STR("default"));
	struct str s;
	TRY(buf_add(b, STR("default: ")));
	if (text_of(v, &s) && !is_enum(schema))
		return put_quoted(b, s);
	if (text_of(v, &s) && bare_enum)
		return buf_add(b, s);
	return plain_numbers(v) ? jinja_print_json(b, v, &JSON) : ERR_UNSUPPORTED;
}

/* ---- types */

static enum err put_type(struct buf *b, const struct jinja_val *schema, unsigned indent);

static enum err put_nullable(struct buf *b, const struct jinja_val *schema, unsigned indent)
{
	const struct jinja_val *nullable = member(schema, STR("nullable"));
	size_t had = b->n;
	TRY(put_type(b, schema, indent));
	if (nullable && nullable->type == JINJA_BOOL && nullable->b && str_find(str_skip(buf_str(b), had), STR("null")) == SIZE_MAX)
		return buf_add(b, STR(" | null"));
	return ERR_OK;
}

/* Behind a variant: its description (unless it was said already) and default. */
static enum err put_trailing(struct buf *b, const struct jinja_val *variant, bool describe, bool bare_enum)
{
	struct str desc;
	bool any = describe && text_of(member(variant, STR("description")), &desc);
	if (any)
		TRY(put_between(b, STR(" // "), desc, STR("")));
	if (!member(variant, STR("default")))
		return ERR_OK;
	TRY(buf_add(b, any ? STR(" ") : STR(" // ")));
	return put_default(b, variant, bare_enum);
}

static enum err put_one_of(struct buf *b, const struct jinja_list *variants, unsigned indent)
{
	for (size_t i = 0; i < variants->n; i++) {
		TRY(buf_add_byte(b, '\n'));
		TRY(put_indent(b, indent));
		TRY(buf_add(b, STR(" | ")));
		TRY(put_nullable(b, &variants->p[i], indent + 3));
		TRY(put_trailing(b, &variants->p[i], true, false));
	}
	return ERR_OK;
}

/* Words with " | " between; *ret_any: there is one. */
static enum err put_words(struct buf *b, const struct jinja_list *l, bool quoted, bool *ret_any)
{
	struct str s;
	*ret_any = false;
	for (size_t i = 0; l && i < l->n; i++) {
		if (!text_of(&l->p[i], &s))
			continue;
		if (*ret_any)
			TRY(buf_add(b, STR(" | ")));
		*ret_any = true;
		if (quoted)
			TRY(put_quoted(b, s));
		else
			TRY(buf_add(b, str_eq(s, STR("integer")) ? STR("number") : s));
	}
	return ERR_OK;
}

/* ---- properties */

static bool requires(const struct jinja_val *schema, const struct jinja_val *key)
{
	const struct jinja_list *l = list_of(member(schema, STR("required")));
	for (size_t i = 0; l && i < l->n; i++)
		if (l->p[i].type == JINJA_STR && str_eq(l->p[i].s, key->s))
			return true;
	return false;
}

struct property {
	const struct jinja_val *value;
	struct str key;
	bool required;
};

static enum err put_key(struct buf *b, const struct property *p, unsigned indent)
{
	TRY(put_indent(b, indent));
	TRY(buf_add(b, p->key));
	return buf_add(b, p->required ? STR(":") : STR("?:"));
}

static enum err put_head(struct buf *b, const struct jinja_val *v, unsigned indent)
{
	const struct jinja_list *examples = list_of(member(v, STR("examples")));
	struct str s;
	if (text_of(member(v, STR("title")), &s)) {
		TRY(put_comment(b, indent, s));
		TRY(put_indent(b, indent));
		TRY(buf_add(b, STR("//\n")));
	}
	if (!member(v, STR("oneOf")) && text_of(member(v, STR("description")), &s))
		TRY(put_comment(b, indent, s));
	if (examples && examples->n)
		TRY(put_comment(b, indent, STR("Examples:")));
	for (size_t i = 0; examples && i < examples->n; i++)
		if (text_of(&examples->p[i], &s)) {
			TRY(put_indent(b, indent));
			TRY(put_between(b, STR("// - \""), s, STR("\"\n")));
		}
	return ERR_OK;
}

static bool same_description(const struct jinja_val *a, const struct jinja_val *b)
{
	struct str x, y;
	return text_of(member(a, STR("description")), &x) && text_of(member(b, STR("description")), &y) && str_eq(x, y);
}

static enum err put_variants(struct buf *b, const struct property *p, const struct jinja_list *variants, unsigned indent)
{
	const struct jinja_val *v = p->value;
	struct str desc;
	bool above = text_of(member(v, STR("description")), &desc) && !(variants->n && same_description(v, &variants->p[0]));
	if (above)
		TRY(put_comment(b, indent, desc));
	if (member(v, STR("default"))) {
		TRY(put_indent(b, indent));
		TRY(buf_add(b, STR("// ")));
		TRY(put_default(b, v, true));
		TRY(buf_add_byte(b, '\n'));
	}
	TRY(put_key(b, p, indent));
	TRY(buf_add_byte(b, '\n'));
	for (size_t i = 0; i < variants->n; i++) {
		TRY(put_indent(b, indent));
		TRY(buf_add(b, STR(" | ")));
		TRY(put_nullable(b, &variants->p[i], indent + 3));
		TRY(put_trailing(b, &variants->p[i], !(i == 0 && above) && !same_description(v, &variants->p[i]), true));
		TRY(buf_add_byte(b, '\n'));
	}
	TRY(put_indent(b, indent));
	return buf_add(b, STR(",\n"));
}

static enum err put_property(struct buf *b, const struct property *p, unsigned indent)
{
	const struct jinja_val *one_of = member(p->value, STR("oneOf"));
	TRY(put_head(b, p->value, indent));
	if (list_of(one_of))
		return put_variants(b, p, one_of->list, indent);
	TRY(put_key(b, p, indent));
	TRY(buf_add_byte(b, ' '));
	TRY(put_nullable(b, p->value, indent + 4));
	TRY(buf_add_byte(b, ','));
	if (!one_of && member(p->value, STR("default"))) {
		TRY(buf_add(b, STR(" // ")));
		TRY(put_default(b, p->value, true));
	}
	return buf_add_byte(b, '\n');
}

static enum err put_object(struct buf *b, const struct jinja_val *schema, unsigned indent)
{
	const struct jinja_val *props = member(schema, STR("properties"));
	struct str desc;
	if (text_of(member(schema, STR("description")), &desc))
		TRY(put_comment(b, indent, desc));
	TRY(buf_add(b, STR("{\n")));
	for (size_t i = 0; props && props->type == JINJA_DICT && i < props->dict->n; i++) {
		const struct jinja_pair *pair = &props->dict->p[i];
		struct property p = { .value = &pair->val, .key = pair->key.s, .required = requires(schema, &pair->key) };
		TRY(put_property(b, &p, indent));
	}
	TRY(put_indent(b, indent));
	return buf_add_byte(b, '}');
}

/* As deep as JSON may be nested. */
static enum err put_type(struct buf *b, const struct jinja_val *schema, unsigned indent)
{
	const struct jinja_val *type = member(schema, STR("type"));
	const struct jinja_list *one_of = list_of(member(schema, STR("oneOf")));
	struct str word = { 0 };
	bool any = false;
	if (one_of)
		return put_one_of(b, one_of, indent);
	TRY(put_words(b, list_of(type), false, &any));
	if (any)
		return ERR_OK;
	(void)text_of(type, &word);
	if (str_eq(word, STR("object")))
		return put_object(b, schema, indent);
	if (str_eq(word, STR("string"))) {
		TRY(put_words(b, list_of(member(schema, STR("enum"))), true, &any));
		return any ? ERR_OK : buf_add(b, word);
	}
	if (str_eq(word, STR("number")) || str_eq(word, STR("integer")))
		return buf_add(b, STR("number"));
	if (str_eq(word, STR("boolean")))
		return buf_add(b, word);
	if (!str_eq(word, STR("array")))
		return buf_add(b, STR("any"));
	if (!member(schema, STR("items")))
		return buf_add(b, STR("Array<any>"));
	TRY(put_type(b, member(schema, STR("items")), indent));
	return buf_add(b, STR("[]"));
}

/* ---- functions */

/* A carriage return belongs to the line end behind it. */
static enum err put_lines(struct buf *b, struct str text)
{
	while (text.n) {
		struct str line = text, rest = { 0 };
		if (str_cut(text, '\n', &line, &rest) && str_ends(line, STR("\r")))
			line.n--;
		TRY(put_comment(b, 0, line));
		text = rest;
	}
	return ERR_OK;
}

static enum err put_function(struct buf *b, const struct jinja_val *f)
{
	const struct jinja_val *params = member(f, STR("parameters"));
	struct str desc, name = STR("");
	text_of(member(f, STR("name")), &name);
	if (text_of(member(f, STR("description")), &desc))
		TRY(put_lines(b, desc));
	TRY(put_between(b, STR("type "), name, STR(" = (")));
	if (params && params->type == JINJA_DICT) {
		TRY(buf_add(b, STR("_: ")));
		TRY(put_type(b, params, 0));
	}
	return buf_add(b, STR(") => any;\n\n"));
}

enum err text_harmony_put_tools(struct buf *b, const struct jinja_val *tools)
{
	TRY(buf_add(b, STR("# Tools\n\n## functions\n\nnamespace functions {\n\n")));
	for (size_t i = 0; i < tools->list->n; i++)
		TRY(put_function(b, member(&tools->list->p[i], STR("function"))));
	return buf_add(b, STR("} // namespace functions"));
}
