"""`kvasir tokenize` as scripts use it: ids and nothing else on standard output, lines, refusals by name."""
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "tokenizers/golden"
PROGRAM = Path(os.environ.get("KVASIR_BIN_DIR", "out")) / "kvasir"


def tokenize(*args, text=""):
    return subprocess.run([PROGRAM, "tokenize", *map(str, args)], input=text.encode("utf-8", "surrogatepass"), capture_output=True, check=False, timeout=60)


def cases(name):
    return [json.loads(line) for line in (GOLDEN / name / "cases.jsonl").read_text().split("\n") if line]


def test_ids_of_standard_input():
    case = max(cases("qwen2"), key=lambda c: len(c["ids"]))
    got = tokenize("--model-dir", GOLDEN / "qwen2", text=case["text"])
    assert got.returncode == 0 and got.stderr == b""
    assert got.stdout.decode() == json.dumps(case["ids"], separators=(",", ":")) + "\n"


@pytest.mark.parametrize("name", ["o200k", "gemma", "metaspace_first", "deepseek"])
def test_lines(name):
    all_cases = cases(name)
    lines = "".join(json.dumps(c["text"]) + "\n" for c in all_cases)
    got = tokenize("--model-dir", GOLDEN / name, "--lines", text=lines)
    assert got.returncode == 0
    assert [json.loads(line) for line in got.stdout.splitlines()] == [c["ids"] for c in all_cases]


def test_count_and_pieces(tmp_path):
    case = cases("gpt2")[50]
    file = tmp_path / "text"
    file.write_bytes(case["text"].encode())
    count = tokenize(f"--model-dir={GOLDEN / 'gpt2'}", "--count", file)
    assert json.loads(count.stdout) == len(case["ids"])
    pieces = json.loads(tokenize("--model-dir", GOLDEN / "gpt2", "--pieces", "--text", file).stdout)
    assert len(pieces) == len(case["ids"]) and pieces[0] == "<s>" and pieces[-1] == "</s>"


def test_without_the_ids_around():
    case = cases("gpt2")[50]
    got = tokenize("--model-dir", GOLDEN / "gpt2", "--no-special", text=case["text"])
    assert json.loads(got.stdout) == case["ids"][1:-1]


def test_a_bad_line_is_an_error_of_its_own():
    got = tokenize("--model-dir", GOLDEN / "gpt2", "--lines", text='"a"\n"\\ud800"\n7\n"a"\n')
    lines = [json.loads(line) for line in got.stdout.splitlines()]
    assert got.returncode == 1 and len(lines) == 4
    assert lines[0] == lines[3] and isinstance(lines[0], list)
    assert "error" in lines[1] and "error" in lines[2]


def test_text_that_is_no_utf8():
    got = subprocess.run([PROGRAM, "tokenize", "--model-dir", GOLDEN / "gpt2"], input=b"a\xffb", capture_output=True, check=False, timeout=60)
    assert got.returncode == 1 and got.stdout == b"" and b"UTF-8" in got.stderr


def test_refusals_name_the_feature(tmp_path):
    data = json.loads((GOLDEN / "gpt2" / "tokenizer.json").read_text())
    data["normalizer"] = {"type": "Lowercase"}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    got = tokenize("--model-dir", tmp_path, text="a")
    assert got.returncode == 1 and got.stdout == b"" and b"Lowercase" in got.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    got = tokenize("--model-dir", empty, text="a")
    assert got.returncode == 1 and b"tokenizer.json" in got.stderr


@pytest.mark.parametrize("args", [[], ["--model-dir"], ["--model-dir", ".", "--no-such"], ["--model-dir", ".", "a", "b"], ["--model-dir", ".", "--unicode", "15"]])
def test_wrong_use(args):
    got = tokenize(*args)
    assert got.returncode == 2 and got.stdout == b"" and got.stderr


def test_a_hub_cache_folder(tmp_path):
    place = tmp_path / "snapshots/abc"
    place.mkdir(parents=True)
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs/main").write_text("abc\n")
    (place / "tokenizer.json").symlink_to(GOLDEN / "gpt2/tokenizer.json")
    case = cases("gpt2")[10]
    assert json.loads(tokenize("--model-dir", tmp_path, text=case["text"]).stdout) == case["ids"]


@pytest.mark.parametrize("what", ["fifo", "folder", "link", "loop", "socket", "empty", "sparse", "cut"])
def test_what_is_no_tokenizer_is_named_and_holds_up_nobody(tmp_path, what):
    file, folder = tmp_path / "tokenizer.json", tmp_path
    if what == "fifo":
        os.mkfifo(file)
    elif what == "folder":
        file.mkdir()
    elif what == "link":
        file.symlink_to("tokenizer.json")
    elif what == "loop":
        folder = tmp_path / "loop"
        folder.symlink_to("loop")
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(os.path.relpath(file))
    elif what == "cut":
        file.write_bytes((GOLDEN / "gpt2/tokenizer.json").read_bytes()[:3000])
    else:
        file.touch()
        os.truncate(file, 0 if what == "empty" else 20 << 30)
    got = tokenize("--model-dir", folder, text="a")
    words = got.stderr.decode().strip().removeprefix(f"kvasir tokenize: {folder}: ")
    assert got.returncode == 1 and got.stdout == b"" and len(words) > 10 and "\n" not in words, got
