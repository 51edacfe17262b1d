"""Request bodies for the comparison with vLLM: hand-made ones around each rule, and random mixes of all of them."""
import json
import random

TEXTS = ["hi", "", "  padded \n", "héllo wörld", "日本語のテキスト", "🧑‍🚀 emoji 👩🏽‍💻", "a\nb\n\nc", "<|im_start|>user\nfake<|im_end|>", "<think>x</think>y",
         "<think>\nonly", "</think>\n\nrest", "{{ jinja }} {% if %}", "tab\there\r\nand crlf", "\u00a0nbsp\u3000", "quotes \" ' \\ /", "x" * 300, "1234567 3.14 -0",
         "def f(x):\n    return x + 1\n", "<tool_response>\nr\n</tool_response>", "<start_of_turn>user", "\u200bzero width", "ſ long s's 'S don'T"]
ARGUMENTS = ["{}", "", "{\"x\": 1}", "{\"x\": 1.0, \"y\": 1e3, \"z\": 1E-7, \"w\": 123456789012345678901234567890}", "{\"s\": \"é\\u00e9\\n\\\"q\\\"\", \"n\": null, \"b\": [true, false]}",
             "[1, 2]", "42", "\"text\"", "null", "{\"a\": {\"b\": {\"c\": [{}, [], \"\"]}}, \"a2\": -0, \"a3\": -0.0}", "{\"dup\": {\"k\": 1, \"k\": 2}}", " {\"sp\" : 1 } ",
             "{not json", "{\"a\": NaN}", "{\"k\": 1, \"k\": 2}", "{\"u\": \"\\ud83d\\ude00 <&>\"}"]
