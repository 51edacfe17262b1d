/* decode.c: ids back to text, as the library's decoders join pieces. */
#include <string.h>

#include "base/utf8.h"
#include "tok/tok_priv.h"

/* Appends bytes that may not be UTF-8: each maximal ill-formed part becomes one U+FFFD. */
static enum err put_lossy(struct str s, struct buf *b)
{
	while (s.n) {
		uint32_t cp;
		size_t n = utf8_next(s, &cp);
		if (n) {
			TRY(buf_add(b, str_sub(s, 0, n)));
			s = str_skip(s, n);
			continue;
		}
		uint8_t c = (uint8_t)s.p[0], low = 0x80, high = 0xbf;
		size_t want = c >= 0xc2 && c < 0xe0 ? 1 : (c & 0xf0) == 0xe0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : 0;
		low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : low;
		high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : high;
		for (n = 1; n <= want && n < s.n && (uint8_t)s.p[n] >= low && (uint8_t)s.p[n] <= high; n++) {
			low = 0x80;
			high = 0xbf;
		}
		TRY(buf_add(b, STR("\xef\xbf\xbd")));
		s = str_skip(s, n);
	}
	return ERR_OK;
}

static bool hex_digit(char c, uint8_t *v)
{
	if (c >= '0' && c <= '9')
		*v = (uint8_t)(*v << 4 | (c - '0'));
	else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		*v = (uint8_t)(*v << 4 | ((c | 0x20) - 'a' + 10));
	else
		return false;
	return true;
}

/* `<0xHH>` */
static bool byte_piece(struct str piece, uint8_t *ret_byte)
{
	uint8_t v = 0;
	if (piece.n != 6 || !str_starts(piece, STR("<0x")) || piece.p[5] != '>' || !hex_digit(piece.p[3], &v) || !hex_digit(piece.p[4], &v))
		return false;
	*ret_byte = v;
	return true;
}

/* A run of byte pieces is text when it is UTF-8, else one U+FFFD for each of its bytes. */
static enum err put_run(struct buf *run, struct buf *b)
{
	bool good = utf8_valid(buf_str(run));
	for (size_t i = 0; !good && i < run->n; i++)
		TRY(buf_add(b, STR("\xef\xbf\xbd")));
	if (good)
		TRY(buf_add(b, buf_str(run)));
	buf_clear(run);
	return ERR_OK;
}

static enum err put_pieces(const struct tok *t, const struct tok_decode_job *job, struct buf *run, struct buf *b)
{
	for (size_t i = 0; i < job->n; i++) {
		uint8_t byte;
		if (job->skip_special && tok_is_special(t, job->ids[i]))
			continue;
		if (t->decoder == TOK_DECODE_SPACES && byte_piece(tok_piece(t, job->ids[i]), &byte)) {
			TRY(buf_add_byte(run, (char)byte));
			continue;
		}
		if (run->n && t->decoder == TOK_DECODE_SPACES)
			TRY(put_run(run, b));
		if (t->decoder == TOK_DECODE_RAW && b->n)
			TRY(buf_add_byte(b, ' '));
		TRY(buf_add(t->decoder == TOK_DECODE_BYTES ? run : b, tok_pool_get(&t->bytes, job->ids[i])));
	}
	return t->decoder == TOK_DECODE_BYTES ? put_lossy(buf_str(run), b) : put_run(run, b);
}

enum err tok_decode(const struct tok *t, const struct tok_decode_job *job, struct buf *b)
{
	for (size_t i = 0; i < job->n; i++)
		if (job->ids[i] >= tok_vocab_size(t))
			return ERR_RANGE;
	struct buf run, out;
	buf_init(&run, b->max);
	buf_init(&out, b->max);
	enum err e = put_pieces(t, job, &run, &out);
	struct str s = buf_str(&out);
	for (size_t i = 0; i < t->strip_left && s.n && s.p[0] == ' '; i++)
		s = str_skip(s, 1);
	if (e == ERR_OK)
		e = buf_add(b, s);
	buf_done(&run);
	buf_done(&out);
	return e;
}
