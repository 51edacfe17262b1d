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


def run(folder, *args, bodies=BODIES):
    text = "".join(json.dumps(b) + "\n" for b in bodies)
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
        r = run(folder, "--check", "--worker", up.url)
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
        told = json.loads(run(folder, "--check", "--worker", up.url, *files).stdout)
        assert told["bodies"] == told["equal"] == 3
        r = run(folder, "--check", "--worker", up.url, files[0], tmp_path / "none")
    assert r.returncode == 1 and "none" in r.stderr and not r.stdout


def test_wrong_use(folder):
    assert run(folder, "--check").returncode == 2
    assert run(folder, "--check", "--worker", "ftp://x").returncode == 2
    assert run(folder, "--model-dir", folder, "--hub", "a/b").returncode == 2
