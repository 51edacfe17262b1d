"""The admin port: paths, metrics a Prometheus can read, decisions, explain."""
import re

import client
from conftest import eventually
from gateway import Gateway
from sim import Fleet, words


def admin(g, path, method="GET", body=b""):
    return client.call(g.admin, method, path, body)


def fleet_and_gateway(start, n=2):
    fleet = Fleet(start, n)
    return fleet, Gateway(start, *[fleet.url(i) for i in range(n)], args=["--events", "true"])


def test_paths(start):
    fleet, g = fleet_and_gateway(start, 1)
    assert admin(g, "/livez").content == b"ok\n"
    assert admin(g, "/").status == 200
    assert admin(g, "/readyz").json["ready"] is True
    for path in "/api/v1/workers /api/v1/pools /api/v1/index /api/v1/tokenizers /api/v1/decisions".split():
        r = admin(g, path)
        assert r.status == 200 and r.headers["content-type"] == "application/json", path
        assert admin(g, path, "HEAD").content == b""
    assert admin(g, "/nowhere").status == 404 and admin(g, "/nowhere").json["error"]["code"] == "unknown_path"
    assert admin(g, "/metrics", "POST", b"x").status == 405
    assert admin(g, "/api/v1/explain").status == 405
    assert admin(g, "/api/v1/decisions/none").status == 404
    assert g.call("GET", "/metrics").status == 404, "the data port shows none of it"
    assert fleet.process.running()


SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (NaN|[+-]?Inf|[+-]?[0-9.]+(?:e[+-]?[0-9]+)?)$')


def families(text):
    """name -> type; fails on what promtool check metrics would name"""
    kinds, helps, seen, current, closed = {}, {}, set(), None, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, text_of = line[7:].split(" ", 1)
            assert name not in helps and text_of, line
            helps[name] = text_of
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name not in kinds and kind in ("counter", "gauge", "histogram"), line
            kinds[name] = kind
            if current:
                closed.add(current)
            current = name
        else:
            m = SAMPLE.match(line)
            assert m, line
            base = m[1] if m[1] in kinds else re.sub(r"_(bucket|sum|count)$", "", m[1])
            assert base == current and base not in closed, f"{line}: outside its family"
            assert (m[1], m[2]) not in seen, f"twice: {line}"
            seen.add((m[1], m[2]))
            if kinds[base] == "histogram":
                assert m[1] != base
    for name, kind in kinds.items():
        assert name in helps, name
        assert name.startswith("kvasir_") and re.fullmatch(r"[a-z0-9_]+", name), name
        assert (kind == "counter") == name.endswith("_total"), name
        assert not re.search(r"(milliseconds|_ms|_us|_mb|_kb)(_|$)", name), f"{name}: base units"
    return kinds


def test_metrics_are_clean_and_documented(start):
    fleet, g = fleet_and_gateway(start)
    for i in range(6):
        g.chat({"model": "m", "messages": [{"role": "user", "content": words(100, i % 2)}], "max_tokens": 2, "stream": i % 2 == 1})
    g.chat({"model": "nobody\"s\n\\"})
    kinds = families(admin(g, "/metrics").content.decode())
    for name in ("kvasir_worker_in_flight_requests kvasir_worker_predicted_exact_ratio kvasir_index_bytes kvasir_config_ok kvasir_ready kvasir_worker_events_lag_seconds "
                 "kvasir_worker_kv_usage_ratio kvasir_feed_requests_total kvasir_loop_stalls_total").split():
        assert name in kinds, name
    import pathlib
    page = pathlib.Path(__file__).resolve().parents[2] / "doc/reference/metrics.md"
    missing = [n for n in kinds if f"`{n}`" not in page.read_text()]
    assert not missing, missing
    assert fleet.process.running()


def test_ready_says_why_not(start):
    g = Gateway(start, "http://127.0.0.1:9", ready=False)
    assert eventually(lambda: _status(g) == 503, 5)
    assert eventually(lambda: any("no connection" in r for r in admin(g, "/readyz").json["reasons"]), 5), admin(g, "/readyz").json
    assert admin(g, "/livez").status == 200


def _status(g):
    try:
        return admin(g, "/readyz").status
    except OSError:
        return 0


