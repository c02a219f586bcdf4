"""Derivatives against central differences: ``gradcheck`` for the first order, ``gradgradcheck`` for the second.

A Jacobian is an array [output element, input element]. A complex input has two columns an element (steps by 1 and by i), a complex output two rows
(cotangents 1 and i), so that all entries are real: d Re<cotangent, output> / d step, which is PyTorch's convention for complex gradients.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from .. import _C
from ..core import device_memory
from ..core.conversion import to
from ..core.sparse import dense_dim, is_sparse
from ..core.tensor import Tensor
from . import engine, sparse_steps
from .engine import grad
from .grad_mode import enable_grad, no_grad

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """A derivative disagrees with its difference quotient."""


class _Case(NamedTuple):
    """What is checked: the function, its arguments, those that are differentiated, the step and the tolerances."""

    func: object
    inputs: tuple
    wanted: list  # (position, tensor)
    eps: float
    atol: float
    rtol: float
    masked: bool  # of a sparse tensor only the stored elements vary

    def outputs(self) -> list:
        return _tensors(self.func(*self.inputs))

    def agree(self, got, want) -> bool:
        return got.shape == want.shape and np.allclose(got, want, rtol=self.rtol, atol=self.atol, equal_nan=True)

    def varied(self) -> _Case:
        """The case whose differences are taken: without a mask, sparse inputs store all of their elements."""
        if self.masked or not any(is_sparse(x) for _, x in self.wanted):
            return self
        whole = {k: sparse_steps.all_stored(x) if is_sparse(x) else x for k, x in self.wanted}
        inputs = tuple(whole.get(k, x) for k, x in enumerate(self.inputs))
        return self._replace(inputs=inputs, wanted=list(whole.items()))


def _tuple(x) -> tuple:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _tensors(outputs) -> list:
    return [o for o in _tuple(outputs) if isinstance(o, _C.TensorBase)]


def _is_float(t) -> bool:
    return t._dtype.is_floating_point or t._dtype.is_complex


def _differentiable(outputs) -> list[int]:
    """Positions of the outputs that can be differentiated, among the tensors."""
    return [k for k, o in enumerate(outputs) if _is_float(o) and o._requires_grad]


def _units(t) -> tuple:
    """The steps, or cotangents, of one element."""
    return (1.0, 1j) if t._dtype.is_complex else (1.0,)


def _seeds(t):
    """Tensors like ``t`` that are one unit at one element, in the order of a Jacobian's rows."""
    for k in range(t.numel()):
        for unit in _units(t):
            seed = np.zeros(t._shape, t._dtype.np)
            seed.reshape(-1)[k] = unit
            yield _beside(seed, t)


def _beside(array: np.ndarray, t):
    """A tensor of an array, on the device of ``t``."""
    return to(_C.from_array(array), t._device)


def _values(t) -> np.ndarray:
    """A copy of the elements; those of a wrapper subclass are asked for one by one."""
    if is_sparse(t):
        return t.detach().to_dense().numpy()
    if t._array is None and type(t) is not Tensor:
        flat = t.detach().reshape(-1)
        return np.array([flat[k].item() for k in range(t.numel())], t._dtype.np).reshape(t._shape)
    return np.array(t.detach().numpy(force=True), copy=True)


def _reals(a) -> np.ndarray:
    """Flat, a complex entry as its two parts."""
    a = np.asarray(a).reshape(-1)
    return np.stack([a.real, a.imag], 1).reshape(-1) if a.dtype.kind == "c" else a


def _random(rng, t):
    """A cotangent or direction like ``t``, a tensor."""
    a = rng.uniform(0.2, 1.0, t._shape) * (1 if not t._dtype.is_complex else np.exp(0.25j * np.pi))
    return _beside(np.asarray(a).astype(t._dtype.np), t)


