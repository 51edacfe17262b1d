"""Streams: byte for byte, hidden usage, deaths, silence, back-pressure (issue 3, section 4; cases gateways C and D, routers E)."""
import gzip
import json
import os
import re
import socket
import threading
import time

import pytest

import client
from client import CHAT, STREAM
from conftest import eventually
from gateway import Gateway
from upstream import COMPLETION, DONE, USAGE, USAGE_CHUNK, Gone, Upstream, chunk, delta, event, head, whole
from upstream import STREAM as DELTAS

SSE = head(content_type="text/event-stream; charset=utf-8")
ASKED = {**STREAM, "stream_options": {"include_usage": True}}
END = b"0\r\n\r\n"


@pytest.fixture
def up():
    with Upstream() as u:
        yield u


@pytest.fixture
def gw(start, up):
    return Gateway(start, up)


def stream_of(*events, end=END):
    return lambda c: c.send(SSE + b"".join(map(chunk, events)) + end)


# ---- what passes


def test_stream_passes_and_the_usage_event_is_hidden(gw, up):
    r = gw.chat(STREAM)
    assert r.whole and r.content == ("".join(DELTAS) + DONE).encode()
    assert up.calls[0].json["stream_options"] == {"include_usage": True}
    line = gw.log(r.headers["x-request-id"])
    assert (line["prompt_tok"], line["cached_tok"], line["output_tok"], line["outcome"]) == ("10", "4", "3", "done")
    assert gw.metric("kvasir_usage_events_hidden_total") == 1


def test_a_client_that_asked_sees_the_usage(gw, up):
    r = gw.chat(ASKED)
    assert r.content == ("".join(DELTAS) + event(USAGE_CHUNK) + DONE).encode()
    assert up.calls[0].body == json.dumps(ASKED).encode()


def test_usage_that_the_worker_tells_everyone_is_the_clients(gw, up):
    """--enable-force-include-usage (vLLM 0.32): usage in every chunk and at the end, whoever asks for what"""
    def each(n, text="", finish=None):
        return event({**delta(text), "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}],
                      "usage": {"prompt_tokens": 10, "completion_tokens": n, "total_tokens": 10 + n}})
    whole_ = [each(0), each(1, "a"), each(2, "b"), each(3, "", "stop"), event(USAGE_CHUNK), DONE]
    up.script = stream_of(*whole_)
    r = gw.chat(STREAM)
    assert r.content == "".join(whole_).encode() and r.whole
    line = gw.log(r.headers["x-request-id"])
    assert (line["prompt_tok"], line["cached_tok"], line["output_tok"]) == ("10", "4", "3")
    assert gw.metric("kvasir_usage_events_hidden_total") == 0
    up.script = stream_of(*DELTAS, event(USAGE_CHUNK), DONE)
    assert gw.chat(STREAM).content == ("".join(DELTAS) + DONE).encode(), "another worker's is still hidden"


@pytest.mark.parametrize("start_, end_, want", [
    ({"input_tokens": 193, "output_tokens": 0}, {"output_tokens": 4}, ("193", "-", "4")),
    ({"input_tokens": 33, "cache_read_input_tokens": 160, "output_tokens": 0}, {"output_tokens": 4}, ("193", "160", "4")),
    ({"input_tokens": 193, "output_tokens": 0}, {"input_tokens": 1, "cache_creation_input_tokens": 32, "cache_read_input_tokens": 160, "output_tokens": 4},
     ("193", "160", "4")),
], ids=["no cache told", "cache at the start", "cache at the end"])
def test_usage_in_two_events_is_one(gw, up, start_, end_, want):
    """Anthropic: what the prompt was stands in message_start, what came out of it in message_delta"""
    events = [event({"type": "message_start", "message": {"id": "msg_1", "usage": start_}}, "message_start"),
              event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}, "content_block_delta"),
              event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end_}, "message_delta"),
              event({"type": "message_stop"}, "message_stop")]
    up.script = stream_of(*events)
    before = {k: gw.metric(f"kvasir_{k}_tokens_total") for k in ("prompt", "cached", "output")}
    r = gw.call("POST", "/v1/messages", {"model": "m", "max_tokens": 5, "stream": True, "messages": [{"role": "user", "content": "q"}]})
    assert r.content == "".join(events).encode() and r.whole
    line = gw.log(r.headers["x-request-id"])
    told = tuple(line[k] for k in ("prompt_tok", "cached_tok", "output_tok"))
    assert told == want, line
    for k, v in zip(("prompt", "cached", "output"), want):
        assert gw.metric(f"kvasir_{k}_tokens_total") - before[k] == (int(v) if v.isdigit() else 0)
    got = client.call(gw.admin, "GET", "/api/v1/decisions?last=1").json["decisions"][0]
    assert got["output_tokens"] == 4 and got["cached_tokens_reported"] == (int(want[1]) if want[1].isdigit() else None)


