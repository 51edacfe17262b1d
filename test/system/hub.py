"""A stand-in hub: /api/models/…/revision/… and /…/resolve/COMMIT/FILE from a folder, and a second host ("store") that it may redirect to."""
import contextlib
import hashlib
import http.server
import json
import threading
import time
import urllib.parse

COMMIT = "c0ffee" + "0" * 34
REPO = "org/name"


def git_blob(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Server:
    def __init__(self, answer):
        self.seen, self.answer = [], answer       # seen: (path, headers)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.seen.append((self.path, dict(self.headers)))
                with contextlib.suppress(OSError):
                    outer.answer(self)

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()


def send(h, status, body=b"", headers=(), cut=0):
    h.send_response(status)
    for name, value in headers:
        h.send_header(name, value)
    h.send_header("Content-Length", str(len(body)))
    h.end_headers()
    h.wfile.write(body[:len(body) - cut])


class Hub:
    """way: how files are answered: plain, relative (redirect on the hub), store (redirect to another host), slow (tokenizer.json in two halves, six seconds apart), truncated, wrong (other
    bytes than the digest), no_digest. token: needed for everything, when given. down: answers 503 so many times first."""

    def __init__(self, files, way="plain", token=None, status=None, down=0):
        self.files = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
        self.way, self.token, self.status, self.down, self.commit = way, token, status, down, COMMIT
        self.store = Server(self._store)
        self.http = Server(self._answer)
        self.url, self.seen = self.http.url, self.http.seen

    def close(self):
        self.http.close()
        self.store.close()

    def _store(self, h):
        send(h, 200, self.files[h.path.rsplit("/", 1)[1]], [("ETag", '"of-the-store"')])

    def _answer(self, h):
        if self.down:
            self.down -= 1
            return send(h, 503)
        if self.status:
            return send(h, self.status, b'{"error":"no"}')
        if self.token and h.headers.get("Authorization") != f"Bearer {self.token}":
            return send(h, 401, b'{"error":"Invalid username or password."}')
        path = urllib.parse.urlsplit(h.path).path
        if path in (f"/api/models/{REPO}/revision/main", f"/api/models/{REPO}/revision/{self.commit}"):
            return send(h, 200, json.dumps({"id": REPO, "sha": self.commit, "siblings": [{"rfilename": n} for n in self.files] + [{"rfilename": "model.safetensors"}]}).encode())
        place, _, name = path.rpartition("/")
        if name not in self.files or place not in (f"/{REPO}/resolve/{self.commit}", f"/api/resolve-cache/{self.commit}"):
            return send(h, 404)
        return self._file(h, name, first=place.startswith(f"/{REPO}"))

    def _file(self, h, name, first):
        data = self.files[name]
        small = [("ETag", f'"{git_blob(data)}"'), ("X-Repo-Commit", self.commit)]
        large = [("X-Linked-Etag", f'"{hashlib.sha256(data).hexdigest()}"'), ("X-Linked-Size", str(len(data))), ("X-Repo-Commit", self.commit)]
        if self.way == "relative" and first:
            return send(h, 307, b"", [("Location", f"/api/resolve-cache/{self.commit}/{name}")])
        if self.way == "store":
            return send(h, 302, b"", [("Location", f"{self.store.url}/blobs/{name}"), *large])
        if self.way == "slow" and name == "tokenizer.json":
            send(h, 200, data, large, cut=len(data) // 2)
            time.sleep(6)
            return h.wfile.write(data[len(data) - len(data) // 2:])
        if self.way == "truncated" and name == "tokenizer.json":
            return send(h, 200, data, large, cut=100)
        if self.way == "wrong" and name == "tokenizer.json":
            return send(h, 200, data[:-2] + b" }", large)
        return send(h, 200, data, () if self.way == "no_digest" else small)
