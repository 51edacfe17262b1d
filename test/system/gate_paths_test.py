"""The data port's paths, framing and strictness (issue 3, section 4)."""
import json
import re
import socket

import pytest

import client
from client import CHAT, STREAM
from conftest import eventually, free_port
from gateway import Gateway
from upstream import COMPLETION, DONE, Upstream, chunk, event, head, whole


@pytest.fixture
def up():
    with Upstream() as u:
        yield u


@pytest.fixture
def gw(start, up):
    return Gateway(start, up)


def test_own_paths(gw, up):
    assert gw.call("GET", "/health").status == 200
    assert gw.call("HEAD", "/health").status == 200
    assert gw.call("GET", "/ping").status == gw.call("POST", "/ping").status == 200
    assert "version" in gw.call("GET", "/version").json
    models = gw.call("GET", "/v1/models").json
    assert models["object"] == "list" and [m["id"] for m in models["data"]] == ["m"] and models["data"][0]["max_model_len"] == 4096
    assert not up.calls


def test_models_are_merged(start):
    with Upstream(models=("m", "alias")) as a, Upstream(models=("m",)) as b:
        gw = Gateway(start, a, b)
        assert sorted(m["id"] for m in gw.call("GET", "/v1/models").json["data"]) == ["alias", "m"]


@pytest.mark.parametrize("method,path", [("POST", p) for p in (
    "/sleep", "/wake_up", "/pause", "/resume", "/reset_prefix_cache", "/reset_mm_cache", "/collective_rpc", "/v1/load_lora_adapter",
    "/v1/unload_lora_adapter", "/nothing", "/v1/chat/completions/", "/v1/../sleep", "//sleep", "/%73leep")]
    + [("GET", p) for p in ("/server_info", "/metrics", "/is_sleeping", "/load", "/", "/docs")])
def test_administration_and_unknown_paths_are_never_proxied(gw, up, method, path):
    r = gw.call(method, path, b"{}" if method == "POST" else b"")
    assert r.status == 404 and r.json["error"]["code"] == "unknown_path" and r.headers["x-request-id"]
    assert not up.calls


def test_wrong_method_says_what_would_do(gw, up):
    r = gw.call("GET", "/v1/chat/completions")
    assert r.status == 405 and r.headers["allow"] == "POST" and r.json["error"]["type"] == "invalid_request_error"
    assert not up.calls


def test_allowed_paths_are_proxied(start, up):
    gw = Gateway(start, up, args=["--allow-paths", "/v1/custom,/server_info"])
    up.script = lambda c: c.send(whole({"path": c.target}))
    assert gw.call("POST", "/v1/custom?x=1", {"a": 1}).json == {"path": "/v1/custom?x=1"}
    assert gw.call("GET", "/server_info").json == {"path": "/server_info"}
    assert gw.call("POST", "/v1/customer", {"a": 1}).status == 404
    assert gw.settled()


@pytest.mark.parametrize("path,body", [
    ("/v1/embeddings", {"model": "m", "input": "x"}), ("/score", {"model": "m", "text_1": "a", "text_2": "b"}),
    ("/v1/rerank", {"model": "m", "query": "q", "documents": ["d"]}), ("/pooling", {"model": "m", "input": "x"}),
    ("/v1/messages", {"model": "m", "max_tokens": 4, "messages": [{"role": "user", "content": "x"}]}),
    ("/v1/messages/count_tokens", {"model": "m", "messages": [{"role": "user", "content": "x"}]}),
    ("/v1/responses", {"model": "m", "input": "x"}), ("/tokenize", {"model": "m", "prompt": "x"}),
    ("/v1/audio/speech", {"model": "m", "input": "x"})])
def test_case_vllm_router_179_every_path_is_proxied_and_counted(gw, up, path, body):
    up.script = lambda c: c.send(whole({"got": c.target, "same": c.json == body}))
    r = gw.call("POST", path, body)
    assert r.status == 200 and r.json == {"got": path, "same": True}
    line = gw.log(r.headers["x-request-id"])
    assert line["outcome"] == "done" and line["worker"] == up.url
    assert gw.settled()


