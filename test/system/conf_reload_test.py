"""Configuration that changes while requests are under way: files, folders, discovery files, and files that are wrong."""
import os
import subprocess
import threading
import time

import client
from conftest import BIN_DIR, eventually
from gateway import Gateway
from sim import Fleet

HEAD = "apiVersion: kvasir.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n"


def pool(urls, name="p", more=""):
    return HEAD.format(kind="WorkerPool", name=name) + more + "  workers:\n" + "".join(f"  - {{url: \"{u}\"}}\n" for u in urls)


def replace(path, text):
    """as editors and scripts do: a new file, then a rename"""
    fresh = path.with_name(path.name + ".tmp")
    fresh.write_text(text)
    os.replace(fresh, path)


def urls(g):
    return sorted(w["url"] for w in g.workers())


def ready(g):
    return client.call(g.admin, "GET", "/readyz")


class Load:
    """four clients that ask all the time; every answer that is not a good one is kept"""

    def __init__(self, gateway, pause=0.003):
        self.gateway, self.bad, self.n, self.over, self.pause = gateway, [], 0, threading.Event(), pause
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(4)]

    def run(self, i):
        k = 0
        while not self.over.is_set():
            k += 1
            try:
                r = self.gateway.chat({"model": "m", "messages": [{"role": "user", "content": f"{i} {k}"}], "max_tokens": 3, "stream": k % 2 == 0})
                if r.status != 200 or not r.whole or (k % 2 == 0 and b"[DONE]" not in r.content):
                    self.bad.append((r.status, r.content[-300:]))
            except Exception as e:  # noqa: BLE001 - whatever a client would have met
                self.bad.append(repr(e))
            self.n += 1
            time.sleep(self.pause)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for t in self.threads:
            t.join(15)


def test_reload_under_load_without_a_failed_request(start, tmp_path):
    fleet = Fleet(start, 4)
    file = tmp_path / "pool.yaml"
    file.write_text(pool([fleet.url(0), fleet.url(1)]))
    g = Gateway(start, args=["-c", file, "--events", "true"])
    assert eventually(lambda: ready(g).status == 200, 5)
    with Load(g) as load:
        for want in ([0, 1, 2], [1, 2], [2, 3], [0], [0, 1, 2, 3], [3]):
            replace(file, pool([fleet.url(i) for i in want]))
            assert eventually(lambda want=want: urls(g) == sorted(fleet.url(i) for i in want), 8), (want, urls(g))
            time.sleep(0.15)
    assert load.n > 100 and not load.bad, (load.n, load.bad[:3])
    assert g.settled()
    assert g.metric("kvasir_config_reloads_total") == 6 and g.metric("kvasir_config_refused_total") == 0
    before = fleet.stats(0)
    g.chat({"model": "m", "messages": [{"role": "user", "content": "x"}], "max_tokens": 3})
    assert fleet.stats(0).get("requests") == before.get("requests"), "a removed worker gets nothing (production-stack#668)"


def test_a_worker_that_changes_under_load_costs_no_request(start, tmp_path):
    fleet = Fleet(start, 2)
    file = tmp_path / "pool.yaml"

    def text(role, rack, key):
        return HEAD.format(kind="WorkerPool", name="p") + (f"  workers:\n  - {{url: \"{fleet.url(0)}\", role: {role}, labels: {{rack: {rack}}}, apiKey: {key}}}\n"
                                                           f"  - {{url: \"{fleet.url(1)}\", labels: {{rack: {rack}}}}}\n")
    file.write_text(text("decode", "r", "k"))
    g = Gateway(start, args=["-c", file, "--events", "true"])
    assert eventually(lambda: ready(g).status == 200, 5)
    with Load(g) as load:
        for role, rack in (("prefill", "r1"), ("decode", "r2"), ("prefill", "r3")):
            replace(file, text(role, rack, role))
            assert eventually(lambda role=role, rack=rack: [(w["role"], w["labels"]) for w in sorted(g.workers(), key=lambda w: w["url"])] ==
                              [(role, {"rack": rack}), ("", {"rack": rack})], 8), g.workers()
            time.sleep(0.15)
    assert load.n > 40 and not load.bad, (load.n, load.bad[:3])
    assert g.settled()


