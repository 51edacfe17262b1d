"""Rows of the shared cases (routers.md) that had no system test of their own name: routing, index, aborts, configuration."""
import collections
import json
import pathlib
import re
import subprocess
import threading
import time

import pytest
from client import CHAT, STREAM
from conftest import BIN_DIR, eventually
from gateway import Gateway
from sim import Fleet, words
from upstream import COMPLETION, Upstream, chunk, delta, event, head, whole

SSE = head(content_type="text/event-stream")
OPTIONS = pathlib.Path(__file__).resolve().parents[2] / "doc/reference/options.md"
POOL = "apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {{name: {name}}}\nspec:\n"


@pytest.mark.parametrize("path,body", [("/v1/messages", {"model": "m", "max_tokens": 4, "system": "shared " * 200, "messages": [{"role": "user", "content": "x"}]}),
                                       ("/tokenize", {"model": "m", "prompt": "shared " * 200})], ids=["messages", "tokenize"])
def test_case_router_179_what_is_only_proxied_is_counted_and_spread(start, path, body):
    """one shared prefix, all at once, by a path whose prompt nobody reads: max/mean load <= 1.5, all of it in the ledger"""
    go = threading.Event()

    def hold(c):
        go.wait(8)
        c.send(whole({"ok": 1}))
    with Upstream(hold) as a, Upstream(hold) as b, Upstream(hold) as c, Upstream(hold) as d:
        workers = (a, b, c, d)
        gw = Gateway(start, *workers)
        clients = [gw.client().request("POST", path, body) for _ in range(48)]
        assert eventually(lambda: sum(len(w.calls) for w in workers) == 48, 5)
        counted = [w["in_flight_requests"] for w in gw.workers()]
        assert sum(counted) == 48 and max(counted) <= 1.5 * 12, counted
        go.set()
        assert all(x.response().status == 200 for x in clients) and gw.settled()


def test_case_router_299_a_worker_has_the_same_state_however_it_joined(start, tmp_path):
    """by flag, by file, by discovery: events followed, index fed, load counted"""
    fleet = Fleet(start, 3)
    (tmp_path / "found.txt").write_text(fleet.url(2) + "\n")
    (tmp_path / "p.yaml").write_text(POOL.format(name="p") + f"  workers: [{fleet.url(1)}]\n")
    (tmp_path / "q.yaml").write_text(POOL.format(name="q") + "  discovery: {file: found.txt}\n")
    gw = Gateway(start, fleet.url(0), args=["-c", tmp_path / "p.yaml", "-c", tmp_path / "q.yaml", "--events", "true", "--routing", "round-robin"])
    assert eventually(lambda: [w["cache_view"] for w in gw.workers()] == ["events"] * 3, 5), gw.workers()
    time.sleep(0.2)
    for i in range(3):
        fleet.chat(words(100, i), i)
    assert eventually(lambda: all(w["index_blocks"] > 3 for w in gw.workers()), 5), gw.workers()
    assert len({tuple(sorted(w)) for w in gw.workers()}) == 1, "the same members"
    for i in range(12):
        assert gw.chat({**CHAT, "messages": [{"role": "user", "content": f"{i}"}], "max_tokens": 2}).status == 200
    assert all(w["requests"] > 0 for w in gw.workers()) and gw.settled()


def test_case_smg_26263_the_token_ids_are_of_the_whole_chat(start):
    """the same system prompt, other histories: other ids are asked for, each with every message"""
    with Upstream() as up:
        gw = Gateway(start, up)
        for who in ("ada", "bob"):
            chat = [{"role": "system", "content": "s" * 500}, {"role": "user", "content": who}, {"role": "assistant", "content": "yes " + who}, {"role": "user", "content": "go on"}]
            assert gw.chat({**CHAT, "messages": chat}).status == 200
            assert up.tokenize_calls[-1].json["messages"] == chat
        assert len([c for c in up.tokenize_calls if c.target == "/tokenize"]) == 2


