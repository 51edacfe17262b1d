/* Which tokenizers this process has, and how they fare against the workers' own. */
#include "model/model.h"
#include "ops/ops_priv.h"

static void put_tokenizer(struct json_writer *w, const struct model_info *i)
{
	json_put_open(w, '{');
	ops_str(w, "name", i->key);
	ops_str(w, "state", str_of(model_state_name(i->state)));
	ops_str(w, "folder", i->place);
	ops_bool(w, "chats", i->chats);
	ops_str(w, "why", i->why);
	ops_u64(w, "bytes", i->bytes);
	ops_u64(w, "prompts", i->prompts);
	ops_u64(w, "compared", i->checks);
	ops_u64(w, "agreed", i->agreed);
	ops_u64(w, "different", i->different);
	json_put_close(w, '}');
}

void ops_put_tokenizers(const struct ops *o, struct json_writer *w)
{
	struct arena a;
	const struct model_info *infos;
	arena_init(&a, 0);
	size_t n = feed_tokenizers(o->feed, &a, &infos);
	json_put_open(w, '{');
	json_put_key(w, STR("tokenizers"));
	json_put_open(w, '[');
	for (size_t i = 0; i < n; i++)
		put_tokenizer(w, &infos[i]);
	json_put_close(w, ']');
	json_put_close(w, '}');
	arena_done(&a);
}
