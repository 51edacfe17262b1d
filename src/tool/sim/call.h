/* sim/call.h: an inference call from its checked JSON to the last token: n choices for each prompt, spread over the
 * engines, put together again as a stream or as one answer. Inside the room. */
#ifndef SIM_CALL_H
#define SIM_CALL_H

#include "sim/chunk.h"
#include "sim/exch.h"

/* Takes the doc, whose text is x->body; answers through x, errors included. */
void sim_call_start(struct sim_exch *x, enum sim_api api, struct json_doc *doc);
void sim_call_abort(struct sim_call *c); /* takes its sequences out of the engines; NULL is fine */
void sim_call_free(struct sim_call *c); /* aborts first */

#endif
