#!/usr/bin/env python3
"""The lint must see what it promises to see: a small clean tree passes, and with each kind of fault planted it fails.

The tree is made here (real ROOMS, real lint, a handful of tiny rooms), so these tests do not depend on src/.
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

CLEAN = {
    "src/base/str.h": "#ifndef BASE_STR_H\n#define BASE_STR_H\n#include <stddef.h>\nsize_t str_len(const char *z);\n#endif\n",
    "src/base/str.c": '#include "base/str.h"\n#include <string.h>\nsize_t str_len(const char *z) { return strlen(z); }\n',
    "src/base/log.h": "#ifndef BASE_LOG_H\n#define BASE_LOG_H\nvoid log_line(const char *event);\n#endif\n",
    "src/base/log.c": '#include "base/log.h"\n#include <stdio.h>\nvoid log_line(const char *event) { fputs(event, stderr); }\n',
    "src/wire/json.c": "#include <stddef.h>\n#include <yyjson.h>\nsize_t json_size(void);\nsize_t json_size(void) { return sizeof(yyjson_doc *); }\n",
    "src/net/io/loop.h": "#ifndef IO_LOOP_H\n#define IO_LOOP_H\nlong io_now(void);\n#endif\n",
    "src/net/io/loop.c": '#include "io/loop.h"\n#include <time.h>\nlong io_now(void) { return (long)time(NULL); }\n',
    "src/core/kv/index.h": "#ifndef KV_INDEX_H\n#define KV_INDEX_H\nint kv_index_size(const char *z);\n#endif\n",
    "src/core/kv/index.c": '#include "kv/index.h"\n#include "base/str.h"\nint kv_index_size(const char *z) { return (int)str_len(z); }\n',
    "src/core/engine/vllm.c": 'const char *vllm_metric(void);\nconst char *vllm_metric(void) { return "vllm:num_requests_running"; }\n',
    "src/core/sched/pick.h": "#ifndef SCHED_PICK_H\n#define SCHED_PICK_H\nint sched_pick(int n);\n#endif\n",
    "src/core/sched/pick.c": '#include "sched/pick.h"\n#include <math.h>\nint sched_pick(int n) { return (int)sqrt((double)n); }\n',
    "src/edge/gate/gate.c": '#include "base/log.h"\n#include "io/loop.h"\n#include "kv/index.h"\n'
                            'int gate_go(void);\nint gate_go(void) { log_line("go"); return kv_index_size("x") + (int)io_now(); }\n',
    "src/tool/sim/sim.c": 'const char *sim_shape(void);\nconst char *sim_shape(void) { return "vllm"; }\n',
    "src/cmd/kvasir.c": "int main(void) { return 0; }\n",
    "script/ok.sh": "#!/bin/sh\necho fine\n",
}

LONG_FUNCTION = "int kv_long(int x);\nint kv_long(int x)\n{\n" + "\tx++;\n" * 80 + "\treturn x;\n}\n"

# name, file, text put at its end (or a whole new file), the rule that must speak, a word it must say
PLANTED = [
    ("core sees net", "src/core/kv/index.c", '#include "io/loop.h"\n', "include", "kv may not include io"),
    ("base sees wire", "src/base/str.c", '#include "wire/json.h"\n', "include", "base may not include wire"),
    ("the simulator sees the judged code", "src/tool/sim/sim.c", '#include "sched/pick.h"\n', "include", "sim may not include sched"),
    ("include without a room", "src/core/kv/index.c", '#include "index.h"\n', "include", "names no room"),
    ("include of a missing file", "src/core/kv/index.c", '#include "kv/gone.h"\n', "include", "does not exist"),
    ("libuv outside net/io", "src/edge/gate/gate.c", "#include <uv.h>\n", "header", "belongs to io"),
    ("yyjson outside wire", "src/core/kv/index.c", "#include <yyjson.h>\n", "header", "belongs to wire"),
    ("a library nobody knows", "src/edge/gate/gate.c", "#include <zlib.h>\n", "header", "ROOMS does not know"),
    ("a library in a public header", "src/net/io/tcp.h", "#include <uv.h>\n", "header", "public header"),
    ("a clock's header in core", "src/core/kv/index.c", "#include <time.h>\n", "header", "only computes"),
    ("a file outside every room", "src/core/util/x.c", "int x_y;\n", "rooms", "no room"),
    ("a foreign prefix", "src/core/kv/index.c", "int index_count(void);\nint index_count(void) { return 1; }\n", "prefix", "index_count"),
    ("a file of wire with another's prefix", "src/wire/json.c", "int sse_x(void);\nint sse_x(void) { return 1; }\n", "prefix", "json_"),
    ("public data without prefix", "src/core/kv/index.c", "int counter = 3;\n", "prefix", "counter"),
    ("cmd defines more than main", "src/cmd/kvasir.c", "int helper(void);\nint helper(void) { return 1; }\n", "prefix", "main and nothing else"),
    ("core reads the clock", "src/core/kv/index.c", "long time(long *);\nint kv_t(void);\nint kv_t(void) { return (int)time(0); }\n", "purity", "time"),
    ("core allocates", "src/core/kv/index.c", "#include <stdlib.h>\nvoid *kv_m(void);\nvoid *kv_m(void) { return malloc(9); }\n", "purity", "malloc"),
    ("core calls a room it does not see", "src/core/kv/index.c", "long io_now(void);\nint kv_n(void);\nint kv_n(void) { return (int)io_now(); }\n",
     "purity", "io_now of io"),
    ("a log call below edge", "src/core/kv/index.c", '#include "base/log.h"\nvoid kv_l(void);\nvoid kv_l(void) { log_line("x"); }\n', "log", "log_line"),
    ("a socket outside net/io", "src/edge/gate/gate.c", "#include <sys/socket.h>\nint gate_s(void);\nint gate_s(void) { return socket(1, 1, 0); }\n",
     "syscall", "socket"),
    ("a clock in edge", "src/edge/gate/gate.c", "#include <time.h>\nint gate_t(void);\nint gate_t(void) { return (int)time(0); }\n", "syscall", "time"),
    ("a file read in edge", "src/edge/gate/gate.c", "#include <stdio.h>\nvoid *gate_f(void);\nvoid *gate_f(void) { return fopen(\"x\", \"r\"); }\n",
     "syscall", "fopen"),
    *[(f"banned {f}", "src/core/kv/index.c", f"#define KV_X(a, b) {f}(a, b)\n", "banned", f)
      for f in ("strcpy", "strcat", "sprintf", "alloca", "gets", "strtok", "atoi", "rand")],
    ("a vendor's name outside its room", "src/edge/gate/gate.c", 'static const char *vendor __attribute__((unused)) = "vllm:x";\n', "vendor", "vllm"),
    ("free text in a log line", "src/edge/gate/gate.c", '#define GATE_L(n) LOG_INFO("event", "n=%d it went wrong", n)\n', "pairs", "n=%d it went wrong"),
    ("free text in a long log line", "src/edge/gate/gate.c", '#if 0\nLOG_AT(n, n ? "a" : "b", "n=%d "\n"bad (%s)", n);\n#endif\n', "pairs", "bad (%s)"),
    ("a header that needs another first", "src/core/kv/bad.h", "struct kv_bad { size_t n; };\n", "alone", "size_t"),
    ("a long function", "src/core/kv/index.c", LONG_FUNCTION, "function-size", "kv_long"),
    ("a long file", "src/core/kv/index.c", "/* x */\n" * 1001, "file-size", "1000"),
    ("a shell script that does not parse", "script/bad.sh", "#!/bin/sh\nif true; then\n", "scripts", "bad.sh"),
    ("a Python script that does not compile", "script/bad.py", "def f(:\n", "scripts", "bad.py"),
    ("an exception without a reason", "script/lint-exceptions", "vendor src/x.c\n", "exceptions", "no reason"),
    ("an exception that excuses nothing", "script/lint-exceptions", "vendor src/x.c was once needed\n", "exceptions", "any more"),
    ("a source that has no object", "src/core/kv/late.c", "#error not yet\n", "build", "did not compile"),
]

# The same words where they are no fault.
ALLOWED = [
    ("a banned word in a comment", "src/core/kv/index.c", "/* never strcpy() */ // nor vllm\n"),
    ("a banned word inside a name", "src/core/kv/index.c", "int kv_rand(void);\nint kv_rand(void) { return 1; }\n"),
    ("a log line of pairs", "src/edge/gate/gate.c", '#define GATE_L(n, s) LOG_WARN_EVERY(9, "x", "n=%d why=\\"%s, too\\" " "at=%.*s:%u", n, s)\n'),
    ("the logarithm is no log call", "src/core/sched/pick.c", "double sched_l(double x);\ndouble sched_l(double x) { return log(x); }\n"),
    ("a static name needs no prefix", "src/core/kv/index.c", "static int helper(void) { return 1; }\nint kv_h(void);\nint kv_h(void) { return helper(); }\n"),
    ("a library in a private header", "src/net/io/io_priv.h", "#include <uv.h>\n"),
    ("a fault with a reasoned exception", "script/lint-exceptions", None),
]


def put(tree, path, text):
    file = tree / path
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "a") as f:
        f.write(text)


def make_tree(folder):
    for path, text in CLEAN.items():
        put(folder, path, text)
    for path in ("ROOMS", "script/lint.py", "script/pure-symbols"):
        shutil.copy(ROOT / path, folder / path)
    return folder


# Compiles as the build would name the objects; what does not compile leaves none.
def compile_source(tree, source):
    room = "kvasir" if source.parent.name == "cmd" else f"room_{source.parent.name}"
    path = source.relative_to(tree).as_posix()
    target = tree / "build/CMakeFiles" / f"{room}.dir" / f"{path}.o"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    roots = [arg for r in ("src", "src/core", "src/edge", "src/net", "src/tool") for arg in ("-iquote", str(tree / r))]
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-fno-builtin", "-c", *roots, str(source), "-o", str(target)],
                   stderr=subprocess.DEVNULL, check=False)


def lint(tree):
    result = subprocess.run([sys.executable, "-B", str(tree / "script/lint.py"), "--build", str(tree / "build")],
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def expect(name, good, output, failures):
    print(f"{'ok  ' if good else 'FAIL'} {name}")
    if not good:
        failures.append(name)
        print("    | " + output.replace("\n", "\n    | "))


def planted(clean, name, path, text):
    """A copy of the clean tree with one thing added, compiled and linted."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(clean, tree)
        if text is None:
            put(tree, "src/core/kv/index.c", "#define KV_X(a, b) strcpy(a, b)\n")
            text = "banned src/core/kv/index.c:strcpy it is the point of this test\n"
        put(tree, path, text)
        if path.endswith(".c"):
            compile_source(tree, tree / path)
        return lint(tree)


def main():
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        clean = make_tree(Path(folder))
        for source in sorted((clean / "src").rglob("*.c")):
            compile_source(clean, source)
        code, output = lint(clean)
        expect("the clean tree passes", code == 0, output, failures)
        expect("and its sizes are reported", re.search(r"lines per function +\d+ +median", output) and re.search(r"lines per file +\d+ +median", output), output, failures)
        for name, path, text, rule, word in PLANTED:
            code, output = planted(clean, name, path, text)
            lines = [l for l in output.splitlines() if f"[{rule}]" in l and word in l]
            expect(f"fails on: {name}", code == 1 and bool(lines), output, failures)
        for name, path, text in ALLOWED:
            code, output = planted(clean, name, path, text)
            expect(f"passes: {name}", code == 0, output, failures)
    print(f"{2 + len(PLANTED) + len(ALLOWED) - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


sys.exit(main())
