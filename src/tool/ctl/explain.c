/* kvasir explain: receipts as tables: who could have served the request, what each held, how long each would take, why
 * this one. --body asks without sending: "where would this go". */
#include <stdio.h>
#include <stdlib.h>

#include "ctl/ctl_priv.h"
#include "io/file.h"
#include "wire/url.h"

#define USAGE                                                                                                                 \
	"usage: kvasir explain [--admin URL] [REQUEST_ID | --last N | --body FILE [--path /v1/completions]] [-o table|json]\n" \
	"Shows why a request went where it went; --body asks where it would go and sends nothing. REQUEST_ID is the gateway's\n" \
	"(x-kvasir-request-id) or the client's own (x-request-id; of several requests with the same one, the last).\n"

struct args {
	struct str admin, id, body_file, path, format;
	uint64_t last;
	bool help;
	struct ctl_bad bad;
};

static bool take_flag(struct args *a, struct str flag, struct str value)
{
	if (str_eq(flag, STR("--admin")))
		a->admin = value;
	else if (str_eq(flag, STR("--last")))
		a->bad = str_to_u64(value, &a->last) && a->last > 0 ? a->bad : (struct ctl_bad){ flag, "takes a number from 1 up" };
	else if (str_eq(flag, STR("--body")))
		a->body_file = value;
	else if (str_eq(flag, STR("--path")))
		a->path = value;
	else if (str_eq(flag, STR("-o")))
		a->format = value;
	else
		return false;
	return true;
}

static struct args read_args(int argc, char **argv)
{
	struct args a = { .admin = STR("http://127.0.0.1:9090"), .path = STR("/v1/chat/completions"), .format = STR("table") };
	for (int i = 0; i < argc; i++) {
		struct str s = str_of(argv[i]);
		if (str_eq(s, STR("--help")) || str_eq(s, STR("-h")))
			a.help = true;
		else if (str_starts(s, STR("-")) && i + 1 < argc && take_flag(&a, s, str_of(argv[i + 1])))
			i++;
		else if (str_starts(s, STR("-")) || a.id.n > 0)
			a.bad = (struct ctl_bad){ .word = s };
		else
			a.id = s;
	}
	if ((a.id.n > 0) + (a.last > 0) + (a.body_file.n > 0) > 1)
		a.bad = (struct ctl_bad){ STR("REQUEST_ID, --last and --body"), "are three ways to say what to explain: one of them" };
	if (!str_eq(a.format, STR("table")) && !str_eq(a.format, STR("json")))
		a.bad = (struct ctl_bad){ .word = a.format };
	return a;
}

static void put(struct buf *b, enum err *e, const char *name, const struct json_val *v, const char *unit)
{
	struct ctl_table t;
	ctl_table_init(&t, (const char *[]){ "" }, 1);
	ctl_table_add_json(&t, v);
	struct str s = t.cells.p[0];
	if (*e == ERR_OK && !str_eq(s, STR("-")))
		*e = buf_printf(b, "  %-18s %.*s%s\n", name, STR_ARG(s), unit);
	ctl_table_done(&t);
}

static enum err print_candidates(struct buf *b, const struct json_val *list)
{
	static const char *const heads[] = { "", "WORKER", "RANK", "STATE", "HIT-TOK", "CPU-TOK", "STORE-TOK", "IN-FLIGHT", "PREFILL-AHEAD", "TTFT-MS", "NOTE" };
	static const char *const members[] = { "worker", "rank", "state", "hit_tokens", "load_cpu_tokens", "load_storage_tokens", "in_flight_requests", "prefill_tokens_ahead", "ttft_ms", "note" };
	struct ctl_table t;
	ctl_table_init(&t, heads, ARRAY_LEN(heads));
	for (struct json_iter it = json_each(list); json_next(&it);) {
		ctl_table_add(&t, json_true(json_get(it.val, STR("chosen"))) ? STR("->") : STR(" "));
		for (size_t i = 0; i < ARRAY_LEN(members); i++)
			ctl_table_add_json(&t, json_get(it.val, str_of(members[i])));
	}
	enum err e = ctl_table_print(b, &t);
	ctl_table_done(&t);
	return e;
}

