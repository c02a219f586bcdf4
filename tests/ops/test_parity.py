"""The operator samples against an installed PyTorch: values, dtypes, strides, gradients, schemas. Skipped where PyTorch isn't installed.

Run with: pytest -m parity tests/ops/test_parity.py
"""

import re
import warnings

import ml_dtypes
import numpy as np
import pytest

import flambeau
from flambeau import _C
from flambeau.testing.checks import flat
from flambeau.testing.peers import arguments_for
from flambeau.testing.samples import copy_strided, every_operator, load, operator, to_tensors

try:
    import torch
except ImportError:
    torch = None

pytestmark = [pytest.mark.parity, pytest.mark.skipif(torch is None, reason="PyTorch is not installed")]

ROWS = {}
for _name, _row in load().items():
    try:
        operator(_name)
    except AttributeError:
        continue
    if _row.torch is not None and _row.through is None:  # factors have no one answer to compare
        ROWS[_name] = _row


def theirs(name):
    base, _, overload = (ROWS[name].torch or name).partition(".")
    try:
        return getattr(getattr(torch.ops.aten, base), overload or "default")
    except AttributeError:
        return None


def to_torch(a):
    if a.dtype == ml_dtypes.bfloat16:
        return to_torch(a.view(np.int16)).view(torch.bfloat16)
    return (
        torch.from_numpy(copy_strided(a))
        if a.ndim
        else torch.tensor(a.item(), dtype=torch.from_numpy(a.reshape(1)).dtype)
    )


def as_torch(x):
    """Arguments for PyTorch: arrays become tensors, flambeau's dtypes become PyTorch's."""
    return arguments_for(torch, to_torch, x)


def array(t):
    t = t.detach()
    return t.float().numpy() if t.dtype == torch.bfloat16 else t.numpy(force=True)


def compare(what, got, want, rtol, strides=True):
    got, want = flat(got), flat(want)
    assert len(got) == len(want), f"{what}: {len(got)} results, PyTorch {len(want)}"
    for g, w in zip(got, want):
        if not isinstance(w, torch.Tensor):
            assert g is None and w is None or np.allclose(g, w, equal_nan=True), f"{what}: {g}, PyTorch {w}"
            continue
        assert isinstance(g, flambeau.Tensor), f"{what}: {g!r}, PyTorch gives a tensor"
        assert str(g.dtype) == str(w.dtype), f"{what}: {g.dtype}, PyTorch {w.dtype}"
        assert tuple(g.shape) == tuple(w.shape), f"{what}: shape {tuple(g.shape)}, PyTorch {tuple(w.shape)}"
        if strides and g.numel():
            wide = [k for k, n in enumerate(g.shape) if n > 1]
            assert [g.stride(k) for k in wide] == [w.stride(k) for k in wide], (
                f"{what}: strides {g.stride()}, PyTorch {w.stride()}, shape {tuple(g.shape)}"
            )
        a, c = g.detach().resolve_conj().resolve_neg()._array, array(w)
        if a.dtype.kind not in "biu":
            a = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
            np.testing.assert_allclose(a, c.astype(a.dtype), rtol=rtol, atol=rtol, err_msg=what)
        else:
            np.testing.assert_array_equal(a, c, err_msg=what)


def rows(keep=lambda row: True):
    return pytest.mark.parametrize(
        "row",
        [pytest.param(r, id=n) for n, r in ROWS.items() if torch is not None and theirs(n) is not None and keep(r)],
    )


@rows(lambda r: r.values)
def test_values(row):
    op = theirs(row.name)
    for sample in row.calls:
        try:
            want = op(*as_torch(sample.args), **as_torch(sample.kwargs))
        except Exception as e:  # PyTorch refuses the sample: so must flambeau
            with pytest.raises(type(e) if type(e) in (RuntimeError, IndexError, TypeError, ValueError) else Exception):
                row.op(*to_tensors(sample.args), **to_tensors(sample.kwargs))
            continue
        got = row.op(*to_tensors(sample.args), **to_tensors(sample.kwargs))
        compare(
            f"{row.name}{sample}",
            got,
            want,
            strides=row.strides,
            rtol=max(row.rtol, 1e-6 if any(getattr(w, "dtype", None) == torch.float32 for w in flat(want)) else 1e-9),
        )


_FLOATING = (flambeau.float16, flambeau.bfloat16, flambeau.float32)
_TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-5, "complex64": 2e-5, "float64": 1e-9}
_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")


# PyTorch refuses these for want of a kernel; the result here is what NumPy says.
TAKES_MORE = {(name, "bool") for name in ("argmax", "argmin", "div.Tensor_mode")}


def _converted(x, dtype):
    if isinstance(x, np.ndarray):
        if dtype == "bfloat16":
            return x.astype(ml_dtypes.bfloat16)
        return (np.abs(x) * 2 if dtype == "uint8" else x * 2 if dtype.startswith("int") else x).astype(dtype)
    return type(x)(_converted(y, dtype) for y in x) if isinstance(x, (list, tuple)) else x


