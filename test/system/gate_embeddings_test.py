"""Embeddings: routed by what each worker holds, with the ids that the engine sees, and never with a call before the request."""
import json
import subprocess

import client
import pytest

from conftest import BIN_DIR, eventually, model_folder
from gateway import Gateway
from sim import Fleet
from upstream import Upstream, whole

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}answer:{% endif %}"
MESSAGES = [{"role": "user", "content": "embed this"}]
PATH = "/v1/embeddings"


def embed(gw, **members):
    """the receipt of one request"""
    r = gw.call("POST", PATH, {"model": "m", **members})
    assert r.status == 200, r.content
    return client.call(gw.admin, "GET", f"/api/v1/decisions/{r.headers['x-request-id']}").json


def hits(fleet):
    """{worker: prompt tokens its engine found in its cache}, by the engine's own counter"""
    def of(i):
        text = client.call(fleet.port(i), "GET", "/metrics").content.decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("vllm:prefix_cache_hits_total{"))
    return {fleet.url(i): of(i) for i in range(fleet.workers)}


def chosen(d):
    return next(c for c in d["candidates"] if c["chosen"])


def test_texts_go_to_the_worker_that_holds_their_beginning(start):
    """the predicted hit is what the engine found; of several inputs the last is looked for"""
    fleet = Fleet(start, 2)
    gw = Gateway(start, fleet.url(0), fleet.url(1), args=["--events", "true"])
    begins = [[1000 * g + i for i in range(320)] for g in range(6)]
    holder = []
    for b in begins:
        d = embed(gw, input=b + [9, 9, 9])
        assert d["ids"] == "keys" and chosen(d)["hit_tokens"] == 0
        holder.append(chosen(d)["worker"])
    assert eventually(lambda: sum(w["index_blocks"] for w in gw.workers()) == 6 * 20, 10)
    for b, worker in zip(begins, holder):
        for texts in (b + [8] * 40, [b + [7] * 40], [[6] * 9, b + [5] * 20]):
            before = hits(fleet)
            c = chosen(embed(gw, input=texts))
            assert c["hit_tokens"] == 320 and c["worker"] == worker
            assert {w: n - before[w] for w, n in hits(fleet).items() if n != before[w]} == {worker: 320}
    assert gw.settled()


class Worker(Upstream):
    """tokenises as the folder does"""

    def __init__(self, folder):
        def tokenize(c):
            asked = c.json
            form = "--chat" if "messages" in asked else "--completions"
            out = subprocess.run([BIN_DIR / "kvasir", "tokenize", "--model-dir", folder, form], input=c.body, capture_output=True, timeout=20, check=True)
            ids = json.loads(out.stdout)
            c.send(whole({"count": len(ids), "max_model_len": 4096, "tokens": ids, "token_strs": None}))
        super().__init__(lambda c: c.send(whole({"object": "list", "data": []})), tokenize=tokenize)
        self.version = "0.32.0"


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path, TEMPLATE)


def test_texts_and_chats_get_their_ids_here(start, folder):
    with Worker(folder) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder])
        assert eventually(lambda: "event=tokenizer_" in gw.process.text, 10), gw.process.text[-2000:]
        lengths = [embed(gw, input="some text")["prompt_tokens"], embed(gw, input=["some text"], dimensions=8)["prompt_tokens"]]
        assert lengths[0] == lengths[1] and gw.metric('kvasir_token_ids_total{source="local"}') == 2
        assert embed(gw, input=["one", "and another"])["ids"] == "keys"
        assert embed(gw, messages=MESSAGES)["ids"] == "keys"
        # /tokenize can be asked for all but the two texts at once; the chat is one without a beginning of an answer
        assert eventually(lambda: gw.metric('kvasir_token_ids_compared_total{result="same"}') == 3, 10)
        assert gw.metric('kvasir_token_ids_compared_total{result="different"}') == 0
        asked = len(up.tokenize_calls)
        for left in ({"input": "x", "truncate_prompt_tokens": -1}, {"input": "x", "messages": MESSAGES}, {"input": {}}, {"input": MESSAGES}, {}):
            assert embed(gw, **left)["ids"] == "not_expressible", left
        assert len(up.tokenize_calls) == asked and up.calls[-1].json == {"model": "m"}
        assert gw.settled()


def test_workers_are_not_asked_first(start, folder):
    with Worker(folder) as up:
        gw = Gateway(start, up)
        assert eventually(lambda: embed(gw, input="some text")["ids"] == "absent", 10)   # "off" until the worker's version is known
        assert embed(gw, input=[1, 2, 3])["ids"] == "keys"
        assert not up.tokenize_calls and gw.settled()


def test_the_command_prints_them(folder):
    bodies = [{"input": "hi"}, {"input": ["hi", "hi"]}, {"input": [5, 6]}, {"messages": MESSAGES}, {"input": "hi", "padding": "max_length"}]
    text = "".join(json.dumps(b) + "\n" for b in bodies)
    r = subprocess.run([BIN_DIR / "kvasir", "tokenize", "--model-dir", folder, "--embeddings", "--lines"], input=text, capture_output=True, text=True,
                       timeout=30, check=False)
    one, two, given, chat, left = [json.loads(x) for x in r.stdout.splitlines()]
    assert two == [one, one] and given == [5, 6] and left == {"error": "prompt_form"} and r.returncode == 1
    assert chat
