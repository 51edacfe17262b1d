"""Real programs on free loopback ports; everything is stopped by pid and within a bounded time."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent / "script")]
from ports import free_port  # noqa: E402,F401
BIN_DIR = pathlib.Path(os.environ.get("KVASIR_BIN_DIR", HERE.parent.parent / "out"))
GOLDEN = HERE.parent / "tokenizers" / "golden" / "chat"     # a small tokenizer with its chat golden file


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
