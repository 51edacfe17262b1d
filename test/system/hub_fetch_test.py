"""A tokenizer fetched from a hub: checked, kept, pinned, and never a token for a stranger. The hub is a stand-in (hub.py)."""
import json
import os
import pathlib
import subprocess
import threading

import pytest

import client
from conftest import BIN_DIR, GOLDEN, eventually
from gate_local_ids_test import TEMPLATE, Worker, body, folder, ids_of, made   # noqa: F401 (folder is a fixture)
from gateway import Gateway
from hub import COMMIT, REPO, Hub

TOKEN = "hf_secretsecret"
CHAT = json.dumps(body("Hello there"))


@pytest.fixture
def hub_of():
    hubs = []

    def make(**kw):
        files = {name: (GOLDEN / name).read_bytes() for name in ("tokenizer.json", "tokenizer_config.json")}
        hubs.append(Hub({**files, "chat_template.jinja": TEMPLATE}, **kw))
        return hubs[-1]
    yield make
    for h in hubs:
        h.close()


def env_of(cache, hub, **more):
    plain = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and not k.lower().endswith("_proxy")}
    return {**plain, "XDG_CACHE_HOME": str(cache), "HF_ENDPOINT": hub.url + "/", **more}


def tokenize(cache, hub, repo=REPO, **env):
    return subprocess.run([BIN_DIR / "kvasir", "tokenize", "--hub", repo, "--chat"], input=CHAT.encode(), capture_output=True, timeout=60, check=False,
                          env=env_of(cache, hub, **env))


def snapshot(cache):
    return pathlib.Path(cache) / "kvasir" / "hub" / "models--org--name" / "snapshots"


@pytest.mark.parametrize("way", ["plain", "relative", "store"])
def test_fetched_once_then_kept(tmp_path, folder, hub_of, way):   # noqa: F811
    hub = hub_of(way=way, token=TOKEN)
    out = tokenize(tmp_path, hub, HF_TOKEN=TOKEN)
    assert out.returncode == 0, out.stderr
    assert json.loads(out.stdout) == ids_of(folder, CHAT)
    assert sorted(p.name for p in snapshot(tmp_path).iterdir()) == [COMMIT]
    assert sorted(p.name for p in (snapshot(tmp_path) / COMMIT).iterdir()) == ["chat_template.jinja", "tokenizer.json", "tokenizer_config.json"]
    assert TOKEN.encode() not in out.stderr + out.stdout
    assert not any("safetensors" in path for path, _ in hub.seen)
    if way == "store":   # another host: the files, and no token
        assert len(hub.store.seen) == 3 and not any("Authorization" in h for _, h in hub.store.seen)
    asked = len(hub.seen)
    hub.commit = "beef" + "0" * 36   # main moves on: the revision was resolved once and stays
    again = tokenize(tmp_path, hub)
    assert again.stdout == out.stdout and len(hub.seen) == asked
    hub.close()
    assert tokenize(tmp_path, hub, HF_HUB_OFFLINE="1").stdout == out.stdout


def test_a_long_download_says_how_far_it_is(tmp_path, folder, hub_of):   # noqa: F811
    out = tokenize(tmp_path, hub_of(way="slow"))
    assert out.returncode == 0 and json.loads(out.stdout) == ids_of(folder, CHAT)
    size = (GOLDEN / "tokenizer.json").stat().st_size
    said = [line for line in out.stderr.decode().splitlines() if "event=tokenizer_fetching" in line]
    assert len(said) == 1 and "file=tokenizer.json" in said[0] and f"of={size}" in said[0] and REPO in said[0], out.stderr


def test_a_revision_may_be_a_commit(tmp_path, hub_of):
    hub = hub_of()
    assert tokenize(tmp_path, hub, f"{REPO}@{COMMIT}").returncode == 0
    asked = len(hub.seen)
    assert tokenize(tmp_path, hub, f"{REPO}@{COMMIT}").returncode == 0 and len(hub.seen) == asked
    other = tokenize(tmp_path, hub, f"{REPO}@{'d' * 40}")
    assert other.returncode == 1 and b"404" in other.stderr


@pytest.mark.parametrize("kw, words", [
    ({"status": 401}, "401"), ({"status": 403}, "403"), ({"status": 404}, "not on the hub"), ({"status": 500}, "500"), ({"token": "another"}, "HF_TOKEN"),
    ({"way": "truncated"}, "tokenizer.json: "), ({"way": "wrong"}, "digest"), ({"way": "no_digest"}, "no digest"),
])
def test_what_is_not_right_is_not_kept(tmp_path, hub_of, kw, words):
    hub = hub_of(**kw)
    out = tokenize(tmp_path, hub, HF_TOKEN=TOKEN)
    assert out.returncode == 1 and words in out.stderr.decode() and TOKEN not in out.stderr.decode(), out.stderr
    assert out.stdout == b""
    assert list(snapshot(tmp_path).iterdir()) == []
    hub.way, hub.token, hub.status = "plain", None, None
    assert tokenize(tmp_path, hub).returncode == 0   # nothing is in the way of the next try


def test_offline_asks_nobody(tmp_path, hub_of):
    hub = hub_of()
    out = tokenize(tmp_path, hub, HF_HUB_OFFLINE="true")
    assert out.returncode == 1 and b"HF_HUB_OFFLINE" in out.stderr and not hub.seen


