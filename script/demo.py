#!/usr/bin/env python3
"""./dev demo: three simulated workers and the gateway on this machine, the same seeded load through three ways to route.

Prints, for a shared-prefix, a multi-turn and a no-sharing workload, what users would have seen at one stated load, and for
the first two how each policy holds as the load rises (its knee). Then leaves a gateway and its workers running until Ctrl-C.
Durations are simulated time: the workers run TIME_SCALE times faster than the accelerator they stand for.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from ports import free_port

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("KVASIR_BIN_DIR", os.path.join(ROOT, "out"))
POLICIES = [("random", "random (what kube-proxy does)"), ("least-request", "least-request"), ("kv", "kv (Kvasir)")]
PROFILE = "qwen3-32b-h100-tp2"
WORKERS = 3
MODEL = "demo"
SLO_TTFT_S, SLO_TPOT_S, KNEE_SHARE = 2.0, 0.05, 0.9
LATE_S = 0.25           # requests that leave later than this (simulated) show a machine too busy for the figures to be believed

# name, flags, time scale, warm-up load (rate, seconds) with the same prompts, ladder of rates (requests/s, simulated), seconds
# a rung, the rung of the table.
WORKLOADS = [
    dict(name="shared-prefix", title="Shared prefixes: 120 groups, 6,000-token system prompt, 400-token question, 60 tokens out",
         flags=["--workload", "shared-prefix", "--groups", "120", "--question-tok", "400", "--output-tok", "60"],
         scale=4, warm=(6, 45), ladder=[4, 8, 12, 16, 24, 32], seconds=20, show=12),
    dict(name="chat", title="Chats: shared 1,000-token system prompt, 6 turns of 900 tokens in and 80 out, 5 s to think",
         flags=["--workload", "chat", "--question-tok", "900", "--output-tok", "80"],
         scale=4, warm=None, ladder=[8, 16, 32, 48], seconds=36, show=32),
    dict(name="no-sharing", title="Nothing shared: fresh 2,048-token prompts, 128 tokens out",
         flags=["--workload", "no-sharing"], scale=4, warm=None, ladder=[8], seconds=20, show=8),
]


class Demo:
    def __init__(self):
        self.running = []
        self.logs = tempfile.mkdtemp(prefix="kvasir-demo-")

    def start(self, name, argv):
        log = open(os.path.join(self.logs, name + ".log"), "ab")
        p = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        self.running.append(p)
        return p

    def stop_all(self):
        for p in reversed(self.running):
            if p.poll() is None:
                p.send_signal(signal.SIGTERM)
        for p in self.running:
            try:
                p.wait(timeout=10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        self.running = []


def get(url, timeout=2):
    with urllib.request.urlopen(url, timeout=timeout) as r:
        return r.read()


def wait_for(what, fn, seconds=30):
    end = time.time() + seconds
    while time.time() < end:
        try:
            if fn():
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"demo: {what} did not come up within {seconds} s")


def fleet(demo, policy, scale):
    """three simulated workers and a gateway; returns (data url, admin url, worker urls)"""
    base = free_port(3 * WORKERS + 2)
    events, replay, data, admin = base + WORKERS, base + 2 * WORKERS, base + 3 * WORKERS, base + 3 * WORKERS + 1
    demo.start("sim", [f"{BIN}/kvasir-sim", "--workers", str(WORKERS), "--port", str(base), "--events-port", str(events),
                       "--replay-port", str(replay), "--model", MODEL, "--profile", PROFILE, "--time-scale", str(scale), "--seed", "1"])
    urls = [f"http://127.0.0.1:{base + i}" for i in range(WORKERS)]
    for u in urls:
        wait_for("a simulated worker", lambda u=u: get(u + "/health") is not None)
    argv = [f"{BIN}/kvasir", "serve", "--listen", f"127.0.0.1:{data}", "--admin", f"127.0.0.1:{admin}", "--routing", policy,
            "--access-log", "false", "--log-level", "warn"]
    for u in urls:
        argv += ["--worker", u]
    demo.start("kvasir", argv)
    gate, ops = f"http://127.0.0.1:{data}", f"http://127.0.0.1:{admin}"

    def ready():
        get(ops + "/readyz")
        workers = json.loads(get(ops + "/api/v1/workers"))
        workers = workers.get("workers", workers) if isinstance(workers, dict) else workers
        return len([w for w in workers if w["state"] == "healthy" and w["models"]]) == WORKERS
    wait_for("the gateway", ready)
    return gate, ops, urls


def play(demo, gate, w, rate, seconds, seed, warmup=0):
    out = tempfile.mkdtemp(dir=demo.logs)
    argv = [f"{BIN}/kvasir-bench", "run", "--target", gate, "--model", MODEL, *w["flags"], "--rate", str(rate), "--duration", str(seconds),
            "--warmup", str(warmup), "--drain", "20", "--time-scale", str(w["scale"]), "--seed", str(seed), "--slo-ttft", str(SLO_TTFT_S),
            "--slo-tpot", str(SLO_TPOT_S), "--out", out, "--quiet"]
    r = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    summary = os.path.join(out, "summary.json")
    if r.returncode != 0 and not os.path.exists(summary):      # with one, nobody was answered in time: that is a result, too
        raise SystemExit("demo: kvasir-bench failed: " + r.stderr.decode(errors="replace"))
    return json.load(open(summary))


def ladder(demo, policy, w):
    """all rungs of one policy, from low to high; stops one rung past its knee, but plays the table's"""
    gate, _, _ = fleet(demo, policy, w["scale"])
    rungs, past = {}, 0
    try:
        if w["warm"]:
            print(f"     {policy:14s} first {w['warm'][1]:g} simulated seconds to warm its caches, then {', '.join(map(str, w['ladder']))} req/s until past its knee", flush=True)
            play(demo, gate, w, w["warm"][0], w["warm"][1], seed=1000)
        for i, rate in enumerate(w["ladder"]):
            if past and rate > w["show"]:
                break
            s = play(demo, gate, w, rate, w["seconds"], seed=10 + i, warmup=w["seconds"] * 0.15)
            rungs[rate] = s
            past += s["good"] < KNEE_SHARE * s["requests"]
            print(f"     {policy:14s} {rate:3g} req/s: TTFT p50 {s['ttft_p50_s'] * 1e3:7.0f} ms  p95 {s['ttft_p95_s'] * 1e3:7.0f} ms  hit {s['hit_rate'] * 100:3.0f} %"
                  f"  within objective {s['good'] / max(s['requests'], 1) * 100:3.0f} %" + (f"  errors {s['errors']:.0f}" if s["errors"] else "")
                  + (f"  MACHINE TOO BUSY: sent up to {s['lag_p99_s'] * 1e3:.0f} ms late" if s["lag_p99_s"] > LATE_S else ""), flush=True)
    finally:
        demo.stop_all()
    return rungs


