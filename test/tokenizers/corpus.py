"""Texts that have broken tokenizers, made from a seed: the same seed gives the same texts on every machine, but for the
real files it finds there. corpus(seed, n, added, pieces) yields n strings of valid Unicode."""
import gzip
import random
import unicodedata
from pathlib import Path

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
SPACES = [0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x85, 0xA0, 0x1680, 0x180E, *range(0x2000, 0x200E),
          0x2028, 0x2029, 0x202F, 0x205F, 0x2060, 0x3000, 0xFEFF]
CONTRACTIONS = ["'s", "'S", "'\u017f", "'t", "'T", "'re", "'Re", "'rE", "'RE", "'ve", "'VE", "'m", "'M", "'ll", "'LL", "'lL", "'d", "'D",
                "\u2019s", "\u2019ll", "'", "''", "'x", "'l", "'r", "'v", "'\u212a", "'\u0130"]
# The upper end of what newer Unicode added or changed: the two class tables differ here.
NEW = [*range(0x0870, 0x08A0), *range(0x0C5C, 0x0C5F), *range(0x1C80, 0x1C8B), *range(0x10D40, 0x10D90), *range(0x10EC0, 0x10F00),
       *range(0x11240, 0x11242), *range(0x11380, 0x113E3), *range(0x11B00, 0x11B0A), *range(0x11BC0, 0x11BFA), *range(0x11F00, 0x11F5B),
       *range(0x1343F, 0x13460), *range(0x16100, 0x1613A), *range(0x16D40, 0x16D7A), *range(0x1CC00, 0x1CCF9), *range(0x1E4D0, 0x1E4FA),
       *range(0x1E5D0, 0x1E5FB), *range(0x1FA70, 0x1FAFA), *range(0x31350, 0x31380), *range(0xA7C0, 0xA7DD), *range(0x1F6D8, 0x1F6E0)]
WORDS = """the of and to in is that it was for with as on are this be at by not have from or one had but what all were when we there
can an your which their said if will each about how up out them then she many some so these would other into has more two like
Viet Nam Zürich naïve café señor Ångström ĲSSEL straße ŒUVRE İstanbul ﬁnal Ωμέγα привет Ёлка дом 世界 中文 日本語 テスト ひらがな
한국어 조선말 العربية مرحبا שלום עברית हिन्दी क्षत्रिय বাংলা தமிழ் ไทย ภาษาไทย မြန်မာ ខ្មែរ ქართული հայերեն ᏣᎳᎩ አማርኛ""".split()
EMOJI = ["👍", "👍🏽", "👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇩🇪🇫🇷", "❤️", "☺", "1️⃣", "🫨", "🫱🏻‍🫲🏿", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "\u200d", "\ufe0f"]
CODE = ["for (int i = 0; i < n; ++i) {\n\t\tx[i] += 1.5e-3f;\n\t}", "def f(x, *, y=None):\n    return {k: v for k, v in x.items() if v != y}\n",
        "fn main() -> Result<(), Box<dyn Error>> {\n    println!(\"{:?}\", 0xFF_u8);\n}", "SELECT a.id, COUNT(*) FROM t a WHERE x >= 10 AND y <> 'z''s' GROUP BY 1;",
        "<div class=\"a b\" data-x='1'>\r\n  &nbsp;</div>\r\n", "const f = async (a) => (await a?.b ?? `x${c}`) // ok\n", "package main\n\nimport \"fmt\"\n\nfunc (s *S) M() { s.x <<= 2 }\n",
        "{\"a\":[1,2,{\"b\":null}],\"c\":\"\\u00e9\\n\"}", "#!/bin/sh\nset -eu; for f in *.txt; do echo \"$f\" | sed 's/a/b/g' >>/tmp/x; done\n",
        "data Maybe a = Nothing | Just a deriving (Show, Eq)\n", "class A<T> where T : new() { public int X { get; set; } = 1_000; }\n",
        "\\begin{equation}\\label{e}\\int_0^\\infty e^{-x^2}\\,dx=\\frac{\\sqrt{\\pi}}{2}\\end{equation}", "| a | b |\n|---|:-:|\n| 1 | **2** |\n\n```py\nx\n```\n",
        "(defun f (x) (let ((y (* x 2))) `(,y ,@x)))", "if x ~= nil then return x[#x] end -- lua\n", "%macro f 1\n  mov eax, [rbp-0x10]\n", "let x: Array<Int>? = nil; guard let y = x else { return }\n",
        "@app.route('/x/<int:id>', methods=['GET'])\n", "my %h = map { $_ => 1 } @a; $s =~ s/(\\w+)/\\u$1/g;\n", "SUBROUTINE F(X)\n      REAL*8 X\n      END\n", "key: &a\n  - 'v'\n  - |\n    t\n"]


