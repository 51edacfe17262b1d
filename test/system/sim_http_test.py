"""The simulator's HTTP side: shapes and counters a gateway depends on."""
import socket
import time

import client
import pytest
from client import Client, call, chat
from conftest import eventually, free_port
from sim import Fleet, events_of, words


@pytest.fixture
def fleet(start):
    return Fleet(start, 2, args=["--enable-render", "--lora", "a=/p/a"])


def test_models_name_the_adapters(fleet):
    data = call(fleet.port(), "GET", "/v1/models").json["data"]
    assert [m["id"] for m in data] == ["m", "a"]
    assert data[1]["parent"] == "m" and data[1]["root"] == "/p/a" and data[1]["max_model_len"] is None


def test_a_repeated_prompt_is_cached_up_to_its_last_block(fleet):
    text = words(100)
    first, second = fleet.chat(text).json["usage"], fleet.chat(text).json["usage"]
    n = first["prompt_tokens"]
    assert first["prompt_tokens_details"] == {"cached_tokens": 0, "created_cache_tokens": n // 16 * 16, "multimodal_tokens": None}
    assert second["prompt_tokens_details"]["cached_tokens"] == (n - 1) // 16 * 16
    assert fleet.cached(text, i=1) == 0       # each worker has its own cache


def test_a_growing_chat_stays_cached(fleet):
    messages = [{"role": "system", "content": words(40)}]
    for turn in range(4):
        messages.append({"role": "user", "content": words(20, turn)})
        r = chat(fleet.port(), {"model": "m", "messages": messages, "max_tokens": 33}).json
        usage = r["usage"]
        if turn:
            # prompt and answer of the last turn, less what does not fill a block (the answer's last token is never computed)
            assert usage["prompt_tokens_details"]["cached_tokens"] >= (before["total_tokens"] - 1) // 16 * 16
        before = usage
        messages.append(r["choices"][0]["message"] | {})


def test_every_way_to_the_ids_gives_the_same(fleet):
    settings = {"documents": [{"title": "x"}], "reasoning_effort": "low"}
    messages = [{"role": "user", "content": "hello  there\nyou"}, {"role": "assistant", "content": "yes"},
                {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    body = {"model": "m", "messages": messages, "tools": tools}
    rendered = call(fleet.port(), "POST", "/v1/chat/completions/render", body | settings).json["token_ids"]
    tokens = call(fleet.port(), "POST", "/tokenize", body | {"chat_template_kwargs": settings}).json
    assert tokens["tokens"] == rendered and tokens["count"] == len(rendered)
    usage = chat(fleet.port(), body | settings | {"max_tokens": 1}).json["usage"]
    assert usage["prompt_tokens"] == len(rendered)
    text = call(fleet.port(), "POST", "/detokenize", {"tokens": rendered}).json["prompt"]
    assert "hello  there\nyou" in text and "one\ntwo" in text
    again = call(fleet.port(), "POST", "/tokenize", {"prompt": text}).json["tokens"]
    assert again == rendered
    plain = call(fleet.port(), "POST", "/tokenize", {"messages": messages}).json["tokens"]
    assert plain != rendered


def test_a_stream_has_one_event_a_chunk(fleet):
    with Client(fleet.port()) as c:
        c.request("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3,
                                                   "stream": True, "stream_options": {"include_usage": True}})
        head = c.head()
        assert head.headers["content-type"] == "text/event-stream; charset=utf-8" and head.headers["server"] == "uvicorn"
        chunks = []
        while True:
            size = int(c.until(b"\r\n"), 16)
            data = c.take(size)
            c.take(2)
            if not size:
                break
            chunks.append(data)
    assert len(chunks) == 1 + 3 + 1 + 1
    assert all(d.startswith(b"data: ") and d.endswith(b"\n\n") and d.count(b"\n\n") == 1 for d in chunks)
    assert b'"role":"assistant","content":""' in chunks[0]
    assert b'"finish_reason":"length"' in chunks[3]
    assert b'"choices":[],"usage":{' in chunks[4] and b'"cached_tokens":' in chunks[4]
    assert chunks[5] == b"data: [DONE]\n\n"


def test_usage_of_several_prompts_and_choices(fleet):
    n = chat(fleet.port(), {"model": "m", "prompt": words(60), "max_tokens": 1}, path="/v1/completions").json["usage"]["prompt_tokens"]
    r = chat(fleet.port(), {"model": "m", "prompt": [words(60, 7), words(60, 7)], "max_tokens": 2}, path="/v1/completions").json
    assert r["usage"]["prompt_tokens"] == 2 * n and r["usage"]["completion_tokens"] == 4 and len(r["choices"]) == 2
    assert r["usage"]["prompt_tokens_details"]["cached_tokens"] == (n - 1) // 16 * 16    # the second hits the first, same step
    r = fleet.chat(words(60, 8), n=3).json
    assert [c["index"] for c in r["choices"]] == [0, 1, 2] and r["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert len({c["message"]["content"] for c in r["choices"]}) == 3


def test_salt_adapter_and_images_are_part_of_the_key(fleet):
    text = words(80)
    assert fleet.cached(text) == 0 and fleet.cached(text) > 0
    assert fleet.cached(text, cache_salt="s") == 0 and fleet.cached(text, cache_salt="s") > 0
    assert fleet.cached(text, model="a") == 0 and fleet.cached(text, model="a") > 0
    def image(url):
        return {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text}]}]}
    a, b = fleet.cached("", **image("data:a")), fleet.cached("", **image("data:a"))
    assert a == 0 and b > 80
    features = call(fleet.port(), "POST", "/v1/chat/completions/render", {"model": "m", **image("data:a")}).json["features"]
    assert len(features["mm_hashes"]["image"][0]) == 64 and features["mm_placeholders"]["image"][0]["length"] in (16, 32, 48, 64)