def test_a_removed_worker_finishes_its_stream(start, tmp_path):
    fleet = Fleet(start, 2, ["--time-scale", "1"], profile="llama-8b-h100")
    file = tmp_path / "pool.yaml"
    file.write_text(pool([fleet.url(0)]))
    g = Gateway(start, args=["-c", file])
    assert eventually(lambda: ready(g).status == 200, 5)
    got = []

    def ask():
        got.append(g.chat({"model": "m", "messages": [{"role": "user", "content": "long"}], "max_tokens": 150, "stream": True, "ignore_eos": True}))

    t = threading.Thread(target=ask)
    t.start()
    assert eventually(lambda: g.in_flight() > 0, 3)
    replace(file, pool([fleet.url(1)]))
    assert eventually(lambda: any(w["url"] == fleet.url(0) and w["state"] == "draining" for w in g.workers()), 5), g.workers()
    t.join(20)
    assert got and got[0].status == 200 and b"[DONE]" in got[0].content
    assert eventually(lambda: urls(g) == [fleet.url(1)], 5), "and is then let go"
    assert g.settled()


def test_a_bad_file_keeps_the_generation_and_says_so(start, tmp_path):
    fleet = Fleet(start, 1)
    file = tmp_path / "pool.yaml"
    file.write_text(pool([fleet.url()]))
    g = Gateway(start, args=["-c", file])
    assert eventually(lambda: ready(g).status == 200, 5)
    replace(file, pool(["https://b:1"]) + "  engin: vllm\n")
    assert eventually(lambda: not ready(g).json["config"]["ok"], 5)
    state = ready(g)
    assert state.status == 200 and state.json["config"]["generation"] == 1
    faults = state.json["config"]["faults"]
    assert any(f.startswith(f"{file}:6:") and "spec.workers[0].url" in f for f in faults) and any(f"{file}:7:3: spec.engin" in f for f in faults), faults
    assert g.metric("kvasir_config_ok") == 0 and g.metric("kvasir_config_refused_total") == 1
    assert "event=config_refused" in g.process.text and "spec.engin" in g.process.text
    assert g.chat().status == 200 and urls(g) == [fleet.url()]
    file.unlink()
    assert eventually(lambda: g.metric("kvasir_config_refused_total") >= 2, 5), "a file that is gone is no configuration"
    assert g.chat().status == 200
    replace(file, pool([fleet.url()]))
    assert eventually(lambda: ready(g).json["config"]["ok"], 5)
    assert g.metric("kvasir_config_ok") == 1


def test_a_pool_of_another_name_takes_over_without_a_failed_request(start, tmp_path):
    fleet = Fleet(start, 2)
    file = tmp_path / "pool.yaml"
    file.write_text(pool([fleet.url(0)], "old"))
    g = Gateway(start, args=["-c", file])
    assert eventually(lambda: ready(g).status == 200, 5)
    with Load(g) as load:
        for name, i in (("new", 1), ("newer", 0), ("newest", 1)):
            replace(file, pool([fleet.url(i)], name))
            assert eventually(lambda i=i: urls(g) == [fleet.url(i)], 8), urls(g)
    assert load.n > 30 and not load.bad, (load.n, load.bad[:3])


def test_a_file_that_is_being_written_in_place_lets_go_of_nobody(start, tmp_path):
    """between the truncation and the last write such a file is empty"""
    fleet = Fleet(start, 1)
    file = tmp_path / "pool.yaml"
    file.write_text(pool([fleet.url()]))
    g = Gateway(start, args=["-c", file])
    assert eventually(lambda: ready(g).status == 200, 5)
    file.write_text("")
    assert eventually(lambda: not ready(g).json["config"]["ok"], 5)
    assert "is empty" in ready(g).json["config"]["faults"][0]
    assert g.chat().status == 200 and urls(g) == [fleet.url()]
    file.write_text("# nobody, on purpose\n")
    assert eventually(lambda: ready(g).json["config"]["ok"] and not urls(g), 5)


def test_a_folder(start, tmp_path):
    fleet = Fleet(start, 2)
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "a.yaml").write_text(pool([fleet.url(0)], "a"))
    (folder / "gateway.yml").write_text(HEAD.format(kind="Gateway", name="g") + "  workers: {scrapeInterval: 300ms}\n")
    (folder / "notes.txt").write_text("not: [yaml")
    g = Gateway(start, args=["-c", folder])
    assert eventually(lambda: urls(g) == [fleet.url(0)], 5)
    (folder / "b.yaml").write_text(pool([fleet.url(1)], "b"))
    assert eventually(lambda: urls(g) == sorted([fleet.url(0), fleet.url(1)]), 5)
    pools = client.call(g.admin, "GET", "/api/v1/pools").json["pools"]
    assert {p["name"]: p["workers"] for p in pools} == {"a": 1, "b": 1}
    (folder / "a.yaml").unlink()
    assert eventually(lambda: urls(g) == [fleet.url(1)], 5)


