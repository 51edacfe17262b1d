"""kvasir check, get, explain as an operator types them."""
import json
import pathlib
import re
import subprocess

import client
import pytest
from conftest import BIN_DIR, eventually, free_port
from gateway import Gateway
from sim import Fleet, words


def kvasir(*args, stdin=None):
    return subprocess.run([BIN_DIR / "kvasir", *map(str, args)], capture_output=True, text=True, timeout=20, check=False, input=stdin)


def test_help_lists_each_verb_once():
    r = kvasir("help")
    verbs = [line.split()[0] for line in r.stdout.splitlines() if line.startswith("  ")]
    assert r.returncode == 0 and verbs == ["serve", "check", "explain", "get", "tokenize"], r.stdout
    assert kvasir("-h").stdout == kvasir("--help").stdout == r.stdout
    for v in verbs:
        told = [kvasir(*words) for words in ((v, "--help"), (v, "-h"), ("help", v))]
        assert told[0].stdout and all((t.returncode, t.stdout) == (0, told[0].stdout) for t in told), (v, told)
    assert "'relay' is no verb" in kvasir("help", "relay").stderr
    r = kvasir("relay")
    assert r.returncode == 2 and "'relay' is no verb" in r.stderr and "serve" in r.stderr


def test_check(tmp_path):
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: p}\nspec:\n  workers: [http://a:1]\n")
    bad.write_text("apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: q}\nspec:\n  workers: [https://a:1]\n  engine: x\n---\nkind: Tenant\n")
    r = kvasir("check", good)
    assert r.returncode == 0 and "good: 1 pool, 1 worker" in r.stdout
    r = kvasir("check", bad, good, tmp_path / "none.yaml")
    assert r.returncode == 1
    lines = r.stdout.splitlines()
    assert lines[0].startswith(f"{bad}:5:13: spec.workers[0]: ") and lines[1].startswith(f"{bad}:6:11: spec.engine: "), lines
    assert f"{bad}:8:7: kind: Tenant is not in this version" in r.stdout and "none.yaml: cannot be read" in r.stdout
    assert kvasir("check").returncode == 2 and kvasir("check", "--help").returncode == 0
    assert kvasir("check", tmp_path).returncode == 1, "a folder is read whole"


POOL = "apiVersion: kvasir.dev/v1alpha1\nkind: WorkerPool\nmetadata: {name: p}\nspec:\n"


def test_check_looks_at_what_a_pool_names(tmp_path):
    pool, listed, model = tmp_path / "p.yaml", tmp_path / "workers.txt", tmp_path / "model"
    pool.write_text(POOL + "  workers: [{url: http://a:1, accelerator: h1000}]\n  discovery: {file: workers.txt}\n  tokenizer: {path: model}\n")
    r = kvasir("check", pool)
    assert r.returncode == 1
    assert f"{pool}:5:44: spec.workers[0].accelerator: 'h1000' has no cost profile: must be one of qwen3-32b-h100-tp2, " in r.stdout and ", h100, " in r.stdout, r.stdout
    assert f"{pool}:6:21: spec.discovery.file: '{listed}': there is no such file" in r.stdout, r.stdout
    assert f"{pool}:7:21: spec.tokenizer.path: there is no '{model}'" in r.stdout, r.stdout

    model.mkdir()
    listed.write_text("http://b:1\nhttps://c:1\nhttp://d:1 events=tcp://*:1\n\nhttp://e:1 colour=red\nhttp://f:1 accelerator=tpu\nhttp://a:1\n")
    r = kvasir("check", pool)
    places = [line.split(" ")[0] for line in r.stdout.splitlines() if line.startswith(str(listed))]
    assert places == [f"{listed}:{n}:1:" for n in (2, 3, 5, 6, 7)], r.stdout
    assert "the line is refused" in r.stdout and "'colour' is ignored" in r.stdout and "http://a:1 is named by the configuration too" in r.stdout
    assert "spec.tokenizer.path" in r.stdout and "holds no tokenizer: must have tokenizer.json" in r.stdout, r.stdout

    (model / "tokenizer.json").write_text("{}")
    listed.write_text("http://b:1\n")
    pool.write_text(pool.read_text().replace("h1000", "H100"))
    r = kvasir("check", pool)
    assert r.returncode == 0 and "good: 1 pool" in r.stdout, r.stdout
    pool.write_text(POOL + "  workers: [http://a:1]\n  tokenizer: {hub: {repo: a/b/c, revision: x y}}\n")
    r = kvasir("check", pool)
    assert f"{pool}:6:27: spec.tokenizer.hub.repo: 'a/b/c' is no repository: must be ORG/NAME" in r.stdout and "spec.tokenizer.hub.revision: 'x y' is no revision" in r.stdout, r.stdout


def test_check_prints_a_fault_as_one_line_whatever_it_quotes(tmp_path):
    pool, listed = tmp_path / "p.yaml", tmp_path / "workers.txt"
    pool.write_text(POOL + '  workers: [{url: http://a:1, accelerator: "x\\nother.yaml:1:2: forged"}]\n  discovery: {file: workers.txt}\n'
                    '  tokenizer: {path: "m\\e[31m\\n/etc:3:4: forged"}\n  "a\\rb\\u009bc": 1\n')
    listed.write_bytes(b"http://b:1 a\x1b[2J\rb=1\nhttp://c:1 \xff\xfe=2\nhttp://d:1 \xe2\x80\xa8=3\nhttp://e:1 b\0c=1\n")
    r = subprocess.run([BIN_DIR / "kvasir", "check", pool], capture_output=True, timeout=20, check=False)
    lines = r.stdout.decode().split("\n")
    assert r.returncode == 1 and all(line.startswith((f"{pool}:", f"{listed}:")) for line in lines[:-1]), r.stdout
    assert not [c for c in r.stdout.decode().replace("\n", "") if ord(c) < 32 or 127 <= ord(c) < 160 or c == "\u2028"], r.stdout
    for want in (r"x\x0aother.yaml:1:2: forged", r"m\x1b[31m\x0a/etc:3:4: forged", r"a\x0db\xc2\x9bc", r"a\x1b[2J\x0db", r"\xff\xfe", r"\xe2\x80\xa8"):
        assert want in r.stdout.decode(), (want, r.stdout)
    assert f"{listed}:4:1: the line holds a NUL byte" in r.stdout.decode(), r.stdout


def test_a_name_with_a_nul_is_refused(tmp_path):
    pool, listed, key = tmp_path / "p.yaml", tmp_path / "workers.txt", tmp_path / "key"
    listed.write_text("http://b:1\n")
    key.write_text("sesame\n")
    pool.write_text(POOL + '  discovery: {file: "workers.txt\\0x"}\n  apiKeyFile: "%s\\0x"\n  tokenizer: {path: "%s\\0x"}\n' % (key, tmp_path))
    r = kvasir("check", pool)
    assert r.returncode == 1 and r.stdout.count("holds a NUL byte") == 3, r.stdout


def test_the_guides_examples_are_good(tmp_path):
    """as they stand, on a machine that has none of what an example might name"""
    guide = pathlib.Path(__file__).parents[2] / "doc" / "guide"
    (tmp_path / "workers.txt").write_text(re.search(r"```\n# workers.txt.*?\n(.*?)```", (guide / "discovery.md").read_text(), re.S)[1])
    n = 0
    for page in sorted(guide.glob("*.md")):
        for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.S):
            n += 1
            (tmp_path / "example.yaml").write_text(text)
            r = kvasir("check", tmp_path / "example.yaml")
            assert r.returncode == 0, (page.name, r.stdout)
    assert n >= 2