def test_decisions(start):
    fleet, g = fleet_and_gateway(start)
    text = words(200)
    ids = []
    for _ in range(3):
        r = g.chat({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 2})
        ids.append(r.headers["x-request-id"])
        assert eventually(lambda: sum(w["index_blocks"] for w in g.workers()) > 3, 3)
    got = admin(g, "/api/v1/decisions?last=2").json["decisions"]
    assert [d["request_id"] for d in got] == [ids[2], ids[1]]
    for query in ("last=x", "last=0", "last=-1", "last", "first=1", "last=1&x=2"):
        r = admin(g, f"/api/v1/decisions?{query}")
        assert r.status == 400 and "allowed is last=N" in r.json["error"]["message"], query
    assert len(admin(g, "/api/v1/decisions?last=%32").json["decisions"]) == 2
    for query, what in (("last=5&last=6", "twice"), ("last=%3", "hexadecimal"), ("last=%zz", "hexadecimal"), ("last=%00", "hexadecimal"), ("last=5%00", "hexadecimal")):
        r = admin(g, f"/api/v1/decisions?{query}")
        assert r.status == 400 and what in r.json["error"]["message"], (query, r.content)
    d = admin(g, f"/api/v1/decisions/{ids[2]}").json
    assert d == {**got[0], "age_ms": d["age_ms"]} and d["outcome"] == "done" and d["ids"] == "keys"
    assert len(d["candidates"]) == 2 and sum(c["chosen"] for c in d["candidates"]) == 1
    chosen = next(c for c in d["candidates"] if c["chosen"])
    assert chosen["hit_tokens"] == d["cached_tokens_reported"] > 0 and chosen["worker"] in (fleet.url(0), fleet.url(1))


def test_the_access_line_tells_the_whole_request(start):
    fleet = Fleet(start, 2)
    g = Gateway(start, fleet.url(0), fleet.url(1), args=["--events", "true", "--tokens-budget", "5s"])
    body = {"model": "m", "messages": [{"role": "user", "content": words(200)}], "max_tokens": 5, "stream": True}
    assert g.chat(body).status == 200
    assert eventually(lambda: sum(w["index_blocks"] for w in g.workers()) > 3, 3)
    r = g.chat(body)
    line = g.log(r.headers["x-request-id"])
    assert line["worker"] == r.headers["x-kvasir-worker"] and line["reason"] == "sticky" and line["ids"] == "keys", line
    assert int(line["prompt_tok"]) > int(line["cached_tok"]) == int(line["overlap_tok"]) > 150 and line["output_tok"] == "5", line
    assert float(line["ttft_predicted_ms"]) > 0 and 0 < float(line["ttft_ms"]) <= float(line["duration_ms"]), line
    assert (line["status"], line["outcome"], line["fault"], line["model"], line["path"]) == ("200", "done", "-", "m", "chat_completions"), line
    refused = g.log(g.chat({**body, "model": "nobody"}).headers["x-request-id"])
    assert refused["status"] == "404" and refused["outcome"] != "done" and "worker" not in refused, refused
    assert g.process.text.count(f"id={r.headers['x-request-id']} ") == 1 and fleet.process.running()


def test_explain_sends_nothing(start):
    fleet, g = fleet_and_gateway(start)
    text = words(200)
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 2}
    dry = admin(g, "/api/v1/explain?path=/v1/chat/completions", "POST", body)
    assert dry.status == 200, dry.content
    d = dry.json["decision"]
    assert dry.json["prompt_tokens"] > 200 and dry.json["ids"] == "keys" and len(d["candidates"]) == 2
    assert g.in_flight() == 0 and sum(w["requests"] for w in g.workers()) == 0
    real = g.chat(body)
    assert eventually(lambda: sum(w["index_blocks"] for w in g.workers()) > 3, 3)
    again = admin(g, "/api/v1/explain?path=/v1/chat/completions", "POST", body).json["decision"]
    assert next(c for c in again["candidates"] if c["chosen"])["worker"] == real.headers["x-kvasir-worker"]
    escaped = admin(g, "/api/v1/explain?path=%2Fv1%2Fcompletions", "POST", {"model": "m", "prompt": text})
    assert escaped.status == 200 and escaped.json["prompt_tokens"] < dry.json["prompt_tokens"], escaped.content
    for query in ("path=%2", "path=/v1/completions&path=/v1/completions", "path", "path=", "last=1"):
        r = admin(g, f"/api/v1/explain?{query}", "POST", body)
        assert r.status == 400 and "allowed is path=PATH" in r.json["error"]["message"], query
    assert admin(g, "/api/v1/explain?path=%252Fv1%252Fcompletions", "POST", body).status == 404
    assert admin(g, "/api/v1/explain", "POST", {**body, "model": "nobody"}).status == 404
    assert admin(g, "/api/v1/explain", "POST", b"{").status == 400
    assert fleet.process.running()


