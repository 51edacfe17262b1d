"""Blocks below the GPU: a gateway before simulated workers with a small cache and a CPU tier, and the simulator's own side of it."""
import time

import pytest
from client import call
from conftest import eventually
from gateway import Gateway
from sim import Events, Fleet, words

EVENTS = ["--events", "true"]
DECODE = {"do_remote_decode": True, "do_remote_prefill": False, "remote_engine_id": None, "remote_block_ids": None, "remote_host": None,
          "remote_port": None}


def receipts(g):
    return call(g.admin, "GET", "/api/v1/decisions?last=100").json["decisions"]


@pytest.mark.parametrize("form", [[], ["--self-describing-events", "--wide-hashes"]])
def test_predicted_is_reported_with_evictions_and_loads(start, form):
    """60 prompts in turn over a cache of two and a CPU tier of seven of them: what is loaded was foreseen each time"""
    fleet = Fleet(start, 1, ["--blocks", 130, "--cpu-blocks", 480, *form])
    g = Gateway(start, fleet.url(), args=EVENTS)
    assert eventually(lambda: g.workers()[0]["cache_view"] == "events", 5), g.workers()
    order = [(7 * i * i + i // 9) % 17 for i in range(60)]
    last = dict.fromkeys(range(17), 0)
    for n, i in enumerate(order):
        time.sleep(max(0, last[i] + 0.7 - time.monotonic()))      # what was in flight counts as held for half a second more
        r = g.chat({"model": "m", "messages": [{"role": "user", "content": words(500 + i, i)}], "max_tokens": 3})
        assert r.status == 200
        last[i] = time.monotonic()
        seq = fleet.stats()["ranks"][0]["events_seq"]
        assert eventually(lambda seq=seq: g.workers()[0]["ranks"][0]["events_seq"] == seq - 1, 10), (n, g.workers())
    w = g.workers()[0]
    stats = fleet.stats()
    assert stats["load_tok"] > 1000 and stats["cpu_blocks"] > 300 and stats["held_blocks"] <= 129, stats
    wrong = [(r["prompt_tokens"], r["cached_tokens_reported"], c["hit_tokens"], c["load_cpu_tokens"]) for r in receipts(g)
             for c in r["candidates"] if c["hit_tokens"] != r["cached_tokens_reported"]]
    assert w["predictions"] == 60 and w["predicted_exact_share"] == 1 and wrong == [], wrong
    assert w["ranks"][0]["index_lower_blocks"] == stats["cpu_blocks"]
    loads = [(c["load_cpu_tokens"], c["load_storage_tokens"]) for r in receipts(g) for c in r["candidates"]]
    most = [(r["prompt_tokens"], c["hit_tokens"], r["max_hit_tokens"]) for r in receipts(g) for c in r["candidates"]]
    assert any(hit == tok for tok, hit, _ in most) and all(hit <= limit for _, hit, limit in most), most      # a load may cover the last token
    assert any(cpu for cpu, _ in loads) and not any(storage for _, storage in loads)


def test_a_prefix_on_the_cpu_is_better_than_none_and_worse_than_one_on_the_gpu(start):
    """worker 0 has it on the CPU only; worker 1 gets it on its GPU later"""
    fleet = Fleet(start, 2, ["--blocks", 400, "--cpu-blocks", 3000], profile="llama-8b-h100")
    g = Gateway(start, fleet.url(0), fleet.url(1), args=EVENTS + ["--receipts", "100"])
    assert eventually(lambda: all(w["cache_view"] == "events" for w in g.workers()), 5), g.workers()
    text = words(2000)
    seen = fleet.chat(text, 0).json["usage"]["prompt_tokens"]
    for i in range(1, 3):
        fleet.chat(words(2000, i), 0)          # pushes it off the GPU
    assert eventually(lambda: all(w["ranks"][0]["index_lower_blocks"] > 2 * seen // 16 for w in g.workers() if w["url"].endswith(str(fleet.port(0)))), 5)

    def ask():
        r = g.chat({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 1})
        rid = r.headers["x-request-id"]
        got = next(d for d in receipts(g) if d["request_id"] == rid)
        return r, next(c for c in got["candidates"] if c["chosen"]), got

    r, chosen, got = ask()
    assert chosen["worker"] == fleet.url(0) and chosen["load_cpu_tokens"] > 2000 and got["reason"] == "sticky", got
    assert r.json["usage"]["prompt_tokens_details"]["cached_tokens"] == chosen["hit_tokens"], (r.json["usage"], got)
    for i in range(3, 5):
        fleet.chat(words(2000, i), 0)
    fleet.chat(text, 1)
    time.sleep(1)                              # until what was in flight has settled
    r, chosen, got = ask()
    assert chosen["worker"] == fleet.url(1) and chosen["load_cpu_tokens"] <= 16 and chosen["hit_tokens"] > 2000, got
    other = next(c for c in got["candidates"] if not c["chosen"])
    assert other["load_cpu_tokens"] > 2000 and other["ttft_ms"] > chosen["ttft_ms"], got


def test_the_tier_below_announces_hashes_alone(start):
    fleet = Fleet(start, args=["--cpu-blocks", 100])
    with Events(fleet) as ev:
        fleet.chat(words(100))
        _, (_, events, _) = ev.next()
        gpu = [e for e in events if e["medium"] == "GPU"]
        cpu = [e for e in events if e["medium"] == "CPU"]
        assert events == gpu + cpu and [e["block_hashes"][0] for e in cpu] == gpu[0]["block_hashes"]
        assert all(e["token_ids"] == [] and e["block_size"] == 0 and e["parent_block_hash"] is None and e["group_idx"] == 0 for e in cpu)


def test_nixl_fields(start):
    """a prefill says where its blocks are, in whole answers only; who is told so takes the prompt as computed"""
    fleet = Fleet(start, 2)
    p = fleet.chat(words(300), 0, max_tokens=1, kv_transfer_params=DECODE).json
    got, n = p["kv_transfer_params"], p["usage"]["prompt_tokens"]
    assert set(got) == {"do_remote_prefill", "do_remote_decode", "remote_block_ids", "remote_engine_id", "remote_request_id", "remote_host",
                        "remote_port", "tp_size", "remote_num_tokens"}
    assert got["do_remote_prefill"] is True and got["do_remote_decode"] is False and got["remote_num_tokens"] == n and got["tp_size"] == 1
    assert [len(g) for g in got["remote_block_ids"]] == [-(-n // 16)] and got["remote_request_id"] == p["id"]
    assert fleet.chat(words(300), 0).json["kv_transfer_params"] is None
    d = fleet.chat(words(300), 1, kv_transfer_params=got).json
    assert d["usage"]["prompt_tokens_details"]["cached_tokens"] == n and d["kv_transfer_params"] is None
    assert fleet.stats(1)["load_tok"] == n
    assert fleet.cached(words(300), 1) == (n - 1) // 16 * 16, "its blocks are stored"
    lost = {k: v for k, v in got.items() if k != "remote_engine_id"}
    assert fleet.cached(words(200, 9), 1, kv_transfer_params=lost) == 0, "nowhere to fetch from: computed here"
    assert b"kv_transfer_params" not in fleet.chat(words(300), 0, stream=True, kv_transfer_params=DECODE).content
