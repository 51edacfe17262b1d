"""kvasir-sim for tests: a fleet on free ports, its events as a subscriber gets them, its faults and counters."""
import json
import struct
import time

import msgpack
import zmq
from client import call, chat
from conftest import eventually, free_port


class Fleet:
    """`workers` simulated workers; .port(i), .url(i). args: further options of kvasir-sim"""

    def __init__(self, start, workers=1, args=(), profile="instant", model="m", ranks=1):
        self.workers, self.ranks = workers, ranks
        self.base = free_port(workers + 2 * workers * ranks)
        self.process = start("kvasir-sim", "--workers", workers, "--port", self.base, "--profile", profile, "--model", model,
                             "--data-parallel-size", ranks, *args)
        assert eventually(lambda: "\nready\n" in self.process.text or not self.process.running()), self.process.text
        assert self.process.running(), self.process.text

    def port(self, i=0):
        return self.base + i

    def url(self, i=0):
        return f"http://127.0.0.1:{self.port(i)}"

    def events_port(self, i=0, rank=0):
        return self.base + self.workers + i * self.ranks + rank

    def replay_port(self, i=0, rank=0):
        return self.base + self.workers + self.workers * self.ranks + i * self.ranks + rank

    def stats(self, i=0):
        return call(self.port(i), "GET", "/sim/stats").json

    def fault(self, spec, i=0):
        r = call(self.port(i), "POST", "/sim/fault", spec)
        assert r.status == 200, r.content
        return r

    def chat(self, text, i=0, headers=(), **members):
        body = {"model": "m", "messages": [{"role": "user", "content": text}], "max_tokens": 4, **members}
        return chat(self.port(i), body, headers)

    def cached(self, text, i=0, **members):
        return self.chat(text, i, **members).json["usage"]["prompt_tokens_details"]["cached_tokens"]


class Events:
    """a subscriber of one rank"""

    def __init__(self, fleet, i=0, rank=0):
        self.ctx = zmq.Context()
        self.sub = self.ctx.socket(zmq.SUB)
        self.sub.setsockopt(zmq.SUBSCRIBE, b"")
        self.sub.setsockopt(zmq.RECONNECT_IVL, 20)
        self.sub.connect(f"tcp://127.0.0.1:{fleet.events_port(i, rank)}")
        self.replay_endpoint = f"tcp://127.0.0.1:{fleet.replay_port(i, rank)}"
        time.sleep(0.3)       # a PUB socket drops what comes before it has heard of the subscription

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ctx.destroy(linger=0)

    def raw(self, seconds=2.0):
        """the frames of the next message, or None"""
        return self.sub.recv_multipart() if self.sub.poll(seconds * 1000) else None

    def next(self, seconds=2.0):
        """(sequence, [timestamp, events, rank]) of the next batch, or None"""
        frames = self.raw(seconds)
        return frames and (struct.unpack(">Q", frames[1])[0], msgpack.unpackb(frames[2], strict_map_key=False))

    def replay(self, first, seconds=2.0):
        """frames of every answer, the end marker included; stops after `seconds` of silence"""
        s = self.ctx.socket(zmq.DEALER)
        s.connect(self.replay_endpoint)
        s.send_multipart([b"", struct.pack(">Q", first)])
        got = []
        while s.poll(seconds * 1000):
            got.append(s.recv_multipart())
            if got[-1][-2 if got[-1][-1] == b"" else -1] == b"\xff" * 8:
                break
        s.close(0)
        return got


def words(n, seed=0):
    return " ".join(f"w{seed}x{i}" for i in range(n))


def events_of(response):
    """the JSON of each SSE event but [DONE]"""
    return [json.loads(e[6:]) for e in response.events if e.startswith("data: {")]
