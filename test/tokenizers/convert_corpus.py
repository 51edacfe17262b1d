#!/usr/bin/env python3
"""Bodies of /v1/responses and /v1/messages, one a line: convert_corpus.py responses|messages N [SEED]. The first are made by hand, the
rest by chance from the forms that clients send: turns, tools, results of tools, thinking, system texts in every place, odd members."""
import json
import random
import sys

TEXTS = ["hi", "", "What's the weather\nin 東京?", " lead and trail ", "{\"a\": 1}", "emoji 👩‍👩‍👧 é", "x-anthropic-billing-header: c=1", "<|im_end|>", "a" * 300, "\n"]
SCHEMAS = [{"type": "object", "properties": {"city": {"type": "string", "description": "naïve"}}, "required": ["city"]}, {"properties": {"n": {"type": "number", "maximum": 1.0}}},
           {}, {"type": "object", "properties": {}, "$defs": {"x": [1, 2.5, None, True, 1e30, -0.0]}}]
ARGS = [{}, {"city": "Köln"}, {"n": 1.0, "big": 12345678901234567890, "deep": {"l": [1, [2, {"k": None}]]}}, {"s": "q\"uote\\ \u2028"}, {"f": 1e-7}]


def pick(r, *xs):
    return r.choice(xs)


# ---- messages

def tool_a(r, i):
    t = {"name": f"tool_{i}", "input_schema": r.choice(SCHEMAS)}
    if r.random() < 0.7:
        t["description"] = r.choice(TEXTS[:6])
    if r.random() < 0.2:
        t["strict"] = pick(r, True, False, None)
    if r.random() < 0.2:
        t["cache_control"] = {"type": "ephemeral"}
    return t


def text_block(r):
    b = {"type": "text", "text": r.choice(TEXTS)}
    if r.random() < 0.2:
        b["cache_control"] = {"type": "ephemeral"}
    return b


def assistant_a(r):
    if r.random() < 0.4:
        return r.choice(TEXTS)
    blocks = []
    if r.random() < 0.3:
        blocks.append({"type": "thinking", "thinking": pick(r, "let me see", "step\none", ""), "signature": "s"})
    if r.random() < 0.1:
        blocks.append({"type": "redacted_thinking", "data": "QUJD"})
    blocks += [text_block(r) for _ in range(r.randrange(3))]
    blocks += [{"type": "tool_use", "id": f"toolu_{i}", "name": f"tool_{i}", "input": r.choice(ARGS)} for i in range(r.randrange(3))]
    return blocks


def result(r, i):
    b = {"type": "tool_result", "tool_use_id": f"toolu_{i}"}
    c = pick(r, None, r.choice(TEXTS), [], [{"type": "text", "text": r.choice(TEXTS)} for _ in range(r.randrange(1, 3))])
    if c is not None:
        b["content"] = c
    if r.random() < 0.2:
        b["is_error"] = True
    return b


def user_a(r):
    if r.random() < 0.4:
        return r.choice(TEXTS)
    blocks = [result(r, i) for i in range(r.randrange(3))] + [text_block(r) for _ in range(r.randrange(3))]
    if r.random() < 0.2:
        r.shuffle(blocks)
    return blocks


