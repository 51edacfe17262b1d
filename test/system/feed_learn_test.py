"""What Kvasir learns of workers from nothing but their URLs, and how it says what it cannot learn."""
import pathlib
import time

import client
import pytest
from conftest import eventually
from feed_worker import Worker, card, stored
from gateway import Gateway
from sim import Fleet, words
from upstream import Upstream

EVENTS = ["--events", "true"]


def only(gateway):
    workers = gateway.workers()
    assert len(workers) == 1, workers
    return workers[0]


def test_flags_alone_suffice(start):
    fleet = Fleet(start, 2, ["--block-size", 32, "--blocks", 500])
    g = Gateway(start, fleet.url(0), fleet.url(1), args=EVENTS)
    assert eventually(lambda: all(w["cache_view"] == "events" for w in g.workers()), 5), g.workers()
    for w in g.workers():
        assert w["models"] == ["m"] and w["block_size"] == 32 and w["blocks"] == 500 and w["max_model_len"] > 0, w
        assert w["state"] == "healthy" and w["prefix_caching"] and w["index_blocks"] == 0
    text = words(200)
    for _ in range(3):
        assert g.chat({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 2}).status == 200
        time.sleep(0.1)
    assert eventually(lambda: sum(w["index_blocks"] for w in g.workers()) > 3, 5)
    assert sum(w["index_blocks"] > 0 for w in g.workers()) == 1, "a repeated prompt stays where its cache is"
    assert eventually(lambda: [w["predicted_exact_share"] for w in g.workers() if w["predictions"]] == [1], 5), g.workers()
    assert g.settled()


def test_members_of_the_workers_list(start):
    fleet = Fleet(start)
    w = only(Gateway(start, fleet.url(), args=EVENTS))
    for name in ("url state models block_size blocks in_flight_requests in_flight_prompt_tokens in_flight_contexts index_blocks "
                 "events_seq events_lag_ms predicted_exact_share").split():
        assert name in w, name


def test_data_parallel_ranks(start):
    fleet = Fleet(start, 1, ["--blocks", 300], ranks=2)
    g = Gateway(start, fleet.url(), args=EVENTS)
    assert eventually(lambda: len(only(g)["ranks"]) == 2 and all(r["events_seen"] for r in only(g)["ranks"]), 5), g.workers()
    assert only(g)["blocks"] == 600            # the worker's metrics give the sum over the ranks
    assert {r["events_endpoint"] for r in only(g)["ranks"]} == {f"tcp://127.0.0.1:{fleet.events_port(0, r)}" for r in (0, 1)}


def test_the_rank_that_holds_the_prompt_is_named_to_the_worker(start):
    """an idle worker without X-data-parallel-rank takes its first rank; the prompt is in the cache of the second"""
    fleet = Fleet(start, 1, ranks=2)
    g = Gateway(start, fleet.url(), args=[*EVENTS, "--tokens-budget", "5s"])
    assert eventually(lambda: len(only(g)["ranks"]) == 2 and all(r["events_seen"] for r in only(g)["ranks"]), 5), g.workers()
    text = words(200)
    assert fleet.chat(text, headers=["X-data-parallel-rank: 1"]).status == 200
    assert eventually(lambda: only(g)["ranks"][1]["index_blocks"] > 5, 5), g.workers()
    line = g.log(g.chat({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 2}).headers["x-request-id"])
    assert int(line["overlap_tok"]) == int(line["cached_tok"]) > 150, line


def sticks(g, body, path="/v1/chat/completions"):
    """the first is new to every worker, the second goes where it is held: (cached tokens of the first, of the second)"""
    lines = []
    for _ in range(2):
        before = sum(r["index_blocks"] for w in g.workers() for r in w["ranks"])
        r = g.chat({"model": "m", "max_tokens": 2, **body}, path=path)
        assert r.status == 200, r.content
        lines.append(g.log(r.headers["x-request-id"]))
        assert lines[1:] or eventually(lambda before=before: sum(r["index_blocks"] for w in g.workers() for r in w["ranks"]) > before + 3, 5), g.workers()
    assert [line["ids"] for line in lines] == ["keys"] * 2, lines
    assert all(line["overlap_tok"] == line["cached_tok"] for line in lines), lines
    assert lines[0]["worker"] == lines[1]["worker"] and lines[1]["reason"] == "sticky", lines
    return [int(line["cached_tok"]) for line in lines]


