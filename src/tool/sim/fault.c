#include "sim/fault.h"

#include <stdio.h>
#include <string.h>

static const struct row {
	const char *word;
	char value;
	const char *text;
} rows[] = {
#define X(name, word, value, text) { word, value, text },
#include "sim/fault.def"
#undef X
};

const char *sim_fault_word(enum sim_fault_kind k) { return rows[k].word; }
bool sim_fault_per_call(enum sim_fault_kind k) { return k <= SIM_FAULT_WAIT; }

const char *sim_fault_help(void)
{
	return "SPEC = [WORKERS:]KIND[=VALUE][,p=P][,n=N][,after=N][,path=PREFIX]\n"
	       "  WORKERS  an index, a range a-b, or * (also: no WORKERS on the command line); at run time: POST the SPEC to\n"
	       "           /sim/fault of a worker, without WORKERS it means that worker\n"
	       "  p, n, after, path   for the kinds decided call by call (down to wait): chance of each call, how many calls at\n"
	       "           most, how many are let through first, which path (default: the inference calls)\n"
#define X(name, word, value, text) "  " word "  " text "\n"
#include "sim/fault.def"
#undef X
		;
}

static bool parse_workers(struct str s, struct sim_fault *f)
{
	struct str lo, hi;
	uint64_t a, b;
	f->worker_given = true;
	if (str_eq(s, STR("*")))
		return true;
	if (!str_cut(s, '-', &lo, &hi))
		hi = lo;
	if (!str_to_u64(lo, &a) || !str_to_u64(hi, &b) || a > b || b > 100000)
		return false;
	f->from = (uint32_t)a;
	f->to = (uint32_t)b;
	return true;
}

static enum err parse_kind(struct str s, struct sim_fault *f)
{
	struct str word, value;
	bool has = str_cut(s, '=', &word, &value);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (!str_eq(word, str_of(rows[i].word)))
			continue;
		f->kind = (enum sim_fault_kind)i;
		if (has ? rows[i].value == '-' : rows[i].value == '!')
			return ERR_SYNTAX;
		f->value = -1;
		return !has || (str_to_f64(value, &f->value) && f->value >= 0) ? ERR_OK : ERR_RANGE;
	}
	return ERR_SYNTAX;
}

static enum err parse_param(struct str s, struct sim_fault *f)
{
	struct str key, value;
	if (!str_cut(s, '=', &key, &value))
		return ERR_SYNTAX;
	if (str_eq(key, STR("p")))
		return str_to_f64(value, &f->p) && f->p >= 0 && f->p <= 1 ? ERR_OK : ERR_RANGE;
	if (str_eq(key, STR("n")))
		return str_to_u64(value, &f->left) ? ERR_OK : ERR_RANGE;
	if (str_eq(key, STR("after")))
		return str_to_u64(value, &f->after) ? ERR_OK : ERR_RANGE;
	if (!str_eq(key, STR("path")))
		return ERR_SYNTAX;
	if (!value.n || value.n >= sizeof(f->path))
		return ERR_RANGE;
	memcpy(f->path, value.p, value.n);
	return ERR_OK;
}

static bool value_in_range(const struct sim_fault *f)
{
	switch ((int)f->kind) {
	case SIM_FAULT_STATUS: return f->value >= 400 && f->value <= 599;
	case SIM_FAULT_SLOW: return f->value > 0;
	case SIM_FAULT_LIE_BLOCK: return f->value >= 1;
	case SIM_FAULT_EVENT_LOSE:
	case SIM_FAULT_EVENT_DROP:
	case SIM_FAULT_EVENT_TWICE:
	case SIM_FAULT_EVENT_SWAP:
	case SIM_FAULT_EVENT_NOISE: return f->value <= 1;
	default: return true;
	}
}

enum err sim_fault_parse(struct str spec, struct sim_fault *ret_fault)
{
	struct sim_fault f = { .p = 1, .left = UINT64_MAX, .to = UINT32_MAX };
	struct str head, rest, part;
	spec = str_trim(spec);
	/* a colon may also be part of path=; WORKERS has none of these signs */
	if (str_cut(spec, ':', &head, &rest) && str_find(head, STR("=")) == SIZE_MAX && str_find(head, STR(",")) == SIZE_MAX) {
		if (!parse_workers(head, &f))
			return ERR_SYNTAX;
		spec = rest;
	}
	(void)str_cut(spec, ',', &part, &rest);
	TRY(parse_kind(part, &f));
	while (rest.n) {
		(void)str_cut(rest, ',', &part, &rest);
		TRY(parse_param(part, &f));
	}
	if (!value_in_range(&f))
		return ERR_RANGE;
	*ret_fault = f;
	return ERR_OK;
}

void sim_faults_add(struct sim_faults *f, const struct sim_fault *x) { VEC_PUSH(&f->v, *x); }
void sim_faults_clear(struct sim_faults *f) { VEC_FREE(&f->v); }

const struct sim_fault *sim_faults_pick(struct sim_faults *f, struct str path, bool inference, struct rand *r)
{
	for (size_t i = 0; i < f->v.n; i++) {
		struct sim_fault *x = &f->v.p[i];
		if (x->path[0] ? !str_starts(path, str_of(x->path)) : !inference)
			continue;
		if (!x->left || (x->p < 1 && rand_unit(r) >= x->p))
			continue;
		if (x->after) {
			x->after--;
			continue;
		}
		if (x->left != UINT64_MAX)
			x->left--;
		return x;
	}
	return NULL;
}
