#!/usr/bin/env python3
"""What a real vLLM makes of request bodies, without a running engine: its own request classes, message parsing, template
choice and tokenizer, called directly. Run it with the Python of an environment that has vllm.

Reads lines of JSON {"dir": model folder, "kind": "chat" | "completions" |
"responses" | "messages" | "embeddings", "body": text of the body, "length": max_model_len or null} on standard input (or the file
named as argument), writes for each a line {"prompt": text or null, "ids": [...]} or {"error": text}. A body's own chat_template is trusted.
"""
import asyncio
import json
import os
import sys
from types import SimpleNamespace

from vllm.entrypoints.anthropic.protocol import AnthropicMessagesRequest
from vllm.entrypoints.anthropic.serving import AnthropicServingMessages
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.completion.protocol import CompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.entrypoints.openai.responses.utils import construct_input_messages, construct_tool_dicts
from vllm.entrypoints.pooling.embed.protocol import EmbeddingChatRequest, EmbeddingCompletionRequest
from vllm.renderers import hf, merge_kwargs
from vllm.renderers.online_renderer import OnlineRenderer
from vllm.renderers.chat_utils import parse_chat_messages
from vllm.tokenizers import get_tokenizer

TOKENIZERS = {}
LENGTH = 1 << 24  # max_model_len of the job at hand


def tokenizer_of(folder, runner="generate"):
    if (folder, runner) not in TOKENIZERS:
        TOKENIZERS[folder, runner] = get_tokenizer(folder, runner_type=runner)
    return TOKENIZERS[folder, runner]


def model_type(folder):
    path = os.path.join(folder, "config.json")
    return json.load(open(path, encoding="utf-8")).get("model_type", "llama") if os.path.exists(path) else "llama"


def model_config(folder):
    hf_config = SimpleNamespace(model_type=model_type(folder))
    return SimpleNamespace(model=folder, tokenizer=folder, tokenizer_revision=None, revision=None, code_revision=None, trust_remote_code=False,
                           hf_config=hf_config, multimodal_config=None, enable_prompt_embeds=False, allowed_local_media_path="",
                           allowed_media_domains=None, max_model_len=LENGTH, is_multimodal_model=False, encoder_config=None, pooler_config=None)


class Harmony(OnlineRenderer):
    """What a GPT-OSS worker renders with, without what only answers need."""

    def __init__(self, folder):
        self.model_config = model_config(folder)
        self.renderer = SimpleNamespace(tokenizer=None)
        self.parser = None
        self.use_harmony = True
        self.enable_auto_tools = self.exclude_tools_when_tool_choice_none = False
        self.supports_browsing = self.supports_code_interpreter = False
        self.chat_template, self.default_chat_template_kwargs, self.trust_request_chat_template = None, {}, False

    def create_error_response(self, message, *args, **kwargs):
        raise ValueError(str(message))

    def chat(self, request):
        _, (made,) = asyncio.run(self.render_chat(request))
        return {"prompt": None, "ids": made["prompt_token_ids"]}

    def responses(self, request):
        return {"prompt": None, "ids": asyncio.run(self.render_responses(request)).engine_input["prompt_token_ids"]}


def chat(folder, text):
    request = ChatCompletionRequest.model_validate_json(text)
    if model_type(folder) == "gpt_oss":
        return Harmony(folder).chat(request)
    return rendered(folder, request, request.messages, None if request.tools is None else [t.model_dump() for t in request.tools])


def responses(folder, text):
    request = ResponsesRequest.model_validate(json.loads(text))
    if request.previous_response_id:
        raise ValueError("not without a worker")
    if model_type(folder) == "gpt_oss":
        return Harmony(folder).responses(request)
    return rendered(folder, request, construct_input_messages(request_instructions=request.instructions, request_input=request.input),
                    construct_tool_dicts(request.tools, request.tool_choice))


def merges_inline_system(folder):
    config, tok = model_config(folder), tokenizer_of(folder)
    return any(AnthropicServingMessages._detect_merge_inline_system(hf.resolve_chat_template(tok, None, tools, model_config=config)) for tools in (None, []))


def messages(folder, text):
    request = AnthropicMessagesRequest.model_validate(json.loads(text))
    if request.thinking and request.thinking.type == "disabled":
        raise ValueError("not without a worker")
    made = AnthropicServingMessages.to_chat_completion_request(request, merge_inline_system=merges_inline_system(folder))
    if model_type(folder) == "gpt_oss":
        return Harmony(folder).chat(made)
    return rendered(folder, made, made.messages, None if made.tools is None else [t.model_dump() for t in made.tools])


def encoded(tok, params, prompt):
    """As the renderer's _tokenize_singleton_prompt."""
    if isinstance(prompt, str):
        text = params.apply_pre_tokenization(tok, {"prompt": prompt})["prompt"]
        prompt = list(tok(text, **params.get_encode_kwargs())["input_ids"])
    return params.apply_post_tokenization(tok, {"prompt_token_ids": prompt})["prompt_token_ids"]


def rendered(folder, request, messages, tools, runner="generate"):
    config, tok = model_config(folder), tokenizer_of(folder, runner)
    params = request.build_chat_params(None, "auto").with_defaults(merge_kwargs({}, dict(tools=tools, tokenize=False)))
    form = hf.resolve_chat_template_content_format(params.chat_template, params.chat_template_kwargs.get("tools"), "auto", tok, model_config=config)
    conversation, media, _ = parse_chat_messages(messages, config, form)
    if media is not None:
        raise ValueError("media")
    prompt = hf.safe_apply_chat_template(config, tok, conversation, **params.get_apply_chat_template_kwargs())
    return {"prompt": prompt, "ids": encoded(tok, request.build_tok_params(config), prompt)}


def completions(folder, text):
    request = CompletionRequest.model_validate_json(text)
    config, tok = model_config(folder), tokenizer_of(folder)
    prompts = request.prompt if isinstance(request.prompt, list) and request.prompt and not isinstance(request.prompt[0], int) else [request.prompt]
    params = request.build_tok_params(config)
    return {"prompt": None, "ids": [encoded(tok, params, p) for p in prompts]}


def embeddings(folder, text):
    body = json.loads(text)
    if "messages" in body:
        request = EmbeddingChatRequest.model_validate(body)
        return rendered(folder, request, request.messages, None, "pooling")
    request = EmbeddingCompletionRequest.model_validate(body)
    prompts = request.input if isinstance(request.input, list) and request.input and not isinstance(request.input[0], int) else [request.input]
    params = request.build_tok_params(model_config(folder))
    return {"prompt": None, "ids": [encoded(tokenizer_of(folder, "pooling"), params, p) for p in prompts]}


KINDS = {"chat": chat, "completions": completions, "responses": responses, "messages": messages, "embeddings": embeddings}


def main():
    global LENGTH
    source = open(sys.argv[1], encoding="utf-8") if len(sys.argv) > 1 else sys.stdin
    for line in source:
        job = json.loads(line)
        LENGTH = job.get("length") or 1 << 24
        try:
            answer = KINDS[job["kind"]](job["dir"], job["body"])
        except Exception as e:  # the worker answers 400 or 500: whatever it is, there is no prompt
            answer = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
