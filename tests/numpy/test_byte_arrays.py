"""Arrays of text, dates and records in one graph: values, dtypes, views and writes as NumPy has them; what isn't captured runs plainly."""

import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau.dynamo.utils import counters

WORDS = np.array(["pear", "Apple", "fig", "", "Quince 7"])
RAW = np.array([b"ab", b"", b"a c", b"ABC"])
DAYS = np.array(["2024-02-28", "2024-03-01", "NaT", "1969-12-31"], "M8[D]")
POINT = np.dtype([("x", "f8"), ("y", "f8"), ("id", "i8")])
MIXED = np.dtype([("name", "U6"), ("at", "M8[s]"), ("pair", "f4", (2,)), ("w", "i4")], align=True)


def points(n=5):
    p = np.zeros(n, POINT)
    p["x"], p["y"], p["id"] = np.arange(n), np.arange(n) ** 2, np.arange(n)[::-1]
    return p


def mixed(n=3):
    m = np.zeros(n, MIXED)
    m["name"], m["pair"], m["w"] = ["a", "bc", "def"], np.arange(6).reshape(3, 2), [3, 1, 2]
    return m


def cased(a):
    return np.char.upper(a), np.strings.lower(a), np.char.capitalize(a), np.char.swapcase(a)


def measured(a):
    return np.char.str_len(a) * 2, np.strings.find(a, "p"), np.char.count(a, "p") + 1


def asked(a):
    return np.char.isalpha(a), np.strings.startswith(a, "A"), np.char.endswith(a, ["r", "e", "x", "", "7"])


def stripped(a):
    return np.char.strip(a), np.char.add(a, "!"), np.strings.add(a, a[::1])


def compared(a):
    return a == "fig", a != a[0:1], a < "b", np.where(a == "fig", 1.5, 0.0).sum(), np.isin(a, ["fig", "pear"])


def ordered(a):
    order = np.argsort(a)
    return order, a[order], np.sort(a), a.argsort(kind="stable")


def sliced(a):
    return a[1:3], a[0], a[..., 1], a[None], a[-1], len(a), a.shape, a.dtype, a.itemsize, a.nbytes, a.size


def joined(a):
    return (
        np.concatenate([a, a[:2]]),
        np.stack([a, a]),
        np.repeat(a, 2),
        np.where(np.arange(len(a)) % 2 == 0, a, "none"),
    )


def made(a):
    keys = np.array(["fig", "pear", "plum"])
    return keys, (a[:3] == keys).sum(), np.zeros(2, "U3"), np.full(2, "xy")


def raw(a):
    return np.char.upper(a), a == b"ab", np.char.str_len(a), a.astype("U4"), np.char.add(a, b"-")


def numbers(a):
    return np.arange(3).astype(float) + np.char.str_len(a[:3]), a[:3].copy()


def dates(d):
    steps = d[1:] - d[:-1]
    return (
        steps,
        d + np.timedelta64(2, "D"),
        d > np.datetime64("2000-01-01"),
        np.isnat(d),
        d.astype("M8[M]"),
        d.astype("i8"),
        np.diff(d),
    )


def later(d):
    return np.sort(d), d.min(), np.max(d[:2]), np.arange(3) + steps_of(d)


def steps_of(d):
    return (d[:3] - np.datetime64("2024-01-01", "D")).astype("i8")


def norm(p):
    return np.sqrt(p["x"] ** 2 + p["y"] ** 2), p["id"].sum(), p[1:]["x"] * 2, p.shape, p.dtype.names


def moved(p, dt):
    p["x"] += p["y"] * dt
    p["y"] *= 0.5
    p["id"][1:3] = 7
    return p["x"].mean()


def shown(p):
    x = p["x"]
    x[0] = 10.0
    return x, p[:2], p


def parts(m):
    return m["name"], m["pair"] * 2, m["pair"][:, 0].sum(), m["w"][::2], m["at"], m[1:], np.char.upper(m["name"])


def new_records(x):
    p = np.zeros(len(x), [("x", "f8"), ("n", "i8")])
    p["x"] = x * 2
    p["n"] += 3
    return p, p["x"].sum()


