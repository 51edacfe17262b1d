"""Rows of the shared cases that the tokenizer in this process touches: what was a worker's business there is the gateway's own here."""
import json
import threading
import time

import pytest

import client
from client import CHAT
from conftest import eventually
from gate_local_ids_test import MARKED, Worker, body, folder, ids_of, made, ready, words   # noqa: F401 (folder is a fixture)
from gateway import Gateway
from upstream import COMPLETION, Upstream, whole

PLAIN = {**COMPLETION, "usage": None}
TALK = [{"role": "user", "content": "Hello there, tell me more of it, " * 12}]
CHAT_TALK = {"model": "m", "messages": [{"role": "system", "content": "Be brief. " * 12}, *TALK]}
LOCAL = ["--tokens", "local", "--tokens-budget", "1m"]


def here(start, folder, *workers, args=()):   # noqa: F811
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "clean_up_tokenization_spaces": False}))
    for w in workers:
        w.version = "0.32.0"
    gw = Gateway(start, *workers, args=["--tokenizer", folder, *LOCAL, *args])
    ready(gw)
    return gw


@pytest.mark.parametrize("threads", [1, 2])
def test_case_smg_1693_health_answers_while_prompts_are_tokenised_here(start, folder, threads):   # noqa: F811
    """8 clients with prompts of 150 KB that nobody has seen; who asks for health in a row waits for none of them: were
    they done on the loop, all 8 in a turn, three or four answers would come in that time"""
    bodies = [json.dumps(body(words(150_000, i))).encode() for i in range(24)]
    with Upstream(lambda c: c.send(whole(PLAIN))) as up:
        gw = here(start, folder, up, args=["--threads", threads])

        def load(mine):
            with gw.client(seconds=60) as c:
                for b in mine:
                    assert c.request("POST", "/v1/chat/completions", b).response().status == 200
        clients = [threading.Thread(target=load, args=(bodies[i::8],)) for i in range(8)]
        for t in clients:
            t.start()
        n = 0
        with gw.client(seconds=60) as c:
            while any(t.is_alive() for t in clients):
                assert c.request("GET", "/health").response().status == 200
                n += 1
        assert made(gw, "local") == len(up.calls) == 24 and n >= 8, n
        assert gw.settled()


@pytest.mark.parametrize("how", ["close", "reset"])
def test_case_aibrix_2338_client_leaves_while_ids_are_made_here(start, folder, how):   # noqa: F811
    """the work on the thread pool outlives its request: no crash, nothing sent, the body's memory comes back"""
    with Upstream(lambda c: c.send(whole(PLAIN))) as up:
        gw = here(start, folder, up)
        for i in range(2):
            with gw.client() as c:
                c.request("POST", "/v1/chat/completions", body(words(1_000_000, i)))
                assert eventually(lambda: gw.metric('kvasir_requests_open{stage="ids"}') == 1, 10, 0.001)
                c.reset() if how == "reset" else c.sock.close()
        assert eventually(lambda: gw.metric("kvasir_requests_open") == 0 and gw.metric("kvasir_request_body_bytes") == 0, 30)
        assert eventually(lambda: gw.process.text.count(" outcome=client_left ") == 2 == gw.metric('kvasir_requests_total{path="chat_completions"'), 5)
        assert not up.calls and gw.settled()
        assert gw.chat().status == 200


