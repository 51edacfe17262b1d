/* jinja_fuzz.c: any template, rendered over a conversation. First the template; behind a NUL byte, if there is one, the JSON of
 * the variables. Asked: no crash, no leak, every cost bounded, and the same output twice. */
#include <stdint.h>
#include <stdlib.h>

#include "base/must.h"
#include "jinja/from_json.h"
#include "jinja/jinja.h"

static const char VARS[] = "{\"messages\":[{\"role\":\"system\",\"content\":\" s\\n\"},{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\\u00e9\"}]},"
                           "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":{\"a\":[1,2.5,1e30,\"x\"]}}}]}],"
                           "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],\"bos_token\":\"<s>\",\"add_generation_prompt\":true}";

static enum err render(const struct jinja_template *t, const struct json_doc *d, struct buf *out)
{
	struct jinja_fault fault;
	struct arena a;
	arena_init(&a, 8 << 20);
	struct jinja_val vars = jinja_from_json(&a, json_root(d));
	struct jinja_render_opts o = { .vars = &vars, .now = { 2026, 3, 1, 12, 34, 56, 0, 60 }, .max_steps = 20000, .max_output_bytes = 1 << 16 };
	enum err e = jinja_render(t, &o, &a, out, &fault);
	arena_done(&a);
	return e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str source, json;
	struct jinja_template *t;
	struct jinja_fault fault;
	struct json_doc *d;
	struct buf once, twice;
	str_cut(str_from(data, size), 0, &source, &json);
	if (jinja_compile(source, &t, &fault) != ERR_OK)
		return 0;
	if (json_parse(json, json.n, &d) != ERR_OK)
		must(json_parse(str_of(VARS), sizeof(VARS), &d) == ERR_OK);
	if (json_is(json_root(d), JSON_OBJECT)) {
		buf_init(&once, 1 << 20);
		buf_init(&twice, 1 << 20);
		must(render(t, d, &once) == render(t, d, &twice));
		must(str_eq(buf_str(&once), buf_str(&twice)));
		buf_done(&once);
		buf_done(&twice);
	}
	(void)(jinja_iterates_content(t) + jinja_content_disputed(t));
	json_free(d);
	jinja_free(t);
	return 0;
}
