"""Text that native loops read: characters as codes, compared, asked, kept in lists and dicts; strings that differ from call to call."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters
from flambeau.testing.loops import check, run, same

DNA = "".join("ACGT"[k] for k in np.random.default_rng(0).integers(0, 4, 1500))
WORDS = "Hello, World 42 of\tnative loops\n" * 40


def hamming(a, b):
    d = 0
    for x, y in zip(a, b):
        if x != y:
            d += 1
    return d


def share(s, t):
    n = 0
    for c in s:
        if c == "G" or c == "C":
            n += 1
    return n / len(s)


def counts(s, t):
    made = {}
    for c in s:
        made[c] = made.get(c, 0) + 1
    return made


def longest_common(a, b):
    a, b = a[:60], b[10:80]
    table = np.zeros((len(a) + 1, len(b) + 1), np.int64)
    for i in range(len(a)):
        for j in range(len(b)):
            same = a[i] == b[j]
            table[i + 1, j + 1] = table[i, j] + 1 if same else max(table[i, j + 1], table[i + 1, j])
    return table


def balanced(s, t):
    depth = 0
    for c in s:
        if c == "A":
            depth += 1
        elif c == "C":
            depth -= 1
            if depth < -1000:
                return False
    return depth == 0


def words_of_codes(s, t):
    made, code, h = {}, {"A": 0, "C": 1, "G": 2, "T": 3}, 0
    for i in range(len(s)):
        h = (h * 4 + code[s[i]]) % 64
        if i >= 2:
            made[h] = made.get(h, 0) + 1
    return made


def pairs(s, t):
    made, last = {}, "A"
    for c in s:
        made[last, c] = made.get((last, c), 0) + 1
        last = c
    return made


def runs(s, t):
    out, i = [], 0
    while i < len(s):
        j = i
        while j < len(s) and s[j] == s[i]:
            j += 1
        out.append((s[i], j - i))
        i = j
    return out


def found(s, t):
    out, k = [], 0
    for i in range(len(s) - 2):
        if s[i : i + 3] == "ACG":
            out.append(i)
        if s[i : i + 2] != t[-1 - i : 1 - i]:
            k += 1
    return out, k


def backwards(s, t):
    value, total, last = {"A": 1, "C": 5, "G": 10, "T": 50}, 0, 0
    for c in reversed(s):
        v = value[c]
        total += -v if v < last else v
        last = v
    for k, c in enumerate(reversed(t)):
        total += k * (c > "C")
    return total


def stack(s, t):
    open_, k = [], 0
    for c in s:
        if c in "AC":
            open_.append(c)
        elif open_ and (open_.pop(), c) in (("A", "T"), ("C", "G")):
            k += 1
    return k, open_


def distinct(s, t):
    seen, most, at = set(), 0, 0
    for i in range(len(s)):
        seen.add(s[i])
        if s.count(s[i]) > most:
            most, at = s.count(s[i]), i
    return len(seen), most, at, seen


def kinds(s, t):
    digits = letters = spaces = upper = total = 0
    for i, c in enumerate(s):
        if c.isdigit():
            digits += int(c) * i
        elif c.isalpha():
            letters += 1
            upper += c.isupper()
            if c.lower() in {"a", "e", "i", "o", "u"} and "a" <= c.lower() < "v":
                total += ord(c)
        elif c.isspace():
            spaces += 1
    return digits, letters, spaces, upper, total


def shifted(s, t):
    out = []
    for c in s:
        if "a" <= c <= "z":
            out.append(chr((ord(c) - 97 + 3) % 26 + 97))
        else:
            out.append(c.upper())
    return "".join(out)


def into_an_array(s, t):
    out = np.zeros((len(s), 2), np.int64)
    for i in range(len(s)):
        out[i, 0], out[i, 1] = ord(s[i]), ord(t[-1 - i % len(t)])
    return out


NATIVE = [
    *(hamming, share, counts, longest_common, balanced, words_of_codes, pairs, runs, found, backwards, stack, distinct),
    into_an_array,
]


@pytest.mark.parametrize("fn", NATIVE)
def test_native(fn):
    check(fn, DNA, DNA[::-1])


@pytest.mark.parametrize("fn", [kinds, shifted, counts, runs, into_an_array])
def test_native_of_words(fn):
    check(fn, WORDS, WORDS)


@pytest.mark.parametrize("fn", [counts, runs, into_an_array, hamming, shifted, kinds])
@pytest.mark.parametrize("kind", ["Größe ☃ 😀 ß½ ", "\ud800a\0b", "Ⅷ٣²"])
def test_beyond_ascii(fn, kind):
    check(fn, kind * 200, kind[::-1] * 200, native=None)


def too_far(s, t):
    n = 0
    for i in range(len(s) + 1):
        n += s[i] == "A"
    return n


def no_digit(s, t):
    n = 0
    for c in s:
        n += int(c)
    return n


def no_character(s, t):
    n = 0
    for i in range(len(s)):
        n += ord(chr(i * 1000))
    return n


def no_key(s, t):
    n, d = 0, {"A": 1}
    for c in s:
        n += d[c]
    return n


def no_sum(s, t):
    n = 0
    for c in s:
        n += c
    return n


@pytest.mark.parametrize("fn", [too_far, no_digit, no_character, no_key, no_sum])
def test_errors_are_pythons(fn):
    check(fn, DNA, DNA, native=None)


def remembered(s, t):
    last = best = ""
    for c in s:
        if c > last:
            best = c
        last = c
    return last, best, s[:5]


def written(s, t):
    out = ""
    for c in s[:40]:
        out += {"A": "T", "C": "G"}.get(c, c)
    return out, f"{len(s)} {s[:3]}", s.find("ACG")


@pytest.mark.parametrize("fn", [remembered, written])
def test_plain(fn):
    check(fn, DNA, DNA, native=None)


def test_strings_that_differ_are_one_program():
    torch._dynamo.reset()
    compiled, before = torch.compile(counts), counters["stats"]["native_loops"]
    for n in range(1000, 1400, 20):
        same(compiled(DNA[n - 900 : n], ""), counts(DNA[n - 900 : n], ""))
        same(compiled(DNA[:n], ""), counts(DNA[:n], ""))
    assert counters["stats"]["native_loops"] - before <= 2  # the second for any length


def value_too(s, t):
    n = 0
    for c in s:
        n += c == "A"
    return n, s + t, s.startswith("AC")


def test_the_value_is_guarded_where_it_is_asked_for():
    torch._dynamo.reset()
    compiled = torch.compile(value_too)
    for s in (DNA, DNA[1:], DNA, "AC" + DNA[2:], DNA[:40]):
        same(compiled(s, "x"), value_too(s, "x"))


def test_another_type_in_the_place_of_text():
    torch._dynamo.reset()
    compiled = torch.compile(counts)
    for s in (DNA, list(DNA), tuple(DNA), DNA.encode(), 5, None, DNA[:3], ""):
        same(run(compiled, s, ""), run(counts, s, ""))


def returned_early(x):
    for v in x:
        if v > 2.0:
            return False
    return len(x) > 3


def test_a_comparison_at_the_end_of_the_function():
    check(returned_early, np.arange(300) / 300.0)
