"""Steps that autograd records (``differentiable=True``), and steps of complex parameters: by finite differences, and beside PyTorch."""

import importlib

import numpy as np
import pytest

import flambeau

OPTIONS = {
    "SGD": [{"momentum": 0.9}, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, {"dampening": 0.5, "momentum": 0.5}, {}],
    "Adam": [{}, {"amsgrad": True}, {"weight_decay": 0.1}],
    "AdamW": [{}, {"amsgrad": True, "weight_decay": 0.2}],
    "NAdam": [{}, {"weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"weight_decay": 0.1}],
    "Adamax": [{}, {"weight_decay": 0.1}],
    "Adadelta": [{}, {"weight_decay": 0.1}],
    "Adagrad": [{}, {"lr_decay": 0.1, "weight_decay": 0.1}],
    "RMSprop": [{}, {"centered": True, "momentum": 0.5}, {"momentum": 0.3, "weight_decay": 0.1}],
    "ASGD": [{}, {"t0": 1}],
    "Rprop": [{}],
}  # fmt: skip
CASES = [(name, kw) for name, options in OPTIONS.items() for kw in options]
TENSOR_OPTIONS = [("SGD", "lr"), ("Adam", "lr"), ("AdamW", "lr"), ("Adam", "lr weight_decay betas"), ("AdamW", "lr weight_decay betas")]  # fmt: skip


def ids(case):
    return f"{case[0]}-{'-'.join(case[1]) if isinstance(case[1], dict) else case[1]}"


def recorded(lib, name, kw, tensors="", steps=3, shift=0.0):
    """Parameters after some recorded steps, and the gradients of a loss of them by the start, the gradients' factor and the options."""
    optim = importlib.import_module(f"{lib.__name__}.optim")
    rng = np.random.default_rng(0)
    start, factor = (lib.tensor(rng.standard_normal((3, 2)), requires_grad=True) for _ in range(2))
    kw, by = dict(kw), [start, factor]
    for option in tensors.split():
        values = [0.9, 0.95] if option == "betas" else [0.05]
        values = [lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in values]
        kw[option] = tuple(values) if option == "betas" else values[0]
        by += values
    with lib.no_grad():
        by[2 if tensors else 0].add_(shift)
    p = start.clone()
    optimizer = getattr(optim, name)([p], **kw, differentiable=True)
    for k in range(steps):
        p.grad = factor * (0.3 * k + 1) + start * factor * 0.3
        optimizer.step()
    loss = p.pow(2).sum()
    found = lib.autograd.grad(loss, by, allow_unused=True)
    return loss.item(), [p.detach().numpy()] + [0.0 if g is None else g.numpy() for g in found]


@pytest.mark.parametrize(
    "case", [c for c in CASES if c[0] != "Rprop" and "momentum" not in c[1] or c[0] == "RMSprop"], ids=ids
)
def test_gradient_by_the_start(case):
    eps = 1e-6
    _, found = recorded(flambeau, *case)
    numeric = (recorded(flambeau, *case, shift=eps)[0] - recorded(flambeau, *case, shift=-eps)[0]) / (2 * eps)
    np.testing.assert_allclose(found[1].sum(), numeric, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", TENSOR_OPTIONS, ids=ids)
def test_gradient_by_the_learning_rate(case):
    eps, (name, tensors) = 1e-6, case
    _, found = recorded(flambeau, name, {}, tensors)
    numeric = recorded(flambeau, name, {}, tensors, shift=eps)[0] - recorded(flambeau, name, {}, tensors, shift=-eps)[0]
    np.testing.assert_allclose(found[3], numeric / (2 * eps), rtol=1e-4)


def test_refused():
    p = flambeau.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
        flambeau.optim.Adam([p], fused=True, differentiable=True)
    with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be `True` together"):
        flambeau.optim.SGD([p], fused=True, foreach=True)
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        flambeau.optim.SGD([p * 2])
    p.grad = flambeau.ones(2)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        flambeau.optim.SGD([p], differentiable=True).step()
    assert p.tolist() == [0.0, 0.0]


def complex_steps(lib, name, kw):
    optim = importlib.import_module(f"{lib.__name__}.optim")
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((3, 2)) + 1j * rng.standard_normal((3, 2)), rng.standard_normal(4)]
    params = [lib.tensor(a, requires_grad=True) for a in arrays]
    optimizer = getattr(optim, name)(params, **kw)
    for _ in range(5):
        optimizer.zero_grad()
        sum((p * p.conj()).real.pow(2).sum() + (p.real * 1.3).sum() for p in params).backward()
        optimizer.step()
    saved = optimizer.state_dict()
    states = [v.numpy() for s in saved["state"].values() for _, v in sorted(s.items()) if isinstance(v, lib.Tensor)]
    return [p.detach().numpy() for p in params] + states, saved["param_groups"]


def compare_recorded(torch, name, kw, tensors=""):
    for steps in (1, 3):
        try:
            _, want = recorded(torch, name, kw, tensors, steps)
        except RuntimeError as e:  # PyTorch overwrites what the first step's graph has saved
            assert steps == 3 and "modified by an inplace operation" in str(e)
            continue
        for a, b in zip(want, recorded(flambeau, name, kw, tensors, steps)[1]):
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-7)  # the step's number is float32 there


@pytest.mark.parity
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("case", CASES, ids=ids)
def test_beside_pytorch(case, maximize):
    torch, (name, kw) = pytest.importorskip("torch"), case
    kw = kw | {"maximize": maximize}
    compare_recorded(torch, name, kw)
    for foreach in (None, True, False):
        (want, groups), (got, own) = (complex_steps(lib, name, kw | {"foreach": foreach}) for lib in (torch, flambeau))
        assert groups == own and len(want) == len(got)
        for a, b in zip(want, got):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=1e-9)


@pytest.mark.parity
@pytest.mark.parametrize("case", TENSOR_OPTIONS, ids=ids)
def test_tensor_options_beside_pytorch(case):
    torch, (name, tensors) = pytest.importorskip("torch"), case
    compare_recorded(torch, name, {}, tensors)
