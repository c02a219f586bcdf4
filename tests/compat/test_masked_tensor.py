"""Masked tensors beside the computation on what the mask keeps: functions, reductions, gradients, text and errors in PyTorch's words."""

import copy
import pickle

import pytest
from flambeau.masked import as_masked_tensor, is_masked_tensor, masked_tensor

import flambeau as torch

D = torch.arange(6.0).view(2, 3)
K = torch.tensor([[True, False, True], [False, False, True]])
NO = torch.zeros(2, 3, dtype=torch.bool)


def made(data=D, mask=K, **kw):
    return masked_tensor(data, mask, **kw)


def same(t, data, mask):
    assert is_masked_tensor(t) and t.get_mask().tolist() == mask.tolist()
    torch.testing.assert_close(t.get_data()[mask], data[mask], equal_nan=True)


ELEMENTS = {
    "sin": torch.sin,
    "method": lambda x: x.neg().exp(),
    "number": lambda x: 1 + x * 2.0,
    "both": lambda x: x * x - x / (x + 1),
    "plain": lambda x: x + D,
    "plain first": lambda x: D + x,
    "compared": lambda x: x < 2,
    "maximum": lambda x: torch.maximum(x, x + 1),
    "relu": torch.nn.functional.relu,
    "to": lambda x: x.to(torch.float64).float(),
    "ones_like": torch.ones_like,
    "not": lambda x: ~(x > 2),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_functions_of_elements(name):
    same(ELEMENTS[name](made()), ELEMENTS[name](D), K)


MOVED = {
    "view": lambda x: x.view(3, 2),
    "reshape": lambda x: x.reshape(6),
    "t": lambda x: x.t(),
    "permute": lambda x: x.permute(1, 0),
    "T": lambda x: x.T,
    "row": lambda x: x[0],
    "column": lambda x: x[:, 1],
    "element": lambda x: x[0, 0],
    "unsqueeze": lambda x: x.unsqueeze(0).squeeze(0),
    "expand": lambda x: x.unsqueeze(0).expand(4, 2, 3),
    "chunk": lambda x: x.chunk(2)[1],
    "cat": lambda x: torch.cat([x, x], 1),
    "stack": lambda x: torch.stack([x, x]),
    "clone": lambda x: x.clone(),
    "unfold": lambda x: x.unfold(0, 1, 1),
}


@pytest.mark.parametrize("name", MOVED)
def test_functions_that_move_elements(name):
    same(MOVED[name](made()), MOVED[name](D), MOVED[name](K))


# Data and mask, from PyTorch; None for what is masked.
REDUCED = {
    "sum": (lambda x: x.sum(), 7.0),
    "sum 0": (lambda x: x.sum(0), [0.0, None, 7.0]),
    "sum 1, keepdim": (lambda x: x.sum(1, keepdim=True), [[2.0], [5.0]]),
    "sum of both": (lambda x: x.sum((0, 1)), 7.0),
    "mean 0": (lambda x: x.mean(0), [0.0, None, 3.5]),
    "prod": (lambda x: (x + 1).prod(), 18.0),
    "amax": (lambda x: x.amax(1), [2.0, 5.0]),
    "amin": (lambda x: x.amin(0), [0.0, None, 2.0]),
    "max": (lambda x: x.max(), 5.0),
    "argmax": (lambda x: x.argmax(1), [2, 2]),
    "all": (lambda x: (x > 2).all(1), [False, True]),
    "any": (lambda x: (x > 2).any(0), [False, None, True]),
    "var": (lambda x: x[0].var(), 2.0),
    "norm": (lambda x: x[0].norm(), 2.0),
    "none": (lambda x: made(mask=NO).sum(), None),
    "none of rows": (lambda x: made(mask=NO).mean(1), [None, None]),
    "softmax": (lambda x: (x * 0).softmax(1), [[0.5, None, 0.5], [None, None, 1.0]]),
    "functional softmax": (lambda x: torch.nn.functional.softmax(x * 0, 1), [[0.5, None, 0.5], [None, None, 1.0]]),
    "functional softmin": (lambda x: torch.nn.functional.softmin(x * 0, 1), [[0.5, None, 0.5], [None, None, 1.0]]),
    "cumsum": (lambda x: x.cumsum(1), [[0.0, None, 2.0], [None, None, 5.0]]),
    "matmul": (lambda x: x @ torch.ones(3, 1), [[2.0], [5.0]]),
    "where": (lambda x: torch.where(K, x, made(D + 1, ~K)), [[0.0, 2.0, 2.0], [4.0, 5.0, 5.0]]),
}


def values(t):
    def nested(data, mask):
        return [nested(*p) for p in zip(data, mask)] if isinstance(mask, list) else (data if mask else None)

    return nested(t.get_data().tolist(), t.get_mask().tolist())


@pytest.mark.parametrize("name", REDUCED)
def test_reductions(name):
    run, expected = REDUCED[name]
    assert values(run(made())) == expected


GRADIENTS = {
    "sum": (lambda m: m.sum(), K.float()),
    "rows": (lambda m: m.sum(1).sum(), K.float()),
    "mean": (lambda m: (m * m).mean(), D * 2 / 3),
    "amax": (lambda m: (m * m).amax(1).sum(), torch.tensor([[0, 0, 4.0], [0, 0, 10.0]])),
    "prod": (lambda m: m.prod(1).sum(), torch.tensor([[2.0, 0, 0], [0, 0, 1.0]])),
    "data": (lambda m: (m.get_data() * 2).sum(), torch.full((2, 3), 2.0)),
    "filled": (lambda m: m.to_tensor(0.0).sum(), K.float()),
    "sin": (lambda m: m.sin().sum(), D.cos()),
}


@pytest.mark.parametrize("backend", [None, "aot_eager"])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, backend):
    run, expected = GRADIENTS[name]
    run = torch.compile(run, backend=backend) if backend else run
    m = made(requires_grad=True)
    (g,) = torch.autograd.grad(run(m), m)
    same(g, expected, K)
    run(m).backward()
    same(m.grad, expected, K)


