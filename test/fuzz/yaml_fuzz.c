/* yaml_fuzz.c: any text; the tree must be whole, its places inside the text, its depth bounded. */
#include <stdint.h>
#include <string.h>

#include "base/must.h"
#include "wire/yaml.h"

static void walk(const struct yaml_node *n, unsigned depth)
{
	must(n && depth <= YAML_MAX_DEPTH && n->pos.line > 0 && n->pos.col > 0);
	must(yaml_kind_name(n->kind)[0]);
	for (size_t i = 0; n->kind == YAML_SEQ && i < n->n; i++)
		walk(n->items[i], depth + 1);
	for (size_t i = 0; n->kind == YAML_MAP && i < n->n; i++) {
		must(n->pairs[i].pos.line > 0 && yaml_find(n, n->pairs[i].key));
		walk(n->pairs[i].val, depth + 1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n;
	struct yaml_file *f = yaml_file_read(str_from(data, size));
	for (size_t i = 0; i < yaml_docs(f); i++)
		walk(yaml_doc(f, i), 0);
	const struct yaml_fault *x = yaml_faults(f, &n);
	for (size_t i = 0; i < n; i++)
		must(x[i].pos.line > 0 && strlen(x[i].what) > 0);
	yaml_file_free(f);
	return 0;
}
