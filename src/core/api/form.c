/* form.c: finds one field in a multipart form without touching the rest (an audio file, as a rule). */
#include "api/facts.h"

/* boundary=x or boundary="x" of the content type. */
static struct str boundary_of(struct str content_type)
{
	struct str rest = content_type, part, name, value;
	bool more = true;
	while (more) {
		more = str_cut(rest, ';', &part, &rest);
		if (!str_cut(part, '=', &name, &value) || !str_ieq(str_trim(name), STR("boundary")))
			continue;
		value = str_trim(value);
		if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
			value = str_sub(value, 1, value.n - 2);
		return value.n <= 70 ? value : STR(""); /* RFC 2046: at most 70 */
	}
	return STR("");
}

/* Does the header block of a part name the field `model`? */
static bool names_model(struct str head)
{
	struct str line;
	while (head.n) {
		str_cut(head, '\n', &line, &head);
		if (str_istarts(line, STR("content-disposition:")) &&
			(str_find(line, STR(" name=\"model\"")) != SIZE_MAX || str_find(line, STR(";name=\"model\"")) != SIZE_MAX))
			return true;
	}
	return false;
}

struct str api_form_model(struct str content_type, struct str body)
{
	char mark_bytes[80];
	struct str boundary = boundary_of(content_type);
	if (!str_istarts(content_type, STR("multipart/form-data")) || boundary.n == 0)
		return STR("");
	struct buf mark = { .p = mark_bytes, .cap = sizeof(mark_bytes), .max = sizeof(mark_bytes) };
	if (buf_add(&mark, STR("--")) != ERR_OK || buf_add(&mark, boundary) != ERR_OK)
		return STR("");
	size_t at = str_find(body, buf_str(&mark));
	while (at != SIZE_MAX) {
		body = str_skip(body, at + mark.n);
		size_t head_end = str_find(body, STR("\r\n\r\n"));
		if (head_end == SIZE_MAX)
			break;
		struct str head = str_sub(body, 0, head_end);
		body = str_skip(body, head_end + 4);
		at = str_find(body, buf_str(&mark));
		if (names_model(head) && at != SIZE_MAX)
			return str_trim(str_sub(body, 0, at));
	}
	return STR("");
}
