"""Token ids from the workers (section 5): shared, remembered, bounded in time, never the reason for an error."""
import concurrent.futures
import time

import pytest

import client
from client import CHAT, STREAM
from conftest import eventually
from gateway import Gateway
from upstream import Upstream, whole


def ids(c, n=40):
    c.send(whole({"count": n, "max_model_len": 4096, "tokens": list(range(n)), "token_strs": None}))


def source(gw, r):
    return gw.log(r.headers["x-request-id"])["ids"]


def test_ids_are_asked_once_per_prompt(start):
    with Upstream() as up:
        gw = Gateway(start, up)
        for _ in range(4):
            r = gw.chat()
            assert r.status == 200 and source(gw, r) == "keys"
        assert len([c for c in up.tokenize_calls if c.target == "/tokenize"]) == 1
        gw.chat({**CHAT, "temperature": 0.5})                     # does not change the prompt
        assert len([c for c in up.tokenize_calls if c.target == "/tokenize"]) == 1
        gw.chat({**CHAT, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "tool_choice": "none"})
        assert len([c for c in up.tokenize_calls if c.target == "/tokenize"]) == 2
        body = up.tokenize_calls[-1].json
        assert body["tools"] and body["messages"] == CHAT["messages"] and body.get("add_generation_prompt", True) is True


def test_render_is_learnt_to_be_refused(start):
    """403 once, /tokenize from then on"""
    with Upstream() as up:
        gw = Gateway(start, up)
        for i in range(5):
            gw.chat({**CHAT, "messages": [{"role": "user", "content": f"q{i}"}]})
        targets = [c.target for c in up.tokenize_calls]
        assert targets.count("/v1/chat/completions/render") <= 1 and targets.count("/tokenize") == 5


def test_render_where_it_is_offered(start):
    def render(c):
        if "render" in c.target:
            c.send(whole({"token_ids": list(range(48)), "sampling_params": {}}))
        else:
            ids(c)
    with Upstream(tokenize=render) as up:
        gw = Gateway(start, up)
        r = gw.chat()
        assert source(gw, r) == "keys" and [c.target for c in up.tokenize_calls] == ["/v1/chat/completions/render"]
        body = {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]}
        assert source(gw, gw.chat(body)) == "keys"


def render_of(c):
    if "render" in c.target:
        c.send(whole([{"token_ids": list(range(48))}] if c.target.startswith("/v1/completions") else {"token_ids": list(range(48))}))
    else:
        ids(c)


@pytest.mark.parametrize("api,prompt", [("/v1/chat/completions", lambda i: {"messages": [{"role": "user", "content": f"q{i}"}]}),
                                        ("/v1/completions", lambda i: {"prompt": f"q{i}"})], ids=["chat", "completions"])
def test_what_is_offered_is_learnt_per_worker(start, api, prompt):
    """one renders, the other refuses it once: each is asked what it offers, whatever the other said"""
    with Upstream(tokenize=render_of) as renders, Upstream() as refuses:
        gw = Gateway(start, renders, refuses)
        for i in range(10):
            r = gw.chat({"model": "m", "max_tokens": 1, **prompt(i)}, path=api)
            assert source(gw, r) == "keys"
        asked = [{c.target for c in u.tokenize_calls if c.target != "/tokenize"} for u in (renders, refuses)]
        assert asked == [{api + "/render"}] * 2
        assert not [c for c in renders.tokenize_calls if c.target == "/tokenize"] and len(renders.tokenize_calls) >= 3
        assert [c.target for c in refuses.tokenize_calls].count(api + "/render") == 1
        assert len([c for c in refuses.tokenize_calls if c.target == "/tokenize"]) >= 3


def test_images_without_render_are_not_keyed(start):
    with Upstream() as up:
        gw = Gateway(start, up)
        body = {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]}
        gw.chat()
        r = gw.chat(body)
        assert r.status == 200 and source(gw, r) == "not_expressible"


def test_equal_prompts_share_a_call(start):
    def slow(c):
        time.sleep(0.15)
        ids(c)
    with Upstream(tokenize=slow) as up:
        gw = Gateway(start, up, args=["--tokens-budget", "2s"])
        gw.chat()
        body = {**CHAT, "messages": [{"role": "user", "content": "the same"}]}
        before = len(up.tokenize_calls)
        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: gw.chat(body), range(10)))
        assert all(r.status == 200 and source(gw, r) == "keys" for r in answers)
        assert len(up.tokenize_calls) - before == 1
        assert gw.settled()