def test_case_aibrix_2281_no_other_call_on_the_way_of_a_request(start):
    """nothing is asked of anybody for a request but its own answer (and its ids, where they come from workers and are new)"""
    with Upstream() as up:
        gw = Gateway(start, up, args=["--probe-interval", "5m", "--scrape-interval", "5m", "--models-interval", "5m"])
        gw.chat()
        time.sleep(0.3)
        own, asked, calls = len(up.own_headers), len(up.tokenize_calls), len(up.calls)
        for _ in range(40):
            assert gw.chat().status == 200
        assert (len(up.own_headers), len(up.tokenize_calls), len(up.calls)) == (own, asked, calls + 40)


def test_case_aibrix_2122_a_session_header_is_kept_both_ways(start):
    with Upstream(lambda c: c.send(whole(COMPLETION, extra=["x-session-id: from-worker", "x-other: 1"]))) as up:
        gw = Gateway(start, up)
        r = gw.chat(headers=["x-session-id: mine"])
        assert r.headers["x-session-id"] == "from-worker" and r.headers["x-other"] == "1"
        assert up.calls[0].headers["x-session-id"] == "mine"


def test_case_sglang_39461_the_worker_is_told_within_a_tenth_of_a_second(start):
    """and by its own id: two requests of one client id are two to the worker"""
    def endless(c):
        c.send(SSE)
        while True:
            c.send(chunk(event(delta("x"))))
            c.sleep(0.005)
    with Upstream(endless) as up:
        gw = Gateway(start, up)
        took = []
        for i in range(5):
            with gw.client() as c:
                c.request("POST", "/v1/chat/completions", {**STREAM, "max_tokens": 5000}, ["x-request-id: abort"])
                for _ in range(3):
                    c.until(b"\n\n")
                t = time.monotonic()
                c.sock.close()
                assert eventually(up.calls[i].gone.is_set, 3, 0.002)
                took.append(time.monotonic() - t)
        assert sorted(took)[2] < 0.1, took
        assert len({c.headers["x-request-id"] for c in up.calls}) == 5 and gw.settled()


BROKEN = ["{bad", "", "[]", "null", '{"model":5}', "\0", '{"model":"m","messages":[{"role":"user","content":"a\0b"}]}', '{"model":"m","messages":' + "[" * 200 + "]" * 200 + "}"]
TYPES = [("/v1/chat/completions", '{"model":"m","messages":7}'), ("/v1/chat/completions", '{"model":"m"}'), ("/v1/chat/completions", '{"model":"m","messages":[],"stream":"perhaps"}'),
         ("/v1/completions", '{"model":"m","prompt":7}'), ("/v1/completions", '{"model":"m"}'), ("/v1/completions", '{"model":"m","prompt":[]}')]


@pytest.mark.parametrize("path,body", [(p, b) for p in ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings") for b in BROKEN] + TYPES)
def test_case_production_stack_1017_malformed_bodies_of_every_api(shared, path, body):
    """never a 500, never sent: what is no JSON object on any path, what is no prompt where we read the prompt"""
    gw, up = shared
    r = gw.call("POST", path, body)
    error = r.json["error"]
    assert r.status == 400 and error["message"] and error["type"] == "invalid_request_error" and (path == "/v1/messages" or "param" in error), r.content
    assert not up.calls


@pytest.fixture(scope="module")
def shared(start_module):
    with Upstream() as up:
        gw = Gateway(start_module, up)
        yield gw, up
        assert gw.settled()


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
def test_case_semantic_router_3063_a_reset_after_chunk_ten(shared, name):
    """an error of that API's form, never an end that looks complete"""
    gw, up = shared
    path, body, one, done = {
        "chat": ("/v1/chat/completions", STREAM, event(delta("x")), b"[DONE]"),
        "messages": ("/v1/messages", {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]},
                     event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}, "content_block_delta"), b"message_stop"),
        "responses": ("/v1/responses", {"model": "m", "input": "x", "stream": True}, event({"type": "response.output_text.delta", "sequence_number": 9, "delta": "x"}, "response.output_text.delta"),
                      b"response.completed")}[name]

    def script(c):
        c.send(SSE)
        for _ in range(10):
            c.send(chunk(one))
        time.sleep(0.1)
        c.reset()
    up.script = script
    r = gw.call("POST", path, body)
    up.calls.clear()                          # of the tests that share it, none is to reach the worker
    last = r.content.decode().rstrip("\n").split("\n\n")[-1]
    data = json.loads(re.search(r"^data: (.*)$", last, re.M)[1])
    assert r.status == 200 and not r.whole and done not in r.content and r.content.count(one.encode()) == 10
    assert last.startswith("data: " if name == "chat" else "event: error\n")
    assert {"chat": "error" in data, "messages": data.get("type") == "error" and "error" in data, "responses": data.get("type") == "error" and data.get("sequence_number") == 10}[name], data


