"""kvasir check, get, explain as an operator types them."""
import json
import subprocess

from conftest import BIN_DIR, eventually, free_port
from gateway import Gateway
from sim import Fleet, words


def kvasir(*args, stdin=None):
    return subprocess.run([BIN_DIR / "kvasir", *map(str, args)], capture_output=True, text=True, timeout=20, check=False, input=stdin)


def test_help_lists_each_verb_once():
    r = kvasir("help")
    verbs = [line.split()[0] for line in r.stdout.splitlines() if line.startswith("  ")]
    assert r.returncode == 0 and verbs == ["serve", "check", "explain", "get", "tokenize"], r.stdout
    assert all(kvasir(v, "--help").returncode == 0 and kvasir(v, "--help").stdout for v in verbs)
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
    assert missing.returncode == 1 and "404" in missing.stderr


def test_wrong_use_and_nobody_there():
    assert kvasir("get", "things").returncode == 2 and kvasir("get", "workers", "-o", "xml").returncode == 2
    assert kvasir("explain", "a", "--last", "3").returncode == 2
    for words, named in ((["get", "things"], "things"), (["get", "workers", "-o", "xml"], "xml"), (["get"], "(nothing)"), (["explain", "--last", "0"], "--last"),
                         (["explain", "--foo", "1"], "--foo"), (["explain", "a", "b"], "b"), (["check", "--foo"], "--foo")):
        r = kvasir(*words)
        assert r.returncode == 2 and f"{named} is not understood" in r.stderr and "usage:" in r.stderr, r
    r = kvasir("get", "workers", "--admin", f"http://127.0.0.1:{free_port()}")
    assert r.returncode == 1 and "no answer from the admin port" in r.stderr and "nobody listens there" in r.stderr
    assert kvasir("get", "workers", "--admin", "https://x").returncode == 1
