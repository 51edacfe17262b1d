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


def test_a_closed_loop_keeps_so_many_in_flight_and_a_seed_repeats_an_open_one(start, tmp_path):
    fleet = Fleet(start, profile="llama-8b-h100", args=["--time-scale", "20"])

    def run(name, *args):
        r = subprocess.run([BIN_DIR / "kvasir-bench", "run", "--target", fleet.url(0), "--model", "m", "--duration", "10", "--drain", "200", "--time-scale", "20",
                            "--question-tok", "60", "--output-tok", "8", "--out", tmp_path / name, "--quiet", *args], capture_output=True, text=True, timeout=60, check=False)
        assert r.returncode == 0, r.stderr
        return list(csv.DictReader((tmp_path / name / "requests.csv").open()))

    def most_at_once(rows):
        edges = sorted([(float(r["intended_s"]) + float(r["lag_s"]), 1) for r in rows] + [(float(r["intended_s"]) + float(r["e2e_s"]) - 1e-5, -1) for r in rows])     # the file rounds
        return max(sum(step for _, step in edges[:i + 1]) for i in range(len(edges)))
    closed = run("closed", "--workload", "no-sharing", "--concurrency", "3")
    assert len(closed) > 10 and most_at_once(closed) == 3
    fleet.fault("wait=1500")                             # nobody is answered sooner than 30 simulated seconds from now: an open loop goes on
    one, again, other = (run(f"open{i}", "--workload", "no-sharing", "--rate", "2", "--seed", seed) for i, seed in enumerate(("5", "5", "6")))
    assert most_at_once(one) > 10
    n = min(map(len, (one, again, other)))                # a stalled machine may begin fewer
    intended = [sorted(float(r["intended_s"]) for r in rows)[:n] for rows in (one, again, other)]
    assert n > 10 and intended[0] == intended[1] != intended[2]


def test_a_trace_of_ones_own_is_played(start, tmp_path):
    fleet = Fleet(start)
    trace = tmp_path / "mine.jsonl"
    trace.write_text("".join(json.dumps({"timestamp": 100 * i, "input_length": 600, "output_length": 2, "hash_ids": [7, i]}) + "\n" for i in range(5)))
    r = subprocess.run([BIN_DIR / "kvasir-bench", "run", "--target", fleet.url(0), "--model", "m", "--workload", trace, "--duration", "5", "--out", tmp_path, "--quiet"],
                       capture_output=True, text=True, timeout=60, check=False)
    assert r.returncode == 0 and len(list(csv.DictReader((tmp_path / "requests.csv").open()))) == 5, r.stderr
    assert json.loads((tmp_path / "summary.json").read_text())["hit_rate"] > 0.3, "what two lines share is the same text"


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
