"""Chats with pictures on a real vLLM behind Kvasir (./dev test-vllm --images): how many tokens a picture becomes only the worker knows, so Kvasir keys the
text before the first one (ids=prefix), up to the last cut that is safe whatever follows. Predicted must never be more than the worker reports, at most a block
less (where its border falls between that cut and the picture), and above 0 on every chat whose system prompt was seen before.
"""
import argparse
import base64
import collections
import io
import os
import random
import signal
import sys
import time

from PIL import Image

import drive
import fleet

MODEL, BLOCK = "tiny-qwen2_vl", 32
FLAGS = ["--block-size", str(BLOCK)]


def text(t):
    return {"type": "text", "text": t}


def user(*parts):
    return {"role": "user", "content": list(parts)}


def chats(seed):
    """[(its system prompt's name, messages)]: pictures of twelve sizes, before, behind and between the text, in a second turn, two, and one again"""
    rng = random.Random(seed)

    def picture(i):
        size = 56 + 28 * (i % 4), 56 + 28 * (i % 3)
        out = io.BytesIO()
        Image.frombytes("RGB", size, rng.randbytes(size[0] * size[1] * 3)).save(out, "PNG")
        return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()}}

    turns = [{"role": "user", "content": drive.text(rng, 60)}, {"role": "assistant", "content": drive.text(rng, 70)}]
    for name, words in (("A", 220), ("B", 130)):
        system, same = {"role": "system", "content": drive.text(rng, words)}, picture(3)
        forms = [*[lambda i: [user(text(f"What is on picture {i}?"), picture(i))]] * 10, *[lambda i: [user(picture(i), text(f"Describe number {i}."))]] * 6,
                 *[lambda i: [*turns, user(picture(i), text(f"And {i}?"))]] * 6, *[lambda i: [user(text("Compare:"), picture(i), text("and"), picture(i + 1))]] * 4,
                 *[lambda i, p=same: [user(text("Once more?"), p)]] * 3]
        for i, form in enumerate(forms):
            yield name, [system, *form(i)]


def measure(args, gateway):
    run, seen, count, predicted, reported = drive.Run(gateway, "m"), set(), collections.Counter(), 0, 0
    for name, messages in chats(args.seed):
        _, cached, prompt, rid, _ = run.send("chat", {"messages": messages, "max_tokens": 2}, stream=False)
        hit, receipt = run.predicted(rid)
        good = receipt["ids"] == "prefix" and hit <= cached <= hit + BLOCK and (hit > 0 or name not in seen)
        seen.add(name)
        count["chats"] += 1
        count["good"] += good
        count["equal"] += hit == cached
        predicted, reported = predicted + hit, reported + cached
        if not good:
            print(f"        prompt {prompt} predicted {hit} reported {cached} ids={receipt['ids']}", flush=True)
    n, shares = count["chats"], gateway.metric("kvasir_worker_predictions_exact_total")
    ok = drive.say(count["good"] == n, f"text before the first picture keyed, on {count['good']} of {n}: predicted = reported cached tokens on {count['equal']}, a block less on the "
                                       f"others; {predicted} of {reported} tokens in all")
    return ok & drive.say(shares == n, f"Kvasir's own count of exact predictions: {shares:.0f}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", required=True)
    p.add_argument("--seed", type=int, default=7)
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))     # so that workers are ended whatever ends us
    logs, began = fleet.log_folder(), time.time()
    print(f"   logs in {logs}\n== images: {MODEL}, {' '.join(FLAGS)}", flush=True)
    with fleet.running([fleet.Worker(a.dir, MODEL, "images", FLAGS, logs, "m")], logs,
                       ["--tokenizer", os.path.join(a.dir, "models", MODEL), "--tokens", "local", "--probe-interval", "500ms"]) as gateway:
        ok = measure(a, gateway)
    print(f"   {time.time() - began:.0f} s\n{int(ok)} passed, {int(not ok)} failed")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
