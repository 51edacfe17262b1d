/* conf/conf.h: one generation of the configuration: options, pools and their workers; immutable and reference-counted.
 *
 * Made by conf_load() from sources: flags, files and folders (every *.yaml, *.yml in it). Flags win over files. All faults
 * of all sources are reported at once and no generation is made then. Faults in one object never hide those of another.
 * Discovery files are only read here to be checked: a pool names its file, edge/feed follows it (conf/list.h).
 * Any thread may read a generation it holds a reference to. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include "conf/fault.h"
#include "conf/option.h"

struct conf_label { struct str name, value; };
struct conf_worker {
	struct str url;                      /* "http://host:port/prefix", normalised: what is shown and what names the worker */
	struct str host;                     /* without brackets */
	bool ipv6;
	uint16_t port;
	struct str prefix;                   /* path before every request path, "" mostly; no slash at its end */
	struct str events, replay;           /* endpoints of rank 0, "tcp://host:port"; "" = ask the worker */
	bool events_off;                     /* kvEvents: off: do not follow this worker's events */
	struct str role, accelerator;        /* "" = none named */
	const struct conf_label *labels; size_t n_labels;
	struct str api_key;                  /* the worker's own key; never shown or logged; "" = none */
	unsigned line;                       /* in the discovery file that names it; 0: none does */
};
/* Where the tokenizer of a pool's models comes from. Nothing said: the worker's own `root` is looked for on this machine. */
struct conf_tokenizer {
	bool worker;                         /* nowhere: the workers are asked */
	struct str path, repo, revision;     /* a folder, or a repository of a hub ("" = main); "" = none */
};
struct conf_pool {
	struct str name;                     /* "" = the pool of --worker flags */
	struct str engine;                   /* name of a row of core/engine */
	struct conf_tokenizer tokenizer;
	bool has_routing; int64_t routing;   /* index in the words of option routing */
	bool drop_authorization;             /* the client's authorization header does not go to the workers */
	struct str discovery_file;           /* "" = none */
	struct str accelerator, api_key;     /* for workers that name none, and for discovered ones */
	const struct conf_worker *workers; size_t n_workers;
};
struct conf {
	_Atomic uint32_t refs;
	uint64_t generation;
	struct conf_opts opts;
	const struct conf_pool *pools; size_t n_pools;
	struct arena arena;                  /* owns all of the above */
};

/* Where a configuration comes from; kept for reloads. See conf/args.h for the command line. */
struct conf_override { const struct conf_option *option; struct str text; };
struct conf_sources {
	VEC(struct str) paths;               /* -c, in order */
	VEC(struct str) workers;             /* --worker, in order */
	VEC(struct conf_override) overrides; /* flags that set options */
	bool careful;                        /* what a gateway would live with is a fault too: lists of workers that cannot be read or
	                                      * have bad lines, accelerators without a profile (kvasir check) */
};

#define CONF_INDEX_FILE_BEGINS "kvasir index "   /* what --index-file names begins so, or is empty, or not there: nothing else is written over */

/* NULL when there was a fault. `generation` numbers the result. */
struct conf *conf_load(const struct conf_sources *s, uint64_t generation, struct conf_faults *faults);
struct conf *conf_ref(struct conf *c);
void conf_unref(struct conf *c);             /* NULL is fine */

/* The generation as the YAML that would make it, without secrets (--print-config). */
must_use enum err conf_print(struct buf *b, const struct conf *c);

#endif
