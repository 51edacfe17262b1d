#!/usr/bin/env python3
"""./dev bench: what the gateway itself costs, as ratios in one run.

Micro benches first (index, decision, HTTP, tokenizer: test/bench/*), then whole processes: an instant simulated worker asked
directly and through the gateway, in turns; the gateway on one core, everything else on the other. CPU per request is read
from /proc and is the steadier figure: wall times on a shared machine are noise with a trend.
"""
import argparse
import csv
import glob
import json
import os
import signal
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from ports import free_port

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("KVASIR_BIN_DIR", os.path.join(ROOT, "out"))
TICK = os.sysconf("SC_CLK_TCK")
rows = []


def row(section, name, value, unit, bar=""):
    rows.append((section, name, value, unit, bar))
    print(f"   {name:62s} {value:>12} {unit:12s} {('bar ' + bar) if bar else ''}", flush=True)


def get(url):
    with urllib.request.urlopen(url, timeout=3) as r:
        return r.read().decode()


class Fleet:
    """an instant worker and a gateway, each pinned; stopped by pid"""

    def __init__(self, tokens, cores, sim_args=("--profile", "instant"), workers=1):
        self.base = free_port(3 * workers + 3)
        self.workers, self.haproxy = workers, None
        self.logs = tempfile.mkdtemp(prefix="kvasir-bench-")
        self.direct = f"http://127.0.0.1:{self.base}"
        data, admin = self.base + 3 * workers, self.base + 3 * workers + 1
        self.via, self.admin = f"http://127.0.0.1:{data}", f"http://127.0.0.1:{admin}"
        self.sim = self.run(cores[1], "kvasir-sim", "--workers", str(workers), "--port", str(self.base), "--model", "m", *sim_args)
        urls = [a for i in range(workers) for a in ("--worker", f"http://127.0.0.1:{self.base + i}")]
        time.sleep(0.5)
        self.gate = self.run(cores[0], "kvasir", "serve", "--listen", f"127.0.0.1:{data}", "--admin", f"127.0.0.1:{admin}", "--access-log", "false",
                             "--log-level", "warn", "--tokens", tokens, *urls)
        end = time.time() + 20
        while time.time() < end:
            try:
                w = json.loads(get(self.admin + "/api/v1/workers"))["workers"]
                if all(x["state"] == "healthy" and x["models"] for x in w):
                    break
            except OSError:
                pass
            time.sleep(0.1)
        else:
            self.stop()
            raise SystemExit(f"the gateway did not come up; logs in {self.logs}")

    def plain_proxy(self, core):
        """haproxy before the same worker: one thread, pooled connections, nothing looked at"""
        port = self.base + 3 * self.workers + 2
        conf = os.path.join(self.logs, "haproxy.cfg")
        with open(conf, "w") as f:
            f.write(f"global\n nbthread 1\n maxconn 4096\ndefaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n http-reuse always\n"
                    f"listen plain\n bind 127.0.0.1:{port}\n server w 127.0.0.1:{self.base} pool-max-conn 256\n")
        self.plain, self.haproxy = f"http://127.0.0.1:{port}", self.run(core, shutil.which("haproxy") or "/usr/sbin/haproxy", "-db", "-f", conf)
        time.sleep(0.5)

    def run(self, core, name, *args):
        log = open(os.path.join(self.logs, os.path.basename(name) + ".log"), "ab")
        return subprocess.Popen(["taskset", "-c", str(core), os.path.join(BIN, name), *args], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def stop(self):
        ours = [p for p in (self.haproxy, self.gate, self.sim) if p]
        for p in ours:
            p.send_signal(signal.SIGTERM)
        for p in ours:
            try:
                p.wait(timeout=20)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()


def cpu_s(pid):
    f = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(f[11]) + int(f[12])) / TICK


def rss_kib(pid):
    return next(int(l.split()[1]) for l in open(f"/proc/{pid}/status") if l.startswith("VmRSS"))


