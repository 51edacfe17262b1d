"""SIGTERM: not ready, no new work, streams finish within a limit, the rest get the error event, exit 0 (section 4)."""
import json
import signal
import threading
import time

import pytest

import client
from client import CHAT, STREAM
from conftest import eventually
from gateway import Gateway
from upstream import DONE, Upstream, chunk, event, head, whole
from upstream import STREAM as DELTAS

SSE = head(content_type="text/event-stream")


@pytest.mark.parametrize("threads", [1, 2])
def test_streams_finish_and_new_work_is_refused(start, threads):
    go = threading.Event()

    def script(c):
        c.send(SSE + chunk(DELTAS[1]))
        go.wait(8)
        c.send(chunk(DELTAS[2]) + chunk(DONE) + b"0\r\n\r\n")
    with Upstream(script) as up:
        gw = Gateway(start, up, args=["--threads", threads])
        with gw.client() as c, gw.client() as idle:
            idle.request("GET", "/health").response()
            c.request("POST", "/v1/chat/completions", STREAM)
            c.until(b"\n\n")
            gw.process.signal(signal.SIGTERM)
            assert eventually(lambda: refused(gw), 3)
            ready = client.call(gw.admin, "GET", "/readyz")
            assert ready.status == 503 and ready.json["ready"] is False
            with gw.client() as late:
                r = late.request("POST", "/v1/chat/completions", CHAT).response()
                assert r.status == 503 and r.json["error"]["code"] == "draining" and "retry-after" in r.headers
            go.set()
            rest = c.until(b"[DONE]")
            assert b'"lo"' in rest
        assert gw.process.wait(5) == 0 and len(up.calls) == 1


def refused(gw):
    return gw.call("GET", "/health").status == 503


@pytest.mark.parametrize("threads", [1, 2])
def test_what_does_not_finish_gets_the_error_event(start, threads):
    def script(c):
        if c.json.get("stream"):
            c.send(SSE + chunk(DELTAS[1]))
        c.sleep(15)
    with Upstream(script) as up:
        gw = Gateway(start, up, args=["--shutdown-timeout", "400ms", "--threads", threads])
        with gw.client() as stream, gw.client() as plain, gw.client() as unfinished:
            stream.request("POST", "/v1/chat/completions", STREAM)
            stream.until(b"\n\n")
            plain.request("POST", "/v1/chat/completions", CHAT)
            unfinished.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            up.wait_calls(2)
            t = time.monotonic()
            gw.process.signal(signal.SIGTERM)
            rest = stream.rest()
            data = json.loads(rest[rest.index(b"data: ") + 6:].split(b"\n")[0])
            assert data["error"]["code"] == "draining" and b"[DONE]" not in rest and not rest.endswith(b"0\r\n\r\n")
            assert plain.response().status == 503
            assert unfinished.response().status in (408, 503)
            assert gw.process.wait(5) == 0 and 0.3 < time.monotonic() - t < 4


def test_an_idle_gateway_ends_at_once(start):
    with Upstream() as up:
        gw = Gateway(start, up)
        with gw.client() as idle:
            idle.request("POST", "/v1/chat/completions", CHAT).response()
            t = time.monotonic()
            gw.process.signal(signal.SIGTERM)
            assert gw.process.wait(5) == 0 and time.monotonic() - t < 2


@pytest.mark.parametrize("threads", [1, 3])
def test_hands_share_the_port_and_the_brain(start, threads):
    """many connections spread over the hands; the ledger is one and returns to zero"""
    with Upstream() as a, Upstream() as b:
        gw = Gateway(start, a, b, args=["--threads", threads])
        clients = [gw.client() for _ in range(24)]
        for round_ in range(4):
            for c in clients:
                c.request("POST", "/v1/chat/completions", {**STREAM, "seed": round_})
            for c in clients:
                assert c.response().content.endswith(DONE.encode())
        for c in clients:
            c.sock.close()
        assert gw.settled()
        assert len(a.calls) + len(b.calls) == 96 and min(len(a.calls), len(b.calls)) > 20
