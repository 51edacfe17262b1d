#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "engine/vllm.h"
#include "wire/msgpack.h"

struct kit { struct buf b; struct msgpack_out o; struct arena a; struct kv_batch batch; };

static void begin(struct kit *k)
{
	buf_init(&k->b, 1 << 20);
	k->o = msgpack_out(&k->b);
	arena_init(&k->a, 1 << 24);
}

static void end(struct kit *k)
{
	buf_done(&k->b);
	arena_done(&k->a);
}

static void envelope(struct kit *k, uint32_t events)
{
	msgpack_write_array(&k->o, 3);
	msgpack_write_float(&k->o, 1795993069.25);
	msgpack_write_array(&k->o, events);
}

static enum err decode(struct kit *k)
{
	msgpack_write_uint(&k->o, 3);
	assert_int_equal(k->o.err, ERR_OK);
	return vllm_events(buf_str(&k->b), &k->a, &k->batch);
}

#define TEXT(k, lit) msgpack_write_str(&(k)->o, STR(lit))

static void numbers(struct kit *k, uint32_t n, uint64_t from)
{
	msgpack_write_array(&k->o, n);
	for (uint32_t i = 0; i < n; i++)
		msgpack_write_uint(&k->o, from + i);
}

/* The array form with so many elements, tag included: every version appended to the one before. */
static void stored_array(struct kit *k, uint32_t n)
{
	msgpack_write_array(&k->o, n);
	TEXT(k, "BlockStored");
	numbers(k, 2, 0xfffffffffffffff0u);
	msgpack_write_uint(&k->o, 77);
	numbers(k, 8, 100);
	msgpack_write_uint(&k->o, 4);
	msgpack_write_nil(&k->o);
	TEXT(k, "GPU");
	if (n > 7)
		TEXT(k, "adapter-a");
	if (n > 8) {
		msgpack_write_array(&k->o, 2);
		for (int i = 0; i < 2; i++) {
			msgpack_write_array(&k->o, 1);
			TEXT(k, "adapter-a");
		}
	}
	if (n > 9)
		msgpack_write_uint(&k->o, 2);
	if (n > 10)
		TEXT(k, "sliding_window");
	if (n > 11)
		msgpack_write_uint(&k->o, 512);
	for (uint32_t i = 12; i < n; i++)
		TEXT(k, "from the future");
}

static void arrays_of_every_version(void **state)
{
	(void)state;
	static const uint32_t lengths[] = { 7, 8, 9, 10, 12, 15 };
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct kit k;
		uint32_t n = lengths[i];
		begin(&k);
		envelope(&k, 1);
		stored_array(&k, n);
		assert_int_equal(decode(&k), ERR_OK);
		assert_int_equal(k.batch.n_events, 1);
		assert_int_equal(k.batch.skipped, 0);
		assert_int_equal(k.batch.dp_rank, 3);
		const struct kv_event *e = &k.batch.events[0];
		assert_int_equal(e->type, KV_EVENT_STORED);
		assert_int_equal(e->n_hashes, 2);
		assert_true(e->hashes[1] == 0xfffffffffffffff1u);
		assert_true(e->has_parent && e->parent == 77);
		assert_int_equal(e->n_ids, 8);
		assert_int_equal(e->ids[7], 107);
		assert_int_equal(e->block_size, 4);
		assert_true(str_eq(e->adapter, n > 7 ? STR("adapter-a") : STR("")));
		assert_int_equal(e->extras != NULL, n > 8);
		if (n > 8)
			assert_int_equal(e->extras[0].n, 0);       /* the adapter's own name is no extra */
		assert_int_equal(e->group, n > 9 ? 2 : 0);
		assert_int_equal(e->group_known, n > 9);
		assert_int_equal(e->kind, n > 10 ? KV_GROUP_WINDOW : KV_GROUP_FULL);
		assert_int_equal(e->window_tok, n > 11 ? 512 : 0);
		assert_int_equal(k.batch.odd_parts, n > 12 ? n - 12 : 0);
		end(&k);
	}
}

static void removals_of_every_version(void **state)
{
	(void)state;
	for (uint32_t n = 2; n <= 5; n++) {
		struct kit k;
		begin(&k);
		envelope(&k, 2);
		msgpack_write_array(&k.o, n);
		TEXT(&k, "BlockRemoved");
		numbers(&k, 1, 5);
		if (n > 2)
			TEXT(&k, "CPU");
		if (n > 3)
			msgpack_write_uint(&k.o, 4);
		if (n > 4)
			TEXT(&k, "later");
		msgpack_write_array(&k.o, 1);
		TEXT(&k, "AllBlocksCleared");
		assert_int_equal(decode(&k), ERR_OK);
		assert_int_equal(k.batch.n_events, 2);
		assert_int_equal(k.batch.events[0].type, KV_EVENT_REMOVED);
		assert_int_equal(k.batch.events[0].tier, n > 2 ? KV_TIER_CPU : KV_TIER_GPU);
		assert_int_equal(k.batch.events[0].group_known, n > 3);
		assert_int_equal(k.batch.events[1].type, KV_EVENT_CLEARED);
		end(&k);
	}
}