def load(core, target, *args):
    out = tempfile.mkdtemp(prefix="kvasir-load-")
    subprocess.run(["taskset", "-c", str(core), os.path.join(BIN, "kvasir-bench"), "run", "--target", target, "--model", "m", "--quiet", "--out", out, *args],
                   check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    s = json.load(open(out + "/summary.json"))
    lat = sorted(float(r["e2e_s"]) for r in csv.DictReader(open(out + "/requests.csv")))
    s["lat"] = lat
    return s


def q(x, p):
    return x[min(len(x) - 1, int(p * len(x)))]


ONE_KB = ["--workload", "no-sharing", "--question-tok", "180", "--output-tok", "1", "--no-stream"]


def micro(_):
    for path in sorted(glob.glob(os.path.join(BIN, "*_bench"))):
        print(f"== {os.path.basename(path)}", flush=True)
        r = subprocess.run([path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, stdin=subprocess.DEVNULL)
        print("   " + r.stdout.strip().replace("\n", "\n   "), flush=True)
        rows.extend((os.path.basename(path), line, "", "", "") for line in r.stdout.strip().splitlines())


def cpu_rows(process, target, a, what, args, bar=""):
    """one load: what a request costs the process between client and worker"""
    before = cpu_s(process.pid)
    s = load(a.cores[1], target, *args)
    used = cpu_s(process.pid) - before
    row("overhead", f"{what}, answered", f"{s['achieved_rps']:.0f}", "req/s")
    row("overhead", f"{what}, CPU per request", f"{used / max(s['ok'], 1) * 1e6:.1f}", "us")
    row("overhead", f"{what}, requests a second per core (1 / CPU per request)", f"{s['ok'] / max(used, 1 / TICK):.0f}", "req/s", bar)
    if s["errors"]:
        row("overhead", f"{what}, errors", f"{s['errors']:.0f}", "")


# A closed loop goes round the same 4,096 prompts. The hot ones begin alike: only their last word differs.
HOT_1_KB = ["--workload", "hot", "--groups", "1", "--prefix-tok", "179", "--question-tok", "1", "--output-tok", "1", "--no-stream"]


def added(direct, through, a, what, args, bars=("", "")):
    pairs = [(load(a.cores[1], direct, *args)["lat"], load(a.cores[1], through, *args)["lat"]) for _ in range(a.rounds)]
    for p, bar in zip((0.5, 0.99), bars):
        d, v = [statistics.median(q(x[i], p) for x in pairs) * 1e6 for i in (0, 1)]
        row("overhead", f"{what}: p{p * 100:g} direct / through", f"{d:.0f} / {v:.0f}", "us")
        row("overhead", f"{what}: p{p * 100:g} added", f"{v - d:.0f}", "us", bar)


def yardstick(f, a, one, many):
    """what this machine asks of any proxy: the bars are for a quicker one than most virtual machines are"""
    print("== the yardstick: haproxy in the gateway's place, same worker, same requests, same core", flush=True)
    f.plain_proxy(a.cores[0])
    load(a.cores[1], f.plain, *many)
    added(f.direct, f.plain, a, "haproxy", one)
    cpu_rows(f.haproxy, f.plain, a, "haproxy: 64 connections", many)


def overhead(a):
    for tokens, what, shape in (("none", "no token ids", ONE_KB), ("worker", "token ids, cached", HOT_1_KB)):
        print(f"== added latency, 1 KB request, instant worker, one connection, {what}", flush=True)
        f = Fleet(tokens, a.cores)
        try:
            args, many = shape + ["--concurrency", "1", "--duration", str(a.seconds)], shape + ["--concurrency", "64", "--duration", str(a.seconds * 2)]
            load(a.cores[1], f.via, *many)      # all prompts once: then worker and gateway know them
            added(f.direct, f.via, a, what, args, ("<= 60", "<= 250"))
            cpu_rows(f.gate, f.via, a, f"{what}: 64 connections", many, ">= 20000")
            fresh = ONE_KB + ["--rate", "1000", "--duration", str(a.seconds * 2), "--seed", "2"]
            cpu_rows(f.gate, f.via, a, f"{what}: 1,000/s, each prompt new (its KV events are in it)", fresh)
            if tokens == "none":
                yardstick(f, a, args, many)
        finally:
            f.stop()


LADDER = (5000, 2500, 1000, 500)


def sustained(f, a):
    """the highest rate at which the load generator and the worker alone keep up"""
    for rate in LADDER:
        s = load(a.cores[1], f.direct, *ONE_KB, "--rate", str(rate), "--duration", "2")
        if not s["errors"] and q(s["lat"], 0.5) < 0.002 and s["lag_p99_s"] < 0.005:
            return rate
    return LADDER[-1]


def at_rate(a):
    print("== open loop, 1 KB, no token ids", flush=True)
    f = Fleet("none", a.cores)
    try:
        rate = sustained(f, a)
        name = f"{rate}/s"
        row("open loop", f"the highest of {', '.join(map(str, LADDER))} that the worker sustains when asked directly", str(rate), "req/s")
        args = ONE_KB + ["--rate", str(rate), "--duration", str(a.seconds)]
        load(a.cores[1], f.via, *args)
        pairs = [(load(a.cores[1], f.direct, *args), load(a.cores[1], f.via, *args)) for _ in range(a.rounds)]
        for p, bar in ((0.5, "<= 60"), (0.99, "<= 250")):
            d, v = [statistics.median(q(x[i]["lat"], p) for x in pairs) * 1e6 for i in (0, 1)]
            row("open loop", f"{name}: p{p * 100:g} direct / through", f"{d:.0f} / {v:.0f}", "us")
            row("open loop", f"{name}: p{p * 100:g} added", f"{v - d:.0f}", "us", bar)
        row("open loop", f"{name}: the bench's own send lag p99, direct / through", " / ".join(f"{statistics.median(x[i]['lag_p99_s'] for x in pairs) * 1e6:.0f}" for i in (0, 1)), "us")
    finally:
        f.stop()


def streams(a):
    print("== streams: 60 tokens each, instant worker, 64 at once", flush=True)
    f = Fleet("none", a.cores)
    try:
        before = cpu_s(f.gate.pid)
        s = load(a.cores[1], f.via, "--workload", "no-sharing", "--question-tok", "180", "--output-tok", "60", "--concurrency", "64", "--duration", str(a.seconds * 2))
        used = cpu_s(f.gate.pid) - before
        row("streams", "events relayed per second of gateway CPU", f"{s['ok'] * 62 / used:.0f}", "events/s", ">= 200000")
    finally:
        f.stop()


def memory(a):
    print("== memory", flush=True)
    f = Fleet("none", a.cores, ("--profile", "llama-8b-h100"))
    try:
        load(a.cores[1], f.via, *ONE_KB, "--concurrency", "64", "--duration", "2")
        n, port = 2000, int(f.via.rsplit(":", 1)[1])
        base, held = rss_kib(f.gate.pid), []
        for _ in range(n):
            held.append(socket.create_connection(("127.0.0.1", port)))
        time.sleep(1)
        row("memory", "resident bytes per idle client connection", f"{(rss_kib(f.gate.pid) - base) * 1024 / n:.0f}", "bytes", "<= 1024")
        for s in held:
            s.close()
        held, n = [], 200
        time.sleep(1)
        base = rss_kib(f.gate.pid)
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x " * 400}], "max_tokens": 2000, "stream": True}).encode()
        for _ in range(n):
            s = socket.create_connection(("127.0.0.1", port))
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            held.append(s)
        time.sleep(3)
        row("memory", "resident bytes per active stream (both connections)", f"{(rss_kib(f.gate.pid) - base) * 1024 / n:.0f}", "bytes", "<= 16384")
        for s in held:
            s.close()
    finally:
        f.stop()


SECTIONS = {"micro": micro, "overhead": overhead, "rate": at_rate, "streams": streams, "memory": memory}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("sections", nargs="*", help="of: " + " ".join(SECTIONS) + " (default: all)")
    ap.add_argument("--seconds", type=float, default=4, help="of each load (default 4)")
    ap.add_argument("--rounds", type=int, default=3, help="pairs direct / through (default 3)")
    ap.add_argument("--cores", default="0,1", help="gateway's core, the others' core (default 0,1)")
    ap.add_argument("--csv", default=os.path.join(ROOT, "out", "bench.csv"))
    a = ap.parse_args()
    a.cores = [int(x) for x in a.cores.split(",")]
    unknown = [s for s in a.sections if s not in SECTIONS]
    if unknown:
        ap.error(f"no section {unknown[0]}; there are {', '.join(SECTIONS)}")
    print(f"   machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; bars are the product's", flush=True)
    for name in a.sections or SECTIONS:
        SECTIONS[name](a)
    os.makedirs(os.path.dirname(a.csv), exist_ok=True)
    with open(a.csv, "w", newline="") as f:
        csv.writer(f).writerows([("section", "name", "value", "unit", "bar"), *rows])
    print(f"   written to {os.path.relpath(a.csv)}; load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    sys.exit(main())