def _direction(rng, x, masked: bool):
    """A random direction of length one. That of a sparse tensor under a mask is zero where nothing is stored."""
    u = _values(_random(rng, x))
    if masked and is_sparse(x):
        u = u * sparse_steps.pattern(x)
    return _beside((u / (np.linalg.norm(u) or 1.0)).astype(x._dtype.np), x)


# ---- difference quotients --------------------------------------------------------------------------------------------------


def _write(x, values: np.ndarray) -> None:
    """Give ``x`` other elements, unseen by its history. A wrapper subclass is written to by its own operators."""
    if x._array is not None:
        x._array[...] = values
        return
    if not x._keys and device_memory.on_device(x):
        device_memory.overwrite(x, values)
        return
    with no_grad():
        x.detach().copy_(_C.from_array(np.ascontiguousarray(values, x._dtype.np)))


def _difference(case: _Case, x, step: np.ndarray) -> list[np.ndarray]:
    """(f(x + step) - f(x - step)) / 2: what each output changes by. ``x`` is as it was afterwards."""
    if is_sparse(x):
        write, before, step = sparse_steps.write, sparse_steps.read(x), sparse_steps.stored(x, step)
    else:
        write, before = _write, _values(x)
    sides = []
    for sign in (1, -1):
        write(x, before + sign * step)
        try:
            sides.append([_values(o) for o in case.outputs()])
        finally:
            write(x, before)
    for plus, minus in zip(*sides):
        for what, a, b in (("shape", plus.shape, minus.shape), ("dtype", plus.dtype, minus.dtype)):
            if a != b:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed on a dimension by {case.eps}, "
                    f"but got {plus.dtype}{list(plus.shape)} and {minus.dtype}{list(minus.shape)}."
                )
    return [(p.astype(complex if p.dtype.kind == "c" else float) - m) / 2 for p, m in zip(*sides)]


def _numerical(case: _Case, x) -> list[np.ndarray]:
    """The Jacobian of every output by ``x``."""
    columns = []
    for seed in _seeds(x):
        columns.append([_reals(d / case.eps) for d in _difference(case, x, _values(seed) * case.eps)])
    return [np.stack(c, 1) for c in zip(*columns)]


# ---- derivatives -----------------------------------------------------------------------------------------------------------


def _pulled(case: _Case, outputs, cotangents, **kw) -> list:
    return list(grad(outputs, [x for _, x in case.wanted], cotangents, retain_graph=True, allow_unused=True, **kw))


def _looked_at(case: _Case, grads, check_dtypes: bool) -> None:
    for (_, x), g in zip(case.wanted, grads):
        if g is None:
            continue
        if check_dtypes and g.dtype is not x.dtype:
            raise GradcheckError("Gradient has dtype mismatch")
        if tuple(g.shape) != tuple(x.shape):
            raise GradcheckError("Analytical gradient has incorrect size")


def _backward_jacobians(case: _Case, out, check_dtypes: bool) -> list[np.ndarray]:
    """The Jacobian of ``out`` by each wanted input, a row a cotangent."""
    rows: list[list] = [[] for _ in case.wanted]
    for seed in _seeds(out):
        grads = _pulled(case, [out], [seed])
        _looked_at(case, grads, check_dtypes)
        for k, ((_, x), g) in enumerate(zip(case.wanted, grads)):
            zero = np.zeros(x.numel() * len(_units(x)))
            pulled = zero if g is None else _reals(_values(g))
            if x._dtype.is_complex and pulled.size != zero.size:  # a real gradient of a complex input
                pulled = _reals(pulled + 0j)
            rows[k].append(pulled)
    return [np.stack(r) if r else np.zeros((0, x.numel() * len(_units(x)))) for r, (_, x) in zip(rows, case.wanted)]


def _pushed(case: _Case, x, tangent) -> list:
    """(output, its tangent or None) of a run in which ``x`` carries ``tangent`` and the others that are differentiated zeros."""
    zeros = {id(y): _beside(np.zeros(y._shape, y._dtype.np), y) for _, y in case.wanted}
    return _pushed_along(case, {**zeros, id(x): tangent})


