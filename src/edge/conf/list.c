/* The list that scripts write and feed follows; `kvasir check` looks at it with the same eyes. */
#include "conf/list.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "brain/brain.h"
#include "conf/worker.h"
#include "io/file.h"

struct reading {
	struct conf_list *list;
	struct map at;                       /* hash of a URL -> where in the list it stands */
	const struct conf_pool *pool;
	struct arena *arena;
};

static bool known(const struct reading *r, struct str url)
{
	uint64_t at;
	return map_get(&r->at, hash_str(url, 0), &at) && str_eq(r->list->workers.p[at].url, url);
}

static void add(struct reading *r, const struct conf_worker *w)
{
	map_put(&r->at, hash_str(w->url, 0), r->list->workers.n);
	VEC_PUSH(&r->list->workers, *w);
}

/* What is to be said about the line, or NULL. */
static const char *read_line(struct reading *r, struct str line, unsigned number)
{
	struct conf_worker w;
	const char *what;
	enum conf_line kind = conf_worker_line(line, r->pool, r->arena, &w, &what);
	r->list->bad += kind == CONF_LINE_BAD;
	if (kind != CONF_LINE_WORKER)
		return what;
	if (known(r, w.url))
		return "this worker stands in the file already";
	w.line = number;
	if (r->list->workers.n < BRAIN_MAX_WORKERS)
		add(r, &w);
	else
		r->list->over++;
	return what;
}

static const char *read_fault(enum err e)
{
	return e == ERR_NOT_FOUND ? "there is no such file" : e == ERR_LIMIT ? "the file is larger than 4 MiB" : "the file cannot be read";
}

const char *conf_list_read(struct str path, const struct conf_pool *pool, struct arena *a, conf_list_fn *say, void *arg, struct conf_list *ret_list)
{
	struct buf b = { 0 };
	char *z = str_dup(path);
	enum err e = io_file_read(z, CONF_LIST_MAX_BYTES, &b);
	struct reading r = { .list = ret_list, .pool = pool, .arena = a };
	unsigned n = 0;
	free(z);
	*ret_list = (struct conf_list){ 0 };
	map_init(&r.at);
	for (struct str line, rest = buf_str(&b); e == ERR_OK && rest.n > 0;) {
		str_cut(rest, '\n', &line, &rest);
		const char *what = read_line(&r, line, ++n);
		if (what != NULL)
			say(arg, n, what);
	}
	buf_done(&b);
	map_done(&r.at);
	return e == ERR_OK ? NULL : read_fault(e);
}
