"""Limits: headers, bodies, their shared memory, slow clients (section 4; THREATS.md)."""
import contextlib
import fcntl
import functools
import json
import os
import re
import signal
import threading
import time

import pytest

import client
from client import CHAT
from conftest import eventually, free_port
from gateway import Gateway
from upstream import Upstream, whole


@pytest.fixture
def up():
    with Upstream(lambda c: c.send(whole({"n": len(c.body)}))) as u:
        yield u


def big(n):
    return json.dumps({**CHAT, "messages": [{"role": "user", "content": "x" * n}]})


def test_header_limit(start, up):
    gw = Gateway(start, up)
    assert gw.chat(headers=["X-Big: " + "a" * 30000]).status == 200
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 40000)
        r = c.response()
        assert r.status == 431 and r.json["error"]["code"] == "header_too_large" and c.rest() == b""
    many = [f"X-{i}: 1" for i in range(200)]
    assert gw.chat(headers=many).status == 431
    wider = Gateway(start, up, args=["--max-header", "128KiB", "--max-headers", "300"])
    assert wider.chat(headers=many).status == 200 and wider.chat(headers=["X-Big: " + "a" * 100000]).status == 200


@pytest.mark.parametrize("way", ["length", "chunked"])
def test_body_limit(start, up, way):
    gw = Gateway(start, up, args=["--max-body", "1MiB"])
    assert gw.chat(big((1 << 20) - 200)).status == 200
    body = big((1 << 20) + 100).encode()
    with gw.client() as c:
        if way == "length":
            c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body))
        else:
            c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body) + body)
        r = c.response()
        assert r.status == 413 and r.json["error"]["code"] == "body_too_large"
    assert len(up.calls) == 1 and gw.settled()


@pytest.mark.parametrize("many", ['"messages":[%s]' % ",".join(['{"role":"user","content":"a"}'] * 66000), '"logit_bias":{%s}' % ",".join(['"7":0'] * 270000)],
                         ids=["messages", "members"])
def test_a_body_of_very_many_parts_is_refused_before_it_is_gone_over(start, up, many):
    """in words; who asks meanwhile is answered, and nothing reaches a worker"""
    gw = Gateway(start, up)
    with gw.client() as c, gw.client() as other:
        for _ in range(3):
            c.request("POST", "/v1/chat/completions", ('{"model":"m",%s}' % many).encode())
            assert other.request("POST", "/v1/chat/completions", CHAT).response().status == 200
            r = c.response()
            assert r.status == 400 and "too many values (more than 65536 objects and lists" in r.json["error"]["message"], r.content[:300]
    assert len(up.calls) == 3 and gw.settled()


def test_bodies_share_a_memory_budget(start, up):
    """four bodies of 3 MiB that are being sent fill 8 MiB; the one too many gets 429, all memory comes back"""
    gw = Gateway(start, up, args=["--body-memory", "8MiB"])
    body = big(3 << 20).encode()
    held = []
    for _ in range(2):
        c = gw.client()
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:-1])
        held.append(c)
    assert eventually(lambda: gw.metric("kvasir_request_body_bytes") > 5 << 20)
    r = gw.chat(big(6 << 20), seconds=20)
    assert r.status == 429 and r.json["error"]["code"] == "body_memory" and "retry-after" in r.headers
    for c in held:
        c.send(body[-1:])
        assert c.response().json == {"n": len(body)}
    assert gw.settled() and eventually(lambda: gw.metric("kvasir_request_body_bytes") == 0)
    assert gw.chat(big(6 << 20), seconds=20).status == 200


@pytest.mark.parametrize("way", ["length", "chunked"])
def test_a_body_larger_than_the_memory_of_all_is_too_large(start, up, way):
    """413, not 429: however often it is tried again it never fits; one that just fits alone does"""
    gw = Gateway(start, up, args=["--body-memory", "3MiB"])
    for size, status in (((3 << 20) - 200, 200), ((3 << 20) + 1, 413)):
        body = big(size).encode()
        with gw.client(seconds=20) as c:
            framing = b"Content-Length: %d\r\n\r\n" % len(body) if way == "length" else b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(body)
            c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + framing)
            if status == 200 or way == "chunked":
                c.send(body + (b"" if way == "length" else b"\r\n0\r\n\r\n"))
            r = c.response()
            assert r.status == status and (status == 200 or r.json["error"]["code"] == "body_too_large")
    assert gw.settled() and eventually(lambda: gw.metric("kvasir_request_body_bytes") == 0)