def test_case_smg_1637_every_option_of_a_prompt_is_part_of_its_ids_here(start, folder):   # noqa: F811
    """one text, other options: other ids, whichever of them is remembered; the worker compares them and their length"""
    (folder / "chat_template.jinja").write_text("{% if tools %}{{ tools | length }} tools\n{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}: {{ m.content }}"
                                                "{% if not (loop.last and continue_final_message) %}<|im_end|>\n{% endif %}{% endfor %}"
                                                "{% if add_generation_prompt %}<|im_start|>assistant{% if thinking %}<think>{% endif %}{% endif %}")
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    more = [{}, {"add_generation_prompt": False}, {"add_generation_prompt": False, "continue_final_message": True}, {"chat_template_kwargs": {"thinking": True}}, {"tools": [tool], "tool_choice": "auto"},
            {"add_special_tokens": True}]
    with Worker(folder) as up:
        up.version = "0.32.0"
        gw = Gateway(start, up, args=["--tokenizer", folder, "--tokens-budget", "20s"])
        ready(gw)
        lengths = []
        for _ in range(2):
            for members in more:
                r = gw.chat({**body("the same text"), **members})
                assert r.status == 200
                lengths.append(r.json["usage"]["prompt_tokens"])
        assert lengths[:6] == lengths[6:] and len(set(lengths[:5])) >= 4, lengths
        assert made(gw, "local") == made(gw, "cache") == len(more)
        assert eventually(lambda: gw.metric('kvasir_token_ids_compared_total{result="same"}') == len(more), 20)
        assert gw.metric("kvasir_token_ids_compared_total") == len(more), "one differed"


def test_case_llmd_1861_one_conversation_has_one_key_in_every_api(start, folder):   # noqa: F811
    """warmed by chat, found by messages and responses; and a conversation that only begins alike shares its beginning only"""
    with Upstream(lambda c: c.send(whole({"id": "resp_1", "object": "response", "type": "message", "usage": None}))) as up:
        gw = here(start, folder, up)
        n = len(ids_of(folder, json.dumps(CHAT_TALK)))
        messages = {"model": "m", "max_tokens": 4, "system": CHAT_TALK["messages"][0]["content"], "messages": TALK}
        responses = {"model": "m", "instructions": CHAT_TALK["messages"][0]["content"], "input": TALK[0]["content"]}
        asked = [("/v1/chat/completions", CHAT_TALK), ("/v1/messages", messages), ("/v1/messages", {**messages, "messages": body("other")["messages"]}),
                 ("/v1/responses", responses), ("/v1/chat/completions", {**CHAT_TALK, "add_special_tokens": True})]      # the Responses API begins its prompt as a text
        overlaps = []
        for path, b in asked:
            line = gw.log(gw.call("POST", path, b).headers["x-request-id"])
            assert line["ids"] == "keys", (path, line)
            overlaps.append(int(line["overlap_tok"]))
        full = (n - 1) // 16 * 16
        assert overlaps[:2] == [0, full] and 0 < overlaps[2] < full and overlaps[3:] == [0, full], (overlaps, n)


BROKEN = ["{bad", "", "[]", "null", "7", '"x"', "\0", '{"model":"m","messages":' + "[" * 200 + "]" * 200 + "}", b'{"model":"m","prompt":"\xff","input":"\xff"}',
          '{"model":"m","messages":[{"role":"user","content":"\\ud800"}],"input":"\\ud800","prompt":"\\ud800"}']
