"""Rows of the shared cases (gateways.md) that had no test of their own name."""
import json
import pathlib
import socket
import threading
import time

import client
import pytest
from client import CHAT, STREAM
from conftest import eventually
from gateway import Gateway
from upstream import COMPLETION, DONE, Upstream, chunk, delta, event, head, whole

SSE = head(content_type="text/event-stream; charset=utf-8")
END = b"0\r\n\r\n"
MESSAGES = {"model": "m", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "x"}]}
RESPONSES = {"model": "m", "input": "x", "stream": True}
ERRORS = pathlib.Path(__file__).resolve().parents[2] / "doc/reference/errors.md"


@pytest.fixture(scope="module")
def pair():
    with Upstream() as a, Upstream() as b:
        yield a, b


@pytest.fixture(scope="module")
def shared(start_module, pair):
    return Gateway(start_module, *pair)


@pytest.fixture
def gw(shared, pair):
    for up in pair:
        up.calls.clear()
    yield shared
    assert shared.settled() and shared.process.running()


def play(pair, script):
    for up in pair:
        up.script = script


def calls(pair):
    return [c for up in pair for c in up.calls]


def last_event(content):
    text = content.decode().rstrip("\n").split("\n\n")[-1]
    return text, json.loads(text[text.index("data: ") + 6:].split("\n")[0])


def test_case_mcp_go_913_integers_keep_their_digits(gw, pair):
    """above 2^53, in arguments of tools, both ways"""
    play(pair, lambda c: c.send(whole('{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{\\"id\\":9007199254740993}"}}]}}],"n":18446744073709551617,"x":0.10000000000000000555}')))
    body = ('{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\\"id\\":9007199254740993}"}}]},'
            '{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"maximum":9007199254740993}}}],"seed":9223372036854775807}')
    r = gw.chat(body)
    assert calls(pair)[0].body == body.encode()
    assert b"9007199254740993" in r.content and b"18446744073709551617" in r.content and b"0.10000000000000000555" in r.content


def test_case_bifrost_5354_apisix_13662_a_messages_stream_counts_every_token_once(gw, pair):
    """the prompt is in the first event, what of it was cached only in the last, and there the prompt leaves it out: 21 in, 16 of them cached, 5 out"""
    events = [event({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 21, "output_tokens": 0}}}, "message_start"),
              event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}, "content_block_delta"),
              event({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                     "usage": {"input_tokens": 2, "cache_read_input_tokens": 16, "cache_creation_input_tokens": 3, "output_tokens": 5}}, "message_delta"),
              event({"type": "message_stop"}, "message_stop")]
    play(pair, lambda c: c.send(SSE + b"".join(map(chunk, events)) + END))
    before = sums(gw)
    r = gw.call("POST", "/v1/messages", MESSAGES)
    assert r.whole and r.content == "".join(events).encode()
    line = gw.log(r.headers["x-request-id"])
    assert (line["prompt_tok"], line["cached_tok"], line["output_tok"]) == ("21", "16", "5")
    assert [b - a for a, b in zip(before, sums(gw))] == [21, 16, 5]


def sums(gw):
    return [gw.metric(f"kvasir_{what}_tokens_total") for what in ("prompt", "cached", "output")]


@pytest.mark.parametrize("key", ["second", ""], ids=["own", "the_clients"])
def test_case_litellm_13738_27513_each_attempt_has_its_own_headers(start, tmp_path, key):
    """the first choice has another key and refuses the connection: the second gets each field once, and nothing that was meant for the first"""
    with Upstream() as first, Upstream() as second:
        for name, up, own in (("a", first, "first-secret"), ("b", second, key)):
            (tmp_path / f"{name}.yaml").write_text(f"apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {{name: {name}}}\nspec:\n"
                                                   + (f"  apiKey: {own}\n" if own else "") + f"  workers: [{up.url}]\n")
        gw = Gateway(start, args=["-c", tmp_path / "a.yaml", "-c", tmp_path / "b.yaml", "--probe-interval", "1m", "--tokens", "none", "--routing", "round-robin"], ready=False)
        assert eventually(lambda: healthy(gw) == 2, 8), gw.process.text
        first.stop()
        time.sleep(0.1)
        for _ in range(3):                      # the first of two turns finds out
            assert gw.chat(headers=["Authorization: Bearer clients", "X-Kept: 1"]).status == 200
        assert gw.metric("kvasir_switches_total") >= 1 and len(second.calls) == 3
        for call in second.calls:
            once = {k: call.headers[k] for k in ("authorization", "content-type", "content-length", "accept-encoding", "x-kept", "host")}
            assert once == {"authorization": f"Bearer {key or 'clients'}", "content-type": "application/json", "content-length": str(len(call.body)),
                            "accept-encoding": "identity", "x-kept": "1", "host": second.url[7:]}       # twice would be joined by a comma
            assert call.json == CHAT and "first-secret" not in str(call.headers)
        assert gw.settled()


