/* engine.c: the rows by name. */
#include "engine/engine.h"

#include "engine/vllm.h"

const struct engine *engine_of(struct str name)
{
	static const struct engine *const rows[] = { &vllm_engine };
	if (name.n == 0)
		return rows[0];
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_ieq(rows[i]->name, name))
			return rows[i];
	return NULL;
}

bool engine_fact_of(const struct engine *e, struct str metric, enum engine_fact *ret_fact)
{
	for (size_t i = 0; i < e->n_metrics; i++)
		if (str_eq(e->metrics[i].name, metric)) {
			*ret_fact = e->metrics[i].fact;
			return true;
		}
	return false;
}