def test_multipart_goes_to_the_model_it_names(gw, up):
    up.script = lambda c: c.send(whole({"n": len(c.body)}))
    body = (b'--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b\r\nContent-Disposition: form-data; name="file"; '
            b'filename="a.wav"\r\n\r\n' + bytes(range(256)) * 40 + b"\r\n--b--\r\n")
    with gw.client() as c:
        c.send(b"POST /v1/audio/transcriptions HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert c.response().json == {"n": len(body)}
    assert up.calls[0].body == body and "multipart/form-data" in up.calls[0].headers["content-type"]


# ---- bodies and framing


def test_bodies_pass_byte_for_byte(gw, up):
    body = '{ "messages" : [ {"role":"user","content":"h\\u00e9 \\ud83d\\ude00 ü"} ],\n\t"seed": 9007199254740993, "x": 1e400, "model":"m" }'
    answer = '{"id": "a" , "choices": [], "big": 9007199254740993,\n "u": "é", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}'
    up.script = lambda c: c.send(whole(answer))
    r = gw.chat(body)
    assert r.content == answer.encode() and up.calls[0].body == body.encode()


def test_case_aigw_805_chunked_upload(gw, up):
    """a 1 MB body in chunks arrives with its length"""
    up.script = lambda c: c.send(whole({"n": len(c.body)}))
    body = json.dumps({**CHAT, "messages": [{"role": "user", "content": "x" * (1 << 20)}]}).encode()
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        for i in range(0, len(body), 10007):
            c.send(chunk(body[i:i + 10007]))
        c.send(b"0\r\nX-Trailer: dropped\r\n\r\n")
        assert c.response().json == {"n": len(body)}
    call = up.calls[0]
    assert call.body == body and call.headers["content-length"] == str(len(body)) and "x-trailer" not in call.headers


@pytest.mark.parametrize("size", [32767, 32768, 32769, 1 << 20, 4 << 20, (32 << 20) - 200])
def test_case_aigw_827_large_bodies(gw, up, size):
    up.script = lambda c: c.send(whole({"n": len(c.body)}))
    body = json.dumps({**CHAT, "messages": [{"role": "user", "content": "x" * (size - 80)}]})
    assert gw.chat(body, seconds=30).json == {"n": len(body)}


def test_case_aigw_1662_large_answer_streams_through(gw, up):
    """an answer of 5 MB without a stream is passed on while it comes"""
    big = json.dumps({**COMPLETION, "pad": "x" * (5 << 20)})
    up.script = lambda c: c.send(whole(big))
    r = gw.chat(seconds=20)
    assert r.content == big.encode()
    line = gw.log(r.headers["x-request-id"])
    assert line["outcome"] == "done"


def test_expect_100_continue(gw, up):
    body = json.dumps(CHAT).encode()
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n"
               b"Content-Length: %d\r\n\r\n" % len(body))
        assert c.head().status == 100
        c.send(body)
        assert c.response().status == 200
    assert "expect" not in up.calls[0].headers


def test_expect_is_answered_with_the_refusal(gw, up):
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
        assert c.response().status == 413
    assert not up.calls


def test_informational_heads_of_workers_are_swallowed(gw, up):
    up.script = lambda c: c.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + whole(COMPLETION))
    r = gw.chat()
    assert r.status == 200 and r.json == COMPLETION and "link" not in r.headers


def test_worker_trailers_are_dropped(gw, up):
    up.script = lambda c: c.send(head(extra=["trailer: x-t"]) + chunk(json.dumps(COMPLETION)) + b"0\r\nx-t: 1\r\n\r\n")
    with gw.client() as c:
        r = c.request("POST", "/v1/chat/completions", CHAT).response()
        assert r.json == COMPLETION and "trailer" not in r.headers
        assert c.request("GET", "/health").response().status == 200     # no trailer bytes stayed in the connection


def test_keep_alive_and_pipelining_in_order(gw, up):
    up.script = lambda c: c.send(whole({"seed": c.json["seed"]}))
    with gw.client() as c:
        for i in range(3):
            assert c.request("POST", "/v1/chat/completions", {**CHAT, "seed": i}).response().json == {"seed": i}
        raw = b"".join(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                       % (len(b), b) for b in (json.dumps({**CHAT, "seed": i}).encode() for i in range(10, 15)))
        c.send(raw)
        assert [c.response().json["seed"] for _ in range(5)] == [10, 11, 12, 13, 14]
    assert gw.settled()


def test_http_1_0_client(gw, up):
    body = json.dumps(STREAM).encode()
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        r = c.response()
        assert r.status == 200 and r.content.endswith(DONE.encode()) and "transfer-encoding" not in r.headers