static void stored_map(struct kit *k, bool tag_last)
{
	msgpack_write_map(&k->o, 10);
	if (!tag_last)
		TEXT(k, "type"), TEXT(k, "BlockStored");
	TEXT(k, "extra_keys");
	msgpack_write_array(&k->o, 2);
	msgpack_write_array(&k->o, 4);
	TEXT(k, "a");
	msgpack_write_array(&k->o, 2), TEXT(k, "imagehash"), msgpack_write_int(&k->o, -7);
	TEXT(k, "salty");
	msgpack_write_bin(&k->o, STR("digest"));
	msgpack_write_array(&k->o, 2);
	TEXT(k, "a");
	TEXT(k, "salty");
	TEXT(k, "block_hashes"), numbers(k, 2, 1);
	TEXT(k, "parent_block_hash"), msgpack_write_nil(&k->o);
	TEXT(k, "token_ids"), numbers(k, 8, 1);
	TEXT(k, "block_size"), msgpack_write_uint(&k->o, 4);
	TEXT(k, "lora_name"), TEXT(k, "a");
	TEXT(k, "ownership"), msgpack_write_map(&k->o, 1), TEXT(k, "deep"), numbers(k, 3, 1);
	TEXT(k, "novelty"), msgpack_write_map(&k->o, 1), TEXT(k, "deep"), numbers(k, 3, 1);
	TEXT(k, "kv_cache_spec_kind"), TEXT(k, "mamba");
	if (tag_last)
		TEXT(k, "type"), TEXT(k, "BlockStored");
}

/* The name of the adapter is stripped; extras are typed; a bare string counts only in the first block. */
static void maps_with_extras_in_any_order(void **state)
{
	(void)state;
	for (int tag_last = 0; tag_last < 2; tag_last++) {
		struct kit k;
		begin(&k);
		envelope(&k, 1);
		stored_map(&k, tag_last);
		assert_int_equal(decode(&k), ERR_OK);
		assert_int_equal(k.batch.n_events, 1);
		const struct kv_event *e = &k.batch.events[0];
		assert_int_equal(e->kind, KV_GROUP_MAMBA);
		assert_false(e->has_parent);
		assert_false(e->group_known);
		const struct kv_block_extras *x = e->extras;
		assert_int_equal(x[0].n, 3);
		assert_true(x[0].p[0].kind == KV_EXTRA_MM && x[0].p[0].offset_tok == -7 && str_eq(x[0].p[0].id, STR("imagehash")));
		assert_true(x[0].p[1].kind == KV_EXTRA_SALT && str_eq(x[0].p[1].id, STR("salty")));
		assert_true(x[0].p[2].kind == KV_EXTRA_EMBEDS && str_eq(x[0].p[2].id, STR("digest")));
		assert_int_equal(x[1].n, 0);
		assert_int_equal(k.batch.odd_parts, 2);      /* the bare string of a later block, and the novelty */
		end(&k);
	}
}

static void hashes_of_every_form(void **state)
{
	(void)state;
	struct kit k;
	begin(&k);
	envelope(&k, 1);
	msgpack_write_array(&k.o, 2);
	TEXT(&k, "BlockRemoved");
	msgpack_write_array(&k.o, 5);
	msgpack_write_uint(&k.o, UINT64_MAX);
	msgpack_write_int(&k.o, -2);
	msgpack_write_bin(&k.o, str_from("\0\0\0\0\0\0\1\2", 8));
	msgpack_write_bin(&k.o, str_from("0123456789abcdef01234567\0\0\0\0\0\0\1\3", 32));
	msgpack_write_uint(&k.o, 9);
	assert_int_equal(decode(&k), ERR_OK);
	assert_int_equal(k.batch.n_events, 1);
	const uint64_t want[] = { UINT64_MAX, (uint64_t)-2, 0x102, 0x103, 9 };
	assert_memory_equal(k.batch.events[0].hashes, want, sizeof(want));
	end(&k);
}