def healthy(gw):
    try:
        return sum(w["state"] == "healthy" and bool(w["models"]) for w in gw.workers())
    except (OSError, AssertionError):
        return 0


def errors_counted(gw):
    lines = client.call(gw.admin, "GET", "/metrics").content.decode().splitlines()
    return sum(float(x.rsplit(" ", 1)[1]) for x in lines if x.startswith("kvasir_worker_answers_total") and 'outcome="worker_error"' in x)


def test_case_portkey_722_an_error_event_reaches_the_client_and_the_counters(gw, pair):
    """`event: error` in the Anthropic dialect: shown as it came, counted, and not sent to another worker"""
    events = [event({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 3, "output_tokens": 0}}}, "message_start"),
              event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "error")]
    play(pair, lambda c: c.send(SSE + b"".join(map(chunk, events)) + END))
    before = errors_counted(gw)
    r = gw.call("POST", "/v1/messages", MESSAGES)
    assert r.content == "".join(events).encode() and len(calls(pair)) == 1
    assert gw.log(r.headers["x-request-id"])["outcome"] == "worker_error"
    assert errors_counted(gw) == before + 1


@pytest.mark.parametrize("body", [CHAT, STREAM], ids=["whole", "stream"])
def test_case_litellm_38610_no_200_before_a_worker_said_so(start, body):
    """the first refuses the connection, the second dies before its head: a real 502, no invented beginning of a stream"""
    def die(c):
        time.sleep(0.1)
        c.close()
    with Upstream() as first, Upstream(die) as second:
        gw = Gateway(start, first, second, args=["--probe-interval", "10s"])
        first.stop()
        for _ in range(3):
            r = gw.chat(body)
            assert r.status == 502 and r.headers["content-type"] == "application/json" and r.json["error"]["code"] == "upstream_early_close"
        assert gw.settled()


def test_case_litellm_37322_the_head_is_not_held_until_the_first_token(gw, pair):
    """a load balancer in front that wants a byte in time gets the head as soon as the worker gives it"""
    go = threading.Event()

    def script(c):
        c.send(SSE)
        go.wait(5)
        c.send(chunk(event(delta("x"))) + chunk(DONE) + END)
    play(pair, script)
    with gw.client() as c:
        t = time.monotonic()
        c.request("POST", "/v1/chat/completions", STREAM)
        r = c.head()
        assert r.status == 200 and time.monotonic() - t < 1 and not go.is_set()
        go.set()
        assert c.body(r).content.endswith(DONE.encode())


def test_case_gomodel_1048_a_stream_that_goes_idle_after_bytes_were_sent(start, pair):
    """the status is 200 already: a terminal error event, then the end; and the page of errors knows its name"""
    play(pair, lambda c: (c.send(SSE + chunk(event(delta("x")))), c.sleep(5)))
    gw = Gateway(start, *pair, args=["--stall-timeout", "300ms"])
    r = gw.chat(STREAM)
    assert r.status == 200 and not r.whole and last_event(r.content)[1]["error"]["code"] == "timeout_stall"
    assert "`timeout_stall`" in ERRORS.read_text() and gw.settled()


@pytest.mark.parametrize("choices", [[], None])
def test_case_omniroute_3424_nothing_is_invented(gw, pair, choices):
    """an answer without a choice stays what it was: this gateway passes bytes, it makes no messages"""
    answer = json.dumps({**COMPLETION, "choices": choices}).encode()
    play(pair, lambda c: c.send(whole(answer)))
    assert gw.chat().content == answer


