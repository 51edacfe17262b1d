/* err.c: the words of err.def. */
#include "base/err.h"

#include "base/must.h"

static const struct { const char *text, *label; int http; bool retry; } rows[] = {
#define X(name, http_, retry_, text_, label_) [ERR_##name] = { .text = text_, .label = label_, .http = http_, .retry = retry_ },
#include "base/err.def"
#undef X
};

const char *err_text(enum err e) { must(e < ERR_COUNT_); return rows[e].text; }
const char *err_label(enum err e) { must(e < ERR_COUNT_); return rows[e].label; }
int err_http(enum err e) { must(e < ERR_COUNT_); return rows[e].http; }
bool err_retryable(enum err e) { must(e < ERR_COUNT_); return rows[e].retry; }
