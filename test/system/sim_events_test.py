"""The simulator's KV events: what is stored, removed and cleared, live and on replay."""
import time

import pytest
from client import call
from sim import Events, Fleet, words


def stored(batch):
    return [e for e in batch[1][1] if e["type"] == "BlockStored"]


def off_boundary(fleet):
    """a text whose prompt and answer end in the same block, and not at its edge: a resend stores nothing"""
    for n in range(60, 80):
        tokens = call(fleet.port(), "POST", "/tokenize", {"messages": [{"role": "user", "content": words(n)}]}).json
        if 1 < tokens["count"] % 16 < 8:
            return words(n)
    raise AssertionError("no such text")


def test_a_prompt_is_announced_once_as_maps(start):
    fleet = Fleet(start)
    text = off_boundary(fleet)
    with Events(fleet) as ev:
        n = fleet.chat(text).json["usage"]["prompt_tokens"]
        seq, (ts, events, rank) = ev.next()
        assert seq == 0 and rank == 0 and abs(ts - time.time()) < 5
        e = events[0]
        tokens = call(fleet.port(), "POST", "/tokenize", {"messages": [{"role": "user", "content": text}]}).json["tokens"]
        assert e["type"] == "BlockStored" and e["parent_block_hash"] is None and e["block_size"] == 16
        assert e["token_ids"] == tokens[: n // 16 * 16] and len(e["block_hashes"]) == n // 16
        assert e["extra_keys"] == [None] * (n // 16) and e["medium"] == "GPU" and e["group_idx"] == 0
        assert set(e) == {"type", "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name",
                          "extra_keys", "group_idx", "kv_cache_spec_kind"}
        fleet.chat(text)
        assert ev.next(0.3) is None           # nothing new, and an idle engine says nothing


def test_the_array_form_is_0_23s(start):
    fleet = Fleet(start, args=["--encoding", "array"])
    with Events(fleet) as ev:
        first, second = fleet.chat(words(60)), fleet.chat(words(60))
        seq, (_, events, rank) = ev.next()
        assert seq == 0 and rank == 0 and events[0][0] == "BlockStored" and len(events[0]) == 12
        end = ev.replay(0)[-1]
        assert end == [b"", b"\xff" * 8, b""]
    assert first.json["usage"]["prompt_tokens_details"] is None
    assert set(second.json["usage"]["prompt_tokens_details"]) == {"cached_tokens"}
    assert call(fleet.port(), "GET", "/kv_event_sources").status == 404
    assert call(fleet.port(), "GET", "/version").json == {"version": "0.23.0"}


def test_replay_repeats_what_was_live(start):
    fleet = Fleet(start)
    with Events(fleet) as ev:
        for i in range(5):
            fleet.chat(words(40, i))
        live = [ev.raw() for _ in range(5)]
        got = ev.replay(2)
        assert [f[1:] for f in got[:-1]] == live[2:]
        assert got[-1] == [b"", b"", b"\xff" * 8, b""]
        assert ev.replay(99) == [[b"", b"", b"\xff" * 8, b""]]


def test_replay_keeps_so_many_batches(start):
    fleet = Fleet(start, args=["--replay-steps", 3])
    with Events(fleet) as ev:
        for i in range(5):
            fleet.chat(words(40, i))
        assert [int.from_bytes(f[2], "big") for f in ev.replay(0)[:-1]] == [2, 3, 4]


def test_evictions_come_one_hash_an_event_before_the_store(start):
    fleet = Fleet(start, args=["--blocks", 31])
    with Events(fleet) as ev:
        for first in (100, 1000):
            call(fleet.port(), "POST", "/v1/completions", {"model": "m", "prompt": list(range(first, first + 300)), "max_tokens": 1})
        held = set(stored(ev.next())[0]["block_hashes"])
        events = ev.next()[1][1]
        kinds = [e["type"] for e in events]
        assert kinds[-1] == "BlockStored" and set(kinds[:-1]) == {"BlockRemoved"} and len(kinds) > 2
        assert all(len(e["block_hashes"]) == 1 and e["block_hashes"][0] in held for e in events[:-1])


def test_a_clear_is_told_with_the_next_step(start):
    fleet = Fleet(start)
    with Events(fleet) as ev:
        fleet.chat(words(60))
        ev.next()
        assert call(fleet.port(), "POST", "/reset_prefix_cache").json == {"success": True}
        assert ev.next(0.3) is None
        assert fleet.cached(words(60)) == 0
        assert [e["type"] for e in ev.next()[1][1]] == ["AllBlocksCleared", "BlockStored"]


def test_keys_beyond_tokens_are_on_the_wire(start):
    fleet = Fleet(start, args=["--lora", "a"])
    with Events(fleet) as ev:
        fleet.chat(words(30), model="a", cache_salt="s1")
        e = stored(ev.next())[0]
        assert e["extra_keys"][0] == ["a", "s1"] and e["extra_keys"][1] == ["a"] and e["lora_name"] == "a" and e["lora_id"] == 1


def test_hybrid_groups_store_sparsely(start):
    fleet = Fleet(start, args=["--groups", "window:512*2,full", "--block-size", 32])
    prompt = list(range(100, 869))
    with Events(fleet) as ev:
        body = {"model": "m", "prompt": prompt, "max_tokens": 1}
        assert call(fleet.port(), "POST", "/v1/completions", body).status == 200
        events = stored(ev.next())
        assert [(e["group_idx"], len(e["block_hashes"]), len(e["token_ids"])) for e in events] == [(0, 16, 768), (1, 16, 768), (2, 24, 768)]
        assert events[0]["kv_cache_spec_sliding_window"] == 512 and events[2]["kv_cache_spec_kind"] == "full_attention"
        assert events[0]["block_hashes"] == events[2]["block_hashes"][8:]
        again = call(fleet.port(), "POST", "/v1/completions", body).json["usage"]
        assert again["prompt_tokens_details"]["cached_tokens"] == 768


def test_report_mode_full_repeats_held_blocks(start):
    fleet = Fleet(start)
    with Events(fleet) as ev:
        fleet.chat(words(60))
        first = stored(ev.next())[0]
        fleet.chat(words(60), vllm_xargs={"kv_cache_report_mode": "full"})
        again = stored(ev.next())[0]
        assert again["parent_block_hash"] is None and again["block_hashes"] == first["block_hashes"][: len(again["block_hashes"])]


def test_wide_hashes_end_in_the_narrow_ones(start):
    narrow, wide = Fleet(start), Fleet(start, args=["--wide-hashes"])
    with Events(narrow) as a, Events(wide) as b:
        narrow.chat(words(60))
        wide.chat(words(60))
        n, w = stored(a.next())[0]["block_hashes"], stored(b.next())[0]["block_hashes"]
        assert all(len(x) == 32 for x in w) and [int.from_bytes(x[-8:], "big") for x in w] == n


def test_each_rank_has_its_own_endpoints(start):
    fleet = Fleet(start, ranks=2)
    with Events(fleet, rank=1) as ev:
        fleet.chat(words(60), headers=["X-data-parallel-rank: 1"])
        seq, (_, _, rank) = ev.next()
        assert seq == 0 and rank == 1


@pytest.mark.parametrize("spec,seen", [("event-lose", []), ("event-drop", []), ("event-twice", [0, 0, 1, 1, 2, 2]), ("event-swap", [1, 0, 3, 2])])
def test_events_go_wrong_on_demand(start, spec, seen):
    fleet = Fleet(start)
    with Events(fleet) as ev:
        fleet.fault(spec)
        for i in range(4 if spec == "event-swap" else 3):
            fleet.chat(words(40, i))
        got = []
        while (batch := ev.next(0.3)):
            got.append(batch[0])
        assert got == seen
        assert len(ev.replay(0)) - 1 == {"event-drop": 0, "event-twice": 6}.get(spec, len(set(seen)) or 3)


def test_replay_can_be_mute_and_events_late(start):
    fleet = Fleet(start)
    with Events(fleet) as ev:
        fleet.fault("mute-replay\nevent-delay=300")
        begun = time.monotonic()
        fleet.chat(words(40))
        assert ev.next()[0] == 0 and time.monotonic() - begun > 0.25
        assert ev.replay(0, 0.5) == []
        fleet.fault("clear")
        assert len(ev.replay(0)) == 2


def test_a_worker_can_lie_about_its_block_size(start):
    fleet = Fleet(start)
    with Events(fleet) as ev:
        fleet.fault("lie-block=64")
        fleet.chat(words(40))
        assert stored(ev.next())[0]["block_size"] == 64


def test_malformed_batches_use_up_a_number(start):
    fleet = Fleet(start)
    with Events(fleet) as ev:
        fleet.fault("event-noise")
        fleet.chat(words(40))
        assert int.from_bytes(ev.raw()[1], "big") == 0
        noise = ev.raw()
        assert int.from_bytes(noise[1], "big") == 1 and noise[2].startswith(b"\x93\xcb\xdd")


def test_a_restart_begins_at_zero_and_empty(start):
    fleet = Fleet(start, 2)
    with Events(fleet) as ev:
        fleet.chat(words(60))
        fleet.chat(words(60, 2))
        assert [ev.next()[0], ev.next()[0]] == [0, 1]
        fleet.fault("0:restart=0.1", i=1)
        time.sleep(1)
        assert fleet.cached(words(60)) == 0
        # libzmq drops the first messages behind a reconnect, from a real worker too: replay has them
        seen = None
        for i in range(10, 20):
            fleet.chat(words(60, i))
            seen = seen or ev.next(0.3)
        assert seen[0] < 5
        assert [int.from_bytes(f[-2], "big") for f in ev.replay(0)[:-1]] == list(range(11))
