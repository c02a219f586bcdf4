"""Arrays that carry a gradient from one captured piece of a NumPy function to the next.

Behind a graph break plain code holds the arrays that captured code handed out. Those that ask for a gradient are of a class of their own, which
has the tensor beside the memory: NumPy's functions and operators on them are done on tensors, by the functions that capture uses, so that
the history goes on. What has no such function is an error: the gradient would be lost without a word.
"""

from __future__ import annotations

import numpy as np

from flambeau import _C

from . import function_table

__all__ = ["Carried", "asks", "asks_not", "carried", "tensor_of"]


DEFAULTS = (
    ("where", True),
    ("dtype", None),
    ("keepdims", False),
    ("casting", "same_kind"),
    ("order", "K"),
    ("subok", True),
)
"""Arguments of ufuncs' methods that ndarray's own methods always pass."""


class Carried(np.ndarray):
    """``number``: it stands for a NumPy number (which is not an array, and can't be written to)."""

    _tensor = None
    number = False

    def __array_finalize__(self, other):
        """A view made past this class has no tensor: using it is an error."""

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        name = ufunc if method == "__call__" else getattr(ufunc, method)
        impl = function_table.lookup(name)
        if impl is None or len(out) > 1:
            raise lost(f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}"))
        given = {k: v for k, v in kwargs.items() if v is not np._NoValue and (k, v) not in DEFAULTS}
        result = _applied(impl, inputs, given)
        if not out:
            return result
        (target,) = out
        if not isinstance(target, Carried):
            raise lost(f"np.{ufunc.__name__} into an array without one")
        if target.number:
            return result
        target[...] = result
        return target

    def __array_function__(self, func, types, args, kwargs):
        impl = function_table.lookup(func)
        if impl is None:
            if any(
                func in known
                for known in (function_table.DESCRIPTIONS, function_table.ATTRIBUTE_OF, function_table.TEXTS)
            ):
                return func(*_plain(args), **_plain(kwargs))
            raise lost(f"np.{func.__name__}")
        return _applied(impl, args, kwargs)

    def __getitem__(self, key):
        return carried(tensor_of(self)[_plain(key)], True)

    def __setitem__(self, key, value):
        if isinstance(value, np.ndarray):
            value = tensor_of(value)
        tensor_of(self)[_plain(key)] = value

    # What the program sees of it is an array: its text, its class as far as an object can say it, its pickle.

    @property
    def __class__(self):
        return np.ndarray

    def __repr__(self):
        return repr(self.view(np.ndarray))

    def __str__(self):
        return str(self.view(np.ndarray))

    def view(self, *args, **kwargs):
        """Numbers that are read as of another dtype have no gradient, and neither has a view that asks for its class."""
        plain = super().view(np.ndarray)
        return (
            plain.view(*args, **kwargs)
            if args or kwargs
            else carried(tensor_of(self).view_as(tensor_of(self)), False, True)
        )

    def __copy__(self):
        return carried(tensor_of(self).clone(), False, True)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def __reduce__(self):
        return self.view(np.ndarray).__reduce__()

    def __reduce_ex__(self, protocol):
        return self.view(np.ndarray).__reduce_ex__(protocol)


def lost(what: str) -> RuntimeError:
    return RuntimeError(
        f"{what} was called by code that isn't captured (behind a graph break), with an array that carries a gradient, and is not one of the "
        "functions that can be differentiated there: TORCH_LOGS=graph_breaks tells why that code isn't captured"
    )


def asks(array) -> bool:
    """Whether an array carries a gradient."""
    return tensor_of(array).requires_grad


def asks_not(array) -> bool:
    return not asks(array)


def on_host(t):
    """The tensor where arrays can be: one of a device is copied, with its history."""
    return t if t._has_data or t.device.type != "cuda" else t.cpu()


def carried(t, number: bool, always: bool = False):
    """A tensor as the array that plain code gets. ``number``: results without dimensions are NumPy's numbers. ``always``: of this class even
    without a gradient."""
    t = on_host(t)
    if not t.requires_grad and not always:
        return t.numpy()[()] if number else t.numpy()
    array = t.detach().numpy().view(Carried)
    array._tensor, array.number = t, number and t.ndim == 0
    return array


def tensor_of(array):
    """The tensor over an array's memory, with its history."""
    if not isinstance(array, Carried):
        return _C.from_array(array)
    if array._tensor is None:
        raise lost("a method of an array")
    return array._tensor


def _plain(tree):
    """A key or argument whose arrays are NumPy's own."""
    if isinstance(tree, tuple):
        return tuple(map(_plain, tree))
    if isinstance(tree, dict):
        return {k: _plain(v) for k, v in tree.items()}
    return np.asarray(tree) if isinstance(tree, Carried) else tree


def _tensors(tree):
    if isinstance(tree, np.ndarray):
        return tensor_of(tree)
    if isinstance(tree, (tuple, list)):
        return type(tree)(map(_tensors, tree))
    return tree


def _applied(impl, args, kwargs):
    out = impl(*map(_tensors, args), **{k: _tensors(v) for k, v in kwargs.items()})
    if isinstance(out, (tuple, list)):
        return type(out)(carried(o, True) if isinstance(o, _C.TensorBase) else o for o in out)
    return carried(out, True) if isinstance(out, _C.TensorBase) else out
