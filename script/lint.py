#!/usr/bin/env python3
"""The rules of the house that a compiler does not know. Prints every fault and ends with their number.

lint.py [--tree DIR] [--build DIR] [RULE...]

--tree   the source tree (default: the one this script lies in)
--build  a release build of it: the rules that look at symbols need one and are left out without it
RULE     run only these rules (default: all); lint.py --list names them

Faults that must stay are listed with a reason in script/lint-exceptions.
"""
import argparse
import concurrent.futures
import fnmatch
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 1000

# Where a layer may be named by its own words.
VENDORS = re.compile(r"vllm|sglang|trt_?llm|tensorrt|llama_?cpp|llama\.cpp|openai|anthropic|bedrock|gemini|ollama", re.I)
VENDOR_ROOMS = {"src/core/api", "src/core/engine", "src/tool/sim", "src/tool/bench"}

BANNED = {
    "strcpy": "memcpy with a known length", "strcat": "buf_*", "sprintf": "snprintf or buf_*", "alloca": "an arena",
    "gets": "nothing at all", "strtok": "str_cut", "atoi": "str_to_i64", "rand": "base/rand.h",
}

# Standard headers for rooms that only compute; everybody else may use what libc and the kernel have.
PURE_HEADERS = set("""assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stdalign.h stdarg.h stdatomic.h
stdbool.h stddef.h stdint.h stdio.h stdlib.h stdnoreturn.h string.h""".split())
LIBC_FOLDERS = ("sys/", "netinet/", "arpa/", "net/", "linux/", "asm/", "bits/")
LIBC_HEADERS = PURE_HEADERS | set("""byteswap.h dirent.h endian.h execinfo.h fcntl.h getopt.h grp.h immintrin.h
langinfo.h libgen.h locale.h malloc.h netdb.h poll.h pthread.h pwd.h sched.h semaphore.h setjmp.h signal.h spawn.h
strings.h syslog.h termios.h time.h unistd.h wchar.h x86intrin.h arm_neon.h cpuid.h""".split())

# Clocks, threads, sockets: net/io's alone. Files: tools and programs may write their own.
SYSTEM_CALLS = set("""clock_gettime gettimeofday time clock nanosleep clock_nanosleep usleep sleep alarm
socket connect bind listen accept accept4 send sendto sendmsg recv recvfrom recvmsg shutdown setsockopt getsockopt
poll ppoll select pselect epoll_create1 epoll_ctl epoll_wait eventfd pipe pipe2 timerfd_create signalfd
inotify_init inotify_init1 inotify_add_watch getaddrinfo gethostbyname signal sigaction raise kill
fork vfork execv execve execvp execl execlp posix_spawn popen system syscall getrandom getentropy
pthread_create pthread_join pthread_cond_wait""".split())
FILE_CALLS = set("""open open64 openat fopen fopen64 fdopen freopen read pread write pwrite fread fgets getline getdelim
opendir readdir scandir stat lstat fstat mmap munmap unlink rename mkdir fsync close""".split())
FILE_ROOMS = ("src/base", "src/net/io", "src/tool/", "src/cmd")


# ---- the tree -------------------------------------------------------------------------------------------------

class Room:
    def __init__(self, line):
        self.path, prefixes, rooms, headers = (field.strip() for field in line.split("|"))
        self.name = self.path.rsplit("/", 1)[1]
        self.prefixes = prefixes.split()
        self.patterns = [p for p in rooms.split() if p != "-"]
        self.headers = [h for h in headers.split() if h != "-"]

    def sees(self, other):
        short = other.path.removeprefix("src/")
        return other is self or any(fnmatch.fnmatchcase(short, p) for p in self.patterns)

    def is_core(self):
        return self.path.startswith("src/core/")

    def below_edge(self):
        return self.is_core() or self.path == "src/wire" or self.path.startswith("src/net/")


class Tree:
    def __init__(self, root, build):
        self.root, self.build = root, build
        lines = (root / "ROOMS").read_text().splitlines()
        self.rooms = [Room(l) for l in lines if l.startswith("src/")]
        self.by_name = {r.name: r for r in self.rooms}
        self.by_path = {r.path: r for r in self.rooms}
        self.faults, self.texts = [], {}
        self.exceptions = read_exceptions(root / "script/lint-exceptions")
        self.used = set()

    def files(self, folder, *suffixes):
        base = self.root / folder
        return sorted(p.relative_to(self.root).as_posix() for p in base.rglob("*") if p.suffix in suffixes and p.is_file())

    def room_of(self, path):
        return self.by_path.get(path.rsplit("/", 1)[0])

    def text(self, path):
        if path not in self.texts:
            self.texts[path] = (self.root / path).read_text(errors="replace")
        return self.texts[path]

    def fault(self, rule, path, message, line=0, name=""):
        """name: the symbol or function concerned, so that an exception can excuse it alone."""
        for key in ((rule, f"{path}:{name}"), (rule, path)):
            if key in self.exceptions:
                self.used.add(key)
                return
        where = f"{path}:{line}" if line else path
        self.faults.append(f"{where}: {message} [{rule}]")


