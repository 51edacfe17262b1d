"""kvasir tokenize --chat and --check: our ids of request bodies, alone and against a worker's own."""
import json
import subprocess

import pytest

from conftest import BIN_DIR, model_folder
from upstream import Upstream, whole

BODIES = [{"messages": [{"role": "user", "content": t}]} for t in ("hi", "another", "third")]
IMAGE = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]}


@pytest.fixture
def folder(tmp_path):
    return model_folder(tmp_path, "{{ bos_token }}{% for m in messages %}{{ m.content }};{% endfor %}")


def run(folder, *args, bodies=BODIES, text=None):
    text = "".join(json.dumps(b) + "\n" for b in bodies) if text is None else text
    return subprocess.run([BIN_DIR / "kvasir", "tokenize", "--model-dir", folder, *args], input=text, capture_output=True, text=True, timeout=30, check=False)


def test_bodies_give_ids_prompts_and_reasons(folder):
    r = run(folder, "--chat", "--lines", bodies=[*BODIES, IMAGE])
    lines = [json.loads(x) for x in r.stdout.splitlines()]
    assert all(isinstance(x, list) and x for x in lines[:3]) and lines[3] == {"error": "part_kind"} and r.returncode == 1
    assert [json.loads(x) for x in run(folder, "--prompt", "--lines").stdout.splitlines()] == ["<s>hi;", "<s>another;", "<s>third;"]
    r = run(folder, "--completions", "--lines", bodies=[{"prompt": ["hi", "hi"]}, {"prompt": [5, 6]}])
    two, given = [json.loads(x) for x in r.stdout.splitlines()]
    assert two[0] == two[1] and given == [5, 6]


@pytest.mark.parametrize("wrong", [False, True])
def test_check_against_a_worker(folder, wrong):
    ours = {b["messages"][0]["content"]: ids for b, ids in zip(BODIES, (json.loads(x) for x in run(folder, "--chat", "--lines").stdout.splitlines()))}

    def tokenize(c):
        ids = ours[c.json["messages"][0]["content"]]
        ids = [*ids[:-1], ids[-1] + 1] if wrong and len(ids) > 3 else ids
        c.send(whole({"count": len(ids), "max_model_len": 10, "tokens": ids}) if c.target == "/tokenize" else whole({}, 403))
    with Upstream(tokenize=tokenize) as up:
        r = run(folder, "--check", "--chat", "--worker", up.url)
    told = json.loads(r.stdout)
    assert told["bodies"] == 3 and told["failed"] == 0 and told["equal"] + told["different"] == 3
    assert (told["different"] > 0) == wrong and r.returncode == (1 if wrong else 0) and ("other ids from token" in r.stderr) == wrong


def test_check_takes_several_files(folder, tmp_path):
    """one after another, whether a file's last line ends or not; one that is not there is named"""
    files = [tmp_path / f"bodies{i}.jsonl" for i in range(3)]
    for f, b in zip(files, BODIES):
        f.write_text(json.dumps(b))
    lines = run(folder, "--chat", "--lines").stdout.splitlines()
    ours = {b["messages"][0]["content"]: json.loads(x) for b, x in zip(BODIES, lines)}

    def tokenize(c):
        ids = ours[c.json["messages"][0]["content"]]
        c.send(whole({"count": len(ids), "max_model_len": 10, "tokens": ids}) if c.target == "/tokenize" else whole({}, 403))
    with Upstream(tokenize=tokenize) as up:
        told = json.loads(run(folder, "--check", "--chat", "--worker", up.url, *files).stdout)
        assert told["bodies"] == told["equal"] == 3
        r = run(folder, "--check", "--chat", "--worker", up.url, files[0], tmp_path / "none")
    assert r.returncode == 1 and "none" in r.stderr and not r.stdout


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("key", [False, True])
def test_check_says_that_the_worker_wants_a_key(folder, monkeypatch, status, key):
    monkeypatch.setenv("A_KEY", "sesame")
    with Upstream(tokenize=lambda c: c.send(whole({"error": "Unauthorized"}, status))) as up:
        r = run(folder, "--check", "--chat", "--worker", up.url, *(["--api-key-env", "A_KEY"] if key else []))
        assert all((c.headers.get("authorization") == "Bearer sesame") == key for c in up.tokenize_calls)
    assert r.returncode == 1 and f"answered {status}" in r.stderr and ("refuses the key" if key else "wants an API key") in r.stderr, r
    assert json.loads(r.stdout)["bodies"] == 1, "no use to go on"


def test_check_that_compared_nothing_is_no_success(folder):
    def refuse(c):
        c.send(whole({"error": {"message": "too long"}}, 400))
    with Upstream(tokenize=refuse) as up:
        r = run(folder, "--check", "--chat", "--worker", up.url)
        assert r.returncode == 1 and json.loads(r.stdout)["refused_by_worker"] == 3 and "nothing was compared" in r.stderr and "line 2: refused by the worker (400)" in r.stderr, r
        r = run(folder, "--check", "--chat", "--worker", up.url, bodies=[])
        assert r.returncode == 1 and "nothing was compared: the input is empty" in r.stderr, r
        calls = len(up.tokenize_calls)
        r = run(folder, "--check", "--chat", "--worker", up.url, "--api-key-env", "KVASIR_NO_SUCH_KEY")
        assert r.returncode == 2 and "KVASIR_NO_SUCH_KEY" in r.stderr and len(up.tokenize_calls) == calls, r


