"""The AUTOGRAD key: run the operator below, leave a node on what it returns.

The common case (plain tensors, nothing else interposed) is recorded in C (csrc/autograd/record.c), which asks here once an operator how its
calls are recorded (:func:`describe`) and once for each set of arguments which formula applies (:func:`choose`). Calls that reach Python
(modes, subclasses, transforms) run the operator below their way and record with the same native functions.
"""

from __future__ import annotations

from .. import _C
from ..base.shapes import contiguous_strides, is_dense, same_shape
from ..core import keys as K
from ..core.dispatch import HANDLERS, excluding, install, redispatch, watched, whole
from ..core.layouts import copy_strides
from ..core.operator import OpOverload, namespace
from ..core.out_rules import check_inplace, check_inplace_shape
from .hook_results import check_count, check_result
from .node import WrittenView, replay
from .rules import NOT_DIFFERENTIABLE, Like, plan

aten = namespace("aten")
_ARGUMENT, _LIKE, _RESULT, _BY_COLUMNS = 0, 1, 2, 3  # where a saved value comes from


# ---- what native code asks -----------------------------------------------------------------------------------------------


def _node_name(op: OpOverload) -> str:
    base = "".join(w.capitalize() for w in op._opname.strip("_").split("_"))
    packet = op.overloadpacket
    return f"{base}Backward{list(packet._overloads).index(op._overloadname) if op._overloadname in packet._overloads else 0}"


def _decomposed(op: OpOverload) -> bool:
    """A composite without a formula of its own: its parts have theirs."""
    return op.kind == "composite" and op.vjp_formulas is None and any(r.is_tensor for r in op._schema.returns)


def _differentiable_arguments(op: OpOverload) -> int:
    """Bit i: there is a derivative with respect to argument i."""
    if op.vjp_formulas is not None:
        named = {name for key in op.vjp_formulas for name in key.split("__")}
        return sum(1 << i for i, a in enumerate(op._schema.arguments) if a.name in named)
    if op.kind == "pointwise":
        return sum(1 << i for i, a in enumerate(op._schema.arguments) if a.is_tensor)
    return 1 if op.kind == "view" else 0


BARE = "bare_cotangents"  # tag of an operator with several results whose formula takes None for a cotangent that never came


def describe(op: OpOverload):
    """The native Rule of an operator."""
    arguments = op._schema.arguments
    inplace = op.kind == "inplace"
    functional = op.definition.functional if inplace else None
    mask = -1 if op.differentiable_outputs is None else sum(1 << i for i in op.differentiable_outputs)
    return _C.Rule(
        op,
        len(arguments),
        _node_name(op),
        mask & (1 << 64) - 1,
        _differentiable_arguments(op),
        native=op.kind != "out" and not _decomposed(functional or op) and "autograd" not in op.overrides,
        nothing=op.vjp_formulas == {} or (op.kind in NOT_DIFFERENTIABLE and not op.vjp_formulas),
        is_view=op._schema.is_view,
        by_value=op.vjp_formulas is None and op.kind == "pointwise",
        functional=describe(functional) if inplace else None,
        bare=BARE in op.tags,
    )


def choose(op: OpOverload, full: tuple, needs: tuple[int, ...]):
    """The native Plan for these arguments."""
    p = plan(op, full, needs)
    at = {a.name: i for i, a in enumerate(op._schema.arguments)}
    saves = []
    for name in p.saves:
        if name in at:
            saves.append((_ARGUMENT, at[name], name))
        elif name.endswith("_like"):
            saves.append((_LIKE, at[name[:-5]], name))
        elif name.endswith("_by_columns"):
            saves.append((_BY_COLUMNS, at[name[:-11]], name))
        else:
            saves.append((_RESULT, int(name[6:]) if name[6:] else 0, name))
    return _C.Plan(tuple(saves), p.run)


# ---- calls that reach Python ---------------------------------------------------------------------------------------------


def _has_slopes(functional: OpOverload, full: tuple) -> bool:
    """Whether a result that is to be written, or what it is written to, has a gradient: truth values and indices have none."""
    given = full[: len(functional._schema.arguments)]
    written = full[len(given) :]
    if not functional.has_facet("meta") or any(isinstance(x, _C.TensorBase) and x._requires_grad for x in written):
        return True
    made = functional.facet("meta")(*given)
    return any(
        m.dtype.is_floating_point or m.dtype.is_complex for m in (made if isinstance(made, (list, tuple)) else [made])
    )


