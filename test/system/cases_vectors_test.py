"""The test vectors of the shared cases (gateways.md, section J): what a worker or a client may send, in every shape of it."""
import gzip
import json
import random

import client
import pytest
from client import CHAT, STREAM
from conftest import eventually
from gateway import Gateway
from upstream import COMPLETION, DONE, USAGE, USAGE_CHUNK, Upstream, chunk, delta, event, head, whole

SSE = head(content_type="text/event-stream; charset=utf-8")
ASKED = {**STREAM, "stream_options": {"include_usage": True}}
END = b"0\r\n\r\n"


@pytest.fixture(scope="module")
def up():
    with Upstream() as u:
        yield u


@pytest.fixture(scope="module")
def gw(start_module, up):
    return Gateway(start_module, up)


@pytest.fixture(autouse=True)
def nothing_is_left(gw, up):
    up.calls.clear()
    yield
    assert gw.settled() and gw.process.running()
    assert eventually(lambda: gw.metric("kvasir_requests_open") == 0, 5)


def pieces(raw, cuts):
    edges = [0, *sorted(set(cuts)), len(raw)]
    return [raw[a:b] for a, b in zip(edges, edges[1:]) if a < b]


def deliver(up, raw, cuts=()):
    def script(c):
        c.send(SSE)
        for piece in pieces(raw, cuts):
            c.send(chunk(piece))
        c.send(END)
    up.script = script


def ways(raw, some=12):
    """whole, byte by byte, in two at some places, in three at some"""
    rng = random.Random(len(raw))
    yield ()
    yield range(len(raw))
    for _ in range(some):
        yield (rng.randrange(len(raw)),)
        yield (rng.randrange(len(raw)), rng.randrange(len(raw)))


def choice(delta_, finish=None, **more):
    return {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta_, "finish_reason": finish}], **more}


def tool(index=0, **function):
    more = {"id": function.pop("id"), "type": "function"} if "id" in function else {}
    return event(choice({"tool_calls": [{"index": index, **more, "function": function}]}))


def stop(reason="stop"):
    return event(choice({"content": ""}, reason))


TEXT = event(delta("a"))
STREAMS = {
    "line_feed": TEXT + stop() + DONE,
    "crlf": (TEXT + stop() + DONE).replace("\n", "\r\n"),
    "carriage_return": (TEXT + stop() + DONE).replace("\n", "\r"),
    "no_space": (TEXT + stop() + DONE).replace("data: ", "data:"),
    "comments": ": hello\n\n" + TEXT + ": keepalive\n\n:\n\n" + stop() + DONE,
    "blank_keepalives": "\n\n\n" + TEXT + "\n\n" + stop() + "\n" + DONE,
    "byte_order_mark": "\ufeff" + TEXT + stop() + DONE,
    "two_data_lines": TEXT.replace(', "choices"', '\ndata: , "choices"') + stop() + DONE,
    "names_ids_and_retries": "retry: 10\nid: 7\nevent: x\n" + TEXT + stop() + DONE,
    "characters": "".join(event(json.dumps(delta(t), ensure_ascii=False)) for t in ("é", "日本", "\U0001f363", "a\u0301")) + stop() + DONE,
    "split_surrogates": event(json.dumps(delta("@")).replace("@", "\\ud83d")) + event(json.dumps(delta("@")).replace("@", "\\ude00")) + stop() + DONE,
    "split_surrogates_in_arguments": tool(id="c", name="f", arguments='{"a":"').replace("\u0000", "") + tool(arguments="@").replace("@", "\\ud83d") + tool(arguments="@").replace("@", "\\ude00")
                                     + tool(arguments='"}') + stop("tool_calls") + DONE,
    "tool_name_first": tool(id="c", name="f", arguments="") + tool(arguments='{"a":') + tool(arguments="1}") + stop("tool_calls") + DONE,
    "tool_in_one_chunk": event(choice({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}, "tool_calls")) + DONE,
    "tool_without_arguments": tool(id="c", name="f", arguments="") + stop("tool_calls") + DONE,
    "tools_interleaved": "".join(tool(i, id=f"c{i}", name="f", arguments="") for i in (0, 1)) + "".join(tool(i, arguments=t) for i, t in ((0, "{"), (1, "{"), (0, "}"), (1, "}")))
                         + stop("tool_calls") + DONE,
    "tool_without_id": tool(name="f", arguments="{}") + stop("tool_calls") + DONE,
    "integers_of_64_bits": tool(id="c", name="f", arguments='{"id":9007199254740993}') + event('{"choices":[{"index":0,"delta":{"content":"x"}}],"seed":9007199254740993,"y":1e400}') + stop() + DONE,
    "deep_nesting": tool(id="c", name="f", arguments="[" * 90 + "]" * 90) + event('{"choices":[{"index":0,"delta":{"content":"x","d":' + "[" * 60 + "]" * 60 + "}}]}") + stop() + DONE,
    "finish_length": TEXT + stop("length") + DONE,
    "finish_content_filter": TEXT + stop("content_filter") + DONE,
    "finish_abort": TEXT + stop("abort") + DONE,
    "error_after_done": TEXT + stop() + DONE + event({"error": {"message": "late", "code": 500}}),
    "empty_choices_anywhere": event({"choices": [], "prompt_filter_results": []}) + TEXT + event({"choices": []}) + stop() + DONE,
    "not_json": "data: not json at all\n\ndata:\n\n" + TEXT + stop() + DONE,
}


