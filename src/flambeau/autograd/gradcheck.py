"""Derivatives against central differences: ``gradcheck`` for the first order, ``gradgradcheck`` for the second."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..core.tensor import Tensor
from .engine import grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative disagrees with its difference quotient."""


def _flat(outputs):
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    return [o for o in outputs if isinstance(o, _C.TensorBase)]


def _floats(outputs):
    return [o for o in _flat(outputs) if o._dtype.category >= 2 and o._requires_grad]


def _picked(outputs, which):
    flat = _flat(outputs)
    return [flat[k] for k in which]


def _numerical(func, inputs, target, eps, which):
    """d outputs / d target by central differences: one array [output element, input element] an output."""
    a = target._array
    columns = []
    for index in np.ndindex(a.shape):
        old = a[index]
        steps = [1.0, 1j] if a.dtype.kind == "c" else [1.0]
        for unit in steps:
            sides = []
            for sign in (1, -1):
                a[index] = old + sign * eps * unit
                sides.append([np.array(o.numpy(force=True), copy=True) for o in _picked(func(*inputs), which)])
            a[index] = old
            columns.append([((p - m) / (2 * eps)).reshape(-1) for p, m in zip(*sides)])
    return columns


def _real_pairs(g):
    """Cotangent entries as real numbers, a complex one as its two parts."""
    g = np.asarray(g).reshape(-1)
    return np.stack([g.real, g.imag], 1).reshape(-1) if g.dtype.kind == "c" else g


def gradcheck(
    func,
    inputs,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_batched_forward_grad=False,
    check_forward_ad=False,
    check_backward_ad=True,
    fast_mode=False,
    masked=None,
):
    """Compare the derivative of ``func`` at ``inputs`` (those that require grad, float64) with central differences of step ``eps``.

    Returns True. GradcheckError (or False, without ``raise_exception``) when an entry of a Jacobian differs by more than ``atol + rtol * |number|``.
    """
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    wanted = [x for x in inputs if isinstance(x, _C.TensorBase) and x._requires_grad]
    if not wanted:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have requires_grad=True."
        )
    try:
        _check(func, inputs, wanted, eps, atol, rtol)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func, inputs, wanted, eps, atol, rtol):
    flat = _flat(func(*inputs))
    which = [k for k, o in enumerate(flat) if o._dtype.category >= 2 and o._requires_grad]
    if not which:
        raise GradcheckError("gradcheck expects at least one differentiable output: none of the outputs requires grad")
    outputs = [flat[k] for k in which]
    numerical = [_numerical(func, inputs, x, eps, which) for x in wanted]
    for k, out in enumerate(outputs):
        size = out.numel()
        parts = [1.0, 1j] if out._dtype.is_complex else [1.0]
        for row in range(size):
            for unit in parts:
                seed = np.zeros(out._shape, out._dtype.np)
                seed.reshape(-1)[row] = unit
                grads = grad([out], wanted, [_C.from_array(seed)], retain_graph=True, allow_unused=True)
                for x, g, columns in zip(wanted, grads, numerical):
                    got = np.zeros(len(columns)) if g is None else _real_pairs(g.numpy(force=True))
                    column = np.array([c[k][row] for c in columns])
                    # <ct, J v> with the real inner product; ct is 1 or i.
                    want = (np.conj(unit) * column).real if column.dtype.kind == "c" or unit == 1j else column
                    if got.shape != want.shape or not np.allclose(got, want, rtol=rtol, atol=atol):
                        position = next(i for i, y in enumerate(inputs) if y is x)
                        raise GradcheckError(
                            f"Jacobian mismatch for output {k} with respect to input {position}, row {row},\n"
                            f"numerical:{want}\nanalytical:{got}\n"
                        )


def gradgradcheck(
    func,
    inputs,
    grad_outputs=None,
    *,
    eps=1e-6,
    atol=1e-5,
    rtol=1e-3,
    gen_non_contig_grad_outputs=False,
    raise_exception=True,
    nondet_tol=0.0,
    check_undefined_grad=True,
    check_grad_dtypes=False,
    check_batched_grad=False,
    check_fwd_over_rev=False,
    check_rev_over_rev=True,
    fast_mode=False,
    masked=False,
):
    """:func:`gradcheck` of the gradient of ``func``, with cotangents that also ask for a gradient."""
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outputs = _floats(func(*inputs))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        cts = [
            _C.from_array(np.asarray(rng.standard_normal(o._shape)).astype(o._dtype.np)).requires_grad_()
            for o in outputs
        ]
    else:
        cts = [
            g.detach().requires_grad_()
            for g in (grad_outputs if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,))
        ]
    n = len(inputs)

    def first(*args):
        xs, gs = args[:n], args[n:]
        wanted = [x for x in xs if isinstance(x, Tensor) and x._requires_grad]
        outs = _floats(func(*xs))
        return tuple(g for g in grad(outs, wanted, list(gs), create_graph=True, allow_unused=True) if g is not None)

    if not any(g._requires_grad for g in first(*inputs, *cts)):
        return True  # a gradient that depends on nothing: the second derivative is zero
    return gradcheck(first, (*inputs, *cts), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)