def read_exceptions(path):
    found = {}
    if path.exists():
        for line in path.read_text().splitlines():
            fields = line.split(None, 2)
            if fields and not line.startswith("#"):
                found[(fields[0], fields[1])] = fields[2] if len(fields) > 2 else ""
    return found


# Comments and string contents become blanks; line numbers stay.
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def strip(text, strings):
    def blank(match):
        token = match.group()
        if token[0] == "/" or strings:
            return " " + "\n" * token.count("\n")
        return token
    return TOKEN.sub(blank, text)


def numbered(text):
    return enumerate(text.splitlines(), 1)


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, **more)


# ---- rules about the text -------------------------------------------------------------------------------------

def rule_rooms(tree):
    """Every C file of src/ lies in a room, directly."""
    for path in tree.files("src", ".c", ".h", ".def"):
        if tree.room_of(path) is None:
            tree.fault("rooms", path, "lies in no room of ROOMS")


INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def rule_include(tree):
    """A file includes its own room and those that ROOMS lets it see, always as "room/file.h"."""
    for path in tree.files("src", ".c", ".h", ".def"):
        room = tree.room_of(path)
        for line, text in numbered(strip(tree.text(path), strings=False)):
            match = INCLUDE.match(text)
            if room and match:
                check = check_own_include if match[1] == '"' else check_system_include
                check(tree, room, path, line, match[2])


def check_own_include(tree, room, path, line, header):
    other = tree.by_name.get(header.split("/", 1)[0]) if "/" in header else None
    if other is None:
        tree.fault("include", path, f'"{header}" names no room: write "room/file.h", <...> for a library', line)
    elif not room.sees(other):
        tree.fault("include", path, f'{room.name} may not include {other.name} ("{header}"); ROOMS says whom it sees', line)
    elif not (tree.root / other.path / header.split("/", 1)[1]).exists():
        tree.fault("include", path, f'"{header}" does not exist', line)


def check_system_include(tree, room, path, line, header):
    def named_by(r):
        return any(fnmatch.fnmatchcase(header, h) for h in r.headers)
    owners = [r.name for r in tree.rooms if named_by(r)]
    if named_by(room):
        if path.endswith(".h") and not path.endswith("_priv.h") and room.name != "base":
            tree.fault("header", path, f"<{header}> in a public header shows the library to every room: use the .c or {room.name}_priv.h", line)
    elif owners:
        tree.fault("header", path, f"<{header}> belongs to {', '.join(owners)}, not to {room.name}", line)
    elif room.is_core() or room.name == "wire":
        if header not in PURE_HEADERS:
            tree.fault("header", path, f"<{header}> is more than a room that only computes may use", line)
    elif header not in LIBC_HEADERS and not header.startswith(LIBC_FOLDERS):
        tree.fault("header", path, f"<{header}> is a library that ROOMS does not know", line)


BANNED_CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")


def rule_banned(tree):
    """Functions that are never the right one."""
    for folder in ("src", "test"):
        for path in tree.files(folder, ".c", ".h"):
            for line, text in numbered(strip(tree.text(path), strings=True)):
                for match in BANNED_CALL.finditer(text):
                    tree.fault("banned", path, f"{match[1]}() is banned: use {BANNED[match[1]]}", line, match[1])


LOG_CALL = re.compile(r"\bLOG_(?:ERROR|WARN|INFO|DEBUG)\(|\bLOG_AT\([^,]*,|\bLOG_WARN_EVERY\(\d+,")
LITERAL = re.compile(r'\s*"((?:[^"\\]|\\.)*)"')
PAIR = r"""\w+=(?:\\"[^"\\]*\\"|[^\s"\\]+)"""


def rule_pairs(tree):
    """A log line is nothing but key=value pairs; a value with spaces stands in quotes."""
    for path in tree.files("src", ".c"):
        text = strip(tree.text(path), strings=False)
        for call in LOG_CALL.finditer(text):
            form = re.compile(r",\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+)[,)]").search(text, call.end())
            words = "".join(LITERAL.findall(form[1])) if form else ""
            if not re.fullmatch(f"{PAIR}(?: {PAIR})*", words):
                tree.fault("pairs", path, f'"{words}" is not key=value pairs alone', text.count("\n", 0, call.start()) + 1)


