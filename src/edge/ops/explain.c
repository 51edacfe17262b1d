/* "Where would this go, and why": the gate runs its own stages without sending; the answer is the receipt. The gate may
 * live on another loop: the question travels there and the answer back, and either side may be gone meanwhile. */
#include <stdlib.h>

#include "ops/ops_priv.h"

struct ops_ask {
	struct ops *ops;                   /* NULL: the admin side is gone */
	struct http_req *req;              /* NULL: the client left */
	struct gate *gate;
	struct io_loop *home;
	char *target, *body;
	size_t n_body;
	/* the answer */
	enum err e;
	char *message, *param, *model, *ids_why;
	uint32_t prompt_tok;
	uint64_t receipt;
	bool has_plan;
};

static void ask_free(struct ops_ask *k)
{
	free(k->target);
	free(k->body);
	free(k->message);
	free(k->param);
	free(k->model);
	free(k->ids_why);
	free(k);
}

static void forget(struct ops_ask *k)
{
	for (size_t i = 0; i < k->ops->asks.n; i++)
		if (k->ops->asks.p[i] == k) {
			k->ops->asks.p[i] = k->ops->asks.p[--k->ops->asks.n];
			return;
		}
}

static void put_answer(const struct ops_ask *k, struct json_writer *w)
{
	struct arena a;
	struct brain_receipt receipt;
	arena_init(&a, 0);
	json_put_open(w, '{');
	ops_str(w, "model", str_of(k->model));
	ops_u64(w, "prompt_tokens", k->prompt_tok);
	json_put_key(w, STR("ids"));
	json_put_str(w, k->ids_why != NULL ? str_of(k->ids_why) : STR("keys"));
	json_put_key(w, STR("decision"));
	if (k->has_plan && brain_receipt_get(feed_brain(k->ops->feed), k->receipt, &a, &receipt))
		ops_put_receipt(k->ops, &receipt, w);
	else
		json_put_null(w);
	json_put_close(w, '}');
	arena_done(&a);
}

static void reply(const struct ops_ask *k)
{
	if (k->e != ERR_OK) {
		int status = err_http(k->e);
		ops_reply_error(k->req, status >= 400 ? status : 500, err_label(k->e), k->message != NULL ? k->message : err_text(k->e));
		return;
	}
	struct buf b;
	buf_init(&b, OPS_MAX_REPLY);
	struct json_writer w = json_writer(&b);
	put_answer(k, &w);
	if (json_writer_done(&w) == ERR_OK)
		ops_reply_json(k->req, 200, &b);
	else
		ops_reply_error(k->req, 500, "limit", "the answer does not fit in 64 MiB");
	buf_done(&b);
}

static void back(void *arg)
{
	struct ops_ask *k = arg;
	if (k->ops != NULL) {
		forget(k);
		if (k->req != NULL)
			reply(k);
	}
	ask_free(k);
}

static char *dup_z(const char *z) { return z != NULL ? str_dup(str_of(z)) : NULL; }

static void explained(void *arg, const struct gate_explained *x)
{
	struct ops_ask *k = arg;
	k->e = x->e;
	k->message = dup_z(x->message);
	k->param = dup_z(x->param);
	k->ids_why = dup_z(x->ids_why);
	k->model = str_dup(x->model);
	k->prompt_tok = x->prompt_tok;
	k->has_plan = x->plan != NULL;
	k->receipt = x->plan != NULL ? x->plan->receipt : 0;
	io_post(k->home, back, k);
}

static void there(void *arg)
{
	struct ops_ask *k = arg;
	gate_explain(k->gate, STR("POST"), str_of(k->target), str_from(k->body, k->n_body), explained, k);
}

void ops_explain(struct ops *o, struct http_req *r, struct str target, struct str body)
{
	if (o->gates.n == 0) {
		ops_reply_error(r, 503, "no_worker", "no data port is open");
		return;
	}
	struct ops_ask *k = must_calloc(1, sizeof(*k));
	k->ops = o;
	k->req = r;
	k->gate = o->gates.p[0];
	k->home = o->loop;
	k->target = str_dup(target);
	k->body = str_dup(body);
	k->n_body = body.n;
	VEC_PUSH(&o->asks, k);
	if (o->gate_loop == o->loop)
		there(k);
	else
		io_post(o->gate_loop, there, k);
}

void ops_explain_gone(struct ops *o, struct http_req *r)
{
	for (size_t i = 0; i < o->asks.n; i++)
		if (o->asks.p[i]->req == r)
			o->asks.p[i]->req = NULL;
}

/* Answers that are still to come free themselves. */
void ops_explain_free(struct ops *o)
{
	for (size_t i = 0; i < o->asks.n; i++) {
		o->asks.p[i]->ops = NULL;
		o->asks.p[i]->req = NULL;
	}
}
