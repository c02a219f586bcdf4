"""Tensor methods that are no operators, views in place, views of other dtypes: values, and the same text of results and errors as PyTorch's."""

import copy
import pickle
import tempfile

import numpy as np
import pytest

import flambeau

CASES = {
    "unsqueeze_": lambda t: _same(t.arange(6.0).view(2, 3), lambda x: x.unsqueeze_(0)).shape,
    "transpose_": lambda t: t.arange(6.0).view(2, 3).transpose_(0, 1),
    "squeeze_ t_": lambda t: t.arange(6.0).view(1, 2, 3).squeeze_().t_().stride(),
    "as_strided_": lambda t: t.arange(6.0).as_strided_((3, 2), (1, 3)),
    "in place, then backward": lambda t: _backward(t, lambda h: h.unsqueeze_(1).sum() * 3),
    "a view in place, written": lambda t: _backward(t, _write_view),
    "a base sees": lambda t: _base(t),
    "view.dtype": lambda t: t.arange(6.0).view(2, 3).view(t.int32),
    "smaller": lambda t: t.zeros(2, 3).view(t.int8).shape,
    "larger": lambda t: t.zeros(2, 4).view(dtype=t.complex64).shape,
    "bfloat16": lambda t: t.ones(2, dtype=t.bfloat16).view(t.uint8),
    "nonzero": lambda t: t.arange(4.0).view(2, 2).nonzero(as_tuple=True),
    "nonzero 0-d": lambda t: t.nonzero(t.tensor(3.0), as_tuple=True),
    "unique": lambda t: t.unique(t.tensor([3, 1, 3]), return_inverse=True, return_counts=True),
    "unique dim": lambda t: t.tensor([[2, 1], [2, 1]]).unique(dim=0),
    "unique_consecutive": lambda t: t.tensor([3, 3, 1]).unique_consecutive(return_counts=True),
    "take_along_dim": lambda t: t.take_along_dim(t.arange(24.0).view(2, 3, 4), t.tensor([[[0], [2]]]), 1),
    "new": lambda t: (t.ones(1).double().new([1, 2]), t.ones(1).new(2, 3).shape, t.ones(1).new_tensor([1, 2])),
    "dim_order": lambda t: t.zeros(2, 3).t().dim_order(),
    "flags": lambda t: (t.zeros(1).is_xla, t.zeros(1).is_mkldnn, t.zeros(1).name, t.zeros(2).sparse_dim(), t.zeros(2).dense_dim()),
    "apply_": lambda t: t.arange(3.0).apply_(lambda x: x + 1),
    "map_": lambda t: t.arange(3.0).map_(t.ones(3), lambda a, b: a - b),
    "resize_": lambda t: t.arange(6.0).resize_(2, 2),
    "set_": lambda t: t.ones(1).set_(t.arange(6.0), 1, (2,), (3,)),
    "set_ storage": lambda t: t.ones(1).set_(t.arange(6.0).untyped_storage(), 2, (2, 2), (2, 1)),
    "reversed": lambda t: reversed(t.arange(3)),
    "ufunc": lambda t: np.sqrt(t.arange(4.0)),
    "storage": lambda t: t.arange(3.0).storage().tolist(),
    "bytes": lambda t: (lambda s: (s[1], len(s), t.asarray(s[1:3], dtype=t.uint8)))(t.tensor([1, 2, 3], dtype=t.uint8).untyped_storage()),
    "from_file": lambda t: _mapped(t),
    "repr": lambda t: repr(t.nn.Parameter(t.ones(2, 6)) * 1.2345),
    "gqa": lambda t: _attention(t),
}  # fmt: skip
ERRORS = {
    "a leaf": (lambda t: t.zeros(2, requires_grad=True).unsqueeze_(0), "a leaf Variable that requires grad"),
    "view of an odd size": (lambda t: t.zeros(2, 3).view(t.float64), "must be divisible by 2 to view"),
    "view of strides": (lambda t: t.zeros(2, 3).t().view(t.int8), "must be 1 to view"),
    "view of 0-d": (lambda t: t.tensor(1.0).view(t.int8), "cannot be 0 to view"),
    "take_along_dim": (lambda t: t.take_along_dim(t.zeros(2, 3), t.tensor([1]), 1), "same number of dimensions"),
    "take_along_dim floats": (lambda t: t.take_along_dim(t.zeros(2, 3), t.ones(2, 1), 1), "index|Long"),
    "resize": (lambda t: t.zeros(2, requires_grad=True).resize_(3), "cannot resize variables that require grad"),
    "is_coalesced": (lambda t: t.zeros(2).is_coalesced(), "expected sparse coordinate tensor layout"),
    "pin_memory": (lambda t: t.zeros(2).pin_memory(), "Cannot access accelerator device"),
    "apply_": (lambda t: t.zeros(2, requires_grad=True).apply_(abs), "requires grad"),
    "del": (lambda t: t.zeros(2).__delitem__(0), "does not support deleting items"),
}


