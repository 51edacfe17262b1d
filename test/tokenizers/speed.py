#!/usr/bin/env python3
"""What token ids cost here and in the reference libraries: the same texts, the same core, in turns. ./dev bench tokenize runs it.

speed.py [--rounds N] [--documents N] [--seed N] [--bin DIR] [--cache DIR] FAMILY...

Against PyPI tokenizers (encode_batch_fast, its quickest call) and, where the file can be said as its ranks, tiktoken; chats
also against jinja2 as transformers sets it up. CPU time of the one thread that works. Documents are of about 10,000
tokens; cold: with an empty word cache before each (tiktoken has none), warm: the same document again. The texts: speed_texts.py.
The ids are compared too: a ratio counts only between equal work. Each figure is the median of the rounds, the range of the
ratio behind it. Exit 1: ids differ. The Python of an environment with requirements.txt is needed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import unicodedata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import oracle  # noqa: E402
import speed_texts  # noqa: E402

BARS = {("prose", "cold"): 10, ("code", "cold"): 10, ("mixed", "cold"): 5}
OURS = {"cold": "texts of 10k tokens, empty word cache", "warm": "texts of 10k tokens, words known"}


def cpu_ms(what):
    start = time.thread_time()
    what()
    return (time.thread_time() - start) * 1e3


def cut(text, n_bytes, most):
    """Documents of n bytes from all over the text."""
    data = text.encode()
    starts = range(0, max(1, len(data) - n_bytes), n_bytes)
    return [data[i:i + n_bytes].decode("utf-8", "ignore") for i in starts[:: max(1, len(starts) // most)][:most]]


# ---- the libraries

class Library:
    def __init__(self, folder):
        from tokenizers import Tokenizer
        self.t = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.t.no_truncation()
        self.t.no_padding()

    def ids(self, text):
        return self.t.encode_batch_fast([text], add_special_tokens=False)[0].ids

    def times(self, text):
        self.t.model._clear_cache()
        return {state: cpu_ms(lambda: self.ids(text)) for state in ("cold", "warm")}


class Tiktoken:
    """The ranks of a tokenizer.json, when its merges are those of ranks, under its own pattern."""

    def __init__(self, folder):
        import tiktoken
        data = json.loads((folder / "tokenizer.json").read_text("utf-8"))
        byte = {c: bytes([b]) for b, c in oracle.letters().items()}
        ranks = {b"".join(byte[c] for c in piece): rank for piece, rank in data["model"]["vocab"].items() if all(c in byte for c in piece)}
        pattern = data["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
        self.form = (data["normalizer"] or {}).get("type")
        self.t = tiktoken.Encoding(folder.name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})

    def ids(self, text):
        return self.t.encode_ordinary(unicodedata.normalize(self.form, text) if self.form else text)

    def times(self, text):
        return {state: cpu_ms(lambda: self.ids(text)) for state in ("cold", "warm")}


def tiktoken_of(folder, documents, library):
    """None where it does not give the same ids: another scheme, or other merges."""
    try:
        t = Tiktoken(folder)
    except Exception:  # not of that kind: whatever is missing or unknown, it is not compared
        return None
    return t if all(t.ids(d) == library.ids(d) for d in documents) else None


def template_of(folder):
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    text = json.loads((folder / "tokenizer_config.json").read_text("utf-8")).get("chat_template")
    if not isinstance(text, str):
        return None

    def refuse(why):
        raise ValueError(why)
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    env.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    env.globals.update(raise_exception=refuse, strftime_now=time.strftime)
    return env.from_string(text)


def special_texts(folder):
    config = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    text = {k: v["content"] if isinstance(v, dict) else v for k, v in config.items() if k in ("bos_token", "eos_token")}
    return {k: v for k, v in text.items() if v}


# ---- ours

letters = {}  # of each folder: what every run said of one letter


def bench(a, folder, text_file, *more):
    out = subprocess.run([a.bin / "kvasir-bench", "tokenize", "--model-dir", folder, *more, text_file], capture_output=True, text=True, check=True).stdout
    said = {line[:60].strip(): float(line[60:].split()[0]) for line in out.splitlines()}
    letters.setdefault(folder, []).append((said["1 MB of one letter"], said["2 MB of it, as many times as long"]))
    return said


def our_ids(a, folder, form, lines):
    out = subprocess.run([a.bin / "kvasir", "tokenize", "--model-dir", folder, form, "--lines", *(["--no-special"] if form == "--text" else []), "-"],
                         input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


# ---- a family

def show(name, ours, theirs, bar=None):
    """ours, theirs: milliseconds, one of each round."""
    ratios = sorted(t / o for o, t in zip(ours, theirs))
    middle = statistics.median(ratios)
    said = "" if bar is None else f"   bar >= {bar}: {'met' if middle >= bar else 'NOT MET'}"
    print(f"   {name:42s} {statistics.median(ours):9.3f} ms {statistics.median(theirs):9.2f} ms {middle:8.1f} x  ({ratios[0]:.1f}-{ratios[-1]:.1f}){said}", flush=True)


def compare_text(a, folder, name, path, libraries):
    """Documents of a text. What the bench says of it."""
    text = path.read_text("utf-8")
    said = bench(a, folder, path)
    size = int(path.stat().st_size * 10000 / said["tokens of the whole text"])
    documents = cut(text, size, a.documents)
    known = libraries["tokenizers"]
    same = our_ids(a, folder, "--text", [json.dumps(d) for d in documents]) == [known.ids(d) for d in documents]
    other = tiktoken_of(folder, documents, known) if "tiktoken" in libraries else None
    used = {"tokenizers": known, **({"tiktoken": other} if other else {})}
    rounds = []
    for _ in range(a.rounds):
        said = bench(a, folder, path)
        ours = {state: size / 1e3 / said[line] for state, line in OURS.items()}
        rounds.append((ours, {n: [lib.times(d) for d in documents] for n, lib in used.items()}))
    print(f" {name}: {path.stat().st_size / 1e6:.2f} MB, {said['tokens of the whole text']:.0f} tokens, ids of {len(documents)} documents {'equal' if same else 'DIFFER'}")
    for n in used:
        for state in ("cold", "warm"):
            show(f"10k tokens, {state}, {n}", [o[state] for o, _ in rounds], [statistics.mean(d[state] for d in t[n]) for _, t in rounds],
                 BARS.get((name, state)) if n == "tokenizers" else None)
    return same


def compare_chats(a, folder, path, known, tmp):
    template, rounds, chats = template_of(folder), [], tmp / "chats.jsonl"
    if template is None:
        return True
    special = special_texts(folder)

    def prompt(line):
        body = json.loads(line)
        return template.render(messages=body["messages"], add_generation_prompt=True, tools=None, **special)
    for _ in range(a.rounds):
        said = bench(a, folder, path, "--write-chats", chats)
        lines = chats.read_text("utf-8").splitlines()[:2 * a.documents]
        for line in lines[::2]:
            known.ids(prompt(line))
        theirs = [[cpu_ms(lambda line=line: known.ids(prompt(line))) for line in lines[i::2]] for i in (0, 1)]
        rounds.append(([said["chat of 10k tokens, words known, p50"], said["its next turn, p50"]], [statistics.median(t) for t in theirs]))
    same = our_ids(a, folder, "--chat", lines) == [known.ids(prompt(line)) for line in lines]
    print(f" chats of prose, body to ids (ours: to block keys): ids of {len(lines)} {'equal' if same else 'DIFFER'}")
    for i, name in enumerate(("10k tokens, warm, tokenizers + jinja2", "its next turn, tokenizers + jinja2")):
        show(name, [o[i] for o, _ in rounds], [t[i] for _, t in rounds])
    return same


def compare_letter(folder, libraries):
    ours, times = (statistics.median(x) for x in zip(*letters[folder]))
    print(f" 1 MB of one letter: {ours:.0f} ms   bar <= 400: {'met' if ours <= 400 else 'NOT MET'}; twice as much {times:.2f} times that   bar <= 2.6: {'met' if times <= 2.6 else 'NOT MET'}   (medians of {len(letters[folder])} runs)")
    for name, library in libraries.items():
        show(f"1 MB of one letter, {name}", [ours], [cpu_ms(lambda library=library: library.ids("a" * 1000000))])


def family(a, name, files, tmp):
    folder = a.cache / name
    print(f"{name}: ours, theirs, how many times theirs is ours (least to most of {a.rounds} rounds)", flush=True)
    libraries = {"tokenizers": Library(folder)}
    try:
        libraries["tiktoken"] = Tiktoken(folder)
    except Exception:  # another scheme
        pass
    same = all([compare_text(a, folder, n, path, libraries) for n, path in files])
    same &= compare_chats(a, folder, files[0][1], libraries["tokenizers"], tmp)
    compare_letter(folder, libraries)
    return same


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--documents", type=int, default=8)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--bin", type=Path, default=Path("out"))
    p.add_argument("--cache", type=Path, default=Path.home() / ".cache/kvasir/tokenizers")
    p.add_argument("families", nargs="+")
    a = p.parse_args()
    core = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    print(f"core {core} of {os.cpu_count()}, load {os.getloadavg()[0]:.1f} at the start", flush=True)
    with tempfile.TemporaryDirectory() as tmp:
        files = []
        for name, text in speed_texts.texts(a.seed):
            files.append((name, Path(tmp) / f"{name}.txt"))
            files[-1][1].write_text(text, "utf-8")
        same = all([family(a, f, files, Path(tmp)) for f in a.families])
    print(f"load {os.getloadavg()[0]:.1f} at the end")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
