"""grad, vjp and jvp on the autograd tape.

A transform gives the function fresh inputs: leaves of their own, or, when the originals are themselves being
differentiated, aliases whose node leads on to them. Asking the tape for the derivative with respect to those nodes
holds everything else constant. What comes back is recorded exactly when it depends on something outside that asks for
a gradient (:func:`outer`), so a plain call leaves nothing on the tape.

Inside vmap, inputs and outputs are taken with the batch dimensions of all running levels in front (batching.expose):
the sum over the batch that the tape differentiates separates into one derivative an example.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from ..autograd import engine
from ..autograd.forward import detached
from ..autograd.function import linearizing
from ..autograd.grad_mode import enable_grad
from ..autograd.graph import saved_as_they_were
from ..autograd.node import AccumulateGrad, gradient_edge
from ..base import pytree
from ..batching import conceal, current, expose, innermost
from ..core.operator import namespace
from ..core.overrides import DisableTorchFunctionSubclass
from ..functionalize import FunctionalTensor
from .ndarrays import holds_arrays, on_arrays, tensor_form, to_arrays, to_tensors

__all__ = ["Differentiated", "check_argnums", "grad", "grad_and_value", "jvp", "linearize", "linearized", "vjp"]

aten = namespace("aten")


def _asks_beneath(x) -> bool:
    """Whether a functional tensor holds one that asks for a gradient outside of functionalization."""
    return isinstance(x, FunctionalTensor) and x.asks_beneath()


class Differentiated:
    """Fresh inputs for one transform: ``inputs`` for the function, and the derivative of outputs with respect to
    them.

    Use: make it, run the function on :attr:`inputs` (under enable_grad), then :meth:`pull` cotangents and
    :meth:`release` values.
    """

    def __init__(self, tree):
        leaves, self.spec = pytree.tree_flatten(tree)
        for x in leaves:
            if not isinstance(x, _C.TensorBase):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(x)}")
        self.levels = current()
        self.recording = bool(_C.tls("grad_enabled"))
        self.physical = [self._fresh(expose(x, self.levels)) for x in leaves]
        self.inputs = pytree.tree_unflatten([conceal(x, self.levels) for x in self.physical], self.spec)
        self._own = {gradient_edge(x)[0] for x in self.physical if x._grad_fn is None}

    def _fresh(self, x):
        # The function is given plain tensors, whatever the class of the argument.
        with enable_grad(), DisableTorchFunctionSubclass():
            if x._requires_grad and self.recording:
                return aten.alias.default(x)
            if _asks_beneath(x) and self.recording:
                return aten.alias.default(x).requires_grad_()
            return detached(x).requires_grad_()

    def outer(self, x) -> bool:
        """Whether ``x`` depends on something outside the transform that asks for a gradient."""
        x = innermost(x)
        if self.recording and _asks_beneath(x):
            return True
        if not self.recording or not x._requires_grad:
            return False
        edge = gradient_edge(x)
        seen, stack = {edge[0]}, [edge[0]]
        while stack:
            node = stack.pop()
            if isinstance(node, AccumulateGrad):
                if node not in self._own:
                    return True
                continue
            for e in node.next_edges:
                if e is not None and e[0] not in seen:
                    seen.add(e[0])
                    stack.append(e[0])
        return False

    def release(self, tree):
        """Results as the caller gets them: without this transform's part of the tape when that is all they hang
        on."""

        def one(x):
            return (
                x
                if not isinstance(x, _C.TensorBase) or not innermost(x)._requires_grad or self.outer(x)
                else detached(x)
            )

        return pytree.tree_map(one, tree)

    def pull(self, outputs, cotangents, retain: bool, create_graph: bool | None = None):
        """Cotangents of the inputs, in their structure, from those of the (flat) outputs; zeros where nothing flows.
        ``create_graph``: record what is done, so that the result can be differentiated; by default when it depends on
        something outside."""
        outs = [expose(y, self.levels) for y in outputs]
        cts = [expose(c, self.levels) for c in cotangents]
        pairs = [(y, c) for y, c in zip(outs, cts) if y._requires_grad]
        if create_graph is None:
            create_graph = bool(_C.tls("grad_enabled")) and (
                any(self.outer(y) for y, _ in pairs) or any(innermost(c)._requires_grad for _, c in pairs)
            )
        if pairs:
            found = engine.grad(
                [y for y, _ in pairs],
                self.physical,
                [c for _, c in pairs],
                retain_graph=retain or create_graph,
                create_graph=create_graph,
                allow_unused=True,
            )
        else:
            found = [None] * len(self.physical)
        found = [
            aten.zeros_like.default(aten.detach.default(x)) if g is None else g for g, x in zip(found, self.physical)
        ]
        return pytree.tree_unflatten([conceal(g, self.levels) for g in found], self.spec)


def check_argnums(argnums, n: int):
    """argnums with negative ones counted from the end. RuntimeError in PyTorch's words."""
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    if isinstance(argnums, tuple) and not argnums:
        raise RuntimeError("argnums must be non-empty")

    def one(k):
        if not isinstance(k, int):
            raise RuntimeError(f"argnum must be int, got: {type(k)}")
        if not -n <= k < n:
            raise RuntimeError(f"Got argnum={k}, but only {n} positional inputs")
        return k % n

    if isinstance(argnums, int):
        return one(argnums)
    made = tuple(map(one, argnums))
    if len(set(made)) != len(made):
        raise RuntimeError(f"argnums elements must be unique, got {made}")
    return made


