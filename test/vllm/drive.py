#!/usr/bin/env python3
"""Kvasir against real vLLM workers, driven by the real OpenAI SDK; prints what was measured and fails below the bars.

Per model: N sequential and N concurrent (16 in flight) requests: growing chats, documents with fresh questions, repeats, plain
completions, salts, tools. A request is exact when the cached tokens that Kvasir predicted for the worker it chose equal the
cached tokens that worker reported. Then: chats stay with their cache, streams are byte for byte the worker's, a client that
leaves frees its worker, a killed and restarted worker is noticed and learnt anew.
"""
import argparse
import collections
import concurrent.futures
import json
import random
import re
import signal
import socket
import sys
import time

import httpx
import openai

import fleet

MODELS = {
    # name: (model folder, worker flags, bar sequential, bar concurrent; None = stated only)
    "full": ("tiny-qwen3", ["--block-size", "32", "--num-gpu-blocks-override", "1500"], 0.99, 0.99),
    "window": ("tiny-gemma3", ["--block-size", "32", "--num-gpu-blocks-override", "3000", "--no-disable-hybrid-kv-cache-manager"], 0.99, 0.99),
    "mamba": ("tiny-qwen3next", ["--num-gpu-blocks-override", "600"], 0.99, None),
}
IN_FLIGHT = 16
WORDS = ("river stone winter amber signal crown harbor lantern meadow cobalt thunder velvet copper willow marble ember saffron "
         "granite falcon orchid timber cinder juniper beacon hollow prairie quartz sable tundra violet").split()


def text(rng, n):
    return " ".join(rng.choice(WORDS) + str(rng.randrange(100)) for _ in range(n))


