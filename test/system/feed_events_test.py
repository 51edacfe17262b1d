"""KV events as they come in the field: lost, repeated, hostile, too many; a worker that lies; a replay socket that is silent."""
import functools
import os
import random
import resource
import socket
import threading
import time

import msgpack
from conftest import eventually
from feed_worker import Worker, stored
from gateway import Gateway
from sim import Fleet, words

EVENTS = ["--events", "true"]
PROMPT = "x" * 320                    # the scripted worker's /tokenize: a token a byte


def only(g):
    workers = g.workers()
    assert len(workers) == 1
    return workers[0]


def rank(g):
    return only(g)["ranks"][0]


def seeing_events(start, url, *args):
    g = Gateway(start, url, args=[*EVENTS, *args])
    assert eventually(lambda: only(g)["cache_view"] == "events", 5), g.process.text[-2000:]
    return g


def connected(start, up, *args):
    g = seeing_events(start, up.url, *args)
    assert eventually(lambda: rank(g)["replays"] >= 1, 5), rank(g)
    up.heard()
    return g


def blocks(n, first=1, size=16):
    """a chain of n blocks in one event"""
    return stored(list(range(first, first + n)), [t % 50000 for t in range(n * size)], size)


def test_what_prompts_left_is_looked_for_in_the_events(start):
    """our key of a prompt's last whole block appears in the events of the worker that answered it; not so where the worker lies"""
    for args, counted, other in (((), "told", "not_told"), (("--fault", "lie-block=32"), "not_told", "told")):
        fleet = Fleet(start, 1, args)
        g = seeing_events(start, fleet.url())
        for i in range(6):
            assert g.chat({"model": "m", "messages": [{"role": "user", "content": words(80, i)}], "max_tokens": 2}).status == 200
            time.sleep(0.3 if i == 0 else 0)      # its events say what the block size is: what came before is looked for under no key
        assert eventually(lambda g=g, name=counted: g.metric(f"kvasir_worker_prompts_{name}_total") >= 5, 5), counted
        assert g.metric(f"kvasir_worker_prompts_{other}_total") == 0


def test_stored_and_removed(start):
    with Worker() as up:
        g = connected(start, up)
        up.publish([blocks(10)])
        assert eventually(lambda: only(g)["index_blocks"] == 10, 3), only(g)
        up.publish([{"type": "BlockRemoved", "block_hashes": [3], "medium": "GPU", "group_idx": 0}])
        assert eventually(lambda: only(g)["index_blocks"] == 9, 3)
        up.publish([{"type": "AllBlocksCleared"}])
        assert eventually(lambda: only(g)["index_blocks"] == 0, 3)
        assert only(g)["events_seq"] == 2 and only(g)["events_lag_ms"] < 5000


def test_clients_cannot_take_the_descriptors_of_events(start):
    """clients hold all connections they can get, then a worker comes up: its events are followed"""
    with Worker() as up:
        up.health = 503
        g = Gateway(functools.partial(start, before="ulimit -n 256"), up.url, args=EVENTS, ready=False)
        assert eventually(lambda: " event=admin " in g.process.text, 10)
        assert " event=connections_lowered from=20000 to=" in g.process.text and " descriptors=256 " in g.process.text
        held = [socket.create_connection(("127.0.0.1", g.port), timeout=10) for _ in range(300)]
        time.sleep(0.3)
        up.health = 200
        assert eventually(lambda: only(g)["cache_view"] == "events", 10), g.process.text[-2000:]
        for c in held:
            c.close()
        assert eventually(lambda: g._ready(1), 5)
        few = start("kvasir", "serve", "--worker", up.url, before="ulimit -n 64")
        assert few.wait() == 1 and "file descriptors" in few.text


def test_events_that_found_no_descriptor_are_opened_later(start):
    """a worker comes up when none is left: that is said, and tried again"""
    with Worker() as up:
        up.health = 503
        g = Gateway(start, up.url, args=EVENTS, ready=False)
        assert eventually(lambda: " event=worker_probe_refused " in g.process.text, 10)
        was = resource.prlimit(g.process.pid, resource.RLIMIT_NOFILE)
        open_now = max(int(f) for f in os.listdir(f"/proc/{g.process.pid}/fd"))
        resource.prlimit(g.process.pid, resource.RLIMIT_NOFILE, (open_now + 1, was[1]))
        up.health = 200
        assert eventually(lambda: " event=events_not_opened " in g.process.text, 20), g.process.text[-2000:]
        resource.prlimit(g.process.pid, resource.RLIMIT_NOFILE, was)
        assert eventually(lambda: only(g)["cache_view"] == "events", 20), g.process.text[-2000:]


