#!/usr/bin/env python3
"""Is kvasir-sim what a real vLLM is, as far as a gateway can see? The same script of calls runs against both; shapes are
compared: statuses, headers, members and their order, the framing of streams, events and replays. Prompts of token ids
make the numbers comparable too: cached tokens, and what each step stores and removes, block by block.

  sim_equal.py --dir DIR      starts one vLLM from DIR (test/vllm/install.sh) and one kvasir-sim, both on free ports
"""
import argparse
import http.client
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time

import msgspec
import zmq

import fleet

BLOCK, BLOCKS = 32, 60
FLAGS = ["--block-size", str(BLOCK), "--num-gpu-blocks-override", str(BLOCKS), "--enable-scale-out", "--max-model-len", "1024"]
# Only a real model has these, or they are this build's own affair; a gateway reads none of them.
IGNORED_HEADERS = {"date", "vary", "connection", "content-length", "transfer-encoding", "keep-alive"}


class Side:
    """one of the two, with a subscriber on its events"""

    def __init__(self, name, port, events, replay):
        self.name, self.port, self.replay_endpoint = name, port, f"tcp://127.0.0.1:{replay}"
        self.ctx = zmq.Context()
        self.sub = self.ctx.socket(zmq.SUB)
        self.sub.setsockopt(zmq.SUBSCRIBE, b"")
        self.sub.connect(f"tcp://127.0.0.1:{events}")
        self.order = {}

    def call(self, method, path, body=None, headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        data = body if isinstance(body, (str, type(None))) else json.dumps(body)
        c.request(method, path, data, {**({"Content-Type": "application/json"} if body is not None else {}), **(headers or {})})
        r = c.getresponse()
        text = r.read().decode("utf-8", "replace")
        c.close()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, text

    def batches(self, wait=0.6):
        got = []
        while self.sub.poll(wait * 1000):
            got.append(self.sub.recv_multipart())
        return got

    def replay(self, first):
        s = self.ctx.socket(zmq.DEALER)
        s.connect(self.replay_endpoint)
        s.send_multipart([b"", struct.pack(">Q", first)])
        got = []
        while s.poll(3000):
            got.append(s.recv_multipart())
            if got[-1][-1] == b"":
                break
        s.close(0)
        return got

    def nth(self, h):
        """hashes by the order in which they were first said: comparable between the two"""
        return self.order.setdefault(h, len(self.order))


def shape(v):
    """members in their order and the kinds of the values"""
    if isinstance(v, dict):
        return {k: shape(x) for k, x in v.items()}
    if isinstance(v, list):
        kinds = [shape(x) for x in v]
        return [kinds[0], "*"] if len(kinds) > 1 and all(k == kinds[0] for k in kinds) else kinds
    return "number" if isinstance(v, (int, float)) and not isinstance(v, bool) else type(v).__name__


def ordered(v):
    """so that == looks at the order of members too"""
    if isinstance(v, dict):
        return [(k, ordered(x)) for k, x in v.items()]
    return [ordered(x) for x in v] if isinstance(v, list) else v


def answer_shape(status, headers, text):
    kept = {k: v for k, v in headers.items() if k not in IGNORED_HEADERS}
    if "event-stream" in headers.get("content-type", ""):
        return status, kept, [event_shape(e) for e in text.split("\n\n") if e]
    try:
        return status, kept, shape(json.loads(text))
    except ValueError:
        return status, kept, "text" if text else "empty"


def event_shape(event):
    lines = []
    for line in event.split("\n"):
        name, _, value = line.partition(": ")
        try:
            value = shape(json.loads(value))
        except ValueError:
            pass
        lines.append((name, value))
    return lines


def kv_events(side):
    """per batch: what each event says, hashes numbered by first appearance; generated tokens and all hashes differ between the two"""
    seen = []
    for topic, seq, payload in side.batches():
        ts, events, rank = msgspec.msgpack.decode(payload)
        batch = []
        for e in events:
            fact = {"members": sorted(e), "hashes": [side.nth(h) for h in e.get("block_hashes", [])]}
            if e["type"] == "BlockStored":
                p = e["parent_block_hash"]
                fact |= {"parent": None if p is None else side.nth(p), "tokens": len(e["token_ids"]), "block": e["block_size"], "group": e["group_idx"],
                         "extra": e.get("extra_keys"), "lora": (e["lora_id"], e["lora_name"]), "medium": e["medium"], "kind": e["kv_cache_spec_kind"]}
            batch.append((e["type"], fact))
        seen.append((topic, struct.unpack(">Q", seq)[0], type(ts).__name__, rank, batch))
    return seen


class Report:
    def __init__(self):
        self.same, self.faults = 0, []

    def compare(self, what, real, sim):
        if ordered(real) == ordered(sim):
            self.same += 1
            return
        self.faults.append(what)
        print(f"-- {what} differs")
        self.explain("", real, sim)

    def explain(self, at, real, sim):
        """down to the innermost difference"""
        if isinstance(real, dict) and isinstance(sim, dict):
            for k in [*real, *(k for k in sim if k not in real)]:
                if k not in real or k not in sim:
                    print(f"   {at}.{k}: only {'the real one' if k in real else 'the simulator'} has it")
                else:
                    self.explain(f"{at}.{k}", real[k], sim[k])
            if list(real) != list(sim) and set(real) == set(sim):
                print(f"   {at}: members in another order: {list(real)} / {list(sim)}")
        elif isinstance(real, (list, tuple)) and isinstance(sim, (list, tuple)) and len(real) == len(sim):
            for i, (a, b) in enumerate(zip(real, sim)):
                self.explain(f"{at}[{i}]", a, b)
        elif real != sim:
            print(f"   {at}: real {str(real)[:300]}\n   {' ' * len(at)}   sim {str(sim)[:300]}")


def script(model):
    """(name, method, path, body, headers)"""
    chat = {"model": model, "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello there"}], "max_tokens": 4, "ignore_eos": True}
    stream = {"stream": True, "stream_options": {"include_usage": True}}
    text = {"model": model, "prompt": "one two three", "max_tokens": 3, "ignore_eos": True}
    post = "/v1/chat/completions"
    yield "models", "GET", "/v1/models", None, None
    yield "version", "GET", "/version", None, None
    yield "health", "GET", "/health", None, None
    yield "ping", "GET", "/ping", None, None
    yield "event sources", "GET", "/kv_event_sources", None, None
    yield "tokenize text", "POST", "/tokenize", {"model": model, "prompt": "one two"}, None
    yield "tokenize chat", "POST", "/tokenize", {"model": model, "messages": chat["messages"], "return_token_strs": True}, None
    yield "detokenize", "POST", "/detokenize", {"model": model, "tokens": [100, 101]}, None
    yield "chat", "POST", post, chat, None
    yield "chat with its ids", "POST", post, {**chat, "return_token_ids": True}, None
    yield "chat, two choices", "POST", post, {**chat, "n": 2}, None
    yield "chat stream", "POST", post, {**chat, "stream": True}, None
    yield "chat stream with usage", "POST", post, {**chat, **stream}, None
    yield "chat stream, running usage", "POST", post, {**chat, "stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}, None
    yield "chat with an id", "POST", post, chat, {"X-Request-Id": "my-id-1"}
    yield "completion", "POST", "/v1/completions", text, None
    yield "completion stream", "POST", "/v1/completions", {**text, "stream": True}, None
    yield "completion stream with usage", "POST", "/v1/completions", {**text, **stream}, None
    yield "two prompts", "POST", "/v1/completions", {**text, "prompt": ["one two", "three"]}, None
    yield "messages", "POST", "/v1/messages", {"model": model, "max_tokens": 4, "messages": chat["messages"][1:]}, None
    yield "messages count", "POST", "/v1/messages/count_tokens", {"model": model, "messages": chat["messages"][1:]}, None
    yield "unknown model", "POST", post, {**chat, "model": "no-such"}, None
    yield "unknown model, completions", "POST", "/v1/completions", {**text, "model": "no-such"}, None
    yield "no model", "POST", post, {k: v for k, v in chat.items() if k != "model"}, None
    yield "malformed", "POST", post, '{"model": "x", "messages": [', None
    yield "no messages", "POST", post, {"model": model}, None
    yield "messages a string", "POST", post, {**chat, "messages": "hi"}, None
    yield "messages empty", "POST", post, {**chat, "messages": []}, None
    yield "max_tokens a word", "POST", post, {**chat, "max_tokens": "many"}, None
    yield "max_tokens 0", "POST", post, {**chat, "max_tokens": 0}, None
    yield "max_tokens too big", "POST", post, {**chat, "max_tokens": 100000}, None
    yield "temperature -1", "POST", post, {**chat, "temperature": -1}, None
    yield "n 0", "POST", post, {**chat, "n": 0}, None
    yield "n 2, greedy", "POST", post, {**chat, "n": 2, "temperature": 0}, None
    yield "stream a word", "POST", post, {**chat, "stream": "yes please"}, None
    yield "options without stream", "POST", post, {**chat, "stream_options": {"include_usage": True}}, None
    yield "empty salt", "POST", post, {**chat, "cache_salt": ""}, None
    yield "prompt too long", "POST", "/v1/completions", {**text, "prompt": [100] * 1100}, None
    yield "empty prompt list", "POST", "/v1/completions", {**text, "prompt": []}, None
    yield "empty prompt", "POST", "/v1/completions", {**text, "prompt": ""}, None
    yield "id too big", "POST", "/v1/completions", {**text, "prompt": [999999999]}, None
    yield "empty body", "POST", post, "", None
    yield "not json", "POST", post, json.dumps(chat), {"Content-Type": "text/plain"}
    yield "wrong method", "GET", post, None, None
    yield "no such path", "GET", "/no/such/path", None, None
    yield "render", "POST", post + "/render", chat, None
    yield "render completions", "POST", "/v1/completions/render", text, None
    yield "response unknown", "POST", "/v1/responses", {"model": model, "input": "hi", "previous_response_id": "resp_nope"}, None


def prompts(rng):
    """(token ids, further members): repeats, growth, boundaries, salts, evictions"""
    doc, other = [rng.randrange(200, 9000) for _ in range(400)], [rng.randrange(200, 9000) for _ in range(400)]
    yield doc[:200], {}
    yield doc[:200], {}
    yield doc[:192], {}                       # an exact multiple: its last block is stored again
    yield doc[:192], {}
    yield doc[:330], {}
    yield doc[:330], {"cache_salt": "s"}
    yield doc[:330], {"cache_salt": "s"}
    yield doc[:20], {}
    yield doc[:100], {"prompt_logprobs": 1}
    yield doc[:96] + other[:150], {}
    yield doc[:96] + other[:150], {"n": 2, "temperature": 1.0}
    for i in range(8):                        # more than the cache holds
        yield [rng.randrange(200, 9000) for _ in range(300)], {}
        yield doc[:200], {}
    yield other, {}
    yield doc, {}


def same_calls(real, sim, report, model):
    for name, method, path, body, headers in script(model):
        a, b = real.call(method, path, body, headers), sim.call(method, path, body, headers)
        report.compare(name, answer_shape(*a), answer_shape(*b))


def same_cache(real, sim, report, model):
    real.call("POST", "/reset_prefix_cache")
    sim.call("POST", "/reset_prefix_cache")
    for side in (real, sim):
        side.call("POST", "/v1/completions", {"model": model, "prompt": [7, 8], "max_tokens": 1})
        side.batches()
    for i, (ids, more) in enumerate(prompts(random.Random(11))):
        got = []
        for side in (real, sim):
            body = {"model": model, "prompt": ids, "max_tokens": 1, "temperature": 0, "ignore_eos": True, **more}
            status, _, text = side.call("POST", "/v1/completions", body)
            usage = json.loads(text).get("usage", {}) if status == 200 else text
            got.append((status, usage, [b[2:] for b in kv_events(side)]))
        report.compare(f"prompt {i} ({len(ids)} tokens {more})", *got)


def same_replay(real, sim, report):
    def frames(side):
        got = side.replay(0)
        return {"answers differ in frames": sorted({len(f) for f in got}), "first": [len(x) for x in got[0][:-1]], "end": got[-1]}
    report.compare("replay", frames(real), frames(sim))
    report.compare("replay of the future", real.replay(10 ** 9), sim.replay(10 ** 9))


def start_sim(model):
    base = None
    while not base or base + 3 > 65535:
        base = fleet.free_port(3)
    args = [os.path.join(fleet.BIN, "kvasir-sim"), "--port", base, "--model", model, "--profile", "instant", "--block-size", BLOCK, "--blocks", BLOCKS,
            "--max-model-len", 1024, "--enable-render"]
    p = subprocess.Popen([str(a) for a in args], stdout=subprocess.DEVNULL)
    fleet.wait_for("kvasir-sim", lambda: fleet.get(f"http://127.0.0.1:{base}/health") is not None, 10)
    return p, Side("sim", base, base + 1, base + 2)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--dir", required=True, help="where install.sh put vLLM")
    ap.add_argument("--model", default="tiny-qwen3")
    o = ap.parse_args()
    worker = fleet.Worker(o.dir, o.model, "equal", FLAGS, tempfile.mkdtemp(), "tiny")
    sim_process = None
    try:
        worker.start()
        sim_process, sim = start_sim("tiny")
        fleet.wait_for("vLLM", worker.ready, 900)
        real, report = Side("real", worker.port, worker.events, worker.replay), Report()
        time.sleep(1)
        same_calls(real, sim, report, "tiny")
        same_cache(real, sim, report, "tiny")
        same_replay(real, sim, report)
        print(f"{report.same} comparisons equal, {len(report.faults)} not: {', '.join(report.faults)}")
        return 1 if report.faults else 0
    finally:
        worker.kill()
        if sim_process:
            sim_process.terminate()
            sim_process.wait()


if __name__ == "__main__":
    sys.exit(main())
