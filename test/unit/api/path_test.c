/* path_test.c: which paths exist, and that administration does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/path.h"

static const struct api_path *find(const char *method, const char *target) { return api_path_find(str_of(method), str_of(target), NULL); }

static void known(void **state)
{
	(void)state;
	assert_int_equal(find("POST", "/v1/chat/completions")->route, API_ROUTE_CHAT);
	assert_int_equal(find("POST", "/v1/chat/completions?x=1")->route, API_ROUTE_CHAT);
	assert_int_equal(find("POST", "/v1/completions")->route, API_ROUTE_COMPLETIONS);
	assert_int_equal(find("GET", "/v1/models")->route, API_ROUTE_MODELS);
	assert_int_equal(find("HEAD", "/v1/models")->route, API_ROUTE_MODELS);
	assert_int_equal(find("POST", "/v1/messages")->dialect, API_ANTHROPIC);
	assert_int_equal(find("POST", "/v1/responses")->dialect, API_RESPONSES);
	assert_int_equal(find("POST", "/v1/audio/transcriptions")->body, API_BODY_FORM);
	static const char *const LOAD[] = {
		"/pooling",
		"/classify",
		"/v1/messages/count_tokens",
		"/tokenize",
		"/detokenize",
		"/v1/audio/translations",
	};
	static const char *const SCORE[] = { "/score", "/v1/score", "/rerank", "/v1/rerank", "/v2/rerank" };
	for (size_t i = 0; i < ARRAY_LEN(SCORE); i++)
		assert_int_equal(find("POST", SCORE[i])->route, API_ROUTE_SCORE);
	for (size_t i = 0; i < ARRAY_LEN(LOAD); i++)
		assert_true(find("POST", LOAD[i]) && find("POST", LOAD[i])->route == API_ROUTE_LOAD);
	assert_int_equal(find("POST", "/v1/responses")->route, API_ROUTE_RESPONSES);
	assert_int_equal(find("POST", "/v1/messages")->route, API_ROUTE_MESSAGES);
	assert_int_equal(find("POST", "/v1/embeddings")->route, API_ROUTE_EMBEDDINGS);
}

static void administration_is_absent(void **state)
{
	(void)state;
	static const char *const DENIED[] = {
		"/sleep",
		"/wake_up",
		"/pause",
		"/resume",
		"/reset_prefix_cache",
		"/reset_mm_cache",
		"/reset_encoder_cache",
		"/collective_rpc",
		"/v1/load_lora_adapter",
		"/v1/unload_lora_adapter",
		"/server_info",
		"/metrics",
		"/start_profile",
		"/stop_profile",
		"/scale_elastic_ep",
		"/update_weights",
		"/abort_requests",
		"/shutdown",
		"/",
		"",
		"/v1/chat/completions/",
		"//v1/chat/completions",
		"/v1/chat/../completions",
		"/V1/completions",
		"/v1/completions;x",
		"/v1/completions%3f",
	};
	static const char *const METHODS[] = { "GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS" };
	for (size_t i = 0; i < ARRAY_LEN(DENIED); i++) {
		for (size_t m = 0; m < ARRAY_LEN(METHODS); m++)
			assert_null(find(METHODS[m], DENIED[i]));
		assert_null(api_path_allow(str_of(DENIED[i])));
	}
}

static void methods(void **state)
{
	(void)state;
	assert_null(find("GET", "/v1/chat/completions"));
	assert_null(find("post", "/v1/chat/completions"));
	assert_null(find("HEAD", "/v1/chat/completions"));
	assert_string_equal(api_path_allow(STR("/v1/chat/completions?a")), "POST");
	assert_string_equal(api_path_allow(STR("/v1/models")), "GET, HEAD");
}

static void names_of_models_have_slashes(void **state)
{
	(void)state;
	struct str id;
	assert_int_equal(api_path_find(STR("GET"), STR("/v1/models/m?x=1"), &id)->route, API_ROUTE_MODEL);
	assert_true(str_eq(id, STR("m")));
	assert_int_equal(api_path_find(STR("HEAD"), STR("/v1/models/Qwen/Qwen3-32B"), &id)->route, API_ROUTE_MODEL);
	assert_true(str_eq(id, STR("Qwen/Qwen3-32B")));
	assert_int_equal(api_path_find(STR("GET"), STR("/v1/models/{rest}"), &id)->route, API_ROUTE_MODEL);
	assert_true(str_eq(id, STR("{rest}")));
	assert_null(find("GET", "/v1/models/"));
	assert_null(find("DELETE", "/v1/models/m"));
	assert_string_equal(api_path_allow(STR("/v1/models/a/b")), "GET, HEAD");
}

static void ids_of_responses(void **state)
{
	(void)state;
	struct str id;
	const struct api_path *p = api_path_find(STR("GET"), STR("/v1/responses/resp_1?stream=true"), &id);
	assert_int_equal(p->route, API_ROUTE_RESPONSE);
	assert_true(str_eq(id, STR("resp_1")));
	p = api_path_find(STR("POST"), STR("/v1/responses/resp_2/cancel"), &id);
	assert_int_equal(p->route, API_ROUTE_RESPONSE);
	assert_true(str_eq(id, STR("resp_2")));
	p = api_path_find(STR("POST"), STR("/v1/responses/render"), &id);
	assert_int_equal(p->route, API_ROUTE_LOAD);
	assert_int_equal(id.n, 0);
	assert_null(find("GET", "/v1/responses/"));
	assert_null(find("GET", "/v1/responses/a/b"));
	assert_null(find("POST", "/v1/responses/a/cancel/x"));
	assert_null(find("POST", "/v1/responses//cancel"));
}

/* Case 101 (litellm#35666): labels come from a fixed table, never from the target. */
static void case_litellm_35666_labels_are_fixed(void **state)
{
	(void)state;
	size_t n;
	const struct api_path *t = api_path_table(&n);
	for (size_t i = 0; i < n; i++)
		for (const char *c = t[i].label; *c; c++)
			assert_true((*c >= 'a' && *c <= 'z') || *c == '_');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known),
		cmocka_unit_test(administration_is_absent),
		cmocka_unit_test(methods),
		cmocka_unit_test(names_of_models_have_slashes), cmocka_unit_test(ids_of_responses),
		cmocka_unit_test(case_litellm_35666_labels_are_fixed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
