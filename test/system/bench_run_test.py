"""kvasir-bench run, against simulated workers."""
import csv
import json
import subprocess

from conftest import BIN_DIR, free_port
from sim import Fleet


def test_no_turn_begins_after_the_duration_and_none_is_cut_off(start, tmp_path):
    """chats whose turns would go on for 60 s more: what has begun is answered, the rest is not asked"""
    fleet = Fleet(start, profile="llama-8b-h100", args=["--time-scale", "20"])
    r = subprocess.run([BIN_DIR / "kvasir-bench", "run", "--target", fleet.url(0), "--model", "m", "--workload", "chat", "--rate", "4", "--question-tok", "50",
                        "--output-tok", "4", "--think", "12", "--duration", "20", "--drain", "30", "--time-scale", "20", "--out", tmp_path, "--quiet"],
                       capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 0, r.stderr
    rows = list(csv.DictReader((tmp_path / "requests.csv").open()))
    assert json.loads((tmp_path / "summary.json").read_text())["errors"] == 0
    assert max(float(row["intended_s"]) for row in rows) <= 20
    assert {row["turn"] for row in rows} >= {"0", "1"} and len(rows) >= 8


def test_nothing_but_errors_is_no_measurement(start, tmp_path):
    """a wrong model name or a dead port: said, and not a success"""
    fleet = Fleet(start)
    ask = [BIN_DIR / "kvasir-bench", "run", "--workload", "no-sharing", "--rate", "20", "--duration", "1", "--quiet", "--out", tmp_path]

    def run(*args):
        r = subprocess.run([*ask, *args], capture_output=True, text=True, timeout=60, check=False)
        return r.returncode, r.stderr
    code, words = run("--target", fleet.url(0), "--model", "nobody")
    assert code == 1 and "HTTP status 404" in words and "--model" in words
    code, words = run("--target", f"http://127.0.0.1:{free_port()}", "--model", "m")
    assert code == 1 and "--target" in words
    code, words = run("--target", "localhost", "--model", "m")
    assert code == 2 and "http://127.0.0.1:8080" in words
