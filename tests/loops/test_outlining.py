"""Parallel loop nests become functions of their own, unless they can end the kernel or change one of its variables."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.inductor.assembly.instructions import DOUBLE, I64, PTR, Operand, ParameterOperand
from flambeau.inductor.assembly.verification import verify
from flambeau.loops import arrays
from flambeau.loops.emitter import F64, Emitter, constant
from flambeau.loops.values import ArrayView, Scalar

N, M, P = ParameterOperand("%a0.n0", I64), ParameterOperand("%a0.n1", I64), ParameterOperand("%a0", PTR)


def matrix():
    return ArrayView(P, F64, (N, M), (ParameterOperand("%a0.s0", I64), 8), frozenset({0}), None, 0)


def nest(e, inside=lambda e, indices: None):
    """Zeros in all elements."""
    view = matrix()
    for indices in e.loop(view.sizes, parallel=True):
        inside(e, indices)
        e.store(arrays.address(e, view, indices), F64, constant(0.0).v)


def operations(code):
    return [i.operation for i in code]


def test_a_nest_is_moved():
    e = Emitter()
    nest(e)
    (piece,) = e.pieces
    verify(piece)
    assert "store" in operations(piece.body) and [p.text for p in piece.parameters] == ["%context", "%begin", "%end"]
    given = {i.text: i.type for i in piece.body if i.operation == "load"}
    assert given["%a0"] is PTR and given["%a0.n1"] is I64  # what it uses, with its type
    outermost = next(i for i in piece.body if i.operation == "icmp")
    assert outermost.args[1].text == "%end"
    calls = [i.args[0].text for i in e.out if i.operation == "call"]
    assert calls.count("@KERNEL.p0") == 1 and "%parallel" in calls


def test_a_nest_that_can_end_the_kernel_stays():
    e = Emitter()
    nest(e, lambda e, indices: e.check(e.cmp("slt", indices[0], 3), "IndexError", "too far"))
    assert not e.pieces and "store" in operations(e.out)


def test_a_nest_that_changes_a_variable_stays():
    e = Emitter()
    e.set("x", DOUBLE, 0)
    nest(e, lambda e, indices: e.set("x", DOUBLE, e.op("fadd", e.get("x", DOUBLE), 1.0)))
    assert not e.pieces


def test_a_variable_of_its_own_moves_along():
    e = Emitter()

    def sum_of_a_row(e, indices):
        e.set("sum", DOUBLE, 0)
        for (k,) in e.loop((M,)):
            x = arrays.load(e, matrix(), (indices[0], k)).v
            e.set("sum", DOUBLE, e.op("fadd", e.get("sum", DOUBLE), x))

    nest(e, sum_of_a_row)
    (piece,) = e.pieces
    verify(piece)
    assert operations(piece.body).count("alloca") == 4  # three counters and the sum


def test_only_outermost_nests_are_moved():
    e = Emitter()
    view = matrix()
    for outer in e.loop((N,), parallel=True):
        for inner in e.loop((M,), parallel=True):
            e.store(arrays.address(e, view, (*outer, *inner)), F64, constant(0.0).v)
    assert len(e.pieces) == 1


def test_sizes_that_are_known_are_folded():
    e = Emitter()
    view = ArrayView(P, F64, (3, 4), (32, 8), frozenset({0}), None, 0)
    assert arrays.count(e, view.sizes) == 12 and e.add(3, Operand("%x", I64)).type is I64
    assert arrays.size(e, 12) == Scalar(np.dtype(np.int64), True, arrays.size(e, 12).v, (12, 12), 12)


def line(e, offset=0, size=8):
    """Zeros in all elements of a row, after ``offset`` bytes."""
    view = ArrayView(e.at(P, offset), F64, (N,), (size,), frozenset({0}), None, None)
    for indices in e.loop(view.sizes, parallel=True):
        e.store(arrays.address(e, view, indices), F64, constant(0.0).v)


def test_neighbours_are_stored_from_a_cache_line_on():
    for offset in (0, 8):
        e = Emitter()
        line(e, offset)
        piece, lines = e.pieces
        for function in e.pieces:
            verify(function)
        called = [i.args[0].text for i in lines.body if i.operation == "call"]
        assert called == ["@llvm.smin.i64", *[f"@{piece.name}"] * 2]
        assert [p.text for p in lines.parameters] == ["%context", "%begin", "%end"]
        functions = [i.args[0].text for i in e.out if i.operation == "call" and i.args[0].text.startswith("@KERNEL")]
        assert functions == [f"@{lines.name}", f"@{piece.name}"]  # where it is long, and short


def test_elements_that_lie_apart_are_one_part():
    e = Emitter()
    line(e, size=16)
    assert len(e.pieces) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8, np.bool_, np.complex64, np.int16])
def test_places_of_lines(dtype):
    """Whatever the first address and the number of elements are, all are stored once."""

    def f(a, b, k):
        for _ in range(k):
            a[1:-1] = b[2:] + a[1:-1]
            b[:-2] = a[:-2] + b[:-2]

    compiled = torch.compile(f, dynamic=True)
    memory = (np.arange(80_000) % 5).astype(dtype)
    for n in (3, 1023, 1024, 1026, 1031, 4099, 66_000):
        for first in (0, 1, 3, 7):
            plain, ours = [[memory[first : first + n].copy(), memory[:n].copy()] for _ in range(2)]
            holder = np.zeros(n + 16, dtype)
            moved = holder[first : first + n]
            moved[:] = ours[0]
            f(*plain, 3)
            compiled(moved, ours[1], 3)
            np.testing.assert_array_equal(moved, plain[0])
            np.testing.assert_array_equal(ours[1], plain[1])
            assert not holder[:first].any() and not holder[first + n :].any()
