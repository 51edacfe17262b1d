#!/usr/bin/env python3
"""Compares `kvasir tokenize --chat` with what vLLM itself makes of the same bodies.

chat_oracle.py --kvasir PROGRAM --vllm-python PYTHON [--random N] [--seed N] [--keep FILE] [--requests] MODEL_FOLDER...

PYTHON is one that has vllm. Exit 1 when one body has other ids. A body that we leave to the worker is counted by its reason; one
that vLLM refuses but we do not is counted too: no harm, the worker answers it.
--keep FILE: vLLM's answers are written there, or read from there when it exists.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import chat_corpus  # noqa: E402
import harmony_corpus  # noqa: E402
import request_corpus  # noqa: E402

HERE = Path(__file__).resolve().parent


def vllm_answers(python, jobs):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
        for folder, kind, body, length in jobs:
            f.write(json.dumps({"dir": folder, "kind": kind, "body": body, "length": length}) + "\n")
        f.flush()
        env = dict(os.environ, VLLM_TARGET_DEVICE="cpu", HF_HUB_OFFLINE="1", VLLM_LOGGING_LEVEL="CRITICAL", VLLM_NO_USAGE_STATS="1")
        out = subprocess.run([python, "-B", str(HERE / "vllm_oracle.py"), f.name], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [json.loads(line) for line in out.stdout.decode().splitlines()]


def our_answers(kvasir, folder, kind, length, bodies):
    text = "".join(json.dumps(b) + "\n" for b in bodies)
    command = [kvasir, "tokenize", "--model-dir", folder, "--" + kind, "--lines", "--max-model-len", str(length or 1 << 24)]
    out = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=False)
    answers = [json.loads(line) for line in out.stdout.decode().splitlines()]
    return answers or [{"error": "no_template"}] * len(bodies)  # the whole model was refused


def corpus_of(folder):
    config = Path(folder) / "config.json"
    return harmony_corpus if config.exists() and json.loads(config.read_text()).get("model_type") == "gpt_oss" else chat_corpus


def same(kind, ours, theirs):
    if kind not in ("completions", "embeddings"):
        return ours == theirs["ids"]
    return ours == theirs["ids"] or [ours] == theirs["ids"]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--kvasir", default="out/kvasir")
    p.add_argument("--vllm-python", required=True)
    p.add_argument("--random", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep")
    p.add_argument("--requests", action="store_true", help="only bodies with a template of their own, or with truncation")
    p.add_argument("folders", nargs="+")
    a = p.parse_args()
    jobs = [(folder, kind, body, None) for folder in a.folders for kind, body in corpus_of(folder).jobs(a.random, a.seed)] if not a.requests else []
    jobs += [(folder, kind, body, length) for folder in a.folders for kind, body, length in request_corpus.jobs(a.random, a.seed)]
    if a.keep and Path(a.keep).exists():
        theirs = json.loads(Path(a.keep).read_text())
    else:
        theirs = vllm_answers(a.vllm_python, jobs)
    if a.keep:
        Path(a.keep).write_text(json.dumps(theirs))
    assert len(theirs) == len(jobs), (len(theirs), len(jobs))
    bad = 0
    for folder in a.folders:
        equal, count, why, shown = 0, collections.Counter(), collections.Counter(), 0
        for kind, length in sorted({(j[1], j[3]) for j in jobs if j[0] == folder}, key=str):
            mine = [i for i, j in enumerate(jobs) if (j[0], j[1], j[3]) == (folder, kind, length)]
            answers = our_answers(a.kvasir, folder, kind, length, [jobs[i][2] for i in mine])
            assert len(answers) == len(mine), (len(answers), len(mine))
            for i, ours in zip(mine, answers):
                left = isinstance(ours, dict)
                if left:
                    why[ours["error"]] += "error" not in theirs[i]
                    count["left to the worker" if "error" not in theirs[i] else "refused by both"] += 1
                elif "error" in theirs[i]:
                    count["refused by vLLM only"] += 1
                elif same(kind, ours, theirs[i]):
                    equal += 1
                else:
                    bad += 1
                    shown += 1
                    if shown <= 2:
                        print("DIFFERS", jobs[i][2][:400], "\n  vLLM", repr(theirs[i]["prompt"])[:600], theirs[i]["ids"][-9:], "\n  ours", ours[-9:])
        print(f"{folder}: equal {equal}, different {shown}, {dict(count)}; left for {dict(+why)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