def test_usage_is_not_asked_when_switched_off(start, up):
    gw = Gateway(start, up, args=["--ask-usage", "false"])
    gw.chat(STREAM)
    assert up.calls[0].body == json.dumps(STREAM).encode()


def test_usage_each_stays_off(gw, up):
    """continuous_usage_stats without include_usage means nothing to the worker; asking for the latter must not switch it on"""
    body = {**STREAM, "stream_options": {"continuous_usage_stats": True}}
    r = gw.chat(body)
    assert up.calls[0].json["stream_options"] == {"include_usage": True, "continuous_usage_stats": False}
    assert r.content == ("".join(DELTAS) + DONE).encode()


def test_the_fingerprint_is_where_it_would_be_without_the_asking(gw, up):
    """vLLM 0.32: on the finishing chunk when nobody asked for usage, else on the usage chunk only"""
    finish = {"id": "x", "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]}

    def script(c):
        asked = (c.json.get("stream_options") or {}).get("include_usage")
        c.send(SSE + chunk(DELTAS[1]))
        if asked:
            c.send(chunk(event(finish)) + chunk(event({**USAGE_CHUNK, "system_fingerprint": "fp-1"})))
        else:
            c.send(chunk(event({**finish, "system_fingerprint": "fp-1"})))
        c.send(chunk(DONE) + END)
    up.script = script
    with client.Client(up.port) as direct:
        want = direct.request("POST", "/v1/chat/completions", STREAM).response().content.replace(b': "fp-1"', b':"fp-1"').replace(b', "system', b',"system')
    got = gw.chat(STREAM).content.replace(b': "fp-1"', b':"fp-1"')
    assert got == want and up.calls[-1].json["stream_options"]["include_usage"]
    assert gw.chat(ASKED).content.count(b"fp-1") == 1


def test_several_answers_are_not_asked_for_usage(gw, up):
    body = {**STREAM, "n": 2}
    gw.chat(body)
    assert up.calls[0].json == body


@pytest.mark.parametrize("options", ['"stream_options":{},', '"stream_options":null,', '"stream_options":{"include_usage":false},', ""])
def test_case_gpustack_6155_injection_leaves_other_bytes(gw, up, options):
    body = '{"model":"m", %s"messages":[{"role":"user","content":"q"}],"stream":true}' % options
    r = gw.chat(body)
    assert up.calls[0].json["stream_options"]["include_usage"] is True
    assert up.calls[0].body.count(b'"messages":[{"role":"user","content":"q"}],"stream":true') == 1
    assert r.content == ("".join(DELTAS) + DONE).encode()


@pytest.mark.parametrize("gap", [0, 0.002])
def test_case_gie_1626_cut_at_every_offset(start, up, gap):
    """the same stream, cut in two at each offset: the same output and the same usage every time"""
    gw = Gateway(start, up)
    emoji = event(delta("é\U0001f600"))
    raw = (": ping\n\n" + emoji + emoji.replace("\n\n", "\r\n\r\n") + event(delta("a")).replace("data: ", "data:") + event(USAGE_CHUNK) + DONE).encode()
    wanted = raw.replace(event(USAGE_CHUNK).encode(), b"")
    offsets = range(1, len(raw), 1 if gap == 0 else 37)
    for at in offsets:
        def script(c, at=at):
            c.send(SSE + chunk(raw[:at]))
            if gap:
                time.sleep(gap)
            c.send(chunk(raw[at:]) + END)
        up.script = script
        r = gw.chat(STREAM)
        assert r.content == wanted and r.whole, f"cut at {at}"
    assert gw.log(r.headers["x-request-id"])["cached_tok"] == "4"
    assert gw.settled()


def test_one_byte_at_a_time(gw, up):
    raw = (event(delta("é")) + event(USAGE_CHUNK) + DONE).encode()

    def script(c):
        c.send(SSE)
        for i in range(len(raw)):
            c.send(chunk(raw[i:i + 1]))
        c.send(END)
    up.script = script
    assert gw.chat(STREAM).content == (event(delta("é")) + DONE).encode()


def test_case_praxis_739_last_line_without_newline(gw, up):
    up.script = stream_of(event(delta("x")), "data: [DONE]")
    r = gw.chat(STREAM)
    assert r.whole and r.content.endswith(b"data: [DONE]")


def test_case_aigw_2470_data_without_a_space(gw, up):
    up.script = stream_of(event(delta("x")).replace("data: ", "data:"), event(USAGE_CHUNK).replace("data: ", "data:"), "data:[DONE]\n\n")
    r = gw.chat(STREAM)
    assert b"usage" not in r.content and r.whole
    assert gw.log(r.headers["x-request-id"])["prompt_tok"] == "10"


def test_case_higress_4146_usage_of_a_whole_answer_cut_anywhere(gw, up):
    body = json.dumps(COMPLETION).encode()
    at = body.index(b'"prompt_tokens": 10') + 18

    def script(c):
        c.send(head(length=len(body)) + body[:at])
        time.sleep(0.02)
        c.send(body[at:])
    up.script = script
    r = gw.chat()
    assert r.content == body and gw.log(r.headers["x-request-id"])["prompt_tok"] == "10"


def test_an_encoded_stream_passes_unread(gw, up):
    """a worker that compresses although it was asked not to: the bytes are the client's"""
    raw = gzip.compress("".join([*DELTAS, DONE]).encode())

    def script(c):
        c.send(head(content_type="text/event-stream", extra=["content-encoding: gzip"]) + chunk(raw[:20]))
        c.sleep(0.3)
        c.send(chunk(raw[20:]) + END)
    up.script = script
    with gw.client() as c:
        c.request("POST", "/v1/chat/completions", STREAM)
        r = c.head()
        t = time.monotonic()
        c.until(raw[:20])
        assert time.monotonic() - t < 0.2 and r.headers["content-encoding"] == "gzip"
        c.until(raw[20:])
        c.until(b"0\r\n\r\n")


@pytest.mark.parametrize("raw", [
    "\ufeff" + event(delta("a")) + DONE, event(delta("a")).replace("\n", "\r") + "data: [DONE]\r\r", (event(delta("a")) + DONE).replace("\n", "\r\n"),
    ": c\n\n\n\n" + event(delta("a")) + ": c\n" + DONE, "id: 1\nretry: 5\nevent: x\n" + event(delta("a")) + DONE,
    "data: {\"choices\":\ndata: []}\n\n" + DONE, event("") + DONE, event({"choices": []}) + DONE, event(delta("x" * (1 << 20))) + DONE])
def test_odd_framing_passes_as_it_came(gw, up, raw):
    """cases gateways J.2"""
    raw = raw.encode()
    for size in (len(raw), 1 + len(raw) // 50):
        def script(c, size=size):
            c.send(SSE)
            for i in range(0, len(raw), size):
                c.send(chunk(raw[i:i + size]))
            c.send(END)
        up.script = script
        r = gw.chat(STREAM)
        assert r.content == raw and r.whole


def test_case_omniroute_3424_empty_choices_are_not_invented_upon(gw, up):
    empty = {"id": "x", "object": "chat.completion", "choices": []}
    up.script = lambda c: c.send(whole(empty))
    assert gw.chat().json == empty


def test_a_huge_event_passes(gw, up):
    big = event(delta("x" * (6 << 20)))
    up.script = stream_of(event(delta("a")), big, DONE)
    r = gw.chat(STREAM, seconds=20)
    assert r.whole and r.content == (event(delta("a")) + big + DONE).encode()


def test_case_ray_59681_first_chunk_at_once(gw, up):
    def script(c):
        c.send(SSE + chunk(DELTAS[0]))
        c.sleep(1)
        c.send(chunk(DONE) + END)
    up.script = script
    with gw.client() as c:
        t = time.monotonic()
        c.request("POST", "/v1/chat/completions", STREAM)
        c.until(b"\n\n")
        assert time.monotonic() - t < 0.5


def test_report_mode_full_is_taken_out(gw, up):
    body = {**CHAT, "vllm_xargs": {"a": 1, "kv_cache_report_mode": "full", "b": "full"}}
    assert gw.chat(body).status == 200
    assert up.calls[0].json["vllm_xargs"] == {"a": 1, "kv_cache_report_mode": "incremental", "b": "full"}
    hidden = json.dumps(body).replace("kv_cache", "\\u006bv_cache")
    r = gw.chat(hidden)
    assert r.status == 400 and r.json["error"]["param"] == "vllm_xargs" and len(up.calls) == 1


# ---- deaths


def error_event(content):
    last = content.decode().rstrip("\n").split("\n\n")[-1]
    data = re.search(r"^data: ?(.*)$", last, re.M).group(1)
    return last, json.loads(data)


@pytest.mark.parametrize("how", ["close", "reset", "garbage"])
@pytest.mark.parametrize("cut", [0, 1, 25])
def test_case_semantic_router_3063_death_in_mid_stream(gw, up, how, cut):
    """an error event in the client's dialect, no [DONE], no last chunk; a half event is not shown"""
    def script(c):
        c.send(SSE + chunk(DELTAS[0]) + chunk(DELTAS[1]))
        if cut:
            c.send(chunk(DELTAS[2][:cut]))
        time.sleep(0.05)
        if how == "reset":
            c.reset()
        if how == "garbage":
            c.send(b"zz\r\nnot a chunk\r\n")
        c.close()
    up.script = script
    r = gw.chat(STREAM)
    assert r.status == 200 and not r.whole and b"[DONE]" not in r.content
    assert r.content.startswith((DELTAS[0] + DELTAS[1]).encode()) and DELTAS[2][:25].encode() not in r.content[len(DELTAS[0] + DELTAS[1]):]
    last, data = error_event(r.content)
    assert data["error"]["code"] in ("upstream_midstream", "upstream_protocol") and data["error"]["message"] and last.startswith("data: ")
    assert gw.log(r.headers["x-request-id"])["outcome"] in ("worker_died", "worker_error")
    assert gw.settled() and len(up.calls) == 1


def test_death_in_the_anthropic_dialect(gw, up):
    start_ = event({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 3, "output_tokens": 0}}}, "message_start")

    def script(c):
        c.send(SSE + chunk(start_))
        time.sleep(0.05)
        c.close()
    up.script = script
    r = gw.call("POST", "/v1/messages", {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]})
    last, data = error_event(r.content)
    assert not r.whole and last.startswith("event: error\n") and data["type"] == "error" and data["error"]["type"]


