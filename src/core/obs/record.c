/* record.c: key=value access lines. A client chooses some of the values (model, ids), so nothing it sends may start a new
 * line, a new field or terminal colours. */
#include "obs/record.h"

#include <string.h>

#include "base/utf8.h"

#define CUT_MARK " cut=1\n"

void obs_record_begin(struct obs_record *r, struct buf *out) { *r = (struct obs_record){ .out = out, .first = true }; }

static const bool plain_byte[256] = {
	['!'] = true, ['#' ... '<'] = true, ['>' ... '['] = true, [']' ... '~'] = true,
};

static bool is_plain(struct str v)
{
	bool plain = v.n <= OBS_FIELD_MAX;
	for (size_t i = 0; plain && i < v.n; i++)
		plain = plain_byte[(unsigned char)v.p[i]];
	return plain;
}

static enum err add_char(struct buf *out, struct str rest, size_t *ret_used)
{
	uint32_t cp;
	size_t n = utf8_next(rest, &cp);
	unsigned char c = (unsigned char)rest.p[0];
	*ret_used = n ? n : 1;
	if (n == 0 || (n == 1 && (c < ' ' || c == 0x7f)) || (n == 2 && cp < 0xa0))
		return n == 2 ? buf_printf(out, "\\u%04x", (unsigned)cp) : buf_printf(out, "\\x%02x", c);
	if (c == '"' || c == '\\')
		return buf_printf(out, "\\%c", c);
	return buf_add(out, str_sub(rest, 0, n));
}

static enum err add_quoted(struct buf *out, struct str v)
{
	TRY(buf_add_byte(out, '"'));
	bool cut = v.n > OBS_FIELD_MAX;
	struct str rest = str_sub(v, 0, OBS_FIELD_MAX);
	while (rest.n) {
		size_t used;
		TRY(add_char(out, rest, &used));
		rest = str_skip(rest, used);
	}
	return buf_add(out, cut ? STR("...\"") : STR("\""));
}

/* Room for CUT_MARK stays, so that the line can always be ended. */
static void settle(struct obs_record *r, enum err e, size_t before)
{
	if (e || r->out->n + sizeof(CUT_MARK) > r->out->max) {
		r->out->n = before;
		r->cut = true;
	} else {
		r->first = false;
	}
}

static enum err add_field(struct obs_record *r, const char *key, struct str plain)
{
	size_t key_n = strlen(key);
	char *p;
	TRY(buf_reserve(r->out, 1 + key_n + 1 + plain.n, &p));
	size_t n = 0;
	if (!r->first)
		p[n++] = ' ';
	memcpy(p + n, key, key_n);
	n += key_n;
	p[n++] = '=';
	if (plain.n)
		memcpy(p + n, plain.p, plain.n);
	buf_commit(r->out, n + plain.n);
	return ERR_OK;
}

static void put_plain(struct obs_record *r, const char *key, struct str plain)
{
	size_t before = r->out->n;
	settle(r, add_field(r, key, plain), before);
}

void obs_record_str(struct obs_record *r, const char *key, struct str v)
{
	if (is_plain(v)) {
		put_plain(r, key, v.n ? v : STR("-"));
		return;
	}
	size_t before = r->out->n;
	enum err e = add_field(r, key, (struct str){ 0 });
	settle(r, e ? e : add_quoted(r->out, v), before);
}

void obs_record_u64(struct obs_record *r, const char *key, uint64_t v)
{
	char room[STR_U64_MAX];
	put_plain(r, key, str_of_u64(v, room));
}

void obs_record_i64(struct obs_record *r, const char *key, int64_t v)
{
	char text[1 + STR_U64_MAX];
	struct str digits = str_of_u64(v < 0 ? 0 - (uint64_t)v : (uint64_t)v, text + 1);
	if (v < 0) {
		digits = (struct str){ digits.p - 1, digits.n + 1 };
		text[digits.p - text] = '-';
	}
	put_plain(r, key, digits);
}

/* Milliseconds with three decimals. */
void obs_record_us(struct obs_record *r, const char *key, int64_t us)
{
	char text[STR_U64_MAX + 4];
	if (us < 0) {
		put_plain(r, key, STR("-"));
		return;
	}
	struct str ms = str_of_u64((uint64_t)us / 1000, text);
	char *rest = text + STR_U64_MAX;
	rest[0] = '.';
	rest[1] = (char)('0' + us / 100 % 10);
	rest[2] = (char)('0' + us / 10 % 10);
	rest[3] = (char)('0' + us % 10);
	put_plain(r, key, (struct str){ ms.p, ms.n + 4 });
}

void obs_record_end(struct obs_record *r)
{
	/* Cannot fail: settle() kept the room; a buffer smaller than the mark gets nothing. */
	enum err e = r->cut ? buf_add(r->out, STR(CUT_MARK)) : buf_add_byte(r->out, '\n');
	(void)e;
}