def of_two_loops(a, x):
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    return np.char.str_len(a).sum() * total


def views_of_views(a):
    b = a[::2]
    c = b[1:]
    return c, np.char.upper(c), b, np.stack([a, a])[:, 0], np.stack([a, a])[1, ..., 2]


def turns_over_records(p):
    for k in range(3):
        p["x"][k] = p["y"][k] + k
    total = 0.0
    for k in range(len(p)):
        total += p["x"][k] * p["id"][k]
    return total, p


def one_record(p):
    r = p[1]
    p["x"] += 1
    return r["x"], r["id"] * 2, r


def records_in_order(p):
    return np.sort(p, order="id"), np.argsort(p, order=["id", "x"]), p == p[:1], (p[1:] == p[:-1]).sum()


def weekdays(d):
    day = (d.astype("M8[D]").astype(int) + 3) % 7
    return day, np.where(day < 5, d, d + 1), (d - d[0]) / np.timedelta64(1, "h"), d.max() - d.min(), d.astype("M8[s]")


def read_numbers(a):
    return a.astype(float).sum(), a.astype(int) * 2


def a_view_and_a_write(p):
    before, x = p["x"].sum(), p["x"]
    p["x"] += 1
    return before, x, p[2:]["x"].sum()


PROGRAMS = [
    (views_of_views, lambda: (WORDS.copy(),)), (read_numbers, lambda: (np.array(["12", "3", "-4"]),)),
    (weekdays, lambda: (DAYS[:2].copy(),)),
    *[(f, lambda: (points(),)) for f in (turns_over_records, one_record, records_in_order, a_view_and_a_write)],
    *[(f, lambda: (WORDS.copy(),)) for f in (cased, measured, asked, stripped, compared, ordered, sliced, joined, made, numbers)],
    (raw, lambda: (RAW.copy(),)), (dates, lambda: (DAYS.copy(),)), (later, lambda: (DAYS.copy(),)),
    (norm, lambda: (points(),)), (moved, lambda: (points(), 0.25)), (shown, lambda: (points(),)), (parts, lambda: (mixed(),)),
    (new_records, lambda: (np.arange(4.0),)), (of_two_loops, lambda: (WORDS.copy(), np.arange(100.0))),
]  # fmt: skip


def same(got, want):
    assert type(got) is type(want), (got, want)
    if isinstance(want, tuple | list):
        assert len(got) == len(want)
        for g, w in zip(got, want):
            same(g, w)
    elif isinstance(want, np.ndarray):
        assert (got.dtype, got.shape, got.flags.writeable) == (want.dtype, want.shape, want.flags.writeable)
        assert got.tolist() == want.tolist() if want.dtype == object else got.tobytes() == want.tobytes()
    else:
        assert got == want or (got != got and want != want), (got, want)


