/* text/offer.h: which of the two calls a worker offers, learnt from its answers. One per worker; a value, no memory.
 * UNTRIED -> render tried first; 403, 404, 405 or 501 -> tokenize from then on (tried again after TEXT_OFFER_RETRY_US: workers are
 * upgraded in place); both refused -> none until then. Other failures teach nothing, nor does a 404 of a call that has
 * answered before (the model is unknown then). Pure. */
#ifndef TEXT_OFFER_H
#define TEXT_OFFER_H

#include "base/mono.h"
#include "text/ask.h"

enum { TEXT_OFFER_RETRY_US = 600 * 1000000 };

struct text_offer {
	struct mono no_render_until, no_tokenize_until;   /* zeroed: both untried */
	bool render_works, tokenize_works;                /* seen to answer */
};

/* The call to make now; false: none. tokenize_ok: text_put_ask can express this prompt for /tokenize. */
bool text_offer_choose(const struct text_offer *o, bool tokenize_ok, struct mono now, enum text_call *ret_call);
/* status: of the answer, 0 = none came. Returns true when the other call should be tried at once for the same prompt. */
bool text_offer_learn(struct text_offer *o, enum text_call call, int status, struct mono now);
static inline void text_offer_reset(struct text_offer *o) { *o = (struct text_offer){ 0 }; }   /* the worker restarted */

#endif