def test_death_in_the_responses_dialect(gw, up):
    created = event({"type": "response.created", "sequence_number": 0, "response": {"id": "r1"}}, "response.created")

    def script(c):
        c.send(SSE + chunk(created))
        time.sleep(0.05)
        c.close()
    up.script = script
    r = gw.call("POST", "/v1/responses", {"model": "m", "input": "x", "stream": True})
    last, data = error_event(r.content)
    assert not r.whole and last.startswith("event: error\n") and data["type"] == "error" and data["sequence_number"] == 1


def test_a_stream_that_ends_without_its_end_mark_is_no_clean_end(gw, up):
    up.script = stream_of(*DELTAS)
    r = gw.chat(STREAM)
    assert not r.whole and error_event(r.content)[1]["error"]["code"] == "upstream_midstream"


def test_case_litellm_4562_an_error_of_the_worker_in_mid_stream_passes(gw, up):
    """vLLM sends an error chunk and [DONE]: the client sees exactly that, the log says error"""
    error = event({"error": {"message": "engine died", "type": "InternalServerError", "param": None, "code": 500}})
    up.script = stream_of(DELTAS[0], error, DONE)
    r = gw.chat(STREAM)
    assert r.whole and r.content == (DELTAS[0] + error + DONE).encode()
    assert gw.log(r.headers["x-request-id"])["outcome"] == "worker_error"


