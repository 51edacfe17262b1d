/* base/vec.h: a typed growing array. Declare `VEC(int) v = {0};`, push with VEC_PUSH(&v, 7), walk v.p[0..v.n-1],
 * free with VEC_FREE(&v). Grows by doubling; out of memory aborts. */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdlib.h>

#include "base/must.h"

#define VEC(T) struct { T *p; size_t n, cap; }
#define VEC_PUSH(v, ...)                                                                       \
	do {                                                                                   \
		if ((v)->n == (v)->cap) {                                                      \
			(v)->cap = (v)->cap ? (v)->cap * 2 : 8;                                \
			(v)->p = must_realloc((v)->p, (v)->cap * sizeof(*(v)->p));             \
		}                                                                              \
		(v)->p[(v)->n++] = (__VA_ARGS__);                                              \
	} while (0)
#define VEC_FREE(v)                                        \
	do {                                               \
		free((v)->p);                              \
		(v)->p = NULL;                             \
		(v)->n = (v)->cap = 0;                     \
	} while (0)

#endif