WRONG = [{"messages": 7}, {"messages": None}, {"messages": []}, {"messages": [7]}, {"messages": [{}]}, {"messages": [{"role": 7, "content": 7}]}, {"messages": [{"role": "user"}]},
         {"messages": [{"role": "user", "content": [7]}]}, {"messages": [{"role": "user", "content": [{"type": 7}]}]}, {"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]},
         {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": 7}]}]}, {"messages": TALK, "system": 7}, {"messages": TALK, "system": [7]}, {"messages": TALK, "tools": 7},
         {"messages": TALK, "tools": [7]}, {"messages": TALK, "tools": [{"name": 7}]}, {"messages": TALK, "thinking": 7}, {"messages": TALK, "chat_template_kwargs": 7}, {"messages": TALK, "tool_choice": []},
         {"input": 7}, {"input": []}, {"input": [7]}, {"input": [{"type": "function_call_output", "output": 7}]}, {"input": [{"role": "user", "content": [{"type": "input_text", "text": 7}]}]},
         {"input": "x", "instructions": 7}, {"input": "x", "tools": [{"type": 7}]}, {"input": "x", "reasoning": 7}, {"prompt": 7}, {"prompt": [[7, "x"]]}, {"prompt": [-1]}, {"prompt": [1e300]}, {"prompt": "x\0y"},
         {"tokens": [-1]}, {"tokens": [[1]]}, {"tokens": {}}, {"tokens": [4294967296]}, {"prompt": "x", "add_special_tokens": 7}, {"messages": TALK, "add_generation_prompt": "x"}]
PATHS = ["/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/tokenize", "/detokenize", "/v1/messages/count_tokens"]


def test_case_production_stack_1017_malformed_bodies_of_every_api_that_is_read_here(start, folder):   # noqa: F811
    """what is no JSON object never leaves; what has wrong types is refused or shown to the worker as it is; never a 5xx, never a crash"""
    with Upstream(lambda c: c.send(whole({"detail": "no"}, 422))) as up:
        gw = here(start, folder, up)
        with gw.client(seconds=20) as c:
            for path in PATHS:
                for b in BROKEN:
                    r = c.request("POST", path, b).response()
                    assert r.status == 400 and r.json["error"]["type"] == "invalid_request_error", (path, b, r.content)
                assert not up.calls
                for b in [{"model": "m", **w} for w in WRONG]:
                    sent = len(up.calls)
                    r = c.request("POST", path, b).response()
                    assert r.status in (200, 400, 422), (path, b, r.content)
                    assert (r.status == 422) == (len(up.calls) == sent + 1) and (r.status != 422 or up.calls[-1].json == b), (path, b)
                up.calls.clear()
        assert gw.settled() and gw.process.running()
        assert gw.call("POST", "/tokenize", {"model": "m", "prompt": "x"}).status == 200


def test_case_llmd_2404_a_template_that_always_fails_does_not_flood_the_log(start, folder):   # noqa: F811
    (folder / "chat_template.jinja").write_text("{% for m in messages %}{% if 'q' in m.content %}{{ raise_exception('never with q') }}{% endif %}{{ m.content }}{% endfor %}")
    with Upstream(lambda c: c.send(whole(PLAIN))) as up:
        gw = here(start, folder, up)
        before = len([line for line in gw.process.text.splitlines() if "event=access" not in line])
        with gw.client() as c:
            for i in range(150):
                assert c.request("POST", "/v1/chat/completions", body(f"q{i}")).response().status == 200
        time.sleep(0.3)
        other = [line for line in gw.process.text.splitlines() if "event=access" not in line][before:]
        assert len(other) < 20, "\n".join(other[-20:])
        assert gw.metric("kvasir_token_ids_left_total") >= 150 and "never with q" not in gw.process.text


def test_case_dynamo_10774_smg_1565_memory_is_flat_while_prompts_are_tokenised_here(start, folder):   # noqa: F811
    """endless unique prompts: the text that is remembered and the ids that are remembered keep to their sizes, and so does the process"""
    (folder / "chat_template.jinja").write_text(MARKED)
    with Upstream(lambda c: c.send(whole(PLAIN))) as up:
        gw = here(start, folder, up, args=["--tokens-text", "1MiB", "--tokens-cache", "256KiB", "--receipts", "100"])

        def ask(n, seed):
            with gw.client() as c:
                for i in range(n):
                    assert c.request("POST", "/v1/chat/completions", body(words(1600, seed + i))).response().status == 200
        ask(250, 0)
        before = gw.rss()
        text = gw.metric("kvasir_tokens_text_memory_bytes")
        ask(350, 10_000)
        grown = gw.rss() - before
        assert made(gw, "local") >= 590 and text > 1 << 19, [line for line in client.call(gw.admin, "GET", "/metrics").content.decode().splitlines() if line.startswith("kvasir_token_ids_") and "bucket" not in line]
        assert gw.metric("kvasir_tokens_text_memory_bytes") <= 1.1 * (1 << 20)
        assert grown < 0.05 * before + (512 << 10), f"{grown >> 10} KiB over {before >> 10}"
        assert gw.settled()
