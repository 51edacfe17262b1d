"""Every numeric option at its least, at its most and one step beyond, from the tables that the program itself is made of."""
import pathlib
import re
import subprocess

import client
import pytest
from conftest import BIN_DIR, HERE, eventually, free_port
from upstream import Upstream, whole

ROW = re.compile(r'^OPT\(\w+, (INT|SIZE|DURATION), "[^"]*", "([^"]+)", "[^"]*", ([^,]+), ([^,]+), "', re.M)
UNIT = {"INT": "", "SIZE": "B", "DURATION": "us"}


def number(text):
    text = re.sub(r"INT64_C\((\d+)\)", r"\1", text.strip()).replace("INT64_MAX", str(2**63 - 1))
    left, _, right = text.partition("<<")
    return int(left) << int(right or 0)


def options():
    for file in sorted((HERE.parent.parent / "src/edge/conf").glob("options_*.def")):
        for kind, flag, least, most in ROW.findall(file.read_text()):
            yield flag, number(least), number(most), UNIT[kind]


ALL = list(options())


def serve(url, port, admin, flags):
    return [str(BIN_DIR / "kvasir"), "serve", "--worker", url, "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}", *flags]


def test_one_step_beyond_is_refused_and_every_option_is_named():
    assert len(ALL) > 20
    for flags in ([f"--{f}={least - 1}{unit}" for f, least, _, unit in ALL], [f"--{f}={most + 1}{unit}" for f, _, most, unit in ALL],
                  [f"--{f}={n}{unit}" for (f, _, _, unit), n in zip(ALL, ["99999999999999999999", "", "-", "1e3", "0x10", " 1", "1 "] * 9)]):
        got = subprocess.run(serve("http://127.0.0.1:1", 0, 0, flags), capture_output=True, text=True, timeout=30, check=False)
        assert got.returncode == 1, got
        missing = [flag for flag, *_ in ALL if f"--{flag}: " not in got.stderr]
        assert not missing, (missing, got.stderr)


@pytest.mark.parametrize("end", ["least", "most"])
def test_at_its_limit_every_option_serves(start, end):
    with Upstream(lambda c: c.send(whole({"ok": 1}))) as up:
        flags = [f"--{flag}={least if end == 'least' else most}{unit}" for flag, least, most, unit in ALL]
        port, admin = free_port(), free_port()
        process = start("kvasir", *serve(up.url, port, admin, flags)[1:])

        def alive():
            assert process.running(), process.text[-3000:]
            try:
                return client.call(admin, "GET", "/livez").status == 200
            except OSError:
                return False
        assert eventually(alive, 20), process.text[-3000:]
        if end == "most":
            assert eventually(lambda: client.call(port, "GET", "/v1/models").content.find(b'"id"') > 0, 20), process.text[-3000:]
            assert client.chat(port).status == 200
        else:
            assert client.call(port, "POST", "/v1/chat/completions", {**client.CHAT, "user": "x" * 2000}).status == 413
        assert process.stop(20) == 0