def test_explain_with_more_hands(start):
    fleet = Fleet(start, 1)
    g = Gateway(start, fleet.url(), args=["--threads", "2", "--events", "true"])
    body = {"model": "m", "messages": [{"role": "user", "content": words(200)}]}
    for _ in range(20):
        r = admin(g, "/api/v1/explain", "POST", body)
        assert r.status == 200 and r.json["decision"]["candidates"], r.content
    families(admin(g, "/metrics").content.decode())


def test_reset_clients_of_the_admin_port_cost_nothing(start):
    fleet, g = fleet_and_gateway(start, 1)
    for _ in range(50):
        c = client.Client(g.admin)
        c.send("POST /api/v1/explain HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        c.reset()
        c = client.Client(g.admin)
        c.request("GET", "/metrics")
        c.reset()
    assert admin(g, "/livez").status == 200 and fleet.process.running()


def pieces(g, path):
    """the sizes of the answer's chunks: what was written in one go, the loop free for others in between"""
    sizes = []
    with client.Client(g.admin) as c:
        c.request("GET", path)
        assert c.head().headers.get("transfer-encoding") == "chunked"
        while not sizes or sizes[-1]:
            sizes.append(int(c.until(b"\r\n"), 16))
            c.take(sizes[-1] + 2)
    return sizes[:-1]


def test_what_grows_with_the_fleet_is_written_in_small_pieces(start):
    """400 workers' metrics took one turn of 100 to 300 ms of the loop that also serves the data port"""
    n = 48
    fleet = Fleet(start, n, ["--no-events", "--blocks", 200])
    g = Gateway(start, *[fleet.url(i) for i in range(n)], args=["--tokens", "none"])
    with g.client() as c:
        for i in range(60):
            c.request("POST", "/v1/chat/completions", {**client.CHAT, "max_tokens": 1, "messages": [{"role": "user", "content": words(5, i)}]})
            assert c.response().status == 200
    for path, whole, part in (("/metrics", 180_000, 50_000), ("/api/v1/workers", 30_000, 12_000), ("/api/v1/decisions?last=60", 20_000, 12_000)):
        sizes = pieces(g, path)
        assert sum(sizes) > whole and max(sizes) < part, f"{path}: {len(sizes)} pieces of at most {max(sizes)} bytes, {sum(sizes)} in all"
    assert len(admin(g, "/api/v1/workers").json["workers"]) == n and len(admin(g, "/api/v1/decisions?last=7").json["decisions"]) == 7
    families(admin(g, "/metrics").content.decode())


def test_a_client_that_does_not_read_gets_no_more_pieces_and_one_that_leaves_ends_them(start):
    fleet, g = fleet_and_gateway(start, 2)
    before = g.rss()
    with client.Client(g.admin, rcvbuf=4096) as slow:
        for _ in range(3):
            with client.Client(g.admin, rcvbuf=4096) as c:
                c.request("GET", "/metrics")
                c.until(b"kvasir_build_info")
                c.reset()
        slow.request("GET", "/metrics")
        assert admin(g, "/livez").status == 200
        assert slow.response().content.endswith(b"\n")
    assert g.rss() - before < 8 << 20 and fleet.process.running()


def test_broken_http_is_answered_in_words(start):
    _, g = fleet_and_gateway(start)
    for head, status in ((b"GET /livez HTTP/1.1\r\n\r\n", 400), (b"nonsense\r\n\r\n", 400), (b"GET /livez HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 40000, 431)):
        with client.Client(g.admin) as c:
            c.send(head)
            r = c.response()
            assert r.status == status and r.json["error"]["code"] and r.json["error"]["message"], r.content
