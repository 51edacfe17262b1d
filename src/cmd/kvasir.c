/* kvasir: the gateway. Wiring only: which rooms run on which loop, who hears of what, in what order it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/must.h"
#include "conf/args.h"
#include "conf/store.h"
#include "ctl/ctl.h"
#include "feed/feed.h"
#include "gate/gate.h"
#include "io/fds.h"
#include "io/thread.h"
#include "ops/ops.h"
#include "tokenize/tokenize.h"

struct server;
struct hand {
	struct server *server;
	struct io_loop *loop;
	struct gate_link *link;
	struct gate *gate;
	struct io_thread *thread; /* NULL: on the main loop */
};

struct server {
	struct io_loop *loop; /* brain, hub, admin; with one hand also the data port */
	struct io_zhub *zhub;
	struct conf_store *store;
	struct feed *feed;
	struct gate_shared *shared;
	struct ops *ops;
	struct hand *hands;
	size_t n_hands, n_drained;
	size_t hand_conns, admin_conns;
	bool draining;
};

/* ---- descriptors: clients must not be able to hold all of them */

enum { FDS_OWN = 64, FDS_KEPT_SHARE = 4, ADMIN_CONNS = 256, ADMIN_SHARE = 16 };

/* A client takes two: its own and one to a worker. */
static bool share_descriptors(struct server *s, const struct conf *c)
{
	size_t had = io_fds_raise(), kept = FDS_OWN + had / FDS_KEPT_SHARE, hands = (size_t)c->opts.gate.threads, wanted = (size_t)c->opts.gate.max_connections;
	size_t most = had > kept ? (had - kept) / 2 / hands : 0;
	if (most == 0) {
		fprintf(stderr, "kvasir: %zu file descriptors (ulimit -n) are too few for %zu threads\n", had, hands);
		return false;
	}
	s->hand_conns = MIN(wanted, most);
	s->admin_conns = MIN(had / ADMIN_SHARE, (size_t)ADMIN_CONNS);
	if (most < wanted)
		LOG_INFO("connections_lowered", "from=%zu to=%zu descriptors=%zu what=\"more need a higher hard limit of open files (ulimit -Hn)\"", wanted, most, had);
	return true;
}

/* ---- words to hands: a call when a hand shares the main loop, a letter when not */

struct letter {
	struct hand *hand;
	struct feed_view *view;
	struct conf *conf;
	int64_t drain_us;
};

static void hand_drained(void *arg);

static void open_letter(void *arg)
{
	struct letter *m = arg;
	struct gate *g = m->hand->gate; /* NULL: it came after the hand's end */
	if (m->view && g)
		gate_set_view(g, m->view);
	else
		feed_view_unref(m->view);
	if (m->conf && g)
		gate_set_opts(g, &m->conf->opts.gate);
	if (m->drain_us >= 0 && g)
		gate_drain(g, m->drain_us, hand_drained, m->hand);
	conf_unref(m->conf);
	free(m);
}

static void post(struct hand *h, struct feed_view *view, struct conf *conf, int64_t drain_us)
{
	struct letter *m = must_malloc(sizeof(*m));
	*m = (struct letter){ h, view, conf, drain_us };
	if (h->thread)
		io_post(h->loop, open_letter, m);
	else
		open_letter(m);
}

static void on_view(void *arg, struct feed_view *v)
{
	struct server *s = arg;
	for (size_t i = 0; i < s->n_hands; i++)
		post(&s->hands[i], feed_view_ref(v), NULL, -1);
}

static void on_change(void *arg, const struct conf *old, struct conf *now)
{
	struct server *s = arg;
	(void)old;
	feed_configure(s->feed, now);
	gate_shared_set_body_memory(s->shared, now->opts.gate.body_memory_bytes);
	for (size_t i = 0; i < s->n_hands; i++)
		post(&s->hands[i], NULL, conf_ref(now), -1);
}

/* ---- hands */

static void hand_run(void *arg) { io_loop_run(((struct hand *)arg)->loop); }

static void hand_init(struct server *s, struct hand *h, const struct conf *c)
{
	struct brain *b = feed_brain(s->feed);
	bool own_loop = c->opts.gate.threads > 1;
	h->server = s;
	h->loop = own_loop ? io_loop_new() : s->loop;
	h->link = own_loop ? gate_link_mailbox(b, s->loop, h->loop) : gate_link_direct(b, s->loop);
	struct conf_gate_opts o = c->opts.gate;
	o.max_connections = (int64_t)s->hand_conns;
	h->gate = gate_new(h->loop, &o, s->shared, h->link);
	gate_set_view(h->gate, feed_view_ref(feed_view_now(s->feed)));
}