def test_a_token_with_a_line_end_is_not_sent(tmp_path, hub_of):
    hub = hub_of()
    out = tokenize(tmp_path, hub, HF_TOKEN="a\r\nX-Other: b")
    assert out.returncode == 1 and b"token" in out.stderr and not hub.seen


@pytest.mark.parametrize("endpoint", ["http://user:pass@127.0.0.1:1", "ftp://x", "nonsense", "file:///etc"])
def test_an_endpoint_is_an_address_without_a_password(tmp_path, hub_of, endpoint):
    out = tokenize(tmp_path, hub_of(), HF_ENDPOINT=endpoint)
    assert out.returncode == 1 and b"HF_ENDPOINT" in out.stderr and b"pass@" not in out.stderr


def test_two_processes_at_once(tmp_path, hub_of):
    hub = hub_of()
    args = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env_of(tmp_path, hub))
    both = [subprocess.Popen([BIN_DIR / "kvasir", "tokenize", "--hub", REPO, "--chat"], **args) for _ in range(2)]
    outs = [p.communicate(CHAT.encode(), 60) for p in both]
    ok = [o for p, o in zip(both, outs) if p.returncode == 0]
    assert ok and all(p.returncode == 0 or b"another process" in o[1] for p, o in zip(both, outs)), outs
    assert sorted(p.name for p in snapshot(tmp_path).iterdir()) == [COMMIT]
    assert tokenize(tmp_path, hub).stdout == ok[0][0]


def serve(start, tmp_path, hub, worker, monkeypatch, pool, **env):
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env_of(tmp_path / "cache", hub, **env).items():
        monkeypatch.setenv(name, value)
    return Gateway(start, worker, args=["--tokens-budget", "20s", *pool])


def test_the_gateway_fetches_what_it_is_told_to(start, tmp_path, folder, hub_of, monkeypatch):   # noqa: F811
    """The hub is down at first: workers are asked meanwhile, and it is asked again."""
    hub = hub_of(way="store", down=10**6)
    with Worker(folder) as w:
        gw = serve(start, tmp_path, hub, w, monkeypatch, ["--tokenizer", f"{REPO}@main"])
        assert eventually(lambda: "event=tokenizer_waits" in gw.process.text, 10), gw.process.text[-2000:]
        assert gw.chat(body("early")).status == 200
        assert made(gw, "call") == 1 and made(gw, "local") == 0
        told = client.call(gw.admin, "GET", "/api/v1/tokenizers").json["tokenizers"][0]
        assert told["state"] == "loading" and "tried again" in told["why"] and "hub" in told["why"], told
        hub.down = 0
        assert eventually(lambda: "event=tokenizer_ready" in gw.process.text, 60), gw.process.text[-2000:]
        assert gw.chat(body("late")).status == 200
        assert made(gw, "local") == 1
        assert "event=tokenizer_fetched" in gw.process.text and COMMIT in gw.process.text


def test_nothing_is_fetched_that_was_not_asked_for(start, tmp_path, folder, hub_of, monkeypatch):   # noqa: F811
    hub = hub_of()
    with Worker(folder) as w:
        gw = serve(start, tmp_path, hub, w, monkeypatch, [])
        assert eventually(lambda: "event=tokenizer_absent" in gw.process.text, 10)
        assert gw.chat(body("hi")).status == 200 and not hub.seen


def test_case_litellm_15799_aibrix_2281_the_hubs_token_is_in_no_line_and_no_request_asks_the_hub(start, tmp_path, folder, hub_of, monkeypatch):   # noqa: F811
    hub = hub_of(token=TOKEN, down=2)
    with Worker(folder) as w:
        gw = serve(start, tmp_path, hub, w, monkeypatch, ["--tokenizer", REPO, "--log-level", "debug"], HF_TOKEN=TOKEN)
        assert eventually(lambda: "event=tokenizer_ready" in gw.process.text, 60), gw.process.text[-2000:]
        assert any(h.get("Authorization") == f"Bearer {TOKEN}" for _, h in hub.seen)
        asked = len(hub.seen)
        for i in range(10):
            assert gw.chat(body(f"late {i}")).status == 200
        assert made(gw, "local") == 10 and len(hub.seen) == asked
        shown = "".join(client.call(gw.admin, "GET", path).content.decode() for path in ("/metrics", "/readyz", "/api/v1/tokenizers", "/api/v1/decisions", "/api/v1/pools"))
        assert "secretsecret" not in gw.process.text + shown and "authorization" not in {k for _, h in w.own_headers for k in h}
        assert not any(TOKEN in str(c.headers) for c in w.calls + w.tokenize_calls)


def test_the_gateway_leaves_while_a_hub_is_silent(start, tmp_path, folder, hub_of, monkeypatch):   # noqa: F811
    hub = hub_of()
    release = threading.Event()
    hub.http.answer = lambda h: release.wait(30)
    with Worker(folder) as w:
        gw = serve(start, tmp_path, hub, w, monkeypatch, ["--tokenizer", REPO])
        assert eventually(lambda: hub.seen, 10)
        assert gw.process.stop(15) == 0
    release.set()