@pytest.mark.parametrize("name", STREAMS)
def test_vector_1_to_4_every_delivery_of_every_stream_is_the_same(gw, up, name):
    """cut anywhere, the client has the worker's bytes; with usage asked for by us, all of them but the usage event"""
    raw = STREAMS[name].encode()
    mark = b"data: [DONE]\n\n"
    extra = event(USAGE_CHUNK).encode()
    with_usage = raw.replace(mark, extra + mark) if mark in raw else None
    with gw.client() as c:
        for cuts in ways(raw):
            deliver(up, raw, cuts)
            r = c.request("POST", "/v1/chat/completions", ASKED).response()
            assert r.whole and r.content == raw, f"cut at {list(cuts)[:3]}"
        for cuts in ways(with_usage, 5) if with_usage else ():
            deliver(up, with_usage, cuts)
            r = c.request("POST", "/v1/chat/completions", STREAM).response()
            assert r.whole and r.content == raw, f"with usage, cut at {list(cuts)[:3]}"
        if with_usage:
            assert gw.log(r.headers["x-request-id"])["prompt_tok"] == "10"


def test_vector_2_an_event_of_a_megabyte(gw, up):
    big = event(delta("é" * (1 << 19)))
    raw = (TEXT + big + stop() + event(USAGE_CHUNK) + DONE).encode()
    deliver(up, raw, range(0, len(raw), 16001))
    r = gw.chat(STREAM, seconds=20)
    assert r.whole and r.content == (TEXT + big + stop() + DONE).encode()


def usage(**members):
    return {k: v for k, v in {**USAGE, **members}.items() if v != "absent"}


USAGES = {        # events, what the log then says of prompt, cached and output
    "absent": ([TEXT, stop()], None),
    "in_the_finishing_chunk": ([TEXT, event(choice({"content": ""}, "stop", usage=USAGE))], ("10", "4", "3")),
    "in_its_own_chunk": ([TEXT, stop(), event(USAGE_CHUNK)], ("10", "4", "3")),
    "on_every_chunk": ([event(delta("a", usage=usage(completion_tokens=n))) for n in (1, 2)] + [event(choice({}, "stop", usage=USAGE))], ("10", "4", "3")),
    "null": ([event(delta("a", usage=None)), event(choice({"content": ""}, "stop", usage=None)), event(USAGE_CHUNK)], ("10", "4", "3")),
    "details_null": ([TEXT, stop(), event({**USAGE_CHUNK, "usage": usage(prompt_tokens_details=None)})], ("10", "0", "3")),
    "negative": ([TEXT, stop(), event({**USAGE_CHUNK, "usage": usage(prompt_tokens=-10, prompt_tokens_details={"cached_tokens": -4})})], None),
    "text_for_a_number": ([TEXT, stop(), event({**USAGE_CHUNK, "usage": usage(completion_tokens="3")})], None),
    "more_cached_than_prompt": ([TEXT, stop(), event({**USAGE_CHUNK, "usage": usage(prompt_tokens_details={"cached_tokens": 99})})], ("10", None, "3")),
    "twice": ([TEXT, stop(), event(USAGE_CHUNK), event(USAGE_CHUNK)], ("10", "4", "3")),
}


