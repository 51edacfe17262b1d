/* text/local.h: token ids made in this process: a model's tokenizer and templates, and the ids of a request's body.
 *
 * A `struct text_local` is made from the texts of a model folder's files, never changes and is counted; any thread may use it,
 * each with a scratch of its own. Two results are possible: the ids that the worker would make, or a reason (a static word) why
 * it has to be asked. There is no third.
 *
 * Pure: no file, no clock. Owner: whoever holds a reference (the count is atomic). */
#ifndef TEXT_LOCAL_H
#define TEXT_LOCAL_H

#include "base/hash.h"
#include "text/ask.h"
#include "text/chat.h"
#include "text/ids.h"
#include "tok/memo.h"

struct text_local;
struct text_local_scratch;

/* The files of a model folder that are read; none has to be there but one with a vocabulary. */
#define TEXT_FILES(X)                                      \
	X(TOKENIZER, "tokenizer.json")                     \
	X(TIKTOKEN, "tiktoken.model")                      \
	X(TEKKEN, "tekken.json")                           \
	X(CONFIG, "tokenizer_config.json")                 \
	X(SPECIAL_MAP, "special_tokens_map.json")          \
	X(ADDED, "added_tokens.json")                      \
	X(TEMPLATE, "chat_template.jinja")                 \
	X(PROCESSOR_TEMPLATE, "chat_template.json")        \
	X(MODEL, "config.json")
enum text_file {
#define X(id, name) TEXT_FILE_##id,
	TEXT_FILES(X)
#undef X
	TEXT_FILE_COUNT
};
extern const char *const text_file_names[TEXT_FILE_COUNT];
#define TEXT_MORE_TEMPLATES "additional_chat_templates"   /* a folder with more templates */

struct text_local_files {
	struct str text[TEXT_FILE_COUNT];    /* n = 0: not there */
	bool more_templates;                 /* there is a folder of that name */
	bool known_version;                  /* see text_chat_files */
	enum tok_unicode unicode;            /* of a known version */
};

/* The texts are borrowed during the call. `why` (NUL-terminated): on failure why there is no tokenizer; on success why there are
 * no chats (the templates are not usable: completions still work), or "". One reference. */
must_use enum err text_local_load(const struct text_local_files *f, char *why, size_t why_cap, struct text_local **ret_l);
struct text_local *text_local_ref(struct text_local *l);
void text_local_unref(struct text_local *l);                    /* NULL is fine */
bool text_local_has_chat(const struct text_local *l);
bool text_local_is_harmony(const struct text_local *l);         /* GPT-OSS: a worker's /tokenize gives other ids for its chats than its engine gets */
bool text_local_uses_clock(const struct text_local *l);         /* the ids of a chat may depend on the day */
bool text_local_decodes_plainly(const struct text_local *l);    /* the library does not tidy spaces when it joins pieces */
const struct tok *text_local_tok(const struct text_local *l);
size_t text_local_bytes(const struct text_local *l);

/* Working memory of one thread with one model; cache_bytes as in tok_scratch_new. The model outlives it. */
struct text_local_scratch *text_local_scratch_new(struct text_local *l, size_t cache_bytes);
void text_local_scratch_free(struct text_local_scratch *s);     /* NULL is fine */

enum { TEXT_MEDIA_TOK = 576 };  /* what an image is counted as, where that is a guess: between a few hundred and some thousand */

struct text_local_job {
	enum text_form form;
	struct str body;          /* the client's, checked as JSON or not */
	int64_t now_s;            /* Unix time */
	size_t max_tok;           /* more ids: LIMIT */
	size_t model_tok;         /* the model's length as its workers tell it (max_model_len); 0: not known */
	struct tok_memo *memo;    /* what was tokenised before; NULL: none */
	size_t max_new_bytes;     /* of text that it does not know: more is AGAIN; 0: no limit */
	bool prefix_will_do;      /* of a chat with images, audio or video: the ids of what surely comes before them (text_ids_is_prefix) */
};
/* One reference for the caller. UNSUPPORTED, BAD_REQUEST, LIMIT, SYNTAX: ask the worker; *ret_why says why. AGAIN: this is or may be a long
 * piece of work (a request's own template always), to be done elsewhere without max_new_bytes. */
must_use enum err text_local_ids(struct text_local_scratch *s, const struct text_local_job *job, struct text_ids **ret_ids, const char **ret_why);
/* The prompt of a chat as text, appended to out: for people and for comparisons. */
must_use enum err text_local_prompt(struct text_local_scratch *s, const struct text_local_job *job, struct buf *out, const char **ret_why);

#endif
