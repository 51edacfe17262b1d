/* play.h: a play is a text file of commands that drive a brain with a scripted clock; a wrong expectation ends the program
 * with file:line. One command a line, '#' comments. Words are NAME, key=value or a bare flag.
 *
 *   routing WORD | seed N | receipts N       before the first worker
 *   worker NAME [pool=P] [model=M,ALIAS] [lora=L] [profile=X] [block=16] [blocks=N] [ranks=N] [len=N] [noevents] [unprobed]
 *   workers N PREFIX ...                     PREFIX1 .. PREFIXN
 *   models NAME model=...                    a new list of names
 *   drain NAME
 *   probe NAME ok|connect|status|timeout|auth
 *   gauges NAME running=N waiting=N kv=PERCENT
 *   hold NAME prompt=SPEC [tier=cpu|storage] its events say it holds these blocks, on the GPU or below
 *   clear NAME
 *   wait 100ms | wait 3s                     time passes, with a tick every 100 ms
 *   ask ID [model=M] [pool=P] [prompt=SPEC | tokens=N] [nostream] [plain] [nolookup] [dry] [key=N] [pinned=NAME]
 *           [-> NAME|NAME/RANK] [!-> NAME] [hit=N] [reason=WORD] [error=LABEL]
 *   asks N ID ...                            ID.1 .. ID.N; in SPEC a '%' becomes the number
 *   sent|first ID...   tokens ID n=N   usage ID cached=N [prompt=N]   switch ID leg=N [how=OUTCOME]
 *   end ID [how=done|left|error|died|connect|timeout|notsent] [status=N]
 *           an ID that ends in '*' means every open request that begins so
 *   expect zero | health NAME STATE | load NAME requests=N [prefill=N] [contexts=N] | spread ID* most-least=N |
 *          used ID* workers=N (at most) | on ID* NAME at-most=PERCENT | leg ID n=N NAME | panic on|off | alarm NAME WORD |
 *          no-alarm NAME | gone NAME
 *
 * SPEC: segments of tokens, "sys:6000+q7:1200": equal names give equal tokens. */
#ifndef PLAY_H
#define PLAY_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "brain/brain.h"

enum { PLAY_WORDS = 24 };
struct play_line { const char *file; int no; struct str words[PLAY_WORDS]; size_t n; };

struct play_worker { struct str name; brain_worker id; uint32_t block; bool panic_seen; const char *alarm; };
struct play_request { struct str id; uint64_t ticket; struct brain_plan plan; bool open; enum err error; };
struct play {
	struct arena mem;
	struct brain_opts opts;
	struct brain *brain;
	struct mono now;
	VEC(struct play_worker) workers;
	VEC(struct play_request) requests;
	bool panic;
};

/* line.c: words */
no_return void play_fail(const struct play_line *l, const char *fmt, ...) printf_like(2, 3);
bool play_flag(const struct play_line *l, const char *word);
struct str play_value(const struct play_line *l, const char *key);          /* empty: not there */
uint64_t play_number(const struct play_line *l, const char *key, uint64_t otherwise);
struct str play_after(const struct play_line *l, const char *word);        /* the word behind it */

/* world.c: what the commands do */
void play_command(struct play *p, const struct play_line *l);
struct kv_prompt play_prompt(struct play *p, const struct play_line *l, struct str spec, const uint32_t *sizes, size_t n_sizes, uint64_t number);
struct play_worker *play_worker_of(struct play *p, const struct play_line *l, struct str name);
/* Calls fn for every request that `pattern` names; fails when there is none. */
void play_each(struct play *p, const struct play_line *l, struct str pattern, bool open_only, void (*fn)(struct play *, const struct play_line *, struct play_request *));

/* expect.c */
void play_expect(struct play *p, const struct play_line *l);

#endif
