"""Real vLLM workers, a byte-recording proxy before each, and a Kvasir in front: started and stopped by pid."""
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "script"))
from ports import free_port  # noqa: E402

BIN = os.environ.get("KVASIR_BIN_DIR", os.path.join(ROOT, "out"))


def get(url, timeout=5):
    with urllib.request.urlopen(url, timeout=timeout) as r:
        return r.read().decode()


def metric(url, begin):
    """the sum over the series whose line begins so"""
    return sum(float(l.rsplit(" ", 1)[1]) for l in get(url + "/metrics").splitlines() if l.startswith(begin))


def wait_for(what, fn, seconds):
    end, last = time.time() + seconds, None
    while time.time() < end:
        try:
            if fn():
                return
        except (OSError, ValueError, KeyError) as e:
            last = e
        time.sleep(0.3)
    raise SystemExit(f"{what}: not within {seconds} s (last: {last})")


class Worker:
    """one `vllm serve` and its engine child (a process group of its own)"""

    def __init__(self, base, model, name, extra, logs, served):
        self.port, self.events, self.replay = free_port(), free_port(), free_port()
        self.base, self.model, self.extra, self.served = base, model, extra, served
        self.log = os.path.join(logs, f"vllm-{name}.log")
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = None

    def start(self):
        env = dict(os.environ, VLLM_TARGET_DEVICE="cpu", VLLM_CPU_KVCACHE_SPACE="1", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
                   VLLM_SERVER_DEV_MODE="1", OMP_NUM_THREADS="1", VLLM_CPU_OMP_THREADS_BIND="nobind")
        env.pop("OPENBLAS_CORETYPE", None)
        argv = [f"{self.base}/venv/bin/vllm", "serve", os.path.join(self.base, "models", self.model), "--served-model-name", self.served,
                "--load-format", "dummy", "--dtype", "bfloat16", "--max-model-len", "8192", "--host", "127.0.0.1", "--port", str(self.port),
                "--enforce-eager", "--enable-prefix-caching", "--enable-prompt-tokens-details",
                "--kv-events-config", json.dumps({"enable_kv_cache_events": True, "publisher": "zmq", "endpoint": f"tcp://*:{self.events}",
                                                  "replay_endpoint": f"tcp://*:{self.replay}"})] + self.extra
        out = open(self.log, "ab")
        self.process = subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env=env, start_new_session=True)

    def ready(self):
        if self.process.poll() is not None:
            raise SystemExit(f"vLLM ended while starting; see {self.log}")
        return get(self.url + "/health") is not None

    def kill(self):
        """the server and its engine child, which outlives it and heeds no SIGTERM: their process group is ours alone"""
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.process = None

    def metric(self, name):
        return metric(self.url, name + "{")


class Proxy:
    """relays TCP to a worker and keeps the bytes the worker sent, per connection, so that they can be compared"""

    def __init__(self, worker):
        self.worker, self.port, self.sent = worker, free_port(), []
        self.url = f"http://127.0.0.1:{self.port}"
        self.loop = asyncio.new_event_loop()
        up = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(up,), daemon=True)
        self.thread.start()
        up.wait(10)

    def _run(self, up):
        asyncio.set_event_loop(self.loop)
        self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        up.set()
        self.loop.run_forever()

    async def _serve(self, reader, writer):
        try:
            r, w = await asyncio.open_connection("127.0.0.1", self.worker.port)
        except OSError:
            writer.transport.abort()
            return
        kept = bytearray()
        self.sent.append(kept)

        async def pump(src, dst, keep):
            try:
                while data := await src.read(65536):
                    if keep is not None:
                        keep += data
                    dst.write(data)
                    await dst.drain()
            except OSError:
                pass
            dst.transport.abort()
        await asyncio.gather(pump(reader, w, None), pump(r, writer, kept))


class Gateway:
    def __init__(self, urls, logs, extra=()):
        self.data, self.admin_port = free_port(), free_port()
        self.url, self.admin = f"http://127.0.0.1:{self.data}", f"http://127.0.0.1:{self.admin_port}"
        self.log = os.path.join(logs, "kvasir.log")
        argv = [f"{BIN}/kvasir", "serve", "--listen", f"127.0.0.1:{self.data}", "--admin", f"127.0.0.1:{self.admin_port}", *extra]
        for u in urls:
            argv += ["--worker", u]
        out = open(self.log, "ab")
        self.process = subprocess.Popen(argv, stdout=out, stderr=out, stdin=subprocess.DEVNULL)

    def workers(self):
        w = json.loads(get(self.admin + "/api/v1/workers"))
        return w["workers"] if isinstance(w, dict) else w

    def healthy(self):
        return [w for w in self.workers() if w["state"] == "healthy" and w["models"]]

    def metric(self, begin):
        return metric(self.admin, begin)

    def decision(self, request_id):
        return json.loads(get(f"{self.admin}/api/v1/decisions/{request_id}"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


@contextlib.contextmanager
def running(workers, logs, args=()):
    """the workers, up, and a Kvasir in front of them; whatever happens, all are ended"""
    gateway = None
    try:
        for w in workers:
            w.start()
        for w in workers:
            wait_for(f"vLLM (log {w.log})", w.ready, 900)
        gateway = Gateway([w.url for w in workers], logs, args)
        wait_for("Kvasir", lambda: len(gateway.healthy()) == len(workers), 60)
        yield gateway
    finally:
        if gateway:
            gateway.stop()
        for w in workers:
            w.kill()


def log_folder():
    return tempfile.mkdtemp(prefix="kvasir-vllm-")
