"""Texts to measure with, a megabyte each where there is so much, from what a machine has; nothing of them is in this repository.

prose  the topics of Python's own help (pydoc_data) and the licences in /usr/share/common-licenses: paragraphs of English
code   Python's standard library and the C headers in /usr/include, pieces of 12,000 characters, half each
mixed  translated messages in 27 languages, equal shares: gettext catalogues in /usr/share/locale, and where these say too
       little those of the package pycountry (names of countries, places and languages)

The same seed on the same machine gives the same texts.
"""
import gettext
import os
import pydoc_data.topics
import random
from pathlib import Path

BYTES = 1000000
LANGUAGES = "de fr es it pt nl pl cs ru uk bg el tr hu fi sv vi id ja ko zh_CN ar he fa hi th ta".split()


def bounded(parts, most):
    """The first parts of `most` bytes together, whole ones."""
    out, n = [], 0
    for part in parts:
        n += len(part.encode())
        if n > most:
            break
        out.append(part)
    return out


def prose(r):
    sources = list(pydoc_data.topics.topics.values())
    sources += [p.read_text("utf-8", "replace") for p in sorted(Path("/usr/share/common-licenses").glob("*")) if p.is_file()]
    parts = {p.strip(): None for s in sources for p in s.split("\n\n")}
    parts = [p for p in parts if len(p) > 80 and sum(c.isalpha() or c.isspace() for c in p) > 0.9 * len(p)]
    r.shuffle(parts)
    return "\n\n".join(bounded(parts, BYTES))


def code(r):
    python = [p for p in Path(os.__file__).parent.rglob("*.py") if not {"test", "tests", "site-packages", "pydoc_data", "encodings", "idlelib"} & set(p.parts)]
    parts = []
    for files in (python, list(Path("/usr/include").rglob("*.h"))):
        files.sort()
        r.shuffle(files)
        texts = (f.read_text("utf-8", "ignore") for f in files)
        parts += bounded((t[:12000] for t in texts if len(t) > 3000), BYTES // 2)
    r.shuffle(parts)
    return "\n".join(parts)


def messages(path):
    """Those of a catalogue that are translated."""
    try:
        with open(path, "rb") as f:
            return [v for k, v in gettext.GNUTranslations(f)._catalog.items() if k and v and v != k]
    except (OSError, UnicodeDecodeError):
        return []


def language(name, r, most):
    """Sentences first, then what is shorter; catalogues are read until there is enough."""
    import pycountry
    long, short = {}, {}
    for place in (Path("/usr/share/locale"), Path(pycountry.__file__).parent / "locales"):
        paths = sorted((place / name / "LC_MESSAGES").glob("*.mo"))
        r.shuffle(paths)
        for path in paths:
            if sum(map(len, long)) > 4 * most:
                break
            for m in messages(path):
                (short if len(m) < 40 else long)[m] = None
    found = [list(long), list(short)]
    for part in found:
        r.shuffle(part)
    return bounded(found[0] + found[1], most)


def mixed(r):
    parts = []
    for name in LANGUAGES:
        mine = language(name, r, BYTES // len(LANGUAGES))
        parts += ["\n".join(mine[i:i + 8]) for i in range(0, len(mine), 8)]
    r.shuffle(parts)
    return "\n\n".join(parts)


def texts(seed):
    """[(name, text)]"""
    return [(f.__name__, f(random.Random(seed))) for f in (prose, code, mixed)]