def pick(args, argnums):
    return args[argnums] if isinstance(argnums, int) else tuple(args[k] for k in argnums)


def remade(x):
    """The value with containers of its own: as in PyTorch the function gets no container of its caller's."""
    return x if isinstance(x, _C.TensorBase) else pytree.tree_map(lambda leaf: leaf, x)


def put(args, argnums, new):
    """``args`` with the chosen ones replaced."""
    args = list(map(remade, args))
    for k, x in [(argnums, new)] if isinstance(argnums, int) else zip(argnums, new):
        args[k] = x
    return args


def split_aux(out, has_aux: bool, api: str):
    """(output, aux or None)."""
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return out


def wraps(func):
    return functools.wraps(func, assigned=[a for a in functools.WRAPPER_ASSIGNMENTS if hasattr(func, a)], updated=())


def grad_and_value(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function giving (gradient, value) of ``func``, whose value is a scalar tensor; ``(gradient, (value, aux))``
    with ``has_aux``, when ``func`` returns ``(value, aux)``. ``argnums``: which arguments (pytrees of tensors) to
    differentiate by."""
    api = "grad_and_value(f)(*args)"

    @wraps(func)
    def wrapped(*args, **kwargs):
        if holds_arrays(args, kwargs):
            return on_arrays(again, func, args, kwargs)
        at = check_argnums(argnums, len(args))
        d = Differentiated(pick(args, at))
        with enable_grad():
            value, aux = split_aux(func(*put(args, at, d.inputs), **remade(kwargs)), has_aux, api)
            if not isinstance(value, _C.TensorBase):
                raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(value)}")
            if value._ndim != 0:
                raise RuntimeError(
                    f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with {value._ndim} dims. Maybe "
                    "you wanted to use "
                    "the vjp or jacrev APIs instead?"
                )
            if value._dtype.is_complex:
                raise RuntimeError(
                    f"{api}: grad can be implicitly created only for real scalar outputs but got {value._dtype}"
                )
            released = d.release((value, aux))  # before the tape is freed
            got = d.pull([value], [aten.ones_like.default(aten.detach.default(value))], retain=False)
        return got, released if has_aux else released[0]

    again = functools.partial(grad_and_value, argnums=argnums, has_aux=has_aux)
    wrapped.tensor_form = lambda: again(tensor_form(func))
    return wrapped


def grad(func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable:
    """A function giving the gradient of the scalar function ``func`` (and aux with ``has_aux``). See
    :func:`grad_and_value`."""
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def wrapped(*args, **kwargs):
        g, value = both(*args, **kwargs)
        return (g, value[1]) if has_aux else g

    wrapped.tensor_form = lambda: grad(tensor_form(func), argnums, has_aux)
    return wrapped


def flat_outputs(out, api: str):
    """(tensors, spec) of a function's result. RuntimeError for an empty one and for what isn't a tensor."""
    flat, spec = pytree.tree_flatten(out)
    if not flat or (len(flat) == 1 and flat[0] is None):
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {flat})")
    for o in flat:
        if not isinstance(o, _C.TensorBase):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(o)}")
    return flat, spec


def vjp(func: Callable, *primals: Any, has_aux: bool = False):
    """``(output, pullback)`` or ``(output, pullback, aux)``: the value of ``func(*primals)``, and a function that
    takes cotangents in the structure of the output and gives the tuple of cotangents of the primals."""
    if holds_arrays(primals):
        with saved_as_they_were():
            out, pullback, *aux = vjp(tensor_form(func), *to_tensors(primals), has_aux=has_aux)
        return (
            to_arrays(out),
            lambda cts, *more, **named: to_arrays(pullback(to_tensors(cts), *more, **named)),
            *to_arrays(aux),
        )
    return _vjp(func, primals, tuple(range(len(primals))), has_aux)


def _vjp(func, args, argnums, has_aux=False):
    api = "vjp(f, *primals)"
    d = Differentiated(pick(args, argnums))
    with enable_grad():
        out, aux = split_aux(func(*put(args, argnums, d.inputs)), has_aux, api)
        flat, spec = flat_outputs(out, api)
        for o in flat:
            if not (o._dtype.is_floating_point or o._dtype.is_complex):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{o._dtype}"
                )
        released, aux = d.release((pytree.tree_unflatten(flat, spec), aux))

    def pullback(cotangents, retain_graph: bool = True, create_graph: bool | None = None):
        cts, given = pytree.tree_flatten(cotangents)
        if given != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                "function. "
                f"cotangents: {given}, primal output: {spec}"
            )
        return d.pull(flat, cts, retain_graph, create_graph)

    return (released, pullback, aux) if has_aux else (released, pullback)


def _is_float(y) -> bool:
    return y._dtype.is_floating_point or y._dtype.is_complex


_JVP = "jvp(f, primals, tangents)"


def jvp(func: Callable, primals: tuple, tangents: tuple, *, strict: bool = False, has_aux: bool = False):
    """``(output, tangent of the output)`` (and aux): the derivative of ``func`` along ``tangents``.

    By two pullbacks: the cotangents of the primals are linear in that of the output, and the pullback of this linear
    map, applied to the tangents, is the derivative forwards (J. Townsend, "A new trick for calculating Jacobian
    vector products", 2017).
    """
    if holds_arrays(primals, tangents):
        given = to_tensors(tangents)
        return on_arrays(
            lambda form: lambda *xs: jvp(form, xs, given, strict=strict, has_aux=has_aux), func, primals, {}
        )
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    (flat, spec), (directions, given) = pytree.tree_flatten(primals), pytree.tree_flatten(tangents)
    if spec != given:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            "tuple of 3 tensors, "
            f"tangents also must be. Got primals with structure {spec} and tangents with structure {given}"
        )
    for what, xs in (("primals", flat), ("tangents", directions)):
        if not xs:
            raise RuntimeError(f"{_JVP}: Expected {what} to contain at least one Tensor.")
        for x in xs:
            if not isinstance(x, _C.TensorBase):
                raise RuntimeError(f"{_JVP}: Expected {what} to only contain Tensors, got {type(x)}")
    for x in flat:
        if not _is_float(x):
            raise ValueError(f"Expected primal to be floating point or complex, but got: {x._dtype}")
    if strict and not _depends(func, primals, has_aux):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
            "allowed with "
            "strict=True."
        )
    out, push, *aux = linearized(func, primals, has_aux)
    return (out, push(tangents), *aux)


def linearized(func, primals: tuple, has_aux: bool = False):
    """``(output, push)`` (and aux): ``push(tangents)`` is the derivative along ``tangents``, without running ``func``
    again."""
    kept: list = []

    def floats(*xs):
        """The differentiable results; the others (indices, counts) are kept aside."""
        result, extra = split_aux(func(*xs), has_aux, _JVP)
        flat, spec = flat_outputs(result, _JVP)
        kept[:] = [flat, spec]
        # Where none is, a constant stands in: a pullback needs a result.
        return [y for y in flat if _is_float(y)] or [aten.zeros.default([])], extra

    with linearizing():
        parts, pullback, extra = vjp(floats, *primals, has_aux=True)
    flat, spec = kept
    rest = iter(parts)
    out = pytree.tree_unflatten([next(rest) if _is_float(y) else y for y in flat], spec)
    aux = [extra] if has_aux else []
    if not any(map(_is_float, flat)):
        return (out, lambda tangents: pytree.tree_map(aten.zeros_like.default, out), *aux)
    zero = [aten.zeros_like.default(aten.detach.default(y)) for y in parts]
    with linearizing(pushing=True):
        _, forward = vjp(lambda ct: pullback(ct, create_graph=True), zero)
    outside = any(innermost(y)._requires_grad for y in pytree.tree_leaves(out))

    def push(tangents):
        recorded = outside or any(innermost(t)._requires_grad for t in pytree.tree_leaves(tangents))
        found = iter(forward(tangents, create_graph=recorded and bool(_C.tls("grad_enabled")))[0])
        return pytree.tree_unflatten([next(found) if _is_float(y) else aten.zeros_like.default(y) for y in flat], spec)

    return (out, push, *aux)


def linearize(func: Callable, *primals):
    """``(output, push)``: the value of ``func(*primals)``, and the derivative there, a function of tangents in the structure of the primals."""
    return_value, push = linearized(func, primals)
    shapes = [(tuple(x._shape), x._dtype) for x in pytree.tree_leaves(primals)]

    def jvp_fn(*tangents):
        flat = pytree.tree_leaves(tangents)
        if len(flat) != len(shapes):
            raise RuntimeError(
                f"Expected the tangents to have the structure of the primals: {len(flat)} leaves, not {len(shapes)}"
            )
        for k, (t, (shape, dtype)) in enumerate(zip(flat, shapes)):
            if tuple(t._shape) != shape:
                raise RuntimeError(
                    f"tangent:{tuple(t._shape)} shape mismatch with primal:{shape} for the {k}th argument"
                )
            if t._dtype is not dtype:
                raise RuntimeError(f"tangent:{t._dtype} dtype mismatch with primal:{dtype} for the {k}th argument")
        return push(tangents)

    return return_value, jvp_fn


def _depends(func, primals, has_aux) -> bool:
    d = Differentiated(primals)
    with enable_grad():
        out, _ = split_aux(func(*d.inputs), has_aux, _JVP)
    return all(innermost(y)._requires_grad for y in pytree.tree_leaves(out))
