"""Token ids from the tokenizer in the gateway: made without a worker, compared beside the requests, given up when they are wrong."""
import itertools
import json
import random
import subprocess
import threading

import pytest

import client
from client import CHAT
from conftest import BIN_DIR, eventually, model_folder
from gateway import Gateway
from upstream import COMPLETION, Upstream, whole

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path, TEMPLATE)


def ids_of(folder, body):
    out = subprocess.run([BIN_DIR / "kvasir", "tokenize", "--model-dir", folder, "--chat"], input=body.encode() if isinstance(body, str) else bytes(body),
                         capture_output=True, timeout=20, check=False)
    assert out.returncode == 0, (out.stderr, body[:500])
    return json.loads(out.stdout)


class Worker(Upstream):
    """tokenises as the folder does, and reports that many prompt tokens"""

    def __init__(self, folder, wrong_ids=False, wrong_usage=False):
        def tokenize(c):
            ids = ids_of(folder, c.body)
            c.send(whole({"count": len(ids), "max_model_len": 4096, "tokens": [i ^ 1 for i in ids] if wrong_ids else ids, "token_strs": None}))

        def script(c):
            n = len(ids_of(folder, c.body)) + (1 if wrong_usage else 0)
            c.send(whole({**COMPLETION, "usage": {"prompt_tokens": n, "completion_tokens": 1, "total_tokens": n + 1, "prompt_tokens_details": {"cached_tokens": 0}}}))
        super().__init__(script, tokenize=tokenize)


def body(text):
    return {**CHAT, "messages": [{"role": "user", "content": text}]}


def ready(gw):
    assert eventually(lambda: "event=tokenizer_" in gw.process.text, 10), gw.process.text[-2000:]


def made(gw, source):
    return gw.metric(f'kvasir_token_ids_total{{source="{source}"}}')


def test_ids_are_made_here_and_compared(start, folder):
    with Worker(folder) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder])
        ready(gw)
        for i in range(5):
            assert gw.chat(body(f"hello {i}")).status == 200
        assert gw.chat(body("hello 0")).status == 200
        assert made(gw, "local") == 5 and made(gw, "cache") == 1 and made(gw, "call") == 0
        assert eventually(lambda: gw.metric('kvasir_token_ids_compared_total{result="same"}') == 5, 10)
        assert gw.metric('kvasir_token_ids_compared_total{result="different"}') == 0
        told = client.call(gw.admin, "GET", "/api/v1/tokenizers").json["tokenizers"]
        assert [(t["state"], t["folder"], t["chats"], t["agreed"]) for t in told] == [("ready", str(folder), True, 5)]


def test_three_differences_and_the_workers_are_asked(start, folder):
    with Worker(folder, wrong_ids=True) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens-budget", "20s"])
        ready(gw)
        for i in range(3):
            gw.chat(body(f"one {i}"))
        assert eventually(lambda: "event=tokenizer_distrusted" in gw.process.text, 10), gw.process.text[-2000:]
        assert "one 0" not in gw.process.text and "first_at_tok=0" in gw.process.text
        before = made(gw, "local")
        assert gw.chat(body("another")).status == 200
        assert made(gw, "local") == before and made(gw, "call") == 1
        assert gw.metric('kvasir_token_ids_left_total{reason="distrusted"}') == 1


def test_only_sighup_or_other_files_make_it_trusted_again(start, folder, tmp_path):
    """a reload that says the same of the tokenizer keeps it, and what was found wrong with it"""
    with Worker(folder, wrong_usage=True) as up:
        file = tmp_path / "pool.yaml"
        file.write_text("apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: p}\nspec:\n"
                        f"  tokenizer: {{path: model}}\n  workers: [{up.url}]\n")
        gw = Gateway(start, args=["-c", tmp_path, "--tokens", "local"])
        assert eventually(lambda: gw._ready(1), 10)
        ready(gw)
        told = lambda: client.call(gw.admin, "GET", "/api/v1/tokenizers").json["tokenizers"][0]  # noqa: E731
        loaded = lambda: gw.metric("kvasir_config_reloads_total")  # noqa: E731

        def reload(change):
            n = loaded()
            change()
            assert eventually(lambda: loaded() > n, 10)
        reload(file.touch)
        assert gw.process.text.count("event=tokenizer_ready") == 1
        for i in range(3):
            gw.chat(body(f"three {i}"))
        assert eventually(lambda: told()["state"] == "distrusted", 10)
        reload(file.touch)
        line = gw.log(gw.chat(body("after")).headers["x-request-id"])
        assert line["ids"] == "distrusted" and made(gw, "distrusted") == 1 and gw.metric('kvasir_token_ids_left_total{reason="distrusted"}') == 1
        assert told()["state"] == "distrusted" and told()["different"] == 3 and "differed from the worker's 3 times" in told()["why"]
        assert gw.process.text.count("event=tokenizer_ready") == 1
        reload(lambda: gw.process.signal(1))
        assert eventually(lambda: gw.process.text.count("event=tokenizer_ready") == 2, 10)
        assert eventually(lambda: told()["state"] == "ready", 5) and told()["different"] == 0