def test_prompt_logprobs_look_nothing_up(fleet):
    text = words(80)
    fleet.chat(text)
    assert fleet.cached(text, prompt_logprobs=1) == 0
    assert fleet.cached(text) > 0


@pytest.mark.parametrize("path,body,status,kind", [
    ("/v1/chat/completions", '{"model": "m", "messages": [', 400, "Bad Request"),
    ("/v1/chat/completions", {"model": "m"}, 400, "Bad Request"),
    ("/v1/chat/completions", {"model": "m", "messages": "hi"}, 400, "Bad Request"),
    ("/v1/chat/completions", {"model": "m", "messages": []}, 400, "BadRequestError"),
    ("/v1/chat/completions", {**client.CHAT, "model": "no"}, 404, "NotFoundError"),
    ("/v1/chat/completions", {**client.CHAT, "max_tokens": "many"}, 400, "Bad Request"),
    ("/v1/chat/completions", {**client.CHAT, "max_tokens": 0}, 400, "BadRequestError"),
    ("/v1/chat/completions", {**client.CHAT, "max_tokens": 10**9}, 400, "BadRequestError"),
    ("/v1/chat/completions", {**client.CHAT, "n": 0}, 400, "BadRequestError"),
    ("/v1/chat/completions", {**client.CHAT, "temperature": -1}, 400, "BadRequestError"),
    ("/v1/chat/completions", {**client.CHAT, "stream": "yes please"}, 400, "Bad Request"),
    ("/v1/chat/completions", {**client.CHAT, "stream_options": {"include_usage": True}}, 400, "Bad Request"),
    ("/v1/chat/completions", {**client.CHAT, "cache_salt": ""}, 400, "Bad Request"),
    ("/v1/chat/completions", "", 400, "Bad Request"),
    ("/v1/completions", {"model": "m", "prompt": []}, 400, "BadRequestError"),
    ("/v1/completions", {"model": "m", "prompt": ""}, 400, "BadRequestError"),
    ("/v1/completions", {"model": "m", "prompt": [999999999]}, 400, "BadRequestError"),
    ("/v1/completions", {"model": "m", "prompt": [-5]}, 400, "Bad Request"),
])
def test_bad_requests_are_refused_as_vllm_does(fleet, path, body, status, kind):
    r = call(fleet.port(), "POST", path, body)
    assert r.status == status and set(r.json["error"]) == {"message", "type", "param", "code"}
    assert r.json["error"]["type"] == kind and r.json["error"]["code"] == status


