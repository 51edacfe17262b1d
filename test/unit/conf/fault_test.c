/* Objects: every fault of a file at once, each with its exact place, what is wrong and what is allowed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/conf.h"

struct file { char path[64]; };

static struct file write_file(const char *text)
{
	struct file f = { "/tmp/kvasir-conf-XXXXXX.yaml" };
	int fd = mkstemps(f.path, 5);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return f;
}

static struct conf *load(const char *text, struct conf_faults *faults)
{
	struct file f = write_file(text);
	struct conf_sources s = { 0 };
	VEC_PUSH(&s.paths, str_of(f.path));
	conf_faults_init(faults);
	struct conf *c = conf_load(&s, 1, faults);
	VEC_FREE(&s.paths);
	unlink(f.path);
	return c;
}

struct expected { unsigned line, col; const char *path, *word; };

/* Exactly these faults, in this order; `word` is part of the text. */
static void expect(const char *text, const struct expected *want, size_t n)
{
	struct conf_faults faults;
	struct conf *c = load(text, &faults);
	assert_null(c);
	for (size_t i = 0; i < faults.list.n; i++) {
		const struct conf_fault *f = &faults.list.p[i];
		if (i >= n || f->line != want[i].line || f->col != want[i].col || !str_eq(f->path, str_of(want[i].path)) || str_find(f->what, str_of(want[i].word)) == SIZE_MAX)
			fail_msg("fault %zu: %u:%u: '%.*s': %.*s", i, f->line, f->col, STR_ARG(f->path), STR_ARG(f->what));
	}
	assert_int_equal(faults.list.n, n);
	conf_faults_done(&faults);
}

#define POOL "apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: p}\nspec:\n"
#define GATEWAY "apiVersion: kvasir.dev/v1alpha1\nkind: Gateway\nmetadata: {name: g}\nspec:\n"

static void test_every_fault_of_a_pool_at_once(void **state)
{
	(void)state;
	static const char text[] = POOL
		"  workers:\n"
		"  - url: https://a:8000\n"
		"  - url: http://b:8000\n"
		"    kvEvents: {endpoint: \"tcp://*:5557\"}\n"
		"  - {url: http://b:8000, colour: red}\n"
		"  - url: ftp://c\n"
		"  - role: decode\n"
		"  engine: sglang\n"
		"  routing: fastest\n"
		"  authorization: maybe\n"
		"  polcies: []\n";
	static const struct expected want[] = {
		{ 6, 10, "spec.workers[0].url", "https:// workers are not in this version" },
		{ 8, 26, "spec.workers[1].kvEvents.endpoint", "connecting out are not supported" },
		{ 9, 26, "spec.workers[2].colour", "allowed are url, kvEvents, role" },
		{ 9, 5, "spec.workers[2]", "is named twice" },
		{ 10, 10, "spec.workers[3].url", "must be http://HOST:PORT" },
		{ 11, 5, "spec.workers[4]", "has no url" },
		{ 12, 11, "spec.engine", "must be vllm" },
		{ 13, 12, "spec.routing", "kv, least-request, round-robin, random, p2c-ewma or consistent-hash" },
		{ 14, 18, "spec.authorization", "must be pass or drop" },
		{ 15, 3, "spec.polcies", "allowed are workers, discovery, engine" },
	};
	expect(text, want, ARRAY_LEN(want));
}

static void test_tokenizer(void **state)
{
	(void)state;
	static const char *const texts[] = { "house", "{path: }", "{}", "{hub: {revision: x}}", "{hub: b/c}", "{folder: /a}", "[worker]", "{path: /no/such}", "{path: /no/such, hub: {repo: b/c}}",
	                                     "{hub: {repo: b/c/d}}", "{hub: {revision: \"x y\", repo: b/c}}" };
	static const struct expected want[] = {
		{ 5, 14, "spec.tokenizer", "worker, {path: FOLDER}" }, { 5, 21, "spec.tokenizer.path", "must be a text" },
		{ 5, 14, "spec.tokenizer", "one of them" }, { 5, 20, "spec.tokenizer.hub", "names no repository" },
		{ 5, 20, "spec.tokenizer.hub", "must be a mapping of repo, revision" }, { 5, 15, "spec.tokenizer.folder", "allowed are path, hub" },
		{ 5, 14, "spec.tokenizer", "worker, {path: FOLDER}" }, { 5, 21, "spec.tokenizer.path", "there is no '/no/such'" }, { 5, 21, "spec.tokenizer.path", "there is no '/no/such'" },
		{ 5, 27, "spec.tokenizer.hub.repo", "must be ORG/NAME" }, { 5, 31, "spec.tokenizer.hub.revision", "is no revision" },
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char text[512];
		snprintf(text, sizeof(text), POOL "  tokenizer: %s\n  workers: [http://a:1]\n", texts[i]);
		expect(text, &want[i], 1);
	}
}

