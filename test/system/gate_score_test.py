"""Scores and rankings: to a model that embeds each text is a prompt of its own, and of several the last is looked for. What other models make of
them is not known here, so those go by load."""
import itertools
import json
import random
import string
import subprocess

import client
import pytest

from conftest import BIN_DIR, eventually, model_folder
from gateway import Gateway
from gate_embeddings_test import chosen, hits
from sim import Fleet
from upstream import Upstream, whole

WORDS = [f"<{a}{b}>" for a, b in itertools.product(string.ascii_lowercase, "abcdefgh")]   # a token of kvasir-sim's each


def ask(gw, path, **body):
    """the receipt of one request"""
    r = gw.call("POST", path, {"model": "m", **body})
    assert r.status == 200, r.content
    return client.call(gw.admin, "GET", f"/api/v1/decisions/{r.headers['x-request-id']}").json


def sim_folder(place, fleet):
    """a model folder whose ids of these words are kvasir-sim's"""
    ids = client.call(fleet.port(0), "POST", "/tokenize", {"model": "m", "prompt": "".join(WORDS)}).json["tokens"]
    vocab = {w: i for i, w in dict(zip(ids, WORDS)).items()}
    added = [{"id": i, "content": w, "special": False, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for w, i in vocab.items()]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
             "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []}
    (place / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": sorted(added, key=lambda t: t["id"]), "normalizer": None, "pre_tokenizer": level,
                                                      "post_processor": None, "decoder": level, "model": model}))
    (place / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
    return place, sorted(vocab)


def test_documents_go_to_the_worker_that_holds_their_beginning(start, tmp_path):
    """the predicted hit is what the engine found"""
    fleet, rng = Fleet(start, 2), random.Random(1)
    folder, words = sim_folder(tmp_path, fleet)
    gw = Gateway(start, fleet.url(0), fleet.url(1), args=["--events", "true", "--tokenizer", folder])
    assert eventually(lambda: "event=tokenizer_ready" in gw.process.text, 10), gw.process.text[-2000:]

    def text(n):
        return "".join(rng.choice(words) for _ in range(n))
    assert eventually(lambda: ask(gw, "/score", text_1=text(3), text_2=text(3))["ids"] == "keys", 10)
    begins, holder = [text(320) for _ in range(6)], []
    for b in begins:
        d = ask(gw, "/score", text_1=text(12), text_2=b + text(3))
        assert d["ids"] == "keys" and chosen(d)["hit_tokens"] == 0
        holder.append(chosen(d)["worker"])
    assert eventually(lambda: sum(w["index_blocks"] for w in gw.workers()) == 6 * 20, 10)
    for b, worker in zip(begins, holder):
        for path, body in (("/v1/score", {"queries": text(12), "documents": b + text(5)}),
                           ("/score", {"text_1": [text(9), text(9)], "text_2": [text(9), b + text(20)]}),
                           ("/rerank", {"query": text(12), "documents": [text(30), text(7), b + text(20)], "top_n": 1})):
            before = hits(fleet)
            c = chosen(ask(gw, path, **body))
            assert c["hit_tokens"] == 320 and c["worker"] == worker
            assert {w: n - before[w] for w, n in hits(fleet).items() if n != before[w]} == {worker: 320}
    assert gw.metric('kvasir_token_ids_compared_total{result="other_length"}') == 0 and gw.settled()


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path, "")


def worker(embeds, version="0.32.0"):
    up = Upstream(lambda c: c.send(whole({"id": "score-1", "object": "list", "data": []})))
    up.embeds, up.version = embeds, version
    return up


def test_other_models_and_what_is_left_go_by_load(start, folder):
    with worker(True) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder])
        assert eventually(lambda: "event=tokenizer_" in gw.process.text, 10), gw.process.text[-2000:]
        assert eventually(lambda: ask(gw, "/score", text_1="a", text_2="b")["ids"] == "keys", 10)
        assert ask(gw, "/v2/rerank", query="a", documents=["b", "c"])["ids"] == "keys"
        for left in ({"truncate_prompt_tokens": -1}, {"max_tokens_per_doc": 3}, {"documents": [{"content": []}]}, {"documents": []}):
            assert ask(gw, "/rerank", **{"query": "a", "documents": ["b"], **left})["ids"] == "not_expressible", left
        assert gw.metric('kvasir_token_ids_left_total{reason="truncation"}') == 2
        assert ask(gw, "/classify", input="a")["ids"] == "path"
        assert not up.tokenize_calls and gw.settled()


@pytest.mark.parametrize("kinds", [[(False, "0.32.0")], [(True, "0.31.0")], [(True, None)], [(True, "0.32.0"), (False, "0.32.0")]])
def test_only_where_every_worker_is_known_to_embed(start, folder, kinds):
    """a vLLM that serves a cross-encoder or late interaction has no /v1/embeddings; of other versions that is not known"""
    ups = [worker(*k) for k in kinds]
    gw = Gateway(start, *ups, args=["--tokenizer", folder])
    assert eventually(lambda: "event=tokenizer_" in gw.process.text, 10), gw.process.text[-2000:]
    asked = [[p for p, _ in up.own_headers].count("/v1/embeddings") for up in ups]
    assert eventually(lambda: all(("/v1/embeddings" in [p for p, _ in up.own_headers]) == (up.version == "0.32.0") for up in ups), 10), asked
    for _ in range(3):
        assert ask(gw, "/score", text_1="a", text_2="b")["ids"] == "not_embedding"
    assert gw.settled()
    for up in ups:
        up.stop()


def test_the_command_prints_them(folder):
    bodies = [{"text_1": "hi", "text_2": ["hi", "hi"]}, {"query": "hi", "documents": "hi"}, {"query": "hi", "documents": "hi", "padding": "max_length"}]
    text = "".join(json.dumps(b) + "\n" for b in bodies)
    r = subprocess.run([BIN_DIR / "kvasir", "tokenize", "--model-dir", folder, "--score", "--lines"], input=text, capture_output=True, text=True,
                       timeout=30, check=False)
    three, two, left = [json.loads(x) for x in r.stdout.splitlines()]
    assert three == [two[0]] * 3 and two == [two[0]] * 2 and left == {"error": "prompt_form"} and r.returncode == 1