def failing(gw, n, body=STREAM):
    for _ in range(n):
        r = gw.chat(body)
    return gw.log(r.headers["x-request-id"]), gw.workers()[0]


def test_an_error_in_a_200_counts_for_health_as_its_status_would(gw, up):
    """vLLM answers 200 before it generates: what goes wrong then is an event. The client's fault says nothing about the worker."""
    def error(code, kind):
        return {"error": {"message": "x", "type": kind, "param": None, "code": code}}
    up.script = stream_of(DELTAS[0], event(error(400, "BadRequestError")), DONE)
    line, worker = failing(gw, 6)
    assert (line["outcome"], worker["state"], worker["failures"]) == ("done", "healthy", 0)
    up.script = stream_of(DELTAS[0], event(error(500, "InternalServerError")), DONE)
    line, worker = failing(gw, 4)
    assert (line["outcome"], worker["state"], worker["failures"]) == ("worker_error", "degraded", 4)
    up.script = lambda c: c.send(whole(error(500, "InternalServerError")))
    line, worker = failing(gw, 1, CHAT)
    assert (line["status"], line["outcome"], worker["state"]) == ("200", "worker_error", "down")


def test_a_stream_that_dies_counts_for_health(gw, up):
    up.script = lambda c: (c.send(SSE + chunk(DELTAS[0])), c.reset())
    assert failing(gw, 4)[1]["state"] == "degraded"
    up.script = stream_of(DELTAS[0])                        # a last chunk without [DONE]
    assert failing(gw, 1)[1]["state"] == "down"


