"""What the gateway's own tokenizer answers, and what it does for the Responses and Messages APIs."""
import json

import pytest

from conftest import eventually
from gate_local_ids_test import Worker, body, folder, ids_of, made, ready   # noqa: F401 (folder is a fixture)
from gateway import Gateway
from upstream import Upstream, whole

TALK = [{"role": "user", "content": "Hello there, tell me more of it"}]
MESSAGES = {"model": "m", "max_tokens": 4, "system": "Be brief.", "messages": TALK}
RESPONSES = {"model": "m", "instructions": "Be brief.", "input": "Hello there, tell me more of it"}


@pytest.fixture
def world(start, folder):   # noqa: F811
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "clean_up_tokenization_spaces": False}))
    with Upstream(lambda c: c.send(whole({"from": "worker"}))) as up:
        up.version = "0.32.0"
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens", "local"])
        ready(gw)
        yield gw, up


def own(gw, label):
    return gw.metric(f'kvasir_requests_total{{path="{label}",code="200",outcome="own"}}')


def test_tokenize_and_back(world, folder):   # noqa: F811
    gw, up = world
    chat = gw.call("POST", "/tokenize", {"model": "m", "messages": TALK}).json
    ids = ids_of(folder, json.dumps({"messages": TALK}))
    assert chat == {"count": len(ids), "max_model_len": 4096, "tokens": ids, "token_strs": None}
    assert list(chat) == ["count", "max_model_len", "tokens", "token_strs"]
    text = gw.call("POST", "/tokenize", {"model": "m", "prompt": "hi <|im_end|> ü 👍\n"}).json["tokens"]
    assert gw.call("POST", "/tokenize", {"model": "m", "prompt": "hi <|im_end|> ü 👍\n", "add_special_tokens": False}).json["tokens"] == text[1:]
    assert gw.call("POST", "/detokenize", {"model": "m", "tokens": text[1:]}).json == {"prompt": "hi <|im_end|> ü 👍\n"}
    assert not up.calls and eventually(lambda: own(gw, "tokenize") == 3 and own(gw, "detokenize") == 1, 5)


def test_count_tokens(world, folder):   # noqa: F811
    gw, up = world
    n = len(ids_of(folder, json.dumps({"messages": [{"role": "system", "content": "Be brief."}, *TALK]})))
    got = gw.call("POST", "/v1/messages/count_tokens", {k: v for k, v in MESSAGES.items() if k != "max_tokens"})
    assert got.json == {"input_tokens": n, "context_management": {"original_input_tokens": n}} and not up.calls
    assert gw.log(got.headers["x-request-id"])["outcome"] == "own"


@pytest.mark.parametrize("path, more", [
    ("/tokenize", {"prompt": "x", "return_token_strs": True}), ("/tokenize", {"prompt": ["x"]}), ("/tokenize", {"messages": TALK, "chat_template": "x"}),
    ("/tokenize", {"prompt": "a b c " * 4096}), ("/tokenize", {"model": "other", "prompt": "x"}), ("/tokenize", {"messages": TALK, "documents": []}),
    ("/detokenize", {"tokens": [99999999]}), ("/detokenize", {"tokens": "x"}), ("/detokenize", {"tokens": [1.5]}),
    ("/v1/messages/count_tokens", {"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}),
])
def test_what_only_the_worker_knows(world, path, more):
    gw, up = world
    r = gw.call("POST", path, {"model": "m", **more})
    assert (r.status == 404 and more.get("model")) or (r.json == {"from": "worker"} and len(up.calls) == 1)


@pytest.mark.parametrize("path, request_body, chat", [
    ("/v1/messages", MESSAGES, {"messages": [{"role": "system", "content": "Be brief."}, *TALK]}),
    ("/v1/responses", RESPONSES, {"messages": [{"role": "system", "content": "Be brief."}, *TALK], "add_special_tokens": True}),
])
def test_case_llmd_1861_messages_and_responses_are_keyed(world, folder, path, request_body, chat):   # noqa: F811
    """and the worker's usage is held against our count: three other lengths end it"""
    gw, up = world
    n = len(ids_of(folder, json.dumps(chat)))
    extra = [0]

    def script(c):
        c.send(whole({"id": "resp_1", "object": "response", "type": "message", "usage": {"input_tokens": n + extra[0], "output_tokens": 1}}))
    up.script = script
    r = gw.call("POST", path, request_body)
    line = gw.log(r.headers["x-request-id"])
    assert line["ids"] == "keys" and int(line["prompt_tok"]) == n and made(gw, "local") == 1
    assert gw.metric('kvasir_token_ids_compared_total{result="other_length"}') == 0
    extra[0] = 1
    for i in range(3):
        gw.call("POST", path, {**request_body, "temperature": 1, "metadata": {"i": str(i)}, **({"system": f"v{i}"} if "system" in request_body else {"instructions": f"v{i}"})})
    assert eventually(lambda: "event=tokenizer_distrusted" in gw.process.text, 5)


def test_not_before_a_worker_agreed(start, folder):   # noqa: F811
    with Worker(folder) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens-budget", "20s"])
        ready(gw)
        ask = {"model": "m", "messages": TALK}
        gw.call("POST", "/tokenize", ask)
        assert own(gw, "tokenize") == 0
        assert gw.chat(body("x")).status == 200
        assert eventually(lambda: gw.metric('kvasir_token_ids_compared_total{result="same"}') == 1, 20)
        gw.call("POST", "/tokenize", ask)
        assert eventually(lambda: own(gw, "tokenize") == 1, 5)


def test_an_unknown_version_is_not_guessed(start, folder):   # noqa: F811
    with Upstream(lambda c: c.send(whole({"from": "worker"}))) as up:
        up.version = "0.27.0"
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens", "local"])
        ready(gw)
        assert gw.call("POST", "/v1/messages", MESSAGES).json == {"from": "worker"}
        assert gw.call("POST", "/v1/messages/count_tokens", MESSAGES).json == {"from": "worker"}
        assert made(gw, "local") == 0 and gw.metric('kvasir_token_ids_left_total{reason="version"}') == 2


def test_a_worker_renders_what_we_cannot(start):
    """Without a tokenizer here the worker's own render of that API is asked; its refusal says nothing of the chat's."""
    seen = []

    def render(c):
        seen.append(c.target)
        if c.target == "/v1/messages/render":
            c.send(whole({"request_id": "x", "token_ids": list(range(40)), "features": None}))
        else:
            c.send(whole({"error": "no"}, 403 if c.target.endswith("responses/render") else 404))
    with Upstream(lambda c: c.send(whole({"from": "worker"})), tokenize=render) as up:
        up.version = "0.32.0"
        gw = Gateway(start, up, args=["--tokens", "worker"])
        r = gw.call("POST", "/v1/messages", MESSAGES)
        assert gw.log(r.headers["x-request-id"])["ids"] == "keys" and seen == ["/v1/messages/render"]
        gw.call("POST", "/v1/responses", RESPONSES)
        gw.chat(body("x"))
        assert seen == ["/v1/messages/render", "/v1/responses/render", "/v1/chat/completions/render", "/tokenize"]
        gw.call("POST", "/v1/responses", {**RESPONSES, "previous_response_id": "resp_9"})
        assert len(seen) == 4