class Traffic:
    """seeded requests; chats grow with the answers they really got"""

    def __init__(self, seed, long_documents):
        self.rng = random.Random(seed)
        self.docs = [text(self.rng, 500 if long_documents else 220) for _ in range(6)]
        self.chats = [[{"role": "system", "content": text(self.rng, 60)}] for _ in range(8)]
        self.done = []
        self.tools = [{"type": "function", "function": {"name": "look_up", "description": "finds a word", "parameters": {
            "type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}}}]

    def next(self, busy=()):
        """(api, body, chat index or None)"""
        r, kind = self.rng, self.rng.random()
        free = [i for i in range(len(self.chats)) if i not in busy]
        if kind < 0.45 and free:
            i = r.choice(free)
            if sum(len(m["content"]) for m in self.chats[i]) > 9000:
                self.chats[i] = [{"role": "system", "content": text(r, 60)}]
            self.chats[i].append({"role": "user", "content": text(r, r.randrange(20, 90))})
            return "chat", {"messages": list(self.chats[i]), "max_tokens": r.randrange(4, 24)}, i
        if kind < 0.70:
            return "chat", {"messages": [{"role": "system", "content": r.choice(self.docs)}, {"role": "user", "content": text(r, r.randrange(5, 60))}],
                            "max_tokens": 4}, None
        if kind < 0.80 and self.done:
            api, body = r.choice(self.done)
            return api, body, None
        if kind < 0.86:
            return "chat", {"messages": [{"role": "user", "content": r.choice(self.docs)}], "max_tokens": 4, "tools": self.tools, "tool_choice": "none"}, None
        if kind < 0.92:
            return "completions", {"prompt": r.choice(self.docs)[: r.randrange(200, 1500)], "max_tokens": 4}, None
        if kind < 0.96:
            return "chat", {"messages": [{"role": "user", "content": r.choice(self.docs)}], "max_tokens": 4,
                            "extra_body": {"cache_salt": r.choice(["alice", "bob"])}}, None
        return "chat", {"messages": [{"role": "user", "content": text(r, r.randrange(30, 300))}], "max_tokens": 4}, None

    def over(self, api, body, chat, answer):
        self.done.append((api, body))
        if chat is not None:
            self.chats[chat].append({"role": "assistant", "content": answer or "."})


class Run:
    def __init__(self, gateway, model):
        self.gateway, self.model = gateway, model
        self.client = openai.OpenAI(base_url=gateway.url + "/v1", api_key="none", max_retries=0, timeout=120)

    def send(self, api, body, stream):
        """(answer text, reported cached tokens, prompt tokens, request id, worker)"""
        make = self.client.chat.completions if api == "chat" else self.client.completions
        raw = make.with_raw_response.create(model=self.model, temperature=0, **body, **(
            {"stream": True, "stream_options": {"include_usage": True}} if stream else {}))
        answer, usage = "", None
        if stream:
            for chunk in raw.parse():
                for c in chunk.choices:
                    answer += (c.delta.content if api == "chat" else c.text) or ""
                usage = chunk.usage or usage
        else:
            got = raw.parse()
            answer = (got.choices[0].message.content if api == "chat" else got.choices[0].text) or ""
            usage = got.usage
        details = usage.prompt_tokens_details
        return answer, (details.cached_tokens if details else 0) or 0, usage.prompt_tokens, raw.headers["x-request-id"], raw.headers["x-kvasir-worker"]

    def predicted(self, request_id):
        for _ in range(20):     # the receipt is whole a moment after the answer
            d = self.gateway.decision(request_id)
            if d.get("outcome"):
                break
            time.sleep(0.02)
        return next(c["hit_tokens"] for c in d["candidates"] if c["chosen"]), d


def say(ok, what):
    print(f"   {'ok  ' if ok else 'FAIL'} {what}", flush=True)
    return ok


def exactness(run, traffic, n, in_flight, misses):
    exact = done = 0
    busy = set()
    chat_of, stays, moves, hits = {}, 0, 0, collections.Counter()

    def one(job):
        api, body, chat = job
        return job, run.send(api, body, stream=hash(str(body["messages"] if api == "chat" else body["prompt"])) % 2 == 0)

    with concurrent.futures.ThreadPoolExecutor(in_flight) as pool:
        pending = set()
        while done < n:
            while len(pending) < in_flight and done + len(pending) < n:
                job = traffic.next(busy)
                if job[2] is not None:
                    busy.add(job[2])
                pending.add(pool.submit(one, job))
            finished, pending = concurrent.futures.wait(pending, return_when=concurrent.futures.FIRST_COMPLETED)
            for f in finished:
                (api, body, chat), (answer, cached, prompt, rid, worker) = f.result()
                hit, receipt = run.predicted(rid)
                done += 1
                exact += hit == cached
                hits[worker] += cached > 0
                if hit != cached:
                    misses.append((rid, prompt, hit, cached, receipt.get("ids"), worker))
                if chat is not None:
                    if chat in chat_of and len(body["messages"]) > 2:
                        stays += chat_of[chat] == worker
                        moves += chat_of[chat] != worker
                    chat_of[chat] = worker
                    busy.discard(chat)
                traffic.over(api, body, chat, answer)
    return exact, done, stays, moves, hits


def body_of(raw):
    """the bodies in a connection's response bytes, chunked coding removed"""
    out, rest = [], bytes(raw)
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        if length:
            out.append(rest[: int(length[1])])
            rest = rest[int(length[1]):]
            continue
        body = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            size = int(size, 16)
            body += rest[:size]
            rest = rest[size + 2:]
            if size == 0:
                break
        out.append(body)
    return out


def events_of(stream):
    return [e for e in stream.split(b"\n\n") if e]


def without_usage(stream):
    """the bytes less what Kvasir's asking for usage brought in or moved: the event with no choices, and the fingerprint, which a
    worker that was not asked puts into the event with the finish reason (that it is there again, `meaning` holds)"""
    events = [e for e in events_of(stream) if not (e.startswith(b"data: {") and json.loads(e[6:])["choices"] == [])]
    return [re.sub(rb',"system_fingerprint":"[^"]*"', b"", e) for e in events]


def meaning(stream):
    """a stream as its reader has it: per choice the text joined (a busy engine puts two tokens into one event now and then),
    everything else as it came; without the id and the second, which differ between any two requests"""
    rest, text = [], {}
    for e in events_of(stream):
        if not e.startswith(b"data: {"):
            rest.append(e)
            continue
        chunk = json.loads(e[6:])
        del chunk["id"], chunk["created"]
        for c in chunk["choices"]:
            text[c["index"]] = text.get(c["index"], "") + (c["delta"].pop("content", None) or "")
        if chunk not in rest:
            rest.append(chunk)
    return rest, text


def streams(workers, logs):
    """through a Kvasir of its own with the proxies between: in the way of the load above they would let connections grow old"""
    proxies = [fleet.Proxy(w) for w in workers]
    gateway = fleet.Gateway([p.url for p in proxies], logs)
    try:
        fleet.wait_for("Kvasir", lambda: len(gateway.healthy()) == len(workers), 60)
        return streams_equal(Run(gateway, "tiny"), proxies, workers)
    finally:
        gateway.stop()


def streams_equal(run, proxies, workers, n=6):
    """usage asked: the client got the very bytes the worker sent on that connection. Not asked: those bytes less the usage event
    that Kvasir asked for, and all that a client that asks the worker itself reads."""
    equal = less_usage = as_direct = 0
    for i in range(n):
        body = {"model": run.model, "messages": [{"role": "user", "content": f"stream {i}"}], "max_tokens": 20, "temperature": 0, "stream": True}
        asked = dict(body, stream_options={"include_usage": True})
        got = httpx.post(run.gateway.url + "/v1/chat/completions", json=asked, timeout=60).content
        equal += any(got in body_of(c) for p in proxies for c in list(p.sent) if got[:60] in c)
        got = httpx.post(run.gateway.url + "/v1/chat/completions", json=body, timeout=60).content
        less_usage += any(without_usage(got) == without_usage(b) and len(got) < len(b) for p in proxies for c in list(p.sent) if got[:60] in c for b in body_of(c) if got[:60] in b)
        direct = httpx.post(workers[0].url + "/v1/chat/completions", json=body, timeout=60).content
        as_direct += meaning(got) == meaning(direct)
    return equal, less_usage, as_direct, n


def abort_frees(run, workers):
    """a client that leaves: how many ran before, how long until none did"""
    body = {"model": run.model, "messages": [{"role": "user", "content": "tell"}], "max_tokens": 4000, "ignore_eos": True}
    freed = []
    for stage in ("stream", "non-stream"):
        text = json.dumps(dict(body, stream=stage == "stream")).encode()
        s = socket.create_connection(("127.0.0.1", run.gateway.data))
        s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
        running, end = 0, time.time() + 20
        while running == 0 and time.time() < end:
            running = sum(w.metric("vllm:num_requests_running") for w in workers)
            time.sleep(0.05)
        s.close()
        gone = time.time()
        while sum(w.metric("vllm:num_requests_running") for w in workers) > 0 and time.time() - gone < 10:
            time.sleep(0.02)
        freed.append((stage, running, time.time() - gone))
    return freed


def restart(run, workers, gateway, traffic):
    """kill -9 a worker under traffic: no failed request but those it held; back again it is learnt anew"""
    victim, failed = workers[0], 0
    victim.kill()
    for _ in range(20):
        api, body, chat = traffic.next()
        try:
            answer, *_ = run.send(api, body, stream=False)
            traffic.over(api, body, chat, answer)
        except openai.APIError:
            failed += 1
    noticed = len(gateway.healthy()) == len(workers) - 1
    victim.start()
    fleet.wait_for("the restarted worker", victim.ready, 900)
    fleet.wait_for("its recovery in Kvasir", lambda: len(gateway.healthy()) == len(workers), 60)
    return failed, noticed


def one_model(args, name, logs):
    model, flags, bar_seq, bar_conc = MODELS[name]
    print(f"== {name}: {model}, {' '.join(flags)}", flush=True)
    workers = [fleet.Worker(args.dir, model, f"{name}{i}", flags, logs, "tiny") for i in range(2)]
    gateway, ok = None, True
    try:
        for w in workers:
            w.start()
        for w in workers:
            fleet.wait_for(f"vLLM (log {w.log})", w.ready, 900)
        print("   workers: vLLM " + json.loads(fleet.get(workers[0].url + "/version"))["version"], flush=True)
        gateway = fleet.Gateway([w.url for w in workers], logs, ["--probe-interval", "500ms", "--tokens-budget", "5s"])   # workers and engine share two cores here
        fleet.wait_for("Kvasir", lambda: len(gateway.healthy()) == 2, 60)
        run = Run(gateway, "tiny")
        for kind, in_flight, bar in (("sequential", 1, bar_seq), ("concurrent", IN_FLIGHT, bar_conc)):
            misses, began = [], time.time()
            exact, n, stays, moves, _ = exactness(run, Traffic(7 if in_flight == 1 else 8, name != "full"), args.requests, in_flight, misses)
            good = bar is None or exact >= bar * n
            ok &= say(good, f"{kind}: predicted = reported cached tokens on {exact} of {n} ({exact / n:.1%}); {in_flight} in flight; "
                            f"chats stayed {stays} of {stays + moves} turns; {time.time() - began:.0f} s")
            for m in misses[:12]:
                print("        miss %s: prompt %d predicted %d reported %d ids=%s worker=%s" % m, flush=True)
            if in_flight == 1:
                ok &= say(stays >= 0.95 * (stays + moves), "growing chats stay where their cache is")
        equal, less_usage, direct, n = streams(workers, logs)
        ok &= say(equal == less_usage == direct == n, f"streams: {equal} of {n} byte for byte the worker's (usage asked), {less_usage} of {n} the worker's bytes less "
                                                      f"the usage event (not asked), {direct} of {n} read as the worker's asked directly")
        for stage, running, took in abort_frees(run, workers):
            ok &= say(running >= 1 and took < 2, f"client leaves ({stage}): {running:.0f} running, 0 after {took * 1e3:.0f} ms")
        if name == "full":
            failed, noticed = restart(run, workers, gateway, Traffic(9, False))
            ok &= say(failed == 0 and noticed, f"worker killed: noticed, {failed} of 20 requests failed; restarted: healthy again")
            misses = []
            traffic = Traffic(10, False)
            exact, n, *_ = exactness(run, traffic, 60, 1, misses)
            ok &= say(exact >= 0.99 * n, f"after the restart: exact on {exact} of {n}")
            exact, n, _, _, hits = exactness(run, traffic, 80, 8, misses)      # one at a time may all go to the other one
            again = hits[workers[0].url]
            ok &= say(exact >= 0.95 * n and again > 0, f"after the restart, 8 in flight: exact on {exact} of {n}, {again} hits of the restarted worker")
        code = gateway.stop()
        gateway = None
        ok &= say(code == 0, f"SIGTERM: Kvasir ended with exit code {code}")
    finally:
        if gateway:
            gateway.stop()
        for w in workers:
            w.kill()
    return ok


def show(run):
    """40 requests, a line each; on how many predicted = reported"""
    traffic, exact = Traffic(3, False), 0
    print(f"   {'kind':12s} {'worker':24s} {'why':8s} {'prompt':>7s} {'predicted':>10s} {'reported':>9s}   (cached tokens)")
    for _ in range(40):
        api, body, chat = traffic.next()
        answer, cached, prompt, rid, worker = run.send(api, body, stream=True)
        hit, receipt = run.predicted(rid)
        exact += hit == cached
        traffic.over(api, body, chat, answer)
        print(f"   {'chat turn' if chat is not None else api:12s} {worker:24s} {receipt['reason']:8s} {prompt:7d} {hit:10d} {cached:9d}{'' if hit == cached else '   differs'}", flush=True)
    print(f"   predicted = reported on {exact} of 40")
    return exact


def demo(args, logs):
    """two real workers, some traffic request by request, then everything stays until Ctrl-C"""
    model, flags, *_ = MODELS["full"]
    print(f"== two real vLLM workers on the CPU ({model}), Kvasir in front; a minute or two to boot", flush=True)
    workers = [fleet.Worker(args.dir, model, f"demo{i}", flags, logs, "tiny") for i in range(2)]
    exact = 0
    try:
        with fleet.running(workers, logs) as gateway:
            exact = show(Run(gateway, "tiny"))
            print(f"== left running until Ctrl-C: gateway {gateway.url}/v1 (model tiny), admin {gateway.admin}, workers {workers[0].url} {workers[1].url}", flush=True)
            while not args.no_wait and gateway.process.poll() is None:
                time.sleep(0.5)
    except KeyboardInterrupt:
        print()
    return exact >= 0.95 * 40


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--dir", required=True)
    ap.add_argument("--requests", type=int, default=300, help="per kind and model (default 300)")
    ap.add_argument("--only", choices=list(MODELS), action="append")
    ap.add_argument("--demo", action="store_true", help="show it live instead of measuring: ./dev demo --vllm")
    ap.add_argument("--no-wait", action="store_true", help="with --demo: end after the table")
    args = ap.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))     # so that workers are ended whatever ends us
    logs = fleet.log_folder()
    if args.demo:
        sys.exit(not demo(args, logs))
    print(f"   logs in {logs}; openai SDK {openai.__version__}", flush=True)
    results = [one_model(args, name, logs) for name in args.only or MODELS]
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed")
    sys.exit(passed != len(results))


if __name__ == "__main__":
    main()