static bool read_addr(struct str text, const char *flag, struct io_addr *ret_a)
{
	if (io_addr_parse(text, ret_a) == ERR_OK)
		return true;
	fprintf(stderr, "kvasir: %s %.*s: an address like 127.0.0.1:8080 is needed\n", flag, STR_ARG(text));
	return false;
}

static bool cannot_listen(const struct io_addr *a)
{
	char text[64];
	struct str at = io_addr_print(a, text);
	fprintf(stderr, "kvasir: cannot listen on %.*s: the address is in use, not of this machine, or not allowed to this user\n", STR_ARG(at));
	return false;
}

/* The first hand may bind port 0; the others take the port it got. */
static bool hands_listen(struct server *s, const struct conf *c)
{
	struct io_addr a;
	char text[64];
	if (!read_addr(c->opts.gate.listen, "--listen", &a))
		return false;
	for (size_t i = 0; i < s->n_hands; i++) {
		if (gate_listen(s->hands[i].gate, &a, s->n_hands > 1) != ERR_OK)
			return cannot_listen(&a);
		a = gate_addr(s->hands[i].gate);
	}
	struct str at = io_addr_print(&a, text);
	LOG_INFO("listening", "data=%.*s hands=%zu version=%s", STR_ARG(at), s->n_hands, KVASIR_VERSION);
	return true;
}

static bool admin_listen(struct server *s, const struct conf *c)
{
	struct io_addr a;
	char text[64];
	if (!read_addr(c->opts.ops.admin, "--admin", &a))
		return false;
	struct gate **gates = must_calloc(s->n_hands, sizeof(struct gate *));
	for (size_t i = 0; i < s->n_hands; i++)
		gates[i] = s->hands[i].gate;
	struct ops_opts o = { .loop = s->loop,
		.feed = s->feed,
		.store = s->store,
		.gates = gates,
		.n_gates = s->n_hands,
		.max_conns = s->admin_conns,
		.gate_loop = s->hands[0].loop,
		.shared = s->shared };
	enum err e = ops_new(&o, &a, &s->ops);
	free(gates);
	if (e != ERR_OK)
		return cannot_listen(&a);
	a = ops_addr(s->ops);
	struct str at = io_addr_print(&a, text);
	LOG_INFO("admin", "admin=%.*s", STR_ARG(at));
	return true;
}

static void hands_start(struct server *s)
{
	for (size_t i = 0; i < s->n_hands; i++)
		if (s->hands[i].loop != s->loop)
			s->hands[i].thread = io_thread_start(hand_run, &s->hands[i]);
}

static void hand_free(struct hand *h)
{
	if (h->thread) {
		io_loop_stop_from_any(h->loop);
		io_thread_join(h->thread);
	}
	gate_free(h->gate);
	h->gate = NULL;
	gate_link_free(h->link);
	if (h->loop == h->server->loop)
		return;
	while (io_loop_alive(h->loop))
		;
	io_loop_free(h->loop);
}

/* ---- the end */

static void all_drained(void *arg)
{
	struct server *s = arg;
	if (++s->n_drained == s->n_hands)
		io_loop_stop(s->loop);
}

static void hand_drained(void *arg)
{
	struct hand *h = arg;
	io_post(h->server->loop, all_drained, h->server);
}

static void on_term(void *arg, int signum)
{
	struct server *s = arg;
	if (s->draining) {
		LOG_WARN("killed", "signal=%d why=\"again: not waiting any longer\"", signum);
		exit(1);
	}
	s->draining = true;
	int64_t limit_us = conf_store_now(s->store)->opts.gate.shutdown_timeout_us;
	LOG_INFO("draining", "signal=%d limit_ms=%lld", signum, (long long)(limit_us / 1000));
	feed_drain(s->feed);
	ops_drain(s->ops);
	for (size_t i = 0; i < s->n_hands; i++)
		post(&s->hands[i], NULL, NULL, limit_us);
}

static void on_hup(void *arg, int signum)
{
	struct server *s = arg;
	(void)signum;
	conf_store_reload(s->store);
	if (!conf_store_status(s->store).faults)
		feed_reload_tokenizers(s->feed);
}

static void server_free(struct server *s)
{
	ops_free(s->ops);
	for (size_t i = 0; i < s->n_hands; i++)
		hand_free(&s->hands[i]);
	free(s->hands);
	conf_store_free(s->store);
	feed_free(s->feed);
	if (s->zhub)
		io_zhub_free(s->zhub);
	gate_shared_free(s->shared);
	io_signals_close(s->loop);
	while (io_loop_alive(s->loop))
		;
	io_loop_free(s->loop);
}

/* ---- serve */

