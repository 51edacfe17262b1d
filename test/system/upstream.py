"""A worker that does what a test tells it, byte by byte: real sockets, one thread a connection, every wait bounded.

    with Upstream() as up:
        up.script = lambda call: call.send(chunked([...]))
        ...
        up.calls[0].head, up.calls[0].body, up.calls[0].headers["x-request-id"]

A script gets a Call (the request, already read) and writes the answer. Requests that a gateway makes by itself (health,
models, metrics ...) are answered by `up.own` and not recorded.
"""
import json
import socket
import struct
import threading
import time

LIMIT_S = 20


class Gone(Exception):
    """the peer closed or the test is over"""


class Call:
    def __init__(self, upstream, sock, head, headers, body, first):
        self.upstream, self.sock, self.head, self.headers, self.body, self.first = upstream, sock, head, headers, body, first
        self.method, self.target = head.split(" ")[:2]
        self.gone = threading.Event()
        self.at = time.monotonic()
        self.keep = True

    @property
    def json(self):
        return json.loads(self.body)

    def send(self, data):
        if isinstance(data, str):
            data = data.encode()
        try:
            self.sock.sendall(data)
        except OSError as e:
            self.gone.set()
            raise Gone() from e

    def wait_gone(self, seconds=5):
        """does the peer close within so long? (reads nothing else)"""
        self.sock.settimeout(seconds)
        try:
            if self.sock.recv(1) == b"":
                self.gone.set()
        except (TimeoutError, socket.timeout):
            pass
        except OSError:
            self.gone.set()
        return self.gone.is_set()

    def close(self):
        self.keep = False
        raise Gone()

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        self.keep = False
        raise Gone()

    def sleep(self, seconds):
        if self.upstream.over.wait(min(seconds, LIMIT_S)):
            raise Gone()


def chunk(data):
    data = data.encode() if isinstance(data, str) else data
    return b"%x\r\n%s\r\n" % (len(data), data)


def head(status=200, content_type="application/json", extra=(), length=None):
    lines = [f"HTTP/1.1 {status} X", f"content-type: {content_type}", *extra]
    lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def whole(body, status=200, extra=(), content_type="application/json"):
    body = json.dumps(body) if isinstance(body, (dict, list)) else body
    body = body.encode() if isinstance(body, str) else body
    return head(status, content_type, extra, len(body)) + body


def event(data, name=None):
    data = json.dumps(data) if not isinstance(data, str) else data
    return (f"event: {name}\n" if name else "") + f"data: {data}\n\n"


def delta(text, n=0, **more):
    return {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}], **more}


USAGE = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13, "prompt_tokens_details": {"cached_tokens": 4}}
USAGE_CHUNK = {"id": "chatcmpl-x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": USAGE}
STREAM = [event(delta("", 0)), event(delta("Hel")), event(delta("lo")), event(delta("!"))]
DONE = "data: [DONE]\n\n"
COMPLETION = {"id": "chatcmpl-x", "object": "chat.completion", "created": 1, "model": "m", "usage": USAGE,
              "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello!"}, "finish_reason": "stop"}]}


def answer(call):
    """what a good worker does: a chat stream or a chat answer"""
    if not call.body or not call.json.get("stream"):
        call.send(whole(COMPLETION))
        return
    call.send(head(content_type="text/event-stream; charset=utf-8"))
    for e in STREAM:
        call.send(chunk(e))
    if (call.json.get("stream_options") or {}).get("include_usage"):
        call.send(chunk(event(USAGE_CHUNK)))
    call.send(chunk(DONE) + b"0\r\n\r\n")