def messages(r):
    b = {"model": "qwen3-tiny", "max_tokens": 9, "messages": []}
    for i in range(r.randrange(1, 7)):
        b["messages"].append({"role": "user", "content": user_a(r)} if i % 2 == 0 else {"role": "assistant", "content": assistant_a(r)})
        if r.random() < 0.06:
            b["messages"].append({"role": "system", "content": pick(r, "remember", [{"type": "text", "text": "be brief"}], "x-anthropic-billing-header: q", "")})
    if r.random() < 0.6:
        b["system"] = pick(r, r.choice(TEXTS), [text_block(r) for _ in range(r.randrange(4))])
    if r.random() < 0.5:
        b["tools"] = [tool_a(r, i) for i in range(r.randrange(1, 4))]
        if r.random() < 0.4:
            b["tool_choice"] = pick(r, {"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "tool_0"}, {"type": "none"}, {"type": "auto", "disable_parallel_tool_use": True})
    if r.random() < 0.2:
        b["thinking"] = pick(r, {"type": "adaptive"}, {"type": "disabled"}, {"type": "adaptive", "display": "omitted"})
    if r.random() < 0.15:
        b["output_config"] = pick(r, {"effort": "low"}, {"effort": None}, {"format": {"type": "json_schema", "schema": {"type": "object"}}}, {"effort": "max"})
    if r.random() < 0.15:
        b["chat_template_kwargs"] = pick(r, {"enable_thinking": False}, {"enable_thinking": True, "x": [1]}, {})
    if r.random() < 0.3:
        b.update({"temperature": 0.5, "metadata": {"user_id": "u"}, "stop_sequences": ["x"], "stream": False, "top_k": 3})
    return b


# ---- responses

def said(r):
    text = {"type": "output_text", "text": r.choice(TEXTS)}
    if r.random() < 0.4:
        text["annotations"] = []
    m = {"type": "message", "role": "assistant", "content": [text]}
    if r.random() < 0.5:
        m.update({"id": "msg_1", "status": "completed"})
    if r.random() < 0.1:
        m["content"].append({"type": "output_text", "text": "second", "annotations": []})
    return pick(r, m, m, {"role": "assistant", "content": r.choice(TEXTS)}, {"type": "message", "role": "assistant", "content": r.choice(TEXTS)})


def item(r):
    kind = r.random()
    if kind < 0.4:
        role = pick(r, "user", "user", "user", "system", "developer")
        content = pick(r, r.choice(TEXTS), [{"type": "input_text", "text": r.choice(TEXTS)} for _ in range(r.randrange(1, 4))])
        return {**pick(r, {}, {"type": "message"}), "role": role, "content": content}
    if kind < 0.6:
        return said(r)
    if kind < 0.72:
        return {"type": "function_call", "call_id": f"call_{r.randrange(3)}", "name": f"tool_{r.randrange(3)}", "arguments": json.dumps(r.choice(ARGS)),
                **pick(r, {}, {"id": "fc_1", "status": "completed"})}
    if kind < 0.84:
        return {"type": "function_call_output", "call_id": f"call_{r.randrange(3)}", "output": r.choice(TEXTS), **pick(r, {}, {"id": "fco_1"})}
    if kind < 0.95:
        return {"type": "reasoning", **pick(r, {"summary": [], "content": [{"type": "reasoning_text", "text": "thought"}]},
                                            {"summary": [{"type": "summary_text", "text": "in short"}]}, {"summary": [], "id": "rs_1"})}
    return pick(r, {"type": "item_reference", "id": "x"}, {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]})


def tool_r(r, i):
    t = {"type": "function", "name": f"tool_{i}", "parameters": r.choice(SCHEMAS), "strict": pick(r, True, False, None)}
    if r.random() < 0.7:
        t["description"] = r.choice(TEXTS[:6])
    if r.random() < 0.1:
        del t["strict"]
    return t


def responses(r):
    b = {"model": "qwen3-tiny", "input": pick(r, r.choice(TEXTS), *[[item(r) for _ in range(r.randrange(1, 8))] for _ in range(4)])}
    if r.random() < 0.5:
        b["instructions"] = pick(r, r.choice(TEXTS), None)
    if r.random() < 0.4:
        b["tools"] = [tool_r(r, i) for i in range(r.randrange(4))]
        if r.random() < 0.4:
            b["tool_choice"] = pick(r, "auto", "required", "none", {"type": "function", "name": "tool_0"})
    if r.random() < 0.2:
        b["reasoning"] = pick(r, {"effort": "low"}, {"effort": "none"}, {"effort": None}, {"summary": "auto"}, None)
    if r.random() < 0.15:
        b["chat_template_kwargs"] = pick(r, {"enable_thinking": False}, {"x": 1})
    if r.random() < 0.1:
        b["truncation"] = pick(r, "disabled", "auto")
    if r.random() < 0.3:
        b.update({"store": False, "temperature": 1, "max_output_tokens": 9, "include": [], "text": {"format": {"type": "text"}}, "parallel_tool_calls": True, "user": "u"})
    return b


HAND = {
    "messages": [{"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}, {"type": "text", "text": "go on"}]}]},
                 {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"b": 1, "a": {"z": 2}}}]},
                               {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]}]}],
                  "tools": [{"name": "f", "input_schema": {"properties": {}}}]},
                 {"messages": [{"role": "user", "content": []}, {"role": "assistant", "content": []}, {"role": "user", "content": "x"}]}],
    "responses": [{"input": [{"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]}, {"role": "assistant", "content": "a"},
                             {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{\"b\":1,\"a\":2}"}, {"type": "function_call_output", "call_id": "c", "output": "o"}]},
                  {"input": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]},
                  {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "not json"}]},
                  {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": ""}]}],
}


def main():
    kind, n = sys.argv[1], int(sys.argv[2])
    r = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    more = {"model": "qwen3-tiny", **({"max_tokens": 4} if kind == "messages" else {})}
    for b in HAND[kind]:
        print(json.dumps({**more, **b}))
    for _ in range(n):
        print(json.dumps((messages if kind == "messages" else responses)(r), ensure_ascii=r.random() < 0.5))


if __name__ == "__main__":
    main()