def test_paths_and_methods(fleet):
    assert call(fleet.port(), "GET", "/v1/chat/completions").status == 405
    r = call(fleet.port(), "GET", "/no/such/path")
    assert r.status == 404 and r.json == {"detail": "Not Found"}
    assert call(fleet.port(), "GET", "/health").content == b""
    assert call(fleet.port(), "GET", "/version").json == {"version": "0.32.0"}
    assert call(fleet.port(), "GET", "/load").json == {"server_load": 0}


def test_a_request_id_names_the_answer(fleet):
    assert fleet.chat("hi", headers=["X-Request-Id: my-id-1"]).json["id"] == "chatcmpl-my-id-1"


def test_a_call_sent_twice_is_seen(fleet):
    fleet.fault("reset,n=1")
    with Client(fleet.port()) as c:
        assert c.request("POST", "/v1/chat/completions", client.CHAT, ["X-Request-Id: one"]).rest() == b""
    assert fleet.stats()["received_calls"] == 1 and fleet.stats()["inference_calls"] == 0
    fleet.chat("hi", headers=["X-Request-Id: two"])
    assert fleet.stats()["repeated_ids"] == 0
    fleet.chat("hi", i=1, headers=["X-Request-Id: one"])
    assert fleet.stats(1)["repeated_ids"] == 1


def test_responses_are_held_by_their_worker(fleet):
    first = call(fleet.port(), "POST", "/v1/responses", {"model": "m", "input": "hi", "max_output_tokens": 3}).json
    follow = {"model": "m", "input": "more", "previous_response_id": first["id"], "max_output_tokens": 3}
    assert call(fleet.port(0), "POST", "/v1/responses", follow).status == 200
    assert call(fleet.port(1), "POST", "/v1/responses", follow).status == 404
    assert call(fleet.port(0), "GET", "/v1/responses/" + first["id"]).status == 200
    assert call(fleet.port(1), "GET", "/v1/responses/" + first["id"]).status == 404


def test_messages_count_as_anthropic_does(fleet):
    body = {"model": "m", "max_tokens": 4, "system": words(50), "messages": [{"role": "user", "content": "go"}]}
    total = call(fleet.port(), "POST", "/v1/messages/count_tokens", body).json["input_tokens"]
    for _ in range(2):
        u = call(fleet.port(), "POST", "/v1/messages", body).json["usage"]
        assert u["input_tokens"] + u["cache_read_input_tokens"] + u["cache_creation_input_tokens"] == total
    assert u["cache_read_input_tokens"] == (total - 1) // 16 * 16
    r = call(fleet.port(), "POST", "/v1/messages", {**body, "stream": True})
    assert [e.split("\n")[0] for e in r.events] == ["event: message_start", "event: content_block_start"] + 4 * ["event: content_block_delta"] + [
        "event: content_block_stop", "event: message_delta", "event: message_stop"]


def test_an_api_key_guards_v1_only(start):
    fleet = Fleet(start, args=["--api-key", "k"])
    r = fleet.chat("hi")
    assert r.status == 401 and r.json == {"error": "Unauthorized"}
    assert fleet.chat("hi", headers=["Authorization: Bearer k"]).status == 200
    assert call(fleet.port(), "GET", "/health").status == 200
    assert call(fleet.port(), "POST", "/tokenize", {"prompt": "x"}).status == 200


def test_render_is_closed_unless_enabled(start):
    fleet = Fleet(start)
    assert call(fleet.port(), "POST", "/v1/chat/completions/render", client.CHAT).status == 403


