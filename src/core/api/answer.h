/* api/answer.h: what a worker's answer tells: usage, first content, finish, errors, ids. Never changes a byte.
 *
 * Streams: split with wire/sse, give each event's data to api_chunk_read. Others: feed the body to an api_whole.
 * Source of the shapes: the shared facts, vllm-observed II.2. Pure. */
#ifndef API_ANSWER_H
#define API_ANSWER_H

#include "api/path.h"
#include "base/buf.h"

enum { API_WHOLE_MAX = 1 << 20, API_WHOLE_TAIL = 64 << 10 };
#define API_TOK_UNKNOWN UINT32_MAX

struct api_usage {
	uint32_t prompt_tok; /* the whole prompt, cached part included, in every dialect */
	uint32_t cached_tok;
	uint32_t output_tok; /* each: API_TOK_UNKNOWN when the answer does not say (or says nonsense) */
	bool details_null; /* prompt_tokens_details was there and null: 0 for workers below 0.24, or the flag is off */
};
static inline struct api_usage api_usage_none(void)
{
	return (struct api_usage){ API_TOK_UNKNOWN, API_TOK_UNKNOWN, API_TOK_UNKNOWN, false };
}
/* What `from` knows replaces what `into` has: usage may come in several events (Anthropic: message_start, message_delta). */
void api_usage_merge(struct api_usage *into, const struct api_usage *from);

enum api_chunk_kind {
	API_CHUNK_OTHER, /* role, ping, empty delta, unknown JSON */
	API_CHUNK_CONTENT, /* carries at least one piece of output (text, reasoning, tool call, token ids) */
	API_CHUNK_USAGE_ONLY, /* `choices: []` with usage: to be dropped whole when the client did not ask */
	API_CHUNK_DONE, /* [DONE], message_stop, response.completed */
	API_CHUNK_ERROR /* an error object in the stream */
};
struct api_chunk {
	enum api_chunk_kind kind;
	int error_status; /* of API_CHUNK_ERROR: 400 to 599, what its answer would have had; 500: it does not say */
	bool finish; /* a finish/stop reason is given */
	bool has_usage;
	struct api_usage usage;
	char id[128]; /* response id when the chunk names one, else "" */
	char fingerprint[64]; /* system_fingerprint, or "" */
	bool has_sequence;
	uint64_t sequence; /* sequence_number of /v1/responses events */
};
/* data: the joined data lines of one event. Bad JSON gives API_CHUNK_OTHER: the bytes pass anyway. */
void api_chunk_read(enum api_dialect d, struct str data, struct api_chunk *ret_c);

/* Most chunks of a stream differ in one string only. From one that was read as output and nothing else (no finish, usage,
 * number) its shape is learnt; a chunk that has the same bytes around another, not empty string is such a chunk too, without
 * being read: reading each as JSON costs more than passing it on. Zeroed: fits nothing. */
struct api_shape {
	uint16_t before, n; /* bytes before the string; all bytes around it */
	char text[700];
};
void api_shape_learn(struct api_shape *s, const struct api_chunk *c, struct str data);
bool api_shape_fits(const struct api_shape *s, struct str data);
/* A worker that was asked for usage puts system_fingerprint into the extra usage chunk; one that was not, into the chunk with
 * the finish reason. Where we added include_usage and drop that chunk, the fingerprint (the same for all streams of a worker
 * process: remember it from any usage chunk) goes back where the client would have found it: *ret_at is the place in ev_raw
 * for the text that api_fingerprint_put writes. False: not such a chunk, it has one already, or its data are in several lines. */
bool api_fingerprint_at(const struct api_chunk *c, struct str ev_raw, struct str ev_data, size_t *ret_at);
must_use enum err api_fingerprint_put(struct buf *b, const char *fingerprint);

/* A whole (non-stream) JSON body that arrives in pieces. Up to API_WHOLE_MAX is kept and read as JSON; of a longer one
 * only the tail, searched for its usage object. */
struct api_whole {
	struct buf copy;
	bool cut; /* only the tail is in copy */
	char id[128]; /* taken from the head */
};
struct api_result {
	bool has_usage;
	struct api_usage usage;
	int error_status; /* an error object's, as for a chunk; 0: none */
	char id[128];
};
void api_whole_init(struct api_whole *w);
void api_whole_done(struct api_whole *w);
void api_whole_feed(struct api_whole *w, struct str piece);
/* At the end of the body. */
void api_whole_read(struct api_whole *w, enum api_dialect d, struct api_result *ret_r);

#endif
