"""The functions around the text of a loop whose turns are spread: how turns are counted, cut and combined, run in any order of the blocks."""

import ctypes

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.assembly import instructions as llvm
from flambeau.inductor.assembly.code import Code, Names
from flambeau.inductor.assembly.instructions import Function, Operand, integer, label
from flambeau.inductor.machine import cache
from flambeau.loops.arguments import GIVEN, RUNTIME
from flambeau.loops.threads.recurrences import Kind, Recurrence
from flambeau.loops.threads.spreading import (
    BEGIN,
    BLOCKS,
    END,
    Folded,
    Spread,
    Turns,
    blocks,
    functions,
    identity,
    turns,
)
from flambeau.loops.values import register_type
from flambeau.testing.loops import check

P, I64 = ctypes.c_void_p, ctypes.c_int64
INT, FLOAT, BOOL, COMPLEX = (np.dtype(t) for t in (np.int64, np.float64, np.bool_, np.complex128))


def native(name, made, result, *types, more=""):
    """A function of a module."""
    text = "; spread\n" + "\n".join(line for f in made for line in f.lines()) + "\n" + more
    own = cache.kernel_name(text + name)
    address = cache.addresses({own: text.replace("define internal", "define").replace(f"@{name}(", f"@{own}(")})[own]
    return ctypes.CFUNCTYPE(result, *types)(address)


def table(*words):
    return np.array(words, np.int64)


# ---- how many turns --------------------------------------------------------------------------------------------------
def counted(turns, meta=(0,), ints=(0,)):
    code = Code(Names(), [])
    code.label(label("entry"))
    code.do("ret", turns.count(code))
    f = native("KERNEL", [Function("KERNEL", llvm.I64, GIVEN, code.out)], I64, P, P, P, P, P)
    meta, ints = table(*meta), table(*ints)
    return f(None, meta.ctypes.data, ints.ctypes.data, None, None)


@pytest.mark.parametrize("step", [1, 2, 7, -1, -3])
def test_turns_of_a_range(step):
    for start, stop in ((0, 10), (10, 0), (-5, 9), (3, 3), (4, 5), (5, 4), (0, 14)):
        found = counted(Turns((1, 0), step), ints=(stop, start))  # the ends may lie anywhere
        assert max(found, 0) == len(range(start, stop, step)), (start, stop)


def test_turns_of_arrays_are_those_of_the_shortest():
    assert counted(Turns(lengths=[2]), meta=(9, 9, 4)) == 4
    assert counted(Turns(lengths=[0, 2, 1]), meta=(9, 5, 7)) == 5


# ---- blocks ------------------------------------------------------------------------------------------------------------
CUT = """
define void @KERNEL.turns(ptr %table, i64 %begin, i64 %end, ptr %out) {
  %at = getelementptr i64, ptr %out, i64 1
  store i64 %begin, ptr %out
  store i64 %end, ptr %at
  ret void
}
"""