static void test_gateway_options(void **state)
{
	(void)state;
	static const char text[] = GATEWAY
		"  threads: 0\n"
		"  limits: {body: 1 parsec, heder: 3}\n"
		"  timeouts:\n"
		"    stall: 5\n"
		"  routing: [kv]\n"
		"  tokens: {from: locals}\n"
		"  listen: 8080x\n"
		"  accessLog: yes\n";
	static const struct expected want[] = {
		{ 5, 12, "spec.threads", "from 1 to 64" },
		{ 6, 18, "spec.limits.body", "from 1KiB to 1GiB" },
		{ 6, 28, "spec.limits.heder", "allowed are header, headers, body" },
		{ 8, 12, "spec.timeouts.stall", "with a unit" },
		{ 9, 12, "spec.routing", "must be a text" },
		{ 10, 18, "spec.tokens.from", "auto, local, worker or none" },
		{ 11, 11, "spec.listen", "ADDRESS:PORT" },
		{ 12, 14, "spec.accessLog", "true or false" },
	};
	expect(text, want, ARRAY_LEN(want));
}

static void test_kinds(void **state)
{
	(void)state;
	static const char text[] =
		"apiVersion: kvasir.dev/v1alpha1\nkind: Tenant\nmetadata: {name: t}\nspec: {}\n---\n"
		"apiVersion: kinference.buoyant.io/v1alpha1\nkind: InferencePolicy\nmetadata: {name: q}\nspec: {}\n---\n"
		"apiVersion: v1\nkind: Gateway\nmetadata: {name: g}\n---\n"
		"apiVersion: kvasir.dev/v1alpha1\nkind: WorkPool\nmetadata: {name: w}\n---\n"
		"metadata: {name: x}\n---\n"
		"just a text\n";
	static const struct expected want[] = {
		{ 2, 7, "kind", "Tenant is not in this version" },
		{ 7, 7, "kind", "InferencePolicy is not in this version" },
		{ 11, 13, "apiVersion", "must be kvasir.dev/v1alpha1" },
		{ 16, 7, "kind", "allowed are Gateway and WorkerPool" },
		{ 19, 1, "apiVersion", "is missing" },
		{ 19, 1, "kind", "is missing" },
		{ 21, 1, "", "must be a mapping of apiVersion, kind" },
	};
	expect(text, want, ARRAY_LEN(want));
}

static void test_a_wrong_version_hides_no_other_fault(void **state)
{
	(void)state;
	static const char text[] =
		"apiVersion: kvasir.dev/v9\nkind: WorkerPool\nmetadata: {name: \"\"}\nspec:\n  workers: [{urll: x}]\n---\n"
		"kind: Gateway\nspec: {lisen: x}\n---\n"
		"apiVersion: v1\nkind: ConfigMap\ndata: {}\n";
	static const struct expected want[] = {
		{ 3, 18, "metadata.name", "is empty" },
		{ 1, 13, "apiVersion", "must be kvasir.dev/v1alpha1" },
		{ 5, 14, "spec.workers[0].urll", "is not known here" },
		{ 7, 1, "apiVersion", "is missing" },
		{ 8, 8, "spec.lisen", "is not known here" },
		{ 12, 1, "data", "is not known here" },
		{ 10, 13, "apiVersion", "must be kvasir.dev/v1alpha1" },
	};
	expect(text, want, ARRAY_LEN(want));
}

static void test_syntax_and_duplicate_keys(void **state)
{
	(void)state;
	struct conf_faults faults;
	assert_null(load(POOL "  workers: [\n", &faults));
	assert_true(faults.list.n >= 1 && faults.list.p[0].line >= 5);
	conf_faults_done(&faults);
	assert_null(load(POOL "  engine: vllm\n  engine: vllm\n  workers: [http://a:1]\n", &faults));
	assert_true(faults.list.n == 1 && faults.list.p[0].line == 6 && faults.list.p[0].col == 3);
	conf_faults_done(&faults);
}

static void test_pool_names_and_second_gateway(void **state)
{
	(void)state;
	static const char text[] = POOL "  workers: [http://a:1]\n---\n" POOL "  workers: [http://a:1, http://b:1]\n---\n" GATEWAY "  threads: 1\n---\n" GATEWAY "  threads: 1\n";
	static const struct expected want[] = {
		{ 7, 1, "metadata.name", "names a WorkerPool twice" },
		{ 11, 13, "spec.workers[0]", "a worker belongs to one pool" },
		{ 20, 7, "kind", "a second Gateway" },
	};
	expect(text, want, ARRAY_LEN(want));
}

