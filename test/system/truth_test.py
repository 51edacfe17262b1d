"""kvasir-bench truth over recordings of real workers: every hit a reader of the events can know is predicted exactly,
and what is excused is excused for the reason and as often as pinned here."""
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parent.parent / "data" / "vllm"
BENCH = Path(os.environ.get("KVASIR_BIN_DIR", "out")) / "kvasir-bench"

# name: (requests a reader can know, {excuse: how often})
EXPECTED = {
    "vllm-0.12.0-wire": (13, {"salt-not-on-the-wire": 2, "adapter-not-on-the-wire": 1, "reset-not-announced": 1}),
    "vllm-0.20.2-wire": (16, {"reset-not-announced": 1}),
    "vllm-0.23.0-wire": (16, {"reset-not-announced": 1}),
    "vllm-0.25.1-wire": (16, {"reset-not-announced": 1}),
    "vllm-0.28.0-wire": (16, {"reset-not-announced": 1}),
    "vllm-0.32.0-chat-sequential": (53, {}),
    "vllm-0.32.0-concurrent": (89, {}),
    "vllm-0.32.0-concurrent-small": (86, {}),
    "vllm-0.32.0-dp2": (21, {}),
    "vllm-0.32.0-eviction": (72, {}),
    "vllm-0.32.0-hybrid-gemma3": (42, {}),
    "vllm-0.32.0-hybrid-mamba": (36, {}),
    "vllm-0.32.0-hybrid-mamba-fine": (25, {"partial-tail": 11}),
    "vllm-0.32.0-lora": (37, {"adapter-reloaded-over-another-path": 1}),
    "vllm-0.32.0-multimodal": (14, {}),
    "vllm-0.32.0-restart-and-replay": (16, {"before-first-event": 4, "reset-not-announced": 1}),
    "vllm-0.32.0-surfaces": (13, {}),
}


def truth(*args):
    return subprocess.run([str(BENCH), "truth", *map(str, args)], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    for archive in DATA.glob("*.tar.xz"):
        with tarfile.open(archive) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Debian 12's Python has none; 13's asks for one
            tar.extractall(folder)
    return folder


def test_every_recording_is_pinned():
    assert {p.name.removesuffix(".tar.xz") for p in DATA.glob("*.tar.xz")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_every_knowable_hit_is_exact(recordings, name):
    requests, excuses = EXPECTED[name]
    result = truth("-v", recordings / name)
    first, *details = result.stdout.splitlines()
    assert first == f"{name} requests={requests} exact={requests} share=1.0000"
    assert dict((k, int(n)) for k, n in re.findall(r"^  excused (\S+): (\d+)$", result.stdout, re.M)) == excuses
    assert len([d for d in details if d.startswith("  miss ")]) == sum(excuses.values())
    assert result.returncode == 0, result.stderr


def test_a_line_a_recording_without_v(recordings):
    names = sorted(EXPECTED)
    result = truth(*(recordings / n for n in names))
    assert [line.split()[0] for line in result.stdout.splitlines()] == names
    assert result.returncode == 0


def test_a_wrong_report_is_a_miss_without_excuse(recordings, tmp_path):
    source = recordings / "vllm-0.32.0-surfaces"
    wrong = tmp_path / "wrong"
    wrong.mkdir()
    (wrong / "run.json").write_bytes((source / "run.json").read_bytes())
    lines = (source / "timeline.jsonl").read_text().splitlines()
    last = max(i for i, line in enumerate(lines) if '"kind":"truth"' in line)
    lines[last] = re.sub(r'("cached_tokens":)(\d+)', lambda m: m[1] + str(int(m[2]) + 1), lines[last])
    (wrong / "timeline.jsonl").write_text("\n".join(lines))
    result = truth("-v", wrong)
    assert result.stdout.startswith("wrong requests=13 exact=12 share=0.9231")
    assert result.returncode == 1


def test_case_sim_624_identity_is_the_connections_not_the_topics(recordings, tmp_path):
    source = recordings / "vllm-0.32.0-concurrent"
    other = tmp_path / "topics"
    other.mkdir()
    (other / "run.json").write_bytes((source / "run.json").read_bytes())
    text = (source / "timeline.jsonl").read_text()
    topic = re.search(r'"frames":\["([0-9a-f]+)"', text)[1]
    for new in ("", "kv@pod-7@model".encode().hex()):
        (other / "timeline.jsonl").write_text(text.replace(topic, new))
        assert truth(other).stdout == "topics requests=89 exact=89 share=1.0000\n"


def test_a_folder_that_is_no_recording_is_passed_over(recordings, tmp_path):
    result = truth(tmp_path)
    assert result.returncode == 2
    assert "no recording" in result.stderr
    result = truth(tmp_path, recordings / "vllm-0.32.0-surfaces")
    assert result.returncode == 0
    assert result.stdout == "vllm-0.32.0-surfaces requests=13 exact=13 share=1.0000\n"


def test_a_broken_recording_is_refused(recordings, tmp_path):
    (tmp_path / "run.json").write_bytes((recordings / "vllm-0.32.0-surfaces" / "run.json").read_bytes())
    (tmp_path / "timeline.jsonl").write_text('{"kind":"event"\n')
    result = truth(tmp_path, recordings / "vllm-0.32.0-surfaces")
    assert result.returncode == 2
    assert "malformed" in result.stderr