def test_options_that_need_a_restart_are_named(start, tmp_path):
    fleet = Fleet(start, 1)
    file = tmp_path / "gateway.yaml"

    def text(body, headers):
        return HEAD.format(kind="Gateway", name="g") + f"  limits: {{body: {body}, headers: {headers}}}\n"

    file.write_text(text("1MiB", 64))
    g = Gateway(start, fleet.url(), args=["-c", file])
    big = {"model": "m", "messages": [{"role": "user", "content": "x" * 5000}]}
    assert g.chat(big).status == 200
    replace(file, text("2KiB", 100))
    assert eventually(lambda: g.chat(big).status == 413, 5), "a live option holds at once"
    assert "event=config_needs_restart option=limits.headers" in g.process.text


def test_sighup_reloads(start, tmp_path):
    fleet = Fleet(start, 1)
    g = Gateway(start, fleet.url())
    g.process.signal(1)
    assert eventually(lambda: g.metric("kvasir_config_reloads_total") == 1, 5)
    assert urls(g) == [fleet.url()] and g.chat().status == 200


def discovery(tmp_path, file="workers.txt"):
    path = tmp_path / "pool.yaml"
    path.write_text(HEAD.format(kind="WorkerPool", name="p") + f"  discovery: {{file: {file}}}\n")
    return path, tmp_path / file


def test_discovery_file(start, tmp_path):
    fleet = Fleet(start, 3)
    conf, file = discovery(tmp_path)
    file.write_text(f"# made by slurm\n{fleet.url(0)}\n\n127.0.0.1:{fleet.port(1)} role=decode labels.rack=a7 # the second\n")
    g = Gateway(start, args=["-c", conf])
    assert eventually(lambda: urls(g) == sorted(fleet.url(i) for i in (0, 1)), 5), g.process.text[-2000:]
    second = next(w for w in g.workers() if w["url"] == fleet.url(1))
    assert second["role"] == "decode" and second["labels"] == {"rack": "a7"} and second["source"] == str(file)
    assert eventually(lambda: ready(g).status == 200, 5)
    with Load(g) as load:
        replace(file, f"{fleet.url(1)}\n{fleet.url(2)}\n")
        assert eventually(lambda: urls(g) == sorted(fleet.url(i) for i in (1, 2)), 8), urls(g)
        time.sleep(0.2)
    assert load.n > 20 and not load.bad, load.bad[:3]


def test_a_name_in_a_discovery_file_is_one_worker(start, tmp_path):
    """however many addresses it has (localhost often has two)"""
    fleet = Fleet(start, 1)
    conf, file = discovery(tmp_path)
    file.write_text(f"localhost:{fleet.port()}\n")
    g = Gateway(start, args=["-c", conf])
    assert eventually(lambda: ready(g).status == 200, 5)
    assert urls(g) == [f"http://localhost:{fleet.port()}"] and g.chat().status == 200


def test_hundreds_of_workers_that_join_at_once_hold_up_nobody(start, tmp_path):
    """chats are answered all the while, and what changes together is one view: not one for each of a thousand answers"""
    n, rest_s = 300, 300 * 20e-6
    fleet = Fleet(start, n, ["--no-events", "--blocks", 200])
    listed = tmp_path / "workers.txt"
    listed.write_text(fleet.url(0) + "\n")
    (tmp_path / "p.yaml").write_text(HEAD.format(kind="WorkerPool", name="p") + "  discovery: {file: workers.txt}\n")
    g = Gateway(start, args=["-c", tmp_path / "p.yaml", "--probe-interval", "1m", "--scrape-interval", "1m", "--models-interval", "1m",
                             "--probe-timeout", "20s"])
    before, t = g.metric("kvasir_feed_views_total"), time.monotonic()
    with Load(g) as load:
        replace(listed, "".join(fleet.url(i) + "\n" for i in range(n)))
        assert eventually(lambda: sum(w["state"] == "healthy" and w["block_size"] > 0 for w in g.workers()) == n, 40, 0.2), g.process.text[-2000:]
        views, took_s = g.metric("kvasir_feed_views_total") - before, time.monotonic() - t
    assert not load.bad and load.n > 8, (load.n, load.bad[:3])
    assert views <= 10 + took_s / rest_s, (views, took_s)
    assert g.settled()


