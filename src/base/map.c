/* map.c: linear probing with backward-shift deletion. */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"

void map_init(struct map *m) { *m = (struct map){ 0 }; }

void map_done(struct map *m)
{
	free(m->slots);
	free(m->used);
	*m = (struct map){ 0 };
}

static size_t seek(const struct map *m, uint64_t key)
{
	size_t i = hash_mix(key) & (m->cap - 1);
	while (m->used[i] && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

bool map_get(const struct map *m, uint64_t key, uint64_t *ret_value)
{
	if (m->n == 0)
		return false;
	size_t i = seek(m, key);
	if (!m->used[i])
		return false;
	*ret_value = m->slots[i].value;
	return true;
}

void *map_get_ptr(const struct map *m, uint64_t key)
{
	uint64_t v;
	return map_get(m, key, &v) ? (void *)(uintptr_t)v : NULL;
}

static void resize(struct map *m, size_t cap)
{
	struct map old = *m;
	m->cap = cap;
	m->slots = must_calloc(m->cap, sizeof(*m->slots));
	m->used = must_calloc(m->cap, 1);
	for (size_t i = 0; i < old.cap; i++)
		if (old.used[i]) {
			size_t j = seek(m, old.slots[i].key);
			m->slots[j] = old.slots[i];
			m->used[j] = 1;
		}
	free(old.slots);
	free(old.used);
}

void map_reserve(struct map *m, size_t n)
{
	size_t cap = m->cap ? m->cap : 16;
	while (n * 4 > cap * 3)
		cap *= 2;
	if (cap > m->cap)
		resize(m, cap);
}

void map_put(struct map *m, uint64_t key, uint64_t value)
{
	map_reserve(m, m->n + 1);
	size_t i = seek(m, key);
	m->n += !m->used[i];
	m->used[i] = 1;
	m->slots[i] = (struct map_slot){ key, value };
}

bool map_del(struct map *m, uint64_t key)
{
	if (m->n == 0)
		return false;
	size_t i = seek(m, key), mask = m->cap - 1;
	if (!m->used[i])
		return false;
	for (size_t j = (i + 1) & mask; m->used[j]; j = (j + 1) & mask) {
		size_t home = hash_mix(m->slots[j].key) & mask;
		if (((j - home) & mask) >= ((j - i) & mask)) {
			m->slots[i] = m->slots[j];
			i = j;
		}
	}
	m->used[i] = 0;
	m->n--;
	return true;
}

size_t map_next(const struct map *m, size_t i)
{
	for (i = i + 1; i < m->cap && !m->used[i]; i++)
		;
	return i;
}