PARAMETERS = [None, {}, {"type": "object", "properties": {"x": {"type": "integer", "description": "Zahl für <b>", "enum": [1, 2.5, None, True, 1e20]}}, "required": ["x"]},
              {"$defs": {"é": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "additionalProperties": False}]


def tool(name="f", **function):
    return {"type": "function", "function": {"name": name, **function}}


def call(arguments, name="f", **extra):
    return {"id": "call_" + name, "type": "function", "function": {"name": name, "arguments": arguments}, **extra}


U = {"role": "user", "content": "question"}


def chat(*messages, **body):
    return {"model": "m", "messages": list(messages), **body}


def fixed():
    out = [chat({"role": "user", "content": t}) for t in TEXTS]
    out += [chat({"role": "system", "content": t}, U, {"role": "assistant", "content": t}, U) for t in TEXTS]
    out += [chat(U, {"role": "assistant", "content": None, "tool_calls": [call(a)]}, {"role": "tool", "tool_call_id": "call_f", "content": "r"}) for a in ARGUMENTS]
    out += [chat(U, tools=[tool(parameters=p, description=d)]) for p in PARAMETERS for d in (None, "d é \"q\"")]
    out += [
        chat(U, tools=[tool()]), chat(U, tools=[tool(), tool("g", strict=True)]), chat(U, tools=[tool(strict=None)]), chat(U, tools=[tool(foo=1)]), chat(U, tools=[{**tool(), "x": 1}]),
        chat(U, tools=[{"function": {"parameters": {}, "name": "late", "description": "first"}}]), chat(U, tools=[]), chat(U, tools=None), chat(U, tools=[{"type": "custom"}]),
        chat(U, tools=[tool()], tool_choice="none"), chat(U, tools=[tool()], tool_choice="auto"), chat(U, tools=[tool()], tool_choice={"type": "function", "function": {"name": "f"}}),
        chat({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), chat({"role": "user", "content": []}), chat({"role": "user"}),
        chat({"role": "user", "content": None}), chat({"role": "user", "content": 5}), chat({"role": "user", "content": [{"type": "text"}]}), chat({"content": "x"}), chat(),
        chat({"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}), chat({"role": "user", "content": ["plain", "strings"]}),
        chat({"role": "user", "content": [{"type": "refusal", "refusal": "r"}]}), chat({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}),
        chat({"role": "system", "content": [{"type": "text", "text": "s1"}, {"type": "text", "text": "s2"}]}, U),
        chat({"role": "system", "content": "x-anthropic-billing-header: cch=1\nreal"}, U), chat({"role": "system", "content": "x-anthropic-billing-header: cch=1"}, U),
        chat({"role": "system", "content": [{"type": "text", "text": "x-anthropic-billing-header: a"}, {"type": "text", "text": "t"}]}, U), chat({"role": "user", "content": "x-anthropic-billing-header: a\nb"}),
        chat({"role": "developer", "content": "d"}, U), chat({"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, U), chat(U, {"role": "developer", "content": "late"}),
        chat({"role": "developer", "content": [{"type": "text", "text": "p"}, {"type": "text", "text": "q"}]}, U, {"role": "system", "content": ""}), chat({"role": "developer", "content": "d", "tools": [tool()]}, U),
        chat(U, {"role": "system", "content": "late"}, {"role": "system", "content": "later"}), chat({"role": "tool", "content": "orphan", "tool_call_id": "x"}),
        chat(U, {"role": "assistant", "content": "a", "reasoning_content": "rc"}, U), chat(U, {"role": "assistant", "content": "a", "reasoning": "r", "reasoning_content": "rc"}),
        chat(U, {"role": "assistant", "content": "", "reasoning": "r", "tool_calls": [call("{\"a\": 1}")]}, {"role": "tool", "tool_call_id": "call_f", "content": [{"type": "text", "text": "p"}, {"type": "text", "text": "q"}]}),
        chat(U, {"role": "assistant", "content": "a", "tool_calls": []}, U), chat(U, {"role": "assistant", "content": "a", "tool_calls": None}, U), chat(U, {"role": "assistant", "tool_calls": [call("{}", index=0, extra={"z": 1})]}),
        chat(U, {"role": "assistant", "content": None}, U), chat(U, {"role": "assistant", "content": "x", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}),
        chat(U, {"role": "assistant", "content": "x", "tool_calls": [call({"a": 1})]}), chat(U, {"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}, "refusal": None, "audio": None}),
        chat({"role": "user", "content": "x", "name": "bob", "foo": 1, "reasoning": "no"}), chat({"role": "user", "content": "x", "name": None}), chat({"role": "custom", "content": "x"}), chat({"role": "user", "content": "x", "task": "t"}),
        chat(U, {"role": "tool", "content": "x", "name": "fn"}), chat(U, {"role": "tool", "content": "x", "tool_call_id": None}), chat(U, {"role": "function", "name": "f", "content": "x"}),
        chat(U, add_generation_prompt=False), chat(U, add_generation_prompt="false"), chat(U, add_generation_prompt=None), chat(U, continue_final_message=True), chat(U, continue_final_message=True, add_generation_prompt=True),
        chat(U, chat_template_kwargs={"enable_thinking": False}), chat(U, chat_template_kwargs={"enable_thinking": True, "nothing": [1, {"a": None}]}), chat(U, chat_template_kwargs={"enable_thinking": None}),
        chat(U, chat_template_kwargs={"tools": [tool()]}), chat(U, chat_template_kwargs={"add_generation_prompt": False}), chat(U, chat_template_kwargs={"bos_token": "<B>", "eos_token": "auto"}), chat(U, chat_template_kwargs={"range": 3, "dict": 1}),
        chat(U, chat_template_kwargs={"documents": [{"title": "a", "n": 1}]}), chat(U, documents=[{"title": "a", "text": "b"}]), chat(U, documents=[{"n": 1}]), chat(U, documents=[]), chat(U, chat_template_kwargs={"tokenize": True}),
        chat(U, reasoning_effort="none"), chat(U, reasoning_effort="low"), chat(U, reasoning_effort="high", chat_template_kwargs={"enable_thinking": False}), chat(U, reasoning_effort="auto"), chat(U, chat_template_kwargs={"reasoning_effort": "low"}),
        chat(U, add_special_tokens=True), chat(U, truncate_prompt_tokens=5), chat(U, chat_template="{{ messages }}"), chat(U, mm_processor_kwargs={}), chat(U, kv_transfer_params={"prompt_token_ids": [1, 2]}), chat(U, response_format={"type": "json_object"}),
    ]
    for text in TEXTS[:12]:
        out.append(chat(U, {"role": "assistant", "content": text}, continue_final_message=True, add_generation_prompt=False))
    out.append(chat(U, {"role": "assistant", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b  "}]}, continue_final_message=True, add_generation_prompt=False))
    out.append(chat({"role": "user", "content": "x CONTINUE_FINAL_MESSAGE_TAG y"}, {"role": "assistant", "content": "z"}, continue_final_message=True, add_generation_prompt=False))
    return out


def content(r):
    if r.random() < 0.7:
        return r.choice(TEXTS)
    return [{"type": "text", "text": r.choice(TEXTS)} for _ in range(r.randint(0, 3))]


def turn(r):
    k = r.random()
    if k < 0.35:
        return [{"role": "user", "content": content(r)}, {"role": "assistant", "content": content(r)}]
    if k < 0.5:
        return [{"role": "user", "content": content(r), "name": "n"}, {"role": "assistant", "content": content(r), "reasoning_content": r.choice(TEXTS)}]
    if k < 0.8:
        calls = [call(r.choice(ARGUMENTS[:12]), r.choice("fgh")) for _ in range(r.randint(1, 3))]
        return [{"role": "user", "content": content(r)}, {"role": "assistant", "content": r.choice([None, "", "text"]), "tool_calls": calls}] + [
            {"role": "tool", "tool_call_id": c["id"], "content": content(r)} for c in calls]
    return [{"role": r.choice(["user", "assistant", "system", "developer", "tool"]), "content": content(r)}]


def mixed(n, seed):
    r = random.Random(seed)
    out = []
    for _ in range(n):
        messages = [{"role": "system", "content": content(r)}] if r.random() < 0.5 else []
        for _ in range(r.randint(0, 4)):
            messages += turn(r)
        messages.append({"role": "user", "content": content(r)})
        body = chat(*messages)
        if r.random() < 0.4:
            body["tools"] = [tool(n, parameters=r.choice(PARAMETERS), description=r.choice([None, "d"])) for n in "fgh"[:r.randint(1, 3)]]
        if r.random() < 0.3:
            body["chat_template_kwargs"] = {"enable_thinking": r.random() < 0.5}
        if r.random() < 0.2:
            body["add_generation_prompt"] = False
        out.append(body)
    return out


COMPLETIONS = [{"prompt": t} for t in TEXTS] + [{"prompt": TEXTS[:4]}, {"prompt": [1, 2, 3]}, {"prompt": [[1, 2], [3]]}, {"prompt": []}, {"prompt": ["a", [1]]}, {"prompt": "a", "add_special_tokens": False},
               {"prompt": "a", "echo": True}, {"prompt": "a", "suffix": "b"}, {"prompt": "a", "truncate_prompt_tokens": 1}, {"prompt": None}, {}]


def jobs(n, seed):
    """(kind, text of the body) of everything."""
    out = [("chat", json.dumps(b, ensure_ascii=i % 2 == 0)) for i, b in enumerate(fixed() + mixed(n, seed))]
    return out + [("completions", json.dumps(b)) for b in COMPLETIONS]
