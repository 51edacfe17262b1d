"""Which failures may be repeated: none that a worker may have begun (section 4; gateways 59, routers 53, 58)."""
import socket
import time

from client import CHAT, STREAM
from conftest import eventually
from gateway import Gateway
from upstream import COMPLETION, Upstream, whole


def refuse(n=1):
    """an address that takes no connection"""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    return s, f"http://127.0.0.1:{s.getsockname()[1]}"


def test_case_dynamo_11646_a_dead_worker_costs_no_request(start):
    """a worker dies under traffic: connect failures go to the next of the plan, every client gets its answer"""
    with Upstream() as a, Upstream() as b:
        gw = Gateway(start, a, b, args=["--probe-interval", "1m", "--scrape-interval", "1m"])   # only requests find out
        for _ in range(6):
            r = gw.chat()
            assert r.status == 200
        dying, good = (a, b) if r.headers["x-kvasir-worker"] == a.url else (b, a)               # the holder of the hot prefix
        dying.stop()
        time.sleep(1.6)                                                                         # idle sockets to it are old by now
        for i in range(30):
            r = gw.chat(STREAM if i % 2 else CHAT)
            assert r.status == 200 and r.headers["x-kvasir-worker"] == good.url
        assert gw.settled()
        assert gw.metric("kvasir_switches_total") >= 1


def test_all_workers_dead(start):
    a, b = Upstream(), Upstream()
    gw = Gateway(start, a, b, args=["--probe-interval", "10s"])
    a.stop()
    b.stop()
    time.sleep(0.05)
    r = gw.chat()
    assert r.status in (502, 503) and r.json["error"]["code"] in ("connect", "no_worker") and gw.settled()


def test_case_llmd_1564_idle_close_of_the_worker_costs_nothing(start):
    """workers close idle connections at about the moment we would use them again; not one 502"""
    def closing(c):
        c.send(whole(COMPLETION))
        c.sleep(closing.after)
        c.close()
    with Upstream(closing) as up:
        gw = Gateway(start, up, args=["--probe-interval", "10s", "--scrape-interval", "10s", "--models-interval", "10m"])
        for after in (0, 0.001, 0.005, 0.02, 0.05):
            closing.after = after
            for i in range(20):
                assert gw.chat().status == 200
                time.sleep(after + (i % 5 - 2) * 0.0005 if after > 0.002 else after)
        assert gw.settled() and len(up.calls) >= 100


def test_sockets_idle_for_1_5_s_are_not_used_again(start):
    with Upstream() as up:
        gw = Gateway(start, up, args=["--tokens", "none"])
        gw.chat()
        gw.chat()
        assert [c.first for c in up.calls] == [True, False]
        time.sleep(1.7)
        gw.chat()
        assert up.calls[2].first


def test_a_reused_socket_that_fails_at_once_is_repeated_once(start):
    """reset right after the write on an old socket, no byte of an answer: sent again on a fresh one, and only once"""
    with Upstream() as up:
        gw = Gateway(start, up, args=["--tokens", "none"])
        assert gw.chat().status == 200

        def reset_reused(c):
            if not c.first:
                c.reset()
            c.send(whole(COMPLETION))
        up.script = reset_reused
        assert gw.chat().status == 200 and len(up.calls) == 3

        def reset_all(c):
            c.reset()
        up.script = reset_all
        r = gw.chat()
        assert r.status == 502 and r.json["error"]["code"] == "upstream_early_close" and gw.settled()


def test_a_slow_failure_of_a_reused_socket_is_not_repeated(start):
    """100 ms after the write the worker may have begun"""
    with Upstream() as up:
        gw = Gateway(start, up, args=["--tokens", "none"])
        assert gw.chat().status == 200

        def late_reset(c):
            c.sleep(0.15)
            c.reset()
        up.script = late_reset
        assert gw.chat().status == 502
        assert len(up.calls) == 2 and gw.settled()


def test_connect_timeout_goes_to_the_next(start):
    """a listener whose queue is full takes no connection: the plan's next worker gets the request"""
    with Upstream() as good, socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = []
        gw = Gateway(start, good, f"http://127.0.0.1:{full.getsockname()[1]}", args=["--connect-timeout", "300ms"], ready=False)
        assert eventually(lambda: health(gw) == 200, 8)
        for _ in range(4):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex(full.getsockname())
            fillers.append(s)
        for _ in range(6):
            assert gw.chat().status == 200
        for s in fillers:
            s.close()
        assert gw.settled()


def health(gw):
    try:
        return gw.call("GET", "/health").status
    except (OSError, AssertionError):
        return 0


def test_case_sglang_25811_client_errors_do_not_take_workers_out(start):
    bad = {"error": {"message": "no", "type": "BadRequestError", "param": None, "code": 400}}
    with Upstream(lambda c: c.send(whole(bad, 400))) as a, Upstream(lambda c: c.send(whole(bad, 400))) as b:
        gw = Gateway(start, a, b)
        for _ in range(50):
            assert gw.chat().status == 400
        assert all(w["state"] == "healthy" for w in gw.workers())


def test_worker_statuses_are_not_repeated(start):
    with Upstream() as a, Upstream() as b:
        gw = Gateway(start, a, b)
        for status in (429, 500, 503):
            a.script = b.script = lambda c, s=status: c.send(whole({"error": {"message": "x"}}, s, extra=["retry-after: 7"]))
            before = len(a.calls) + len(b.calls)
            r = gw.chat()
            assert r.status == status and r.headers["retry-after"] == "7"
            assert len(a.calls) + len(b.calls) == before + 1
        assert gw.settled()