def test_case_litellm_31467_a_body_names_no_upstream(gw, pair):
    """workers come from the configuration only; what a body says of addresses is the worker's to read"""
    play(pair, lambda c: c.send(whole(COMPLETION)))
    with socket.create_server(("127.0.0.1", 0)) as evil:
        url = f"http://127.0.0.1:{evil.getsockname()[1]}"
        body = {**CHAT, "api_base": url, "base_url": url, "custom_llm_provider": "x", "endpoint": url}
        r = gw.chat(body, headers=["X-Upstream: " + url, "X-Kvasir-Worker: " + url, "X-Forwarded-Host: " + url[7:]])
        with gw.client() as c:
            c.send(f"POST {url}/v1/chat/completions HTTP/1.1\r\nHost: {url[7:]}\r\nContent-Length: 2\r\n\r\n{{}}")
            assert c.response().status >= 400
        evil.settimeout(0.3)
        with pytest.raises(TimeoutError):
            evil.accept()
    assert r.status == 200 and r.headers["x-kvasir-worker"] in [up.url for up in pair] and calls(pair)[0].json == body


@pytest.mark.parametrize("path,body,events", [
    ("/v1/chat/completions", STREAM, [event(delta("x"))]),
    ("/v1/messages", MESSAGES, [event({"type": "message_start", "message": {"id": "m1"}}, "message_start"),
                                event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}, "content_block_delta")]),
    ("/v1/responses", RESPONSES, [event({"type": "response.created", "sequence_number": 0, "response": {"id": "r1"}}, "response.created")])])
def test_case_stream_that_ends_after_the_last_delta_has_a_terminal_event(gw, pair, path, body, events):
    """section I: no usage, no [DONE] or message_stop, although the transfer itself ended well. The connection of a path whose
    prompt is not read (messages, responses) says so only by ending early"""
    def close(c):
        c.send(SSE + b"".join(map(chunk, events)))
        time.sleep(0.05)
        c.close()
    play(pair, close)
    r = gw.call("POST", path, body)
    assert not r.whole and b"[DONE]" not in r.content and b"message_stop" not in r.content
    text, data = last_event(r.content)
    assert data["error"]["type"] if path != "/v1/responses" else data["type"] == "error"
    assert text.startswith("data: " if path.startswith("/v1/chat") else "event: error\n")


def test_case_error_names_are_those_of_the_dialect(start):
    """section I: internal_server_error and service_unavailable_error are no names of the Anthropic API"""
    with Upstream() as up:
        gw = Gateway(start, up, args=["--probe-interval", "10s"])
        r = gw.call("POST", "/v1/messages", {**MESSAGES, "model": "nobody"})
        assert r.status == 404 and r.json["type"] == "error" and r.json["error"]["type"] == "not_found_error"
        r = gw.call("POST", "/v1/messages", "{bad")
        assert r.status == 400 and r.json["error"]["type"] == "invalid_request_error"
        up.script = lambda c: c.close()
        time.sleep(0.1)
        r = gw.call("POST", "/v1/messages", MESSAGES)
        assert r.status == 502 and r.json["error"]["type"] == "api_error"
        up.stop()
        for _ in range(3):
            r = gw.call("POST", "/v1/messages", MESSAGES)
            assert r.status in (502, 503) and r.json["error"]["type"] in ("api_error", "overloaded_error")
        assert gw.settled()


def test_case_litellm_15799_no_key_in_any_line_of_the_log(start, tmp_path):
    """a key in the URL, in the client's header, in the worker's own; with a failing worker and every level of log"""
    (tmp_path / "p.yaml").write_text("apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: p}\nspec:\n  apiKey: wsecret\n  workers: [http://127.0.0.1:9]\n")
    with Upstream(lambda c: c.send(whole({"error": "x"}, 500))) as up:
        gw = Gateway(start, up, args=["-c", tmp_path / "p.yaml", "--log-level", "debug"], ready=False)
        end = time.monotonic() + 8
        while time.monotonic() < end:
            try:
                if gw.call("GET", "/health").status == 200:
                    break
            except OSError:
                time.sleep(0.05)
        for path in ("/v1/chat/completions?key=qsecret", "/v1/embeddings?api_key=qsecret", "/nothing?key=qsecret"):
            gw.call("POST", path, CHAT, headers=["Authorization: Bearer hsecret", "x-api-key: xsecret", "Cookie: csecret"])
        time.sleep(0.3)
        shown = gw.process.text + client.call(gw.admin, "GET", "/metrics").content.decode() + client.call(gw.admin, "GET", "/api/v1/decisions").content.decode()
        for secret in ("qsecret", "hsecret", "xsecret", "csecret", "wsecret"):
            assert secret not in shown