@pytest.mark.parametrize("count, size", [(10, 3), (9, 3), (1, 5), (64, 1)])
def test_blocks_cut_the_turns(count, size):
    run = native("KERNEL.blocks", [blocks("KERNEL", 2)], None, P, I64, I64, more=CUT)
    n = -(-count // size)
    seen = np.full((n, 2), -1, np.int64)
    fields = table(*[0] * len(GIVEN), 0, size, count, seen.ctypes.data)
    middle = n // 2
    run(fields.ctypes.data, middle, n)
    assert (seen[:middle] == -1).all()  # those are somebody else's
    run(fields.ctypes.data, 0, middle)
    assert [tuple(s) for s in seen] == [(k, min(k + size, count)) for k in range(0, count, size)]


def test_turns_end_where_others_have_failed():
    code = Code(Names(), [])
    code.write(7, Operand("%out", llvm.PTR))
    code.do("ret", flags="void")
    run = native("KERNEL.turns", [turns("KERNEL", code.out)], None, P, I64, I64, P)
    for ended, written in ((0, 7), (3, 0), (-1, 0)):
        fields, out = table(*[0] * len(GIVEN), ended, 1, 1, 0), table(0)
        run(fields.ctypes.data, 0, 1, out.ctypes.data)
        assert out[0] == written


# ---- results -------------------------------------------------------------------------------------------------------------
def spread(*folded, words=1, single=False, least=1):
    return Spread(Turns((0, 1)), least, single, words, list(folded), 5, 6)


def fold(before, block, *folded):
    """The words of the blocks before after a block's are combined with them, and the number of the error."""
    words = len(before)
    made = [f for f in functions(spread(*folded, words=words), []) if f.name == "KERNEL.fold"]
    out, partial = np.array(before), np.array(block)
    code = native("KERNEL.fold", made, I64, P, P)(out.ctypes.data, partial.ctypes.data)
    return out.tolist(), code


# (kind, dtype, what the blocks before have, what a block has, both)
BOTH = [
    (Kind.SUM, INT, 5, -7, -2),
    (Kind.SUM, FLOAT, 0.1, 0.2, 0.1 + 0.2),
    (Kind.PRODUCT, INT, 5, -7, -35),
    (Kind.PRODUCT, FLOAT, 0.1, 0.2, 0.1 * 0.2),
    (Kind.AND, INT, 12, 10, 8),
    (Kind.OR, INT, 12, 10, 14),
    (Kind.XOR, INT, 12, 10, 6),
    (Kind.LARGEST, INT, -3, 2, 2),
    (Kind.LARGEST, FLOAT, 2.0, -3.0, 2.0),
    (Kind.LARGEST, FLOAT, 2.0, np.nan, 2.0),  # a comparison with nan is false
    (Kind.SMALLEST, INT, -3, 2, -3),
    (Kind.SMALLEST, FLOAT, 2.0, -3.0, -3.0),
    (Kind.LAST, FLOAT, 2.0, -3.0, -3.0),
    (Kind.LAST, INT, 2, 0, 0),
]


@pytest.mark.parametrize(
    "kind, dtype, a, b, both", BOTH, ids=[f"{k.name}-{t.kind}-{n}" for n, (k, t, *_) in enumerate(BOTH)]
)
def test_two_parts_together(kind, dtype, a, b, both):
    result = Folded(0, "s", dtype, False, Recurrence(kind))
    assert fold(np.array([a], dtype), np.array([b], dtype), result) == ([both], 0)


# Numbers in ascending order, which are not in the order of their bits.
ASCENDING = {np.uint64: (3, 2**63 + 5), np.int64: (-3, 2), np.float64: (-3.0, 2.0)}


@pytest.mark.parametrize("dtype", ASCENDING, ids=lambda t: t.__name__)
@pytest.mark.parametrize("kind", [Kind.LARGEST, Kind.SMALLEST])
def test_what_belongs_to_an_extremum(kind, dtype):
    low, high = ASCENDING[dtype]
    best = Folded(0, "m", np.dtype(dtype), False, Recurrence(kind))
    where = Folded(1, "w", np.dtype(dtype), False, Recurrence(Kind.CHOSEN, of="m"))
    won = high if kind is Kind.LARGEST else low
    for a, b in ((low, high), (high, low), (low, low)):
        # NOTE: the order of the results is not that in which they depend on each other.
        found = fold(np.array([a, 10], dtype), np.array([b, 20], dtype), where, best)
        first = a == won or a == b  # the first of equals stays
        assert found == ([a, 10] if first else [b, 20], 0)


def test_whether_something_happened():
    found = Folded(0, "found", BOOL, False, Recurrence(Kind.CONSTANT, value=True))
    for a in (0, 1):
        for b in (0, 1):
            assert fold(table(a), table(b), found) == ([a | b], 0)


def test_complex_numbers_have_two_parts():
    total = Folded(0, "s", COMPLEX, False, Recurrence(Kind.SUM))
    assert fold(np.array([0.1, 2.0]), np.array([0.2, -3.0]), total) == ([0.1 + 0.2, -1.0], 0)


@pytest.mark.parametrize("a, b, weak, code", [
    (2**62, 2**62, True, 5), (-(2**63), -1, True, 5), (2**63 - 1, -1, True, 0), (2**62, 2**62, False, 0), (2**62, 2**62 - 1, True, 0),
])  # fmt: skip
def test_pythons_integers_grow_and_numpys_wrap(a, b, weak, code):
    total = Folded(0, "s", INT, weak, Recurrence(Kind.SUM))
    out, found = fold(table(a), table(b), total)
    assert found == code and (code or out == [int(np.array([a]).__add__(np.array([b]))[0])])


@pytest.mark.parametrize("kind", [Kind.SUM, Kind.PRODUCT])
@pytest.mark.parametrize("x", [-0.0, 0.0, np.inf, 1.5, 7])
def test_what_a_part_begins_with_changes_nothing(kind, x):
    dtype = INT if isinstance(x, int) else FLOAT
    begin = identity(dtype, kind)
    assert begin.type is register_type(dtype)
    result = Folded(0, "s", dtype, False, Recurrence(kind))
    neutral = np.array([1 if kind is Kind.PRODUCT else 0 if dtype is INT else -0.0], dtype)
    assert begin.text == llvm.constant(begin.type, neutral[0].item()).text
    (found,), code = fold(neutral, np.array([x], dtype), result)
    assert code == 0 and np.array(found).tobytes() == np.array(x, dtype).tobytes()


# ---- the kernel ----------------------------------------------------------------------------------------------------------
def body(fails=None):
    """The sum of the numbers of a block's turns, in closed form, and the last of them."""
    code = Code(Names("t"), [])
    out = Operand("%out", llvm.PTR)
    count, last = code.op("sub", END, BEGIN), code.op("sub", END, 1)
    code.write(code.op("sdiv", code.op("mul", count, code.op("add", BEGIN, last)), 2), code.place(llvm.I64, out, 0))
    code.write(last, code.place(llvm.I64, out, 1))
    if fails is not None:
        shared = code.place(llvm.I64, Operand("%table", llvm.PTR), len(GIVEN))
        code.write(code.select(code.cmp("eq", BEGIN, fails), integer(9), code.read(llvm.I64, shared)), shared)
    code.do("ret", flags="void")
    return code.out


def kernel(stop, order, fails=None, memory=True, **how):
    """(the number of the error, the results, the blocks that there were) of a kernel whose blocks are run in this order."""
    results = [Folded(0, "s", INT, True, Recurrence(Kind.SUM)), Folded(1, "i", INT, True, Recurrence(Kind.LAST))]
    libc, asked, freed = ctypes.CDLL(None), [], []
    block = ctypes.CFUNCTYPE(None, P, I64, I64)

    def run(f, fields, n):
        asked.append(n)
        for k in order(range(n)):
            block(f)(fields, k, k + 1)

    libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = P, [ctypes.c_size_t], [P]
    given = {
        "spread": ctypes.CFUNCTYPE(None, P, P, I64)(run),
        "malloc": ctypes.CFUNCTYPE(P, I64)(lambda n: libc.malloc(n) if memory else None),
        "free": ctypes.CFUNCTYPE(None, P)(lambda p: freed.append(p) or libc.free(p)),
    }
    data = table(*(ctypes.cast(given[n], P).value if n in given else 0 for n in RUNTIME))
    ints, out = table(0, stop), table(-1, -1)
    f = native("KERNEL", functions(spread(*results, words=2, **how), body(fails)), I64, P, P, P, P, P)
    code = f(data.ctypes.data, None, ints.ctypes.data, None, out.ctypes.data)
    assert len(freed) == memory
    return code, out.tolist(), *asked


ORDERS = {"forwards": list, "backwards": lambda r: list(r)[::-1], "from the middle": lambda r: [*r[len(r) // 2 :], *r[: len(r) // 2]]}  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("stop", [1, 63, 64, 65, 1000])
def test_results_do_not_depend_on_the_order_of_blocks(stop, order):
    code, out, n = kernel(stop, ORDERS[order])
    assert (code, out) == (0, [sum(range(stop)), stop - 1])
    assert n == len(range(0, stop, -(-stop // BLOCKS)))


def test_how_many_turns_a_block_has():
    assert kernel(100, list, single=True)[1:] == ([4950, 99], 100)
    assert kernel(100, list, least=30)[1:] == ([4950, 99], 4)
    assert kernel(10000, list, least=30)[2] == len(range(0, 10000, 157))


def test_an_error_of_a_block_is_the_kernels():
    for order in ORDERS.values():
        assert kernel(1000, order, fails=9 * 16) == (9, [-1, -1], 63)  # nothing is combined


def test_memory_that_is_not_there():
    assert kernel(1000, list, memory=False) == (6, [-1, -1])


# ---- whole loops -----------------------------------------------------------------------------------------------------------
def totals(a, out):
    n, low = 0, 10**9
    for i in range(a.shape[0]):
        t = 0
        for j in range(a.shape[1]):
            t += int(a[i, j]) * j
        out[i] = t
        n += t
        low = min(low, t)
    return n, low, i


def test_one_thread_and_two_give_what_python_gives():
    a, before = np.arange(60000).reshape(300, 200) % 23 - 11, torch.get_num_threads()
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            check(totals, a, np.zeros(300, np.int64))
    finally:
        torch.set_num_threads(before)
    (told,) = torch._dynamo.explain(totals)(a, np.zeros(300, np.int64)).loops
    assert "native, on several threads" in told


def test_one_thread_is_explained():
    def chain(a):
        for i in range(1, len(a)):
            a[i] += a[i - 1] * 0.5

    (told,) = torch._dynamo.explain(chain)(np.ones(300)).loops
    assert ": native, on one thread: " in told
