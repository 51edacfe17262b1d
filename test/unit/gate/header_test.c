/* Which header fields pass, and which are ours. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gate/gate_priv.h"

struct fixture {
	struct gate gate;
	struct gate_req r;
	struct http_req hr;
	struct http_header h[16];
	size_t n;
};

static void fixture_new(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->r.gate = &f->gate;
	f->r.hr = &f->hr;
	memset(f->r.id, '7', sizeof(f->r.id) - 1);
	buf_init(&f->gate.scratch, 1 << 16);
	arena_init(&f->r.arena, 0);
}

static void fixture_free(struct fixture *f)
{
	arena_done(&f->r.arena);
	buf_done(&f->gate.scratch);
}

static void put(struct fixture *f, const char *name, const char *value)
{
	f->h[f->n++] = (struct http_header){ str_of(name), str_of(value) };
	f->hr.headers = (struct http_headers){ f->h, f->n };
}

static struct str get(struct http_headers h, const char *name) { return http_find(h, str_of(name)); }

static void upstream_gets_ours(void **state)
{
	struct fixture f;
	struct feed_view_worker w = { .pass_client_authorization = true };
	(void)state;
	fixture_new(&f);
	put(&f, "Host", "client");
	put(&f, "Connection", "X-Hop");
	put(&f, "X-Hop", "1");
	put(&f, "Content-Length", "5");
	put(&f, "Accept-Encoding", "gzip");
	put(&f, "X-Request-Id", "theirs");
	put(&f, "Authorization", "Bearer c");
	put(&f, "X-Data-Parallel-Rank", "9");
	put(&f, "traceparent", "t");
	struct http_headers up = gate_headers_up(&f.r, &w, -1);
	assert_null(get(up, "host").p);
	assert_null(get(up, "x-hop").p);
	assert_null(get(up, "content-length").p);
	assert_null(get(up, "x-data-parallel-rank").p);
	assert_true(str_eq(get(up, "accept-encoding"), STR("identity")));
	assert_true(str_eq(get(up, "x-request-id"), str_of(f.r.id)));
	assert_true(str_eq(get(up, "authorization"), STR("Bearer c")));
	assert_true(str_eq(get(up, "traceparent"), STR("t")));
	up = gate_headers_up(&f.r, &w, 3);
	assert_true(str_eq(get(up, "x-data-parallel-rank"), STR("3")));
	fixture_free(&f);
}

static void keys_of_clients_and_workers(void **state)
{
	struct fixture f;
	struct feed_view_worker own = { .authorization = STR("Bearer w"), .pass_client_authorization = true }, none = { 0 };
	(void)state;
	fixture_new(&f);
	put(&f, "Authorization", "Bearer c");
	assert_true(str_eq(get(gate_headers_up(&f.r, &own, -1), "authorization"), STR("Bearer w")));
	assert_null(get(gate_headers_up(&f.r, &none, -1), "authorization").p);
	fixture_free(&f);
}

static void client_gets_ours(void **state)
{
	struct fixture f;
	struct http_header from[] = { { STR("Date"), STR("d") }, { STR("X-Request-Id"), STR("worker") },
		{ STR("x-kvasir-worker"), STR("lie") }, { STR("Transfer-Encoding"), STR("chunked") },
		{ STR("Content-Type"), STR("text/plain") }, { STR("x-a"), STR("1") }, { STR("x-a"), STR("2") } };
	(void)state;
	fixture_new(&f);
	f.r.worker_url = STR("http://w:1");
	struct http_headers down = gate_headers_down(&f.r, (struct http_headers){ from, ARRAY_LEN(from) });
	assert_null(get(down, "date").p);
	assert_null(get(down, "transfer-encoding").p);
	assert_true(str_eq(get(down, "x-request-id"), str_of(f.r.id)));
	assert_true(str_eq(get(down, "x-kvasir-worker"), STR("http://w:1")));
	assert_int_equal(down.n, 5); /* content-type, both x-a, and our two */
	f.r.client_id = STR("theirs");
	down = gate_headers_down(&f.r, (struct http_headers){ 0 });
	assert_true(str_eq(get(down, "x-request-id"), STR("theirs")));
	assert_true(str_eq(get(down, "x-kvasir-request-id"), str_of(f.r.id)));
	fixture_free(&f);
}

static void only_clean_ids_are_echoed(void **state)
{
	static const char *const bad[] = { "", "a b", "a\"b\x7f", "\xc3\xa9", NULL };
	char longest[GATE_CLIENT_ID_MAX + 2];
	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	for (int i = 0; i < 6; i++) {
		struct fixture f;
		fixture_new(&f);
		const char *id = i < 4 ? bad[i] : i == 4 ? longest : longest + 1;
		put(&f, "x-request-id", id);
		assert_int_equal(gate_client_id(&f.hr, &f.r.arena).n, i == 5 ? GATE_CLIENT_ID_MAX : 0);
		fixture_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(upstream_gets_ours),
		cmocka_unit_test(keys_of_clients_and_workers),
		cmocka_unit_test(client_gets_ours),
		cmocka_unit_test(only_clean_ids_are_echoed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