def test_discovery_empty_or_unreadable_keeps_the_old_list(start, tmp_path):
    fleet = Fleet(start, 1)
    conf, file = discovery(tmp_path)
    file.write_text(fleet.url() + "\n")
    g = Gateway(start, args=["-c", conf])
    assert eventually(lambda: ready(g).status == 200, 5)
    for text in ("", "# nothing\n\n", "not a url at all ::\n", "\0\0\0\n"):
        replace(file, text)
        assert eventually(lambda: not ready(g).json["discovery"][0]["ok"], 5), text
        assert urls(g) == [fleet.url()] and g.chat().status == 200
        replace(file, fleet.url() + "\n")
        assert eventually(lambda: ready(g).json["discovery"][0]["ok"], 5)
    file.unlink()
    assert eventually(lambda: "no such file" in ready(g).json["discovery"][0]["fault"], 5)
    os.mkfifo(file)                                                      # nobody writes to it: reading it must hold nobody up
    assert eventually(lambda: "empty" in ready(g).json["discovery"][0]["fault"], 10)
    assert urls(g) == [fleet.url()] and g.chat().status == 200
    assert "event=discovery_kept" in g.process.text and g.metric('kvasir_feed_discovery_reads_total{result="kept"}') >= 5


def test_case_llmd_file_discovery_one_bad_of_three(start, tmp_path):
    """one bad entry must not abort the start, nor cost the good ones"""
    fleet = Fleet(start, 2)
    conf, file = discovery(tmp_path)
    file.write_text(f"{fleet.url(0)}\nhttps://b:1\n{fleet.url(1)} colour=red\n{fleet.url(0)}\n")
    g = Gateway(start, args=["-c", conf])
    assert eventually(lambda: urls(g) == sorted(fleet.url(i) for i in (0, 1)), 5)
    assert ready(g).json["discovery"][0]["bad_lines"] == 1
    log = g.process.text
    assert "line=2" in log and "TLS to workers" in log and "line=3" in log and "line=4" in log


def test_discovery_file_that_does_not_exist_yet(start, tmp_path):
    fleet = Fleet(start, 1)
    conf, file = discovery(tmp_path)
    g = Gateway(start, args=["-c", conf], ready=False)
    assert eventually(lambda: "event=admin" in g.process.text, 5)
    assert ready(g).status == 503 and "no worker is configured" in ready(g).json["reasons"]
    file.write_text(fleet.url() + "\n")
    assert eventually(lambda: ready(g).status == 200, 8), g.process.text[-2000:]


def test_case_llmd_dead_worker_stays_in_the_file(start, tmp_path):
    """running without Kubernetes: kill a worker, leave the file: nobody notices"""
    fleet = Fleet(start, 2)
    conf, file = discovery(tmp_path)
    file.write_text(f"{fleet.url(0)}\n{fleet.url(1)}\n")
    g = Gateway(start, args=["-c", conf])
    assert eventually(lambda: sum(w["state"] == "healthy" for w in g.workers()) == 2, 5)
    with Load(g) as load:
        time.sleep(0.2)
        fleet.fault("die=2", 1)
        time.sleep(1)
    late = [b for b in load.bad if "ConnectionRefused" in str(b)]
    assert not late and g.metric("kvasir_worker_usable") >= 1
    assert eventually(lambda: sum(w["state"] in ("healthy", "degraded") for w in g.workers()) == 2, 20), [(w["state"], w["why"]) for w in g.workers()]


def serve(*args):
    return subprocess.run([BIN_DIR / "kvasir", "serve", *map(str, args)], capture_output=True, text=True, timeout=10, check=False)