def test_completions_are_routed_by_what_is_held(start):
    fleet = Fleet(start, 3)
    g = Gateway(start, *[fleet.url(i) for i in range(3)], args=[*EVENTS, "--tokens-budget", "5s"])
    first, second = sticks(g, {"prompt": words(200)}, "/v1/completions")
    assert first == 0 and second > 150


def test_salt_adapter_and_images_are_part_of_the_key(start):
    """the same text under another salt, adapter or image is another prompt, for the worker and for the prediction alike"""
    fleet = Fleet(start, 2, ["--enable-render", "--lora", "a"])
    g = Gateway(start, fleet.url(0), fleet.url(1), args=[*EVENTS, "--tokens-budget", "5s"])
    text = words(200)
    assert eventually(lambda: all(w["adapters"] == ["a"] for w in g.workers()), 5), g.workers()

    def image(url):
        return [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]
    for more in ({}, {"cache_salt": "s"}, {"cache_salt": "t"}, {"model": "a"}, {"model": "a", "cache_salt": "s"}):
        first, second = sticks(g, {"messages": [{"role": "user", "content": text}], **more})
        assert first == 0 and second > 150, more
    for url in ("data:image/png;base64,AA==", "data:image/png;base64,AB=="):
        first, second = sticks(g, {"messages": [{"role": "user", "content": image(url)}]})
        assert first < 32 and second > 150, url


def test_adapters_are_no_base_models(start):
    with Worker(models=[card("base"), card("tuned", parent="base", max_model_len=None)]) as up:
        g = Gateway(start, up.url, args=EVENTS)
        assert eventually(lambda: only(g)["adapters"] == ["tuned"], 3)
        assert only(g)["models"] == ["base"]
        assert eventually(lambda: {m["id"]: m["parent"] for m in g.call("GET", "/v1/models").json["data"]} == {"base": None, "tuned": "base"}, 2)


def test_a_model_that_appears_is_listed(start):
    with Worker() as up:
        g = Gateway(start, up.url)
        up.cards.append(card("later"))
        assert eventually(lambda: "later" in only(g)["models"], 5)


def test_401_is_named(start):
    with Worker(key="sesame") as up:
        g = Gateway(start, up.url, ready=False)
        assert eventually(lambda: _up(g), 5) and eventually(lambda: "401" in only(g).get("probe", ""), 5)
        ready = client.call(g.admin, "GET", "/readyz")
        assert ready.status == 503 and "401" in ready.content.decode()
        assert "event=worker_unauthorized" in g.process.text and "sesame" not in g.process.text


def test_a_url_with_a_wrong_path_is_named(start):
    """all that was said of it: probe answered with an error"""
    with Worker() as up:
        g = Gateway(start, up.url + "/api", ready=False)
        assert eventually(lambda: _up(g), 5) and eventually(lambda: only(g).get("state") == "down", 10)
        w = only(g)
        assert w["probe"].startswith("404: its path") and "is the URL a worker's, and its path right?" in w["why"], w
        said = [line for line in g.process.text.splitlines() if "event=worker_probe_refused" in line]
        assert len(said) == 1 and said[0].endswith(f"worker={up.url}/api path=/api/health status=404"), said
        up.health = 503
    with Worker() as up:
        up.health = 503
        g = Gateway(start, up.url, ready=False)
        assert eventually(lambda: _up(g), 5) and eventually(lambda: only(g).get("probe") == "503: bad answer", 10)


def _up(g):
    try:
        return client.call(g.admin, "GET", "/livez").status == 200
    except OSError:
        return False


def test_own_keys_of_a_worker(start, tmp_path, monkeypatch):
    key = tmp_path / "key"
    key.write_text("sesame\n")
    monkeypatch.setenv("KVASIR_TEST_KEY", "open")
    with Worker(key="sesame") as a, Worker(key="open") as b, Worker(key="plain") as c:
        pool = tmp_path / "pool.yaml"
        pool.write_text(f"""apiVersion: kvasir.dev/v1alpha1
kind: WorkerPool
metadata: {{name: p}}
spec:
  workers:
  - {{url: "{a.url}", apiKeyFile: key}}
  - {{url: "{b.url}", apiKeyEnv: KVASIR_TEST_KEY}}
  - {{url: "{c.url}", apiKey: plain}}
""")
        g = Gateway(start, args=["-c", pool])
        assert eventually(lambda: [w["models"] for w in g.workers()] == [["m"]] * 3, 5), g.workers()
        shown = client.call(g.admin, "GET", "/api/v1/workers").content.decode() + g.process.text
        assert "sesame" not in shown and "plain" not in shown


