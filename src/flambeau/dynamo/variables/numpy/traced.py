"""Functions of NumPy that captured code makes of other functions: what they say of their arguments, and what they call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.lib import _index_tricks_impl as tricks

from ...exc import unsupported
from ...numpy import numpy_bridge
from ..base import Variable
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable
from ..containers.slices import SliceVariable
from ..objects.class_object import MAKERS
from ..values.constant import ConstantVariable
from ..values.graph_numbers import NumberVariable
from .flips import AXES, flip
from .ndarray import NumpyNdarrayVariable

__all__ = ["TRACED"]


def _call(tx, fn, *args: Variable, **kwargs: Variable) -> Variable:
    return tx.wrap_known(fn).call(tx, list(args), kwargs)


def _array(v) -> bool:
    return isinstance(v, NumpyNdarrayVariable) and not v.scalar and not isinstance(v, NumberVariable)


def _number(v: Variable, kind: type) -> NumberVariable:
    return NumberVariable(v.node, v.val, kind)


def _as_array(tx, v: Variable) -> Variable:
    """What np.asarray makes of a list or a tuple of numbers."""
    return v if _array(v) or not isinstance(v, ListVariable | TupleVariable) else _call(tx, np.asarray, v)


def same_elements(tx, fn, args, kwargs) -> Variable | None:
    """np.array_equal of arrays, a truth value of Python's; None where NumPy has to say."""
    nan = kwargs.get("equal_nan", args[2] if len(args) == 3 else ConstantVariable(False))
    if not 2 <= len(args) <= 3 or kwargs.keys() - {"equal_nan"} or not nan.can_constant():
        return None
    a, b = (_as_array(tx, v) for v in args[:2])
    if not (_array(a) and _array(b)):
        return None
    if a.val.ndim != b.val.ndim or any(bool(m != n) for m, n in zip(a.val.shape, b.val.shape)):
        return ConstantVariable(False)
    same = _call(tx, np.equal, a, b)
    if nan.as_constant() and all(numpy_bridge.np_dtype(v.val).kind in "fc" for v in (a, b)):
        same = _call(tx, np.logical_or, same, _call(tx, np.logical_and, _call(tx, np.isnan, a), _call(tx, np.isnan, b)))
    return _number(_call(tx, np.all, same), bool)


def equivalent(tx, fn, args, kwargs) -> Variable | None:
    """np.array_equiv: equal where one is repeated to the other's shape."""
    if len(args) != 2 or kwargs:
        return None
    a, b = (_as_array(tx, v) for v in args)
    if not (_array(a) and _array(b)) or any(type(n) is not int for n in (*a.val.shape, *b.val.shape)):
        return None
    try:
        np.broadcast_shapes(tuple(a.val.shape), tuple(b.val.shape))
    except ValueError:
        return ConstantVariable(False)
    return _number(_call(tx, np.all, _call(tx, np.equal, a, b)), bool)


def is_fortran(tx, fn, args, kwargs) -> Variable | None:
    """np.isfortran."""
    return (
        args[0].getattr(tx, "flags").getattr(tx, "fnc") if len(args) == 1 and not kwargs and _array(args[0]) else None
    )


def finite(tx, fn, args, kwargs) -> Variable | None:
    """np.asarray_chkfinite of an array: itself, when a check has been made in the graph."""
    if len(args) != 1 or kwargs or not _array(args[0]):
        return None
    if numpy_bridge.np_dtype(args[0].val).kind in "fc":
        numpy_bridge.load()
        NumpyNdarrayVariable.call_impl(tx, numpy_bridge.in_python[fn], args, {})
    return args[0]


def as_python(tx, fn, args, kwargs) -> Variable | None:
    """The function of flambeau that is traced in the place of NumPy's."""
    numpy_bridge.load()
    return tx.wrap_known(numpy_bridge.in_python[fn]).call(tx, args, kwargs)


