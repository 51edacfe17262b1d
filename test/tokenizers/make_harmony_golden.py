#!/usr/bin/env python3
"""Writes test/tokenizers/golden/harmony/: what vLLM itself (and the harmony library in it) makes of the bodies of harmony_corpus.py, and of
o200k_harmony as much as these prompts need, under its real ids.

Run it with the Python of an environment that has vllm. bodies.jsonl: {"kind", "body": text, "ids": [...]} or {..., "refused": true}.
The day is 2026-03-01.
"""
import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["VLLM_SYSTEM_START_DATE"] = "2026-03-01"
sys.path.insert(0, str(Path(__file__).resolve().parent))
import harmony_corpus  # noqa: E402
from make_chat_golden import byte_letters  # noqa: E402

GOLDEN = Path(__file__).resolve().parent / "golden"
HERE = GOLDEN / "harmony"
ORDINARY, MOST = 199998, 200019  # ids below the first are pieces; special ones that are kept end before the second


class Pieces:
    """The pieces that a set of ids is merged from."""

    def __init__(self, encoding):
        self.bytes = [bytes(encoding._inner.decode_bytes([i])) for i in range(ORDINARY)]
        self.rank = {b: i for i, b in enumerate(self.bytes)}
        self.used = {self.rank[bytes([b])] for b in range(256)}
        self.merges = set()

    def add(self, i):
        if i in self.used:
            return
        parts = [bytes([b]) for b in self.bytes[i]]
        while len(parts) > 1:
            at = min(range(len(parts) - 1), key=lambda k: (self.rank.get(parts[k] + parts[k + 1], ORDINARY), k))
            self.merges.add((self.rank[parts[at] + parts[at + 1]], parts[at], parts[at + 1]))
            parts[at:at + 2] = [parts[at] + parts[at + 1]]
            self.used.add(self.rank[parts[at]])
        assert parts == [self.bytes[i]]

    def file(self, special):
        letters = byte_letters()
        word = lambda b: "".join(letters[x] for x in b)  # noqa: E731
        t = json.loads((GOLDEN / "o200k" / "tokenizer.json").read_text(encoding="utf-8"))
        t["added_tokens"] = [{"id": i, "content": s, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False} for s, i in special]
        t["post_processor"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        t["model"].update(ignore_merges=True, vocab={**{word(self.bytes[i]): i for i in sorted(self.used)}, **dict(special)}, merges=[[word(a), word(b)] for _, a, b in sorted(self.merges)])
        return t


def main():
    import vllm_oracle
    from vllm.entrypoints.openai.parser.harmony_utils import get_encoding
    encoding = get_encoding()
    pieces, out, refused = Pieces(encoding), [], 0
    special = [(s, i) for s, i in ((s, encoding.encode(s, allowed_special="all")[0]) for s in encoding.special_tokens_set) if i < MOST]
    HERE.mkdir(parents=True, exist_ok=True)
    (HERE / "config.json").write_text('{"model_type": "gpt_oss"}\n')
    with tempfile.TemporaryDirectory() as folder:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            (Path(folder) / name).write_bytes((GOLDEN / "chat" / name).read_bytes())
        (Path(folder) / "config.json").write_bytes((HERE / "config.json").read_bytes())
        for kind, body in harmony_corpus.jobs(30, 5):
            if kind == "completions":
                continue
            try:
                answer = {"ids": vllm_oracle.KINDS[kind](folder, body)["ids"]}
            except Exception:
                answer = {"refused": True}
                refused += 1
            for i in answer.get("ids", []):
                if i < ORDINARY:
                    pieces.add(i)
            out.append({"kind": kind, "body": body, **answer})
    (HERE / "tokenizer.json").write_text(json.dumps(pieces.file(sorted(special, key=lambda x: x[1])), ensure_ascii=False), encoding="utf-8")
    (HERE / "bodies.jsonl").write_text("".join(json.dumps(x, ensure_ascii=False, separators=(",", ":")) + "\n" for x in out), encoding="utf-8")
    print(f"{len(out)} lines, {refused} refused, {(HERE / 'bodies.jsonl').stat().st_size} bytes, {len(pieces.used)} pieces")


if __name__ == "__main__":
    main()