def test_a_key_for_all_workers_of_flags(start, tmp_path, monkeypatch):
    key = tmp_path / "key"
    key.write_text("sesame\n")
    monkeypatch.setenv("KVASIR_TEST_KEY", "sesame")
    for args in (["--worker-api-key", "sesame"], ["--worker-api-key-file", key], ["--worker-api-key-env", "KVASIR_TEST_KEY"]):
        with Worker(key="sesame") as up:
            g = Gateway(start, up.url, args=args)
            assert eventually(lambda: only(g)["models"] == ["m"], 5)
            shown = client.call(g.admin, "GET", "/api/v1/workers").content + client.call(g.admin, "GET", "/metrics").content + g.process.text.encode()
            assert b"sesame" not in shown


def test_the_key_goes_with_every_question(start):
    with Upstream() as up:
        up.version = "0.32.0"
        g = Gateway(start, up, args=[*EVENTS, "--worker-api-key", "sesame"])
        assert g.chat(headers=["Authorization: Bearer clients"]).status == 200 and up.tokenize_calls
        asked = [*up.own_headers, *((c.target, c.headers) for c in up.tokenize_calls)]
        assert {path for path, _ in asked} >= {"/health", "/v1/models", "/metrics", "/kv_event_sources", "/version", "/tokenize"}, asked
        assert {h.get("authorization") for _, h in asked} == {"Bearer sesame"}, asked


def test_a_pool_names_the_event_endpoints(start, tmp_path):
    """a worker that does not tell its endpoints, on other ports than the default ones"""
    with Worker(sources=False) as up:
        up.publish([stored([1, 2, 3], list(range(48)), 16)], live=False)
        pool = tmp_path / "pool.yaml"
        pool.write_text(f"""apiVersion: kvasir.dev/v1alpha1
kind: WorkerPool
metadata: {{name: p}}
spec:
  workers:
  - url: "{up.url}"
    kvEvents: {{endpoint: "tcp://127.0.0.1:{up.events_port}", replay: "tcp://127.0.0.1:{up.events_port + 1}"}}
""")
        g = Gateway(start, args=["-c", pool, *EVENTS])
        assert eventually(lambda: g.workers() and only(g)["cache_view"] == "events" and only(g)["index_blocks"] == 3, 5), g.workers()


def test_two_workers_of_one_host_are_not_guessed_the_same_port(start):
    with Worker(sources=False) as a, Worker(sources=False) as b:
        g = Gateway(start, a.url, b.url, args=EVENTS)
        assert eventually(lambda: any("share its host" in w["events_why"] for w in g.workers()), 5), g.workers()
        assert sum(len(w["ranks"][0].get("events_endpoint", "")) > 0 for w in g.workers()) <= 1


def test_default_ports_are_options(start):
    with Worker(sources=False) as up:
        g = Gateway(start, up.url, args=[*EVENTS, "--events-port", up.events_port, "--replay-port", up.events_port + 1])
        assert eventually(lambda: only(g)["cache_view"] == "events", 5), g.workers()


def test_a_publisher_that_connects_out_is_refused(start):
    with Worker(source_host="10.11.12.13") as up:
        g = Gateway(start, up.url.replace("127.0.0.1", "localhost"), args=EVENTS)
        time.sleep(0.3)
        # a worker on this machine may name the machine's other address; elsewhere a foreign host means "connects out"
        assert only(g)["cache_view"] == "approximate"


def test_no_events_means_a_guessed_cache_and_it_is_said(start):
    fleet = Fleet(start, 1, ["--no-events"])
    g = Gateway(start, fleet.url(), args=EVENTS)
    text = words(200)
    for _ in range(3):
        assert g.chat({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 2}).status == 200
    assert only(g)["cache_view"] == "approximate"
    assert eventually(lambda: only(g)["index_blocks"] > 0, 3), "own dispatches feed the index"
    assert eventually(lambda: "event=events_unreached" in g.process.text, 8), "and it is said"