static enum err print_receipt(struct buf *b, const struct json_val *r, bool dry)
{
	struct str id = STR("-"), reason = STR("-");
	(void)json_str(json_get(r, STR("request_id")), &id);
	(void)json_str(json_get(r, STR("reason")), &reason);
	TRY(buf_printf(b, "%s %.*s: %.*s\n", dry ? "dry run" : "request", STR_ARG(id), STR_ARG(reason)));
	enum err e = ERR_OK;
	put(b, &e, "client's id", json_get(r, STR("client_request_id")), "");
	put(b, &e, "model", json_get(r, STR("model")), "");
	put(b, &e, "token ids", json_get(r, STR("ids")), "");
	put(b, &e, "prompt", json_get(r, STR("prompt_tokens")), " tokens");
	put(b, &e, "largest hit", json_get(r, STR("max_hit_tokens")), " tokens");
	put(b, &e, "cached (reported)", json_get(r, STR("cached_tokens_reported")), " tokens");
	put(b, &e, "TTFT predicted", json_get(r, STR("ttft_predicted_ms")), " ms");
	put(b, &e, "TTFT measured", json_get(r, STR("ttft_measured_ms")), " ms");
	put(b, &e, "outcome", json_get(r, STR("outcome")), "");
	TRY(e);
	TRY(print_candidates(b, json_get(r, STR("candidates"))));
	return buf_add_byte(b, '\n');
}

/* One receipt, a list of them, or the answer to a dry run. */
static enum err print_answer(struct buf *b, const struct json_val *root)
{
	const struct json_val *list = json_get(root, STR("decisions")), *dry = json_get(root, STR("decision"));
	if (json_is(list, JSON_ARRAY)) {
		if (json_len(list) == 0)
			return buf_add(b, STR("no decision yet\n"));
		for (struct json_iter it = json_each(list); json_next(&it);)
			TRY(print_receipt(b, it.val, false));
		return ERR_OK;
	}
	return print_receipt(b, dry != NULL ? dry : root, dry != NULL);
}

static int show(const struct args *a, int status, struct str body)
{
	struct json_doc *d;
	struct buf b;
	struct str message = body;
	if (json_parse(body, 64 << 20, &d) != ERR_OK) {
		fprintf(stderr, "kvasir: the admin port's answer (%d) cannot be read\n", status);
		return 1;
	}
	int code = 1;
	buf_init(&b, 64 << 20);
	if (status != 200) {
		(void)json_str(json_get(json_get(json_root(d), STR("error")), STR("message")), &message);
		fprintf(stderr, "kvasir: %.*s (%d)\n", STR_ARG(message), status);
	} else if (str_eq(a->format, STR("json"))) {
		code = ctl_print(&b, buf_printf(&b, "%.*s\n", STR_ARG(body)));
	} else {
		code = ctl_print(&b, print_answer(&b, json_root(d)));
	}
	buf_done(&b);
	json_free(d);
	return code;
}

static int ask(const struct args *a, struct str method, struct str target, struct str body)
{
	struct buf answer;
	int status;
	if (!ctl_fetch(a->admin, method, target, body, &status, &answer))
		return 1;
	int code = show(a, status, buf_str(&answer));
	buf_done(&answer);
	return code;
}

static int ask_body(const struct args *a)
{
	struct buf body = { 0 };
	char *z = str_dup(a->body_file);
	enum err e = str_eq(a->body_file, STR("-")) ? io_input_read(64 << 20, &body) : io_file_read(z, 64 << 20, &body);
	struct buf target;
	int code = 1;
	buf_init(&target, 4096);
	if (e != ERR_OK)
		fprintf(stderr, "kvasir: cannot read %s: %s\n", z, err_text(e));
	else if (buf_add(&target, STR("/api/v1/explain?path=")) != ERR_OK || url_put_escaped(&target, a->path) != ERR_OK)
		fprintf(stderr, "kvasir explain: the path is too long\n");
	else
		code = ask(a, STR("POST"), buf_str(&target), buf_str(&body));
	buf_done(&target);
	free(z);
	buf_done(&body);
	return code;
}

int ctl_explain(int argc, char **argv)
{
	struct args a = read_args(argc, argv);
	struct buf target;
	if (a.bad.word.n > 0 || a.help)
		return ctl_usage(a.help, "explain", a.bad, USAGE);
	if (a.body_file.n > 0)
		return ask_body(&a);
	buf_init(&target, 4096);
	enum err e = a.id.n > 0 ? buf_add(&target, STR("/api/v1/decisions/")) : buf_printf(&target, "/api/v1/decisions?last=%llu", (unsigned long long)(a.last > 0 ? a.last : 1));
	if (e == ERR_OK && a.id.n > 0)
		e = url_put_escaped(&target, a.id);
	int code = 1;
	if (e == ERR_OK)
		code = ask(&a, STR("GET"), buf_str(&target), (struct str){ 0 });
	else
		fprintf(stderr, "kvasir explain: the request id is too long\n");
	buf_done(&target);
	return code;
}
