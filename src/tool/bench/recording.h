/* bench/recording.h: one recording of a real worker, read into memory: its facts and its timeline in order.
 * Slices and values point into the documents the recording owns. */
#ifndef BENCH_RECORDING_H
#define BENCH_RECORDING_H

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "wire/json.h"

struct bench_recording {
	struct str name;                       /* the folder's */
	struct str engine;
	uint32_t version[2];                   /* major, minor */
	uint32_t block_size;
	VEC(const struct json_val *) lines;
	VEC(struct json_doc *) docs;
	const struct json_val *run;
	struct map truth, request;             /* hash of the id -> line */
	struct arena a;
};

must_use enum err bench_recording_read(const char *dir, struct bench_recording *ret_r);
void bench_recording_free(struct bench_recording *r);
const struct json_val *bench_recording_line(const struct map *m, struct str id);
/* A text member, "" if absent or of another type. */
struct str bench_recording_text(const struct json_val *v, struct str key);
/* Bytes from hex digits, in the arena; false if they are none. */
bool bench_recording_hex(struct arena *a, struct str hex, struct str *ret_bytes);

#endif