class Maker:
    def __init__(self, seed, added, pieces, files):
        self.r, self.added, self.pieces, self.files = random.Random(seed), added or ["<s>"], pieces, files
        by = {}
        for c in CODE_POINTS:
            by.setdefault(unicodedata.category(chr(c)), []).append(c)
        self.by = by
        self.marks = [c for c in CODE_POINTS if unicodedata.category(chr(c))[0] == "M"]
        self.numbers = [c for c in CODE_POINTS if unicodedata.category(chr(c))[0] == "N"]
        self.decomposing = [c for c in CODE_POINTS if unicodedata.decomposition(chr(c)) and c < 0x30000]

    # each returns one string

    def one_class_char(self):
        r = self.r
        k = r.random()
        if k < .35:
            return chr(r.randrange(0x20, 0x7F))
        if k < .5:
            return chr(r.choice(SPACES))
        if k < .58:
            return chr(r.choice(NEW))
        if k < .66:
            return chr(r.choice(self.marks))
        if k < .7:
            return r.choice(CONTRACTIONS)
        return chr(r.choice(self.by[r.choice(list(self.by))]))

    def classes(self):
        return "".join(self.one_class_char() for _ in range(self.r.randrange(1, 60)))

    def cased(self):
        pool = "AaZz\u01c5\u02b0\u4e2d\u0301\u0903éÉßſ'\u30fc1\u2160/-\n "
        return "".join(self.r.choice(pool) for _ in range(self.r.randrange(1, 30)))

    def marks_stack(self):
        r = self.r
        base = r.choice([r.choice("aeiouAn"), chr(r.choice(self.decomposing)), chr(r.choice(CODE_POINTS)), ""])
        return r.choice(["", " ", "x"]) + base + "".join(chr(r.choice(self.marks)) for _ in range(r.choice([1, 2, 2, 2, 3, 4, 8, 20, 64]))) + r.choice(["", "b", " "])

    def composed(self):
        r = self.r
        text = "".join(chr(r.choice(self.decomposing)) for _ in range(r.randrange(1, 12)))
        return unicodedata.normalize(r.choice(["NFC", "NFD", "NFKC", "NFKD"]), text) if r.random() < .7 else text

    def hangul(self):
        r = self.r
        jamo = [*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A7, 0x11C3), 0xAC00, 0xAC01, 0xD7A3, 0x115F, 0x1160, 0xA960, 0xD7B0]
        return "".join(chr(r.choice(jamo)) for _ in range(r.randrange(1, 12)))

    def spaces(self):
        r = self.r
        out = []
        for _ in range(r.randrange(1, 8)):
            out.append(chr(r.choice(SPACES)) * r.choice([1, 1, 1, 2, 3, 4, 7, 8, 15, 16, 17, 33]) if r.random() < .75 else r.choice(WORDS + ["1", "!", ".", "x"]))
        return "".join(out)

    def digits(self):
        r = self.r
        zero = r.choice([0x30] * 6 + [0x660, 0x966, 0xFF10, 0x1D7CE, 0x11DE0, 0x10D40])
        n = "".join(chr(zero + r.randrange(10)) for _ in range(r.randrange(1, 41)))
        return r.choice(["", " ", "-", "$", "v"]) + n + r.choice(["", ".5", ",000", "e10", "Ⅷ", "½", "²", "th", " ", chr(r.choice(self.numbers))])

    def contractions(self):
        r = self.r
        return "".join(r.choice([r.choice(WORDS), r.choice(CONTRACTIONS), " ", "I", "DON", "1", "\n"]) for _ in range(r.randrange(2, 14)))

    def prose(self):
        r = self.r
        return " ".join(r.choice(WORDS) + r.choice(["", "", "", ",", ".", "!", "?", "...", "’s", ":", ";", ")", "\n", "\n\n"]) for _ in range(r.randrange(2, 40)))

    def script(self):
        r = self.r
        start = r.choice([0x370, 0x400, 0x530, 0x590, 0x600, 0x700, 0x780, 0x900, 0x980, 0xA00, 0xA80, 0xB00, 0xB80, 0xC00, 0xC80, 0xD00, 0xD80, 0xE00, 0xE80,
                          0xF00, 0x1000, 0x10A0, 0x1200, 0x13A0, 0x1400, 0x1780, 0x1800, 0x1E00, 0x1F00, 0x3040, 0x30A0, 0x3100, 0x4E00, 0x6000, 0x7500, 0xAC00,
                          0xC000, 0xF900, 0xFB50, 0xFE70, 0xFF00, 0x1D400, 0x1F300, 0x1F600, 0x20000, 0x2F800])
        return "".join(chr(start + r.randrange(0x80)) if r.random() < .85 else r.choice(" \n.,1a") for _ in range(r.randrange(1, 50)))

    def emoji(self):
        r = self.r
        return "".join(r.choice(EMOJI + [" ", "a", "\n"]) for _ in range(r.randrange(1, 12)))

    def repeat(self):
        r = self.r
        unit = r.choice(["a", "A", " ", "\n", "\r\n", "\t", "1", "!", "-", "=", "中", "😀", "ab", "é", "e\u0301", "\u0301", "\u200b", "x ", "▁", " ▁", "'", "👍🏽", "ी", chr(r.choice(CODE_POINTS))])
        return unit * r.choice([1, 2, 3, 5, 8, 15, 16, 17, 31, 47, 48, 49, 50, 63, 64, 65, 100, 255, 256, 300])

    def blob(self):
        r = self.r
        alphabet = r.choice(["0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", "01", "ACGT", "(){}[];,.=+-*/<>!&|a1"])
        return "".join(r.choice(alphabet) for _ in range(r.randrange(1, 300)))

    def tokens(self):
        r = self.r
        out = []
        for _ in range(r.randrange(1, 6)):
            t = r.choice(self.added)
            k = r.random()
            if k < .15:
                t = t[:-1]
            elif k < .25:
                t = t[1:]
            elif k < .35:
                t = t[:len(t) // 2] + r.choice(self.added) + t[len(t) // 2:]
            elif k < .4:
                t = t.upper()
            elif k < .45:
                t = t[:1] + "\u0301" + t[1:]
            out.append(t)
            out.append(r.choice(["", "", " ", "  ", "\n", "\n\n", "a", "a b", " a", "\u3000", "\t x", "1", "é", "e\u0301", "\u0301", "▁", "'s", "_", "-", "中"]))
        return r.choice(["", " ", "a", "\n "]) + "".join(out)

    def vocabulary(self):
        r = self.r
        out = "".join(r.choice(self.pieces) for _ in range(r.randrange(1, 12)))
        if r.random() < .3 and len(out) > 2:
            i = r.randrange(len(out))
            out = out[:i] + r.choice([" ", "", "\n", "x", out[:i]]) + out[i + 1:]
        return out

    def code(self):
        r = self.r
        s = "".join(r.choice(CODE) for _ in range(r.randrange(1, 3)))
        i = r.randrange(len(s))
        return s[i:] + s[:i]

    def noise(self):
        r = self.r
        return bytes(r.randrange(256) for _ in range(r.randrange(1, 80))).decode("utf-8", "replace")

    def anything(self):
        return "".join(chr(self.r.choice(CODE_POINTS)) for _ in range(self.r.randrange(1, 40)))

    def sample(self):
        r = self.r
        if not self.files:
            return self.prose()
        text = r.choice(self.files)
        i = r.randrange(max(1, len(text) - 200))
        return text[i:i + r.choice([20, 80, 200, 400, 1500])]

    def mix(self):
        makers = [self.classes, self.spaces, self.digits, self.contractions, self.prose, self.emoji, self.tokens, self.script, self.cased]
        return "".join(self.r.choice(makers)() for _ in range(self.r.randrange(2, 5)))


def systematic():
    """Every code point, in four dresses."""
    for i in range(0, len(CODE_POINTS), 24):
        part = [chr(c) for c in CODE_POINTS[i:i + 24]]
        yield "".join(part)
        if CODE_POINTS[i] < 0x32000 or CODE_POINTS[i] % 24 == 0 and CODE_POINTS[i] >= 0xE0000 and CODE_POINTS[i] < 0xF0100:
            yield " ".join(part)
            yield "a\u0301".join(part) + "\u0327"
            yield "A" + "a".join(part)


def files_here(limit):
    """Texts of many kinds that a machine has: sources, manuals, messages in many languages."""
    found = []
    places = [("/usr/share/locale", "*.mo", 60), ("/usr/lib/python3", "*.py", 20), ("/usr/share/perl", "*.pm", 20), ("/usr/share/doc", "*.gz", 30),
              ("/usr/share/doc", "copyright", 10), ("/usr/share/zoneinfo", "*.tab", 2), (str(Path(__file__).resolve().parents[2] / "src"), "*.[ch]", 40),
              ("/usr/include", "*.h", 20), ("/usr/share/vim", "*.txt", 10), ("/usr/lib/node_modules", "*.md", 20), ("/usr/lib/node_modules", "*.js", 30), ("/usr/share/i18n/locales", "*", 30)]
    for place, pattern, most in places:
        for path in sorted(Path(place).rglob(pattern))[:: max(1, len(sorted(Path(place).rglob(pattern))) // most)][:most]:
            try:
                data = path.read_bytes()[:limit]
                if path.suffix == ".gz":
                    data = gzip.decompress(path.read_bytes())[:limit]
            except OSError:
                continue
            text = data.decode("utf-8", "replace")
            if len(text) > 200:
                found.append(text)
    return found


def long_texts(seed, added, pieces, files):
    """Whole documents, and runs that a slow merge would never finish."""
    m = Maker(seed, added, pieces, files)
    for _ in range(25):
        yield "".join(m.r.choice([m.mix, m.prose, m.sample, m.code])() for _ in range(m.r.choice([50, 300, 900])))
    for unit in ["a", "A", " ", "\n", "1", "!", "中", "😀", "ab", "\u0301", "x\u0301", " ▁", "e "]:
        yield unit * (200000 // len(unit))
    yield "".join(m.r.choice("abcdefgh") for _ in range(100000))
    yield "".join(m.r.choice("一丁七万丈三上下") for _ in range(30000))


def corpus(seed, n, added, pieces, files):
    m = Maker(seed, added, pieces, files)
    share = [(m.classes, 14), (m.cased, 6), (m.marks_stack, 8), (m.composed, 5), (m.hangul, 2), (m.spaces, 8), (m.digits, 4), (m.contractions, 5), (m.prose, 5),
             (m.script, 7), (m.emoji, 2), (m.repeat, 3), (m.blob, 2), (m.tokens, 8), (m.vocabulary, 8), (m.code, 2), (m.noise, 2), (m.anything, 3), (m.sample, 5), (m.mix, 5)]
    makers = [f for f, w in share for _ in range(w)]
    for _ in range(n):
        yield m.r.choice(makers)()