def _pushed_along(case: _Case, tangents: dict) -> list:
    """:func:`_pushed` with a tangent for each tensor by its id. What is differentiated has no history meanwhile."""
    from . import forward_ad  # of a higher level: found by the package

    asked = {id(y) for _, y in case.wanted}
    with forward_ad.dual_level():
        inputs = [
            forward_ad.make_dual(y.detach(), tangents[id(y)])
            if id(y) in tangents
            else y.detach()
            if id(y) in asked
            else y
            for y in case.inputs
        ]
        outputs = _tensors(case.func(*inputs))
        return [(o, forward_ad.unpack_dual(o).tangent if _is_float(o) else None) for o in outputs]


def _forward_jacobians(case: _Case, x, check_dtypes: bool) -> list[np.ndarray]:
    """The Jacobian of every output by ``x``, a column a tangent."""
    columns = []
    for seed in _seeds(x):
        column = []
        for out, tangent in _pushed(case, x, seed):
            if tangent is not None and tuple(tangent.shape) != tuple(out.shape):
                raise GradcheckError("Forward AD gradient has incorrect size")
            if tangent is not None and check_dtypes and tangent.dtype is not out.dtype:
                raise GradcheckError("Forward AD gradient has dtype mismatch.")
            zero = np.zeros(out._shape, out._dtype.np if _is_float(out) else float)
            column.append(_reals(zero if tangent is None else _values(tangent)))
        columns.append(column)
    return [np.stack(c, 1) for c in zip(*columns)]


# ---- the checks ------------------------------------------------------------------------------------------------------------


def _mismatch(mode: str, out, x, k: int, j: int, numerical, analytical) -> GradcheckError:
    """The message names the part of a complex output (input, in forward mode) that differs first."""
    side, axis, whose = (out, 0, "outputs") if not mode else (x, 1, "inputs")
    part = ""
    if side._dtype.is_complex:
        apart = ~np.isclose(numerical, analytical) if numerical.shape == analytical.shape else np.ones((1, 1), bool)
        where = int(np.flatnonzero(apart.any(1 - axis))[0]) if apart.any() else 0
        part = f"While considering the {('real', 'imaginary')[where % 2]} part of complex {whose} only, "
    return GradcheckError(
        f"{part}Jacobian {mode}mismatch for output {k} with respect to input {j},\n"
        f"numerical:{numerical.T}\nanalytical:{analytical.T}\n"
    )


def _check_whole(case: _Case, outputs, which, backward: bool, forward: bool, check_dtypes: bool) -> None:
    varied = case.varied()
    numerical = [_numerical(varied, x) for _, x in varied.wanted]
    if not which:
        if any(d.any() for jacobians in numerical for d in jacobians):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    if backward:
        for i, k in enumerate(which):
            for (j, x), want, got in zip(
                case.wanted, numerical, _backward_jacobians(case, outputs[k], check_dtypes), strict=True
            ):
                if want and not case.agree(got, want[k]):
                    raise _mismatch("", outputs[k], x, i, j, want[k], got)
    if forward:
        for (j, x), want in zip(case.wanted, numerical):
            got = _forward_jacobians(case, x, check_dtypes)
            for i, k in enumerate(which):
                if want and not case.agree(got[k], want[k]):
                    raise _mismatch("computed with forward mode ", outputs[k], x, i, j, want[k], got[k])


