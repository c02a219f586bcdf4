"""Differential checks over the operator samples: each takes a row and raises AssertionError naming the operator and the sample."""

from __future__ import annotations

import functools

import numpy as np

from .. import _C
from ..autograd import gradcheck, gradgradcheck
from ..base import pytree
from ..base.errors import DataDependentOutputException, MissingFacet
from ..core.definition import TensorMeta
from ..core.operator import OpOverload, inplace_overload
from ..fake import FakeTensor, FakeTensorMode
from .samples import Call, Row, to_tensors

__all__ = [
    "check_fake",
    "check_gradient",
    "check_inplace",
    "check_meta",
    "check_out",
    "check_reference",
    "check_second_gradient",
    "flat",
    "run",
]


def flat(x) -> list:
    """Results of an operator as a flat list of tensors and numbers."""
    if isinstance(x, (list, tuple)):
        return [z for y in x for z in flat(y)]
    return [x]


def run(op: OpOverload, sample: Call):
    return op(*to_tensors(sample.args), **to_tensors(sample.kwargs))


def _array(x):
    return x.numpy(force=True) if isinstance(x, _C.TensorBase) else np.asarray(x)


def assert_close(what, got, want, rtol, atol=None):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    if got.dtype.kind in "fc" or want.dtype.kind in "fc":
        wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
        np.testing.assert_allclose(
            got.astype(wide), want.astype(wide), rtol=rtol, atol=rtol if atol is None else atol, err_msg=what
        )
    else:
        np.testing.assert_array_equal(got, want, err_msg=what)


def check_reference(row: Row):
    """Values against the NumPy reference."""
    for sample in row.calls:
        what = f"{row.name}{sample}"
        got = [_array(x) for x in flat(run(row.op, sample))]
        with np.errstate(all="ignore"):
            want = flat(row.reference(*sample.args, **sample.kwargs))
        assert len(got) == len(want), f"{what}: {len(got)} results, expected {len(want)}"
        for g, w in zip(got, want):
            assert_close(what, g, w, max(row.rtol, 1e-5 if g.dtype in (np.float32, np.complex64) else 0))


def _same_meta(what, got, want):
    """``got`` (TensorMeta or FakeTensor) describes the tensor ``want``."""
    if not isinstance(want, _C.TensorBase):
        return
    assert isinstance(got, (TensorMeta, _C.TensorBase)), f"{what}: {got!r} instead of a tensor"
    shape, dtype = tuple(got.shape), got.dtype
    strides = tuple(got.strides) if isinstance(got, TensorMeta) else tuple(got._strides)
    assert shape == tuple(want.shape), f"{what}: shape {shape}, eager {tuple(want.shape)}"
    assert dtype is want.dtype, f"{what}: {dtype}, eager {want.dtype}"
    significant = [k for k, n in enumerate(shape) if n > 1] if want.numel() else []
    assert [strides[k] for k in significant] == [want._strides[k] for k in significant], (
        f"{what}: strides {strides}, eager {want._strides}, shape {shape}"
    )


def check_meta(row: Row):
    """The meta facet against eager: shape, strides, dtype."""
    for sample in row.calls:
        what = f"{row.name}{sample} meta"
        want = flat(run(row.op, sample))
        try:
            got = flat(row.op.meta(*to_tensors(sample.args), **to_tensors(sample.kwargs)))
        except DataDependentOutputException:
            continue
        except MissingFacet:
            if row.op.kind == "composite" and row.op.definition.implicit:
                continue
            raise
        assert len(got) == len(want), f"{what}: {len(got)} results, eager {len(want)}"
        for g, w in zip(got, want):
            _same_meta(what, g, w)


def check_fake(row: Row):
    """A run on FakeTensors against eager: shape, strides, dtype; nothing real comes out."""
    for sample in row.calls:
        what = f"{row.name}{sample} fake"
        want = flat(run(row.op, sample))
        mode = FakeTensorMode()
        convert = lambda a: mode.from_tensor(_C.from_array(a))  # noqa: E731, B023
        try:
            with mode:
                got = flat(row.op(*to_tensors(sample.args, convert), **to_tensors(sample.kwargs, convert)))
        except DataDependentOutputException:
            continue
        assert len(got) == len(want), f"{what}: {len(got)} results, eager {len(want)}"
        for g, w in zip(got, want):
            assert isinstance(g, FakeTensor) or not isinstance(w, _C.TensorBase), (
                f"{what}: a {type(g).__name__} came out"
            )
            _same_meta(what, g, w)


