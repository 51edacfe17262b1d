"""The demo, cut short: its ladder, table and picture over small workloads, then the gateway that is left until Ctrl-C."""
import json
import os
import pathlib
import re
import runpy
import shlex
import signal
import subprocess
import sys

import client
import pytest
from conftest import BIN_DIR, HERE, eventually

SCRIPT = HERE.parent.parent / "script" / "demo.py"
SHORT = """
import pathlib, runpy, sys
sys.argv = ["demo.py", "--json", {figures!r}]
sys.path.insert(0, str(pathlib.Path({script!r}).parent))
demo = runpy.run_path({script!r})["main"].__globals__
for w in demo["WORKLOADS"]:
    w.update(scale=6, warm=w["warm"] and (4, 2), ladder=[2, 4][:len(w["ladder"])], seconds=9, show=2)
    w["flags"] += ["--question-tok", "300", "--output-tok", "4"] + (["--groups", "6", "--prefix-tok", "600"] if w["name"] == "shared-prefix" else [])
demo["main"]()
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """the demo's output until it waits, its figures, the process"""
    folder = tmp_path_factory.mktemp("demo")
    out, figures = folder / "out", folder / "figures.json"
    env = {"KVASIR_BIN_DIR": str(BIN_DIR), "PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": "1", **{k: v for k, v in os.environ.items() if k.startswith("PYTEST_XDIST")}}
    with open(out, "wb") as f:
        child = subprocess.Popen([sys.executable, "-B", "-c", SHORT.format(figures=str(figures), script=str(SCRIPT))], stdin=subprocess.DEVNULL, stdout=f, stderr=f, env=env)
    try:
        assert eventually(lambda: child.poll() is not None or "explain --admin" in out.read_text(), 240, 0.1) and child.poll() is None, out.read_text()
        yield out.read_text(), json.loads(figures.read_text()), child
    finally:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
            child.wait(20)


def test_each_workload_has_a_table_with_every_policy(played):
    text, figures, _ = played
    assert set(figures) == {"shared-prefix", "chat", "no-sharing"} and all(set(f) == {"random", "least-request", "kv"} for f in figures.values())
    assert text.count("over 3 workers (qwen3-32b-h100-tp2, simulated)") == 3 and len(re.findall(r"At \d+ requests/s", text)) == 3, text
    for word in ("TTFT p50", "TTFT p95", "e2e p50", "hit rate", "goodput"):
        assert text.count(word) >= 3, word
    rows = re.findall(r"^    (random|least-request|kv) .*?(\d+) ms +(\d+) ms +(\d+) ms +(\d+) % +(\d+)/min", text, re.M)
    assert [r[0] for r in rows] == ["random", "least-request", "kv"] * 3, text
    shown = figures["shared-prefix"]["kv"]["2"]
    assert [int(x) for x in rows[2][1:]] == [round(shown["ttft_p50_s"] * 1e3), round(shown["ttft_p95_s"] * 1e3), round(shown["e2e_p50_s"] * 1e3),
                                             round(shown["hit_rate"] * 100), round(shown["goodput_rpm"])]
    assert text.count("knee (90 % in objective)") == 2 and text.count("kv against random: median TTFT") == 3 and "Objective: TTFT <= 2 s" in text
    assert len(re.findall(r"^    (?:random|least-request|kv) +█+ \d+ ms$", text, re.M)) == 9, "a picture of each"


def test_a_machine_that_cannot_keep_up_is_named(monkeypatch, capsys):
    demo = runpy.run_path(str(SCRIPT))["main"].__globals__
    figures = dict(ttft_p50_s=1, ttft_p95_s=2, hit_rate=0, good=9, requests=9, errors=0)
    lags = iter((0.01, 1.5))
    monkeypatch.setitem(demo, "fleet", lambda *_: ("", "", []))
    monkeypatch.setitem(demo, "play", lambda *_, **__: {**figures, "lag_p99_s": next(lags)})
    demo["ladder"](demo["Demo"](), "kv", {**demo["WORKLOADS"][2], "ladder": [1, 2]})
    first, second = capsys.readouterr().out.splitlines()
    assert "BUSY" not in first and "MACHINE TOO BUSY: sent up to 1500 ms late" in second


def test_a_rung_without_an_answer_is_shown_and_the_demo_goes_on(monkeypatch, capsys):
    demo = runpy.run_path(str(SCRIPT))["main"].__globals__

    def nobody_answers(argv, **_):
        place = pathlib.Path(argv[argv.index("--out") + 1])
        names = "requests good errors ttft_p50_s ttft_p95_s e2e_p50_s hit_rate goodput_rpm lag_p99_s".split()
        (place / "summary.json").write_text(json.dumps({**dict.fromkeys(names, 0), "requests": 15, "errors": 15}))
        return subprocess.CompletedProcess(argv, 1, stderr=b"none was answered well")
    monkeypatch.setitem(demo, "fleet", lambda *_: ("", "", []))
    monkeypatch.setitem(demo, "subprocess", type("stub", (), {"run": staticmethod(nobody_answers), "PIPE": None, "DEVNULL": None}))
    rungs = {key: demo["ladder"](demo["Demo"](), key, demo["WORKLOADS"][2]) for key, _ in demo["POLICIES"]}
    demo["table"](demo["WORKLOADS"][2], rungs)
    text = capsys.readouterr().out
    assert text.count("errors 15") == 3 and "not comparable" in text, text


def test_what_it_shows_is_so(played):
    """the same seeded requests through each policy; sharing is what kv makes use of, and without it nothing can be hit"""
    _, figures, _ = played
    for name in ("shared-prefix", "no-sharing"):
        for rate in figures[name]["kv"]:
            assert len({of[rate]["requests"] for of in figures[name].values() if rate in of}) == 1, (name, rate)
    assert figures["shared-prefix"]["kv"]["2"]["hit_rate"] > figures["shared-prefix"]["random"]["2"]["hit_rate"]
    assert all(p["2"]["hit_rate"] < 0.15 for p in figures["no-sharing"].values())


def test_gateway_and_workers_stay_until_ctrl_c(played):
    text, _, child = played
    port = int(re.search(r"gateway +http://127\.0\.0\.1:(\d+)/v1", text)[1])
    admin = int(re.search(r"admin +http://127\.0\.0\.1:(\d+)", text)[1])
    workers = re.search(r"workers +(http.*)", text)[1].split()
    assert len(workers) == 3 and client.call(admin, "GET", "/readyz").status == 200
    curl = shlex.split(re.search(r"curl -N .*?\n.*?}'", text)[0].replace("\\\n", " "))
    headers = [curl[i + 1] for i, word in enumerate(curl) if word == "-H"]
    r = client.call(port, "POST", curl[2].split(str(port), 1)[1], curl[curl.index("-d") + 1], headers=headers)
    assert r.status == 200 and r.headers["x-kvasir-worker"] in workers and r.headers["x-kvasir-explain"] and r.content.endswith(b"data: [DONE]\n\n"), r.content
    child.send_signal(signal.SIGINT)
    assert child.wait(20) == 0
    for p in (port, admin, *(int(u.rsplit(":", 1)[1]) for u in workers)):
        with pytest.raises(ConnectionRefusedError):
            client.Client(p)