def _check_fast(case: _Case, outputs, which, backward: bool, forward: bool, check_dtypes: bool) -> None:
    """One number an output and input: <v, J u> with random u and v, from differences, from the pullback of v, from the push of u."""
    rng = np.random.default_rng(0)
    cotangents = [_random(rng, o) for o in outputs]
    found = []
    varied = case.varied()
    for _, x in varied.wanted:
        u = _direction(rng, x, case.masked)
        found.append((u, [d / case.eps for d in _difference(varied, x, u.numpy() * case.eps)]))
    if not which:
        if any(np.any(d) for _, differences in found for d in differences):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return

    def compare(mode, k, j, x, u, got, want):
        reach = float(np.abs(u.numpy()).sum() * np.abs(cotangents[k].numpy()).sum())
        if not np.isclose(got, want, rtol=case.rtol, atol=case.atol * max(reach, 1.0), equal_nan=True):
            _check_whole(case, outputs, which, backward, forward, check_dtypes)  # its message says where
            raise _mismatch(mode, outputs[k], x, which.index(k), j, np.asarray(want), np.asarray(got))

    for k in which:
        grads = _pulled(case, [outputs[k]], [cotangents[k]]) if backward else []
        _looked_at(case, grads, check_dtypes)
        for (j, x), (u, differences), g in zip(case.wanted, found, grads):
            got = 0.0 if g is None else np.vdot(_values(g), u.numpy()).real
            compare("", k, j, x, u, got, np.vdot(cotangents[k].numpy(), differences[k]).real)
    for (j, x), (u, differences) in zip(case.wanted if forward else [], found):
        pushed = _pushed(case, x, u)
        for k in which:
            t = pushed[k][1]
            got = 0.0 if t is None else np.vdot(cotangents[k].numpy(), _values(t)).real
            want = np.vdot(cotangents[k].numpy(), differences[k]).real
            compare("computed with forward mode ", k, j, x, u, got, want)


def _check_repeats(case: _Case, outputs, which, tolerance: float) -> None:
    """Twice the same pullback is twice the same."""
    rng = np.random.default_rng(1)
    for k in which:
        ct = _random(rng, outputs[k])
        for a, b in zip(*(_pulled(case, [outputs[k]], [ct]) for _ in range(2))):
            if (a is None) != (b is None) or (
                a is not None and not np.allclose(_values(a), _values(b), rtol=0, atol=tolerance, equal_nan=True)
            ):
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
                    "although analytical gradient matches numerical gradient."
                    f"The tolerance for nondeterminism was {tolerance}."
                )


def _same_layout(g, x) -> None:
    """A gradient that is sparse is so as its input is."""
    if not is_sparse(g):
        return
    if g.layout is not x.layout:
        raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
    what = sparse_steps.kind(g.layout)
    for name, got, want in (
        ("sparse_dim", g.sparse_dim(), x.sparse_dim()),
        ("dense_dim", dense_dim(g), dense_dim(x)),
    ):
        if got != want:
            raise GradcheckError(f"grad is {what} tensor, but has incorrect {name} {got}, expected {want}")


def _check_zero_cotangents(case: _Case, outputs, which, undefined: bool) -> None:
    """What is pulled back from zeros, or from nothing, is zero."""
    picked = [outputs[k] for k in which]
    zeros = [_beside(np.zeros(o._shape, o._dtype.np), o) for o in picked]
    for (_, x), g in zip(case.wanted, _pulled(case, picked, zeros)):
        if g is None:
            continue
        _same_layout(g, x)
        if g.dtype.is_complex and not x.dtype.is_complex:
            raise GradcheckError("grad is incorrect type")
        if tuple(g.shape) != tuple(x.shape):
            raise GradcheckError("grad is incorrect size")
        if _values(g).any():
            raise GradcheckError("backward not multiplied by grad_output")
    for k in range(len(picked)) if undefined and len(picked) > 1 else ():
        rest, cts = picked[:k] + picked[k + 1 :], zeros[:k] + zeros[k + 1 :]
        try:
            grads = _pulled(case, rest, cts)
        except RuntimeError as e:
            raise GradcheckError("Expected backward function to handle undefined output grads.") from e
        if any(g is not None and _values(g).any() for g in grads):
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _check_zero_tangents(case: _Case) -> None:
    """A tangent of zeros pushes forward what no tangent does."""
    rng = np.random.default_rng(4)
    for _, x in case.wanted:
        others = {id(y): _random(rng, y) for _, y in case.wanted if y is not x}
        zeros = _pushed_along(case, {**others, id(x): _beside(np.zeros(x._shape, x._dtype.np), x)})
        nothing = _pushed_along(case, others) if others else [(o, None) for o, _ in zeros]
        for (out, t), (_, u) in zip(zeros, nothing, strict=True):
            a, b = (np.zeros(out._shape) if d is None else _values(d) for d in (t, u))
            if not np.allclose(a, b, equal_nan=True):
                raise GradcheckError("Expected all tangents to be undefined or zero when the input's tangent is zero.")