/* One strange event costs itself, not its batch. */
static void strange_events_are_skipped_and_counted(void **state)
{
	(void)state;
	struct kit k;
	begin(&k);
	envelope(&k, 10);
	msgpack_write_nil(&k.o);                                                           /* no event at all */
	msgpack_write_array(&k.o, 2), TEXT(&k, "BlockInactive"), numbers(&k, 2, 1);        /* an unknown tag */
	msgpack_write_map(&k.o, 1), TEXT(&k, "type"), TEXT(&k, "Novelty");
	msgpack_write_map(&k.o, 1), TEXT(&k, "block_hashes"), numbers(&k, 1, 1);           /* no tag */
	msgpack_write_array(&k.o, 2), TEXT(&k, "BlockRemoved"), TEXT(&k, "not hashes");
	msgpack_write_array(&k.o, 2), TEXT(&k, "BlockRemoved"), msgpack_write_array(&k.o, 1), msgpack_write_bin(&k.o, STR("short"));
	msgpack_write_array(&k.o, 4), TEXT(&k, "BlockRemoved"), numbers(&k, 1, 1), TEXT(&k, "GPU"), msgpack_write_uint(&k.o, KV_MAX_GROUPS);
	msgpack_write_array(&k.o, 0);
	stored_array(&k, 12);
	msgpack_write_array(&k.o, 1), TEXT(&k, "BlockRemoved");                            /* no hashes */
	assert_int_equal(decode(&k), ERR_OK);
	assert_int_equal(k.batch.n_events, 1);
	assert_int_equal(k.batch.skipped, 9);
	assert_int_equal(k.batch.events[0].type, KV_EVENT_STORED);
	end(&k);
}

static void an_event_may_be_wrapped_in_a_bin(void **state)
{
	(void)state;
	struct kit inner, k;
	begin(&inner);
	stored_array(&inner, 10);
	begin(&k);
	envelope(&k, 1);
	msgpack_write_bin(&k.o, buf_str(&inner.b));
	assert_int_equal(decode(&k), ERR_OK);
	assert_int_equal(k.batch.n_events, 1);
	assert_int_equal(k.batch.events[0].group, 2);
	end(&k);
	end(&inner);
}

/* vLLM's OffloadingConnector: a hash and nothing else; llm-d's file system backend: the array form, each event in a bin. */
static void an_offloaded_block_is_a_hash_on_a_medium(void **state)
{
	(void)state;
	struct kit inner, k;
	begin(&inner);
	msgpack_write_array(&inner.o, 7);
	TEXT(&inner, "BlockStored"), numbers(&inner, 1, 5), msgpack_write_uint(&inner.o, 0), numbers(&inner, 0, 0);
	msgpack_write_uint(&inner.o, 0), msgpack_write_nil(&inner.o), TEXT(&inner, "SHARED_STORAGE");
	begin(&k);
	envelope(&k, 2);
	msgpack_write_map(&k.o, 9);
	TEXT(&k, "type"), TEXT(&k, "BlockStored"), TEXT(&k, "block_hashes"), numbers(&k, 1, 5);
	TEXT(&k, "parent_block_hash"), msgpack_write_nil(&k.o), TEXT(&k, "token_ids"), numbers(&k, 0, 0);
	TEXT(&k, "block_size"), msgpack_write_uint(&k.o, 0), TEXT(&k, "lora_id"), msgpack_write_nil(&k.o);
	TEXT(&k, "medium"), TEXT(&k, "cpu"), TEXT(&k, "lora_name"), msgpack_write_nil(&k.o), TEXT(&k, "group_idx"), msgpack_write_uint(&k.o, 1);
	msgpack_write_bin(&k.o, buf_str(&inner.b));
	assert_int_equal(decode(&k), ERR_OK);
	assert_int_equal(k.batch.n_events, 2);
	const enum kv_tier tiers[] = { KV_TIER_CPU, KV_TIER_STORAGE };
	for (size_t i = 0; i < 2; i++) {
		const struct kv_event *e = &k.batch.events[i];
		assert_int_equal(e->tier, tiers[i]);
		assert_int_equal(e->n_hashes, 1);
		assert_int_equal(e->n_ids + e->block_size, 0);
		assert_int_equal(e->group_known, i == 0);
		assert_int_equal(e->group, i == 0);
	}
	assert_int_equal(k.batch.skipped, 0);
	end(&k);
	end(&inner);
}

static void a_batch_may_be_a_map_or_lack_its_rank(void **state)
{
	(void)state;
	struct kit k;
	begin(&k);
	msgpack_write_map(&k.o, 3);
	TEXT(&k, "events"), msgpack_write_array(&k.o, 1), stored_array(&k, 7);
	TEXT(&k, "ts"), msgpack_write_uint(&k.o, 12);
	TEXT(&k, "data_parallel_rank");
	assert_int_equal(decode(&k), ERR_OK);
	assert_int_equal(k.batch.n_events, 1);
	assert_true(k.batch.ts_s == 12.0 && k.batch.dp_rank == 3);
	end(&k);
	begin(&k);
	msgpack_write_array(&k.o, 2), msgpack_write_float(&k.o, 1), msgpack_write_array(&k.o, 0);
	assert_int_equal(vllm_events(buf_str(&k.b), &k.a, &k.batch), ERR_OK);
	assert_int_equal(k.batch.dp_rank, -1);
	end(&k);
}

