"""Rows of the shared cases (llm-d.md) that had no test of their own name."""
import json
import os
import signal
import threading
import time

import client
import pytest
import upstream
from client import CHAT, STREAM
from conftest import eventually
from gateway import Gateway
from sim import Fleet, words
from upstream import COMPLETION, DONE, Upstream, chunk, delta, event, head, whole

SSE = head(content_type="text/event-stream; charset=utf-8")
END = b"0\r\n\r\n"
POOL = "apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {{name: {name}}}\nspec:\n"


@pytest.fixture(scope="module")
def up():
    with Upstream() as u:
        yield u


@pytest.fixture(scope="module")
def shared(start_module, up):
    return Gateway(start_module, up)


@pytest.fixture
def gw(shared, up):
    up.calls.clear()
    up.script, up.tokenize = upstream.answer, None
    yield shared
    assert shared.settled() and shared.process.running()


def admin(gw, path):
    return client.call(gw.admin, "GET", path)


# ---- A. load


@pytest.mark.parametrize("lora", ["", '# TYPE vllm:lora_requests_info gauge\nvllm:lora_requests_info{max_lora="4",running_lora_adapters="a,b",waiting_lora_adapters=""} 1.7e9\n'],
                         ids=["absent", "there"])
def test_case_llmd_926_an_absent_metric_family_is_no_error(start, monkeypatch, lora):
    monkeypatch.setattr(upstream, "METRICS", upstream.METRICS + lora)
    with Upstream() as u:
        gw = Gateway(start, u)
        time.sleep(0.5)                                     # two scrapes
        w = gw.workers()[0]
        assert w["state"] == "healthy" and w["block_size"] == 16
        said = [line for line in gw.process.text.splitlines() if "level=error" in line or ("level=warn" in line and "worker_without_events" not in line)]
        assert gw.metric("kvasir_worker_scrape_failures_total") == 0 and not said


# ---- B. refusals, shutdown


def test_case_llmd_1751_an_empty_pool_is_503_not_429(start, tmp_path):
    (tmp_path / "p.yaml").write_text(POOL.format(name="p") + "  discovery: {file: none.txt}\n")
    gw = Gateway(start, args=["-c", tmp_path / "p.yaml"], ready=False)
    assert eventually(lambda: "event=admin" in gw.process.text, 5)
    for body in (CHAT, STREAM):
        r = gw.chat(body)
        assert r.status == 503 and r.json["error"]["code"] == "no_worker" and r.headers["x-kvasir-reason"] == "no_worker" and "retry-after" in r.headers