def test_another_length_in_the_usage_counts_as_a_difference(start, folder):
    with Worker(folder, wrong_usage=True) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens", "local"])
        ready(gw)
        for i in range(4):
            gw.chat(body(f"two {i}"))
        assert eventually(lambda: "event=tokenizer_distrusted" in gw.process.text, 10), gw.process.text[-2000:]
        assert "found_by=usage" in gw.process.text and not up.tokenize_calls


def test_what_is_known_of_a_tokenizer_outlives_its_worker_being_away(start, folder):
    """one late probe is no reason to read the files again, nor to trust what was found wrong"""
    with Worker(folder, wrong_ids=True) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder])
        ready(gw)
        for i in range(3):
            assert gw.chat(body(f"away {i}")).status == 200
        assert eventually(lambda: "event=tokenizer_distrusted" in gw.process.text, 15), gw.process.text[-2000:]
        asked = sum(path == "/version" for path, _ in up.own_headers)
        up.health = 500
        assert eventually(lambda: gw.workers()[0]["state"] != "healthy", 15)
        up.health = 200
        assert eventually(lambda: "event=worker_relearnt" in gw.process.text, 15)
        assert eventually(lambda: sum(path == "/version" for path, _ in up.own_headers) > asked and gw.workers()[0]["state"] == "healthy", 15)
        assert gw.chat(body("and back")).status == 200
        assert client.call(gw.admin, "GET", "/api/v1/tokenizers").json["tokenizers"][0]["state"] == "distrusted"
    assert gw.process.text.count("event=tokenizer_ready") == 1