def rule_vendor(tree):
    """A vendor's word stands only where vendors are handled."""
    for path in tree.files("src", ".c", ".h", ".def"):
        room = tree.room_of(path)
        if room and room.path not in VENDOR_ROOMS:
            for line, text in numbered(strip(tree.text(path), strings=False)):
                match = VENDORS.search(text)
                if match:
                    tree.fault("vendor", path, f"'{match[0]}' may be named only in {', '.join(sorted(VENDOR_ROOMS))}", line, match[0])


def rule_alone(tree):
    """Each header compiles without another before it."""
    flags = ["-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-Wno-unused", "-fsyntax-only"]
    for folder in ("src", "src/core", "src/edge", "src/net", "src/tool"):
        flags += ["-iquote", str(tree.root / folder)]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, result in pool.map(lambda p: (p, compile_text(flags, f'#include "{tree.root / p}"\n')), tree.files("src", ".h")):
            if result.returncode != 0:
                first = next((l for l in result.stderr.splitlines() if "error" in l), result.stderr.strip())
                tree.fault("alone", path, f"does not compile alone: {first}")


def compile_text(flags, text):
    return subprocess.run([os.environ.get("CC", "cc"), *flags, "-x", "c", "-"], input=text, capture_output=True, text=True, check=False)


def rule_size(tree):
    """Functions of at most 70 lines, files of at most 1000; prints the distribution."""
    files = tree.files("src", ".c", ".h")
    lengths = []
    for path in files:
        lines = tree.text(path).count("\n")
        if lines > FILE_LINES_MAX:
            tree.fault("file-size", path, f"{lines} lines, more than {FILE_LINES_MAX}")
    for path, name, start, end in functions(tree, files):
        lengths.append(end - start + 1)
        if lengths[-1] > FUNCTION_LINES_MAX:
            tree.fault("function-size", path, f"{name}() has {lengths[-1]} lines, more than {FUNCTION_LINES_MAX}", start, name)
    print_sizes(tree, files, lengths)


def functions(tree, files):
    if not files:
        return
    tags = run("ctags", "--languages=C", "--langmap=C:.c.h", "--kinds-C=f", "--fields=+ne", "--sort=no", "-f", "-",
               "-I", "must_use,nonnull_all,maybe_unused,no_return,printf_like+,cleanup_with+", *files, cwd=tree.root)
    for line in tags.stdout.splitlines():
        start, end = re.search(r"\tline:(\d+)", line), re.search(r"\tend:(\d+)", line)
        if start and end:
            name, path = line.split("\t")[:2]
            yield path, name, int(start[1]), int(end[1])
    if tags.returncode != 0:
        tree.fault("size", "ctags", f"failed: {tags.stderr.strip()}")


def print_sizes(tree, files, lengths):
    def row(what, values):
        values = sorted(values)
        if len(values) > 1:
            print(f"   {what:20} {len(values):5}   median {statistics.median(values):4.0f}   p90 {values[int(len(values) * 0.9)]:4}   max {values[-1]:4}")
    comments = sum(sum(len(t) for t in TOKEN.findall(tree.text(p)) if t[0] == "/") for p in files)
    total = sum(len(tree.text(p)) for p in files)
    row("lines per function", lengths)
    row("lines per file", [tree.text(p).count("\n") for p in files])
    if total:
        print(f"   comments             {100 * comments / total:4.0f} % of the bytes")


def rule_scripts(tree):
    """Shell scripts parse, Python compiles."""
    names = ["dev", ".ci/run"] + [p.relative_to(tree.root).as_posix() for d in ("script", "test", "deploy") if (tree.root / d).is_dir()
                                  for p in sorted((tree.root / d).rglob("*")) if p.is_file()]
    for path in names:
        if not (tree.root / path).exists() or Path(path).suffix in (".c", ".h", ".xml", ".json", ".bin"):
            continue
        with open(tree.root / path, "rb") as f:
            first = f.readline(80)
        if path.endswith(".py") or b"python" in first and first.startswith(b"#!"):
            check_python(tree, path)
        elif path.endswith(".sh") or first.startswith(b"#!") and b"sh" in first:
            result = run("bash" if b"bash" in first else "sh", "-n", str(tree.root / path))
            if result.returncode != 0:
                tree.fault("scripts", path, result.stderr.strip())


def check_python(tree, path):
    try:
        compile(tree.text(path), path, "exec")
    except SyntaxError as error:
        tree.fault("scripts", path, f"{error.msg}", error.lineno or 0)


# ---- rules about the objects ----------------------------------------------------------------------------------