def refusals(gw, up):
    """an answer of every kind that the gateway gives by itself"""
    yield gw.call("GET", "/nothing")
    yield gw.call("GET", "/v1/chat/completions")
    yield gw.chat("{bad")
    yield gw.chat({**CHAT, "model": "nobody"})
    yield gw.call("GET", "/v1/responses/resp_unknown")
    with gw.client() as c:
        yield c.request("POST", "/v1/chat/completions", b"", ["Transfer-Encoding: x"]).response()
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40000)
        yield c.response()
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n")
        yield c.response()
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n{")
        yield c.response()
    yield gw.chat(json.dumps({**CHAT, "pad": "x" * (2 << 20)}))
    up.script = lambda c: c.close()
    time.sleep(0.06)
    yield gw.chat()
    up.script = lambda c: c.send(b"HELLO\r\n\r\n")
    yield gw.chat()
    up.script = lambda c: c.sleep(5)
    yield gw.chat()


def no_memory_left(start, up):
    """the answer while somebody else's body takes up the memory for all"""
    gw = Gateway(start, up, args=["--body-memory", "1MiB"])
    with gw.client() as holds:
        holds.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n" + b" " * 800000)
        assert eventually(lambda: gw.metric("kvasir_body_memory_bytes") >= 800000, 10)
        return gw.chat(json.dumps({**CHAT, "pad": "x" * 800000}))


def test_case_llmd_2462_every_refusal_has_a_reason_a_program_can_read(start):
    """in the body and in the header, whatever was understood of the request; 429 and 503 say when to come back"""
    with Upstream() as u:
        gw = Gateway(start, u, args=["--body-memory", "1MiB", "--first-byte-timeout", "300ms", "--client-body-timeout", "300ms", "--probe-interval", "10s"])
        seen = []
        for r in (no_memory_left(start, u), *refusals(gw, u)):
            seen.append((r.status, r.headers.get("x-kvasir-reason")))
            error = r.json["error"]
            assert error["reason"] and error["code"] and error["message"] and error["type"] and "param" in error, seen[-1]
            assert ("retry-after" in r.headers) == (r.status in (429, 503)), seen[-1]
            assert r.headers["content-type"] == "application/json"
            assert r.headers["x-kvasir-reason"] == error["reason"] and r.headers["x-request-id"] == error["request_id"], seen[-1]
        u.stop()
        gw.chat()                                               # it is found out by a request
        assert eventually(lambda: gw.chat() and gw.call("GET", "/health").status == 503, 5)
        r = gw.call("GET", "/health")
        seen.append((r.status, r.headers.get("x-kvasir-reason")))
        assert r.status == 503 and "retry-after" in r.headers
        assert {s for s, _ in seen} >= {400, 404, 405, 408, 413, 429, 431, 502, 503, 504}, seen
        assert gw.settled()


@pytest.mark.parametrize("threads", [1, 2])
def test_case_llmd_1612_shutdown_says_503_at_once_and_lets_streams_finish(start, threads):
    go = threading.Event()

    def script(c):
        c.send(SSE + chunk(event(delta("a"))))
        go.wait(8)
        c.send(chunk(event(delta("b"))) + chunk(DONE) + END)
    with Upstream(script) as u:
        gw = Gateway(start, u, args=["--threads", threads, "--shutdown-timeout", "20s"])
        with gw.client() as running:
            running.request("POST", "/v1/chat/completions", STREAM).until(b"\n\n")
            gw.process.signal(signal.SIGTERM)
            assert eventually(lambda: gw.call("GET", "/health").status == 503, 3)
            t = time.monotonic()
            r = gw.chat()
            assert time.monotonic() - t < 1 and r.status == 503
            assert r.headers["x-kvasir-reason"] == "draining" and "retry-after" in r.headers
            go.set()
            assert b'"b"' in running.until(b"[DONE]")
        assert gw.process.wait(5) == 0 and len(u.calls) == 1


def test_case_gie_1847_waiting_costs_no_cpu(gw, up):
    """many requests that wait: for a worker, for a client that does not read, for the rest of a body"""
    def script(c):
        if c.json.get("stream"):
            c.send(SSE)
            for _ in range(3000):
                c.send(chunk(event(delta("x" * 4000))))
        c.sleep(5)
    up.script = script
    held = [gw.client().request("POST", "/v1/chat/completions", CHAT) for _ in range(15)]
    held += [gw.client(rcvbuf=4096).request("POST", "/v1/chat/completions", STREAM) for _ in range(5)]
    for _ in range(5):
        held.append(gw.client())
        held[-1].send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{")
    up.wait_calls(20)
    time.sleep(0.6)
    before = cpu_seconds(gw)
    time.sleep(1)
    used = cpu_seconds(gw) - before
    for c in held:
        c.sock.close()
    assert used < 0.3, f"{used} s of CPU in a second of waiting"


def cpu_seconds(gw):
    fields = open(f"/proc/{gw.process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- C. index


def test_case_llmd_1501_there_is_match_information_for_every_request(start):
    """text, image, ids, no ids at all: each receipt names a hit for each candidate and says where its ids came from"""
    picture = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]

    def fail(c):
        c.send(whole({"error": "x"}, 500))
    with Upstream() as good, Upstream() as other:
        gw = Gateway(start, good, other)
        bodies = [("keys", CHAT), ("not_expressible", {**CHAT, "messages": [{"role": "user", "content": picture}]})]
        for ids, body in bodies:
            expect_match(gw, gw.chat(body), ids)
        r = gw.chat({"model": "m", "prompt": list(range(64)), "max_tokens": 1}, path="/v1/completions")
        expect_match(gw, r, "keys")
        expect_match(gw, gw.call("POST", "/v1/embeddings", {"model": "m", "input": "x"}), None)
        good.tokenize = other.tokenize = fail
        before = gw.metric("kvasir_token_ids_total")
        r = gw.chat({**CHAT, "messages": [{"role": "user", "content": "new"}]})
        assert expect_match(gw, r, None)["ids"] not in ("keys", "") and gw.metric("kvasir_token_ids_total") == before + 1
        assert gw.settled()


def expect_match(gw, r, ids):
    assert r.status == 200
    d = admin(gw, f"/api/v1/decisions/{r.headers['x-request-id']}").json
    assert ids is None or d["ids"] == ids
    assert d["ids"] and len(d["candidates"]) == 2 and all(isinstance(c["hit_tokens"], int) for c in d["candidates"])
    return d


def test_case_llmd_2404_failing_token_ids_do_not_flood_the_log(start):
    """one line a request is the access line; what fails each time is not said each time"""
    def fail(c):
        c.send(whole({"error": "x"}, 500))
    with Upstream(tokenize=fail) as a, Upstream(tokenize=fail) as b:
        gw = Gateway(start, a, b)
        for i in range(150):
            assert gw.chat({**CHAT, "messages": [{"role": "user", "content": f"q{i}"}]}).status == 200
        time.sleep(0.3)
        other = [line for line in gw.process.text.splitlines() if "event=access" not in line]
        assert len(other) < 40, "\n".join(other[-20:])
        assert gw.metric("kvasir_token_ids_total") >= 150


# ---- E. protocol


USAGE = {"input_tokens": 21, "output_tokens": 5, "total_tokens": 26, "input_tokens_details": {"cached_tokens": 16}}


def test_case_gie_2482_usage_inside_response_completed_cut_anywhere(gw, up):
    events = [event({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_9", "usage": None}}, "response.created"),
              event({"type": "response.completed", "sequence_number": 1, "response": {"id": "resp_9", "status": "completed", "usage": USAGE}}, "response.completed")]
    raw = "".join(events).encode()
    cuts = (*range(1, len(raw) - 1, 23), len(raw) - 3)
    before = gw.metric("kvasir_cached_tokens_total")
    for at in cuts:
        up.script = lambda c, at=at: c.send(SSE + chunk(raw[:at]) + chunk(raw[at:]) + END)
        r = gw.call("POST", "/v1/responses", {"model": "m", "input": "x", "stream": True})
        assert r.whole and r.content == raw
        last = r.headers["x-request-id"]
    assert gw.metric("kvasir_cached_tokens_total") == before + 16 * len(cuts)
    line = gw.log(last)
    assert (line["prompt_tok"], line["cached_tok"], line["output_tok"]) == ("21", "16", "5")


@pytest.mark.parametrize("path,body,answer", [
    ("/v1/chat/completions", CHAT, {**COMPLETION, "usage": {"prompt_tokens": 21, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16}}}),
    ("/v1/completions", {"model": "m", "prompt": "x"}, {"id": "c", "choices": [], "usage": {"prompt_tokens": 21, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 16}}}),
    ("/v1/responses", {"model": "m", "input": "x"}, {"id": "resp_8", "usage": USAGE}),
    ("/v1/messages", {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "x"}]},
     {"id": "msg", "type": "message", "usage": {"input_tokens": 5, "cache_read_input_tokens": 16, "cache_creation_input_tokens": 0, "output_tokens": 5}})])