def required(tx, fn, args, kwargs) -> Variable | None:
    """np.require of an order: what is asked of memory is NumPy's to say."""
    names = args[2] if len(args) > 2 else kwargs.get("requirements", ConstantVariable(None))
    if not args or not _array(args[0]) or not names.can_constant() or kwargs.keys() - {"dtype", "requirements"}:
        return None
    known = {"C", "C_CONTIGUOUS", "CONTIGUOUS", "F", "F_CONTIGUOUS", "FORTRAN"}
    if not all(n.upper() in known for n in names.as_constant() or ()):
        return None
    return as_python(tx, fn, args, kwargs)


def all_close(tx, fn, args, kwargs) -> Variable | None:
    """np.allclose where an array is among what is compared."""
    if not any(map(_array, args[:2])):
        return None
    return _number(_call(tx, np.all, _call(tx, np.isclose, *args, **kwargs)), bool)


COUNTS_ARE_PYTHONS = type(np.count_nonzero(np.zeros(1))) is int


def count(tx, fn, args, kwargs) -> Variable | None:
    """np.count_nonzero of an array; without an axis NumPy before 2.4 gives a number of Python's."""
    if len(args) != 1 or not _array(args[0]) or kwargs.keys() - {"axis"}:
        return None
    true = _call(tx, np.not_equal, args[0], ConstantVariable(0))
    axis = kwargs.get("axis", ConstantVariable(None))
    if axis.can_constant() and axis.as_constant() is None:
        total = _call(tx, np.sum, true)
        return _number(total, int) if COUNTS_ARE_PYTHONS else total
    return _call(tx, np.sum, true, axis)


def rotated(tx, fn, args, kwargs) -> Variable | None:
    """np.rot90: flips and a transpose."""
    given = {**dict(zip(("m", "k", "axes"), args)), **kwargs}
    k, axes = given.get("k", ConstantVariable(1)), given.get("axes", ConstantVariable((0, 1)))
    if given.keys() - {"m", "k", "axes"} or not (k.can_constant() and axes.can_constant() and _array(given.get("m"))):
        return None
    m, turns, planes = given["m"], k.as_constant(), tuple(axes.as_constant())
    if (
        type(turns) is not int
        or len(planes) != 2
        or not all(0 <= a < m.val.ndim for a in planes)
        or planes[0] == planes[1]
    ):
        return None
    first, second = map(ConstantVariable, planes)
    if turns % 4 == 0:
        return _call(tx, np.swapaxes, m, first, first)
    if turns % 4 == 2:
        return _call(tx, np.flip, m, ConstantVariable(planes))
    if turns % 4 == 1:
        return _call(tx, np.flip, _call(tx, np.swapaxes, m, first, second), first)
    return _call(tx, np.flip, _call(tx, np.swapaxes, m, first, second), second)


def of_places(tx, fn, args, kwargs) -> Variable | None:
    """np.fromfunction: the function of the places' coordinates."""
    if len(args) != 2 or kwargs.keys() - {"dtype"}:
        return None
    dtype = kwargs.get("dtype", tx.wrap_known(float))
    places = _call(tx, np.indices, args[1], dtype=dtype)
    if not isinstance(places, NumpyNdarrayVariable):
        return None
    return args[0].call(tx, [places.getitem(tx, ConstantVariable(k)) for k in range(int(places.val.shape[0]))], {})


def diagonal_places(tx, fn, args, kwargs) -> Variable | None:
    """np.diag_indices_from."""
    if len(args) != 1 or kwargs or not _array(args[0]):
        return None
    shape = tuple(args[0].val.shape)
    if len(shape) < 2 or any(type(n) is not int for n in shape) or len(set(shape)) != 1:
        return None
    return _call(tx, np.diag_indices, ConstantVariable(shape[0]), ConstantVariable(len(shape)))


def masked_places(tx, fn, args, kwargs) -> Variable | None:
    """np.mask_indices of a triangle."""
    known = {np.triu: np.triu_indices, np.tril: np.tril_indices}
    if len(args) not in (2, 3) or kwargs or not all(a.can_constant() for a in (args[0], *args[2:])):
        return None
    found = known.get(getattr(args[1], "value", None))
    return None if found is None else _call(tx, found, args[0], *args[2:])


