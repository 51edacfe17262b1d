/* offer.c: the two calls of a worker, each working, refused until a time, or not tried. */
#include "text/offer.h"

/* 404 may also mean that the model is unknown, and /tokenize is there in every worker seen: not held against it for long. */
enum { SHORT_RETRY_US = 30 * 1000000 };

bool text_offer_choose(const struct text_offer *o, bool tokenize_ok, struct mono now, enum text_call *ret_call)
{
	if (!mono_before(now, o->no_render_until))
		*ret_call = TEXT_RENDER;
	else if (tokenize_ok && !mono_before(now, o->no_tokenize_until))
		*ret_call = TEXT_TOKENIZE;
	else
		return false;
	return true;
}

static bool refused(int status) { return status == 403 || status == 404 || status == 405 || status == 501; }

bool text_offer_learn(struct text_offer *o, enum text_call call, int status, struct mono now)
{
	bool render = call == TEXT_RENDER, *works = render ? &o->render_works : &o->tokenize_works;
	if (status == 200)
		*works = true;
	/* what has answered before is there: this 404 is about the model */
	if (!refused(status) || (status == 404 && *works))
		return false;
	*works = false;
	int64_t wait_us = !render && status == 404 ? SHORT_RETRY_US : TEXT_OFFER_RETRY_US;
	*(render ? &o->no_render_until : &o->no_tokenize_until) = mono_add_us(now, wait_us);
	return render && !mono_before(now, o->no_tokenize_until);
}