@pytest.mark.parametrize("render", [False, True])
@pytest.mark.parametrize("order", ["ugg", "gug", "ggu"])
def test_check_does_not_depend_on_the_order_of_bodies(folder, order, render):
    """the worker's 404 is about a body's model, and says nothing of its calls"""
    bodies = [{"model": "m" if x == "g" else "unknown", **BODIES[0]} for x in order]
    ids = json.loads(run(folder, "--chat", bodies=BODIES[:1]).stdout)

    def tokenize(c):
        if c.json["model"] != "m":
            c.send(whole({"error": {"message": "The model `unknown` does not exist.", "code": 404}}, 404))
        elif c.target == "/tokenize":
            c.send(whole({"count": len(ids), "max_model_len": 10, "tokens": ids}))
        else:
            c.send(whole({"request_id": "r", "token_ids": ids} if render else {"detail": "Not Found"}, 200 if render else 404))
    with Upstream(tokenize=tokenize) as up:
        r = run(folder, "--check", "--chat", "--worker", up.url, bodies=bodies)
    told = json.loads(r.stdout)
    assert (told["equal"], told["refused_by_worker"], told["failed"], r.returncode) == (2, 1, 0, 0), r


def test_check_takes_texts_unless_it_is_told_otherwise(folder):
    """as lines, or as JSON strings"""
    texts = ["hi", '{"messages": 1}', "a b"]
    quoted = "".join(json.dumps(t) + "\n" for t in texts)
    ours = {t: json.loads(x) for t, x in zip(texts, run(folder, "--lines", text=quoted).stdout.splitlines())}
    bare = {t: json.loads(x) for t, x in zip(texts, run(folder, "--lines", "--no-special", text=quoted).stdout.splitlines())}

    def tokenize(c):
        ids = (bare if c.json.get("add_special_tokens") is False else ours)[c.json["prompt"]]
        c.send(whole({"count": len(ids), "max_model_len": 10, "tokens": ids}) if c.target == "/tokenize" else whole({}, 403))
    with Upstream(tokenize=tokenize) as up:
        for args, text in (((), "\n".join(texts)), (("--text",), "\n".join(texts)), (("--lines",), quoted), (("--chat", "--text", "--no-special", "--lines"), quoted)):
            r = run(folder, "--check", *args, "--worker", up.url, text=text)
            assert r.returncode == 0 and json.loads(r.stdout)["equal"] == 3, (args, r)
            assert all("add_special_tokens" in c.json for c in up.tokenize_calls) == ("--no-special" in args)
            up.tokenize_calls.clear()
        r = run(folder, "--check", "--lines", "--worker", up.url, text='"hi"\n7\n')
    assert r.returncode == 1 and json.loads(r.stdout)["equal"] == 1 and "line 2: not a JSON string" in r.stderr, r


def test_several_prompts_have_a_count_and_pieces_each(folder):
    def both(form, body):
        ids, count, pieces = (json.loads(run(folder, form, *how, bodies=[body]).stdout) for how in ([], ["--count"], ["--pieces"]))
        assert count == [len(x) for x in ids] == [len(x) for x in pieces] and all(isinstance(p, str) for x in pieces for p in x), (form, ids, count, pieces)
        return len(ids)
    assert both("--completions", {"prompt": ["a b", "c"]}) == 2
    assert both("--embeddings", {"input": ["a b", "c", "hello"]}) == 3
    assert both("--score", {"queries": "a b", "documents": ["c", "d"]}) == 3
    assert json.loads(run(folder, "--completions", "--count", bodies=[{"prompt": [5, 6]}]).stdout) == 2


def test_a_body_that_is_no_json(folder):
    for form in ("--chat", "--completions", "--messages"):
        r = run(folder, form, text="not json")
        assert r.returncode == 1 and "not valid JSON" in r.stderr and "only a worker" not in r.stderr and not r.stdout, r
    r = run(folder, "--chat", bodies=[IMAGE])
    assert r.returncode == 1 and "only a worker can say: part_kind" in r.stderr, r


def test_wrong_use(folder):
    r = run(folder, "--chatt")
    assert r.returncode == 2 and r.stderr.count("\n") == 1 and "--chatt" in r.stderr and "--help" in r.stderr, r
    assert run(folder, "--help").stdout == run(folder, "-h").stdout != ""
    assert run(folder, "--check", "--score", "--worker", "http://127.0.0.1:1").returncode == 2
    assert run(folder, "--check").returncode == 2
    assert run(folder, "--check", "--worker", "ftp://x").returncode == 2
    assert run(folder, "--model-dir", folder, "--hub", "a/b").returncode == 2