METRICS = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 0.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",num_gpu_blocks="1000",enable_prefix_caching="True",engine="0"} 1.0
"""


class Upstream:
    def __init__(self, script=answer, port=0, models=("m",), tokenize=None, health=200):
        self.script, self.models, self.tokenize, self.health = script, models, tokenize, health
        self.calls, self.tokenize_calls, self.lock, self.over = [], [], threading.Lock(), threading.Event()
        self.own_headers, self.max_model_len = [], 4096
        self.version, self.root, self.parents, self.embeds = None, "m", {}, False
        self.connections = 0
        self.server = socket.create_server(("127.0.0.1", port), backlog=256)
        self.port = self.server.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.socks = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """closes everything at once; new connections are refused"""
        self.over.set()
        self.stop_listening()
        with self.lock:
            for s in self.socks:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def stop_listening(self):
        try:
            self.server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.server.close()

    def wait_calls(self, n, seconds=5):
        end = time.monotonic() + seconds
        while len(self.calls) < n and time.monotonic() < end:
            time.sleep(0.005)
        assert len(self.calls) >= n, f"{len(self.calls)} calls, {n} expected"
        return self.calls[n - 1]

    def _accept(self):
        while not self.over.is_set():
            try:
                sock, _ = self.server.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            with self.lock:
                self.socks.add(sock)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        held, first = b"", True
        try:
            while not self.over.is_set():
                call, held = self._read(sock, held, first)
                if call is None:
                    return
                first = False
                if self._own(call):
                    continue
                with self.lock:
                    self.calls.append(call)
                self.script(call)
                if not call.keep:
                    return
        except (Gone, OSError):
            pass
        finally:
            with self.lock:
                self.socks.discard(sock)
            try:
                sock.close()
            except OSError:
                pass

    def _own(self, call):
        path = call.target.split("?")[0]
        if call.method == "GET":
            self.own_headers.append((path, call.headers))
        if path == "/health" and call.method == "GET":
            call.send(whole(b"", self.health))
        elif path == "/v1/models":
            call.send(whole({"object": "list", "data": [{"id": m, "object": "model", "created": 1, "owned_by": "vllm", "root": f"/adapters/{m}" if m in self.parents else self.root,
                                                         "parent": self.parents.get(m), "max_model_len": self.max_model_len} for m in self.models]}))
        elif path == "/metrics":
            call.send(whole(METRICS, content_type="text/plain"))
        elif path in ("/kv_event_sources", "/version") and not (path == "/version" and self.version):
            call.send(whole({"detail": "Not Found"}, 404))
        elif path == "/v1/embeddings" and call.method == "GET":
            call.send(whole({"detail": "no"}, 405 if self.embeds else 404))
        elif path == "/version":
            call.send(whole({"version": self.version}))
        elif path in ("/tokenize", *(f"/v1/{api}/render" for api in ("chat/completions", "completions", "messages", "responses"))) and "x-request-id" not in call.headers:
            with self.lock:
                self.tokenize_calls.append(call)
            if self.tokenize:
                self.tokenize(call)
            elif path == "/tokenize":
                call.send(whole({"count": 40, "max_model_len": 4096, "tokens": list(range(40)), "token_strs": None}))
            else:
                call.send(whole({"error": {"message": "no", "type": "PermissionDeniedError", "param": None, "code": 403}}, 403))
        else:
            return False
        return True

    def _read(self, sock, held, first):
        sock.settimeout(LIMIT_S * 3)
        while b"\r\n\r\n" not in held:
            data = sock.recv(65536)
            if not data:
                return None, b""
            held += data
        raw, held = held.split(b"\r\n\r\n", 1)
        lines = raw.decode("latin-1").split("\r\n")
        pairs = [line.split(":", 1) for line in lines[1:]]
        headers = {}
        for k, v in pairs:
            headers[k.lower()] = headers[k.lower()] + ", " + v.strip() if k.lower() in headers else v.strip()
        length = int(headers.get("content-length", 0))
        parts = [held]
        got = len(held)
        while got < length:
            data = sock.recv(1 << 20)
            if not data:
                return None, b""
            parts.append(data)
            got += len(data)
        data = b"".join(parts)
        return Call(self, sock, lines[0], headers, data[:length], first), data[length:]
