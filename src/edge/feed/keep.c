/* keep.c: the index on disk between two lives of the gateway. Written whole when the gateway stops, read when it starts; a rank takes
 * its part when its events are followed, and believes it when a replay shows that the worker is the one it was (kv/save.c).
 *
 * "kvasir index 1\n", then a rank each: part_head, its worker's URL, its bytes; at the end a digest of all before it. */
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "feed/feed_priv.h"
#include "io/file.h"
#include "io/folder.h"

#define FIRST_LINE CONF_INDEX_FILE_BEGINS "1\n"
#define FILE_MAX_BYTES ((size_t)16 << 30)

struct part_head { uint64_t n_url, rank, n; };

struct feed_kept {
	struct buf file;
	struct map parts;                    /* hash of (url, rank) -> where its head is */
};

static uint64_t part_key(struct str url, uint32_t rank) { return hash_str(url, rank); }

/* The part at *at; false at the end, or where it is cut. */
static bool part_at(struct str all, size_t *at, struct part_head *h, struct str *ret_url, struct str *ret_saved)
{
	if (all.n - *at < sizeof(*h))
		return false;
	memcpy(h, all.p + *at, sizeof(*h));
	size_t left = all.n - *at - sizeof(*h);
	if (h->n_url > left || h->n > left - h->n_url)
		return false;
	*ret_url = str_from(all.p + *at + sizeof(*h), (size_t)h->n_url);
	*ret_saved = str_from(ret_url->p + h->n_url, (size_t)h->n);
	*at += sizeof(*h) + (size_t)h->n_url + (size_t)h->n;
	return true;
}

static bool is_whole(struct str file)
{
	uint64_t digest;
	if (file.n < sizeof(FIRST_LINE) - 1 + sizeof(digest) || memcmp(file.p, FIRST_LINE, sizeof(FIRST_LINE) - 1) != 0)
		return false;
	memcpy(&digest, file.p + file.n - sizeof(digest), sizeof(digest));
	return digest == hash_bytes(file.p, file.n - sizeof(digest), 0);
}

static struct str parts_of(const struct buf *file) { return str_from(file->p + file->head, file->n - sizeof(uint64_t)); }

static void find_parts(struct feed_kept *k)
{
	struct part_head h;
	struct str url, saved;
	size_t at = sizeof(FIRST_LINE) - 1, from = at;
	while (part_at(parts_of(&k->file), &at, &h, &url, &saved)) {
		map_put(&k->parts, part_key(url, (uint32_t)h.rank), from);
		from = at;
	}
}

struct feed_kept *feed_kept_read(const char *path)
{
	struct feed_kept *k = must_calloc(1, sizeof(*k));
	map_init(&k->parts);
	enum err e = io_file_read(path, FILE_MAX_BYTES, &k->file);
	if (e == ERR_OK && is_whole(buf_str(&k->file))) {
		find_parts(k);
		LOG_INFO("index_read", "path=%s ranks=%zu bytes=%zu", path, k->parts.n, k->file.n);
		return k;
	}
	if (e != ERR_NOT_FOUND)
		LOG_WARN("index_not_read", "path=%s why=\"%s\" instead=\"the workers are asked for what they still know\"", path,
		         e == ERR_OK ? "it is cut or of another version" : err_text(e));
	feed_kept_free(k);
	return NULL;
}

void feed_kept_free(struct feed_kept *k)
{
	if (k == NULL)
		return;
	buf_done(&k->file);
	map_done(&k->parts);
	free(k);
}

void feed_kept_give(const struct feed_kept *k, struct str url, uint32_t rank, struct kv_rank *kv)
{
	struct part_head h;
	struct str of, saved;
	uint64_t from;
	if (k == NULL || !map_get(&k->parts, part_key(url, rank), &from))
		return;
	size_t at = (size_t)from;
	if (!part_at(parts_of(&k->file), &at, &h, &of, &saved) || !str_eq(of, url) || h.rank != rank)
		return;
	enum err e = kv_rank_load(kv, saved);
	if (e != ERR_OK)
		LOG_WARN("index_part_not_read", "worker=%.*s rank=%u why=\"%s\"", STR_ARG(url), rank, err_text(e));
	else
		LOG_INFO("index_part_read", "worker=%.*s rank=%u blocks=%u", STR_ARG(url), rank, kv_rank_stats(kv).blocks);
}

/* ---- at the end */

