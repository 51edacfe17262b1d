/* gate/link.h: how a hand reaches the brain: a direct call when they share a loop, a mailbox when they do not.
 *
 * gate_link_ask() copies what it needs before it returns when the brain lives elsewhere; the answer comes through `done`
 * on the hand's loop: from inside the call for a direct link, later for a mailbox. Tells keep their order per ticket and
 * are batched to one wake a turn. A ticket's END must be told exactly once after a plan with a ticket was handed out, also
 * when the client left while the ask was under way (the answer is then told END/NOT_SENT by the caller). */
#ifndef GATE_LINK_H
#define GATE_LINK_H

#include "brain/brain.h"
#include "io/loop.h"

struct gate_link;
typedef void gate_plan_fn(void *arg, enum err e, const struct brain_plan *plan);

/* Free a mailbox link when both loops stand still: letters under way are dropped; wakes that were posted may still come. */
struct gate_link *gate_link_direct(struct brain *b, struct io_loop *l);
struct gate_link *gate_link_mailbox(struct brain *b, struct io_loop *brain_loop, struct io_loop *hand_loop);
void gate_link_free(struct gate_link *k);
void gate_link_ask(struct gate_link *k, const struct brain_ask *a, gate_plan_fn *done, void *arg);
void gate_link_tell(struct gate_link *k, const struct brain_tell *t);

#endif
