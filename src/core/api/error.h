/* api/error.h: Kvasir's own errors in the shape the client's SDK expects. Pure. */
#ifndef API_ERROR_H
#define API_ERROR_H

#include "api/path.h"
#include "base/buf.h"

struct api_error {
	enum err why;              /* gives status, code and reason */
	const char *message;       /* NULL: err_text(why) */
	const char *param;         /* NULL: null */
	const char *request_id;    /* ours; NULL: left out */
	const char *type;          /* NULL: by the status */
	int status;                /* 0: err_http(why) */
};

int api_error_status(const struct api_error *e);
/* The JSON body: OpenAI {"error":{message,type,param,code,reason,request_id}}; Anthropic {"type":"error","error":{...}}. */
must_use enum err api_error_put(struct buf *b, enum api_dialect d, const struct api_error *e);
/* One event that ends a broken stream. next_sequence: for /v1/responses, one more than the last sequence_number seen. */
must_use enum err api_error_put_event(struct buf *b, enum api_dialect d, const struct api_error *e, uint64_t next_sequence);

#endif
