"""Pooling models on a real vLLM behind Kvasir (./dev test-vllm --pooling): embeddings, scores, rankings.

Their answers tell no cached tokens: the truth is the engine's own counter, vllm:prefix_cache_hits_total, before and after each request, one at
a time. Of several prompts Kvasir looks for the last; the others are new here and shorter than a block, so they find nothing. First a model that
embeds: everything is keyed, its ids are held against /tokenize too. Then one that classifies: its scores are pairs and go by load. One worker at a time.
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

import httpx

import drive
import fleet

MODEL = "tiny-qwen3"
FLAGS = ["--runner", "pooling", "--block-size", "32", "--num-gpu-blocks-override", "1500"]
PAIRS = ["--hf-overrides", json.dumps({"architectures": ["Qwen3ForSequenceClassification"], "num_labels": 1})]
HITS = "vllm:prefix_cache_hits_total"


class Traffic:
    """seeded requests of every form; most begin as an earlier one"""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.begins = [drive.text(self.rng, 40 + 30 * i) for i in range(4)]
        self.ids = [[self.rng.randrange(1000, 9000) for _ in range(100 + 60 * i)] for i in range(2)]

    def grown(self):
        return self.rng.choice(self.begins) + " " + drive.text(self.rng, self.rng.randrange(1, 30))

    def some_ids(self):
        return self.rng.choice(self.ids) + [self.rng.randrange(1000, 9000) for _ in range(self.rng.randrange(1, 50))]

    def embedding(self, i):
        new = drive.text(self.rng, 3)
        return {
            0: {"input": self.grown()}, 1: {"input": [self.grown()], "dimensions": None}, 2: {"input": self.some_ids()}, 3: {"input": [self.some_ids()]},
            4: {"input": [new, self.grown()]}, 5: {"input": self.grown(), "add_special_tokens": False},
            6: {"messages": [{"role": "system", "content": self.rng.choice(self.begins)}, {"role": "user", "content": new}]},
            7: {"messages": [{"role": "user", "content": [{"type": "text", "text": self.rng.choice(self.begins)}, {"type": "text", "text": new}]}],
                "add_generation_prompt": True},
            8: {"input": self.grown(), "truncate_prompt_tokens": 90},
        }[i % 9]

    def score(self, i):
        new, other = drive.text(self.rng, 3), drive.text(self.rng, 4)
        return {
            0: ("/score", {"text_1": new, "text_2": self.grown()}), 1: ("/v1/score", {"queries": new, "documents": [other, self.grown()]}),
            2: ("/score", {"data_1": [new, other], "data_2": [drive.text(self.rng, 2), self.grown()]}),
            3: ("/score", {"queries": [new], "items": self.grown(), "instruction": "x"}),
            4: ("/rerank", {"query": new, "documents": [other, drive.text(self.rng, 2), self.grown()], "top_n": 2}),
            5: ("/v2/rerank", {"query": new, "documents": self.grown()}),
            6: ("/rerank", {"query": new, "documents": [self.grown()], "truncate_prompt_tokens": 90, "truncation_side": "right"}),
        }[i % 7]

    def next(self, kind, i):
        path, body = ("/v1/embeddings", self.embedding(i)) if kind == "embeddings" else self.score(i)
        if i % 5 == 4:
            body["cache_salt"] = self.rng.choice(["alice", "bob"])
        return path, {"model": "m", **body}


class Asking:
    def __init__(self, gateway, worker):
        self.run, self.worker, self.http = drive.Run(gateway, "m"), worker, httpx.Client(base_url=gateway.url, timeout=120)

    def ask(self, path, body):
        """(predicted, found by the engine, receipt)"""
        before = self.worker.metric(HITS)
        r = self.http.post(path, json=body)
        r.raise_for_status()
        hit, receipt = self.run.predicted(r.headers["x-request-id"])
        return hit, int(self.worker.metric(HITS) - before), receipt


def exactness(asking, traffic, kind, n):
    exact, found, words, bodies = 0, 0, collections.Counter(), []
    for i in range(n):
        path, body = traffic.next(kind, i)
        predicted, engine, receipt = asking.ask(path, body)
        good = predicted == engine and receipt["ids"] == "keys"
        exact, found = exact + good, found + (engine > 0)
        words[receipt["ids"]] += 1
        bodies.append(body)
        if not good:
            print(f"        {path} predicted {predicted} found {engine} ids={receipt['ids']} {json.dumps(body)[:200]}", flush=True)
    return drive.say(exact >= 0.99 * n and found > n / 3, f"{kind}: predicted = found by the engine on {exact} of {n}, {found} of them above 0; ids {dict(words)}"), bodies


def held_against_tokenize(folder, worker, bodies):
    """those that /tokenize can express: chats, and single texts that are not cut"""
    single = [b.get("input", [""])[0] if isinstance(b.get("input"), list) and len(b["input"]) == 1 else b.get("input", "") for b in bodies]
    bodies = [json.dumps(b) for b, text in zip(bodies, single) if isinstance(text, str) and "truncate_prompt_tokens" not in b]
    r = subprocess.run([f"{fleet.BIN}/kvasir", "tokenize", "--check", "--embeddings", "--worker", worker.url, "--model-dir", folder], input="\n".join(bodies) + "\n",
                       capture_output=True, text=True, check=False)
    return drive.say(r.returncode == 0 and json.loads(r.stdout)["equal"] == len(bodies), f"ids of embeddings against /tokenize: {r.stdout.strip()}")


def embeds(args, gateway, worker, folder):
    asking, traffic = Asking(gateway, worker), Traffic(args.seed)
    ok, bodies = exactness(asking, traffic, "embeddings", args.requests)
    ok &= exactness(asking, traffic, "scores", args.requests)[0]
    ok &= held_against_tokenize(folder, worker, bodies)
    left = [asking.ask(p, {"model": "m", **b})[2]["ids"] for p, b in (("/v1/embeddings", {"input": "a b c", "truncate_prompt_tokens": -1}),
                                                                     ("/rerank", {"query": "a", "documents": ["b c"], "max_tokens_per_doc": 1}))]
    ok &= drive.say(set(left) == {"not_expressible"}, f"cut to a length that is not known here: by load, ids {left}")
    compared = {r: int(gateway.metric(f'kvasir_token_ids_compared_total{{result="{r}"}}')) for r in ("same", "different", "other_length")}
    told = [int(gateway.metric(f"kvasir_worker_prompts_{w}_total")) for w in ("told", "not_told")]
    ok &= drive.say(compared["same"] > 0 and compared["different"] == compared["other_length"] == 0, f"compared beside the requests, and each answer's usage: {compared}")
    return ok & drive.say(told[0] > 0 and told[1] == 0, f"the last whole block's key was told by the worker's events: {told[0]} prompts, not told: {told[1]}")


def classifies(_args, gateway, worker, _folder):
    asking, traffic = Asking(gateway, worker), Traffic(3)
    pairs = [("/score", {"model": "m", "text_1": traffic.grown(), "text_2": b}) for b in traffic.begins for _ in range(2)]
    got = [asking.ask(*p) for p in pairs]
    words, found = {r["ids"] for _, _, r in got}, sum(engine for _, engine, _ in got)
    return drive.say(words == {"not_embedding"} and found > 0, f"scores go by load: ids {words}; the engine found {found} tokens of equal pairs all the same")


def one(args, name, flags, judge, logs):
    print(f"== {name}: {MODEL}, {' '.join([*FLAGS, *flags])}", flush=True)
    worker, folder, began = fleet.Worker(args.dir, MODEL, name, [*FLAGS, *flags], logs, "m"), os.path.join(args.dir, "models", MODEL), time.time()
    with fleet.running([worker], logs, ["--tokenizer", folder, "--probe-interval", "500ms"]) as gateway:
        fleet.wait_for("the worker's kind", lambda: gateway.metric('kvasir_feed_requests_total{what="embeddings"') > 0, 30)
        ok = judge(args, gateway, worker, folder)
    print(f"   {time.time() - began:.0f} s", flush=True)
    return ok


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", required=True)
    p.add_argument("--requests", type=int, default=60, help="embeddings, and as many scores (default 60)")
    p.add_argument("--seed", type=int, default=7)
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))     # so that workers are ended whatever ends us
    logs = fleet.log_folder()
    print(f"   logs in {logs}", flush=True)
    results = [one(a, "embeds", [], embeds, logs), one(a, "classifies", PAIRS, classifies, logs)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