/* Builds before 0.14 give the adapter a number only: its blocks must not look like the base model's. */
static void an_adapter_without_a_name_is_kept_apart(void **state)
{
	(void)state;
	struct kit k;
	begin(&k);
	envelope(&k, 1);
	msgpack_write_map(&k.o, 5);
	TEXT(&k, "type"), TEXT(&k, "BlockStored");
	TEXT(&k, "block_hashes"), numbers(&k, 1, 1);
	TEXT(&k, "token_ids"), numbers(&k, 4, 1);
	TEXT(&k, "block_size"), msgpack_write_uint(&k.o, 4);
	TEXT(&k, "lora_id"), msgpack_write_uint(&k.o, 1);
	assert_int_equal(decode(&k), ERR_OK);
	assert_true(k.batch.events[0].adapter.n > 0);
	end(&k);
}

static void hostile_payloads_are_refused_cheaply(void **state)
{
	(void)state;
	static const char *const bad[] = { "\x93\xcb\x41\xda\xc3\x2b\xcd\x9e\xbf\xb4\xdd\xff\xff\xff\xff", "\xdd\xff\xff\xff\xff", "\x93\x01\xc0\x00", "\xa1x", "\x92\x01" };
	static const size_t sizes[] = { 15, 5, 4, 2, 2 };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct arena a;
		struct kv_batch b = { .skipped = 7 };
		arena_init(&a, 1 << 20);
		assert_int_not_equal(vllm_events(str_from(bad[i], sizes[i]), &a, &b), ERR_OK);
		assert_int_equal(b.skipped, 7);
		assert_true(a.used_bytes < 4096);
		arena_done(&a);
	}
}

/* A million one-byte "events" must not cost a hundred bytes each. */
static void a_flood_of_nothing_stays_small(void **state)
{
	(void)state;
	struct kit k;
	begin(&k);
	k.b.max = 4 << 20;
	envelope(&k, 1 << 20);
	for (int i = 0; i < 1 << 20; i++)
		msgpack_write_nil(&k.o);
	k.a.max_bytes = 0;
	assert_int_equal(decode(&k), ERR_OK);
	assert_int_equal(k.batch.n_events, 0);
	assert_int_equal(k.batch.skipped, 1 << 20);
	assert_true(k.a.used_bytes < (size_t)20 << 20);
	end(&k);
}

/* Cut anywhere, a good payload is refused, never read past its end (the address sanitizer looks on). */
static void every_prefix_is_refused(void **state)
{
	(void)state;
	struct kit k;
	begin(&k);
	envelope(&k, 2);
	stored_map(&k, false);
	stored_array(&k, 12);
	assert_int_equal(decode(&k), ERR_OK);
	for (size_t n = 0; n < k.b.n; n++) {
		char *exact = malloc(n + 1);
		memcpy(exact, buf_str(&k.b).p, n);
		struct kv_batch b;
		assert_int_not_equal(vllm_events(str_from(exact, n), &k.a, &b), ERR_OK);
		free(exact);
	}
	end(&k);
}

static void rows_and_metrics_by_name(void **state)
{
	(void)state;
	const struct engine *e = engine_of(STR("vLLM"));
	enum engine_fact f;
	assert_true(e && engine_of(STR("")) == e);
	assert_null(engine_of(STR("nobody")));
	assert_true(engine_fact_of(e, STR("vllm:num_requests_waiting"), &f) && f == ENGINE_REQUESTS_WAITING);
	assert_false(engine_fact_of(e, STR("vllm:num_requests_waiting_by_reason"), &f));
	assert_true(engine_fact_of(e, STR("vllm:cache_config_info"), &f) && f == ENGINE_CACHE_CONFIG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrays_of_every_version),
		cmocka_unit_test(removals_of_every_version),
		cmocka_unit_test(maps_with_extras_in_any_order),
		cmocka_unit_test(hashes_of_every_form),
		cmocka_unit_test(strange_events_are_skipped_and_counted),
		cmocka_unit_test(an_event_may_be_wrapped_in_a_bin),
		cmocka_unit_test(an_offloaded_block_is_a_hash_on_a_medium),
		cmocka_unit_test(a_batch_may_be_a_map_or_lack_its_rank),
		cmocka_unit_test(an_adapter_without_a_name_is_kept_apart),
		cmocka_unit_test(hostile_payloads_are_refused_cheaply),
		cmocka_unit_test(a_flood_of_nothing_stays_small),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(rows_and_metrics_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