def test_worker_that_delimits_by_closing(gw, up):
    def script(c):
        c.send(b"HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n" + json.dumps(COMPLETION).encode())
        c.close()
    up.script = script
    r = gw.chat()
    assert r.whole and r.json == COMPLETION


@pytest.mark.parametrize("raw", [
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"Content-Length: +5\r\n\r\nhello",
    b"Content-Length: 5, 5\r\n\r\nhello",
    b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"X: a\r\n folded\r\nContent-Length: 0\r\n\r\n",
    b"X: a\x00b\r\nContent-Length: 0\r\n\r\n",
    b"Host: y\r\nContent-Length: 0\r\n\r\n",
    b"X: a\nContent-Length: 0\r\n\r\n",
])
def test_strict_against_smuggling(gw, up, raw):
    with gw.client() as c:
        c.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" + raw)
        r = c.response()
        assert 400 <= r.status <= 501 and r.status not in (404, 413)
        assert r.json["error"]["message"]
        assert c.rest() == b""                                           # the connection is not used again
    assert not up.calls


@pytest.mark.parametrize("body", ["{bad", "", "[]", "null", '{"model":"m"}', '{"model":5,"messages":[]}', '{"model":"m","messages":"x"}',
                                  '{"model":"m","messages":[{"role":"user","content":"\\ud800"}]}', '{"model":"m","model":"n","messages":[]}',
                                  b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}', "\0", "[" * 100000])
def test_case_production_stack_1017_malformed_bodies(gw, up, body):
    r = gw.chat(body)
    assert r.status == 400 and r.json["error"]["message"] and r.json["error"]["type"]
    assert r.headers["content-type"] == "application/json" and not up.calls


def test_unknown_model_and_missing_model(start, up):
    gw = Gateway(start, up)
    r = gw.chat({**CHAT, "model": "other"})
    assert r.status == 404 and r.json["error"]["code"] == "model_not_found" and r.json["error"]["param"] == "model"
    body = {k: v for k, v in CHAT.items() if k != "model"}
    assert gw.chat(body).status == 200
    with Upstream(models=("n",)) as second:
        second.root = "n"
        gw2 = Gateway(start, up, second)
        r = gw2.chat({**CHAT, "model": "n"})
        assert r.status == 200 and r.headers["x-kvasir-worker"] == second.url
        r = gw2.chat(body)
        assert r.status == 400 and r.json["error"]["param"] == "model" and "Several models" in r.json["error"]["message"], "two models: which is meant?"


def test_what_is_not_known_is_named(gw):
    """in the answer and in the log, bounded, and never in a metric's label"""
    r = gw.chat({**CHAT, "model": "no \u00fcber\n" + "x" * 300})
    assert r.status == 404 and r.json["error"]["message"].startswith("no pool serves the model 'no \u00fcber?xxx") and r.json["error"]["message"].endswith("x...'")
    r = gw.call("GET", "/v1/nothing%20here/" + "y" * 300 + "?key=secret")
    assert r.status == 404 and r.json["error"]["message"].startswith("the path /v1/nothing%20here/yyy") and "y... is not served" in r.json["error"]["message"]
    line = gw.log(r.headers["x-request-id"])
    assert line["path"] == "/v1/nothing%20here/" + "y" * 300 and "secret" not in str(line)
    assert gw.metric('kvasir_requests_total{path="other"') == 1 and gw.metric('kvasir_requests_total{path="/') == 0


def test_own_answers_count_their_bytes(gw):
    for r in (gw.call("GET", "/v1/models"), gw.call("GET", "/version"), gw.call("GET", "/nowhere"), gw.chat("{")):
        line = gw.log(r.headers["x-request-id"])
        assert int(line["bytes_out"]) == len(r.content) > 0, line
    r = gw.call("HEAD", "/v1/models")
    assert gw.log(r.headers["x-request-id"])["bytes_out"] == "0"


def test_a_model_by_its_name(start):
    """what an SDK's models.retrieve asks; names have slashes, escaped or not"""
    with Upstream(models=("Qwen/Qwen3-32B",)) as up:
        gw = Gateway(start, up)
        listed = gw.call("GET", "/v1/models").json["data"][0]
        for path in ("Qwen/Qwen3-32B", "Qwen%2FQwen3-32B", "Qwen%2fQwen3%2D32B?x=1"):
            r = gw.call("GET", f"/v1/models/{path}")
            assert r.status == 200 and {**r.json, "created": 0} == {**listed, "created": 0}, path
            assert gw.log(r.headers["x-request-id"])["outcome"] == "own"
        for path, name in (("Qwen", "Qwen"), ("Qwen/Qwen3-32B/", "Qwen/Qwen3-32B/"), ("a%20b", "a b"), ("a%2", "a%2")):
            r = gw.call("GET", f"/v1/models/{path}")
            e = r.json["error"]
            assert r.status == 404 and (e["code"], e["param"], e["message"]) == ("model_not_found", "model", f"no pool serves the model '{name}'"), e
        r = gw.call("DELETE", "/v1/models/Qwen")
        assert r.status == 405 and r.headers["allow"] == "GET, HEAD"


def test_every_log_line_is_pairs_with_one_form_of_time(gw):
    gw.chat()
    gw.call("GET", "/nowhere")
    assert eventually(lambda: "status=404" in gw.process.text, 3)
    for line in gw.process.text.splitlines():
        assert re.fullmatch(r'ts=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=\w+ event=\w+( \w+=("([^"\\]|\\.)*"|[^\s"]*))*', line), line


# ---- headers


def test_case_production_stack_880_hop_by_hop_headers(gw, up):
    up.script = lambda c: c.send(whole(COMPLETION, extra=["Connection: keep-alive, X-Drop", "Keep-Alive: timeout=5", "TE: trailers", "X-Drop: 1",
                                                          "Server: uvicorn", "X-Keep: 2", "Proxy-Authenticate: x", "x-session-id: s1"],
                                       content_type="application/json; charset=utf-8"))
    r = gw.chat(headers=["Connection: keep-alive, X-Mine", "X-Mine: 1", "Keep-Alive: 5", "TE: trailers", "Proxy-Authorization: x", "Upgrade: h2c",
                         "X-Pass: yes", "Accept-Encoding: gzip, br", "traceparent: 00-a-b-01", "Authorization: Bearer secret", "X-Data-Parallel-Rank: 3"])
    names = [k.lower() for k, _ in r.fields]
    assert r.headers["content-type"] == "application/json; charset=utf-8" and names.count("server") == 1 and r.headers["x-keep"] == "2"
    assert not {"keep-alive", "te", "x-drop", "proxy-authenticate"} & set(names) and r.headers["x-session-id"] == "s1"
    sent = up.calls[0].headers
    assert not {"x-mine", "keep-alive", "te", "proxy-authorization", "upgrade", "x-data-parallel-rank"} & set(sent)
    assert sent["x-pass"] == "yes" and sent["traceparent"] == "00-a-b-01" and sent["authorization"] == "Bearer secret"
    assert sent["host"] == up.url[7:]


def test_an_absolute_target_is_its_path(gw, up):
    """RFC 9112 3.2.2: a server takes the absolute form; a worker never sees whose name the client put there"""
    for target, status in (("http://other:1/v1/chat/completions?x=1", 200), ("http://other:1/sleep", 404), ("http://other:1/health", 200)):
        assert gw.call("POST" if "chat" in target else "GET", target, CHAT if "chat" in target else b"").status == status
    assert [c.head for c in up.calls] == ["POST /v1/chat/completions?x=1 HTTP/1.1"] and up.calls[0].headers["host"] == up.url[7:]


def test_a_worker_does_not_speak_for_us(gw, up):
    ours = ["x-request-id", "x-kvasir-request-id", "x-kvasir-worker", "x-kvasir-explain", "x-kvasir-reason"]
    up.script = lambda c: c.send(whole(COMPLETION, extra=[f"{name}: forged" for name in ours]))
    assert "forged" not in gw.chat().headers.values()


def test_case_containarium_826_accept_encoding_is_identity(gw, up):
    gw.chat(headers=["Accept-Encoding: gzip"])
    assert up.calls[0].headers["accept-encoding"] == "identity"


def test_case_gie_1489_request_ids(gw, up):
    """our own id goes upstream, unique even when clients send the same one; the client's comes back and is logged"""
    first, second = gw.chat(headers=["X-Request-Id: same"]), gw.chat(headers=["X-Request-Id: same"])
    assert first.headers["x-request-id"] == second.headers["x-request-id"] == "same"
    ours = [c.headers["x-request-id"] for c in up.calls]
    assert len(set(ours)) == 2 and "same" not in ours and ours[0] == first.headers["x-kvasir-request-id"]
    assert gw.log(ours[0])["client_id"] == "same"
    bare = gw.chat()
    assert bare.headers["x-request-id"] == up.calls[2].headers["x-request-id"]
    hostile = gw.chat(headers=["X-Request-Id: a b\"c"])
    assert hostile.headers["x-request-id"] == up.calls[3].headers["x-request-id"]


def test_worker_named_and_explained(gw, up):
    r = gw.chat(headers=["x-kvasir-explain: 1"])
    assert r.headers["x-kvasir-worker"] == up.url and "reason=" in r.headers["x-kvasir-explain"] and up.url in r.headers["x-kvasir-explain"]
    assert "x-kvasir-explain" not in gw.chat().headers
    assert "x-kvasir-explain" not in up.calls[0].headers


def test_explain_can_be_switched_off(start, up):
    gw = Gateway(start, up, args=["--explain", "off"])
    assert "x-kvasir-explain" not in gw.chat(headers=["x-kvasir-explain: 1"]).headers


def own_address():
    """an address of this machine that is not its loopback, or None"""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))                                  # sends nothing
        except OSError:
            return None
        return None if s.getsockname()[0].startswith("127.") else s.getsockname()[0]