def knee(rungs):
    ok = [r for r, s in rungs.items() if s["good"] >= KNEE_SHARE * s["requests"]]
    return max(ok) if ok else None


def bar(x, most, width=40):
    n = 0 if most <= 0 else round(x / most * width)
    return "█" * max(n, 1 if x > 0 else 0)


def table(w, results):
    rate = w["show"]
    print(f"\n  At {rate} requests/s over {WORKERS} workers ({PROFILE}, simulated), the same requests at the same times:")
    print(f"    {'':31s} {'TTFT p50':>9s} {'TTFT p95':>9s} {'e2e p50':>9s} {'hit rate':>9s} {'goodput':>13s}" + ("   knee (90 % in objective)" if len(w["ladder"]) > 1 else ""))
    for key, label in POLICIES:
        s = results[key][rate]
        k = knee(results[key])
        tail = ""
        if len(w["ladder"]) > 1:
            top = max(x["goodput_rpm"] for x in results[key].values())
            tail = f"   {'below ' + str(w['ladder'][0]) if k is None else k:>3} req/s; best goodput {top:.0f}/min"
        print(f"    {label:31s} {s['ttft_p50_s'] * 1e3:6.0f} ms {s['ttft_p95_s'] * 1e3:6.0f} ms {s['e2e_p50_s'] * 1e3:6.0f} ms {s['hit_rate'] * 100:7.0f} % {s['goodput_rpm']:9.0f}/min{tail}")
    most = max(results[key][rate]["ttft_p50_s"] for key, _ in POLICIES)
    print("\n    median TTFT")
    for key, _ in POLICIES:
        x = results[key][rate]["ttft_p50_s"]
        print(f"    {key:14s} {bar(x, most)} {x * 1e3:.0f} ms")
    r, k = results["random"][rate], results["kv"][rate]
    print(f"\n    kv against random: median TTFT {change(k, r, 'ttft_p50_s')}, end to end {change(k, r, 'e2e_p50_s')}"
          + (f", goodput {k['goodput_rpm'] / r['goodput_rpm']:.1f} x" if r["goodput_rpm"] > 0 else ", goodput: random met the objective for nobody"))