static void test_a_good_pool(void **state)
{
	(void)state;
	struct conf_faults faults;
	struct conf *c = load(POOL
		"  engine: vllm\n"
		"  routing: round-robin\n"
		"  authorization: drop\n"
		"  accelerator: h100\n"
		"  apiKey: pool-key\n"
		"  discovery: {file: workers.txt}\n"
		"  workers:\n"
		"  - url: http://[::1]:8000/base/\n"
		"    kvEvents: {endpoint: \"tcp://[::1]:6000\", replay: \"tcp://[::1]:7000\"}\n"
		"    role: decode\n"
		"    labels: {rack: a1, n: 7}\n"
		"    apiKey: own\n"
		"  - {url: http://gpu, kvEvents: off, accelerator: l4}\n", &faults);
	assert_int_equal(faults.list.n, 0);
	assert_non_null(c);
	assert_int_equal(c->n_pools, 1);
	const struct conf_pool *p = &c->pools[0];
	assert_true(p->has_routing && p->routing == 2 && p->drop_authorization && p->n_workers == 2);
	assert_true(str_starts(p->discovery_file, STR("/tmp/")));      /* beside the file that names it */
	const struct conf_worker *w = p->workers;
	assert_true(str_eq(w[0].url, STR("http://[::1]:8000/base")) && str_eq(w[0].host, STR("::1")) && w[0].ipv6 && w[0].port == 8000);
	assert_true(str_eq(w[0].prefix, STR("/base")) && str_eq(w[0].events, STR("tcp://[::1]:6000")) && str_eq(w[0].replay, STR("tcp://[::1]:7000")));
	assert_true(str_eq(w[0].api_key, STR("own")) && str_eq(w[0].accelerator, STR("h100")) && w[0].n_labels == 2 && str_eq(w[0].labels[1].value, STR("7")));
	assert_true(w[1].port == 80 && w[1].events_off && str_eq(w[1].accelerator, STR("l4")) && str_eq(w[1].api_key, STR("pool-key")));
	conf_unref(c);
	conf_faults_done(&faults);
}

/* --print-config gives a file that loads to the same. */
static void test_print_and_load_again(void **state)
{
	(void)state;
	struct conf_faults faults;
	struct buf first, second;
	struct conf *c = load(GATEWAY "  limits: {body: 2MiB}\n  timeouts: {stall: 1500ms}\n  tokens: {from: none}\n---\n" POOL
		"  workers: [{url: http://a:1, labels: {\"x\\\"y\": \"q: 1\"}, kvEvents: {endpoint: a:5557}}]\n", &faults);
	assert_non_null(c);
	conf_faults_done(&faults);
	buf_init(&first, 1 << 20);
	buf_init(&second, 1 << 20);
	assert_int_equal(conf_print(&first, c), ERR_OK);
	char *text = str_dup(buf_str(&first));
	struct conf *again = load(text, &faults);
	assert_non_null(again);
	assert_true(again->opts.gate.max_body_bytes == 2 << 20 && again->opts.gate.stall_timeout_us == 1500000);
	assert_int_equal(conf_print(&second, again), ERR_OK);
	assert_true(str_eq(buf_str(&first), buf_str(&second)));
	conf_faults_done(&faults);
	conf_unref(c);
	conf_unref(again);
	free(text);
	buf_done(&first);
	buf_done(&second);
}

static void test_secrets_are_not_printed(void **state)
{
	(void)state;
	struct conf_faults faults;
	struct buf b;
	struct conf *c = load(POOL "  workers: [{url: http://a:1, apiKey: sesame}]\n", &faults);
	assert_non_null(c);
	buf_init(&b, 1 << 20);
	assert_int_equal(conf_print(&b, c), ERR_OK);
	assert_true(str_find(buf_str(&b), STR("sesame")) == SIZE_MAX);
	buf_done(&b);
	conf_unref(c);
	conf_faults_done(&faults);
}

static void test_keys_from_file_and_environment(void **state)
{
	(void)state;
	struct conf_faults faults;
	struct file key = write_file("  sesame\n");
	char text[1024];
	setenv("KVASIR_TEST_KEY", "from-env", 1);
	snprintf(text, sizeof(text), POOL "  workers:\n  - {url: http://a:1, apiKeyFile: %s}\n  - {url: http://b:1, apiKeyEnv: KVASIR_TEST_KEY}\n", key.path);
	struct conf *c = load(text, &faults);
	assert_non_null(c);
	assert_true(str_eq(c->pools[0].workers[0].api_key, STR("sesame")) && str_eq(c->pools[0].workers[1].api_key, STR("from-env")));
	conf_unref(c);
	conf_faults_done(&faults);
	unlink(key.path);
	unsetenv("KVASIR_TEST_KEY");
	assert_null(load(text, &faults));
	assert_int_equal(faults.list.n, 2);
	conf_faults_done(&faults);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_fault_of_a_pool_at_once),
		cmocka_unit_test(test_tokenizer), cmocka_unit_test(test_gateway_options),
		cmocka_unit_test(test_kinds), cmocka_unit_test(test_a_wrong_version_hides_no_other_fault),
		cmocka_unit_test(test_syntax_and_duplicate_keys),
		cmocka_unit_test(test_pool_names_and_second_gateway),
		cmocka_unit_test(test_a_good_pool),
		cmocka_unit_test(test_print_and_load_again),
		cmocka_unit_test(test_secrets_are_not_printed),
		cmocka_unit_test(test_keys_from_file_and_environment),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