def _stacked(tensors) -> object:
    return _C.from_array(np.stack([_values(t) for t in tensors]))


def _same_batches(got, want, k: int, j: int, mode: str) -> None:
    if not np.allclose(_values(got), want, equal_nan=True):
        raise GradcheckError(
            f"For output {k} and input {j}:\n\ngradcheck or gradgradcheck failed while testing batched gradient computation{mode}.\n\n"
            f"Got:\n{got}\n\nExpected:\n{want}"
        )


def _check_batched_backward(case: _Case, outputs, which) -> None:
    """A batch of two cotangents against one after the other."""
    rng = np.random.default_rng(2)
    for i, k in enumerate(which):
        cts = [_random(rng, outputs[k]), _random(rng, outputs[k])]
        single = [_pulled(case, [outputs[k]], [ct]) for ct in cts]
        try:
            together = _pulled(case, [outputs[k]], [_stacked(cts)], is_grads_batched=True)
        except RuntimeError as e:
            raise GradcheckError(
                f"While computing batched gradients, got: {e}\n\ngradcheck or gradgradcheck failed while testing batched gradient computation."
            ) from e
        for (j, x), g, *each in zip(case.wanted, together, *single):
            zero = np.zeros(x._shape, x._dtype.np)
            got = _stacked([_C.from_array(zero)] * 2) if g is None else g
            _same_batches(got, np.stack([zero if e is None else _values(e) for e in each]), i, j, "")


def _check_batched_forward(case: _Case, which) -> None:
    """A batch of two tangents against one after the other."""
    rng = np.random.default_rng(3)
    for j, x in case.wanted:
        tangents = [_random(rng, x), _random(rng, x)]
        present: list[int] = []

        def push(t, x=x, present=present):
            pushed = _pushed(case, x, t)
            present[:] = [k for k in which if pushed[k][1] is not None]
            return tuple(pushed[k][1] for k in present)

        single = [push(t) for t in tangents]
        try:
            together = engine._vmap(push)(_stacked(tangents))
        except RuntimeError as e:
            raise GradcheckError(f"While computing batched gradients, got: {e}") from e
        for k, g, *each in zip(present, together, *single):
            _same_batches(g, np.stack([_values(t) for t in each]), k, j, " with forward-mode AD")