def test_case_llmd_1276_cached_tokens_are_found_where_each_api_puts_them(gw, up, path, body, answer):
    up.script = lambda c: c.send(whole(answer))
    line = gw.log(gw.call("POST", path, body).headers["x-request-id"])
    assert (line["prompt_tok"], line["cached_tok"], line["output_tok"]) == ("21", "16", "5")


def test_case_gie_2996_a_stream_has_no_length_and_one_framing(gw, up):
    """chunked in, chunked out once; a length that a worker puts on an event stream is not repeated, its bytes all come"""
    raw = event(delta("hello")).encode() * 20 + DONE.encode()
    for send in (lambda c: c.send(SSE + b"".join(chunk(raw[i:i + 50]) for i in range(0, len(raw), 50)) + END),
                 lambda c: c.send(head(content_type="text/event-stream", length=len(raw)) + raw)):
        up.script = send
        r = gw.chat(STREAM)
        names = [k.lower() for k, _ in r.fields]
        assert r.whole and r.content == raw
        assert "content-length" not in names and names.count("transfer-encoding") == 1
        assert names.count("content-type") == names.count("date") == 1


def test_case_llmd_1426_a_request_without_a_model(start):
    body = {k: v for k, v in CHAT.items() if k != "model"}
    with Upstream(models=("m",)) as a, Upstream(models=("m", "alias")) as b:
        gw = Gateway(start, a, b)
        assert gw.chat(body).status == 200                    # one base model under two names
        assert gw.chat({**body, "stream": True}).content.endswith(DONE.encode())
    first, second = Fleet(start, 1, model="m"), Fleet(start, 1, model="n")
    gw = Gateway(start, first.url(), second.url())
    r = gw.chat(body)
    assert r.status == 400 and r.json["error"]["param"] == "model" and r.json["error"]["type"] == "invalid_request_error"
    assert gw.settled()