def test_a_client_that_leaves_frees_its_blocks(start):
    fleet = Fleet(start, profile="qwen3-32b-h100-tp2")
    for stream in (True, False):
        with Client(fleet.port()) as c:
            c.request("POST", "/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": words(200)}],
                                                       "max_tokens": 5000, "stream": stream})
            assert eventually(lambda: fleet.stats()["running"] == 1)
        assert eventually(lambda: fleet.stats()["running"] == 0, 0.5)
        s = fleet.stats()
        assert s["used_blocks"] == 0 and s["open_calls"] == 0
    assert fleet.stats()["aborted"] == 2 and fleet.stats()["ended"] == 0


def test_idle_connections_are_closed(start):
    fleet = Fleet(start, args=["--idle-timeout", "0.3"])
    with Client(fleet.port()) as c:
        assert c.request("GET", "/health").response().status == 200
        begun = time.monotonic()
        assert c.rest() == b"" and 0.2 < time.monotonic() - begun < 2


def test_time_scale_makes_the_fleet_faster(start):
    took = {}
    for scale in (1, 10):
        fleet = Fleet(start, profile="qwen3-32b-h100-tp2", args=["--time-scale", scale, "--jitter", 0])
        begun = time.monotonic()
        fleet.chat("hi", max_tokens=40)
        took[scale] = time.monotonic() - begun
    assert 0.4 < took[1] < 2 and took[10] < took[1] / 3      # 25 ms + 39 decodes of 10.8 ms


def test_metrics_have_vllms_names(fleet):
    text = words(60)
    for _ in range(2):
        fleet.chat(text)
    m = call(fleet.port(), "GET", "/metrics").content.decode()
    values = dict(line.rsplit(" ", 1) for line in m.splitlines() if line and not line.startswith("#"))
    s = fleet.stats()
    label = '{engine="0",model_name="m"}'
    assert float(values["vllm:prefix_cache_hits_total" + label]) == s["hit_tok"] > 0
    assert float(values["vllm:num_requests_running" + label]) == 0
    config = next(k for k in values if k.startswith("vllm:cache_config_info{"))
    assert 'block_size="16"' in config and 'num_gpu_blocks="' in config and "model_name" not in config


def test_data_parallel_ranks(start):
    fleet = Fleet(start, ranks=2)
    text = words(60)
    def cached(rank):
        return fleet.chat(text, headers=[f"X-data-parallel-rank: {rank}"]).json["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached(0) == 0 and cached(0) > 0 and cached(1) == 0 and cached(1) > 0
    r = fleet.chat(text, headers=["X-data-parallel-rank: 7"])
    assert r.status == 400 and r.json["error"]["message"] == "data_parallel_rank 7 is out of range [0, 2)."
    assert fleet.chat(text, headers=["X-data-parallel-rank: x"]).status == 200
    sources = call(fleet.port(), "GET", "/kv_event_sources").json
    assert sources["1"]["endpoint"] == f"tcp://*:{fleet.events_port(0, 1)}" and sources["1"]["replay_endpoint"] == f"tcp://*:{fleet.replay_port(0, 1)}"


def test_the_stream_and_the_whole_say_the_same(fleet):
    body = {"model": "m", "messages": [{"role": "user", "content": "tell"}], "max_tokens": 9}
    whole = chat(fleet.port(0), body).json["choices"][0]["message"]["content"]
    events = events_of(chat(fleet.port(1), {**body, "stream": True}))
    assert "".join(e["choices"][0]["delta"].get("content", "") for e in events) == whole


def test_an_address_that_cannot_be_bound_is_named(start):
    """of a worker's three kinds of port the one that is taken"""
    base = free_port(6)
    ports = ["--workers", "2", "--port", base, "--profile", "instant", "--model", "m"]
    for taken, scheme in ((base, "http"), (base + 1, "http"), (base + 3, "tcp"), (base + 5, "tcp")):
        with socket.socket() as s:
            s.bind(("127.0.0.1", taken))
            s.listen()
            p = start("kvasir-sim", *ports)
            assert eventually(lambda p=p: not p.running(), 10) and p.wait() == 1, p.text
        assert f"cannot bind {scheme}://127.0.0.1:{taken}: the address is in use" in p.text, p.text