def test_a_promised_body_holds_no_memory(start, up):
    gw = Gateway(start, up, args=["--body-memory", "4MiB"])
    held = []
    for _ in range(20):
        c = gw.client()
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n{")
        held.append(c)
    time.sleep(0.1)
    assert gw.chat().status == 200
    for c in held:
        c.sock.close()
    assert gw.settled()


def test_memory_is_given_back_when_the_worker_answers(start):
    """a long stream does not hold its prompt"""
    over = threading.Event()

    def script(c):
        c.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n6\r\n: ok\n\n\r\n")
        over.wait(5)
        c.close()
    with Upstream(script) as u:
        gw = Gateway(start, u)
        with gw.client() as c:
            c.request("POST", "/v1/chat/completions", big(4 << 20).replace('{"model"', '{"stream": true, "model"'))
            c.until(b": ok\n\n")
            assert eventually(lambda: gw.metric("kvasir_request_body_bytes") == 0, 4)     # a call for its ids may still have its copy
        over.set()
        assert gw.settled()


def test_slow_headers_and_bodies_are_cut_off(start, up):
    gw = Gateway(start, up, args=["--client-header-timeout", "400ms", "--client-body-timeout", "400ms", "--client-idle-timeout", "500ms"])
    with gw.client() as c:
        t = time.monotonic()
        c.send(b"POST /v1/chat")
        for _ in range(20):                       # a byte now and then does not help
            if time.monotonic() - t > 0.7:
                break
            time.sleep(0.1)
            try:
                c.send(b"x")
            except OSError:
                break
        r = c.response()
        assert r.status == 408 and time.monotonic() - t < 2
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        assert c.response().status == 408
    with gw.client() as c:
        t = time.monotonic()
        assert c.rest() == b"" and time.monotonic() - t < 2
    assert not up.calls and gw.settled()


def test_connection_limit(start, up):
    gw = Gateway(start, up, args=["--max-connections", "16"])
    held = []
    for _ in range(16):
        c = gw.client()
        c.request("GET", "/health").response()
        held.append(c)
    with gw.client() as c:
        assert c.rest() == b""
    held.pop().sock.close()
    assert eventually(lambda: works(gw), 3)
    for c in held:
        c.sock.close()


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams_do_not_become_sockets(start, up, closed):
    gw = Gateway(functools.partial(start, before=f"exec {closed}"), up)
    assert gw.chat().status == 200
    port = free_port()
    sim = start("kvasir-sim", "--no-events", "--port", port, before=f"exec {closed}")
    assert eventually(lambda: answers(port), 10)
    for p in gw.process, sim:
        links = str([os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in range(3)])
        assert "socket" not in links and "anon_inode" not in links and "/dev/null" in links
        assert p.stop() == 0


def test_a_log_that_nobody_reads_holds_up_nothing(start, up, tmp_path):
    """lines are dropped while the pipe is full, and counted when it is read again"""
    path = tmp_path / "stderr"
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
    gw = Gateway(functools.partial(start, before=f"exec 2>'{path}'"), up)
    for _ in range(40):
        assert gw.chat().status == 200
        time.sleep(0.01)
    seen = b""

    def said():
        nonlocal seen
        with contextlib.suppress(BlockingIOError):
            seen += os.read(pipe, 1 << 16)
        return re.search(rb" level=warn event=log_dropped lines=[1-9]", seen) or gw.chat().status != 200
    assert eventually(said, 10)
    assert b" event=log_dropped " in seen
    os.close(pipe)


def works(gw):
    return answers(gw.port)


def answers(port):
    try:
        return client.call(port, "GET", "/health").status == 200
    except (AssertionError, OSError):
        return False


def test_case_smg_1693_health_answers_under_large_bodies(start, up):
    """16 clients with 500 KB prompts all the time: parsing them must not hold up the health of the gateway"""
    gw = Gateway(start, up)
    over, took = threading.Event(), []
    body = json.dumps({**CHAT, "messages": [{"role": "user", "content": "word " * 2000} for _ in range(50)]})

    def load():
        with gw.client(seconds=30) as c:
            while not over.is_set():
                c.request("POST", "/v1/chat/completions", body).response()
    threads = [threading.Thread(target=load) for _ in range(16)]
    for t in threads:
        t.start()
    with gw.client(seconds=20) as c:
        for _ in range(20):
            time.sleep(0.05)
            t = time.monotonic()
            assert c.request("GET", "/health").response().status == 200
            took.append(time.monotonic() - t)
    over.set()
    for t in threads:
        t.join(30)
    took.sort()      # clients, worker and gateway share two cores here: a reply that waits for all bodies would show in the median
    assert took[10] < 0.25 and took[-1] < 5, f"health took {took[10] * 1000:.0f} ms, at worst {took[-1] * 1000:.0f} ms"
    assert gw.settled()


def test_case_smg_1693_large_bodies_take_turns(start, up):
    """16 large bodies end in the same moment, then a small request comes: it waits for none of them"""
    gw = Gateway(start, up)
    body = json.dumps({**CHAT, "model": "nobody", "messages": [{"role": "user", "content": "word " * 200000}]}).encode()
    large = [gw.client(seconds=30) for _ in range(16)]
    for c in large:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:-1])
    with gw.client(seconds=30) as small:
        assert small.request("GET", "/version").response().status == 200
        assert eventually(lambda: gw.metric("kvasir_request_body_bytes") >= 16 * len(body) * 0.99, 10)
        gw.process.signal(signal.SIGSTOP)
        for c in large:
            c.send(body[-1:])
        time.sleep(0.05)
        small.request("GET", "/version")
        time.sleep(0.05)
        gw.process.signal(signal.SIGCONT)
        assert small.response().status == 200
    assert {c.response().status for c in large} == {404}
    order = [re.search(r" path=(\S+)", line)[1] for line in access(gw, 18)]
    assert order == ["version"] * 2 + ["chat_completions"] * 16
    assert gw.settled()


