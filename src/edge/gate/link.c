/* Hand to brain and back. Direct: both on one loop, a call. Mailbox: two queues under one lock, each with at most one
 * posted wake, so that what gathers in a turn costs one wake. Asks and tells share a queue: a tell never overtakes. */
#include "gate/link.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/must.h"

enum word { WORD_ASK, WORD_TELL };

struct letter {
	struct list node;
	enum word word;
	struct brain_tell tell;
	struct brain_ask ask; /* slices and keys in arena */
	struct kv_prompt prompt;
	struct arena arena;
	gate_plan_fn *done;
	void *arg;
	enum err e;
	struct brain_plan plan;
};

struct gate_link {
	struct brain *brain;
	struct io_loop *loop; /* direct: the one loop; mailbox: the brain's */
	struct io_loop *hand; /* NULL: direct */
	pthread_mutex_t lock; /* both queues and both flags */
	struct list to_brain, to_hand;
	bool brain_woken, hand_woken, closed;
	unsigned wakes; /* posted and not run: a freed link stays until they came */
};

struct gate_link *gate_link_direct(struct brain *b, struct io_loop *l)
{
	struct gate_link *k = must_calloc(1, sizeof(*k));
	k->brain = b;
	k->loop = l;
	return k;
}

struct gate_link *gate_link_mailbox(struct brain *b, struct io_loop *brain_loop, struct io_loop *hand_loop)
{
	struct gate_link *k = gate_link_direct(b, brain_loop);
	k->hand = hand_loop;
	must(pthread_mutex_init(&k->lock, NULL) == 0);
	list_init(&k->to_brain);
	list_init(&k->to_hand);
	return k;
}

static void letter_free(struct letter *m)
{
	arena_done(&m->arena);
	free(m);
}

static void burn(struct list *q)
{
	LIST_FOR_SAFE(q, it)
	letter_free(container_of(it, struct letter, node));
}

static void destroy(struct gate_link *k)
{
	pthread_mutex_destroy(&k->lock);
	free(k);
}

void gate_link_free(struct gate_link *k)
{
	if (!k)
		return;
	if (!k->hand) {
		free(k);
		return;
	}
	pthread_mutex_lock(&k->lock);
	burn(&k->to_brain);
	burn(&k->to_hand);
	list_init(&k->to_brain);
	list_init(&k->to_hand);
	k->closed = true;
	bool last = !k->wakes;
	pthread_mutex_unlock(&k->lock);
	if (last)
		destroy(k);
}

/* What gathered, and the wake that brought us here is used up. false: the link is closed, perhaps gone. */
static bool take_all(struct gate_link *k, struct list *from, bool *woken, struct list *ret)
{
	list_init(ret);
	pthread_mutex_lock(&k->lock);
	*woken = false;
	bool closed = k->closed, last = --k->wakes == 0;
	if (!list_empty(from)) {
		*ret = *from;
		ret->next->prev = ret;
		ret->prev->next = ret;
		list_init(from);
	}
	pthread_mutex_unlock(&k->lock);
	if (closed && last)
		destroy(k);
	return !closed;
}

static bool post(struct gate_link *k, struct list *to, bool *woken, struct letter *m)
{
	pthread_mutex_lock(&k->lock);
	list_add_tail(to, &m->node);
	bool wake = !*woken;
	*woken = true;
	k->wakes += wake;
	pthread_mutex_unlock(&k->lock);
	return wake;
}

static void on_hand(void *arg)
{
	struct gate_link *k = arg;
	struct list mine;
	if (!take_all(k, &k->to_hand, &k->hand_woken, &mine))
		return;
	LIST_FOR_SAFE(&mine, it)
	{
		struct letter *m = container_of(it, struct letter, node);
		m->done(m->arg, m->e, m->e == ERR_OK ? &m->plan : NULL);
		letter_free(m);
	}
}

static void on_brain(void *arg)
{
	struct gate_link *k = arg;
	struct list mine;
	if (!take_all(k, &k->to_brain, &k->brain_woken, &mine))
		return;
	struct mono now = io_now(k->loop);
	LIST_FOR_SAFE(&mine, it)
	{
		struct letter *m = container_of(it, struct letter, node);
		if (m->word == WORD_TELL) {
			brain_tell(k->brain, &m->tell, now);
			letter_free(m);
			continue;
		}
		m->e = brain_ask(k->brain, &m->ask, now, &m->plan);
		if (post(k, &k->to_hand, &k->hand_woken, m))
			io_post(k->hand, on_hand, k);
	}
}

static void copy_prompt(struct letter *m, const struct kv_prompt *p)
{
	m->prompt = *p;
	for (uint32_t i = 0; i < p->n_sets; i++) {
		uint64_t *keys = arena_new(&m->arena, uint64_t, p->sets[i].n);
		if (p->sets[i].n)
			memcpy(keys, p->sets[i].keys, p->sets[i].n * sizeof(*keys));
		m->prompt.sets[i].keys = keys;
	}
	m->ask.prompt = &m->prompt;
}

static struct letter *ask_letter(const struct brain_ask *a)
{
	struct letter *m = must_calloc(1, sizeof(*m));
	m->word = WORD_ASK;
	arena_init(&m->arena, 0);
	m->ask = *a;
	m->ask.model = arena_str(&m->arena, a->model);
	m->ask.pool = arena_str(&m->arena, a->pool);
	m->ask.client_id = arena_str(&m->arena, a->client_id);
	if (a->request_id)
		m->ask.request_id = arena_str(&m->arena, str_of(a->request_id)).p;
	if (a->prompt)
		copy_prompt(m, a->prompt);
	return m;
}

void gate_link_ask(struct gate_link *k, const struct brain_ask *a, gate_plan_fn *done, void *arg)
{
	if (!k->hand) {
		struct brain_plan plan;
		enum err e = brain_ask(k->brain, a, io_now(k->loop), &plan);
		done(arg, e, e == ERR_OK ? &plan : NULL);
		return;
	}
	struct letter *m = ask_letter(a);
	m->done = done;
	m->arg = arg;
	if (post(k, &k->to_brain, &k->brain_woken, m))
		io_post(k->loop, on_brain, k);
}

void gate_link_tell(struct gate_link *k, const struct brain_tell *t)
{
	if (!k->hand) {
		brain_tell(k->brain, t, io_now(k->loop));
		return;
	}
	struct letter *m = must_calloc(1, sizeof(*m));
	m->word = WORD_TELL;
	m->tell = *t;
	if (post(k, &k->to_brain, &k->brain_woken, m))
		io_post(k->loop, on_brain, k);
}
