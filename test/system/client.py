"""A client on a plain socket: sends exactly what a test says and keeps exactly what came back, framing included."""
import json
import socket
import struct
import time


class Client:
    def __init__(self, port, seconds=10, rcvbuf=None):
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.settimeout(seconds)
        self.held = bytearray()
        self.eof = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data.encode() if isinstance(data, str) else data)

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def more(self):
        try:
            data = self.sock.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            self.eof = True
        self.held += data
        return bool(data)

    def cut(self, n):
        taken = bytes(self.held[:n])
        del self.held[:n]
        return taken

    def until(self, mark):
        """takes what came up to and with mark; AssertionError when the connection ended before"""
        seen = 0
        while (at := self.held.find(mark, seen)) < 0:
            seen = max(0, len(self.held) - len(mark))
            assert self.more(), f"ended before {mark!r}: {bytes(self.held[-300:])!r}"
        return self.cut(at + len(mark))

    def take(self, n):
        while len(self.held) < n:
            assert self.more(), f"ended with {len(self.held)} of {n} bytes"
        return self.cut(n)

    def rest(self):
        """everything until the connection ends"""
        while self.more():
            pass
        return self.cut(len(self.held))

    def request(self, method, path, body=b"", headers=()):
        body = json.dumps(body) if isinstance(body, (dict, list)) else body
        body = body.encode() if isinstance(body, str) else body
        lines = [f"{method} {path} HTTP/1.1", "Host: kvasir", *headers]
        if body or method == "POST":
            lines += [f"Content-Length: {len(body)}", "Content-Type: application/json"]
        self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        return self

    def response(self, head_request=False):
        """the next whole answer, its body out of the framing"""
        r = self.head()
        return self.body(r, head_request)

    def head(self):
        raw = self.until(b"\r\n\r\n").decode("latin-1")
        lines = raw[:-4].split("\r\n")
        r = Response()
        r.at = time.monotonic()
        r.status = int(lines[0].split(" ")[1])
        r.fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        r.headers = {k.lower(): v for k, v in r.fields}
        return r

    def body(self, r, head_request=False):
        if head_request or r.status in (204, 304) or r.status < 200:
            return r
        if r.headers.get("transfer-encoding") == "chunked":
            pieces = []
            while True:
                try:
                    size = int(self.until(b"\r\n").strip(), 16)
                except AssertionError:
                    r.whole = False
                    break
                pieces.append(self.take(size))
                self.take(2)
                if size == 0:
                    break
            r.content = b"".join(pieces)
            return r
        elif "content-length" in r.headers:
            n = int(r.headers["content-length"])
            while len(self.held) < n and self.more():
                pass
            r.content = self.cut(n)
            r.whole = len(r.content) == n
        else:
            r.content = self.rest()
        return r


class Response:
    def __init__(self):
        self.status, self.headers, self.fields, self.content, self.whole = 0, {}, [], b"", True

    @property
    def json(self):
        return json.loads(self.content)

    @property
    def events(self):
        return [e for e in self.content.decode().split("\n\n") if e]


CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
STREAM = {**CHAT, "stream": True}


def call(port, method, path, body=b"", headers=(), seconds=10):
    with Client(port, seconds) as c:
        return c.request(method, path, body, headers).response(method == "HEAD")


def chat(port, body=None, headers=(), path="/v1/chat/completions", seconds=10):
    return call(port, "POST", path, CHAT if body is None else body, headers, seconds)
