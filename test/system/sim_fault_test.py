"""Faults on demand, at the command line and at run time; the worker is sound again after `clear`."""
import time

import pytest
from client import Client, call
from conftest import eventually
from sim import Fleet, words

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 8, "stream": True}


def raw_stream(fleet, seconds=2):
    """(bytes that came, did the connection end?)"""
    with Client(fleet.port(), seconds) as c:
        c.request("POST", "/v1/chat/completions", BODY)
        try:
            return c.rest(), True
        except TimeoutError:
            return c.held, False


def test_statuses_have_the_workers_own_shape(start):
    fleet = Fleet(start, args=["--fault", "status=503,n=1", "--fault", "status=429,n=1"])
    r = fleet.chat("hi")
    assert r.status == 503 and r.json["error"]["code"] == 503
    assert fleet.chat("hi").status == 429
    assert fleet.chat("hi").status == 200
    fleet.fault("status=500,path=/tokenize,after=1")
    assert fleet.chat("hi").status == 200
    assert [call(fleet.port(), "POST", "/tokenize", {"prompt": "x"}).status for _ in range(3)] == [200, 500, 500]
    fleet.fault("clear")
    assert call(fleet.port(), "POST", "/tokenize", {"prompt": "x"}).status == 200


def test_hangs(start):
    fleet = Fleet(start)
    fleet.fault("hang-before")
    assert raw_stream(fleet, 0.4) == (b"", False)
    fleet.fault("clear\nhang-after")
    got, ended = raw_stream(fleet, 0.4)
    assert not ended and got.count(b"data: ") == 1
    fleet.fault("clear\nhang-after=500")
    got, ended = raw_stream(fleet, 0.4)
    assert not ended and got.count(b"data: ") > 1 and b"[DONE]" not in got
    assert eventually(lambda: fleet.stats()["open_calls"] == 0)


def test_reset_and_cut(start):
    fleet = Fleet(start)
    fleet.fault("reset,n=1")
    assert raw_stream(fleet) == (b"", True)
    for n in (1, 255, 300, 1200):
        fleet.fault(f"cut={n},n=1")
        got, ended = raw_stream(fleet)
        body = got.split(b"\r\n\r\n", 1)[1]
        assert ended and not body.endswith(b"0\r\n\r\n") and b"[DONE]" not in body
    assert fleet.chat("hi").status == 200
    s = fleet.stats()
    assert s["running"] == s["waiting"] == s["used_blocks"] == s["open_calls"] == 0


def test_garbage(start):
    fleet = Fleet(start)
    fleet.fault("garbage,n=2")
    got, _ = raw_stream(fleet, 0.4)
    assert b"garbage without" in got or b"\xff\xfe" in got
    assert fleet.chat("hi").content.startswith(b'{"id": \xff')
    assert fleet.chat("hi").json["object"] == "chat.completion"


def test_a_worker_dies_and_comes_back(start):
    fleet = Fleet(start, 2, profile="qwen3-32b-h100-tp2")
    fleet.chat(words(60))
    with Client(fleet.port()) as c:
        c.request("POST", "/v1/chat/completions", {**BODY, "max_tokens": 1000})
        c.until(b"data: ")
        fleet.fault("0:die", i=1)
        got = c.rest()
        assert b"[DONE]" not in got and not got.endswith(b"0\r\n\r\n")
    with pytest.raises(ConnectionRefusedError):
        call(fleet.port(), "GET", "/health")
    assert fleet.chat("hi", i=1).status == 200
    fleet.fault("0:revive", i=1)
    assert eventually(lambda: alive(fleet))
    assert fleet.cached(words(60)) == 0


def alive(fleet):
    try:
        return call(fleet.port(), "GET", "/health").status == 200
    except OSError:
        return False


@pytest.mark.parametrize("kind,some", [("die-before", False), ("die-after", True)])
def test_death_around_the_first_byte(start, kind, some):
    fleet = Fleet(start, profile="llama-8b-h100")
    fleet.fault(f"{kind}=0.2,n=1")
    got, ended = raw_stream(fleet)
    assert ended and (b"data: " in got) == some and b"[DONE]" not in got
    assert eventually(lambda: alive(fleet))
    assert raw_stream(fleet, 1)[0].count(b"data: ") == 8 + 2


def test_slow_and_late(start):
    fleet = Fleet(start, profile="llama-8b-h100", args=["--jitter", 0])
    def took():
        begun = time.monotonic()
        fleet.chat("hi", max_tokens=30)
        return time.monotonic() - begun
    usual = took()
    fleet.fault("slow=4")
    assert took() > 2.5 * usual
    fleet.fault("clear\nwait=700")
    assert 0.7 < took() < 0.7 + 3 * usual


def test_health_can_fail(start):
    fleet = Fleet(start)
    fleet.fault("unhealthy")
    assert call(fleet.port(), "GET", "/health").status == 503
    assert fleet.chat("hi").status == 200


@pytest.mark.parametrize("spec", ["", "nonsense", "status", "status=99", "hang-before=3", "cut=x", "slow=0", "1-:die", "status=500,q=1", "status=500,p=2"])
def test_a_wrong_spec_is_refused_with_the_grammar(start, spec):
    if spec:
        fleet = Fleet(start)
        r = call(fleet.port(), "POST", "/sim/fault", "slow=2\n" + spec)
        assert r.status == 400 and b"SPEC = " in r.content
    p = start("kvasir-sim", "--fault", spec)
    assert p.wait() == 2 and "--fault" in p.text
