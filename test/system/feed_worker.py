"""A scripted worker for tests of edge/feed: HTTP answers and KV events that no real worker would give.

    with Worker(models=[...], sources=True) as w:
        w.publish([stored([1, 2], ids, 16)])
"""
import http.server
import json
import struct
import threading
import time

import msgpack
import zmq
from conftest import free_port

METRICS = """vllm:num_requests_running{{engine="0",model_name="m"}} 0.0
vllm:num_requests_waiting{{engine="0",model_name="m"}} 0.0
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.0
vllm:cache_config_info{{block_size="{block_size}",num_gpu_blocks="{blocks}",enable_prefix_caching="True",engine="0"}} 1.0
"""


def card(name, parent=None, max_model_len=32768):
    return {"id": name, "object": "model", "created": 1, "owned_by": "vllm", "root": name, "parent": parent, "max_model_len": max_model_len}


def stored(hashes, ids, block_size, parent=None, **more):
    return {"type": "BlockStored", "block_hashes": hashes, "parent_block_hash": parent, "token_ids": ids, "block_size": block_size,
            "lora_id": None, "lora_name": None, "medium": "GPU", "group_idx": 0, "kv_cache_spec_kind": "full_attention", **more}


class Worker:
    def __init__(self, models=("m",), sources=True, block_size=16, blocks=1000, key=None, events_port=0, replay=True, source_host="*", extra_metrics=""):
        self.cards = [card(m) if isinstance(m, str) else m for m in models]
        self.metrics = METRICS.format(block_size=block_size, blocks=blocks) + extra_metrics
        self.key, self.health, self.asked = key, 200, {}
        self.failing = {}                    # path -> how many answers more are 500
        self.events_port = events_port or free_port(2)
        self.sources = {"0": {"endpoint": f"tcp://{source_host}:{self.events_port}", "replay_endpoint": f"tcp://*:{self.events_port + 1}" if replay else None}} if sources else None
        self.seq, self.sent, self.silent_replay, self.over = 0, {}, not replay, False
        self.ctx = zmq.Context()
        self.pub = self.ctx.socket(zmq.XPUB)    # a PUB that tells who listens: heard()
        self.pub.setsockopt(zmq.XPUB_VERBOSE, 1)
        self.pub.setsockopt(zmq.SNDHWM, 0)
        self.pub.bind(f"tcp://127.0.0.1:{self.events_port}")
        self.replayer = threading.Thread(target=self._replay, daemon=True)
        self.replayer.start()
        worker = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, body, kind="application/json"):
                body = body if isinstance(body, bytes) else body.encode()
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                worker.asked[self.path] = worker.asked.get(self.path, 0) + 1
                if worker.failing.get(self.path, 0) > 0:
                    worker.failing[self.path] -= 1
                    return self.reply(500, "")
                if self.path == "/health":
                    return self.reply(worker.health, "")
                if self.path == "/metrics":
                    return self.reply(200, worker.metrics, "text/plain")
                if self.path == "/kv_event_sources":
                    return self.reply(200, json.dumps(worker.sources)) if worker.sources is not None else self.reply(404, '{"detail":"Not Found"}')
                if self.path == "/v1/models":
                    if worker.key and self.headers.get("authorization") != f"Bearer {worker.key}":
                        return self.reply(401, '{"error":"Unauthorized"}')
                    return self.reply(200, json.dumps({"object": "list", "data": worker.cards}))
                return self.reply(404, '{"detail":"Not Found"}')

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                if self.path == "/tokenize":
                    ids = list(json.loads(body).get("prompt", "x").encode() or b"x")
                    return self.reply(200, json.dumps({"count": len(ids), "max_model_len": 32768, "tokens": ids}))
                usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11, "prompt_tokens_details": {"cached_tokens": 0}}
                return self.reply(200, json.dumps({"id": "x", "object": "text_completion", "created": 1, "model": "m", "choices": [{"index": 0, "text": "x", "finish_reason": "stop"}], "usage": usage}))

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def _replay(self):
        router = self.ctx.socket(zmq.ROUTER)
        router.bind(f"tcp://127.0.0.1:{self.events_port + 1}")
        while not self.over:
            if not router.poll(50):
                continue
            who, _, start = router.recv_multipart()
            if self.silent_replay:
                continue
            for seq, payload in sorted(self.sent.copy().items()):
                if seq >= struct.unpack(">Q", start)[0]:
                    router.send_multipart([who, b"", b"", struct.pack(">Q", seq), payload])
            router.send_multipart([who, b"", b"", b"\xff" * 8, b""])
        router.close(0)

    def batch(self, events):
        return msgpack.packb([time.time(), events, 0])

    def raw(self, payload, seq=None, keep=True, live=True):
        seq = self.seq if seq is None else seq
        self.seq = (seq + 1) % 2 ** 64
        if keep:
            self.sent[seq] = payload
        if live:
            self.pub.send_multipart([b"", struct.pack(">Q", seq), payload])

    def heard(self, seconds=10):
        """one more subscription has arrived: what is published from now on is not dropped"""
        end = time.monotonic() + seconds
        while self.pub.poll(max(0, 1000 * (end - time.monotonic()))):
            if self.pub.recv()[:1] == b"\1":
                return
        raise AssertionError("nobody subscribed")

    def publish(self, events, **kw):
        self.raw(self.batch(events), **kw)

    def restart(self):
        """the sequence begins anew and the history is gone; nobody is told"""
        self.seq, self.sent = 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over = True
        self.server.shutdown()
        self.server.server_close()
        self.replayer.join(2)
        self.ctx.destroy(linger=0)