def test_budget_over_means_routed_by_load(start):
    """a late answer still fills the cache"""
    def slow(c):
        time.sleep(0.6)
        ids(c)
    with Upstream(tokenize=slow) as up:
        gw = Gateway(start, up, args=["--tokens-budget", "150ms"])
        t = time.monotonic()
        r = gw.chat()
        assert r.status == 200 and time.monotonic() - t < 0.5 and source(gw, r) == "budget_over"
        receipt = client.call(gw.admin, "GET", f"/api/v1/decisions/{r.headers['x-request-id']}").json
        assert (receipt["ids"], receipt["reason"]) == ("budget_over", "load")
        assert eventually(lambda: source(gw, gw.chat()) == "keys", 3, 0.2)
        assert gw.settled()


@pytest.mark.parametrize("how", ["hang", "reset", "500", "garbage", "400", "401"])
def test_failing_tokenize_is_never_the_clients_error(start, how):
    def bad(c):
        if how == "hang":
            c.sleep(2)
        elif how == "reset":
            c.reset()
        elif how == "garbage":
            c.send(whole("{nonsense"))
        else:
            c.send(whole({"error": "x"}, int(how)))
    with Upstream(tokenize=bad) as up:
        gw = Gateway(start, up, args=["--tokens-budget", "100ms"])
        for i in range(3):
            r = gw.chat({**STREAM, "messages": [{"role": "user", "content": f"{i}"}]})
            assert r.status == 200 and r.whole
            assert source(gw, r) != "keys"
        assert gw.settled()


def test_a_hanging_worker_is_not_asked_again_at_once(start):
    """its lateness costs a budget now and then, not every request"""
    def hang(c):
        c.sleep(8)
    with Upstream(tokenize=hang) as bad, Upstream() as good:
        gw = Gateway(start, bad, good, args=["--tokens-budget", "200ms"])
        t = time.monotonic()
        for i in range(20):
            assert gw.chat({**CHAT, "messages": [{"role": "user", "content": f"n{i}"}]}).status == 200
        assert time.monotonic() - t < 3.5, "every second prompt waited for the hanging worker"


def test_a_worker_that_is_down_is_not_asked(start):
    with Upstream() as down, Upstream() as good:
        gw = Gateway(start, down, good)
        down.health = 503
        assert eventually(lambda: "down" in [w["state"] for w in gw.workers()], 5), gw.workers()
        for i in range(6):
            assert source(gw, gw.chat({**CHAT, "messages": [{"role": "user", "content": f"d{i}"}]})) == "keys"
        assert not down.tokenize_calls and len([c for c in good.tokenize_calls if c.target == "/tokenize"]) == 6


def test_given_ids_need_no_call(start):
    with Upstream(lambda c: c.send(whole({"id": "cmpl-1", "object": "text_completion", "choices": []}))) as up:
        gw = Gateway(start, up)
        r = gw.chat({"model": "m", "prompt": list(range(64)), "max_tokens": 1}, path="/v1/completions")
        assert r.status == 200 and source(gw, r) == "keys" and not up.tokenize_calls
        r = gw.chat({"model": "m", "prompt": [[1] * 32, [2] * 32], "max_tokens": 1}, path="/v1/completions")
        assert r.status == 200 and source(gw, r) == "keys"


def test_tokens_none(start):
    with Upstream() as up:
        gw = Gateway(start, up, args=["--tokens", "none"])
        r = gw.chat()
        assert r.status == 200 and source(gw, r) == "off" and not up.tokenize_calls


def test_questions_go_to_the_worker_with_the_fewest(start):
    def slow(c):
        time.sleep(0.2)
        ids(c)
    with Upstream(tokenize=slow) as a, Upstream(tokenize=slow) as b:
        gw = Gateway(start, a, b, args=["--tokens-budget", "2s"])
        bodies = [{**CHAT, "messages": [{"role": "user", "content": f"p{i}"}]} for i in range(8)]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(gw.chat, bodies))
        n = [len([c for c in u.tokenize_calls if c.target == "/tokenize"]) for u in (a, b)]
        assert sum(n) == 8 and abs(n[0] - n[1]) <= 2


def test_the_workers_requests_are_not_delayed_by_counting(start):
    """what is asked for ids carries no client header but the key"""
    with Upstream() as up:
        gw = Gateway(start, up)
        gw.chat(headers=["Authorization: Bearer k", "X-Private: 1"])
        h = up.tokenize_calls[0].headers
        assert h["authorization"] == "Bearer k" and "x-private" not in h
