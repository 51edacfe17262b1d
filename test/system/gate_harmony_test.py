"""GPT-OSS: ids made here in the harmony form; a worker's /tokenize, which renders such chats in another way, is never asked about them."""
import json
from pathlib import Path

import pytest

from client import CHAT
from conftest import eventually
from gate_local_ids_test import body, ids_of, made, ready
from gateway import Gateway
from upstream import COMPLETION, Upstream, whole

FOLDER = Path(__file__).parent.parent / "tokenizers" / "golden" / "harmony"


@pytest.fixture
def up():
    def tokenize(c):
        if c.target != "/tokenize":
            c.send(whole({"detail": "Not Found"}, 404))
            return
        u.asked.append(json.loads(bytes(c.body)))
        c.send(whole({"count": 1, "max_model_len": 4096, "tokens": [1], "token_strs": None}))
    with Upstream(lambda c: c.send(whole(COMPLETION)), tokenize=tokenize) as u:
        u.version, u.asked = "0.32.0", []
        yield u


def test_chats_are_made_here_and_not_held_against_tokenize(start, up):
    gw = Gateway(start, up, args=["--tokenizer", FOLDER, "--tokens-budget", "20s"])
    ready(gw)
    assert gw.chat(body("hi")).status == 200 and made(gw, "local") == 1
    assert gw.call("POST", "/v1/completions", {"model": "m", "prompt": "hi", "max_tokens": 2}).status == 200
    assert eventually(lambda: gw.metric('kvasir_token_ids_compared_total{result="different"}') == 1, 10)   # of the completion: this worker says 1
    assert len(up.asked) == 1 and made(gw, "local") == 2
    image = {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]}
    assert gw.chat(image).status == 200 and made(gw, "not_expressible") == 1 and len(up.asked) == 1


def test_by_its_name_where_its_files_are_not_here(start, up, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    up.root = "openai/gpt-oss-20b"
    gw = Gateway(start, up, args=["--tokens-budget", "20s"])
    assert gw.chat(body("hi")).status == 200
    assert made(gw, "not_expressible") == 1 and not up.asked
    assert gw.call("POST", "/v1/completions", {"model": "m", "prompt": "hi", "max_tokens": 2}).status == 200
    assert made(gw, "call") == 1 and len(up.asked) == 1


def test_questions_about_tokens(start, up):
    gw = Gateway(start, up, args=["--tokenizer", FOLDER, "--tokens", "local"])
    ready(gw)
    talk = {"messages": [{"role": "user", "content": "hi"}]}
    assert gw.call("POST", "/tokenize", {"model": "m", **talk}).json["object"] == COMPLETION["object"]   # the worker's answer
    assert gw.call("POST", "/tokenize", {"model": "m", "prompt": "hi"}).json["count"] == 1
    assert gw.call("POST", "/v1/messages/count_tokens", {"model": "m", **talk}).json["input_tokens"] == len(ids_of(FOLDER, json.dumps(talk)))