def test_only_local_never_asks(start, folder):
    with Worker(folder) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens", "local"])
        ready(gw)
        assert gw.chat(body("plain")).status == 200
        image = {**CHAT, "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]}]}
        up.script = lambda c: c.send(whole(COMPLETION))
        assert gw.chat(image).status == 200
        assert made(gw, "local") == 1 and gw.metric('kvasir_token_ids_left_total{reason="media_too_early"}') == 1 and not up.tokenize_calls


# ---- images: what comes before them

IM = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
NEXT = itertools.count()


def picture(system="be brief " * 60, pad=""):
    """the same instructions, another image"""
    url = f"data:image/png;base64,{next(NEXT)}{pad}"
    return {**CHAT, "messages": [{"role": "system", "content": system},
                                 {"role": "user", "content": [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": {"url": url}}]}]}


def reports(cached):
    def script(c):
        c.send(whole({**COMPLETION, "usage": {"prompt_tokens": 5000, "completion_tokens": 1, "total_tokens": 5001, "prompt_tokens_details": {"cached_tokens": cached}}}))
    return script


@pytest.mark.parametrize("pad", ["", "A" * 300000], ids=["short", "long"])
@pytest.mark.parametrize("tokens", ["local", "auto"])
def test_what_comes_before_an_image_is_keyed(start, tmp_path, tokens, pad):
    """requests with other images go to the worker that has the instructions; what only it knows is not held against us"""
    with Upstream(reports(480)) as one, Upstream(reports(480)) as other:
        gw = Gateway(start, one, other, args=["--tokenizer", model_folder(tmp_path, IM), "--tokens", tokens, "--tokens-budget", "20s"])
        ready(gw)
        assert eventually(lambda: gw.log(gw.chat(picture(system="x", pad=pad)).headers["x-request-id"])["ids"] == "prefix", 10)
        lines = [gw.log(gw.chat(picture(pad=pad)).headers["x-request-id"]) for _ in range(5)]
        assert [line["ids"] for line in lines] == ["prefix"] * 5 and len({line["worker"] for line in lines}) == 1, lines
        assert int(lines[0]["overlap_tok"]) == 0 and all(int(line["overlap_tok"]) > 300 for line in lines[1:]), lines
        assert gw.log(gw.chat(picture(system="x")).headers["x-request-id"])["overlap_tok"] == "0"
        assert made(gw, "prefix") >= 7 and gw.metric("kvasir_token_ids_compared_total") == 0
        assert client.call(gw.admin, "GET", "/api/v1/tokenizers").json["tokenizers"][0]["state"] == "ready"
        assert gw.settled()


def rendering(folder, wrong=False, late=0):
    """a worker that renders: the text before the image as we make it, and more"""
    def tokenize(c):
        if "render" not in c.target:
            c.send(whole({"error": "no"}, 404))
        c.sleep(late)
        ids = ids_of(folder, json.dumps({**CHAT, "messages": c.json["messages"][:1]}))
        c.send(whole({"token_ids": [i ^ 1 if wrong else i for i in ids + ids[:1]] + [9] * 32}))
    return tokenize


@pytest.mark.parametrize("wrong", [False, True], ids=["same", "different"])
def test_a_render_call_knows_more_than_the_prefix(start, tmp_path, wrong):
    folder = model_folder(tmp_path, IM)
    with Upstream(reports(0), tokenize=rendering(folder, wrong)) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens-budget", "20s"])
        ready(gw)
        word, other = ("different", "same") if wrong else ("same", "different")
        asked = lambda: gw.log(gw.chat(picture()).headers["x-request-id"])["ids"]  # noqa: E731
        assert eventually(lambda: asked() == "keys" and gw.metric(f'kvasir_token_ids_compared_total{{result="{word}"}}') >= 1, 10)
        assert gw.metric(f'kvasir_token_ids_compared_total{{result="{other}"}}') == 0 and made(gw, "call") == len(up.tokenize_calls)


def test_a_late_render_call_leaves_the_prefix(start, tmp_path):
    folder = model_folder(tmp_path, IM)
    with Upstream(reports(0), tokenize=rendering(folder, late=3)) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens-budget", "100ms"])
        ready(gw)
        assert eventually(lambda: gw.log(gw.chat(picture()).headers["x-request-id"])["ids"] == "prefix" and made(gw, "prefix") == 1, 10)


def test_a_long_body_goes_to_the_thread_pool(start, folder):
    with Worker(folder) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens-budget", "20s"])
        ready(gw)
        assert gw.chat(body("long text " * 27000)).status == 200
        assert made(gw, "local") == 1
        assert eventually(lambda: gw.metric('kvasir_token_ids_compared_total{result="same"}') == 1, 20)


def test_a_pool_names_its_tokenizer(start, folder, tmp_path):
    with Worker(folder) as up:
        file = tmp_path / "pool.yaml"
        file.write_text("apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: p}\nspec:\n"
                        f"  tokenizer: {{path: model}}\n  workers: [{up.url}]\n")
        gw = Gateway(start, args=["-c", file])
        assert eventually(lambda: gw._ready(1), 10)
        ready(gw)
        assert gw.chat(body("hello")).status == 200 and made(gw, "local") == 1
        file.write_text(file.read_text().replace("{path: model}", "worker"))
        tries = itertools.count()
        assert eventually(lambda: gw.chat(body(f"again {next(tries)}")).status == 200 and made(gw, "call") >= 1, 10)


def test_without_files_the_workers_are_asked(start, folder, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with Worker(folder) as up:
        gw = Gateway(start, up, args=["--tokenizer", "nobody/has-this", "--tokens-budget", "20s"])
        ready(gw)
        assert "event=tokenizer_absent" in gw.process.text
        assert gw.chat(body("hello")).status == 200 and made(gw, "call") == 1


def test_an_adapter_has_the_tokenizer_of_its_base_model(start, folder):
    """By default it is the folder that the worker names as the model's root; an adapter's own root has none."""
    with Worker(folder) as up:
        up.models, up.parents, up.root = ("base", "tuned"), {"tuned": "base"}, str(folder)
        gw = Gateway(start, up)
        ready(gw)
        for name in up.models:
            assert gw.chat({**body(f"hello {name}"), "model": name}).status == 200
        assert made(gw, "local") == 2 and made(gw, "call") == 0
        assert eventually(lambda: gw.metric('kvasir_token_ids_compared_total{result="same"}') == 2, 10)
        assert [t["folder"] for t in client.call(gw.admin, "GET", "/api/v1/tokenizers").json["tokenizers"]] == [str(folder)]


@pytest.mark.parametrize("more, why", [({"truncate_prompt_tokens": 3}, "truncation"), ({"chat_template": "{{ messages[0].content }}"}, "version")])
def test_what_a_worker_of_no_known_version_does_to_one_prompt_alone_is_left_to_it(start, folder, more, why):
    with Worker(folder) as up:
        up.script = lambda c: c.send(whole(COMPLETION))
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens", "local"])
        ready(gw)
        assert gw.chat({**body("hello"), **more}).status == 200
        assert made(gw, "local") == 0 and gw.metric(f'kvasir_token_ids_left_total{{reason="{why}"}}') == 1


MARKED = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"


def test_case_dynamo_9466_the_next_turn_of_a_chat_costs_what_is_new(start, folder):
    (folder / "chat_template.jinja").write_text(MARKED)
    turns = [{"role": "user" if i % 2 == 0 else "assistant", "content": f"turn {i}: " + "some words of it " * 100} for i in range(9)]
    with Worker(folder) as up:
        gw = Gateway(start, up, args=["--tokenizer", folder, "--threads", "2"])
        ready(gw)
        for n in (7, 9):  # each on a connection of its own
            assert gw.chat({**CHAT, "messages": turns[:n]}).status == 200
        assert gw.metric("kvasir_tokens_text_known_bytes_total") > 6 * 1700
        assert gw.metric("kvasir_tokens_text_new_bytes_total") < 11 * 1800
        assert 7 * 1700 < gw.metric("kvasir_tokens_text_memory_bytes") < 300_000
        assert made(gw, "local") == 2
        assert eventually(lambda: gw.metric('kvasir_token_ids_compared_total{result="same"}') == 2, 10)
        assert gw.metric('kvasir_token_ids_compared_total{result="different"}') == 0


def words(n_bytes, seed):
    """text that no cache knows"""
    r = random.Random(seed)
    return " ".join("".join(r.choices("abcdefghijklmnopqrstuvwxyz", k=39)) for _ in range(n_bytes // 40))


@pytest.mark.parametrize("prompt", ["a" * 3_000_000, words(4_000_000, 1), "a" * 250_000], ids=["one_letter", "words", "short_body"])
def test_a_long_prompt_stalls_nobody(start, folder, prompt):
    """While it waits for its ids, other requests come and go."""
    with Worker(folder) as up:
        arrived = threading.Event()

        def script(c):
            if len(c.body) > 100_000:
                arrived.set()
            c.send(whole({**COMPLETION, "usage": None}))
        up.script = script
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens-budget", "1m", "--tokens", "local"])
        ready(gw)
        gw.chat(body("short"))
        gw.chat(body("other"))
        with gw.client(seconds=60) as big:
            big.request("POST", "/v1/chat/completions", body(prompt))
            while not arrived.is_set() and not gw.metric('kvasir_requests_open{stage="ids"}'):
                pass
            n = 0
            while not arrived.is_set() and n < 1000:
                assert gw.chat(body("short")).status == 200
                n += 1
            assert n >= 2, "one may slip in where the loop is held"
            assert big.response().status == 200
        assert made(gw, "local") == 3


def test_the_bench_measures_the_whole_way(folder, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("a line of words, and 12 numbers\n" * 4000)
    chats = tmp_path / "chats.jsonl"
    out = subprocess.run([BIN_DIR / "kvasir-bench", "tokenize", "--model-dir", folder, "--write-chats", chats, text], capture_output=True, text=True, timeout=120, check=True).stdout
    for name in ("loading", "texts of 10k tokens, empty word cache", "texts of 10k tokens, words known", "chat of 10k tokens, words known, p50", "its next turn, p50", "1 MB of one letter"):
        assert any(line.startswith(name + " ") and float(line.split()[-2]) > 0 for line in out.splitlines()), out
    first, turn = (json.loads(line)["messages"] for line in chats.read_text().splitlines()[:2])
    assert len(turn) == len(first) + 2 and turn[:len(first)] == first