def differentiable(row: Row, sample: Call):
    """(function of the tensors to differentiate, those tensors), or None when the sample has none."""
    if row.grad == () or not row.values or not sample.grad:
        return None
    args, kwargs = to_tensors(sample.args), to_tensors(sample.kwargs)
    inputs = []

    def mark(x):
        if isinstance(x, _C.TensorBase) and x._dtype.category >= 2 and x.numel():
            inputs.append(x.requires_grad_())
        elif isinstance(x, (list, tuple)):
            for y in x:
                mark(y)

    for k, a in enumerate(args):
        if row.grad is None or k in row.grad:
            mark(a)
    if row.grad is None:
        for a in kwargs.values():
            mark(a)
    if not inputs:
        return None

    def fn(*given):
        stand_in = dict(zip(map(id, inputs), given))
        change = lambda x: stand_in.get(id(x), x)  # noqa: E731
        call = row.op if row.through is None else functools.partial(row.through, row.op)
        out = call(*pytree.tree_map(change, args), **pytree.tree_map(change, kwargs))
        return tuple(o for o in flat(out) if isinstance(o, _C.TensorBase) and o._dtype.category >= 2)

    out = fn(*inputs)
    if not out or not sum(o.numel() for o in out):
        return None
    return fn, inputs


def check_gradient(row: Row):
    """First derivatives against central differences."""
    for sample in row.calls:
        found = differentiable(row, sample)
        if found is not None:
            _explained(f"{row.name}{sample} gradient", gradcheck, *found)


def check_second_gradient(row: Row):
    """Second derivatives against central differences of the first, on the smaller samples."""
    for sample in row.calls[:4]:
        found = differentiable(row, sample)
        if (
            found is not None
            and sum(x.numel() for x in found[1]) <= 14
            and any(o._requires_grad for o in found[0](*found[1]))
        ):
            _explained(f"{row.name}{sample} second gradient", gradgradcheck, *found)


def _explained(what, check, *args):
    try:
        check(*args)
    except Exception as e:
        raise AssertionError(f"{what}: {type(e).__name__}: {e}") from e


def check_inplace(row: Row):
    """``name_`` gives in its first argument what ``name`` returns, and counts as a write."""
    inplace = _inplace_of(row.op)
    for sample in row.calls:
        want = run(row.op, sample)
        args, kwargs = to_tensors(sample.args), to_tensors(sample.kwargs)
        target = args[0]
        if (
            not isinstance(target, _C.TensorBase)
            or tuple(target.shape) != tuple(want.shape)
            or target.dtype is not want.dtype
        ):
            continue
        version = target._writes
        got = inplace(*args, **kwargs)
        what = f"{inplace}{sample}"
        assert got is target, f"{what} doesn't return its first argument"
        assert target._writes > version, f"{what} isn't counted as a write"
        assert_close(what, target._array, want._array, 1e-12)


def _inplace_of(op: OpOverload):
    from ..core.operator import namespace

    return getattr(getattr(namespace(op.namespace), op._opname + "_"), inplace_overload(op) or "default")


def check_out(row: Row):
    """``out=`` variants write what the functional form returns, into memory of any layout."""
    packet = row.op.overloadpacket
    first = next(o for o in packet._overloads.values() if getattr(o, "has_out", False))
    op = packet._derive("out" if first is row.op else f"{row.op._overloadname}_out")
    names = [a.name for a in op._schema.arguments if a.is_out]
    for sample in row.calls[:3]:
        want = flat(run(row.op, sample))
        if None in want:
            continue
        outs = [_C.from_array(np.zeros(tuple(reversed(w.shape)), w.dtype.np).T) for w in want]
        got = flat(op(*to_tensors(sample.args), **to_tensors(sample.kwargs), **dict(zip(names, outs))))
        for g, o, w in zip(got, outs, want):
            assert g is o, f"{op}{sample} doesn't return out"
            assert_close(f"{op}{sample}", o._array, _array(w), 1e-12)