def _wanted(inputs) -> list:
    found = []
    for k, x in enumerate(inputs):
        if not (isinstance(x, _C.TensorBase) and x._requires_grad):
            continue
        if x._dtype.itemsize < (16 if x._dtype.is_complex else 8):
            warnings.warn(
                f"Input #{k} requires gradient and is not a double precision floating point or complex. "
                "This check will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if not is_sparse(x) and not all(s > 0 or n <= 1 for s, n in zip(x._strides, x._shape)):
            raise RuntimeError(
                f"The {k}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                "compute the numerical gradients correctly. You should call .contiguous on the input before passing it to gradcheck."
            )
        found.append((k, x))
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
    return found


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
    """Compare the derivative of ``func`` at ``inputs`` (those that require grad, float64 or complex128) with central differences of step ``eps``.

    ``check_backward_ad``: by the tape; ``check_forward_ad``: by dual numbers; ``check_batched_grad`` and ``check_batched_forward_grad``: also with
    a batch of cotangents or tangents at once, against one after the other. ``fast_mode`` compares one random projection of each Jacobian instead
    of all its entries. ``nondet_tol``: by how much two runs of one backward may differ. ``check_undefined_grad``: outputs without a cotangent count
    as zero. ``check_grad_dtypes``: gradients have their input's dtype.
    ``masked`` matters to sparse inputs alone: with it only their stored elements vary, without it all of them.

    Returns True. GradcheckError (or False, without ``raise_exception``) when an entry of a Jacobian differs by more than ``atol + rtol * |number|``;
    ValueError without an input that requires grad; RuntimeError for an input whose elements overlap in memory.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    inputs = _tuple(inputs)
    case = _Case(func, inputs, _wanted(inputs), eps, atol, rtol, bool(masked))
    try:
        outputs = case.outputs()
        if any(is_sparse(o) for o in outputs):
            raise ValueError(
                "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output of fn for gradcheck."
            )
        which = _differentiable(outputs)
        check = _check_fast if fast_mode else _check_whole
        check(case, outputs, which, check_backward_ad, check_forward_ad, check_grad_dtypes)
        if check_forward_ad and check_undefined_grad:
            _check_zero_tangents(case)
        if check_batched_forward_grad:
            _check_batched_forward(case, which)
        if check_backward_ad and which:
            if check_batched_grad:
                _check_batched_backward(case, outputs, which)
            _check_repeats(case, outputs, which, nondet_tol)
            _check_zero_cotangents(case, outputs, which, check_undefined_grad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


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
    """:func:`gradcheck` of the gradient of ``func``, with cotangents that also ask for a gradient: random ones unless ``grad_outputs`` are given.

    ``check_rev_over_rev``: the tape's gradient of the gradient; ``check_fwd_over_rev``: its forward derivative by dual numbers."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    inputs = _tuple(inputs)
    outputs = _tensors(func(*inputs))
    which = _differentiable(outputs)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        cts = [_cotangent(rng, outputs[k], gen_non_contig_grad_outputs).requires_grad_() for k in which]
    else:
        cts = list(_tuple(grad_outputs))
    n = len(inputs)
    asked = [isinstance(x, Tensor) and x._requires_grad for x in (*inputs, *cts)]

    def first(*args):
        # A dual number stands in without its history.
        args = [a.requires_grad_() if want and not a.requires_grad else a for a, want in zip(args, asked)]
        xs, gs = args[:n], args[n:]
        with enable_grad():
            outs = _tensors(func(*xs))
        wanted = [x for x, want in zip(xs, asked) if want]
        pulled = grad([outs[k] for k in which], wanted, gs, create_graph=True, allow_unused=True)
        return tuple(g for g in pulled if g is not None)

    common = {"eps": eps, "atol": atol, "rtol": rtol, "raise_exception": raise_exception, "nondet_tol": nondet_tol}
    common |= {"check_grad_dtypes": check_grad_dtypes, "fast_mode": fast_mode, "masked": masked}
    fine = not check_rev_over_rev or gradcheck(
        first,
        (*inputs, *cts),
        check_undefined_grad=check_undefined_grad,
        check_batched_grad=check_batched_grad,
        **common,
    )
    if not check_fwd_over_rev or not fine:
        return fine
    forward = {"check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False}
    return gradcheck(first, (*inputs, *cts), **forward, **common)


def _cotangent(rng, like, spread: bool):
    """Random, like an output; ``spread``: every other element of a wider array."""
    a = rng.uniform(-1, 1, like._shape)
    if like._dtype.is_complex:
        a = a + 1j * rng.uniform(-1, 1, like._shape)
    a = np.asarray(a).astype(like._dtype.np)
    if spread and a.size > 1:
        wide = np.zeros((*a.shape[:-1], a.shape[-1] * 2), a.dtype)
        wide[..., ::2] = a
        a = wide[..., ::2]
    return _beside(a, like)