# ---- F. membership


def discovery(tmp_path, urls):
    (tmp_path / "workers.txt").write_text("".join(u + "\n" for u in urls))
    (tmp_path / "p.yaml").write_text(POOL.format(name="p") + "  discovery: {file: workers.txt}\n")
    return ["-c", tmp_path / "p.yaml"]


def test_case_llmd_911_a_dead_worker_that_stays_in_the_file_gets_nothing(start, tmp_path):
    """passive at once, active until it is back; no client notices, neither the death nor the return"""
    fleet = Fleet(start, 2)
    gw = Gateway(start, args=[*discovery(tmp_path, [fleet.url(0), fleet.url(1)]), "--routing", "round-robin"])
    assert eventually(lambda: sum(w["state"] == "healthy" for w in gw.workers()) == 2, 5)
    assert {gw.chat({**CHAT, "max_tokens": 2, "messages": [{"role": "user", "content": words(20, i)}]}).headers["x-kvasir-worker"] for i in range(12)} == {fleet.url(0), fleet.url(1)}
    fleet.fault("die=1.2", 1)
    seen, end = [], time.monotonic() + 0.8
    while time.monotonic() < end:
        r = gw.chat({**CHAT, "max_tokens": 2, "stream": len(seen) % 2 == 0})
        assert r.status == 200 and r.whole, r.content
        seen.append(r.headers["x-kvasir-worker"])
    assert set(seen) == {fleet.url(0)} and len(seen) > 5
    assert eventually(lambda: sum(w["state"] in ("healthy", "degraded") for w in gw.workers()) == 2, 8), (gw.workers(), fleet.process.text[-500:])
    assert eventually(lambda: gw.chat({**CHAT, "max_tokens": 2, "messages": [{"role": "user", "content": words(9, time.monotonic_ns())}]}).headers["x-kvasir-worker"] == fleet.url(1), 8)
    assert gw.settled()


def test_case_agentgateway_1719_an_incomplete_object_stops_nobody_else(start, tmp_path, up):
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "a.yaml").write_text(POOL.format(name="a") + f"  workers: [{up.url}]\n")
    gw = Gateway(start, args=["-c", folder], ready=False)
    assert eventually(lambda: ready(gw), 8)
    for n, text in enumerate(["kind: WorkerPool\n", POOL.format(name="b") + "  workers: [{}]\n", POOL.format(name="b") + "  workers: [http://127.0.0.1:0]\n", POOL.format(name="b"), "apiVersion: x\n"]):
        (folder / "b.yaml").write_text(text)
        assert eventually(lambda n=n: gw.metric("kvasir_config_refused_total") == n + 1, 5), text
        state = admin(gw, "/readyz")
        assert state.status == 200 and any("b.yaml:" in f for f in state.json["config"]["faults"]), state.content
        assert gw.chat().status == 200
    (folder / "b.yaml").unlink()
    assert eventually(lambda: admin(gw, "/readyz").json["config"]["ok"], 5)


def ready(gw):
    try:
        return gw.call("GET", "/health").status == 200
    except (OSError, AssertionError):
        return False


def test_case_gie_2901_what_is_inside_can_be_seen_bounded_and_without_prompts(start):
    with Upstream() as u:
        gw = Gateway(start, u, args=["--receipts", "20", "--worker-api-key", "wsecret"])
        for i in range(60):
            gw.chat({**CHAT, "messages": [{"role": "user", "content": f"my private words {i}"}]}, headers=["Authorization: Bearer hsecret"])
        got = admin(gw, "/api/v1/decisions?last=1000000")
        assert len(got.json["decisions"]) == 20
        for path in ("/api/v1/decisions?last=-1", "/api/v1/decisions?last=99999999999999999999", "/api/v1/decisions?last=x"):
            assert admin(gw, path).status in (200, 400)
        shown = b"".join(admin(gw, f"/api/v1/{p}").content for p in ("workers", "pools", "index", "decisions")) + admin(gw, "/readyz").content
        assert b"private words" not in shown and b"secret" not in shown and len(shown) < 200_000
        assert gw.call("GET", "/api/v1/workers").status == 404           # not on the data port
