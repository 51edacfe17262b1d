#include "sim/token.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

struct piece {
	uint8_t n;
	char s[4];
};
struct sim_vocab {
	struct piece piece[SIM_VOCAB];
};

static const struct {
	struct str text;
	uint32_t id;
} marks[] = {
	{ STR_INIT("<|im_start|>"), SIM_TOK_IM_START },
	{ STR_INIT("<|im_end|>"), SIM_TOK_IM_END },
	{ STR_INIT("<|vision_start|>"), SIM_TOK_IMAGE_START },
	{ STR_INIT("<|vision_end|>"), SIM_TOK_IMAGE_END },
	{ STR_INIT("<|image_pad|>"), SIM_TOK_IMAGE_PAD },
};

struct sim_vocab *sim_vocab_new(void) { return must_calloc(1, sizeof(struct sim_vocab)); }
void sim_vocab_free(struct sim_vocab *v) { free(v); }

static uint32_t learn(struct sim_vocab *v, struct str s)
{
	uint32_t word = 0;
	memcpy(&word, s.p, s.n);
	uint64_t h = hash_mix(((uint64_t)s.n << 32 | word) + 0x51);
	uint32_t id = SIM_TOK_FIRST + (uint32_t)(h % (SIM_VOCAB - SIM_TOK_FIRST));
	struct piece *p = &v->piece[id];
	if (p->n != s.n || memcmp(p->s, &word, 4) != 0) {
		p->n = (uint8_t)s.n;
		memcpy(p->s, &word, 4);
	}
	return id;
}

/* Bytes of the piece at the front of s; s is not empty. */
static size_t piece_len(struct str s)
{
	size_t n = 0;
	uint32_t cp;
	while (n < s.n) {
		if (n && s.p[n] == ' ')
			break;
		size_t step = (signed char)s.p[n] >= 0 ? 1 : utf8_next(str_skip(s, n), &cp);
		step = step ? step : 1; /* a broken byte stands for itself */
		if (n + step > 4)
			break;
		n += step;
		if (s.p[n - 1] == '\n')
			break;
		if (n < s.n && s.p[n] == '<' && n + 1 < s.n && s.p[n + 1] == '|')
			break;
	}
	return n;
}

static uint32_t mark_at(struct str s, size_t *ret_n)
{
	if (s.n < 2 || s.p[0] != '<' || s.p[1] != '|')
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (str_starts(s, marks[i].text)) {
			*ret_n = marks[i].text.n;
			return marks[i].id;
		}
	return 0;
}

void sim_tokenize(struct sim_vocab *v, struct str text, sim_ids *out)
{
	while (text.n) {
		size_t n;
		uint32_t id = mark_at(text, &n);
		if (!id) {
			n = piece_len(text);
			id = learn(v, str_sub(text, 0, n));
		}
		VEC_PUSH(out, id);
		text = str_skip(text, n);
	}
}

struct str sim_token_text(const struct sim_vocab *v, uint32_t id, char out[16])
{
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (marks[i].id == id)
			return marks[i].text;
	if (id < SIM_VOCAB && v->piece[id].n) {
		memcpy(out, v->piece[id].s, 4);
		return str_from(out, v->piece[id].n);
	}
	int n = snprintf(out, 16, "<%u>", id);
	return str_from(out, (size_t)n);
}

uint32_t sim_token_make(struct sim_vocab *v, uint64_t seed, uint32_t i, bool bare)
{
	static const char consonants[] = "bcdfghjklmnprstvwz", vowels[] = "aeiou";
	uint64_t h = hash_mix(seed + (uint64_t)i * 0x9e3779b97f4a7c15u);
	const size_t c = sizeof(consonants) - 1, w = sizeof(vowels) - 1;
	char s[4] = { ' ', consonants[h % c], vowels[h / 32 % w], consonants[h / 1024 % c] };
	return bare ? learn(v, str_from(s + 1, 3)) : learn(v, str_from(s, 4));
}
