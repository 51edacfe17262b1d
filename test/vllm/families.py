"""One tiny random model per tokenizer family, served by a real vLLM with its render calls; our ids are held against
the worker's own (./dev test-vllm --families [FAMILY...]).

Of each family: texts to /tokenize and /v1/completions/render; chats to /tokenize and /v1/chat/completions/render; bodies of the messages and
the responses API to their render calls; bodies that say how they are to be cut, or bring a template. A body that we leave to the worker, or that it refuses, is counted. Then requests through
a gateway that has the tokenizer, some of them cut, some with a template: cached tokens predicted = reported. One worker at a time.

Tokenizers are those of ./dev test-tokenizers (--tokenizers DIR); run with the Python of the vLLM environment.
"""
import argparse
import collections
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

import drive
import fleet

sys.path.insert(0, str(Path(fleet.ROOT) / "test/tokenizers"))
import chat_corpus  # noqa: E402
import convert_corpus  # noqa: E402
import corpus  # noqa: E402
import request_corpus  # noqa: E402

SMALL = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 64, "hidden_act": "silu",
         "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True, "attention_bias": False, "torch_dtype": "bfloat16"}
DEEPSEEK = {"q_lora_rank": None, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "n_routed_experts": 4, "n_shared_experts": 1,
            "num_experts_per_tok": 2, "moe_intermediate_size": 128, "first_k_dense_replace": 2, "n_group": 1, "topk_group": 1, "moe_layer_freq": 1, "scoring_func": "sigmoid",
            "norm_topk_prob": True, "routed_scaling_factor": 1.0, "topk_method": "noaux_tc", "num_nextn_predict_layers": 0}
QWEN3_5 = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000000.0, "partial_rotary_factor": 0.25}, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 64,
           "linear_value_head_dim": 64, "linear_num_key_heads": 2, "linear_num_value_heads": 4, "layer_types": ["linear_attention", "full_attention"], "tie_word_embeddings": False}
GPT_OSS = {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 128, "layer_types": ["sliding_attention", "full_attention"], "attention_bias": True,
           "swiglu_limit": 7.0, "tie_word_embeddings": False}
