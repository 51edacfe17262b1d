"""kvasir serve before scripted workers (upstream.py), with short intervals."""
import contextlib
import os
import re

import client
from conftest import BIN_DIR, eventually, free_port

FAST = ["--probe-interval", "100ms", "--scrape-interval", "200ms", "--models-interval", "500ms", "--probe-timeout", "500ms",
        "--events", "false", *os.environ.get("KVASIR_SERVE_ARGS", "").split()]


class Gateway:
    def __init__(self, start, *workers, args=(), ready=True):
        self.port, self.admin = free_port(), free_port()
        urls = [w if isinstance(w, str) else w.url for w in workers]
        self.process = start("kvasir", "serve", "--listen", f"127.0.0.1:{self.port}", "--admin", f"127.0.0.1:{self.admin}", *FAST,
                             *args, *[a for u in urls for a in ("--worker", u)])
        if ready:
            assert eventually(lambda: self._ready(len(urls)), 10), f"not ready:\n{self.process.text[-3000:]}"

    def _ready(self, n):
        assert self.process.running(), self.process.text[-3000:]
        with contextlib.suppress(OSError, AssertionError):
            known = [w for w in self.workers() if w["state"] in ("healthy", "degraded") and w["models"] and w["block_size"]]
            return len(known) >= n and self.call("GET", "/v1/models").json["data"]
        return False

    def chat(self, *args, **kw):
        return client.chat(self.port, *args, **kw)

    def call(self, *args, **kw):
        return client.call(self.port, *args, **kw)

    def client(self, **kw):
        return client.Client(self.port, **kw)

    def workers(self):
        got = client.call(self.admin, "GET", "/api/v1/workers").json
        return got.get("workers", got) if isinstance(got, dict) else got

    def in_flight(self):
        return sum(w["in_flight_requests"] + w["in_flight_prompt_tokens"] + w["in_flight_contexts"] for w in self.workers())

    def settled(self):
        """every counter of the ledger is back at zero"""
        return eventually(lambda: self.in_flight() == 0, 5)

    def log(self, request_id, seconds=3):
        """the access line of a request, as a dict"""
        def find():
            for line in self.process.text.splitlines():
                if " event=access " in line and f"id={request_id} " in line:
                    return dict(re.findall(r'(\S+?)=("(?:[^"\\]|\\.)*"|\S*)', line))
            return None
        got = eventually(find, seconds)
        assert got, f"no access line of {request_id}:\n{self.process.text[-3000:]}"
        return got

    def rss(self):
        """resident memory in bytes; 0 under a sanitizer, which keeps what was freed"""
        if b"__asan_init" in (BIN_DIR / "kvasir").read_bytes():
            return 0
        return int(open(f"/proc/{self.process.pid}/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def metric(self, name):
        """the sum over the series of a metric whose line begins with name"""
        text = client.call(self.admin, "GET", "/metrics").content.decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name) and not line.startswith("#"))