/* Adds a rank's part, or nothing. */
static bool add_part(struct buf *file, const struct feed_worker *w, uint32_t rank)
{
	struct part_head h = { w->conf.url.n, rank, 0 };
	size_t before = file->n, head_end = before + sizeof(h) + w->conf.url.n;
	if (w->ranks[rank] == NULL || buf_add(file, str_from(&h, sizeof(h))) != ERR_OK || buf_add(file, w->conf.url) != ERR_OK ||
	    feed_rank_save(w->ranks[rank], file) != ERR_OK) {
		file->n = before;
		return false;
	}
	h.n = file->n - head_end;
	memcpy(file->p + file->head + before, &h, sizeof(h));
	return true;
}

static size_t bytes_needed(const struct feed *f)
{
	size_t n = sizeof(FIRST_LINE) + sizeof(uint64_t) + (f->kept != NULL ? f->kept->file.n : 0);
	LIST_FOR(&f->workers, it) {
		const struct feed_worker *w = container_of(it, struct feed_worker, node);
		for (uint32_t r = 0; r < w->n_ranks; r++)
			n += sizeof(struct part_head) + w->conf.url.n + (w->ranks[r] != NULL ? feed_rank_save_bytes(w->ranks[r]) : 0);
	}
	return n;
}

/* What was read and nothing newer is known of: its worker was not reached yet, or no replay has ended. */
static size_t add_unproven(const struct feed_kept *k, const struct map *written, struct buf *file)
{
	struct part_head h;
	struct str url, saved;
	uint64_t one;
	size_t parts = 0, at = sizeof(FIRST_LINE) - 1, from = at;
	for (; part_at(parts_of(&k->file), &at, &h, &url, &saved); from = at)
		if (!map_get(written, part_key(url, (uint32_t)h.rank), &one))
			parts += buf_add(file, str_sub(parts_of(&k->file), from, at - from)) == ERR_OK;
	return parts;
}

static size_t add_parts(const struct feed *f, struct buf *file)
{
	struct map written;
	map_init(&written);
	LIST_FOR(&f->workers, it) {
		const struct feed_worker *w = container_of(it, struct feed_worker, node);
		for (uint32_t r = 0; r < w->n_ranks; r++)
			if (add_part(file, w, r))
				map_put(&written, part_key(w->conf.url, r), 1);
	}
	size_t parts = written.n + (f->kept != NULL ? add_unproven(f->kept, &written, file) : 0);
	map_done(&written);
	return parts;
}

static char *beside(const char *path, const char *suffix)
{
	size_t n = strlen(path), n_suffix = strlen(suffix) + 1;
	char *p = must_malloc(n + n_suffix);
	memcpy(p, path, n);
	memcpy(p + n, suffix, n_suffix);
	return p;
}

/* Beside it first: who reads it finds the old one or the new one, whole. */
static enum err write_and_move(const char *fresh, const char *path, struct str text)
{
	enum err e = io_file_write(fresh, text);
	if (e == ERR_OK)
		e = io_path_move(fresh, path);
	if (e != ERR_OK && io_file_remove(fresh) != ERR_OK)      /* half of it would fill what is full already */
		LOG_WARN("index_half_left", "path=%s", fresh);
	return e;
}

/* One gateway at a time; another that ends now writes none. */
static enum err replace(const char *path, struct str text)
{
	char *fresh = beside(path, ".new"), *lock = beside(path, ".lock");
	struct io_lock *held;
	enum err e = io_lock_take(lock, &held);
	if (e == ERR_OK) {
		e = write_and_move(fresh, path, text);
		io_lock_drop(held);
	}
	free(fresh);
	free(lock);
	return e;
}

void feed_keep(const struct feed *f)
{
	const char *path = f->conf->opts.feed.index_file.p;
	struct buf file;
	char *room;
	if (f->conf->opts.feed.index_file.n == 0)
		return;
	buf_init(&file, FILE_MAX_BYTES);
	enum err e = buf_reserve(&file, bytes_needed(f), &room);
	e = e == ERR_OK ? buf_add(&file, STR(FIRST_LINE)) : e;
	size_t parts = e == ERR_OK ? add_parts(f, &file) : 0;
	uint64_t digest = hash_bytes(file.p, file.n, 0);
	e = e == ERR_OK ? buf_add(&file, str_from(&digest, sizeof(digest))) : e;
	e = e == ERR_OK ? replace(path, buf_str(&file)) : e;
	if (e == ERR_OK)
		LOG_INFO("index_written", "path=%s ranks=%zu bytes=%zu", path, parts, file.n);
	else
		LOG_ERROR("index_not_written", "path=%s bytes=%zu why=\"%s\"", path, file.n, e == ERR_AGAIN ? "another gateway writes it" : err_text(e));
	buf_done(&file);
}