class Objects:
    """The symbols of every object: (path of the .c file, room, symbol) lists."""

    def __init__(self, tree):
        self.defined, self.undefined = [], []
        for room in tree.rooms:
            sources = [p for p in tree.files(room.path, ".c")]
            objects = self.find(tree, room, sources)
            for source in sources:
                if source in objects:
                    self.read(room, source, objects[source])
                else:
                    tree.fault("build", source, "did not compile (there is no object of it in the build folder)")

    @staticmethod
    def find(tree, room, sources):
        found = {}
        for source in sources:
            target = Path(source).stem if room.name == "cmd" else f"room_{room.name}"
            path = tree.build / "CMakeFiles" / f"{target}.dir" / f"{source}.o"
            if path.exists():
                found[source] = path
        return found

    def read(self, room, source, path):
        for line in run("nm", "-g", str(path)).stdout.splitlines():
            kind, symbol = line.split()[-2:]
            if kind == "U":
                self.undefined.append((source, room, symbol))
            elif kind not in "wv":
                self.defined.append((source, room, symbol))


def rule_prefix(tree, objects):
    """A room's public symbols begin with its prefix."""
    for path, room, symbol in objects.defined:
        stem = re.sub(r"\W", "_", Path(path).stem)
        if room.name == "cmd":
            if symbol != "main":
                tree.fault("prefix", path, f"{symbol}: cmd defines main and nothing else", name=symbol)
            continue
        prefixes = [stem if p == "@file" else p for p in room.prefixes]
        if not any(symbol == p or symbol.startswith(p + "_") for p in prefixes):
            tree.fault("prefix", path, f"{symbol}: a public name here begins with {' or '.join(p + '_' for p in prefixes)}", name=symbol)


def rule_purity(tree, objects):
    """Core calls only itself, the rooms it sees, and what script/pure-symbols lists."""
    lines = (tree.root / "script/pure-symbols").read_text().splitlines()
    allowed = re.compile("|".join(f"(?:{l.strip()})" for l in lines if l.strip() and not l.startswith("#")))
    owner = {symbol: room for _, room, symbol in objects.defined}
    for path, room, symbol in objects.undefined:
        if not room.is_core() or allowed.fullmatch(symbol):
            continue
        if symbol in owner:
            if not room.sees(owner[symbol]):
                tree.fault("purity", path, f"calls {symbol} of {owner[symbol].name}, which {room.name} does not see", name=symbol)
        else:
            tree.fault("purity", path, f"calls {symbol}: core only computes (script/pure-symbols lists what it may call)", name=symbol)


def rule_log(tree, objects):
    """Rooms below edge return errors; they never log."""
    own = {symbol for path, room, symbol in objects.defined if path == "src/base/log.c"}
    for path, room, symbol in objects.undefined:
        if room.below_edge() and (symbol in own and symbol != "log" or symbol.startswith("log_")):
            tree.fault("log", path, f"calls {symbol}: rooms below edge return an error and never log", name=symbol)


def rule_syscall(tree, objects):
    """Clocks, sockets and threads are net/io's; files too, except in the tools and programs."""
    for path, room, symbol in objects.undefined:
        if room.path == "src/net/io":
            continue
        bare = re.sub(r"^__(\w+)_chk$", r"\1", symbol)
        if bare in SYSTEM_CALLS or bare in FILE_CALLS and not room.path.startswith(FILE_ROOMS):
            tree.fault("syscall", path, f"calls {symbol}: only net/io talks to the system", name=symbol)


# ---------------------------------------------------------------------------------------------------------------

TEXT_RULES = [rule_rooms, rule_include, rule_banned, rule_pairs, rule_vendor, rule_scripts, rule_alone, rule_size]
OBJECT_RULES = [rule_prefix, rule_purity, rule_log, rule_syscall]


def name_of(rule):
    return rule.__name__.removeprefix("rule_")


def report_unused(tree):
    for rule, path in sorted(set(tree.exceptions) - tree.used):
        tree.faults.append(f"script/lint-exceptions: '{rule} {path}' excuses nothing any more [exceptions]")
    for (rule, path), reason in sorted(tree.exceptions.items()):
        if not reason:
            tree.faults.append(f"script/lint-exceptions: '{rule} {path}' has no reason [exceptions]")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--build", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("rules", nargs="*")
    args = parser.parse_args()
    if args.list:
        for rule in TEXT_RULES + OBJECT_RULES:
            print(f"{name_of(rule):10} {rule.__doc__}")
        return 0
    tree = Tree(args.tree, args.build)
    wanted = [r for r in TEXT_RULES + OBJECT_RULES if not args.rules or name_of(r) in args.rules]
    objects = Objects(tree) if args.build and any(r in OBJECT_RULES for r in wanted) else None
    for rule in wanted:
        if rule in TEXT_RULES:
            rule(tree)
        elif objects:
            rule(tree, objects)
        else:
            print(f"   {name_of(rule)}: left out, needs --build")
    if args.build and not args.rules:
        report_unused(tree)
    for fault in tree.faults:
        print(f"   {fault}")
    print(f"   {len(tree.faults)} faults")
    return 1 if tree.faults else 0


sys.exit(main())