@pytest.mark.parametrize("who,seen", [("loopback", False), ("all", True)])
def test_explain_is_for_this_machine_unless_all_may_ask(start, up, who, seen):
    if not (address := own_address()):
        pytest.skip("this machine has no address but its loopback")
    gw = Gateway(start, up, args=["--explain", who, "--listen", f"0.0.0.0:{(port := free_port())}"], ready=False)
    gw.port = port
    assert eventually(lambda: gw._ready(1), 10), gw.process.text
    for host, may in (("127.0.0.1", True), (address, seen)):
        with socket.create_connection((host, port), 5) as s:
            data = json.dumps(CHAT)
            s.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nx-kvasir-explain: 1\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n{data}".encode())
            answer = b"".join(iter(lambda: s.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200") and (b"\r\nx-kvasir-explain: reason=" in answer) == may, (host, answer[:500])


def test_case_gie_847_errors_of_workers_pass_as_they_are(gw, up):
    up.script = lambda c: c.send(whole("<html>gone wrong</html>", 500, content_type="text/html", extra=["x-why: disk"]))
    r = gw.chat()
    assert r.status == 500 and r.content == b"<html>gone wrong</html>" and r.headers["content-type"] == "text/html" and r.headers["x-why"] == "disk"
    error = {"error": {"message": "too long", "type": "BadRequestError", "param": None, "code": 400}}
    up.script = lambda c: c.send(whole(error, 400))
    assert gw.chat(STREAM).json == error
    assert gw.settled()


def test_head_of_a_response(gw, up):
    up.script = lambda c: c.send(whole({"id": "resp_1", "object": "response", "status": "completed"}))
    gw.call("POST", "/v1/responses", {"model": "m", "input": "x"})
    up.script = lambda c: c.send(head(length=99) if c.method == "HEAD" else whole({}))
    with gw.client() as c:
        r = c.request("HEAD", "/v1/responses/resp_1").response(head_request=True)
        assert r.status == 200 and r.headers["content-length"] == "99"
        assert c.request("GET", "/health").response().status == 200


# ---- responses stay with their worker


def test_responses_go_to_the_worker_that_made_them(start):
    def script(c):
        if c.method == "POST" and c.target == "/v1/responses":
            c.upstream.n = getattr(c.upstream, "n", 0) + 1
            c.send(whole({"id": f"resp_{c.upstream.port}_{c.upstream.n}", "object": "response", "status": "completed", "output": []}))
        else:
            c.send(whole({"from": c.upstream.port}))
    with Upstream(script) as a, Upstream(script) as b:
        gw = Gateway(start, a, b, args=["--routing", "round-robin"])
        made = [gw.call("POST", "/v1/responses", {"model": "m", "input": str(i)}) for i in range(8)]
        assert {m.headers["x-kvasir-worker"] for m in made} == {a.url, b.url}
        for m in made:
            port = int(m.json["id"].split("_")[1])
            assert gw.call("GET", f"/v1/responses/{m.json['id']}").json == {"from": port}
            assert gw.call("POST", f"/v1/responses/{m.json['id']}/cancel").json == {"from": port}
            follow = gw.call("POST", "/v1/responses", {"model": "m", "input": "more", "previous_response_id": m.json["id"]})
            assert follow.headers["x-kvasir-worker"] == m.headers["x-kvasir-worker"]
        r = gw.call("GET", "/v1/responses/resp_unknown")
        assert r.status == 404 and r.json["error"]["code"] == "response_gone"
        r = gw.call("POST", "/v1/responses", {"model": "m", "input": "x", "previous_response_id": "resp_unknown"})
        assert r.status == 404 and r.json["error"]["param"] == "previous_response_id"
        assert gw.settled()


def test_streamed_responses_are_remembered_and_their_usage_read(gw, up):
    """llm-d GIE 2482: usage nested under response.completed"""
    events = [event({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_s", "usage": None}}, "response.created"),
              event({"type": "response.output_text.delta", "sequence_number": 1, "delta": "Hi"}, "response.output_text.delta"),
              event({"type": "response.completed", "sequence_number": 2, "response": {"id": "resp_s", "usage": {
                  "input_tokens": 11, "output_tokens": 2, "total_tokens": 13, "input_tokens_details": {"cached_tokens": 6}}}}, "response.completed")]
    up.script = lambda c: c.send(head(content_type="text/event-stream") + b"".join(map(chunk, events)) + b"0\r\n\r\n")
    r = gw.call("POST", "/v1/responses", {"model": "m", "input": "x", "stream": True})
    assert r.content == "".join(events).encode() and r.whole
    line = gw.log(r.headers["x-request-id"])
    assert (line["prompt_tok"], line["cached_tok"], line["output_tok"]) == ("11", "6", "2")
    up.script = lambda c: c.send(whole({"ok": True}))
    assert gw.call("GET", "/v1/responses/resp_s").json == {"ok": True}


# ---- a worker's own key


def test_own_key_replaces_the_clients(start, up, tmp_path):
    (tmp_path / "k.yaml").write_text(f"""apiVersion: kvasir.dev/v1alpha1
kind: WorkerPool
metadata: {{name: p}}
spec:
  apiKey: worker-secret
  workers: [{{url: "{up.url}"}}]
""")
    gw = Gateway(start, args=["-c", tmp_path / "k.yaml"], ready=False)
    assert eventually(lambda: gw_ready(gw), 8), gw.process.text
    gw.chat(headers=["Authorization: Bearer client"])
    assert up.calls[0].headers["authorization"] == "Bearer worker-secret"
    assert any(h.get("authorization") == "Bearer worker-secret" for _, h in up.own_headers)
    up.script = lambda c: c.send(whole({"error": "no"}, 401))
    r = gw.chat()
    assert r.status == 502 and r.json["error"]["code"] == "upstream_auth"
    assert "worker-secret" not in gw.process.text


def test_the_pool_may_keep_the_clients_key(start, up, tmp_path):
    (tmp_path / "k.yaml").write_text(f"""apiVersion: kvasir.dev/v1alpha1
kind: WorkerPool
metadata: {{name: p}}
spec:
  authorization: drop
  workers: [{{url: "{up.url}"}}]
""")
    gw = Gateway(start, args=["-c", tmp_path / "k.yaml"], ready=False)
    assert eventually(lambda: gw_ready(gw), 8), gw.process.text
    gw.chat(headers=["Authorization: Bearer client"])
    assert "authorization" not in up.calls[0].headers


def gw_ready(gw):
    try:
        return gw.call("GET", "/health").status == 200
    except (OSError, AssertionError):
        return False


def test_a_401_without_a_key_of_ours_is_the_clients(gw, up):
    up.script = lambda c: c.send(whole({"error": "Unauthorized"}, 401))
    assert gw.chat().status == 401


def test_refuses_when_no_worker_is_usable(start):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{s.getsockname()[1]}"
    gw = Gateway(start, dead, ready=False)
    assert eventually(lambda: gw_status(gw) == 503, 5)
    r = gw.chat()
    assert r.status in (404, 502, 503) and r.json["error"]["message"]
    assert gw.call("GET", "/version").status == 200


def gw_status(gw):
    try:
        return gw.call("GET", "/health").status
    except (OSError, AssertionError):
        return 0