def autograd(op: OpOverload, keys: int, args: tuple, kwargs: dict):
    """Handler of the AUTOGRAD key."""
    if op.kind == "inplace":
        return _inplace(op, keys, args, kwargs)
    full = op.full(*args, **kwargs)
    if op.kind == "out":
        functional = op.definition.functional
        asked = functional.vjp_formulas != {} and any(isinstance(x, _C.TensorBase) and x._requires_grad for x in full)
        if asked and _has_slopes(functional, full):
            raise RuntimeError(
                f"{op._opname}(): functions with out=... arguments don't support automatic differentiation, but one of the "
                "arguments requires grad."
            )
        with excluding(K.AUTOGRAD):
            return redispatch(op, keys & K.below(K.AUTOGRAD), args, kwargs)
    if _decomposed(op):
        if keys & K.PYTHON and "autograd" not in op.overrides and watched() and whole(op):
            return HANDLERS["whole"](op, keys, args, kwargs)
        return op.overrides.get("autograd", op.definition.fn)(*full)
    with excluding(K.AUTOGRAD):
        result = redispatch(op, keys & K.below(K.AUTOGRAD), args, kwargs)
    _C.record(op, full, result)
    return result


def _inplace(op, keys, args, kwargs):
    full = op.full(*args, **kwargs)
    node = _C.inplace_begin(op, full)
    if node is not None and _decomposed(op.definition.functional):
        return _inplace_of_parts(op, full)
    with excluding(K.AUTOGRAD):
        result = redispatch(op, keys & K.below(K.AUTOGRAD), args, kwargs)
    if node is not None:
        _C.inplace_end(full[0], node)
    return result


def _inplace_of_parts(op, full):
    """In place of a composite: its parts have the formulas. They read a copy, which they may save, and their result is copied in."""
    target, functional = full[0], op.definition.functional
    before = aten.clone.default(target)
    run = functional.overrides.get("autograd", functional.definition.fn)
    result = run(*(before if x is target else x for x in full))
    check_inplace(op, target._dtype, result._dtype)
    check_inplace_shape(target, result._shape)
    return aten.copy_.default(target, result)


# ---- writes to views -----------------------------------------------------------------------------------------------------


class CopySlices(WrittenView):
    """The backward of an in-place operator on a view."""

    def __init__(self, root, view, inner):
        # The first edge of inner is that of the old view; its cotangent goes back into the root's.
        self._self_edge, self._self_took_part = inner.edged & 1, inner.needs & 1
        super().__init__(root, view, inner, (None, *inner.next_edges[1:]) if self._self_edge else inner.next_edges)

    def split(self, cts):
        own = cts[0] if self._self_took_part else None
        return own, [None, *cts[1:]] if self._self_edge else cts


# ---- cotangents ----------------------------------------------------------------------------------------------------------


def fit(g, shape, dtype, device, name, nr, of_program=False):
    """A cotangent with the shape and dtype of the argument: summed over broadcast dimensions, cast back. ``of_program``: a node written in
    Python gave it."""
    if of_program and g._dtype.is_complex and not dtype.is_complex:
        raise RuntimeError(
            f"Function {name} returned an invalid gradient at index {nr} - got {g._dtype} for an input of {dtype}"
        )
    if not same_shape(g._shape, shape):
        pad = g._ndim - len(shape)
        dims = list(range(pad)) + [i + pad for i, n in enumerate(shape) if n == 1 and g._shape[i + pad] != 1]
        if pad >= 0 and all(n == 1 or n == m for n, m in zip(shape, g._shape[pad:])):
            if dims:
                g = aten.sum.dim_IntList(g, dims, True)
            if pad:
                g = aten.view.default(g, list(shape))
        else:
            raise RuntimeError(
                f"Function {name} returned an invalid gradient at index {nr} - got {list(g._shape)} but expected shape compatible "
                f"with {list(shape)}"
            )
    if g._device != device and g._ndim:
        raise RuntimeError(
            f"Function {name} returned an invalid gradient at index {nr} - expected device {device} but got {g._device}"
        )
    if g._device != device:
        g = aten._to_copy.default(g, device=device)
    if g._dtype is not dtype:
        if g._dtype.is_complex and not dtype.is_complex:
            g = aten.real.default(g)  # a real argument takes the real part of what reaches it
        g = aten._to_copy.default(g, dtype=dtype)
    return g


def _zeros(shape, dtype, device, cts):
    """Zeros for a cotangent that never came, of the kind of those that did."""
    like = next((c for c in cts if c is not None and c._keys), None)
    if like is not None:
        return aten.new_zeros.default(like, list(shape), dtype=dtype)
    return aten.zeros.default(list(shape), dtype=dtype, device=device)


def _laid_out_as(leaf, g):
    """A copy of a gradient for ``leaf.grad``: in the leaf's order of memory where that is dense, else row-major, however it came about."""
    strides = leaf._strides if is_dense(leaf._shape, leaf._strides) else contiguous_strides(leaf._shape)
    if tuple(strides) == tuple(copy_strides(g._shape, g._strides)):
        return aten.clone.default(g)
    return aten.copy_.default(aten.new_empty_strided.default(g, list(g._shape), list(strides)), g)


_C.configure_saved(Like, aten.detach.default, aten.alias.default, replay)
_C.configure_record(describe, choose, CopySlices, aten.clone.default)
_C.configure_engine(
    aten.add.Tensor,
    aten.add_.Tensor,
    aten.clone.default,
    aten.detach.default,
    aten.ones_like.default,
    _zeros,
    _laid_out_as,
    check_result,
    check_count,
)
install(K.AUTOGRAD, autograd)
