/* feed/view.h: what hands may know of the fleet without asking the brain: an immutable, reference-counted snapshot.
 *
 * Made by edge/feed on the brain's thread whenever brain_generation() moved, one for all changes within 20 us a worker; handed to
 * each hand by mailbox (gate_set_view). A worker is asked nothing before a view has it, so no plan names one that hands do not
 * know. A hand keeps one reference and each request in flight keeps one, so slices stay valid. */
#ifndef FEED_VIEW_H
#define FEED_VIEW_H

#include "brain/brain.h"
#include "io/addr.h"

struct model;
struct feed_view_worker {
	brain_worker id;
	struct str url;                 /* "http://host:port" as configured, no credentials */
	struct str host;                /* value for the Host header */
	struct str prefix;              /* path prefix of the URL, "" mostly */
	struct io_addr addr;            /* len 0: not resolved yet */
	struct str authorization;       /* "Bearer …" when the worker has a key of its own, else "" */
	bool pass_client_authorization; /* the client's own header goes to the worker (when authorization is "") */
	bool usable;                    /* healthy or degraded */
	enum brain_health health;
	const struct str *names; size_t n_names;         /* base names it lists */
	const struct str *adapters; size_t n_adapters;
	uint32_t max_model_len;
	struct str pool;
};
struct feed_view_model {            /* one entry of the merged /v1/models */
	struct str id, root, parent;    /* parent "" = base model */
	uint32_t max_model_len;         /* the least of its workers' */
	bool lengths_differ;            /* they have others too */
	uint32_t block_sizes[KV_MAX_SIZES]; uint32_t n_block_sizes;
	bool adapter;
	bool text_from_workers;         /* token ids may be asked of the workers (--tokens auto|worker) */
	bool embeds;                    /* its workers make embeddings, and scores of them */
	struct model *tokenizer;        /* the one in this process, perhaps not ready yet; NULL: none (held by the view) */
};
struct feed_view {
	_Atomic uint32_t refs;
	uint64_t generation;
	const struct feed_view_worker *workers; size_t n_workers;   /* sorted by id */
	const struct feed_view_model *models; size_t n_models;      /* sorted by id */
	bool any_usable, draining;
	struct arena arena;             /* owns all of the above */
};

struct feed_view *feed_view_ref(struct feed_view *v);
void feed_view_unref(struct feed_view *v);      /* NULL is fine; frees with the last reference, on any thread */
const struct feed_view_worker *feed_view_worker(const struct feed_view *v, brain_worker id);   /* NULL: gone */
const struct feed_view_model *feed_view_model(const struct feed_view *v, struct str id);

#endif
