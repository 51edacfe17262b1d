#!/usr/bin/env python3
"""The front door keeps its word: which verbs there are, what they call and in which order, and what a wrong word gets.

./dev runs in a small tree with stand-ins for cmake, ninja, ctest, pytest and apt that write down how they were called.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VERBS = "build test lint fmt fuzz bench demo test-vllm help".split()

NOTE = '#!/bin/sh\necho "$(basename "$0") $*" >>"$CALLS"\n'
STAND_INS = {
    "cmake": NOTE,
    "ninja": NOTE + 'for name in kvasir kvasir-sim kvasir-bench; do mkdir -p "$2"; printf "#!/bin/sh\\n" >"$2/$name"; chmod +x "$2/$name"; done\n',
    "ctest": NOTE + 'for a; do case "$a" in *.xml) echo \'<t><testcase name="a" status="run"/></t>\' >"$a";; esac; done\n',
    "clang-format": NOTE,
    "git": NOTE,
}
PYTEST = NOTE.replace('$(basename "$0")', "pytest bin=$KVASIR_BIN_DIR") + 'for a; do case "$a" in *.xml) echo \'<t><testcase name="b"/></t>\' >"$a";; esac; done\n'


class House:
    """a tree with the real ./dev, .ci/run and count-tests.py"""

    def __init__(self, folder):
        self.tree, self.calls = Path(folder) / "tree", Path(folder) / "calls"
        for path in ("dev", ".ci/run", "script/count-tests.py", "test/system/requirements.txt"):
            (self.tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, self.tree / path)
        for name, text in STAND_INS.items():
            self.script(f"bin/{name}", text)
        self.script("script/install-packages", NOTE)
        self.script("script/lint.py", 'import os, sys\nopen(os.environ["CALLS"], "a").write("lint.py " + " ".join(sys.argv[1:]) + "\\n")\n')
        self.script("script/gen-docs", NOTE)
        for name in ("script/demo.py", "script/bench.py", "test/vllm/run.sh"):
            self.script(name, NOTE)
        self.script("cache/kvasir/venv/bin/python", PYTEST)
        wanted = hashlib.sha256((ROOT / "test/system/requirements.txt").read_bytes()).hexdigest()
        self.script("cache/kvasir/venv/kvasir-requirements", wanted + "\n")
        self.script("test/system/x_test.py", "")

    def script(self, path, text):
        file = self.tree / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def run(self, *words):
        self.calls.write_text("")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KVASIR_", "CC"))}
        env |= {"PATH": f"{self.tree}/bin:{os.environ['PATH']}", "CALLS": str(self.calls), "KVASIR_BUILD_DIR": str(self.tree / "elsewhere"),
                "XDG_CACHE_HOME": str(self.tree / "cache"), "KVASIR_JOBS": "1"}
        r = subprocess.run([self.tree / words[0], *words[1:]], capture_output=True, text=True, check=False, env=env, stdin=subprocess.DEVNULL, timeout=60)
        return r.returncode, r.stdout + r.stderr, self.calls.read_text()


def help_and_wrong_words(h):
    code, said, _ = h.run("dev", "help")
    assert code == 0 and all(f"./dev {verb}" in said for verb in VERBS), said
    for words, allowed in ((["nothing"], "./dev help"), (["build", "fast"], "release, debug, asan, tsan or fuzz"), (["test", "some"], "release, asan, unit or system")):
        code, said, calls = h.run("dev", *words)
        assert code == 1 and allowed in said and not calls, (words, said)


def build_installs_configures_compiles_and_publishes(h):
    code, said, calls = h.run("dev", "build")
    lines = calls.splitlines()
    assert code == 0 and lines[0] == "install-packages build" and lines[1].startswith("cmake --preset release") and lines[2].startswith("ninja "), calls
    assert "== compile release" in said and "done in" in said, said
    for name in ("kvasir", "kvasir-sim", "kvasir-bench"):
        assert (h.tree / "out" / name).resolve() == h.tree / "elsewhere/release" / name, "found at out/ whatever the build folder is called"
    for preset in ("debug", "asan", "tsan", "fuzz"):
        assert f"cmake --preset {preset} " in h.run("dev", "build", preset)[2]
    h.script("bin/ninja", NOTE + "exit 1\n")
    code, said, _ = h.run("dev", "build")
    assert code != 0 and "FAILED" in said, said
    h.script("bin/ninja", STAND_INS["ninja"])


def test_runs_everything_under_release_and_again_under_asan(h):
    code, said, calls = h.run("dev", "test")
    run = [line for line in calls.splitlines() if line.startswith(("ctest", "pytest"))]
    assert code == 0 and said.splitlines()[-1] == "4 passed, 0 failed" and len(run) == 4, (said, calls)
    for part, preset in ((run[:2], "release"), (run[2:], "asan")):
        assert f"/{preset} " in part[0] and "unit|table|play|fuzzcorpus" in part[0] and f"bin={h.tree}/elsewhere/{preset} " in part[1], part
    h.script("bin/ctest", STAND_INS["ctest"].replace('<testcase name="a" status="run"/>', '<testcase name="a" status="fail"><failure/></testcase>') + "exit 8\n")
    code, said, _ = h.run("dev", "test")
    assert code == 1 and said.splitlines()[-1] == "2 passed, 2 failed", said
    h.script("bin/ctest", STAND_INS["ctest"])
    h.script("bin/ninja", NOTE + "exit 1\n")
    assert h.run("dev", "test")[0] == 1, "what does not compile fails the run even if old tests pass"
    h.script("bin/ninja", STAND_INS["ninja"])


def lint_holds_the_rules_and_the_generated_pages(h):
    code, said, calls = h.run("dev", "lint")
    assert code == 0 and f"lint.py --build {h.tree}/elsewhere/release" in calls and "gen-docs --check" in calls, calls
    for name in ("script/gen-docs", "script/lint.py"):
        was = (h.tree / name).read_text()
        h.script(name, "#!/bin/sh\nexit 1\n" if name.endswith("docs") else "import sys\nsys.exit(1)\n")
        assert h.run("dev", "lint")[0] == 1, name
        h.script(name, was)


def the_other_verbs_call_their_scripts(h):
    for words, script in ((["demo"], "demo.py"), (["bench"], "bench.py"), (["test-vllm"], "run.sh")):
        code, said, calls = h.run("dev", *words)
        assert code == 0 and calls.splitlines()[-1].startswith(script), (words, said, calls)
    assert h.run("dev", "fmt")[2].splitlines()[-1] == "git clang-format --force --extensions c,h HEAD"
    assert h.run("dev", "fmt", "src/a.c")[2].splitlines()[-1] == "clang-format -i src/a.c"


def real_workers_are_proven_by_the_script_that_is_named(h):
    shutil.copy(ROOT / "test/vllm/run.sh", h.tree / "test/vllm/run.sh")
    h.script("bin/npm", NOTE)
    h.script("test/vllm/install.sh", NOTE)
    h.script("cache/kvasir/vllm/venv/bin/python", NOTE)
    for words, scripts in (([], ["sim_equal.py", "drive.py"]), (["--only", "full"], ["drive.py"]), (["--pooling"], ["pooling.py"]), (["--images", "--seed", "1"], ["images.py"])):
        code, said, calls = h.run("dev", "test-vllm", *words)
        ran = [line for line in calls.splitlines() if line.startswith("python ")]
        assert code == 0 and [line.split()[2] for line in ran] == [f"test/vllm/{s}" for s in scripts], (said, calls)
        assert ran[-1].endswith(" ".join(w for w in words if w not in ("--pooling", "--images"))), ran


def ci_runs_lint_and_tests_and_fails_with_either(h):
    was = (h.tree / "dev").read_text()
    for bad, code in (("", 0), ("lint", 1), ("test", 1)):
        h.script("dev", f'{NOTE}[ "$1" != "{bad}" ]\n')
        got, said, calls = h.run(".ci/run")
        assert got == code and sorted(calls.split("\n")) == ["", "dev lint", "dev test"], (bad, got, said, calls)
    h.script("dev", was)


# Stand-ins for apt: only what is missing is asked for, and only yyjson and llhttp come from the next Debian.
def what_is_missing_is_installed(h):
    shutil.copy(ROOT / "script/install-packages", h.tree / "script/install-packages")
    (h.tree / "etc").mkdir()
    h.script("bin/dpkg-query", 'for name; do :; done\ngrep -qx "$name" "$(dirname "$0")/missing" || echo installed\n')
    h.script("bin/apt-get", NOTE + f'case "$*" in *indextargets*) echo http://mirror/debian;; *" install "*) : >{h.tree}/bin/missing;; esac\n')
    h.script("bin/apt-config", f'echo "sources={h.tree}/etc/ preferences={h.tree}/etc/"\n')
    h.script("bin/dpkg", "echo /keys/debian-archive-keyring.gpg\n")
    h.script("bin/id", "echo 0\n")
    h.script("bin/missing", "")
    assert h.run("script/install-packages", "build", "test") == (0, "", ""), "quick and silent when everything is there"
    h.script("bin/missing", "libuv1-dev\nlibyyjson-dev\nclang-format\n")
    code, said, calls = h.run("script/install-packages", "build", "test")
    assert code == 0 and calls.splitlines()[-1].endswith("install -y --no-install-recommends libuv1-dev libyyjson-dev"), (said, calls)
    pinned = (h.tree / "etc/kvasir-trixie")
    if "VERSION_CODENAME=bookworm" in Path("/etc/os-release").read_text():
        assert "Pin-Priority: -10" in pinned.read_text() and "Package: libyyjson0 libyyjson-dev libllhttp9.2 libllhttp-dev\nPin: release n=trixie\nPin-Priority: 500" in pinned.read_text()
        assert "URIs: http://mirror/debian\nSuites: trixie" in (h.tree / "etc/kvasir-trixie.sources").read_text()
    else:
        assert not pinned.exists()
    h.script("bin/missing", "libuv1-dev\n")
    h.script("bin/id", "echo 1000\n")
    code, said, calls = h.run("script/install-packages", "build")
    assert code == 1 and "libuv1-dev" in said and "as root" in said and not calls, said


# The generated pages are held against what the program says: one word less and the lint fails.
def stale_pages_are_seen(h):
    shutil.copy(ROOT / "script/gen-docs", h.tree / "script/gen-docs")
    shutil.copytree(ROOT / "doc/reference", h.tree / "doc/reference")
    h.script("elsewhere/release/kvasir-docs", f'#!/bin/sh\ncat "{ROOT}/doc/reference/$1.md"\n')
    assert h.run("script/gen-docs", "--check")[0] == 0
    for page in ("options", "metrics", "errors"):
        file = h.tree / f"doc/reference/{page}.md"
        text = file.read_text()
        file.write_text(text.replace("the", "teh", 1))
        code, said, _ = h.run("script/gen-docs", "--check")
        assert code == 1 and f"{page}.md is not what the tables say" in said, said
        file.write_text(text)


def main():
    failed = 0
    tests = [help_and_wrong_words, build_installs_configures_compiles_and_publishes, test_runs_everything_under_release_and_again_under_asan,
             lint_holds_the_rules_and_the_generated_pages, the_other_verbs_call_their_scripts, real_workers_are_proven_by_the_script_that_is_named, ci_runs_lint_and_tests_and_fails_with_either, what_is_missing_is_installed,
             stale_pages_are_seen]
    with tempfile.TemporaryDirectory() as folder:
        for i, test in enumerate(tests):
            try:
                test(House(os.path.join(folder, str(i))))
                print(f"ok   {test.__name__}")
            except AssertionError as fault:
                failed += 1
                print(f"FAIL {test.__name__}: {fault}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
