/* Hand and brain: the same words by a call and by mailbox; order, batches, and nothing lost. */
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/must.h"
#include "gate/link.h"
#include "io/thread.h"

enum { ASKS = 500 };

struct fixture {
	struct brain *brain;
	struct io_loop *brain_loop, *hand_loop;
	struct gate_link *link;
	struct io_thread *thread;
	struct io_timer *guard;
	unsigned answered, refused, next_wanted;
	uint64_t last_ticket;
	bool asked_all;
};

static void add_worker(struct fixture *f)
{
	brain_worker w;
	struct str name = STR("m");
	struct brain_worker_conf c = { .url = STR("http://w:1") };
	struct mono now = { 1000000 };
	must(brain_worker_add(f->brain, &c, now, &w) == ERR_OK);
	brain_fact_models(f->brain, w, &(struct brain_models){ .names = &name, .n_names = 1, .max_model_len = 4096 }, now);
	brain_fact_probe(f->brain, w, BRAIN_PROBE_OK, now);
}

static void fixture_new(struct fixture *f, bool mailbox)
{
	static const struct brain_ops ops;
	*f = (struct fixture){ .brain_loop = io_loop_new() };
	f->brain = brain_new(&(struct brain_opts){ .routing = BRAIN_LEAST_REQUEST, .seed = 1, .receipts = 10 }, &ops, NULL);
	add_worker(f);
	f->hand_loop = mailbox ? io_loop_new() : f->brain_loop;
	f->link = mailbox ? gate_link_mailbox(f->brain, f->brain_loop, f->hand_loop) : gate_link_direct(f->brain, f->brain_loop);
}

static void loop_end(struct io_loop *l)
{
	while (io_loop_alive(l))
		;
	io_loop_free(l);
}

static void fixture_free(struct fixture *f)
{
	gate_link_free(f->link);
	brain_free(f->brain);
	if (f->hand_loop != f->brain_loop)
		loop_end(f->hand_loop);
	loop_end(f->brain_loop);
}

static struct brain_ask ask_of(const uint64_t *keys, struct kv_prompt *p)
{
	*p = (struct kv_prompt){ .n_tok = 32, .n_sets = 1, .sets = { { 16, 2, keys } } };
	return (struct brain_ask){ .model = STR("m"), .prompt = p, .kv_routed = true, .request_id = "r" };
}

static void tell(struct fixture *f, enum brain_tell_kind kind, uint64_t ticket)
{
	gate_link_tell(f->link, &(struct brain_tell){ .ticket = ticket, .kind = kind, .outcome = BRAIN_DONE, .status = 200 });
}

static void on_plan(void *arg, enum err e, const struct brain_plan *p)
{
	struct fixture *f = arg;
	if (e != ERR_OK) {
		assert_null(p);
		f->refused++;
	} else {
		assert_true(p->ticket > f->last_ticket); /* answers come in the order of the asks */
		f->last_ticket = p->ticket;
		f->answered++;
		tell(f, BRAIN_TELL_SENT, p->ticket);
		tell(f, BRAIN_TELL_FIRST_TOKEN, p->ticket);
		tell(f, BRAIN_TELL_END, p->ticket);
	}
	if (f->asked_all && f->answered + f->refused == ASKS && f->thread)
		io_loop_stop(f->hand_loop);
}

static void ask_all(void *arg)
{
	struct fixture *f = arg;
	for (unsigned i = 0; i < ASKS; i++) {
		uint64_t keys[2] = { i, i + 1 }; /* dead when the call returns: the link must have copied them */
		struct kv_prompt p;
		struct brain_ask a = ask_of(keys, &p);
		if (i % 10 == 9)
			a.model = STR("nobody");
		f->asked_all = i == ASKS - 1;
		gate_link_ask(f->link, &a, on_plan, f);
	}
}

static void direct_answers_inside_the_call(void **state)
{
	struct fixture f;
	(void)state;
	fixture_new(&f, false);
	ask_all(&f);
	assert_int_equal(f.answered, ASKS / 10 * 9);
	assert_int_equal(f.refused, ASKS / 10);
	assert_true(brain_ledger_is_zero(f.brain));
	fixture_free(&f);
}

static void run_hand(void *arg)
{
	struct fixture *f = arg;
	io_loop_run(f->hand_loop);
	io_loop_stop_from_any(f->brain_loop);
}

static void guard(void *arg)
{
	(void)arg;
	fail_msg("%s", "the mailbox stood still");
}

static void mailbox_keeps_order_and_loses_nothing(void **state)
{
	struct fixture f;
	(void)state;
	fixture_new(&f, true);
	f.guard = io_timer_new(f.brain_loop, guard, &f);
	io_timer_after(f.guard, 10 * 1000000);
	io_post(f.hand_loop, ask_all, &f);
	f.thread = io_thread_start(run_hand, &f);
	io_loop_run(f.brain_loop);
	io_thread_join(f.thread);
	io_timer_free(f.guard);
	while (!brain_ledger_is_zero(f.brain)) /* tells that came with the stop */
		io_loop_alive(f.brain_loop);
	assert_int_equal(f.answered, ASKS / 10 * 9);
	assert_int_equal(f.refused, ASKS / 10);
	fixture_free(&f);
}

static void letters_under_way_are_freed(void **state)
{
	struct fixture f;
	(void)state;
	fixture_new(&f, true);
	ask_all(&f);
	tell(&f, BRAIN_TELL_SENT, 1);
	fixture_free(&f); /* the sanitizer sees what was left */
	assert_int_equal(f.answered, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(direct_answers_inside_the_call),
		cmocka_unit_test(mailbox_keeps_order_and_loses_nothing),
		cmocka_unit_test(letters_under_way_are_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
