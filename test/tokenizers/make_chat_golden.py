#!/usr/bin/env python3
"""Writes test/tokenizers/golden/chat/: a tiny tokenizer, and what vLLM itself makes of the bodies of chat_corpus.py with it.

Run it with the Python of an environment that has vllm. bodies.jsonl: {"template": N, "source": text} says which template the lines
behind it are for; {"kind", "body": text, "prompt": text, "ids": [...]} or {..., "refused": true} where vLLM answers 4xx.
convert.jsonl: the same for bodies of /v1/responses and /v1/messages (convert_corpus.py). requests.jsonl: for bodies that say how they
are to be truncated, or bring their template (request_corpus.py), with "length": max_model_len.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import chat_corpus  # noqa: E402
import convert_corpus  # noqa: E402
import jinja_corpus  # noqa: E402
import request_corpus  # noqa: E402

HERE = Path(__file__).resolve().parent / "golden" / "chat"
TEMPLATES = ["turns with tools", "alternation", "macros", "plain lines"]
ADDED = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
MERGES = [("h", "i"), ("Ġ", "x"), ("e", "r"), ("u", "s"), ("us", "er"), ("Ġ", "t"), ("t", "h"), ("o", "n"), ("th", "i"), ("Ċ", "Ċ")]


def byte_letters():
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(rest)) for b in range(256)]


def tokenizer():
    words = byte_letters() + [a + b for a, b in MERGES]
    added = [{"id": len(words) + i, "content": a, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for i, a in enumerate(ADDED)]
    bos = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
           "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
           "special_tokens": {"<s>": {"id": "<s>", "ids": [len(words)], "tokens": ["<s>"]}}}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
            "post_processor": bos, "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                      "byte_fallback": False, "ignore_merges": False, "vocab": {w: i for i, w in enumerate(words)}, "merges": [list(m) for m in MERGES]}}


def converted():
    import vllm_oracle
    r = random.Random(3)
    bodies = [(k, {"model": "m", "max_tokens": 4, **b}) for k, hand in convert_corpus.HAND.items() for b in hand]
    bodies += [("messages", convert_corpus.messages(r)) for _ in range(40)] + [("responses", convert_corpus.responses(r)) for _ in range(40)]
    out = []
    for n, name in enumerate(TEMPLATES):
        out.append({"template": n, "source": jinja_corpus.TEMPLATES[name]})
        with tempfile.TemporaryDirectory() as folder:
            for file in HERE.glob("*.json"):
                (Path(folder) / file.name).write_bytes(file.read_bytes())
            (Path(folder) / "chat_template.jinja").write_text(jinja_corpus.TEMPLATES[name])
            for kind, body in bodies:
                text = json.dumps(body)
                try:
                    answer = {"ids": vllm_oracle.KINDS[kind](folder, text)["ids"]}
                except Exception:
                    answer = {"refused": True}
                out.append({"kind": kind, "body": text, **answer})
    (HERE / "convert.jsonl").write_text("".join(json.dumps(x, ensure_ascii=False, separators=(",", ":")) + "\n" for x in out), encoding="utf-8")


def write(name, lines):
    (HERE / name).write_text("".join(json.dumps(x, ensure_ascii=False, separators=(",", ":")) + "\n" for x in lines), encoding="utf-8")


def requests():
    import vllm_oracle
    source = jinja_corpus.TEMPLATES["turns with tools"]
    out = [{"template": 0, "source": source}]
    with tempfile.TemporaryDirectory() as folder:
        for file in HERE.glob("*.json"):
            (Path(folder) / file.name).write_bytes(file.read_bytes())
        (Path(folder) / "chat_template.jinja").write_text(source)
        for kind, body, length in request_corpus.jobs(40, 5):
            if len(body) > 20000 or "strftime_now" in body:  # the day is in it
                continue
            vllm_oracle.LENGTH = length or 1 << 24
            try:
                answer = {"ids": vllm_oracle.KINDS[kind](folder, body)["ids"]}
            except Exception:
                answer = {"refused": True}
            out.append({"kind": kind, "body": body, "length": length, **answer})
    write("requests.jsonl", out)


def main():
    import vllm_oracle
    HERE.mkdir(parents=True, exist_ok=True)
    (HERE / "tokenizer.json").write_text(json.dumps(tokenizer(), ensure_ascii=False))
    (HERE / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>", "model_max_length": 100000}))
    jobs = chat_corpus.jobs(30, 3)
    out, refused = [], 0
    for n, name in enumerate(TEMPLATES):
        source = jinja_corpus.TEMPLATES[name]
        out.append({"template": n, "source": source})
        with tempfile.TemporaryDirectory() as folder:
            for file in HERE.glob("*.json"):
                (Path(folder) / file.name).write_bytes(file.read_bytes())
            (Path(folder) / "chat_template.jinja").write_text(source)
            for kind, body in jobs:
                if kind == "completions" and n:
                    continue
                try:
                    answer = (vllm_oracle.chat if kind == "chat" else vllm_oracle.completions)(folder, body)
                except Exception:
                    answer = {"refused": True}
                    refused += 1
                out.append({"kind": kind, "body": body, **{k: v for k, v in answer.items() if k != "prompt" or kind == "chat"}})
    (HERE / "bodies.jsonl").write_text("".join(json.dumps(x, ensure_ascii=False, separators=(",", ":")) + "\n" for x in out), encoding="utf-8")
    converted()
    requests()
    print(f"{len(out)} lines, {refused} refused, {(HERE / 'bodies.jsonl').stat().st_size} bytes")


if __name__ == "__main__":
    main()