@pytest.mark.parametrize("name", USAGES)
def test_vector_5_usage_in_every_form(gw, up, name):
    """it never breaks the stream, a wrong number never enters our sums, and a client that asked sees it as it came"""
    events, said = USAGES[name]
    raw = ("".join(events) + DONE).encode()
    before = [gw.metric(f"kvasir_{what}_tokens_total") for what in ("prompt", "cached", "output")]
    deliver(up, raw, (len(raw) // 2,))
    r = gw.chat(ASKED)
    assert r.whole and r.content == raw
    line = gw.log(r.headers["x-request-id"])
    assert line["outcome"] == "done"
    after = [gw.metric(f"kvasir_{what}_tokens_total") for what in ("prompt", "cached", "output")]
    grown = [a - b for a, b in zip(after, before)]
    assert 0 <= grown[0] <= 10 and 0 <= grown[1] <= 4 and 0 <= grown[2] <= 3, grown
    assert all(len(line[f"{what}_tok"]) < 4 for what in ("prompt", "cached", "output")), line
    if said:
        assert line["prompt_tok"] == said[0] and line["output_tok"] == said[2]
        assert said[1] is None or line["cached_tok"] in (said[1], "-")


def test_vector_6_endings(gw, up):
    """an error first, an error in the middle, no end at all"""
    error = event({"error": {"message": "no", "type": "InternalServerError", "param": None, "code": 500}})
    for raw, outcome in ((error + DONE, "worker_error"), (error, "worker_error"), (TEXT + error + DONE, "worker_error"), (TEXT + error, "worker_error")):
        deliver(up, raw.encode())
        r = gw.chat(STREAM)
        assert r.whole and r.content == raw.encode() and gw.log(r.headers["x-request-id"])["outcome"] == outcome
    for raw in (TEXT, TEXT + stop(), ""):
        deliver(up, raw.encode())
        r = gw.chat(STREAM)
        assert not r.whole and b"[DONE]" not in r.content and b"upstream_midstream" in r.content, raw


def test_vector_8_a_worker_that_packs_although_asked_not_to(gw, up):
    """its bytes and their label pass; nothing is read out of them"""
    packed = gzip.compress(json.dumps(COMPLETION).encode())
    up.script = lambda c: c.send(whole(packed, extra=["content-encoding: gzip"]))
    r = gw.chat()
    assert r.content == packed and r.headers["content-encoding"] == "gzip" and up.calls[0].headers["accept-encoding"] == "identity"
    stream = gzip.compress((TEXT + DONE).encode())
    up.script = lambda c: c.send(head(content_type="text/event-stream", extra=["content-encoding: gzip"]) + chunk(stream) + END)
    r = gw.chat(STREAM)
    assert r.content.startswith(stream) and r.headers["content-encoding"] == "gzip"


@pytest.mark.parametrize("hint", ["Retry-After: 3", "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT", "retry-after-ms: 250", "x-ratelimit-reset-requests: 1s"])
def test_vector_8_429_with_each_form_of_hint(gw, up, hint):
    assert eventually(lambda: all(w["state"] in ("healthy", "degraded") for w in gw.workers()), 20), "errors of the vectors before may have taken it out"
    body = {"error": {"message": "busy", "type": "rate_limit", "param": None, "code": 429}}
    up.script = lambda c: c.send(whole(body, 429, extra=[hint]))
    name, value = hint.split(": ", 1)
    r = gw.chat(STREAM)
    assert r.status == 429 and r.json == body and r.headers[name.lower()] == value and len(up.calls) == 1
    assert all(w["state"] in ("healthy", "degraded") for w in gw.workers())


def sized(n):
    """a chat body of exactly n bytes, its model last"""
    empty = '{"messages":[{"role":"user","content":""}],"model":"m"}'
    return empty.replace('""', '"' + "x" * (n - len(empty)) + '"').encode()


@pytest.mark.parametrize("size", [32767, 32768, 32769, 1 << 20, 4 << 20, 32 << 20])
def test_vector_11_bodies_up_to_the_limit(gw, up, size):
    up.script = lambda c: c.send(whole({"n": len(c.body)}))
    assert len(sized(size)) == size
    assert gw.chat(sized(size), seconds=30).json == {"n": size}


def test_vector_11_one_byte_more(gw, up):
    body = sized((32 << 20) + 1)
    with gw.client(seconds=20) as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        r = c.response()
        assert r.status == 413 and r.json["error"]["code"] == "body_too_large" and not up.calls


@pytest.mark.parametrize("body,status", [
    ('{"stream":false,"seed":1,"messages":[{"content":"x","role":"user"}],"model":"m"}', 200),
    ('{"model":"m","messages":[{"role":"user","content":"x"}],"metadata":' + "[" * 50 + "]" * 50 + "}", 200),
    ('{"model":"m","messages":[{"role":"user","content":"x"}],"metadata":' + "[" * 5000 + "]" * 5000 + "}", 400),
    ('{"model":"m","messages":[{"role":"user","content":"x"}],"messages":[]}', 400),
    ('{"model":"m","mod\\u0065l":"n","messages":[{"role":"user","content":"x"}]}', 400),
    (b'{"model":"m","messages":[{"role":"user","content":"\xc3"}]}', 400),
    (b'{"model":"m","messages":[{"role":"user","content":"\xed\xa0\x80"}]}', 400),
    (b'\xef\xbb\xbf{"model":"m","messages":[{"role":"user","content":"x"}]}', 400),
    (b'{"model":"m","messages":[{"role":"user","content":"x"}]}\0', 400)])
def test_vector_11_shapes_of_bodies(gw, up, body, status):
    """keys in unusual order, deep arrays, members twice, invalid UTF-8: passed as they are, or refused and nothing sent"""
    up.script = lambda c: c.send(whole({"n": len(c.body)}))
    r = gw.chat(body)
    assert r.status == status, r.content
    sent = body if isinstance(body, bytes) else body.encode()
    assert [c.body for c in up.calls] == ([sent] if status == 200 else [])


def test_vector_12_many_names_make_no_series_and_no_memory(gw, up):
    """distinct models, tenants, sessions and request ids: /metrics and memory stay as they are"""
    def ask(c, i):
        c.request("POST", "/v1/chat/completions", {**CHAT, "model": f"model-{i}" if i % 4 else "m", "user": f"user-{i}"},
                  [f"x-tenant: tenant-{i}", f"x-session-id: s{i}", f"x-request-id: r{i}", f"User-Agent: agent-{i}"])
        assert c.response().status == (404 if i % 4 else 200)

    def lines():
        return client.call(gw.admin, "GET", "/metrics").content
    up.script = lambda c: c.send(whole(COMPLETION))
    with gw.client() as c:
        for i in range(1200):
            ask(c, i)
        at, series = gw.rss(), lines().count(b"\n")
        for i in range(1200, 3600):
            ask(c, i)
        text, grown = lines(), gw.rss() - at
    assert text.count(b"\n") == series and b"tenant-" not in text and b"model-" not in text and b"user-" not in text
    assert grown < 2 << 20, f"{grown >> 10} KiB for 2400 names"
