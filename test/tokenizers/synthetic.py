"""Small tokenizers of every supported kind, trained by the real library on the corpus: they fit into the repository and
hold the odd cases that real files seldom have. build(folder) writes one folder each."""
import json
import random

from tokenizers import Tokenizer, Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

import corpus

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
ENDS = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LEAD = r"[^\r\n\p{L}\p{N}]?"
HAN = r"&&[^\p{Han}]]"


def cased(upper, lower, suffix):
    return f"{LEAD}{upper}*{lower}+{suffix}|{LEAD}{upper}+{lower}*{suffix}"


PATTERNS = {
    "cl100k": [CONTRACTIONS + "|" + LEAD + r"\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + ENDS],
    "cl100k_old": [r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"],
    "qwen2": [CONTRACTIONS + "|" + LEAD + r"\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + ENDS],
    "qwen35": [CONTRACTIONS + "|" + LEAD + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + ENDS],
    "o200k": [cased(UPPER, LOWER, CONTRACTIONS + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + ENDS],
    "tekken_hf": [cased(UPPER, LOWER, "") + r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*" + ENDS],
    "kimi_hf": [r"[\p{Han}]+|" + cased(UPPER[:-1] + HAN, LOWER[:-1] + HAN, CONTRACTIONS + "?") + r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + ENDS],
    "deepseek": [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
                 "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"],
    "digits1": [r"\p{N}", "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"],
}


def texts():
    m = corpus.Maker(7, ["<|im_end|>"], ["the"], [])
    makers = [m.prose, m.prose, m.code, m.script, m.spaces, m.digits, m.contractions, m.cased, m.emoji, m.repeat, m.composed]
    return [m.r.choice(makers)() for _ in range(4000)]


def train(t, size, alphabet):
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, show_progress=False, special_tokens=["<unk>", "<s>", "</s>"])
    t.train_from_iterator(texts(), trainer)
    data = json.loads(t.to_str())
    data["added_tokens"] = []
    return data


def byte_level(pre, normalizer=None, size=900):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    data = train(t, size, pre_tokenizers.ByteLevel.alphabet())
    data["normalizer"] = normalizer
    return data


def splits(name):
    steps = [pre_tokenizers.Split(Regex(p), "isolated") for p in PATTERNS[name]]
    return pre_tokenizers.Sequence([*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


MARK = "\u2581"


def spaced(pre, normalizer, fallback=True, unk=True, size=900):
    t = Tokenizer(models.BPE(unk_token="<unk>" if unk else None, fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    data = train(t, size, list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789.,!-\n" + MARK))
    if fallback:
        vocab = data["model"]["vocab"]
        for b in range(256):
            vocab[f"<0x{b:02X}>"] = len(vocab)
    data["model"]["byte_fallback"] = fallback
    data["normalizer"], data["pre_tokenizer"] = normalizer, pre
    data["decoder"] = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": MARK}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                         {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
    add_crossing(data)
    return data


def add_crossing(data):
    """Pieces with a mark in the middle: the cut between words must see them."""
    vocab, merges = data["model"]["vocab"], data["model"]["merges"]
    for left, right in [(".", MARK), ("." + MARK, "a"), ("a", MARK + "b"), (MARK + "b", "c")]:
        for piece in (left, right, left + right):
            vocab.setdefault(piece, len(vocab))
        merges.append([left, right])


def token(content, **flags):
    return dict(id=0, content=content, single_word=False, lstrip=False, rstrip=False, normalized=False, special=False, **{}) | flags


PLAIN = [token("<|endoftext|>", special=True), token("<|im_start|>", special=True), token("<|im_end|>", special=True), token("<tool_call>"), token("</tool_call>")]
ZOO = PLAIN + [token("<|im|>", lstrip=True), token("<|im|>x", rstrip=True), token("<mask>", lstrip=True, rstrip=True, special=True), token("word", single_word=True),
               token("\n\n\n"), token("  "), token("\t\t", rstrip=True), token("é", normalized=True), token("e\u0301a", normalized=True, lstrip=True), token("<late>", normalized=True, rstrip=True),
               token("<late>x y", normalized=True), token("ab", normalized=True, single_word=True), token("中文", rstrip=True), token("▁x", normalized=True), token("a b")]


def with_tokens(data, tokens, template=True):
    data["added_tokens"] = [dict(t) for t in tokens]
    data["post_processor"] = None
    if template:
        ids = {"<s>": data["model"]["vocab"]["<s>"], "</s>": data["model"]["vocab"]["</s>"]}
        one = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}]
        data["post_processor"] = {"type": "TemplateProcessing", "single": one, "pair": one + [{"Sequence": {"id": "B", "type_id": 1}}],
                                  "special_tokens": {k: {"id": k, "ids": [v], "tokens": [k]} for k, v in ids.items()}}
    return data


def drop_merges(data, share):
    """Pieces that no merge makes any more: only ignore_merges finds them."""
    r = random.Random(3)
    data["model"]["ignore_merges"] = True
    data["model"]["merges"] = [m for m in data["model"]["merges"] if r.random() > share]
    return data


def without_bytes(data, gone):
    """A vocabulary without some bytes (and what was made of them): the library drops them."""
    letters = {c for c in pre_tokenizers.ByteLevel.alphabet() if ord(c) % 17 in gone}
    model = data["model"]
    model["merges"] = [m for m in model["merges"] if not letters & set("".join(m))]
    model["vocab"] = {k: i for i, k in enumerate(k for k in model["vocab"] if not letters & set(k))}
    return data


def replace():
    return {"type": "Replace", "pattern": {"String": " "}, "content": MARK}


def prepend():
    return {"type": "Prepend", "prepend": MARK}


def metaspace(scheme, split):
    return {"type": "Metaspace", "replacement": MARK, "prepend_scheme": scheme, "split": split}


def all_of_them():
    nfc, nfkc = {"type": "NFC"}, {"type": "NFKC"}
    gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)
    with_digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    yield "gpt2", with_tokens(byte_level(gpt2), PLAIN)
    yield "gpt2_nfkc", with_tokens(byte_level(gpt2, nfkc), ZOO)
    yield "gpt2_nfd", with_tokens(byte_level(gpt2, {"type": "NFD"}, 500), ZOO)
    yield "gpt2_nfkd", with_tokens(byte_level(gpt2, {"type": "NFKD"}, 500), PLAIN)
    yield "digits_gpt2", with_tokens(byte_level(with_digits, nfc), PLAIN)
    yield "digits1", with_tokens(byte_level(splits("digits1")), PLAIN)
    yield "cl100k", with_tokens(byte_level(splits("cl100k")), ZOO)
    yield "cl100k_old", with_tokens(byte_level(splits("cl100k_old"), size=600), PLAIN)
    yield "cl100k_ignore", with_tokens(drop_merges(byte_level(splits("cl100k")), .3), PLAIN)
    yield "qwen2", with_tokens(byte_level(splits("qwen2"), nfc), PLAIN)
    yield "qwen2_zoo", with_tokens(byte_level(splits("qwen2"), nfc, 500), ZOO, False)
    yield "qwen35", with_tokens(byte_level(splits("qwen35"), nfc), PLAIN)
    yield "o200k", with_tokens(byte_level(splits("o200k")), PLAIN)
    yield "tekken_hf", with_tokens(byte_level(splits("tekken_hf")), PLAIN)
    yield "kimi_hf", with_tokens(byte_level(splits("kimi_hf")), PLAIN)
    yield "deepseek", with_tokens(byte_level(splits("deepseek"), {"type": "Sequence", "normalizers": []}), ZOO)
    yield "missing_bytes", with_tokens(without_bytes(byte_level(splits("o200k"), size=600), {3, 5}), PLAIN, False)
    yield "llama2", with_tokens(spaced(None, {"type": "Sequence", "normalizers": [prepend(), replace()]}), PLAIN)
    yield "llama2_zoo", with_tokens(spaced(None, {"type": "Sequence", "normalizers": [prepend(), replace()]}), ZOO)
    yield "gemma", with_tokens(spaced({"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}, replace()), ZOO)
    yield "gemma_ignore", with_tokens(drop_merges(spaced(None, replace()), .3), PLAIN)
    yield "spaces_unk", with_tokens(spaced(None, replace(), fallback=False), PLAIN)
    yield "spaces_drop", with_tokens(spaced(None, replace(), fallback=False, unk=False), PLAIN)
    yield "metaspace_first", with_tokens(spaced(metaspace("first", False), None), ZOO)
    yield "metaspace_always", with_tokens(spaced(metaspace("always", False), None), ZOO)
    yield "metaspace_split", with_tokens(spaced(metaspace("always", True), None), PLAIN)
    yield "metaspace_never", with_tokens(spaced(metaspace("never", False), nfc), ZOO)


def build(folder):
    names = []
    for name, data in all_of_them():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        (place / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
        names.append(name)
    return names
