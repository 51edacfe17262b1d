"""Requests that say themselves how their prompt is made (truncate_prompt_tokens, chat_template): the ids are made here as their worker makes them."""
import json
import subprocess
import threading

import pytest

import client
from client import CHAT
from conftest import BIN_DIR, eventually, model_folder
from gateway import Gateway
from upstream import COMPLETION, Upstream, whole

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
FORMS = {"/v1/chat/completions": "--chat", "/v1/completions": "--completions", "/v1/responses": "--responses", "/v1/embeddings": "--embeddings"}


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path, TEMPLATE)


def ids_of(folder, body, form="--chat"):
    out = subprocess.run([BIN_DIR / "kvasir", "tokenize", "--model-dir", folder, form, "--max-model-len", "64"], input=body, capture_output=True, timeout=20, check=False)
    assert out.returncode == 0, (out.stderr, body[:500])
    return json.loads(out.stdout)


class Worker(Upstream):
    """a vLLM 0.32 that has the folder's tokenizer, and trusts a request's template or not; its /tokenize does not truncate"""

    def __init__(self, folder, trusts=True, version="0.32.0"):
        def tokenize(c):
            if c.target != "/tokenize":
                c.send(whole({"detail": "Not Found"}, status=404))
                return
            self.tokenized.append(json.loads(c.body))
            ids = ids_of(folder, c.body)
            c.send(whole({"count": len(ids), "max_model_len": 64, "tokens": ids, "token_strs": None}))

        def script(c):
            body = json.loads(c.body)
            if "chat_template" in body and not self.trusts:
                c.send(whole({"error": {"message": "Chat template is passed with request, but --trust-request-chat-template is not set.", "code": 400}}, status=400))
                return
            self.sizes.append(len(ids_of(folder, c.body, FORMS[c.target])))
            usage = {"prompt_tokens": self.sizes[-1], "completion_tokens": 1, "total_tokens": self.sizes[-1] + 1, "prompt_tokens_details": {"cached_tokens": 0}}
            c.send(whole({**COMPLETION, "usage": usage}))

        self.tokenized, self.sizes, self.trusts = [], [], trusts
        super().__init__(script, tokenize=tokenize)
        self.version = version


def gateway(start, folder, up, *args):
    gw = Gateway(start, up, args=["--tokenizer", folder, "--receipts", "100", *args])
    assert eventually(lambda: "event=tokenizer_ready" in gw.process.text, 10), gw.process.text[-2000:]
    return gw


def body(text, **more):
    return {**CHAT, "messages": [{"role": "user", "content": text}], **more}


def made(gw, source):
    return gw.metric(f'kvasir_token_ids_total{{source="{source}"}}')


def compared(gw, result):
    return gw.metric(f'kvasir_token_ids_compared_total{{result="{result}"}}')


def receipt(gw, answer):
    return client.call(gw.admin, "GET", "/api/v1/decisions/" + answer.headers["x-request-id"]).json


def test_a_truncated_prompt_is_counted_as_its_worker_counts_it(start, folder):
    with Worker(folder) as up:
        gw = gateway(start, folder, up)
        for how in ({"truncate_prompt_tokens": 7}, {"truncate_prompt_tokens": 7, "truncation_side": "right"}, {"truncate_prompt_tokens": 500}):
            r = gw.chat(body("a text of more than seven ids", **how))
            assert r.status == 200 and receipt(gw, r)["prompt_tokens"] == up.sizes[-1], how
        assert up.sizes[0] == up.sizes[1] == 7 < up.sizes[2]
        assert made(gw, "local") == 3
        assert gw.chat(body("a text of more than seven ids")).status == 200
        # /tokenize knows nothing of truncation: it is asked for the whole prompt only
        assert eventually(lambda: compared(gw, "same") == 1, 10)
        assert len(up.tokenized) == 1 and compared(gw, "different") == compared(gw, "other_length") == 0
        assert gw.settled()


def test_the_other_apis_truncate_too(start, folder):
    with Worker(folder) as up:
        gw = gateway(start, folder, up)
        for path, b in (("/v1/completions", {"prompt": "some text of a few ids", "truncate_prompt_tokens": 5}), ("/v1/completions", {"prompt": list(range(20)), "truncate_prompt_tokens": 3}),
                        ("/v1/embeddings", {"input": "some text of a few ids", "truncate_prompt_tokens": 4}), ("/v1/responses", {"input": "x", "truncation": "auto"})):
            r = gw.call("POST", path, {"model": "m", **b})
            assert r.status == 200 and receipt(gw, r)["prompt_tokens"] == up.sizes[-1], b
        assert up.sizes[:3] == [5, 3, 4] and made(gw, "local") == 4
        assert compared(gw, "different") == compared(gw, "other_length") == 0


def test_what_the_model_takes_is_its_workers_length(start, folder):
    """-1: known where all of them say the same."""
    with Worker(folder) as up:
        up.max_model_len = 64
        gw = gateway(start, folder, up)
        r = gw.chat(body("abc " * 40, truncate_prompt_tokens=-1, max_tokens=1))
        assert r.status == 200 and receipt(gw, r)["prompt_tokens"] == up.sizes[-1] == 63
        r = gw.chat(body("abc " * 40, truncate_prompt_tokens=-1, max_tokens=None))
        assert r.status == 200 and receipt(gw, r)["prompt_tokens"] == up.sizes[-1] == 64 and made(gw, "local") == 2


