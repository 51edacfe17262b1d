#!/usr/bin/env python3
"""Writes test/tokenizers/golden/jinja.jsonl: what the real library makes of the templates of jinja_corpus.py.

Run it with the Python of an environment that has transformers, jinja2 and (for the content formats) vllm. Time is fixed:
Sunday, 1 March 2026, 12:34:56. First line: the variables. Each other line: {"source", "runs": [[index of variables, output or
null when it raises], …], "refused": true where we may say "unsupported"} or {"source", "openai": bool}.
"""
import json
import sys
from datetime import datetime
from pathlib import Path

from transformers.utils import chat_template_utils

sys.path.insert(0, str(Path(__file__).resolve().parent))
import jinja_corpus as corpus  # noqa: E402

NOW = datetime(2026, 3, 1, 12, 34, 56)


def render(source, variables):
    try:
        template = chat_template_utils._compile_jinja_template(source)
        template.environment.globals["strftime_now"] = NOW.strftime
        return template.render(**variables)
    except Exception:
        return None


def openai(source):
    from vllm.renderers import hf
    return hf._detect_content_format(source, default="string") == "openai"


def main():
    variables = corpus.variables()
    lines = [{"vars": variables}]
    lines += [{"source": s, "runs": [[0, render(s, variables[0])]]} for s in corpus.SNIPPETS]
    lines += [{"source": s, "runs": [[0, render(s, variables[0])]], "refused": True} for s in corpus.REFUSED]
    lines += [{"source": s, "runs": [[i, render(s, v)] for i, v in enumerate(variables)], "openai": openai(s)} for s in corpus.TEMPLATES.values()]
    lines += [{"source": s, "runs": [], "openai": openai(s)} for s in corpus.FORMATS]
    out = Path(__file__).resolve().parent / "golden" / "jinja.jsonl"
    out.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines), encoding="utf-8")
    print(f"{out}: {len(lines)} lines, {sum(len(x.get('runs', [])) for x in lines)} renderings, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
