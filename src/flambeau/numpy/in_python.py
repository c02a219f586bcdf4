"""Functions of NumPy that call a Python function, or loop over one, as Python that capture traces like a program's."""

from __future__ import annotations

import itertools

import numpy as np

__all__ = ["apply_along_axis", "apply_over_axes", "fromiter", "piecewise", "require", "vectorized"]


def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """np.apply_along_axis: a call for each line of the array along the axis."""
    arr = np.asanyarray(arr)
    if not -arr.ndim <= axis < arr.ndim:
        raise np.exceptions.AxisError(axis, arr.ndim)
    axis = axis % arr.ndim
    lines = np.moveaxis(arr, axis, -1)
    around = lines.shape[:-1]
    made = [np.asanyarray(func1d(lines[index], *args, **kwargs)) for index in np.ndindex(*around)]
    if not made:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    inner, dtype = made[0].shape, made[0].dtype
    whole = np.stack([np.broadcast_to(x, inner).astype(dtype) for x in made]).reshape(around + inner)
    n = len(around)
    order = (*range(axis), *range(n, n + len(inner)), *range(axis, n))
    return whole.transpose(order)


def apply_over_axes(func, a, axes):
    """np.apply_over_axes: a call for each axis, of what the call before gave."""
    val = np.asarray(a)
    ndim = val.ndim
    for axis in axes if isinstance(axes, (tuple, list)) else (axes,):
        axis = ndim + axis if axis < 0 else axis
        res = func(val, axis)
        if res.ndim != val.ndim:
            res = np.expand_dims(res, axis)
        if res.ndim != val.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        val = res
    return val


def piecewise(x, condlist, funclist, *args, **kwargs):
    """np.piecewise: of each part its function, or its number."""
    x = np.asanyarray(x)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if len(conditions) == len(funclist) - 1:
        met = conditions[0]
        for condition in conditions[1:]:
            met = met | condition
        conditions.append(~met)
    elif len(conditions) != len(funclist):
        n = len(conditions)
        raise ValueError(f"with {n} condition(s), either {n} or {n + 1} functions are expected")
    y = np.zeros_like(x)
    for condition, func in zip(conditions, funclist):
        y[condition] = func(x[condition], *args, **kwargs) if callable(func) else func
    return y


def fromiter(iterable, dtype, count=-1):
    """np.fromiter: an array of what an iterable gives."""
    taken = list(iterable if count < 0 else itertools.islice(iterable, count))
    if len(taken) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(taken)} items.")
    return np.array(taken, dtype=dtype)


def require(a, dtype=None, requirements=None):
    """np.require of an order and of memory of one's own."""
    asked = {
        r.upper()[0] if r.upper() not in ("ALIGNED", "WRITEABLE", "OWNDATA") else r.upper()[0]
        for r in requirements or ()
    }
    if "F" in asked and "C" in asked:
        raise ValueError('Cannot specify both "C" and "F" order')
    if "F" in asked:
        return np.asanyarray(a, dtype, order="F")
    if "C" in asked:
        return np.asanyarray(a, dtype, order="C")
    return np.asanyarray(a, dtype)


def vectorized(pyfunc, *args):
    """What ``np.vectorize(pyfunc)(*args)`` gives: a call for each element, of the dtype that the first gives."""
    arrays = np.broadcast_arrays(*[np.asanyarray(a) for a in args])
    shape = arrays[0].shape
    made = [pyfunc(*[a[index] for a in arrays]) for index in np.ndindex(*shape)]
    if not made:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    return np.array(made, dtype=np.asarray(made[0]).dtype).reshape(shape)
