/* record.c: key=value access lines. A client chooses some of the values (model, ids), so nothing it sends may start a new
 * line, a new field or terminal colours. */
#include "obs/record.h"

#include "base/utf8.h"

#define CUT_MARK " cut=1\n"

void obs_record_begin(struct obs_record *r, struct buf *out) { *r = (struct obs_record){ .out = out, .first = true }; }

static bool needs_quotes(struct str v)
{
	for (size_t i = 0; i < v.n; i++) {
		unsigned char c = (unsigned char)v.p[i];
		if (c <= ' ' || c == '"' || c == '\\' || c == '=' || c >= 0x7f)
			return true;
	}
	return v.n == 0;
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

static enum err add_value(struct buf *out, struct str v)
{
	if (!v.n)
		return buf_add_byte(out, '-');
	return needs_quotes(v) || v.n > OBS_FIELD_MAX ? add_quoted(out, v) : buf_add(out, v);
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

static enum err add_key(struct obs_record *r, const char *key)
{
	if (!r->first)
		TRY(buf_add_byte(r->out, ' '));
	TRY(buf_add(r->out, str_of(key)));
	return buf_add_byte(r->out, '=');
}

/* Milliseconds with three decimals. */
static enum err add_us(struct buf *out, uint64_t us)
{
	char rest[4] = { '.', (char)('0' + us / 100 % 10), (char)('0' + us / 10 % 10), (char)('0' + us % 10) };
	TRY(buf_add_u64(out, us / 1000));
	return buf_add(out, (struct str){ rest, sizeof(rest) });
}

void obs_record_str(struct obs_record *r, const char *key, struct str v)
{
	size_t before = r->out->n;
	enum err e = add_key(r, key);
	settle(r, e ? e : add_value(r->out, v), before);
}

void obs_record_u64(struct obs_record *r, const char *key, uint64_t v)
{
	size_t before = r->out->n;
	enum err e = add_key(r, key);
	settle(r, e ? e : buf_add_u64(r->out, v), before);
}

void obs_record_i64(struct obs_record *r, const char *key, int64_t v)
{
	size_t before = r->out->n;
	enum err e = add_key(r, key);
	settle(r, e ? e : buf_printf(r->out, "%lld", (long long)v), before);
}

void obs_record_us(struct obs_record *r, const char *key, int64_t us)
{
	size_t before = r->out->n;
	enum err e = add_key(r, key);
	if (!e)
		e = us < 0 ? buf_add_byte(r->out, '-') : add_us(r->out, (uint64_t)us);
	settle(r, e, before);
}

void obs_record_end(struct obs_record *r)
{
	/* Cannot fail: settle() kept the room; a buffer smaller than the mark gets nothing. */
	enum err e = r->cut ? buf_add(r->out, STR(CUT_MARK)) : buf_add_byte(r->out, '\n');
	(void)e;
}