def test_arrays_and_maps(start):
    with Worker() as up:
        g = connected(start, up)
        for n, tail in enumerate(([], [None], [None, None], [None, None, 0], [None, None, 0, "full_attention", None])):
            ids = [n * 1000 + t for t in range(16)]
            up.publish([["BlockStored", [100 + n], None, ids, 16, None, "GPU", *tail]])
        assert eventually(lambda: only(g)["index_blocks"] == 5, 3), only(g)


def test_what_is_unknown_is_skipped_and_counted(start):
    """a new kind of event, a new field of a known one: each costs itself only, and both are seen in the metrics"""
    with Worker() as up:
        g = connected(start, up)
        up.publish([{"type": "BlockPinned", "block_hashes": [1]}, stored([1], list(range(16)), 16, novelty={"a": [1]}, session_id="s")])
        assert eventually(lambda: only(g)["index_blocks"] == 1, 3), only(g)
        assert g.metric("kvasir_worker_event_skipped_total") == 1 and g.metric("kvasir_worker_event_odd_parts_total") == 1


def test_what_was_before_the_gateway_is_replayed(start):
    with Worker() as up:
        up.publish([blocks(20)], live=False)
        g = Gateway(start, up.url, args=EVENTS)
        assert eventually(lambda: only(g)["index_blocks"] == 20, 5), rank(g)
        assert not rank(g)["uncertain"]


def test_a_lost_batch_is_asked_for_again(start):
    with Worker() as up:
        g = connected(start, up)
        up.publish([blocks(4)])
        up.publish([blocks(4, 100)], live=False)
        up.publish([stored([500], list(range(7000, 7016)), 16)])
        assert eventually(lambda: only(g)["events_seq"] == 2 and not rank(g)["uncertain"], 5), rank(g)
        assert rank(g)["gaps"] >= 1 and rank(g)["replays"] >= 2
        assert only(g)["index_blocks"] == 5


def test_what_falls_between_the_replay_and_the_subscription_is_asked_for_again(start):
    """the publisher hears of a subscriber after the first replay was served; nothing published later shows the gap"""
    with Worker() as up:
        g = Gateway(start, up.url, args=EVENTS)
        assert eventually(lambda: rank(g)["replays"] == 1 and only(g)["cache_view"] == "events", 5), rank(g)
        up.publish([blocks(4)], live=False)
        assert eventually(lambda: only(g)["index_blocks"] == 4, 5), rank(g)
        assert not rank(g)["uncertain"]


def test_replay_silent(start):
    """a gap that cannot be mended: said, and what comes later is used"""
    with Worker() as up:
        g = connected(start, up)
        up.publish([blocks(4)])
        assert eventually(lambda: only(g)["index_blocks"] == 4, 3)
        up.silent_replay = True
        up.publish([blocks(4, 100)], live=False)
        up.publish([stored([500], list(range(7000, 7016)), 16)])
        assert eventually(lambda: rank(g)["uncertain"], 5), rank(g)
        assert eventually(lambda: only(g)["events_seq"] == 2, 5), "the live batch is not held back for ever"
        assert only(g)["cache_view"] == "uncertain" and g.metric("kvasir_worker_events_uncertain") == 1
        assert g.chat({"model": "m", "prompt": PROMPT}, path="/v1/completions").status == 200
        up.silent_replay = False
        up.publish([stored([501], list(range(8000, 8016)), 16)])
        assert eventually(lambda: only(g)["events_seq"] == 3, 3)


def test_no_replay_socket_at_all(start):
    with Worker(replay=False) as up:
        up.publish([blocks(4)], live=False)
        g = Gateway(start, up.url, args=EVENTS)
        assert eventually(lambda: rank(g).get("connected") and rank(g)["uncertain"], 5), rank(g)
        up.heard()
        up.publish([stored([500], list(range(7000, 7016)), 16)])
        assert eventually(lambda: only(g)["events_seq"] == 1, 3), rank(g)


def test_case_llmd_2853_restart_without_replay_and_a_lower_sequence(start):
    with Worker(replay=False) as up:
        g = connected_without_replay(start, up)
        for i in range(100):
            up.publish([stored([1000 + i], [i * 16 + t for t in range(16)], 16)])
        assert eventually(lambda: only(g)["index_blocks"] == 100, 5), only(g)
        up.restart()
        time.sleep(0.05)
        up.publish([stored([5], list(range(9000, 9016)), 16)])
        assert eventually(lambda: only(g)["index_blocks"] == 1, 5), "the old process's blocks are gone"


