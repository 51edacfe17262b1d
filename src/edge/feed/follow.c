/* Which event endpoints a worker has, in this order: configuration, what it says itself (GET /kv_event_sources), the
 * default ports. A guess is made for one worker a host only: two workers on one machine cannot both own port 5557, and
 * following a neighbour's events is worse than following none. */
#include "base/log.h"
#include "feed/feed_priv.h"

static void close_from(struct feed_worker *w, uint32_t from)
{
	for (uint32_t r = from; r < w->n_ranks; r++) {
		if (w->ranks[r] != NULL)
			feed_rank_close(w->ranks[r]);
		w->ranks[r] = NULL;
	}
	w->n_ranks = MIN(w->n_ranks, from);
}

void feed_follow_stop(struct feed_worker *w)
{
	w->reopen_at = MONO_NEVER;
	close_from(w, 0);
}

/* What could not be opened is opened when others have closed theirs. */
void feed_follow_again(struct feed_worker *w)
{
	if (mono_before(io_now(w->feed->loop), w->reopen_at))
		return;
	w->reopen_at = MONO_NEVER;
	feed_follow(w);
}

static void no_events(struct feed_worker *w, const char *why)
{
	if (w->events_why == NULL || !str_eq(str_of(w->events_why), str_of(why)))
		LOG_WARN("worker_without_events", "worker=%.*s why=\"%s\" instead=\"its cache is guessed from our own requests\"", STR_ARG(w->conf.url), why);
	w->events_why = why;
	close_from(w, 0);
	uint32_t ranks = w->has_metrics ? w->metrics.n_ranks : 1;
	for (uint32_t r = 0; r < ranks; r++)
		brain_kv_status(w->feed->brain, w->id, r, false, false, io_now(w->feed->loop));
}

static void open_ranks(struct feed_worker *w, const struct feed_sources *s)
{
	w->events_why = NULL;
	close_from(w, s->n);
	for (uint32_t r = 0; r < s->n; r++) {
		if (w->ranks[r] != NULL && feed_rank_same(w->ranks[r], &s->ranks[r]))
			continue;
		if (w->ranks[r] != NULL)
			feed_rank_close(w->ranks[r]);
		w->ranks[r] = s->ranks[r].events.n > 0 ? feed_rank_open(w, r, &s->ranks[r]) : NULL;
		if (w->ranks[r] != NULL && w->has_metrics)
			feed_rank_capacity(w->ranks[r], w->metrics.blocks / s->n);
	}
	w->n_ranks = s->n;
}

void feed_follow(struct feed_worker *w)
{
	const struct conf_feed_opts *o = &w->feed->conf->opts.feed;
	bool own = w->conf.events.n > 0;
	if (w->draining || w->conf.events_off || !o->events || w->feed->zhub == NULL) {
		no_events(w, w->draining ? "it is draining" : "events are switched off in the configuration");
		return;
	}
	if (!own && w->sources_told) {
		if (w->sources.why != NULL)
			no_events(w, w->sources.why);
		else
			open_ranks(w, &w->sources);
		return;
	}
	if (!own && feed_guess_taken(w)) {
		no_events(w, "it does not say where its events are and several workers share its host: set kvEvents.endpoint");
		return;
	}
	struct feed_sources s;
	uint32_t ranks = w->has_metrics ? w->metrics.n_ranks : 1;
	if (own && w->sources_told)
		ranks = MAX(ranks, w->sources.n);
	arena_done(&w->sources_arena);
	w->sources_told = false;
	feed_default_sources(&w->conf, (uint16_t)o->events_port, (uint16_t)o->replay_port, ranks, &w->sources_arena, &s);
	w->sources = s;
	if (s.why != NULL)
		no_events(w, s.why);
	else
		open_ranks(w, &w->sources);
}
