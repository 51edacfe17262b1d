/* truth.c: predicted against reported cached tokens, worker by worker. Silent zero overlap is the field's most common
 * failure: here a lasting difference raises an alarm that names its likely cause. */
#include "base/must.h"
#include "brain/brain_priv.h"

enum { WINDOW = 20, ALARM_AGAIN_US = 300000000 };
#define RATE 0.05
#define ALARM_SHARE 0.8
#define MENDED_SHARE 0.95
#define TOLD_ALARM_SHARE 0.5 /* a full cache evicts some before they are looked for */
#define MOST 0.6             /* a kind that explains this share of the differences is the cause */

static struct brain_truth *truth_at(struct brain *b, const struct fleet_worker *w)
{
	size_t slot = fleet_slot_of(w);
	while (b->truths.n <= slot)
		VEC_PUSH(&b->truths, (struct brain_truth){ 0 });
	struct brain_truth *t = &b->truths.p[slot];
	if (t->worker != w->id)
		*t = (struct brain_truth){ .worker = w->id, .share = 1 };
	return t;
}

const struct brain_truth *brain_truth_of(const struct brain *b, const struct fleet_worker *w)
{
	static const struct brain_truth none = { .share = 1 };
	size_t slot = fleet_slot_of(w);
	return slot < b->truths.n && b->truths.p[slot].worker == w->id ? &b->truths.p[slot] : &none;
}

static bool whole_blocks(const struct fleet_worker *w, uint32_t rank, uint32_t cached_tok)
{
	uint32_t sizes[FLEET_MAX_SIZES];
	size_t n = fleet_rank_sizes(w, rank, sizes);
	for (size_t i = 0; i < n; i++)
		if (cached_tok % sizes[i] == 0)
			return true;
	return n == 0;
}

static void count_kind(struct brain_truth *t, const struct fleet_worker *w, const struct brain_ticket *k, const struct brain_tell *u)
{
	uint32_t predicted_tok = k->legs[k->leg].hit_tok;
	t->wrong++;
	t->other_length += !k->prefix_only && u->prompt_tok && u->prompt_tok != k->prompt_tok;
	t->off_block += !whole_blocks(w, k->legs[k->leg].rank, u->cached_tok);
	t->all_missing += predicted_tok && !u->cached_tok;
	t->less += u->cached_tok < predicted_tok;
	t->more += u->cached_tok > predicted_tok;
}

/* From the surest sign to the vaguest. */
static const char *cause_of(const struct brain_truth *t, const struct fleet_worker *w)
{
	double most = MOST * t->wrong;
	if (t->other_length >= most)
		return "tokens differ: the worker counts another prompt length than the token ids we were given";
	if (t->off_block >= most)
		return "wrong block size: reported cached tokens are no multiple of it";
	if (t->all_missing >= most)
		return w->prefix_caching ? "the worker reports no cached tokens: prefix caching off, the report off, or a missing cache salt"
					 : "prefix caching is off on the worker";
	if (t->more >= most)
		return "the worker caches more than its events said: events missing, or extra keys (salt, images) that are not the engine's";
	if (t->less >= most)
		return "the worker finds less than its events said: a missing cache salt, an adapter reloaded under its name, or evictions not announced";
	return "no single cause: the view of its cache is unsteady";
}

/* Neither bad nor mended: the alarm stays as it is. */
static void sound(struct brain *b, struct brain_alarm *a, const struct fleet_worker *w, bool bad, const char *cause, double share, struct mono now)
{
	bool due = !a->on || mono_diff_us(now, a->at) >= ALARM_AGAIN_US;
	if (bad && due) {
		*a = (struct brain_alarm){ .on = true, .at = now };
		if (b->ops.on_mismatch)
			b->ops.on_mismatch(b->arg, w->id, cause, share);
	} else if (share > MENDED_SHARE) {
		a->on = false;
	}
}

static void judge(struct brain *b, struct brain_truth *t, const struct fleet_worker *w, struct mono now)
{
	if (t->window < WINDOW)
		return;
	sound(b, &t->alarm, w, t->share < ALARM_SHARE && t->wrong, cause_of(t, w), t->share, now);
	t->window = t->wrong = t->other_length = t->off_block = t->all_missing = t->less = t->more = 0;
}

void brain_truth_told(struct brain *b, struct fleet_worker *w, bool told, struct mono now)
{
	struct brain_truth *t = truth_at(b, w);
	t->told += told;
	t->not_told += !told;
	t->not_told_window += !told;
	if (++t->told_window < WINDOW)
		return;
	double share = 1 - (double)t->not_told_window / WINDOW;
	sound(b, &t->told_alarm, w, share < TOLD_ALARM_SHARE,
	      "its events do not tell the blocks of prompts it answered: token ids or extra keys differ, or events are late", share, now);
	t->told_window = t->not_told_window = 0;
}

void brain_truth_tell(struct brain *b, struct fleet_worker *w, const struct brain_ticket *k, const struct brain_tell *u, struct mono now)
{
	const struct brain_leg_state *l = &k->legs[k->leg];
	if (!l->events)              /* without events the overlap is a guess, and says so */
		return;
	struct brain_truth *t = truth_at(b, w);
	bool exact = k->prefix_only ? l->hit_tok <= u->cached_tok : l->hit_tok == u->cached_tok;
	t->predictions++;
	t->exact += exact;
	t->window++;
	double rate = MAX(RATE, 1.0 / (double)(t->predictions + 1));
	t->share += rate * ((double)exact - t->share);
	if (!exact)
		count_kind(t, w, k, u);
	judge(b, t, w, now);
}
