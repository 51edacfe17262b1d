/* prom_fuzz.c: any text; every slice handed out must be readable. */
#include <stdint.h>

#include "base/hash.h"
#include "base/must.h"
#include "wire/prom.h"

static void sample(void *arg, const struct prom_sample *s)
{
	uint64_t *sum = arg;
	must(s->name.n > 0 && s->n_labels <= PROM_MAX_LABELS);
	*sum ^= hash_str(s->name, 1);
	for (size_t i = 0; i < s->n_labels; i++)
		*sum += hash_str(s->labels[i].name, 2) ^ hash_str(s->labels[i].value, 3);
	must(s->n_labels == 0 || prom_label(s, s->labels[0].name).p == s->labels[0].value.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t sum = 0;
	struct prom_count c = prom_parse(str_from(data, size), sample, &sum);
	must(c.samples + c.skipped <= size);
	return 0;
}
