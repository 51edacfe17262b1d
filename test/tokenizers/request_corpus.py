"""Request bodies that say themselves how their prompt is made: truncate_prompt_tokens, truncation_side, chat_template."""
import json
import random

import chat_corpus
import jinja_corpus

LONG = ["one two three four five six seven eight nine ten " * 3, "日本語のテキスト " * 9, "x" * 90, "<|im_start|>user\nfake<|im_end|>" * 5, "a\nb\n\nc 12345 🧑‍🚀 " * 6, "short", ""]
KEPT = [1, 2, 3, 5, 17, 40, 500]
SIDES = [None, "left", "right"]
LENGTHS = [2, 12, 33, 64, 400]
ODD = [{"truncate_prompt_tokens": v} for v in (0, -2, -1, 5.0, "5", True, [5], 1 << 70, None)] + [{"truncate_prompt_tokens": 5, "truncation_side": v} for v in ("middle", 1, "")] + [{"truncation_side": "left"}]
OWN = ["{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}",
       "{% for m in messages %}{% for p in m.content %}<{{ p.type }}>{{ p.text }}{% endfor %};{% endfor %}",
       "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}{{ eos_token }}{% endfor %}{{ tools | tojson if tools else '' }}",
       "{% for m in messages %}{% if m.role == 'developer' %}DEV {% endif %}{{ m['content'] }}|{% endfor %}",
       "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}{{ m.content }}{% endfor %}{{ ns.n }}",
       "{% if messages[0].role != 'system' %}{{ raise_exception('a system message first') }}{% endif %}{{ messages[-1].content }}{{ extra }}{{ enable_thinking }}",
       "no variable at all", "", " ", "{% for m in messages %}{{ m.content }}{% endfor", "{{ messages | nothing }}", "{{ unk_token }}{{ pad_token }}{{ image_token }}", "default", "tool_use",
       "{% generation %}{{ messages[0].content }}{% endgeneration %}", "{{ messages[0].content ~ '\\n' }}  {%- if true %}  x  {% endif -%}  y\n"]


def some(values):
    return {k: v for k, v in values.items() if v is not None}


def truncated(r):
    """(kind, body, max_model_len) of every form, most of them too long for what they ask for."""
    out = []
    for keep in KEPT + [-1] * 4:
        for side in SIDES:
            for special in (None, True, False):
                how = some({"truncate_prompt_tokens": keep, "truncation_side": side, "add_special_tokens": special})
                length = r.choice(LENGTHS) if keep < 0 else None
                new = some({"max_tokens": r.choice([None, 0, 1, 7]) if keep < 0 else None})
                text = r.choice(LONG)
                out.append(("completions", {"prompt": r.choice([text, [text, "b " * 9], list(range(30)), [[1, 2, 3], list(range(9))]]), **new, **how}, length))
                out.append(("chat", {"model": "m", "messages": [{"role": "system", "content": r.choice(LONG)}, {"role": "user", "content": text}], **new, **how}, length))
                if side is None or r.random() < 0.5:
                    out.append(("embeddings", {"model": "m", "input": r.choice([text, ["a b c d e f g", text], list(range(30))]), **how}, length))
                    out.append(("embeddings", {"model": "m", "messages": [{"role": "user", "content": text}], **how}, length))
    for length in LENGTHS * 3:
        out.append(("responses", {"model": "m", "input": r.choice(LONG), "truncation": r.choice(["auto", "auto", None, "disabled"]), **some({"max_output_tokens": r.choice([None, 1, 5])})}, length))
        out.append(("chat", {"model": "m", "messages": [{"role": "user", "content": r.choice(LONG)}], "truncate_prompt_tokens": -1, **some({"max_tokens": r.choice([None, 3]), "max_completion_tokens": r.choice([None, 0, 3])})}, length))
        out.append(("completions", {"prompt": "ab " * length * 300, "truncate_prompt_tokens": min(length, 9), "truncation_side": r.choice(SIDES[1:]), "max_tokens": 1}, length))
    for how in ODD:
        out += [("completions", {"prompt": LONG[0], **how}, 64), ("chat", {"model": "m", "messages": [{"role": "user", "content": LONG[0]}], **how}, 64)]
    return out


def own_templates(n, r):
    """Chats that bring their template."""
    out = []
    chats = chat_corpus.mixed(n, r.random()) + chat_corpus.fixed()[:60:2]
    for i, body in enumerate(chats):
        template = (OWN + list(jinja_corpus.TEMPLATES.values()))[i % (len(OWN) + len(jinja_corpus.TEMPLATES))]
        more = {"chat_template_kwargs": {**body.get("chat_template_kwargs", {}), "extra": i}} if r.random() < 0.3 else {}
        out.append(("chat", {**body, "chat_template": template, **more}, None))
    for template in OWN:
        out.append(("embeddings", {"model": "m", "messages": [{"role": "user", "content": "a b"}], "chat_template": template}, None))
        out.append(("chat", {"model": "m", "messages": [{"role": "user", "content": LONG[0]}], "chat_template": template, "truncate_prompt_tokens": 9}, None))
    return out


def jobs(n, seed):
    """(kind, text of the body, max_model_len)"""
    r = random.Random(seed)
    return [(kind, json.dumps(body), length) for kind, body, length in truncated(r) + own_templates(n, r)]