@rows(lambda r: r.dtypes and r.values)
@pytest.mark.parametrize("dtype", _DTYPES)
def test_dtypes(row, dtype):
    """The first samples in another dtype: the same result dtype and values, or an error on both sides."""
    op = theirs(row.name)
    for sample in row.calls[:2]:
        with np.errstate(all="ignore"):  # nan as an integer
            args = tuple(_converted(a, dtype) for a in sample.args)
        what = f"{row.name}{sample} in {dtype}"
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = op(*as_torch(args), **as_torch(sample.kwargs))
        except Exception as e:
            if (row.name, dtype) in TAKES_MORE:
                continue
            with pytest.raises((RuntimeError, TypeError, NotImplementedError, ZeroDivisionError)):
                row.op(*to_tensors(args), **to_tensors(sample.kwargs))
                pytest.fail(f"{what}: PyTorch raises {type(e).__name__}: {str(e)[:200]}")
            continue
        try:
            got = row.op(*to_tensors(args), **to_tensors(sample.kwargs))
        except RuntimeError as e:
            if "must not be a floating point number" in str(e):  # PyTorch cuts the factor off in silence
                continue
            raise
        tol = max(
            [_TOLERANCE.get(str(w.dtype)[6:], 1e-9) for w in flat(want) if isinstance(w, torch.Tensor)], default=1e-9
        )
        compare(what, got, want, tol, strides=False)


@rows(lambda r: r.grad != () and r.values)
def test_gradients(row):
    """Gradients of a weighted sum of the results."""
    op = theirs(row.name)
    for sample in row.calls[:4]:

        def leaves(args, out, floating):
            for a in args:
                if isinstance(a, (list, tuple)):
                    leaves(a, out, floating)
                elif floating(a):
                    out.append(a.requires_grad_())
            return out

        targs, fargs = as_torch(sample.args), to_tensors(sample.args)
        try:
            tl = leaves(targs, [], lambda a: isinstance(a, torch.Tensor) and a.is_floating_point() and a.numel())
            tout = [
                o
                for o in flat(op(*targs, **as_torch(sample.kwargs)))
                if isinstance(o, torch.Tensor) and o.requires_grad
            ]
        except Exception:  # noqa: S112 - refused samples are compared in test_values
            continue
        if row.grad is not None or (
            row.name == "embedding_dense_backward" and sample.args[-1]
        ):  # PyTorch forgets the scale there
            continue
        fl = leaves(fargs, [], lambda a: isinstance(a, flambeau.Tensor) and a.is_floating_point() and a.numel())
        fout = [
            o
            for o in flat(row.op(*fargs, **to_tensors(sample.kwargs)))
            if isinstance(o, flambeau.Tensor) and o.requires_grad
        ]
        what = f"{row.name}{sample} gradient"
        assert len(tout) == len(fout), f"{what}: {len(fout)} differentiable results, PyTorch {len(tout)}"
        if not tout:
            continue
        rng = np.random.default_rng(1)
        weights = [np.asarray(rng.standard_normal(tuple(o.shape))) for o in tout]
        try:
            tg = torch.autograd.grad(tout, tl, [torch.as_tensor(w) for w in weights], allow_unused=True)
        except RuntimeError:  # PyTorch has no derivative there; gradcheck looks at ours
            continue
        fg = flambeau.autograd.grad(fout, fl, [_C.from_array(w) for w in weights], allow_unused=True)
        for g, w in zip(fg, tg):
            if w is None or g is None:  # one side may have zeros where the other has nothing
                other = g if w is None else w
                assert other is None or not np.any(other.detach().numpy(force=True)), f"{what}: {g}, PyTorch {w}"
            else:
                compare(what, g, w, 1e-6, strides=False)


SCHEMA_DIFFERS = set()


def comparable(schema):
    """Schema text with defaults written one way: PyTorch prints 1.0000000000000001e-05 and enums as numbers."""
    text = (
        str(schema)
        .replace("SymInt", "int")
        .replace("memory_format=0", "memory_format=contiguous_format")
        .replace("dtype=4", "dtype=long")
    )
    text = text.replace('"valid"', "'valid'").replace("=1.,", "=1.0,")
    text = re.sub(r"=\[(\d+)(?:, \1)*\]", r"=\1", text)
    return re.sub(r"=(-?\d+\.\d*(?:e-?\d+)?|-?\d+e-?\d+)", lambda m: f"={float(m[1])!r}", text)


def test_schemas():
    """Declarations have ATen's schemas."""
    wrong = []
    for op in every_operator():
        if op.overloadpacket._ns != "aten" or op.name() in SCHEMA_DIFFERS:
            continue
        try:
            want = getattr(getattr(torch.ops.aten, op._opname), op._overloadname)._schema
        except (AttributeError, RuntimeError):
            continue
        ours, their = comparable(op._schema), comparable(want)
        if ours != their:
            wrong.append(f"{ours}\n   {their}")
    assert not wrong, "\n".join(wrong)