def change(now, before, key):
    return f"{(now[key] / before[key] - 1) * 100:+.0f} %" if before[key] > 0 else "not comparable (nobody was answered)"


def leave_running(demo):
    gate, ops, urls = fleet(demo, "kv", 1)
    print("\n== left running until Ctrl-C: three workers in real time, routed by kv")
    print(f"   gateway   {gate}/v1        admin  {ops}   (/metrics, /readyz, /api/v1/workers)")
    print(f"   workers   {'  '.join(urls)}")
    print("   try:")
    print(f"   curl -N {gate}/v1/chat/completions -H 'Content-Type: application/json' -H 'x-kvasir-explain: 1' -i \\\n"
          f"        -d '{{\"model\":\"{MODEL}\",\"stream\":true,\"max_tokens\":20,\"messages\":[{{\"role\":\"user\",\"content\":\"Who was Kvasir?\"}}]}}'")
    print(f"   {os.path.relpath(BIN)}/kvasir explain --admin {ops} --last 5      {os.path.relpath(BIN)}/kvasir get workers --admin {ops}", flush=True)
    try:
        while all(p.poll() is None for p in demo.running):
            time.sleep(0.5)
    except KeyboardInterrupt:
        print()


def main():
    ap = argparse.ArgumentParser(description="the demo: three simulated workers, three workloads, three ways to route, a table for each workload")
    ap.add_argument("--no-wait", action="store_true", help="do not leave anything running at the end")
    ap.add_argument("--only", metavar="WORKLOAD", choices=[w["name"] for w in WORKLOADS], help="one workload only")
    ap.add_argument("--json", metavar="FILE", help="also write every figure there")
    ap.add_argument("--vllm", action="store_true", help="two real vLLM workers on the CPU instead (see ./dev test-vllm)")
    a = ap.parse_args()
    if a.vllm:
        os.execv(os.path.join(ROOT, "test/vllm/run.sh"), ["run.sh", "--demo"] + (["--no-wait"] if a.no_wait else []))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.default_int_handler)      # a shell that starts it in the background has it ignored
    demo, began, figures = Demo(), time.time(), {}
    chosen = [w for w in WORKLOADS if a.only in (None, w["name"])]
    print(f"== {len(chosen)} workloads, each through {len(POLICIES)} ways to route; three to four minutes for all of them", flush=True)
    try:
        for i, w in enumerate(chosen):
            print(f"\n== {i + 1} of {len(chosen)}: {w['title']}", flush=True)
            figures[w["name"]] = results = {key: ladder(demo, key, w) for key, _ in POLICIES}
            table(w, results)
        print(f"\n   {time.time() - began:.0f} s. Objective: TTFT <= {SLO_TTFT_S:g} s and <= {SLO_TPOT_S * 1e3:g} ms a token. Simulated times tell ratios and knees, not milliseconds of a real fleet.")
        if a.json:
            json.dump(figures, open(a.json, "w"), indent=1)
        if not a.no_wait:
            leave_running(demo)
    except KeyboardInterrupt:
        print("\n   ended by Ctrl-C")
        sys.exit(130)
    finally:
        demo.stop_all()


if __name__ == "__main__":
    main()