def test_get_and_explain(start, tmp_path):
    fleet = Fleet(start, 2)
    g = Gateway(start, fleet.url(0), fleet.url(1), args=["--events", "true"])
    admin = f"http://127.0.0.1:{g.admin}"
    body = {"model": "m", "messages": [{"role": "user", "content": words(200)}], "max_tokens": 2}
    rid = g.chat(body).headers["x-request-id"]
    assert eventually(lambda: sum(w["index_blocks"] for w in g.workers()) > 3, 3)

    table = kvasir("get", "workers", "--admin", admin).stdout.splitlines()
    assert table[0].split()[:3] == ["WORKER", "STATE", "MODEL"] and len(table) == 3 and fleet.url(0) in "".join(table)
    assert len({line.index("healthy") for line in table[1:]}) == 1, "columns are aligned"
    got = json.loads(kvasir("get", "workers", "--admin", admin, "-o", "json").stdout)
    assert len(got["workers"]) == 2
    yaml = kvasir("get", "pools", "-o", "yaml", "--admin", f"127.0.0.1:{g.admin}").stdout
    assert '"pools":\n' in yaml and '"routing": "kv"' in yaml
    assert "BYTES" in kvasir("get", "index", "--admin", admin).stdout

    text = kvasir("explain", "--admin", admin, rid)
    assert text.returncode == 0 and rid in text.stdout and "->" in text.stdout and "HIT-TOK" in text.stdout, text
    assert kvasir("explain", "--admin", admin, "--last", "1").stdout == kvasir("explain", "--admin", admin).stdout
    file = tmp_path / "body.json"
    file.write_text(json.dumps(body))
    dry = kvasir("explain", "--admin", admin, "--body", file)
    assert dry.returncode == 0 and "dry run" in dry.stdout and "sticky" in dry.stdout, dry
    piped = kvasir("explain", "--admin", admin, "--body", "-", stdin=json.dumps(body))
    assert piped.returncode == 0 and "dry run" in piped.stdout, piped
    missing = kvasir("explain", "--admin", admin, "no-such-id")
    assert missing.returncode == 1 and "404" in missing.stderr and "x-kvasir-request-id" in missing.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_explain_finds_a_request_by_its_clients_id(start, threads):
    fleet = Fleet(start, 1)
    g = Gateway(start, fleet.url(), args=["--threads", threads])
    admin = f"http://127.0.0.1:{g.admin}"
    mine = "me/7?a=%1&b#"
    first = g.chat(headers=[f"x-request-id: {mine}"]).headers["x-kvasir-request-id"]
    last = g.chat(headers=[f"x-request-id: {mine}"]).headers["x-kvasir-request-id"]
    text = kvasir("explain", "--admin", admin, mine)
    assert text.returncode == 0 and last in text.stdout and first not in text.stdout and mine in text.stdout, text
    assert first in kvasir("explain", "--admin", admin, first).stdout
    receipts = client.call(g.admin, "GET", "/api/v1/decisions?last=2").json["decisions"]
    assert [(r["request_id"], r["client_request_id"]) for r in receipts] == [(last, mine), (first, mine)]


def test_wrong_use_and_nobody_there():
    assert kvasir("get", "things").returncode == 2 and kvasir("get", "workers", "-o", "xml").returncode == 2
    assert kvasir("explain", "a", "--last", "3").returncode == 2
    for args, told in ((["get", "things"], "things must be one of workers, pools and index"), (["get"], "what to get must be one of workers, pools and index"),
                       (["get", "workers", "-o", "xml"], "xml is not understood"), (["explain", "--last", "0"], "--last takes a number from 1 up"),
                       (["explain", "--last", "x"], "--last takes a number from 1 up"), (["explain", "--foo", "1"], "--foo is not understood"),
                       (["explain", "-o", "yaml"], "yaml is not understood"), (["explain", "a", "b"], "b is not understood"), (["check", "--foo"], "--foo is not understood")):
        r = kvasir(*args)
        assert r.returncode == 2 and told in r.stderr and "usage:" in r.stderr, r
    r = kvasir("get", "workers", "--admin", f"http://127.0.0.1:{free_port()}")
    assert r.returncode == 1 and "no answer from the admin port" in r.stderr and "nobody listens there" in r.stderr
    assert kvasir("get", "workers", "--admin", "https://x").returncode == 1
