"""Jacobians: vmap of a pullback (or of a derivative along directions) over a standard basis."""

from __future__ import annotations

import functools
from collections.abc import Callable

from .. import _C
from ..base import pytree
from ..core.operator import namespace
from .derivatives import _vjp, check_argnums, flat_outputs, linearized, pick, put, wraps
from .mapping import vmap
from .ndarrays import holds_arrays, on_arrays, tensor_form

__all__ = ["hessian", "jacfwd", "jacrev"]

aten = namespace("aten")


def basis(like: list) -> list:
    """The standard basis of the space of these tensors together, one stacked tensor for each: row k is one at element
    k."""
    sizes = [x._shape.numel() for x in like]
    total, out, at = sum(sizes), [], 0
    for x, n in zip(like, sizes):
        eye = aten.eye.m(total, n, dtype=x._dtype, device=x._device)
        if at:
            eye = aten.cat.default(
                [
                    aten.zeros.default([at, n], dtype=x._dtype, device=x._device),
                    aten.slice.Tensor(eye, 0, 0, total - at),
                ],
                0,
            )
        out.append(aten.view.default(eye, [total, *x._shape]))
        at += n
    return out


def _split(rows, like: list) -> list:
    """A stacked result for all basis vectors as one piece for each tensor of ``like``, with its shape in front."""
    pieces = aten.split_with_sizes.default(rows, [x._shape.numel() for x in like], 0)
    return [
        aten.view.default(p, [*x._shape, *p._shape[1:]])
        if p.is_contiguous()
        else aten.reshape.default(p, [*x._shape, *p._shape[1:]])
        for p, x in zip(pieces, like)
    ]


def _flattened(fn: Callable) -> tuple[Callable, list]:
    """``fn`` whose result is the list of its leaves, and a list that holds the structure after a call: what vmap maps are tensors then, and a
    container that would take the batch for one of its own dimensions never sees it."""
    structure: list = []

    def leaves_of(*xs):
        leaves, spec = pytree.tree_flatten(fn(*xs))
        structure[:] = [spec]
        return leaves

    return leaves_of, structure


def _no_complex(api: str, tree, what: str):
    for x in pytree.tree_leaves(tree):
        if isinstance(x, _C.TensorBase) and x._dtype.is_complex:
            raise RuntimeError(f"{api}: Expected all {what}s to be real but received complex tensor")


def jacrev(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """A function giving the Jacobian of ``func``, one pullback for each element of the output: for output tensors of
    shape o and inputs of shape i, tensors of shape o + i, in the structure of the outputs, each in the structure of
    ``argnums``. ``chunk_size``: rows at a time."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @wraps(func)
    def wrapped(*args):
        if holds_arrays(args):
            return on_arrays(again, func, args, {})
        _no_complex("jacrev", args, "input")
        at = check_argnums(argnums, len(args))
        out, pullback, *aux = _vjp(func, args, at, has_aux)
        flat, spec = flat_outputs(out, "jacrev")
        _no_complex("jacrev", flat, "output")
        rows_of, inner = _flattened(lambda *cts: pullback(pytree.tree_unflatten(list(cts), spec)))
        parts = [_split(r, flat) for r in vmap(rows_of, chunk_size=chunk_size)(*basis(flat))]
        jac = pytree.tree_unflatten([pytree.tree_unflatten(list(p), inner[0]) for p in zip(*parts)], spec)
        return (jac, *aux) if has_aux else jac

    again = functools.partial(jacrev, argnums=argnums, has_aux=has_aux, chunk_size=chunk_size)
    wrapped.tensor_form = lambda: again(tensor_form(func))
    return wrapped


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """A function giving the Jacobian of ``func``, one direction for each element of the inputs. Result as
    :func:`jacrev`'s."""

    @wraps(func)
    def wrapped(*args):
        if holds_arrays(args):
            return on_arrays(again, func, args, {})
        _no_complex("jacfwd", args, "input")
        at = check_argnums(argnums, len(args))
        chosen = pick(args, at)
        inputs, in_spec = pytree.tree_flatten(chosen)
        out, push, *aux = linearized(
            lambda *xs: func(*put(args, at, pytree.tree_unflatten(list(xs), in_spec))), tuple(inputs), has_aux
        )
        _no_complex("jacfwd", out, "output")
        columns_of, spec = _flattened(lambda *directions: push(tuple(directions)))
        made = []
        for c in vmap(columns_of, out_dims=-1, randomness=randomness)(*basis(inputs)):
            pieces = aten.split_with_sizes.default(c, [x._shape.numel() for x in inputs], c._ndim - 1)
            jac = [aten.reshape.default(p, [*p._shape[:-1], *x._shape]) for p, x in zip(pieces, inputs)]
            made.append(pytree.tree_unflatten(jac, in_spec))
        result = pytree.tree_unflatten(made, spec[0])
        return (result, *aux) if has_aux else result

    again = functools.partial(jacfwd, argnums=argnums, has_aux=has_aux, randomness=randomness)
    wrapped.tensor_form = lambda: again(tensor_form(func))
    return wrapped


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """A function giving the Hessian of ``func``: the Jacobian of its Jacobian, both by pullbacks."""
    return jacrev(jacrev(func, argnums), argnums)
