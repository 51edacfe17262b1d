"""Clients that leave, at every stage; the worker is free at once and every counter returns to zero (section 4, 11; routers 64, 73, 11)."""
import concurrent.futures
import json
import threading
import time

import pytest

from client import CHAT, STREAM
from conftest import eventually
from gateway import Gateway
from upstream import DONE, Gone, Upstream, chunk, delta, event, head, whole
from upstream import STREAM as DELTAS

SSE = head(content_type="text/event-stream")


@pytest.fixture
def up():
    with Upstream() as u:
        yield u


@pytest.fixture
def gw(start, up):
    return Gateway(start, up)


def endless(c):
    c.send(SSE)
    while True:
        c.send(chunk(event(delta("x"))))
        c.sleep(0.01)


def raw_chat(body=STREAM):
    data = json.dumps(body).encode()
    return b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(data), data


@pytest.mark.parametrize("how", ["close", "reset", "half_close"])
@pytest.mark.parametrize("stage", ["half_head", "after_head", "half_body"])
def test_client_leaves_before_the_request_is_whole(gw, up, how, stage):
    headers, body = raw_chat()
    with gw.client() as c:
        c.send({"half_head": headers[:40], "after_head": headers, "half_body": headers + body[:30]}[stage])
        time.sleep(0.05)
        leave(c, how)
        time.sleep(0.1)
    assert not up.calls and gw.settled()
    assert gw.chat().status == 200


def leave(c, how):
    if how == "reset":
        c.reset()
    elif how == "half_close":
        c.sock.shutdown(1)
    else:
        c.sock.close()


@pytest.mark.parametrize("how", ["close", "reset", "half_close"])
@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["whole", "stream"])
def test_case_sglang_39461_client_leaves_before_the_answer(gw, up, how, body):
    up.script = lambda c: c.sleep(15)
    with gw.client() as c:
        c.request("POST", "/v1/chat/completions", body)
        call = up.wait_calls(1)
        t = time.monotonic()
        leave(c, how)
        assert call.wait_gone(3) and time.monotonic() - t < 0.5, "the worker was not told"
    line = gw.log(call.headers["x-request-id"])
    assert line["outcome"] == "client_left" and gw.settled()


@pytest.mark.parametrize("how", ["close", "reset", "half_close"])
def test_case_sglang_39461_client_leaves_in_mid_stream(gw, up, how):
    up.script = endless
    with gw.client() as c:
        c.request("POST", "/v1/chat/completions", {**STREAM, "max_tokens": 5000})
        for _ in range(3):
            c.until(b"\n\n")
        t = time.monotonic()
        leave(c, how)
        assert eventually(up.calls[0].gone.is_set, 3) and time.monotonic() - t < 0.5
    assert gw.log(up.calls[0].headers["x-request-id"])["outcome"] == "client_left" and gw.settled()


def test_case_aibrix_2338_client_leaves_while_token_ids_are_asked(start):
    gate = threading.Event()

    def tokenize(c):
        gate.wait(3)
        c.send(whole({"count": 3, "max_model_len": 4096, "tokens": [1, 2, 3]}))
    with Upstream(tokenize=tokenize) as up:
        gw = Gateway(start, up, args=["--tokens-budget", "5s"])
        with gw.client() as c:
            c.request("POST", "/v1/chat/completions", CHAT)
            assert eventually(lambda: up.tokenize_calls, 3)
        time.sleep(0.1)
        gate.set()
        time.sleep(0.2)
        assert not up.calls and gw.settled()
        assert gw.chat().status == 200


def test_client_leaves_after_the_last_byte(gw, up):
    for _ in range(20):
        with gw.client() as c:
            c.request("POST", "/v1/chat/completions", STREAM).until(DONE.encode())
    assert gw.settled()


def test_case_bifrost_6143_leaving_during_a_write(start, up):
    """many clients leave at random points: no crash, each request is settled once"""
    gw = Gateway(start, up)
    up.script = endless

    def one(i):
        with gw.client() as c:
            c.request("POST", "/v1/chat/completions", STREAM)
            for _ in range(i % 5):
                c.until(b"\n\n")
            if i % 2:
                c.reset()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(one, range(200)))
    assert gw.settled()
    assert eventually(lambda: gw.metric("kvasir_requests_open") == 0, 5)
    ended = gw.metric('kvasir_requests_total{path="chat_completions"')
    assert ended == 200


def test_case_smg_2064_room_is_back_after_cancels(gw, up):
    up.script = lambda c: c.sleep(15)
    held = [gw.client() for _ in range(16)]
    for c in held:
        c.request("POST", "/v1/chat/completions", CHAT)
    up.wait_calls(16)
    for c in held:
        c.sock.close()
    up.script = lambda c: c.send(whole({"ok": 1}))
    assert gw.chat().status == 200 and gw.settled()


def test_a_worker_that_leaves_its_socket_open_is_aborted(gw, up):
    """an early answer while the body is still going up"""
    def early(c):
        c.send(whole({"error": {"message": "too large", "code": 413}}, 413, extra=["connection: close"]))
        c.close()
    up.script = early
    body = {**CHAT, "messages": [{"role": "user", "content": "x" * (8 << 20)}]}
    assert gw.chat(body, seconds=20).status == 413 and gw.settled()


def test_many_streams_at_once(gw, up):
    """ray 55473, production-stack 767: no hidden cap on streams"""
    go = threading.Event()

    def script(c):
        c.send(SSE + chunk(DELTAS[1]))
        go.wait(10)
        c.send(chunk(DONE) + b"0\r\n\r\n")
    up.script = script
    clients = [gw.client().request("POST", "/v1/chat/completions", STREAM) for _ in range(200)]
    for c in clients:
        c.until(b"\n\n")
    go.set()
    for c in clients:
        c.until(b"[DONE]")
        c.sock.close()
    assert gw.settled()