def connected_without_replay(start, up):
    g = Gateway(start, up.url, args=EVENTS)
    assert eventually(lambda: rank(g).get("connected"), 5), g.process.text[-2000:]
    up.heard()
    return g


def test_case_aibrix_2287_clear(start):
    with Worker() as up:
        g = connected(start, up)
        up.publish([blocks(50)])
        assert eventually(lambda: only(g)["index_blocks"] == 50, 3)
        up.publish([{"type": "AllBlocksCleared"}, stored([5], list(range(9000, 9016)), 16)])
        assert eventually(lambda: only(g)["index_blocks"] == 1, 3)


def test_a_sleeping_worker_holds_nothing(start):
    with Worker() as up:
        g = connected(start, up)
        up.publish([blocks(50)])
        assert eventually(lambda: only(g)["index_blocks"] == 50, 3)
        up.metrics += 'vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"} 0.0\nvllm:engine_sleep_state{engine="0",model_name="m",sleep_state="discard_all"} 1.0\n'
        assert eventually(lambda: only(g)["index_blocks"] == 0 and only(g)["asleep"], 3), only(g)
        time.sleep(0.6)               # the second look at a new connection asks the replay again
        assert only(g)["index_blocks"] == 0, rank(g)


def test_the_same_batch_twice_is_one(start):
    fleet = Fleet(start, 1, ["--fault", "event-twice"])
    g = Gateway(start, fleet.url(), args=EVENTS)
    body = {"model": "m", "messages": [{"role": "user", "content": words(300)}], "max_tokens": 2}
    for _ in range(3):
        assert g.chat(body).status == 200
        time.sleep(0.15)
    assert eventually(lambda: rank(g)["duplicates"] > 0, 3)
    assert eventually(lambda: only(g)["predicted_exact_share"] == 1, 3), only(g)


