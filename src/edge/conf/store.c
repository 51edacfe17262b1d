/* Reload: anything that changed means all sources are read anew; the parts cannot disagree then. */
#include "conf/store.h"

#include <stdlib.h>

#include "base/log.h"
#include "io/file.h"

_Static_assert(LOG_LEVEL_ERROR == 0 && LOG_LEVEL_WARN == 1 && LOG_LEVEL_INFO == 2 && LOG_LEVEL_DEBUG == 3, "the words of option log.level stand in the order of enum log_level");

struct conf_store {
	struct io_loop *loop;
	struct conf_sources sources;      /* own copies */
	struct arena texts;
	struct conf *now;
	VEC(struct io_watch *) watches;
	conf_change_fn *fn;
	void *arg;
	uint64_t reloads, failed;
	struct mono last;
	struct conf_faults faults;
	bool faulty;
};

static void log_faults(const struct conf_faults *f)
{
	for (size_t i = 0; i < f->list.n && i < 20; i++) {
		struct buf b;
		buf_init(&b, CONF_FAULT_MAX_BYTES);
		char line[1024];
		if (conf_fault_print(&b, &f->list.p[i]) == ERR_OK)
			LOG_ERROR("config_fault", "what=%s", log_quote(buf_str(&b), line, sizeof(line)));
		buf_done(&b);
	}
}

/* START options keep their running value until a restart. */
static void keep_start_options(const struct conf *old, struct conf *next)
{
	const struct conf_option *rows;
	size_t n = conf_options(&rows);
	for (size_t i = 0; i < n; i++) {
		const struct conf_option *row = &rows[i];
		const char *what;
		if (row->reload != CONF_START || conf_option_same(&old->opts, &next->opts, row))
			continue;
		LOG_WARN("config_needs_restart", "option=%s", row->key);
		struct buf b;
		buf_init(&b, 1 << 16);
		if (conf_option_print(&b, &old->opts, row) != ERR_OK || !conf_option_set(&next->opts, row, buf_str(&b), &next->arena, &what))
			LOG_ERROR("config_option_kept_failed", "option=%s", row->key);
		buf_done(&b);
	}
}

void conf_store_reload(struct conf_store *s)
{
	conf_faults_done(&s->faults);
	conf_faults_init(&s->faults);
	struct conf *next = conf_load(&s->sources, s->now->generation + 1, &s->faults);
	s->faulty = next == NULL;
	if (s->faulty) {
		s->failed++;
		LOG_ERROR("config_refused", "faults=%zu generation=%llu what=\"the running configuration stays\"", s->faults.list.n + s->faults.cut, (unsigned long long)s->now->generation);
		log_faults(&s->faults);
		return;
	}
	struct conf *old = s->now;
	keep_start_options(old, next);
	s->now = next;
	s->reloads++;
	s->last = io_now(s->loop);
	log_set_level((enum log_level)next->opts.ops.log_level);
	LOG_INFO("config_loaded", "generation=%llu pools=%zu", (unsigned long long)next->generation, next->n_pools);
	s->fn(s->arg, old, next);
	conf_unref(old);
}

static void changed(void *arg) { conf_store_reload(arg); }

static void copy_sources(struct conf_store *s, const struct conf_sources *from)
{
	for (size_t i = 0; i < from->paths.n; i++)
		VEC_PUSH(&s->sources.paths, arena_str(&s->texts, from->paths.p[i]));
	for (size_t i = 0; i < from->workers.n; i++)
		VEC_PUSH(&s->sources.workers, arena_str(&s->texts, from->workers.p[i]));
	for (size_t i = 0; i < from->overrides.n; i++)
		VEC_PUSH(&s->sources.overrides, (struct conf_override){ from->overrides.p[i].option, arena_str(&s->texts, from->overrides.p[i].text) });
}

struct conf_store *conf_store_new(struct io_loop *l, const struct conf_sources *from, struct conf *first, conf_change_fn *fn, void *arg)
{
	struct conf_store *s = must_calloc(1, sizeof(*s));
	s->loop = l;
	s->now = first;
	s->fn = fn;
	s->arg = arg;
	s->last = io_now(l);
	arena_init(&s->texts, 0);
	conf_faults_init(&s->faults);
	copy_sources(s, from);
	for (size_t i = 0; i < s->sources.paths.n; i++)
		VEC_PUSH(&s->watches, io_watch_new(l, s->sources.paths.p[i].p, changed, s));
	return s;
}

void conf_store_free(struct conf_store *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->watches.n; i++)
		io_watch_free(s->watches.p[i]);
	VEC_FREE(&s->watches);
	VEC_FREE(&s->sources.paths);
	VEC_FREE(&s->sources.workers);
	VEC_FREE(&s->sources.overrides);
	arena_done(&s->texts);
	conf_faults_done(&s->faults);
	conf_unref(s->now);
	free(s);
}

struct conf *conf_store_now(const struct conf_store *s) { return s->now; }

struct conf_store_status conf_store_status(const struct conf_store *s)
{
	return (struct conf_store_status){ s->now->generation, s->reloads, s->failed, s->last, s->faulty ? &s->faults : NULL };
}
