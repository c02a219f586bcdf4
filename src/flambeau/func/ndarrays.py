"""Transforms of NumPy functions: called with arrays, a transform compiles its function for tensors and gives arrays back."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import numpy as np

from .. import _C
from ..autograd.graph import saved_as_they_were
from ..base import pytree
from ..dynamo.numpy.numpy_bridge import Carried, carried, tensor_of

__all__ = ["holds_arrays", "on_arrays", "tensor_form", "to_arrays", "to_tensors"]

ARRAYS = (np.ndarray, np.generic)
_forms: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def holds_arrays(*trees) -> bool:
    """Whether there is an array or a NumPy number among the leaves."""
    return any(
        isinstance(x, ARRAYS) if not isinstance(x, (tuple, list, dict)) else holds_arrays(*pytree.tree_leaves(x))
        for tree in trees
        for x in (tree if isinstance(tree, tuple) else tree.values() if isinstance(tree, dict) else (tree,))
    )


def to_tensors(tree):
    """Arrays that carry a gradient (of a transform around this one, behind a graph break) bring their history along."""
    return pytree.tree_map(
        lambda x: (
            tensor_of(x) if isinstance(x, Carried) else _C.from_array(np.asarray(x)) if isinstance(x, ARRAYS) else x
        ),
        tree,
    )


def to_arrays(tree):
    """Results without dimensions are NumPy's numbers; what belongs to a transform around this one carries its gradient."""
    return pytree.tree_map(lambda x: carried(x, True) if isinstance(x, _C.TensorBase) else x, tree)


def tensor_form(func: Callable) -> Callable:
    """The function of tensors that a function of arrays stands for: a transform of such a function is made of that function's form."""
    again = getattr(func, "tensor_form", None)
    if again is not None:
        return again()
    try:
        found = _forms.get(func)
    except TypeError:
        return _compiled(func)
    if found is None:
        found = _forms[func] = _compiled(func)
    return found


def _compiled(func: Callable) -> Callable:
    from ..compiler.numpy_wrap import wrap_numpy
    from ..compiler.wrap import compile

    return compile(wrap_numpy(func))


def on_arrays(transform: Callable, func: Callable, args: tuple, kwargs: dict):
    """``transform(func)(*args, **kwargs)`` for arrays among the arguments."""
    with saved_as_they_were():
        return to_arrays(transform(tensor_form(func))(*to_tensors(args), **to_tensors(kwargs)))
