"""The index on disk between two lives of the gateway (--index-file): believed only where the worker is the same."""
import fcntl
import os
import signal

from conftest import eventually
from feed_events_test import EVENTS, blocks, only, rank
from feed_worker import Worker, stored
from gateway import Gateway


def following(start, up, file, n):
    """a gateway whose index has n blocks, all of them sure"""
    g = Gateway(start, up.url, args=[*EVENTS, "--index-file", file])
    up.heard()
    assert eventually(lambda: only(g)["index_blocks"] == n and rank(g)["replays"] >= 1 and not rank(g)["uncertain"], 5), (rank(g), g.process.text[-2000:])
    return g


def first_life(start, up, file):
    """40 blocks are stored, in batches that the worker's replay no longer has when the gateway stops; the last of them it has"""
    g = following(start, up, file, 0)
    up.publish([blocks(30)])
    up.publish([stored(list(range(100, 110)), list(range(9000, 9160)), 16)])
    assert eventually(lambda: only(g)["index_blocks"] == 40, 5), rank(g)
    assert g.process.stop() == 0 and " event=index_written " in g.process.text and file.stat().st_size > 40 * 20
    del up.sent[0]


def test_what_the_replay_no_longer_tells_is_known(start, tmp_path):
    file = tmp_path / "index"
    with Worker() as up:
        first_life(start, up, file)
        up.publish([stored([500], list(range(7000, 7016)), 16)])        # while nobody looks
        g = following(start, up, file, 41)
        assert " event=index_part_read " in g.process.text and rank(g)["restarts"] == 0
        g.process.stop()
        without = Gateway(start, up.url, args=EVENTS)
        assert eventually(lambda: only(without)["index_blocks"] == 11 and rank(without)["uncertain"], 5), rank(without)


def test_a_worker_that_restarted_meanwhile_is_learnt_anew(start, tmp_path):
    file = tmp_path / "index"
    with Worker() as up:
        first_life(start, up, file)
        up.restart()
        for n in range(3):
            up.publish([stored([500 + n], list(range(7000 + n, 7016 + n)), 16)])
        g = following(start, up, file, 3)
        assert rank(g)["restarts"] == 1


def test_without_a_replay_socket_nothing_is_believed(start, tmp_path):
    file = tmp_path / "index"
    with Worker() as up:
        first_life(start, up, file)
        up.silent_replay = True
        g = Gateway(start, up.url, args=[*EVENTS, "--index-file", file])
        assert eventually(lambda: rank(g)["replays"] >= 1, 10), rank(g)
        assert rank(g)["uncertain"], "it may be another worker"


def test_a_file_that_is_cut_or_another_is_said_and_replaced(start, tmp_path):
    file = tmp_path / "index"
    with Worker() as up:
        first_life(start, up, file)
        whole = file.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        for text in (whole[:-1], whole[:20], b"", b"kvasir index 2\n" * 100, bytes(flipped)):
            file.write_bytes(text)
            g = Gateway(start, up.url, args=[*EVENTS, "--index-file", file])
            assert " event=index_not_read " in g.process.text and "cut or of another version" in g.process.text
            assert g.process.stop() == 0 and " event=index_written " in g.process.text
        assert file.read_bytes() != bytes(flipped)


def test_one_that_never_served_leaves_the_file_alone(start, tmp_path):
    file = tmp_path / "index"
    with Worker() as up:
        first_life(start, up, file)
        was = file.read_bytes()
        g = following(start, up, file, 40)
        second = start("kvasir", "serve", "--worker", up.url, "--listen", f"127.0.0.1:{g.port}", "--admin", "127.0.0.1:0", "--index-file", file)
        assert second.wait(10) != 0 and file.read_bytes() == was
        g.process.signal(signal.SIGKILL)
        g.process.wait()
        assert file.read_bytes() == was


def test_a_path_that_cannot_be_written_is_refused_at_the_start(start, tmp_path):
    other, pipe = tmp_path / "pools.yaml", tmp_path / "pipe"
    other.write_text("kind: Pool\n")
    os.mkfifo(pipe)
    for path, what in ((tmp_path / "no" / "index", "there is no folder"), (tmp_path, "is a folder: must be a file"), (pipe, "is no plain file"),
                       (other, "is another file, and would be written over")):
        p = start("kvasir", "serve", "--worker", "http://127.0.0.1:1", "--index-file", path)
        assert p.wait(10) == 1 and "events.indexFile" in p.text and what in p.text, p.text
    assert other.read_text() == "kind: Pool\n" and pipe.is_fifo()


def test_what_is_not_proven_yet_when_it_stops_again_stays_in_the_file(start, tmp_path):
    """a second restart before a replay has ended, and one while the worker is not reached"""
    file = tmp_path / "index"
    with Worker() as up:
        first_life(start, up, file)
        up.silent_replay = True
        g = Gateway(start, up.url, args=[*EVENTS, "--index-file", file])
        up.heard()
        assert eventually(lambda: only(g)["index_blocks"] == 40, 5) and g.process.stop() == 0 and " event=index_written " in g.process.text
        up.silent_replay, up.health = False, 503
        g = Gateway(start, up.url, args=[*EVENTS, "--index-file", file], ready=False)
        assert eventually(lambda: " event=admin " in g.process.text, 10)
        assert g.process.stop() == 0 and " event=index_written " in g.process.text
        up.health = 200
        assert rank(following(start, up, file, 40))["restarts"] == 0


def test_what_cannot_be_written_leaves_the_old_file_and_no_half(start, tmp_path):
    file = tmp_path / "index"
    with Worker() as up:
        first_life(start, up, file)
        was = file.read_bytes()
        g = Gateway(lambda *a, **kw: start(*a, before="ulimit -f 0", **kw), up.url, args=[*EVENTS, "--index-file", file])
        assert g.process.stop() == 0
        assert file.read_bytes() == was and not (tmp_path / "index.new").exists()


def test_two_that_stop_at_once_do_not_mix(start, tmp_path):
    file = tmp_path / "index"
    with Worker() as up, open(tmp_path / "index.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        g = following(start, up, file, 0)
        assert g.process.stop() == 0
        assert "another gateway writes it" in g.process.text and not file.exists()
