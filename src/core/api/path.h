/* api/path.h: every path of the inference API that Kvasir knows, in one table. What is not here (a worker's
 * administration: sleep, pause, reset_*, collective_rpc, adapters, server_info, metrics ...) is simply absent and so never
 * proxied. Source: the routes of real workers 0.12 to 0.32. Immutable; any thread. */
#ifndef API_PATH_H
#define API_PATH_H

#include "base/str.h"

enum api_route {
	API_ROUTE_CHAT,          /* kv-routed: the prompt is `messages` */
	API_ROUTE_COMPLETIONS,   /* kv-routed: the prompt is `prompt` */
	API_ROUTE_RESPONSES,     /* kv-routed where its ids are known: the prompt is `input` and `instructions` */
	API_ROUTE_MESSAGES,      /* likewise: `system` and `messages` */
	API_ROUTE_EMBEDDINGS,    /* likewise: `input`, or `messages` */
	API_ROUTE_SCORE,         /* likewise: a query and documents, each a prompt of its own */
	API_ROUTE_LOAD,          /* proxied by load */
	API_ROUTE_RESPONSE,      /* /v1/responses/{id}...: to the worker that made it */
	API_ROUTE_MODELS,        /* our own, merged list */
	API_ROUTE_MODEL          /* one of it */
};
/* Whose shapes errors and usage have. API_DEFAULT: for errors on paths that are not in the table. */
enum api_dialect { API_OPENAI, API_ANTHROPIC, API_RESPONSES, API_DEFAULT = API_OPENAI };
enum api_body { API_BODY_NONE, API_BODY_JSON, API_BODY_FORM };

struct api_path {
	struct str method, path;        /* `{id}` in path stands for one segment, `{rest}` at its end for one or more */
	enum api_route route;
	enum api_dialect dialect;
	enum api_body body;             /* FORM: multipart, see api_form_model */
	const char *label;              /* metric and log label: a fixed word per row */
};

/* target: path with or without query. NULL: unknown (404). HEAD finds the GET row.
 * *ret_id (may be NULL): what stood for {id} or {rest}, as it came, else empty. */
const struct api_path *api_path_find(struct str method, struct str target, struct str *ret_id);
/* The methods that a known path takes, as an Allow header value ("POST"); NULL when the path is unknown in every method. */
const char *api_path_allow(struct str target);
/* Rows, for the generated reference. */
const struct api_path *api_path_table(size_t *ret_n);
/* An operator may allow further paths by name: is `target`'s path exactly one of them? */
bool api_path_same(struct str target, struct str path);

#endif
