"""One truth about layout: shape rule, kernel (first and later calls) and compiled code give the same strides, and they are PyTorch's."""

import pytest

import flambeau
from flambeau import _C
from flambeau.base.errors import DataDependentOutputException, MissingFacet
from flambeau.testing.checks import flat
from flambeau.testing.layouts import rearranged
from flambeau.testing.peers import arguments_for
from flambeau.testing.samples import copy_strided, load, operator, to_tensors

ROWS = {}
for _name, _row in load().items():
    try:
        operator(_name)
    except AttributeError:
        continue  # samples may be ahead of the operator
    ROWS[_name] = _row


def rows(keep=lambda row: True):
    return pytest.mark.parametrize("row", [pytest.param(r, id=n) for n, r in ROWS.items() if r.arbitrary and keep(r)])


def strides(t):
    """Those that matter: of dimensions longer than one, in a tensor with elements."""
    own = t.strides if not callable(getattr(t, "stride", None)) else t.stride()
    return [s for n, s in zip(t.shape, own) if n > 1] if 0 not in t.shape else []


def samples(row, n=3):
    for sample in row.calls[:n]:
        yield "as it is", sample
        yield from rearranged(sample)


def empty(sample):
    """The sample with a first dimension of size 0 where the tensors have one."""
    return to_tensors(sample.args, lambda a: _C.from_array(a[:0] if a.ndim else a)), to_tensors(sample.kwargs)


@rows()
def test_kernels_keep_the_shape_rule(row):
    for name, sample in samples(row):
        try:
            metas = flat(row.op.meta(*to_tensors(sample.args), **to_tensors(sample.kwargs)))
        except (DataDependentOutputException, MissingFacet):
            return
        except RuntimeError:  # no view of this layout
            with pytest.raises(RuntimeError):
                row.op(*to_tensors(sample.args), **to_tensors(sample.kwargs))
            continue
        args, kwargs = to_tensors(sample.args), to_tensors(sample.kwargs)
        for call in ("first", "second", "third"):  # a later call may take a native way
            for m, r in zip(metas, flat(row.op(*args, **kwargs))):
                if isinstance(r, _C.TensorBase):
                    assert strides(r) == strides(m), (
                        f"{row.name}{sample} {name}, {call} call: {r.stride()}, the rule says {m.strides}"
                    )


@rows(lambda r: r.op.kind not in ("random",))
def test_empty_tensors_keep_the_shape_rule(row):
    for sample in row.calls[:2]:
        args, kwargs = empty(sample)
        try:
            metas = flat(row.op.meta(*args, **kwargs))
            results = flat(row.op(*args, **kwargs))
        except (DataDependentOutputException, MissingFacet, RuntimeError, IndexError, ValueError, ZeroDivisionError):
            continue  # many samples have no empty form
        for m, r in zip(metas, results):
            if isinstance(r, _C.TensorBase):
                assert tuple(r.shape) == tuple(m.shape), f"{row.name}{sample} empty: {r.shape}, the rule says {m.shape}"
                assert r.dtype is m.dtype


@pytest.mark.slow
@rows(lambda r: r.values and r.op.kind not in ("random",))
def test_compiled_code_keeps_the_shape_rule(row):
    for name, sample in [*samples(row, 1)][:4]:
        args, kwargs = to_tensors(sample.args), to_tensors(sample.kwargs)
        try:
            want = flat(row.op(*args, **kwargs))
        except RuntimeError as e:  # a view of memory in another order
            assert "view size is not compatible" in str(e)
            continue
        flambeau._dynamo.reset()
        got = flat(flambeau.compile(lambda *a, **k: row.op(*a, **k))(*args, **kwargs))
        for g, w in zip(got, want):
            if isinstance(w, _C.TensorBase):
                assert strides(g) == strides(w), f"{row.name}{sample} {name}: compiled {g.stride()}, eager {w.stride()}"


try:
    import torch
except ImportError:
    torch = None

# These keep the gaps of an argument in PyTorch, and are dense here. See docs/differences.md.
KEEPS_GAPS = {"copy", "diagonal_scatter", "select_scatter", "slice_scatter"}
BY_DTYPE = {"angle"}  # row-major for complex numbers in PyTorch


def strided(x):
    return (
        torch.from_numpy(copy_strided(x))
        if x.ndim
        else torch.tensor(x.item(), dtype=torch.from_numpy(x.reshape(1)).dtype)
    )


def as_torch(x):
    """Arguments for PyTorch: arrays become tensors, flambeau's dtypes become PyTorch's."""
    return arguments_for(torch, strided, x)


@pytest.mark.parity
@pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
@rows(lambda r: r.strides and r.torch is not None)
def test_strides_are_pytorchs(row):
    base, _, overload = (row.torch or row.name).partition(".")
    packet = getattr(torch.ops.aten, base, None)
    op = getattr(packet, overload or "default", None)
    if op is None:
        pytest.skip(f"PyTorch has no aten::{row.name}")
    for name, sample in samples(row, 6):
        if (row.name in BY_DTYPE and name != "as it is") or row.name in KEEPS_GAPS and "expanded" not in name:
            continue
        try:
            want = flat(op(*as_torch(sample.args), **as_torch(sample.kwargs)))
        except (RuntimeError, NotImplementedError, TypeError, IndexError, ValueError):
            continue  # refused samples are compared in test_parity
        for g, w in zip(flat(row.op(*to_tensors(sample.args), **to_tensors(sample.kwargs))), want):
            if isinstance(w, torch.Tensor) and tuple(g.shape) == tuple(w.shape):
                assert strides(g) == strides(w), (
                    f"{row.name}{sample} {name}: strides {g.stride()}, PyTorch {w.stride()}"
                )