def split_in_depth(tx, fn, args, kwargs) -> Variable | None:
    """np.dsplit."""
    if len(args) != 2 or kwargs or not _array(args[0]) or args[0].val.ndim < 3:
        return None
    return _call(tx, np.split, *args, ConstantVariable(2))


def open_mesh(tx, fn, args, kwargs) -> Variable | None:
    """np.ix_ of integers."""
    out = []
    for k, a in enumerate(args):
        if (
            a.can_constant()
            and isinstance(a.as_constant(), list | tuple | range)
            and all(type(n) is int for n in a.as_constant())
        ):
            a = _call(tx, np.array, a, dtype=tx.wrap_known(np.intp))
        elif (
            a.can_constant()
            or not _array(a)
            and all(v.can_constant() for v in getattr(a, "elements", [ConstantVariable(0)]))
        ):
            return None
        if not _array(a) or a.val.ndim != 1 or numpy_bridge.np_dtype(a.val).kind not in "iu":
            return None
        shape = [-1 if d == k else 1 for d in range(len(args))]
        out.append(_call(tx, np.reshape, a, ConstantVariable(tuple(shape))))
    return TupleVariable(out) if out and not kwargs else None


def _trick(name: str) -> Callable:
    """What ``np.mgrid[key]`` and its like call: the function of a graph registered for the object."""

    def run(tx, fn, args, kwargs) -> Variable | None:
        owner = getattr(args[0], "value", None)
        impl = numpy_bridge.lookup(owner) if owner is not None else None
        if impl is None or len(args) != 2 or kwargs:
            return None
        keys = args[1].elements if isinstance(args[1], TupleVariable) else [args[1]]
        if not all(
            isinstance(k, SliceVariable) or _array(k) or k.can_constant() or isinstance(k, NumpyNdarrayVariable)
            for k in keys
        ):
            return None
        if any(isinstance(k, SliceVariable) and not k.can_constant() for k in keys):
            unsupported("numpy", f"np.{name} of sizes that aren't known", "NumPy makes it.")
        tx.output.guard_numpy_errors()
        return NumpyNdarrayVariable.call_impl(tx, impl, [args[1]], {})

    return run


def same_key(tx, fn, args, kwargs) -> Variable | None:
    """np.s_ and np.index_exp: the key itself."""
    owner = getattr(args[0], "value", None)
    if len(args) != 2 or kwargs or not isinstance(owner, tricks.IndexExpression):
        return None
    return TupleVariable([args[1]]) if owner.maketuple and not isinstance(args[1], TupleVariable) else args[1]


TRACED: dict[Callable, Callable] = {
    **dict.fromkeys(AXES, flip), np.array_equal: same_elements, np.allclose: all_close, np.count_nonzero: count, np.rot90: rotated,
    np.array_equiv: equivalent, np.isfortran: is_fortran, np.asarray_chkfinite: finite, np.require: required,
    np.apply_along_axis: as_python, np.apply_over_axes: as_python, np.piecewise: as_python, np.fromiter: as_python,
    np.fromfunction: of_places, np.diag_indices_from: diagonal_places, np.dsplit: split_in_depth, np.mask_indices: masked_places, np.ix_: open_mesh,
    tricks.nd_grid.__getitem__: _trick("mgrid"), tricks.AxisConcatenator.__getitem__: _trick("r_"),
    tricks.IndexExpression.__getitem__: same_key,
}  # fmt: skip
"""NumPy's function -> (tx, function, args, kwargs) for what it gives; None for what NumPy does itself."""


def new_array(tx, args, kwargs) -> Variable | None:
    """``np.ndarray(shape, dtype)``: memory that nothing has been written into."""
    if not 1 <= len(args) <= 2 or kwargs.keys() - {"dtype"}:
        return None
    return _call(tx, np.empty, *args, **kwargs)


MAKERS[np.ndarray] = new_array