TEXTS = {
    "floats": (lambda: made(), "MaskedTensor(\n  [\n    [  0.0000,       --,   2.0000],\n    [      --,       --,   5.0000]\n  ]\n)"),
    "ints": (lambda: made(D.int()), "MaskedTensor(\n  [\n    [0,       --, 2],\n    [      --,       --, 5]\n  ]\n)"),
    "one": (lambda: made(torch.tensor(3.0), torch.tensor(True)), "MaskedTensor(  3.0000, True)"),
    "none": (lambda: made(torch.tensor(3.0), torch.tensor(False)), "MaskedTensor(--, False)"),
    "wide": (lambda: made(torch.tensor([1e10, 2.5, 3]), K[0]), "MaskedTensor(\n  [10000000000.0000,               --,   3.0000]\n)"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_text(name):
    run, expected = TEXTS[name]
    assert str(run()) == repr(run()) == expected


WRONG = {
    "masks": (lambda: made() + made(mask=~K), ValueError, "Input masks must match"),
    "dtype": (lambda: made(mask=K.float()), TypeError, "mask must have dtype bool."),
    "rank": (lambda: made(mask=K[0]), ValueError, r"data.dim\(\) must equal mask.dim\(\)"),
    "size": (lambda: made(mask=K[:, :2]), ValueError, r"data.size\(\) must equal mask.size\(\)"),
    "data": (lambda: masked_tensor(1, K), TypeError, "data must be a Tensor"),
    "mask": (lambda: masked_tensor(D, 1), TypeError, "mask must be a Tensor"),
    "twice": (lambda: masked_tensor(made(), K), TypeError, "data must be a Tensor"),
    "complex": (lambda: made(D.to(torch.complex64)), TypeError, "torch.complex64 is not supported in MaskedTensor."),
    "no rule": (lambda: made().sort(), TypeError, "no implementation found for 'sort'"),
    "numpy": (lambda: made().numpy(), RuntimeError, r".numpy\(\) is not supported for tensor subclasses"),
    "item": (lambda: made().item(), RuntimeError, "a Tensor with 6 elements cannot be converted to Scalar"),
    "where": (lambda: torch.where(K, made(), D), TypeError, "two masked tensors"),
    "second mask": (lambda: torch.masked.sum(made(), 1, mask=K), ValueError, "has its mask"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors(name):
    run, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        run()


def test_makers_and_copies():
    x = D.clone().requires_grad_()
    kept = as_masked_tensor(x, K)
    kept.sum().backward()
    assert x.grad.tolist() == K.float().tolist() and not made(x.detach()).requires_grad
    m = made(requires_grad=True)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        same(other, D, K)
        assert other.requires_grad and other.get_data() is not m.get_data()
    assert torch.masked.sum(m, 1).tolist() == [2.0, 5.0] and float(m.sum()) == 7.0
    assert m.shape == (2, 3) and m.stride() == (3, 1) and m.is_leaf and len(m) == 2
    n = made()
    assert n.add_(1) is n and n.get_data()[0, 0] == 1
    with torch.no_grad():
        same(torch.ops.aten.mul.Tensor(n, 2.0), (D + 1) * 2, K)
