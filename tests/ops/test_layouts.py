"""One truth about layout: shape rule, kernel (first and later calls) and compiled code give the same strides, and they are PyTorch's."""

import pytest
from flambeau._subclasses.fake_tensor import FakeTensorMode

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


# function, order of the dimensions (2, 3, 4, 5) in memory, arguments, PyTorch's strides
TRANSFORMED = [
    ("fft", "0123", {"dim": 1}, (60, 1, 15, 3)),
    ("fft", "0123", {"dim": 0}, (1, 40, 10, 2)),
    ("ifft", "2031", {"dim": 2}, (60, 4, 1, 12)),
    ("rfft", "0123", {"dim": 1}, (40, 1, 10, 2)),
    ("rfft", "3102", {"dim": 0}, (1, 8, 2, 24)),
    ("irfft", "0123", {"dim": 2}, (90, 30, 1, 6)),
    ("irfft", "1203", {"dim": 0, "n": 5}, (1, 100, 25, 5)),
    ("hfft", "0123", {"dim": 1}, (80, 1, 20, 4)),
    ("ihfft", "3210", {"dim": 1}, (2, 1, 4, 16)),
    ("fft2", "0123", {"dim": (0, 1)}, (3, 1, 30, 6)),
    ("fft2", "3012", {"dim": (2, 0)}, (4, 8, 1, 24)),
    ("fftn", "2103", {}, (5, 10, 30, 1)),
    ("ifftn", "0123", {"dim": (3, 0, 1)}, (15, 5, 30, 1)),
    ("rfftn", "0123", {"dim": (2, 0)}, (1, 40, 2, 8)),
    ("rfftn", "1032", {"dim": (3, 1, 0)}, (1, 10, 30, 2)),
    ("irfftn", "0123", {"dim": (0, 1)}, (4, 1, 40, 8)),
    ("irfftn", "2310", {"dim": (3, 1, 0), "s": (4, 4, 4)}, (1, 16, 64, 4)),
    ("hfftn", "0123", {"dim": (2, 1)}, (80, 1, 4, 16)),
    ("ihfft2", "0321", {"dim": (1, 0)}, (3, 1, 6, 24)),
    ("ihfft2", "0123", {"dim": (0, 3)}, (1, 24, 6, 2)),
]


@pytest.mark.parametrize("name, order, arguments, want", TRANSFORMED)
@pytest.mark.parametrize("how", ["eager", "fake", "compiled"])
def test_transformed_dimensions_are_innermost(name, order, arguments, want, how):
    order, fn = [int(d) for d in order], getattr(flambeau.fft, name)
    x = flambeau.ones([(2, 3, 4, 5)[d] for d in order]).permute([order.index(d) for d in range(4)])
    if how == "eager":
        y = fn(x, **arguments)
    elif how == "fake":
        with FakeTensorMode() as mode:
            y = fn(mode.from_tensor(x), **arguments)
    else:
        flambeau._dynamo.reset()
        y = flambeau.compile(lambda x: fn(x, **arguments), backend="aot_eager")(x)
    assert y.stride() == want


@pytest.mark.parametrize(
    "leaf, strides",
    [
        (lambda: flambeau.ones(3, 4), (4, 1)),
        (lambda: flambeau.ones(4, 3).t(), (1, 3)),
        (lambda: flambeau.ones(3, 8)[:, ::2], (4, 1)),
        (lambda: flambeau.ones(8, 3)[::2].t(), (4, 1)),
        (lambda: flambeau.ones(4).expand(3, 4), (4, 1)),
    ],
)
@pytest.mark.parametrize("given", [flambeau.ones(3, 4), flambeau.ones(4, 3).t(), flambeau.ones(()).expand(3, 4)])
def test_gradients_of_leaves_are_laid_out_as_the_leaf(leaf, strides, given):
    x = leaf().requires_grad_()
    (x * 1).backward(given)
    assert x.grad.stride() == strides
    assert (x.grad == 1).all()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_the_gradient_of_a_filtered_image_is_row_major(mode):
    x = flambeau.rand(2, 3, 8, 6, requires_grad=True)
    y = flambeau.nn.functional.interpolate(x, size=(4, 3), mode=mode, antialias=True)
    (g,) = flambeau.autograd.grad(y, x, flambeau.ones_like(y))
    assert (y.stride(), g.stride()) == ((36, 12, 3, 1), (144, 48, 6, 1))


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

# These keep the gaps of an argument in PyTorch, and are dense here. See docs/reference/differences.md.
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