static void server_init(struct server *s, struct conf *c, const struct conf_sources *sources)
{
	s->loop = io_loop_new();
	s->zhub = c->opts.feed.events ? io_zhub_new(s->loop) : NULL;
	s->shared = gate_shared_new(&c->opts.gate);
	s->feed = feed_new(&(struct feed_opts){
		.loop = s->loop, .zhub = s->zhub, .conf = c, .seed = (uint64_t)c->opts.brain.seed, .on_view = on_view, .arg = s });
	s->hands = must_calloc((size_t)c->opts.gate.threads, sizeof(*s->hands));
	for (int64_t i = 0; i < c->opts.gate.threads; i++)
		hand_init(s, &s->hands[i], c);
	s->n_hands = (size_t)c->opts.gate.threads;
	s->store = conf_store_new(s->loop, sources, conf_ref(c), on_change, s);
	io_signal(s->loop, 15, on_term, s);
	io_signal(s->loop, 2, on_term, s);
	io_signal(s->loop, 1, on_hup, s);
}

static int run(struct conf *c, const struct conf_sources *sources)
{
	struct server s = { 0 };
	log_set_level((enum log_level)c->opts.ops.log_level);
	if (!share_descriptors(&s, c))
		return 1;
	server_init(&s, c, sources);
	bool ok = hands_listen(&s, c) && admin_listen(&s, c);
	if (ok) {
		hands_start(&s);
		io_loop_run(s.loop);
		feed_keep(s.feed);
		LOG_INFO("stopped", "drained=%zu", s.n_drained);
	}
	server_free(&s);
	return ok ? 0 : 1;
}

static int print_faults(const struct conf_faults *f)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	for (size_t i = 0; i < f->list.n; i++) {
		buf_clear(&b);
		if (conf_fault_print(&b, &f->list.p[i]) == ERR_OK)
			fprintf(stderr, "%.*s\n", STR_ARG(buf_str(&b)));
	}
	if (f->cut)
		fprintf(stderr, "and %zu more\n", f->cut);
	buf_done(&b);
	return 1;
}

static int print(enum err e, struct buf *b)
{
	if (e == ERR_OK)
		fwrite(buf_str(b).p, 1, b->n, stdout);
	buf_done(b);
	return e == ERR_OK ? 0 : 1;
}

static int serve_parsed(const struct conf_args *a, struct conf_faults *faults)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	if (a->help)
		return print(conf_args_help(&b), &b);
	if (a->version)
		return print(buf_printf(&b, "kvasir %s\n", KVASIR_VERSION), &b);
	struct conf *c = conf_load(&a->sources, 1, faults);
	if (!c)
		return print_faults(faults);
	int rc = a->print_config ? print(conf_print(&b, c), &b) : run(c, &a->sources);
	conf_unref(c);
	return rc;
}

static int serve(int argc, char **argv)
{
	struct conf_args a;
	struct conf_faults faults;
	conf_faults_init(&faults);
	int rc = conf_args_parse(argc, argv, &a, &faults) ? serve_parsed(&a, &faults) : print_faults(&faults);
	conf_args_done(&a);
	conf_faults_done(&faults);
	return rc;
}

/* ---- verbs */

static const struct {
	const char *name, *what;
	int (*fn)(int argc, char **argv);
} verbs[] = {
	{ "serve", "relay requests to the worker that will answer first", serve },
	{ "check", "all faults of configuration files at once", ctl_check },
	{ "explain", "why a request went, or would go, where it did", ctl_explain },
	{ "get", "workers, pools or the index of a running gateway", ctl_get },
	{ "tokenize", "the token ids of a text, by the gateway's own tokenizer", tokenize_main },
};

static int help(FILE *to, int rc)
{
	fprintf(to, "usage: kvasir VERB [options]   (VERB --help or help VERB tells more)\n\n");
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		fprintf(to, "  %-8s %s\n", verbs[i].name, verbs[i].what);
	return rc;
}

int main(int argc, char **argv)
{
	char help_word[] = "--help", *help_flag = help_word;
	const char *verb = argc > 1 ? argv[1] : "";
	io_fds_fill();
	if (!strcmp(verb, "--version"))
		return printf("kvasir %s\n", KVASIR_VERSION) < 0;
	bool asks = !strcmp(verb, "help");
	if (!strcmp(verb, "--help") || !strcmp(verb, "-h") || (asks && argc == 2))
		return help(stdout, 0);
	if (asks)
		verb = argv[2];
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (!strcmp(verb, verbs[i].name))
			return asks ? verbs[i].fn(1, &help_flag) : verbs[i].fn(argc - 2, argv + 2);
	if (verb[0])
		fprintf(stderr, "kvasir: '%s' is no verb of kvasir\n", verb);
	return help(stderr, 2);
}
