"""Parallel loop nests become functions of their own, unless they can end the kernel or change one of its variables."""

import numpy as np

from flambeau.inductor.assembly.instructions import DOUBLE, I64, PTR, Operand, ParameterOperand
from flambeau.inductor.assembly.verification import verify
from flambeau.loops import arrays
from flambeau.loops.emitter import F64, Emitter
from flambeau.loops.values import ArrayView, Scalar

N, M, P = ParameterOperand("%a0.n0", I64), ParameterOperand("%a0.n1", I64), ParameterOperand("%a0", PTR)


def matrix():
    return ArrayView(P, F64, (N, M), (ParameterOperand("%a0.s0", I64), 8), frozenset({0}), None, 0)


def nest(e, inside=lambda e, indices: None):
    """Zeros in all elements."""
    view = matrix()
    for indices in e.loop(view.sizes, parallel=True):
        inside(e, indices)
        e.store(arrays.address(e, view, indices), F64, arrays.zero(F64).v)


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
            e.store(arrays.address(e, view, (*outer, *inner)), F64, arrays.zero(F64).v)
    assert len(e.pieces) == 1


def test_sizes_that_are_known_are_folded():
    e = Emitter()
    view = ArrayView(P, F64, (3, 4), (32, 8), frozenset({0}), None, 0)
    assert arrays.count(e, view.sizes) == 12 and e.add(3, Operand("%x", I64)).type is I64
    assert arrays.size(e, 12) == Scalar(np.dtype(np.int64), True, arrays.size(e, 12).v, (12, 12), 12)
