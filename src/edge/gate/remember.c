/* What all hands share: the budget of body memory, text whose token ids are known, and which worker made which response (its
 * state lives only there). A lock, not a mailbox: one short look-up per /v1/responses call, and an answer is needed at once. */
#include <pthread.h>
#include <stdlib.h>

#include "gate/gate_priv.h"

struct made {
	struct hash128 id;
	uint64_t url_hash; /* ids of workers may come back: the address must be the same too */
	brain_worker worker;
	bool used;
};

struct gate_shared {
	_Atomic int64_t body_bytes, body_max;
	struct tok_memo *memo;
	pthread_mutex_t lock; /* ring, at, index */
	struct made *ring; /* oldest first overwritten */
	size_t cap, at;
	struct map index; /* low half of the id's hash -> place in ring */
};

struct gate_shared *gate_shared_new(const struct conf_gate_opts *o)
{
	struct gate_shared *s = must_calloc(1, sizeof(*s));
	atomic_init(&s->body_bytes, 0);
	atomic_init(&s->body_max, o->body_memory_bytes);
	must(pthread_mutex_init(&s->lock, NULL) == 0);
	s->cap = (size_t)o->max_responses;
	map_init(&s->index);
	struct tok_memo_opts memo = { .max_bytes = (size_t)o->tokens_text_bytes, .least_bytes = TOK_MEMO_LEAST_BYTES };
	io_random(&memo.seed, sizeof(memo.seed));
	s->memo = memo.max_bytes ? tok_memo_new(&memo) : NULL;
	return s;
}

void gate_shared_free(struct gate_shared *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	map_done(&s->index);
	tok_memo_unref(s->memo);
	free(s->ring);
	free(s);
}

void gate_shared_set_body_memory(struct gate_shared *s, int64_t bytes) { atomic_store(&s->body_max, bytes); }
int64_t gate_shared_body_max(const struct gate_shared *s) { return atomic_load(&s->body_max); }
int64_t gate_shared_body_bytes(const struct gate_shared *s) { return atomic_load(&s->body_bytes); }

struct tok_memo *gate_shared_memo(struct gate_shared *s) { return s->memo; }
struct tok_memo_stats gate_shared_text(const struct gate_shared *s) { return s->memo ? tok_memo_stats(s->memo) : (struct tok_memo_stats){ 0 }; }

bool gate_shared_take(struct gate_shared *s, int64_t bytes)
{
	int64_t now = atomic_fetch_add(&s->body_bytes, bytes) + bytes;
	if (now <= atomic_load(&s->body_max))
		return true;
	atomic_fetch_sub(&s->body_bytes, bytes);
	return false;
}

void gate_shared_give(struct gate_shared *s, int64_t bytes) { atomic_fetch_sub(&s->body_bytes, bytes); }

static void overwrite(struct gate_shared *s, const struct made *m)
{
	if (!s->ring)
		s->ring = must_calloc(s->cap, sizeof(*s->ring));
	struct made *old = &s->ring[s->at];
	uint64_t place;
	if (old->used && map_get(&s->index, old->id.lo, &place) && place == s->at)
		map_del(&s->index, old->id.lo);
	*old = *m;
	map_put(&s->index, m->id.lo, s->at);
	s->at = (s->at + 1) % s->cap;
}

void gate_remember(struct gate_shared *s, struct str response_id, brain_worker w, struct str url)
{
	struct made m = { .id = hash_bytes128(response_id.p, response_id.n, 0), .worker = w, .url_hash = hash_str(url, 0), .used = true };
	pthread_mutex_lock(&s->lock);
	overwrite(s, &m);
	pthread_mutex_unlock(&s->lock);
}

bool gate_recall(struct gate_shared *s, struct str response_id, brain_worker *ret_w, uint64_t *ret_url_hash)
{
	struct hash128 id = hash_bytes128(response_id.p, response_id.n, 0);
	uint64_t place;
	bool found = false;
	pthread_mutex_lock(&s->lock);
	if (map_get(&s->index, id.lo, &place) && s->ring[place].id.lo == id.lo && s->ring[place].id.hi == id.hi) {
		*ret_w = s->ring[place].worker;
		*ret_url_hash = s->ring[place].url_hash;
		found = true;
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}