def exact_under(start, fault, *args):
    """a chat workload with a fault in the event stream: how many of 30 spaced requests were predicted exactly"""
    fleet = Fleet(start, 1, ["--blocks", 400, *args])
    g = Gateway(start, fleet.url(), args=EVENTS)
    assert eventually(lambda: only(g)["cache_view"] == "events", 5)
    if fault:
        fleet.fault(fault)
    rng = random.Random(3)
    for i in range(30):
        text = words(150, rng.randrange(5)) + f" q{i}"
        assert g.chat({"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 2}).status == 200
        time.sleep(0.06)
    fleet.fault("clear")
    assert g.settled()
    w = only(g)
    return g, w


def test_event_loss(start):
    g, w = exact_under(start, "event-lose=0.3")
    assert w["predicted_exact_share"] > 0.6, w
    assert rank(g)["gaps"] > 0 and rank(g)["replays"] > 1
    assert eventually(lambda: not rank(g)["uncertain"], 5)


def test_event_reordering(start):
    g, w = exact_under(start, "event-swap=0.3")
    assert w["predicted_exact_share"] > 0.5, w
    assert g.process.running()


def test_event_noise_between_good_batches(start):
    g, w = exact_under(start, "event-noise")
    assert w["predicted_exact_share"] > 0.8, w
    assert rank(g)["undecoded"] > 0 and "event=events_undecoded" in g.process.text


def test_a_worker_that_lies_about_its_block_size(start):
    """/metrics says 128, events are of 16: the events win"""
    with Worker(block_size=128) as up:
        g = connected(start, up)
        assert eventually(lambda: only(g)["block_size"] == 128, 3)
        up.publish([blocks(10)])
        assert eventually(lambda: only(g)["block_size"] == 16, 3), only(g)
    fleet = Fleet(start, 1, ["--fault", "lie-block=32"])
    g = Gateway(start, fleet.url(), args=EVENTS)
    for i in range(30):
        assert g.chat({"model": "m", "messages": [{"role": "user", "content": words(150, i % 3)}], "max_tokens": 2}).status == 200
        time.sleep(0.03)
    assert g.process.running() and g.settled()


HOSTILE = [
    b"", b"\xc1", b"\x93", b"\x93\xcb" + b"\0" * 8 + b"\xdd\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\x91" * 5000 + b"\xc0",
    b"\x93\xcb" + b"\0" * 8 + b"\x91\xdd\xff\xff\xff\xff", b"\x93\xcb\x7f\xf0" + b"\0" * 6 + b"\x90\x00", b"\x93\xcb\x7f\xf8" + b"\0" * 6 + b"\x90\x00", b"\x93\xcb\xff\xef" + b"\xff" * 6 + b"\x90\x00",
    b"\xc7\xff\x01" + b"\0" * 255, b"\x82\xa2ts\xcb" + b"\0" * 8,
]


def hostile_events():
    yield [{"type": "Unknown", "x": [1] * 100}]
    yield [{"type": "BlockStored"}]
    yield [{"type": "BlockStored", "block_hashes": [1] * 5, "parent_block_hash": None, "token_ids": [1, 2], "block_size": 16}]
    yield [{"type": "BlockStored", "block_hashes": [2 ** 64 - 1, -2 ** 63], "parent_block_hash": -1, "token_ids": [2 ** 32 - 1] * 32, "block_size": 16}]
    yield [stored([7], [1] * 16, 0)]
    yield [stored([7], [1] * 16, 2 ** 31)]
    yield [stored([7], [1] * 16, 16, group_idx=10 ** 6)]
    yield [stored([7], [1] * 16, 16, kv_cache_spec_kind="sliding_window", kv_cache_spec_sliding_window=-5)]
    yield [stored([7], [1] * 16, 16, extra_keys=[[["a"] * 1000]], lora_name="x" * 100000)]
    yield [stored(["text", None, 1.5, {}], ["a"] * 16, 16)]
    yield [{"type": "BlockRemoved", "block_hashes": list(range(5000)), "medium": "MOON", "group_idx": -1}]
    yield [["BlockStored"], ["BlockRemoved", 5], [], None, 7, "text", b"\x91\x91", [[]]]
    yield [{"type": "AllBlocksCleared", "x": {}}] * 1000


def test_hostile_msgpack_flood(start):
    """nonsense of every kind, ten thousand messages of it, while requests go on"""
    with Worker() as up:
        g = connected(start, up)
        rng = random.Random(1)
        good = up.batch([blocks(3)])
        failures = []

        def talk():
            for _ in range(40):
                if g.chat({"model": "m", "prompt": PROMPT}, path="/v1/completions").status != 200:
                    failures.append(1)
                time.sleep(0.02)

        talker = threading.Thread(target=talk)
        talker.start()
        for events in hostile_events():
            up.publish(events)
        for payload in HOSTILE:
            up.raw(payload)
        for i in range(10000):
            cut = bytearray(good[:rng.randrange(len(good))])
            for _ in range(rng.randrange(4)):
                if cut:
                    cut[rng.randrange(len(cut))] = rng.randrange(256)
            up.raw(bytes(cut), keep=i % 10 == 0, seq=rng.choice([up.seq, up.seq, rng.randrange(2 ** 64), 0]) if i % 50 == 0 else up.seq)
        up.pub.send_multipart([b"only one frame"])
        up.pub.send_multipart([b"", b"short", good])
        up.pub.send_multipart([b""] * 20)
        talker.join(30)
        assert not failures and g.process.running()
        up.restart()
        up.publish([blocks(10)])
        up.publish([stored([500], list(range(7000, 7016)), 16)])
        assert eventually(lambda: g.process.running() and rank(g)["queued_bytes"] == 0, 10), rank(g)
        assert g.settled()


def test_a_million_blocks_do_not_hold_up_requests(start):
    with Worker(blocks=1_200_000) as up:
        g = connected(start, up)
        assert eventually(lambda: only(g)["blocks"] == 1_200_000, 3)
        slow, over = [], threading.Event()

        def talk():
            while not over.is_set():
                at = time.monotonic()
                assert g.chat({"model": "m", "prompt": PROMPT}, path="/v1/completions").status == 200
                slow.append(time.monotonic() - at)
                time.sleep(0.01)

        talker = threading.Thread(target=talk)
        talker.start()
        try:
            per = 50_000
            for k in range(20):            # 20 batches of 50,000 blocks, one chain
                first = 1 + k * per
                up.raw(msgpack.packb([time.time(), [stored(list(range(first, first + per)), [5] * (per * 16), 16, parent=first - 1 if k else None)], 0]))
                time.sleep(0.05)
            assert eventually(lambda: only(g)["index_blocks"] == 1_000_000, 60, 0.2), rank(g)
        finally:
            over.set()
            talker.join(10)
        slow.sort()
        assert slow[len(slow) // 2] < 0.25, f"median {slow[len(slow) // 2]:.3f} s of {len(slow)}"
        assert rank(g)["dropped"] == 0 and g.settled()


def test_events_of_an_unreadable_sequence_do_not_stop_the_stream(start):
    with Worker() as up:
        g = connected(start, up)
        up.publish([blocks(4)])
        up.raw(b"\xc1garbage")              # this step's changes are lost for good: the replay gives the same garbage
        up.publish([stored([500], list(range(7000, 7016)), 16)])
        assert eventually(lambda: only(g)["events_seq"] == 2, 8), rank(g)
        assert only(g)["index_blocks"] == 5