def _same(x, change):
    out = change(x)
    assert out is x
    return out


def _backward(t, loss):
    w = t.arange(6.0).view(2, 3).requires_grad_()
    loss(w * 2).backward()
    return w.grad


def _write_view(h):
    v = h[0]
    v.unsqueeze_(0)
    v.mul_(5)
    return h.sum()


def _base(t):
    b = t.zeros(2, 3)
    v = b[1]
    v.unsqueeze_(0)
    v.add_(1)
    return b


def _mapped(t):
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(range(8)))
        file.flush()
        return t.UntypedStorage.from_file(file.name, False, 8).tolist()


def _attention(t):
    q, k = t.arange(48.0).view(1, 4, 3, 4).sin(), t.arange(40.0).view(1, 2, 5, 4).cos()
    return t.nn.functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)


@pytest.mark.parametrize("name", CASES)
def test_it_runs(name):
    assert CASES[name](flambeau) is not None


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, text = ERRORS[name]
    with pytest.raises((RuntimeError, TypeError), match=text):
        call(flambeau)


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_beside_pytorch(name):
    torch = pytest.importorskip("torch")
    assert repr(CASES[name](flambeau)) == repr(CASES[name](torch))


@pytest.mark.parametrize(
    "function",
    [
        flambeau.sin,
        flambeau.nn.functional.gelu,
        flambeau.nn.functional.relu,
        flambeau.Tensor.add,
        flambeau.special.erfinv,
        flambeau.linalg.inv,
    ],
    ids=lambda f: f.__name__,
)
def test_functions_are_pickled_by_name(function):
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function


def test_a_module_that_holds_a_function_is_copied():
    layer = flambeau.nn.TransformerEncoderLayer(8, 2, 16, activation="gelu")
    x = flambeau.randn(3, 2, 8)
    assert flambeau.equal(copy.deepcopy(layer).eval()(x), layer.eval()(x))


@pytest.mark.parametrize(
    "call",
    [
        "torch.zeros_like(x, requires_grad=True)",
        "torch.randn_like(x, requires_grad=True)",
        "torch.full_like(x, 2.0, dtype=torch.float64, requires_grad=True)",
        "x.new_zeros(2, requires_grad=True)",
        "x.new_full((2,), 3.0, device='cpu', requires_grad=True)",
        "torch.zeros(2, requires_grad=True)",
    ],
)
def test_what_makes_tensors_takes_requires_grad(call):
    out = eval(call, {"torch": flambeau, "x": flambeau.ones(2)})
    assert (
        out.requires_grad
        and out.is_leaf
        and not eval(call.replace("True", "False"), {"torch": flambeau, "x": flambeau.ones(2)}).requires_grad
    )


def test_an_integer_of_one_element_is_a_tensor_before_it_is_a_number():
    x = flambeau.arange(6)
    assert [t.tolist() for t in flambeau.tensor_split(x, flambeau.tensor([1]))] == [[0], [1, 2, 3, 4, 5]]
    assert [t.tolist() for t in flambeau.tensor_split(x, flambeau.tensor([1, 2]))] == [[0], [1], [2, 3, 4, 5]]
    with pytest.raises(RuntimeError):
        x.narrow(0, flambeau.tensor([0]), 1)