def test_faults_of_flags_and_files_together(tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(pool(["ftp://x"]))
    r = serve("-c", file, "--worker", "https://a:1", "--threads", "0", "--tokens", "locals")
    assert r.returncode == 1
    for word in (f"{file}:6:", "spec.workers[0].url", "--worker: ", "--threads: ", "TLS", "auto, local, worker or none"):
        assert word in r.stderr, (word, r.stderr)


def test_a_tokenizer_that_is_named_and_not_there_is_a_fault(start, tmp_path):
    """at the start; and at a reload, which keeps the running generation"""
    r = serve("--worker", "http://a:1", "--tokenizer", tmp_path / "none")
    assert r.returncode == 1 and r.stderr == f"--tokenizer: there is no '{tmp_path}/none': must be the folder of a tokenizer\n", r
    r = serve("--worker", "http://a:1", "--tokenizer", tmp_path)
    assert r.returncode == 1 and "holds no tokenizer: must have tokenizer.json" in r.stderr, r
    r = serve("--worker", "http://a:1", "--tokenizer", "models/qwen/base")
    assert r.returncode == 1 and "must be ORG/NAME" in r.stderr, r

    fleet = Fleet(start, 1)
    file = tmp_path / "pool.yaml"
    file.write_text(pool([fleet.url()]))
    g = Gateway(start, args=["-c", file])
    assert eventually(lambda: ready(g).status == 200, 5)
    replace(file, pool([fleet.url()], more="  tokenizer: {path: /no/such/folder}\n"))
    assert eventually(lambda: not ready(g).json["config"]["ok"], 5)
    assert f"{file}:5:21: spec.tokenizer.path: there is no '/no/such/folder'" in ready(g).json["config"]["faults"][0], ready(g).json
    replace(file, HEAD.format(kind="Gateway", name="g") + "  tokens: {tokenizer: /nor/this}\n---\n" + pool([fleet.url()]))
    assert eventually(lambda: "/nor/this" in str(ready(g).json["config"]), 5), ready(g).json
    assert g.metric("kvasir_config_generation") == 1 and g.chat().status == 200


def test_a_worker_in_the_flags_and_in_a_list_is_said_once(start, tmp_path):
    fleet = Fleet(start, 1)
    conf, file = discovery(tmp_path)
    file.write_text(fleet.url() + "\n")
    g = Gateway(start, fleet.url(), args=["-c", conf])
    for i in range(3):
        replace(file, f"{fleet.url()}\n# {i}\n")
        assert eventually(lambda i=i: g.process.text.count("event=discovery_read") >= i + 2, 5), g.process.text
    said = [line for line in g.process.text.splitlines() if "event=worker_named_twice" in line]
    assert len(said) == 1 and f"worker={fleet.url()} " in said[0] and f"ignored={file}" in said[0], said
    assert urls(g) == [fleet.url()]


def test_a_line_with_a_bad_value_is_refused_as_a_whole(start, tmp_path):
    fleet = Fleet(start, 2)
    conf, file = discovery(tmp_path)
    file.write_text(f"{fleet.url(0)}\n{fleet.url(1)} events=ipc:///tmp/x\n")
    g = Gateway(start, args=["-c", conf], ready=False)
    assert eventually(lambda: "event=admin" in g.process.text, 5)
    assert eventually(lambda: ready(g).status == 200, 8) and urls(g) == [fleet.url(0)]
    assert ready(g).json["discovery"][0]["bad_lines"] == 1 and "events: 'ipc:///tmp/x' is no event endpoint" in g.process.text and "the line is refused" in g.process.text


def test_print_config_and_help(tmp_path):
    r = serve("--worker", "http://a:1", "--max-body", "2MiB", "--print-config")
    assert r.returncode == 0 and "body: 2MiB" in r.stdout and 'url: "http://a:1"' in r.stdout
    file = tmp_path / "again.yaml"
    file.write_text(r.stdout)
    again = serve("-c", file, "--print-config")
    assert again.returncode == 0 and again.stdout == r.stdout
    text = serve("--help").stdout
    for flag in "--worker --listen --admin --routing --threads --tokens --log-level --version --print-config".split():
        assert flag in text


def test_case_routers_61_too_many_workers_are_refused_not_dropped(tmp_path):
    """smg#1706: over 2048 workers were dropped in silence"""
    file = tmp_path / "many.yaml"
    file.write_text(pool([f"http://10.{i // 250}.0.{i % 250}:8000" for i in range(2049)]))
    r = serve("-c", file)
    assert r.returncode == 1 and "2049 workers are named: at most 2048 are allowed" in r.stderr


def test_case_routers_63_a_change_of_a_worker_takes_effect(start, tmp_path):
    """smg#1967: an update that fails in silence"""
    fleet = Fleet(start, 1)
    file = tmp_path / "pool.yaml"
    file.write_text(pool([fleet.url()]))
    g = Gateway(start, args=["-c", file])
    assert eventually(lambda: ready(g).status == 200, 5)
    replace(file, HEAD.format(kind="WorkerPool", name="q") + f"  routing: random\n  workers:\n  - {{url: \"{fleet.url()}\", role: decode, labels: {{a: b}}, accelerator: llama-8b-l4}}\n")
    assert eventually(lambda: [(w["role"], w["pool"], w["accelerator"], w["labels"]) for w in g.workers()] == [("decode", "q", "llama-8b-l4", {"a": "b"})], 5), g.workers()
    assert client.call(g.admin, "GET", "/api/v1/pools").json["pools"][0]["routing"] == "random"
    assert g.chat().status == 200