def test_case_r6_the_effective_values_are_those_that_are_documented(tmp_path):
    """every option of the reference page stands in --print-config with its default, and a changed one with its change"""
    def print_config(*args):
        return subprocess.run([BIN_DIR / "kvasir", "serve", "--worker", "http://a:1", *args, "--print-config"], capture_output=True, text=True, timeout=10, check=True).stdout
    rows = [line.split(" | ") for line in OPTIONS.read_text().splitlines() if line.startswith("| `")]
    options = {r[0].strip("| `"): (r[1].strip("` "), r[2].strip("` ")) for r in rows}
    assert len(options) > 35
    shown = flat(print_config())
    for key, (_, default) in options.items():
        if default != "–":
            assert shown.get(key) == default, (key, default, shown.get(key))
    changed = flat(print_config("--stall-timeout", "7s", "--routing", "random", "--tokens-budget", "120ms"))
    assert {k: v for k, v in changed.items() if shown.get(k) != v} == {"timeouts.stall": "7s", "routing": "random", "tokens.budget": "120ms"}


def flat(text):
    """key -> value of the Gateway object, members joined by dots"""
    found, path, inside = {}, [], False
    for line in text.splitlines():
        inside = (inside or line.startswith("kind: Gateway")) and not line.startswith("---")
        m = re.match(r"^( +)([A-Za-z]+): *([^#]*)", line)
        if not inside or not m:
            continue
        path = [*path[:len(m[1]) // 2 - 1], m[2]]
        if m[3].strip():
            found[".".join(path)] = m[3].strip().strip('"')
    return found


def test_case_smg_r1_orphans_of_a_killed_holder_spread(start):
    """real sockets: a worker dies with all its prefixes, they go to the others and stay there (how evenly: the play of this name, in virtual time)"""
    fleet = Fleet(start, 4)
    gw = Gateway(start, *[fleet.url(i) for i in range(4)], args=["--events", "true"])
    time.sleep(0.2)

    def ask(i):
        r = gw.chat({**CHAT, "messages": [{"role": "user", "content": words(80, i)}], "max_tokens": 1})
        assert r.status == 200 and r.whole
        return r.headers["x-kvasir-worker"]
    homes = {i: ask(i) for i in range(40)}
    victim = collections.Counter(homes.values()).most_common(1)[0][0]
    orphans = [i for i, w in homes.items() if w == victim]
    fleet.fault("die", [fleet.url(i) for i in range(4)].index(victim))
    assert eventually(lambda: any(w["state"] == "down" for w in gw.workers()), 5)
    new = {i: ask(i) for i in orphans}
    shares = collections.Counter(new.values())
    assert victim not in shares and len(shares) >= 2, shares
    time.sleep(0.2)
    assert sum(ask(i) == new[i] for i in orphans) >= 0.9 * len(orphans)
    assert gw.settled()