MISTRAL = ["--tokenizer-mode", "mistral", "--config-format", "hf"]
FAMILIES = {
    # tokenizer: (architecture, model type, what its config has besides, worker flags)
    "qwen3": ("Qwen3ForCausalLM", "qwen3", {}, []),
    "qwen2_5": ("Qwen2ForCausalLM", "qwen2", {}, []),
    "llama3_1": ("LlamaForCausalLM", "llama", {}, []),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "deepseek_v3", DEEPSEEK, []),
    "gemma3": ("Gemma3ForCausalLM", "gemma3_text", {"hidden_activation": "gelu_pytorch_tanh", "query_pre_attn_scalar": 64, "rope_local_base_freq": 10000.0, "sliding_window": 512,
                                                     "layer_types": ["sliding_attention", "full_attention"]}, ["--no-disable-hybrid-kv-cache-manager"]),
    "deepseek_v4": ("LlamaForCausalLM", "llama", {}, []),     # its tokenizer; the model itself does not run on a CPU
    "llama2": ("LlamaForCausalLM", "llama", {}, []),
    "llama3": ("LlamaForCausalLM", "llama", {}, []),
    "gptoss": ("GptOssForCausalLM", "gpt_oss", GPT_OSS, ["--tool-call-parser", "openai"]),
    "qwen3_6": ("Qwen3_5ForCausalLM", "qwen3_5_text", QWEN3_5, []),
    "tekken_240911": ("MistralForCausalLM", "mistral", {}, MISTRAL),
}
# What /tokenize understands of a chat; of other bodies it would ignore members that change the prompt.
TOKENIZE_MEMBERS = {"model", "messages", "tools", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"}


def vocabulary(folder):
    """Highest id + 1 or more, as a model's table of embeddings has it."""
    if (folder / "tekken.json").exists():
        return json.loads((folder / "tekken.json").read_text())["config"]["default_vocab_size"]
    data = json.loads((folder / "tokenizer.json").read_text())
    most = max([*data["model"]["vocab"].values(), *(t["id"] for t in data["added_tokens"])])
    return (most // 128 + 1) * 128


def model_folder(tokenizer, place, family):
    architecture, kind, more, _ = FAMILIES[family]
    place.mkdir()
    for file in tokenizer.iterdir():
        if file.name != "config.json":
            (place / file.name).symlink_to(file)
    config = {"architectures": [architecture], "model_type": kind, "vocab_size": vocabulary(tokenizer), "bos_token_id": 1, "eos_token_id": 2, **SMALL, **more}
    (place / "config.json").write_text(json.dumps(config))


# ---- both sides

class Theirs:
    def __init__(self, url):
        self.http = httpx.Client(base_url=url, timeout=120)

    def post(self, path, body):
        return self.http.post(path, content=body.encode(), headers={"content-type": "application/json"})

    def ids(self, path, body):
        """ids, or None when the worker refuses it"""
        try:
            r = self.post(path, body)
        except httpx.TransportError:  # it closes the connection on which an error of its own went out
            r = self.post(path, body)
        if r.status_code != 200:
            return None
        answer = r.json()
        if isinstance(answer, list):
            return [a["token_ids"] for a in answer]
        return answer.get("token_ids", answer.get("tokens"))


def ours(folder, form, lines):
    run = subprocess.run([f"{fleet.BIN}/kvasir", "tokenize", "--model-dir", folder, form, "--max-model-len", "8192", "--lines", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    return answers or [{"error": "no template"}] * len(lines)


def hold(count, shown, path, body, mine, theirs):
    if isinstance(mine, dict):
        count["left to it" if theirs is not None else "refused by both"] += 1
    elif theirs is None:
        count["refused by it alone"] += 1
    elif mine == theirs or [mine] == theirs:
        count["equal"] += 1
    else:
        count["DIFFERENT"] += 1
        if len(shown) < 3:
            shown.append(f"        {path} {body[:300]}\n          worker {str(theirs)[:200]}\n          ours   {str(mine)[:200]}")


def compare(name, folder, form, lines, worker, paths, known=True):
    """each line's ids against those of every path that takes it. True: no difference, and where they are known, some were equal"""
    answers, ok = ours(folder, form, [json.dumps(line) for line in lines]), True
    for path, body_of in paths:
        count, shown = collections.Counter(), []
        for line, mine in zip(lines, answers):
            body = body_of(line)
            if body is not None:
                hold(count, shown, path, body, mine, worker.ids(path, body))
        good = not count["DIFFERENT"] and (count["equal"] > 0 or not known)
        ok &= drive.say(good, f"{name} {path}: {', '.join(f'{n} {what}' for what, n in count.most_common())}")
        print("\n".join(shown), end="\n" if shown else "", flush=True)
    return ok


def plain_chat(line):
    """The chat as /tokenize is to be asked about it: reasoning under its new name too, for it does not know the old one."""
    body = json.loads(line)
    if not set(body) <= TOKENIZE_MEMBERS:
        return None
    for m in body["messages"]:
        if m.get("reasoning_content") is not None and m.get("reasoning") is None:
            m["reasoning"] = m["reasoning_content"]
    return json.dumps(body)


def converted(kind, n, seed):
    r = random.Random(seed)
    more = {"max_tokens": 4} if kind == "messages" else {}
    make = convert_corpus.messages if kind == "messages" else convert_corpus.responses
    return [json.dumps({**more, **b, "model": "m"}) for b in convert_corpus.HAND[kind] + [make(r) for _ in range(n)]]


def added_tokens(tokenizer):
    if not (tokenizer / "tokenizer.json").exists():
        return ["[INST]", "<s>"]
    return [t["content"] for t in json.loads((tokenizer / "tokenizer.json").read_text())["added_tokens"]]


def has_template(tokenizer):
    config = tokenizer / "tokenizer_config.json"
    return config.exists() and "chat_template" in config.read_text("utf-8")


def all_ids(a, tokenizer, folder, worker):
    texts = [t for t in corpus.corpus(a.seed, a.texts, added_tokens(tokenizer), ["a", " the", "ing"], []) if len(t) < 2000]
    ok = compare("texts", folder, "--text", texts, worker, [("/tokenize", lambda t: json.dumps({"model": "m", "prompt": t})),
                                                            ("/v1/completions/render", lambda t: json.dumps({"model": "m", "prompt": t}))])
    known = has_template(tokenizer)
    chats = [body for kind, body in chat_corpus.jobs(a.chats, a.seed) if kind == "chat"]
    asked = [("/v1/chat/completions/render", lambda b: b)]
    if tokenizer.name != "gptoss":  # the ids of its /tokenize are not the engine's, which are harmony's
        asked.append(("/tokenize", plain_chat))
    ok &= compare("chats", folder, "--chat", chats, worker, asked, known)
    for kind in ("messages", "responses"):
        ok &= compare(kind, folder, "--" + kind, converted(kind, a.chats, a.seed), worker, [(f"/v1/{kind}/render", lambda b: b)], known)
    for kind, path in (("chat", "chat/completions"), ("completions", "completions"), ("responses", "responses")):
        bodies = [json.dumps({**json.loads(b), "model": "m"}) for k, b, _ in request_corpus.jobs(a.chats, a.seed) if k == kind]
        ok &= compare(f"{kind}, cut or with a template", folder, "--" + kind, bodies, worker, [(f"/v1/{path}/render", lambda b: b)], known or kind == "completions")
    return ok


class Plain(drive.Traffic):
    """For a model without a template: no chats."""

    def next(self, busy=()):
        prompt = self.rng.choice(self.docs)[: self.rng.randrange(200, 3000)] + drive.text(self.rng, self.rng.randrange(3))
        return "completions", {"prompt": prompt, "max_tokens": 4}, None


class Own(drive.Traffic):
    """Chats that bring their template; each may come again."""

    TEMPLATES = request_corpus.OWN[:2] + request_corpus.OWN[4:5]

    def how(self):
        return {"chat_template": self.rng.choice(self.TEMPLATES)}

    def next(self, busy=()):
        messages = [{"role": "system", "content": self.rng.choice(self.docs)}, {"role": "user", "content": drive.text(self.rng, self.rng.randrange(2, 9)) if self.rng.random() < 0.7 else "again"}]
        return "chat", {"messages": messages, "max_tokens": 4, "extra_body": self.how()}, None


class Cut(Own):
    """Prompts that are cut, at their end (and so begin alike) or at their beginning."""

    def how(self):
        return {"truncate_prompt_tokens": self.rng.choice([300, 777, 1500]), **self.rng.choice([{"truncation_side": "right"}, {"truncation_side": "left"}, {}])}

    def next(self, busy=()):
        if self.rng.random() < 0.6:
            return super().next(busy)
        return "completions", {"prompt": self.rng.choice(self.docs), "max_tokens": 4, "extra_body": self.how()}, None


def cached(a, folder, worker, logs, traffic, n_requests):
    """Requests through a gateway that has the tokenizer: predicted = reported."""
    gateway = fleet.Gateway([worker.url], logs, ["--tokenizer", folder, "--probe-interval", "500ms", "--tokens-budget", "5s"])
    try:
        fleet.wait_for("Kvasir", lambda: len(gateway.healthy()) == 1, 60)
        misses, run = [], drive.Run(gateway, "m")
        exact, n, _, _, hits = drive.exactness(run, traffic(7, True), n_requests, 1, misses)
        for m in misses[:5]:
            print("        miss %s: prompt %d predicted %d reported %d ids=%s worker=%s" % m, flush=True)
        return drive.say(exact >= 0.99 * n, f"{traffic.__name__}: ids made here: predicted = reported cached tokens on {exact} of {n}, {sum(hits.values())} of them with some")
    finally:
        gateway.stop()


def family(a, name, logs):
    tokenizer = a.tokenizers / name
    folder = Path(a.work.name) / name
    model_folder(tokenizer, folder, name)
    print(f"== {name}: {FAMILIES[name][0]}", flush=True)
    flags = ["--block-size", "16" if name == "deepseek_v3" else "32", "--num-gpu-blocks-override", "2000", "--enable-scale-out",
             "--trust-request-chat-template", "--enable-auto-tool-choice", "--tool-call-parser", "hermes", *FAMILIES[name][3]]
    worker = fleet.Worker(a.dir, str(folder), name, flags, logs, "m")
    began = time.time()
    try:
        worker.start()
        fleet.wait_for(f"vLLM (log {worker.log})", worker.ready, 900)
        ok = all_ids(a, tokenizer, str(folder), Theirs(worker.url))
        known = has_template(tokenizer)
        ok &= cached(a, str(folder), worker, logs, drive.Traffic if known else Plain, a.requests)
        for traffic in (Own, Cut) if known and name != "gptoss" else ():
            ok &= cached(a, str(folder), worker, logs, traffic, a.requests // 5)
    except SystemExit as e:  # this one does not run here: the others may
        if not isinstance(e.code, str):
            raise
        ok = drive.say(False, str(e))
    finally:
        worker.kill()
    print(f"   {time.time() - began:.0f} s", flush=True)
    return ok


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", required=True)
    p.add_argument("--tokenizers", type=Path, required=True)
    p.add_argument("--texts", type=int, default=500, help="of each family (default 500)")
    p.add_argument("--chats", type=int, default=200, help="by chance, of each API and family, besides those made by hand (default 200)")
    p.add_argument("--requests", type=int, default=150, help="through the gateway (default 150)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("families", nargs="*")
    a = p.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))     # so that workers are ended whatever ends us
    logs, a.work = fleet.log_folder(), tempfile.TemporaryDirectory()
    print(f"   logs in {logs}", flush=True)
    names = a.families or [f for f in FAMILIES if (a.tokenizers / f).is_dir()]
    results = [family(a, name, logs) for name in names]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
