/* base/base.h: attributes and the smallest helpers every room may use. */
#ifndef BASE_BASE_H
#define BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define must_use __attribute__((warn_unused_result))
#define printf_like(fmt, args) __attribute__((format(printf, fmt, args)))
#define nonnull_all __attribute__((nonnull))
#define maybe_unused __attribute__((unused))
#define fallthrough_case __attribute__((fallthrough))
#define cleanup_with(fn) __attribute__((cleanup(fn)))
#define no_return __attribute__((noreturn))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* The struct that holds member `m` at address `p`. */
#define container_of(p, T, m) ((T *)(void *)((char *)(p) - offsetof(T, m)))

static inline uint64_t div_ceil_u64(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

#endif