def access(gw, n):
    def lines():
        return [line for line in gw.process.text.splitlines() if " event=access " in line and "path=models" not in line]
    assert eventually(lambda: len(lines()) >= n, 5)
    return lines()


def test_case_litellm_35666_labels_come_from_a_table(start, up):
    """scanner traffic makes no series"""
    gw = Gateway(start, up)
    before = client.call(gw.admin, "GET", "/metrics").content.count(b"\n")
    with gw.client() as c:
        for i in range(300):
            assert c.request("GET", f"/files/random{i}.php?key=secret{i}").response().status == 404
    for i in range(20):
        gw.chat({**CHAT, "model": f"nobody-{i}"})
    text = client.call(gw.admin, "GET", "/metrics").content
    assert text.count(b"\n") - before < 30 and b"random" not in text and b"nobody-" not in text
    assert "secret1" not in gw.process.text


def test_case_litellm_15799_no_secret_in_the_log(start, up):
    gw = Gateway(start, up)
    up.script = lambda c: c.send(whole({"error": "x"}, 500))
    gw.call("POST", "/v1/chat/completions?key=qsecret", CHAT, headers=["Authorization: Bearer hsecret"])
    time.sleep(0.3)
    assert "qsecret" not in gw.process.text and "hsecret" not in gw.process.text
    assert up.calls[0].target == "/v1/chat/completions?key=qsecret"


@pytest.mark.parametrize("sent,status,reason,path", [
    (b"\x16\x03\x01\x02\x00\r\n\r\n", 400, "syntax", "other"),
    (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Big: " + b"a" * 40000, 431, "header_too_large", "other"),
    (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "unsupported", "other"),
    (b"POST /v1/chat/completions HTTP/2.0\r\nHost: x\r\n\r\n", 505, "unsupported", "other"),
    (b"POST /v1/chat", 408, "timeout_client", "other"),
    (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\nContent-Length: 9\r\n\r\n{", 408, "timeout_client", "chat_completions"),
    (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "syntax", "chat_completions")])
def test_what_the_http_server_refuses_has_an_id_and_an_access_line(start, up, sent, status, reason, path):
    """a broken head or a body that breaks off is no lesser refusal than one with a request behind it"""
    gw = Gateway(start, up, args=["--client-header-timeout", "300ms", "--client-body-timeout", "300ms"])
    with gw.client() as c:
        c.send(sent)
        r = c.response()
        assert r.status == status and c.rest() == b""
    known = path != "other"
    error = r.json["error"]
    assert r.headers["x-kvasir-reason"] == error["reason"] == reason and r.headers["x-request-id"] == error["request_id"]
    line = gw.log(r.headers["x-kvasir-request-id"] if known else r.headers["x-request-id"])
    assert (line["status"], line["fault"], line["outcome"], line["path"]) == (str(status), reason, "refused", path if known else "-")
    assert int(line["bytes_out"]) == len(r.content)
    assert not known or (error["request_id"], line["client_id"]) == ("mine", "mine")
    assert gw.metric("kvasir_refused_total") == 1 and gw.settled() and not up.calls