def test_hostile_answers_do_not_hurt(start):
    with Worker() as up:
        g = Gateway(start, up.url, args=["--max-scrape", "64KiB"])
        good = up.cards
        for cards in ([], [{"id": 7}], [{"no": "id"}], [card("x" * 600)], [card("m")] * 3):
            up.cards = cards
            time.sleep(0.6)
            assert g.process.running()
        up.cards = good
        metrics = up.metrics
        for text in ("", "vllm:cache_config_info{", 'vllm:cache_config_info{block_size="0",num_gpu_blocks="x"} 1\n', "a" * 200000, 'vllm:num_requests_running{engine="99"} 1e400\n' * 100,
                     'vllm:num_requests_waiting{engine="-1"} NaN\n'):
            up.metrics = text
            time.sleep(0.25)
            assert g.process.running()
        up.metrics = metrics
        assert eventually(lambda: only(g)["state"] == "healthy" and only(g)["models"] == ["m"], 5)


def test_case_routers_54_all_workers_restart_on_the_same_addresses(start):
    """dynamo#4904: a frontend that never recovers when the workers come back."""
    fleet = Fleet(start, 2)
    g = Gateway(start, fleet.url(0), fleet.url(1), args=EVENTS)
    text = words(300)
    body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 2}
    assert g.chat(body).status == 200
    assert eventually(lambda: sum(w["index_blocks"] for w in g.workers()) > 3, 5)
    for i in (0, 1):
        fleet.fault("die=1", i)
    assert eventually(lambda: all(w["state"] == "down" for w in g.workers()), 5), g.workers()
    assert eventually(lambda: all(w["state"] in ("healthy", "degraded") for w in g.workers()), 8), g.workers()
    assert eventually(lambda: sum(w["index_blocks"] for w in g.workers()) == 0, 5), "the old cache is forgotten"
    assert eventually(lambda: g.chat(body).status == 200, 3)
    assert eventually(lambda: sum(w["index_blocks"] for w in g.workers()) > 3, 5), "and the new one learnt"
    assert g.settled()


def test_restart_between_two_probes_is_noticed(start):
    """the process is another one, the address never refused: the sequence tells"""
    fleet = Fleet(start, 1)
    g = Gateway(start, fleet.url(), args=EVENTS)
    body = {"model": "m", "messages": [{"role": "user", "content": words(300)}], "max_tokens": 2}
    assert g.chat(body).status == 200
    assert eventually(lambda: only(g)["index_blocks"] > 3, 5)
    fleet.fault("restart")
    assert eventually(lambda: only(g)["index_blocks"] == 0, 5), g.workers()
    assert eventually(lambda: only(g)["state"] == "healthy", 5)


def test_the_gateway_relearns_after_its_own_restart(start):
    fleet = Fleet(start, 1)
    first = Gateway(start, fleet.url(), args=EVENTS)
    for i in range(5):
        first.chat({"model": "m", "messages": [{"role": "user", "content": words(200, i)}], "max_tokens": 2})
    assert eventually(lambda: only(first)["index_blocks"] > 10, 5)
    time.sleep(0.2)
    held = only(first)["index_blocks"]
    first.process.stop()
    second = Gateway(start, fleet.url(), args=EVENTS)
    assert eventually(lambda: only(second)["index_blocks"] == held, 5), (held, only(second))
    assert pathlib.Path(second.process.log).exists()


@pytest.mark.parametrize("path", ["/v1/models", "/metrics", "/kv_event_sources"])
def test_what_a_worker_failed_to_tell_is_asked_again_soon(start, path):
    """with an interval of a minute, two bad answers cost less than a second, and the third lets requests in"""
    with Worker() as up:
        up.failing[path] = 2
        g = Gateway(start, up.url, args=[*EVENTS, "--scrape-interval", "60s", "--models-interval", "60s"], ready=False)
        assert eventually(lambda: _up(g) and only(g)["models"] == ["m"] and only(g)["block_size"] and only(g)["cache_view"] == "events", 10), g.workers()
        assert up.asked[path] == 3
        assert g.chat().status == 200
        time.sleep(1)
        assert up.asked[path] == 3, "what is known is asked again after the interval, not before"