def result(f, args):
    try:
        return f(*args)
    except Exception as e:
        return type(e), str(e)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("f, arguments", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_one_graph(f, arguments, backend):
    torch._dynamo.reset()
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        ours, plain = arguments(), arguments()
        same(compiled(*ours), f(*plain))
        same(ours, plain)


def replaced(a):
    return np.char.replace(a, "p", "pp"), np.char.multiply(a, 2), np.char.center(a, 12)


def masked(a):
    return a[a > "b"], a[::-1], a.tolist(), [w.upper() for w in a]


def written(a):
    a[0] = "none"
    a[1:3] = "xy"
    return a


def objects(a):
    return np.char.split(a), np.char.join("-", a)


def out_of_bounds(a):
    return a[9]


def no_field(p):
    return p["z"]


def several(p):
    return p[["x", "id"]]["x"] + 1, p[0]["x"], p[1].item(), p.tolist()


def packed(p):
    p["x"] += 1
    return p["x"].sum(), p["k"].sum()


def keyed(a):
    return {w: k for k, w in enumerate(a)}["fig"]


def same_object(a):
    return a, a is a


def refused(a):
    return np.char.add(a, 3.5)


def no_number(a):
    return a.astype(float)


def errors_are_caught(a):
    try:
        return a.astype(float)
    except ValueError as e:
        return str(e)


def words_compared(a):
    return a[0] == a[1], a[0] < a[1], a[0] != a[0], a[0] + a[1], a == a[0]


def as_wide_as_a_word(a):
    return (
        np.full(3, a[1]),
        np.array([a[1], a[1]]),
        np.stack([a[0], a[1]]),
        a[:2] + a[1],
        np.where(a[:2] == a[0], "x", a[1]),
    )


def truncated(a):
    a[0] = a[1] + a[2] + "more than there is room for"
    for i in range(len(a)):
        a[i] = a[i] + a[-1 - i]
    a += a[::-1]
    return a, a[0], np.char.expandtabs(a), np.char.replace(a, "a", "aaaa"), np.char.upper(a + "ß")


def the_clock(a):
    return np.datetime64("now") > np.datetime64("2020-01-01"), np.datetime64("NaT"), np.datetime64("2020-13-01")


@pytest.mark.parametrize(
    "f, arguments",
    [
        *[(f, lambda: (WORDS.copy(),)) for f in (replaced, masked, written, objects, out_of_bounds, keyed, same_object, refused, no_number, errors_are_caught, words_compared, as_wide_as_a_word, truncated, the_clock)],
        (no_field, lambda: (points(),)), (several, lambda: (points(),)),
        (packed, lambda: (np.ones(4, [("k", "i4"), ("x", "f8")]),)),
        (cased, lambda: (WORDS[::-1],)), (cased, lambda: (np.array(["a", "b"], object),)), (cased, lambda: (WORDS.astype(">U8"),)),
        (norm, lambda: (points().astype(POINT.newbyteorder()),)), (norm, lambda: (points().view(np.recarray),)),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)  # fmt: skip
def test_what_runs_plainly_is_right(f, arguments):
    torch._dynamo.reset()
    compiled = torch.compile(f)
    for _ in range(2):
        ours, plain = arguments(), arguments()
        same(result(compiled, ours), result(f, plain))
        assert ours[0].tobytes() == plain[0].tobytes()


def test_an_argument_is_given_back_itself():
    compiled = torch.compile(same_object)
    a = WORDS.copy()
    assert compiled(a)[0] is a


def test_dtypes_are_guarded():
    torch._dynamo.reset()
    compiled = torch.compile(cased, dynamic=False)
    for a in (WORDS, WORDS[:3], WORDS.astype("U20"), WORDS.astype("S8"), np.array("x"), WORDS[::2], DAYS.astype("U10")):
        same(result(compiled, (a,)), result(cased, (a,)))
    assert counters["stats"]["unique_graphs"] >= 4


def test_records_of_one_size_are_told_apart():
    torch._dynamo.reset()

    def f(p):
        return p["x"] + 1

    compiled = torch.compile(f)
    for dtype in ([("x", "f8"), ("y", "i8")], [("y", "i8"), ("x", "f8")], [("x", "i8"), ("y", "f8")]):
        p = np.zeros(3, dtype)
        p["x"] = 3
        same(compiled(p), f(p))


def test_read_only_records():
    p = points()
    p.flags.writeable = False
    torch._dynamo.reset()
    compiled = torch.compile(lambda p: (p["x"], p[1:]))
    for x in compiled(p):
        assert not x.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        torch.compile(moved)(p, 0.5)


def test_views_show_the_argument():
    p = points()
    x, first, whole = torch.compile(shown)(p)
    assert whole is p and x[0] == p["x"][0] == 10.0
    x[1], first["y"] = -1.0, 5.0
    assert p["x"][1] == -1.0 and p["y"][1] == 5.0


def test_the_first_thing_that_a_process_compiles():
    program = (
        "import numpy as np, flambeau as torch\n"
        "f = torch.compile(lambda a: np.char.upper(a) == a, backend='eager', fullgraph=True)\n"
        "assert f(np.array(['ab', 'CD'])).tolist() == [False, True]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