def test_death_of_a_whole_answer_is_never_a_clean_end(gw, up):
    def script(c):
        c.send(head(length=5000) + b'{"id": "x", ')
        time.sleep(0.05)
        c.close()
    up.script = script
    r = gw.chat()
    assert r.status == 200 and not r.whole and gw.log(r.headers["x-request-id"])["outcome"] == "worker_died"


@pytest.mark.parametrize("what", [b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\ncontent-len"])
def test_case_miles_1334_death_after_the_request_is_not_repeated(start, what):
    """the worker took the request on a fresh connection and closed: it may have begun, so no other worker gets it"""
    def script(c):
        time.sleep(0.1)
        if what:
            c.send(what)
        c.close()
    with Upstream(script) as a, Upstream(script) as b:
        gw = Gateway(start, a, b)
        r = gw.chat()
        assert r.status == 502 and r.json["error"]["code"] in ("upstream_early_close", "upstream_midstream", "upstream_protocol")
        assert len(a.calls) + len(b.calls) == 1 and gw.settled()


@pytest.mark.parametrize("raw", [b"HELLO\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"\x00" * 100,
                                 b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100000 + b"\r\n\r\n"])
def test_garbage_instead_of_an_answer(gw, up, raw):
    def script(c):
        c.send(raw)
        c.close()
    up.script = script
    r = gw.chat()
    assert r.status == 502 and r.json["error"]["code"].startswith("upstream") and gw.settled() and len(up.calls) == 1


def test_case_litellm_32835_no_retry_once_bytes_went_out(start):
    def script(c):
        c.send(SSE + chunk(DELTAS[1]))
        time.sleep(0.05)
        c.reset()
    with Upstream(script) as a, Upstream(script) as b:
        gw = Gateway(start, a, b)
        r = gw.chat(STREAM)
        assert r.content.count(b"Hel") == 1 and len(a.calls) + len(b.calls) == 1


# ---- silence


def test_case_opencode_43519_comments_do_not_keep_a_dead_stream_alive(start, up):
    gw = Gateway(start, up, args=["--stall-timeout", "500ms"])

    def script(c):
        c.send(SSE + chunk(DELTAS[1]))
        for _ in range(40):
            c.send(chunk(": keepalive\n\n"))
            c.sleep(0.1)
    up.script = script
    t = time.monotonic()
    r = gw.chat(STREAM)
    took = time.monotonic() - t
    assert 0.4 < took < 3 and not r.whole and error_event(r.content)[1]["error"]["code"] == "timeout_stall"
    assert gw.log(r.headers["x-request-id"])["outcome"] == "timed_out" and gw.settled()
    assert up.calls[0].gone.wait(5), "the next comment finds nobody"


def test_case_opencode_26487_silence_after_the_head(start, up):
    """before the first event the worker may be computing: the first-byte limit holds"""
    gw = Gateway(start, up, args=["--stall-timeout", "200ms", "--first-byte-timeout", "700ms"])

    def script(c):
        c.send(SSE)
        c.sleep(5)
    up.script = script
    t = time.monotonic()
    r = gw.chat(STREAM)
    assert 0.6 < time.monotonic() - t < 3 and error_event(r.content)[1]["error"]["code"] == "timeout_stall"


def test_no_answer_at_all(start, up):
    gw = Gateway(start, up, args=["--first-byte-timeout", "500ms"])
    up.script = lambda c: c.sleep(10)
    r = gw.chat()
    assert r.status == 504 and r.json["error"]["code"] == "timeout_first_byte" and gw.settled()
    assert len(up.calls) == 1


@pytest.mark.parametrize("begun", [b"H", b"HTTP/1.1 200 OK\r\ncontent-le", b"HTTP/1.1 100 Continue\r\n\r\n"])
def test_a_head_that_is_begun_and_no_more(start, up, begun):
    """a part of a head is no answer: the first-byte limit holds, however slowly more of it comes"""
    gw = Gateway(start, up, args=["--first-byte-timeout", "600ms", "--stall-timeout", "300ms"])

    def script(c):
        c.send(begun)
        for _ in range(20):
            c.sleep(0.2)
            c.send(b"HTTP/1.1 100 Continue\r\n\r\n" if b"100" in begun else b"")
    up.script = script
    t = time.monotonic()
    r = gw.chat()
    assert time.monotonic() - t < 3.5 and r.status == 504 and r.json["error"]["code"] == "timeout_first_byte" and gw.settled()


def test_a_silent_stream_of_a_dead_worker_ends_at_once(start):
    """as a real vLLM on SIGTERM: the socket stays open, nothing comes, new connections are refused"""
    with Upstream() as up:
        gw = Gateway(start, up)

        def script(c):
            c.send(SSE + chunk(DELTAS[1]))
            c.upstream.stop_listening()
            c.upstream.health = 503
            c.sleep(15)
        up.script = script
        t = time.monotonic()
        r = gw.chat(STREAM, seconds=15)
        assert time.monotonic() - t < 10 and not r.whole and error_event(r.content)[1]["error"]["code"] == "upstream_midstream"
        assert gw.settled()


# ---- back-pressure


def test_a_slow_client_stops_the_worker(start, up):
    """the gateway holds little; the worker's writes block until the client reads, nothing is lost, the stall rule waits"""
    gw = Gateway(start, up, args=["--stall-timeout", "600ms"])
    sent = []
    one = chunk(event(delta("x" * 8000)))
    total = 4000

    def script(c):
        c.send(SSE)
        for i in range(total):
            c.send(one)
            sent.append(time.monotonic())
        c.send(chunk(DONE) + END)
    up.script = script
    with gw.client(seconds=30, rcvbuf=4096) as c:
        c.request("POST", "/v1/chat/completions", STREAM)
        c.until(b"\r\n\r\n")
        time.sleep(1.5)
        held = len(sent)
        assert held < total / 2, "the worker was read although the client did not read"
        rest = c.until(b"[DONE]")
        assert rest.count(b"finish_reason") == total
    assert gw.settled()


def test_a_client_that_never_reads_is_let_go(start, up):
    gw = Gateway(start, up, args=["--client-write-timeout", "700ms"])

    def script(c):
        c.send(SSE)
        for _ in range(20000):
            c.send(chunk(event(delta("x" * 8000))))
    up.script = script
    with gw.client(rcvbuf=4096) as c:
        c.request("POST", "/v1/chat/completions", STREAM)
        call = up.wait_calls(1)
        assert eventually(call.gone.is_set, 8)
        assert gw.settled()


def test_memory_of_a_slow_stream_is_bounded(start, up):
    gw = Gateway(start, up)

    def script(c):
        c.send(SSE)
        try:
            for _ in range(3000):
                c.send(chunk(event(delta("x" * 8000))))
        except Gone:
            pass
    up.script = script

    def rss():
        return int(open(f"/proc/{gw.process.pid}/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    before = rss()
    clients = [gw.client(rcvbuf=4096).request("POST", "/v1/chat/completions", STREAM) for _ in range(10)]
    time.sleep(1)
    grown = rss() - before
    for c in clients:
        c.sock.close()
    limit = 10 * (16 << 20)                                # of 240 MB; a sanitizer keeps freed memory for a while
    assert grown < limit, f"{grown >> 20} MiB for 10 slow clients"
    assert gw.settled()


class LateReader(Upstream):
    """takes the connection and leaves a chat's bytes where they are until `reads` is set"""

    def __init__(self):
        self.reads = threading.Event()
        super().__init__(lambda c: c.send(whole({"n": len(c.body)})))

    def _read(self, sock, held, first):
        if (held or sock.recv(64, socket.MSG_PEEK)).startswith(b"POST /v1/chat"):
            self.reads.wait(20)
        return super()._read(sock, held, first)


def test_a_worker_that_reads_late_holds_back_only_its_request(start):
    """the body waits in the gateway, once, until the worker takes it; others are served meanwhile"""
    with LateReader() as late, Upstream() as other:
        late.models = ("late",)
        gw = Gateway(start, late, other, args=["--tokens", "none"])
        body = json.dumps({**CHAT, "model": "late", "messages": [{"role": "user", "content": "x" * (8 << 20)}]})
        before = gw.rss()
        with gw.client(seconds=30) as c:
            c.request("POST", "/v1/chat/completions", body)
            assert gw.chat(seconds=20).status == 200
            assert gw.rss() - before < 2 * len(body) + (4 << 20) and 0 < gw.metric("kvasir_request_body_bytes") <= 2 * len(body)
            late.reads.set()
            assert c.response().json == {"n": len(body)} and late.calls[0].body == body.encode()
        assert gw.settled()


def test_a_worker_that_never_reads_is_timed_out(start):
    with LateReader() as late:
        gw = Gateway(start, late, args=["--tokens", "none", "--first-byte-timeout", "700ms"])
        r = gw.chat({**CHAT, "messages": [{"role": "user", "content": "x" * (8 << 20)}]}, seconds=20)
        late.reads.set()
        assert r.status == 504 and r.json["error"]["code"] == "timeout_first_byte" and gw.settled()
        assert eventually(lambda: gw.metric("kvasir_request_body_bytes") == 0)