@pytest.mark.parametrize("version", [None, "0.31.0"])
def test_another_version_truncates_in_its_own_way(start, folder, version):
    with Worker(folder, version=version) as up:
        gw = gateway(start, folder, up, "--tokens", "local")
        assert gw.chat(body("some text of a few ids", truncate_prompt_tokens=5)).status == 200
        assert made(gw, "local") == 0 and gw.metric('kvasir_token_ids_left_total{reason="truncation"}') == 1


OWN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ n }}"


def test_a_requests_own_template_makes_its_prompt(start, folder):
    with Worker(folder) as up:
        gw = gateway(start, folder, up)
        for how in ({"chat_template": OWN}, {"chat_template": OWN, "chat_template_kwargs": {"n": "x" * 50}}, {"chat_template": "short"}, {}, {"chat_template": OWN, "truncate_prompt_tokens": 6}):
            r = gw.chat(body("hello", **how))
            assert r.status == 200 and receipt(gw, r)["prompt_tokens"] == up.sizes[-1], how
        assert len(set(up.sizes)) == 5 and made(gw, "local") == 5
        # all but the cut one are compared: /tokenize takes a template
        assert eventually(lambda: compared(gw, "same") == 4, 10)
        assert compared(gw, "different") == compared(gw, "other_length") == 0
        assert sorted(t.get("chat_template", "") for t in up.tokenized) == sorted(["", "short", OWN, OWN])
        assert gw.settled()


def test_two_templates_never_share(start, folder):
    """One chat under two templates, again and again, as text and by what is remembered of it."""
    with Worker(folder) as up:
        gw = gateway(start, folder, up, "--tokens", "local")
        text = "the same words of the same chat " * 60
        for turn in range(3):
            for template in ("{{ messages[0].content }}", "{{ messages[0].content }}.", "<|im_start|>{{ messages[0].content }}"):
                r = gw.chat(body(text, chat_template=template))
                assert r.status == 200 and receipt(gw, r)["prompt_tokens"] == up.sizes[-1], (turn, template)
        assert len(set(up.sizes)) == 2 and up.sizes[:3] == up.sizes[3:6] == up.sizes[6:]
        assert made(gw, "local") == 3 and made(gw, "cache") == 6 and compared(gw, "other_length") == 0


def test_a_worker_that_trusts_no_template_refuses_it_and_that_is_no_difference(start, folder):
    with Worker(folder, trusts=False) as up:
        gw = gateway(start, folder, up)
        for i in range(4):
            assert gw.chat(body(f"hello {i}", chat_template=OWN)).status == 400
        assert gw.chat(body("hello")).status == 200
        assert eventually(lambda: compared(gw, "same") >= 1, 10)
        assert compared(gw, "different") == compared(gw, "other_length") == 0
        assert gw.settled()


HOSTILE = ["{% for i in range(90000) %}{% for k in range(90000) %}{% set x = messages[0].content in 'abc' %}{% endfor %}{% endfor %}",
           "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
           "{% set ns = namespace(a=[1], b=[2]) %}{% for i in range(20000) %}{% set ns.a = [ns.a] %}{% set ns.b = [ns.b] %}{% endfor %}{{ ns.a == ns.b }}",
           "{% set s = 'x' * 900000 %}{% for i in range(90000) %}{% set t = s | upper %}{% endfor %}",
           "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}"]


def test_a_hostile_template_stalls_nobody(start, folder):
    """It ends by itself on a thread of the pool, one at a time; meanwhile others come and go, and it goes on without ids."""
    with Worker(folder) as up:
        known = up.script
        up.script = lambda c: c.send(whole(COMPLETION)) if json.loads(c.body).get("chat_template") in HOSTILE else known(c)
        gw = gateway(start, folder, up, "--tokens", "local", "--tokens-budget", "100ms")
        answers = []

        def hostile(i):
            answers.append(gw.chat(body(f"hostile {i}", chat_template=HOSTILE[i % len(HOSTILE)])).status)
        threads = [threading.Thread(target=hostile, args=(i,)) for i in range(3 * len(HOSTILE))]
        for t in threads:
            t.start()
        for i in range(20):
            assert gw.chat(body(f"hello {i}")).status == 200
        for t in threads:
            t.join()
        assert answers == [200] * len(threads)
        assert made(gw, "local") == 20
        # those whose requests went on meanwhile are not even begun
        assert eventually(lambda: gw.metric("kvasir_token_ids_left_total") == len(threads), 60)
        assert gw.metric('kvasir_token_ids_left_total{reason="template_limit"}') >= 1
        assert gw.metric("kvasir_requests_open") == 0 and gw.settled()
        assert gw.chat(body("hello", chat_template=OWN)).status == 200
        assert eventually(lambda: made(gw, "local") == 21, 10)
