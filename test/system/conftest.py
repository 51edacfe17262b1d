"""Real programs on free loopback ports; everything is stopped by pid and within a bounded time."""
import contextlib
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
BIN_DIR = pathlib.Path(os.environ.get("KVASIR_BIN_DIR", HERE.parent.parent / "out"))
GOLDEN = HERE.parent / "tokenizers" / "golden" / "chat"     # a small tokenizer with its chat golden file


def range_of_ports():
    """this process's own part; below the ports that the kernel gives to outgoing connections, one of which could sit on a port
    while the program that listens there is down"""
    below = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    low, high = (10000, below) if below > 14000 else (below, 65000)
    nth, parts = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    part = (high - low) // parts
    return low + nth * part, low + (nth + 1) * part


next_port = 0


def free_port(n=1):
    """the first of n neighbouring ports that nobody uses now; none is given twice before all were"""
    global next_port
    low, high = range_of_ports()
    base, tried = next_port or random.randrange(low, high), 0
    while tried < 2 * (high - low):
        base = low if base + n > high else base
        free = next((i for i in range(n) if not is_free(base + i)), n)
        if free == n:
            next_port = base + n
            return base
        base, tried = base + free + 1, tried + free + 1
    raise RuntimeError("no free ports")


def is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)    # as our programs do: what closed lately is free
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Process:
    """a program of ours with its output in a file; before: what a shell does first (limits, descriptors)"""

    def __init__(self, name, args, log, env=None, before=None):
        self.log = pathlib.Path(log)
        self.args = [str(BIN_DIR / name), *map(str, args)]
        with open(self.log, "wb") as out:
            shell = ["/bin/bash", "-c", before + '; exec "$@"', "bash"] if before else []
            self.child = subprocess.Popen([*shell, *self.args], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                          env={**os.environ, **(env or {})})

    @property
    def pid(self):
        return self.child.pid

    @property
    def text(self):
        return self.log.read_text(errors="replace")

    def running(self):
        return self.child.poll() is None

    def signal(self, number):
        self.child.send_signal(number)

    def wait(self, seconds=10):
        return self.child.wait(seconds)

    def stop(self, seconds=10):
        """SIGTERM, and SIGKILL when that is not enough; the exit code"""
        if self.running():
            self.child.terminate()
            try:
                self.child.wait(seconds)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait(5)
                raise AssertionError(f"{self.args[0]} did not stop in {seconds} s:\n{self.text[-2000:]}") from None
        return self.child.returncode


def eventually(check, seconds=5, every=0.02):
    """waits until check() is true; what it said last. Seconds of a quiet machine: a crowded one is given four times as many."""
    end = time.monotonic() + 4 * seconds
    while True:
        got = check()
        if got or time.monotonic() > end:
            return got
        time.sleep(every)


@contextlib.contextmanager
def starting(folder):
    """go("kvasir-sim", "--workers", 2, ...) -> Process; stopped at the end, exit code 0 expected if it still ran"""
    started = []

    def go(name, *args, env=None, before=None):
        p = Process(name, args, folder / f"{len(started)}-{name}.log", env, before)
        started.append(p)
        return p

    yield go
    faults = []
    for p in reversed(started):
        was_running = p.running()
        code = p.stop()
        if was_running and code != 0:
            faults.append(f"{p.args[0]} ended with {code}:\n{p.text[-4000:]}")
    assert not faults, "\n".join(faults)


def model_folder(tmp_path, template):
    """a folder as a worker's model has it: the golden tokenizer with this chat template"""
    place = tmp_path / "model"
    place.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(GOLDEN / name, place)
    (place / "chat_template.jinja").write_text(template)
    return place


@pytest.fixture
def start(tmp_path):
    """for the programs of one test"""
    with starting(tmp_path) as go:
        yield go


@pytest.fixture(scope="module")
def start_module(tmp_path_factory):
    """for programs that all tests of a file share"""
    with starting(tmp_path_factory.mktemp("module")) as go:
        yield go
