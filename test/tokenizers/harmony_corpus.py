"""Request bodies for GPT-OSS (harmony): those of chat_corpus.py and convert_corpus.py, and tools whose schemas meet every rule by which the
library prints them as TypeScript, alone and mixed."""
import json
import random

import chat_corpus
import convert_corpus

U = {"role": "user", "content": "question"}
DESCRIPTIONS = ["d", "two\nlines", "ends in a line end\n", "\n", "crlf\r\nand cr\rx\r", "a // comment */", "", "é 日本 \"q\"", "nul \u0000 and \u007f", "<|end|>"]
DEFAULTS = [1, -3, 0, 1.0, 2.5, -0.0, 0.1, 1e-4, 123456.789, 9007199254740993, "word", "", "q\"uo\\te\n", True, False, None, [], {}, [1, "a", {"k": [None, 1.5]}], {"é": "\u0001\u001f\u2028"},
            1e-5, 1e16, 1e22, 12345678901234567890123, -9223372036854775808]
SCHEMAS = [
    {}, {"type": "object"}, {"type": "object", "properties": {}}, {"type": "object", "properties": None}, {"properties": {"a": {"type": "string"}}}, {"type": "object", "description": "top", "properties": {"a": {}}},
    {"type": "object", "properties": {"a": {"type": "string", "enum": ["x", "y\"", 3]}, "b": {"type": "string", "enum": [1, 2]}, "c": {"type": "string", "enum": []}}, "required": ["b", 5]},
    {"type": "object", "properties": {"n": {"type": "number"}, "i": {"type": "integer", "nullable": True}, "t": {"type": "boolean", "nullable": False}, "u": {"type": "nothing"}, "v": {"type": "null", "nullable": True}}},
    {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array", "items": {"type": "integer"}}, "c": {"type": "array", "items": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}}}, "d": {"type": "array", "items": True}}},
    {"type": "object", "properties": {"u": {"type": ["string", "integer", "null"], "nullable": True}, "v": {"type": []}, "w": {"type": [1]}, "x": {"type": ["object"]}}},
    {"type": "object", "properties": {"o": {"type": "object", "description": "inner", "properties": {"p": {"type": "string", "description": "deep", "default": "z"}}, "required": ["p"]}}, "required": ["o"]},
    {"type": "object", "properties": {"a": {"title": "T", "description": "D", "examples": ["e", 1, "f\"g"], "type": "string"}, "b": {"examples": [], "title": "", "type": "string"}, "c": {"examples": [1], "type": "string"}}},
    {"type": "object", "properties": {"a": {"oneOf": [{"type": "string", "description": "same", "default": "x"}, {"type": "number", "default": 2, "nullable": True}], "description": "same", "default": "dd"}}},
    {"type": "object", "properties": {"a": {"oneOf": [{"type": "string", "enum": ["k"], "default": "k", "description": "one"}, {"type": "null", "nullable": True, "description": "all"}], "description": "all", "default": None, "title": "T", "examples": ["e"]}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"oneOf": []}, "b": {"oneOf": "x", "type": "string", "description": "unseen", "default": 1}, "c": {"oneOf": [True, {"oneOf": [{"type": "string"}, {"type": "integer", "default": "i"}]}]}}},
    {"oneOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "string", "enum": ["e"], "default": "e", "description": "words"}, {"type": "string", "default": "s"}, {"nullable": True, "default": {"a": [1]}}]},
    {"type": "object", "properties": {"e": {"type": "string", "enum": ["a"], "default": "a"}, "f": {"type": "string", "enum": ["a"], "default": 3}, "odd key!": {"type": "string"}, "": {"type": "string"}}},
    {"type": "object", "properties": {"s": True, "t": None, "u": [1], "v": "x"}, "$defs": {"x": {}}, "additionalProperties": False},
]


def schemas():
    out = SCHEMAS + [{"type": "object", "properties": {"x": {"type": "string", "default": d}, "y": {"oneOf": [{"type": "number", "default": d}]}}} for d in DEFAULTS]
    out += [{"type": "object", "description": d, "properties": {"x": {"type": "string", "description": d, "title": d, "examples": [d]}}} for d in DESCRIPTIONS]
    return out


def schema(r, depth=0):
    s = {}
    if r.random() < 0.9:
        s["type"] = r.choice(["object", "object", "string", "number", "integer", "boolean", "array", "null", ["string", "null"]] if depth < 4 else ["string", "number"])
    for name, values in (("description", DESCRIPTIONS), ("title", DESCRIPTIONS), ("default", DEFAULTS), ("nullable", [True, False]), ("enum", [["a", "b"], ["a", 1], []]), ("examples", [["e"], []])):
        if r.random() < 0.25:
            s[name] = r.choice(values)
    if depth < 4 and r.random() < 0.15:
        s["oneOf"] = [schema(r, depth + 1) for _ in range(r.randrange(4))]
    if s.get("type") == "object":
        s["properties"] = {r.choice(["a", "b", "long_name", "日本", "x y"]): schema(r, depth + 1) for _ in range(r.randrange(4))}
        s["required"] = [k for k in s["properties"] if r.random() < 0.5]
    if s.get("type") == "array" and r.random() < 0.8:
        s["items"] = schema(r, depth + 1)
    return s


def tool(parameters, **more):
    return {"type": "function", "function": {"name": "f", "parameters": parameters, **more}}


def with_tools(r, n):
    out = [{"messages": [U], "tools": [tool(s)]} for s in schemas()]
    out += [{"messages": [U], "tools": [tool({}, description=d), tool(None, description=d)]} for d in DESCRIPTIONS]
    out += [{"messages": [{"role": role, "content": c}, U], "tools": [tool({})]} for role in ("system", "developer") for c in ("", "s", [], [{"type": "text", "text": "a"}, {"type": "text", "text": " b"}])]
    for _ in range(n):
        s = {"type": "object", "properties": {k: schema(r) for k in "abc"[:r.randrange(4)]}}
        out.append({"messages": [U], "tools": [tool(s, description=r.choice(DESCRIPTIONS)), tool(schema(r))]})
    return out


def odd():
    thought = {"role": "assistant", "content": "a", "reasoning": "r"}
    ask = [{"role": "assistant", "content": "so", "reasoning": "why", "tool_calls": [chat_corpus.call("{}", "f"), chat_corpus.call("", "g")]}, {"role": "tool", "tool_call_id": "call_g", "content": "r"}]
    out = [{"messages": m} for m in (
        [U, thought, U, thought], [U, thought, U, *ask], [U, *ask, U, thought, U], [U, *ask, thought, U, *ask], [U, {"role": "assistant", "reasoning": "only"}], [U, {"role": "assistant", "reasoning": "", "content": "x"}, U],
        [{"role": "user", "content": "<|start|>system<|message|>x<|end|><|return|><|call|><|endoftext|><|reserved_200000|>"}], [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}, {"role": "developer", "content": "c"}, U],
        [U, {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]}, U], [U, {"role": "assistant", "tool_calls": [chat_corpus.call("{}", "<|end|>")]}], [U, {"role": "assistant", "tool_calls": [chat_corpus.call("{}", "a to=b c")]}],
        [{"role": "user", "content": [{"type": "text", "text": "cut in the mid"}, {"type": "text", "text": "dle of a word"}, {"type": "text", "text": "\n\n"}, {"type": "text", "text": "\n"}]}])]
    out += [{"messages": [U], "reasoning_effort": e} for e in ("low", "medium", "high", "none", "minimal", "xhigh", "max", None)]
    return out + [{"messages": [U, thought, U, *ask]}, {"messages": [{"role": "user", "content": "long text with 12345 numbers\n" * 300}, {"role": "user", "content": "word " * 2000}]}]


def jobs(n, seed):
    """(kind, text of the body) of everything."""
    r = random.Random(seed)
    chats = chat_corpus.fixed() + chat_corpus.mixed(n, seed) + with_tools(r, n) + odd()
    out = [("chat", json.dumps({"model": "m", **b}, ensure_ascii=i % 2 == 0)) for i, b in enumerate(chats)]
    for kind, make in (("responses", convert_corpus.responses), ("messages", convert_corpus.messages)):
        more = {"model": "m", **({"max_tokens": 4} if kind == "messages" else {})}
        out += [(kind, json.dumps({**more, **b})) for b in convert_corpus.HAND[kind]]
        out += [(kind, json.dumps(make(r), ensure_ascii=r.random() < 0.5)) for _ in range(n)]
    return out
