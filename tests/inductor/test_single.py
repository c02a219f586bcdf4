"""Compiled kernels for eager operators on large tensors."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.core import operator
from flambeau.eager import backend
from flambeau.inductor import single

aten = torch.ops.aten


def R(*shape):
    return torch.from_numpy(np.random.default_rng(0).normal(size=shape).astype(np.float32))


CASES = [
    ("gelu", lambda x: aten.gelu.default(x)),
    ("softmax", lambda x: aten._softmax.default(x, -1, False)),
    ("layer_norm", lambda x: aten.native_layer_norm.default(x, [512], None, None, 1e-5)),
    (
        "layer_norm_backward",
        lambda x: aten.native_layer_norm_backward.default(
            x, x, [512], x[:, :1], x[:, 1:2], None, None, [True, False, False]
        ),
    ),
    ("transposed", lambda x: aten.tanh.default(x.t())),
    ("mean", lambda x: aten.mean.dim(x, [0])),
]


@pytest.mark.parametrize("recalled", [False, True])
@pytest.mark.parametrize("fn", [pytest.param(f, id=n) for n, f in CASES])
def test_same_as_numpy(fn, recalled, monkeypatch):
    x = R(300, 512)
    backend.set_accelerator(None)
    want = fn(x)
    for again in range(1 + recalled):
        if again:  # another process finds the graph on disk, and lowers nothing
            monkeypatch.setattr(single, "compile_program", None)
        single._table.clear()
        backend.set_accelerator(single.find)
        for _ in range(3):
            got = fn(x)
    assert isinstance(next(iter(single._table.values())), tuple), "the operator itself wasn't compiled"
    for g, w in zip(got if isinstance(got, tuple) else [got], want if isinstance(want, tuple) else [want]):
        assert (g is None) == (w is None)
        if g is not None:
            assert g.dtype is w.dtype and g.stride() == w.stride()
            np.testing.assert_allclose(g._array, w._array, rtol=2e-5, atol=2e-5)


def test_what_is_kept_on_disk_belongs_to_operator_arguments_and_state(monkeypatch):
    x = R(300, 512)
    calls = [
        (aten.add.Tensor, [x, x, 1]),
        (aten.add.Tensor, [x, x, 2]),
        (aten.add.Tensor, [x, x, 1.0]),
        (aten.sub.Tensor, [x, x, 1]),
        (aten.add.Tensor, [x, x.t().contiguous().t(), 1]),
        (aten.add.Tensor, [x, x.double(), 1]),
        (aten.mul.Scalar, [x, 0.0]),
        (aten.mul.Scalar, [x, -0.0]),
    ]
    names = [single._entry(op, args, exact) for op, args in calls for exact in (False, True)]
    assert None not in names and len(set(names)) == len(names)
    torch.set_default_dtype(torch.float64)
    try:
        assert single._entry(*calls[0], False) not in names
    finally:
        torch.set_default_dtype(torch.float32)
    assert single._entry(*calls[0], False) == names[0]
    monkeypatch.setattr(operator, "_REDEFINED", set())
    monkeypatch.setattr(aten.mul.Tensor, "version", aten.mul.Tensor.version)
    aten.mul.Tensor.redefine()  # what the operator is made of may be redefined
    assert single._entry(*calls[0], False) != names[0]
    assert single._entry(aten.add.Tensor, [x, object()], False) is None


def test_changing_numbers_are_not_compiled():
    x = R(300, 512)
    single._table.clear()
    for k in range(5):
        np.testing.assert_array_equal((x + float(k))._array, x._array + np.float32(k))
    assert not any(isinstance(v, tuple) for v in single._table.values())


def test_gradients_go_through():
    x = R(300, 512).requires_grad_(True)
    for _ in range(3):
        x.grad = None
        aten.gelu.default(x).sum().backward()
    backend.set_accelerator(None)
    y = R(300, 512).requires_grad_(True)
    aten.gelu.default(y).sum().backward()
    backend.set_accelerator(single.find)
    np.testing.assert_allclose(x.grad._array, y.grad._array, rtol=1e-5, atol=1e-5)


def test_optimizer_step_in_place():
    """Adam's compiled update: bitwise what the eager one gives, with a learning rate that changes, into the same memory."""
    from flambeau.inductor import inplace

    def train(accelerator):
        backend.set_accelerator(accelerator)
        try:
            ps = [torch.nn.Parameter(R(*s)) for s in ((300, 300), (300,), (300, 300), (7, 5))]
            arrays = [p._array for p in ps]
            opt = torch.optim.AdamW(ps, lr=1e-2)
            for k in range(8):
                opt.param_groups[0]["lr"] = 1e-2 / (k + 1)
                for i, p in enumerate(ps):
                    p.grad = torch.from_numpy(
                        np.random.default_rng(10 * k + i).normal(size=tuple(p.shape)).astype(np.float32)
                    )
                versions = [p._version for p in ps]
                opt.step()
                assert all(p._version > v for p, v in zip(ps, versions))
            assert all(p._array is a for p, a in zip(ps, arrays))
            return [p._array for p in ps], [float(opt.state[p]["step"]._array) for p in ps]
        finally:
            backend.set_accelerator(single.find)

    inplace._table.clear()
    want, got = train(None), train(single.find)
    assert any(isinstance(v, tuple) and not v[2] for v in inplace._table.values()), "nothing was compiled, or copied"
    assert got[1] == want[1]
    for a, b in zip(got[0], want[0]):
        np.testing.assert_array_equal(a, b)


def test_update_that_must_copy():
    """A result that depends on other elements of the tensor it replaces is computed beside it."""
    from flambeau.inductor import inplace

    x = R(40, 40)
    want = x._array.copy()
    for _ in range(inplace.PATIENCE + 1):
        done = inplace.update("flip", lambda ts, ns: [(0, ts[0].t() * ns[0])], [x], [2.0])
        if not done:
            np.testing.assert_array_equal(x._array, want)
            continue
        want = want.T * 2
        np.testing.assert_array_equal(x._array, want)
    assert done
