"""Which overload users' arguments select: a tensor without dimensions is a tensor before it is a number, and a number is what it is elsewhere."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode

T0 = torch.tensor(2.0)
SELECTED = {
    "eq of a number": (lambda: torch.eq(T0, 2), "aten.eq.Scalar"),
    "eq of a tensor": (lambda: torch.eq(T0, T0), "aten.eq.Tensor"),
    "power of a number": (lambda: T0**2, "aten.pow.Tensor_Scalar"),
    "power of a tensor": (lambda: torch.pow(T0, T0), "aten.pow.Tensor_Tensor"),
    "fill with a number": (lambda: torch.fill(T0, 1.5), "aten.fill.Scalar"),
    "fill with a tensor": (lambda: torch.fill(T0, T0), "aten.fill.Tensor"),
    "clamp by a number": (lambda: torch.clamp(T0, 1), "aten.clamp.default"),
    "clamp by a tensor": (lambda: torch.clamp(T0, T0), "aten.clamp.Tensor"),
    "lerp by a number": (lambda: torch.lerp(T0, T0, 0.5), "aten.lerp.Scalar"),
    "lerp by a tensor": (lambda: torch.lerp(T0, T0, T0), "aten.lerp.Tensor"),
}


class _Names(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", SELECTED)
def test_selected(name):
    call, want = SELECTED[name]
    with _Names() as names:
        call()
    assert names.seen == [want]


def test_a_tensor_stands_for_a_number_where_nothing_else_fits():
    assert torch.full((2,), T0).tolist() == [2.0, 2.0]
    assert torch.arange(6).sum(torch.tensor(0)).item() == 15


def test_a_number_fills_each_example():
    assert torch.func.vmap(lambda a: torch.fill(a, 1.5))(torch.ones(2)).tolist() == [1.5, 1.5]


OF_NUMBERS = {
    "ints": (lambda: torch.add(1, 2), 3, torch.int64),
    "an int and a float": (lambda: torch.add(1, 2.5), 3.5, torch.float32),
    "floats": (lambda: torch.mul(0.5, 3.0), 1.5, torch.float32),
    "bools": (lambda: torch.mul(True, False), False, torch.bool),
    "true division": (lambda: torch.div(3, 2), 1.5, torch.float32),
    "rounded division": (lambda: torch.div(7, 2, rounding_mode="trunc"), 3, torch.int64),
    "with a factor": (lambda: torch.sub(5, 2, alpha=2), 1, torch.int64),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_functions_that_take_numbers_alone(name):
    call, value, dtype = OF_NUMBERS[name]
    made = call()
    assert (made.tolist(), made.dtype, made.shape) == (value, dtype, ())


def test_other_functions_ask_for_a_tensor():
    with pytest.raises(TypeError):
        torch.sin(1)
    with pytest.raises(TypeError):
        torch.pow(2, 3)


@pytest.mark.parametrize("backend", [None, "inductor"])
def test_other_names_of_operators_take_numbers_first(backend):
    def f(x):
        return [
            torch.true_divide(2, x),
            torch.divide(2, x),
            torch.multiply(2, x),
            torch.subtract(2, x),
            torch.true_divide(2j, x),
        ]

    f = f if backend is None else torch.compile(f, backend=backend)
    assert [t.item() for t in f(torch.tensor([4.0]))] == [0.5, 0.5, 8.0, -2.0, 0.5j]


@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
def test_one_place_without_a_dimension(backend):
    def f(x, i):
        return torch.index_select(x, 1, i), x.index_select(0, i) * 2

    f = f if backend is None else torch.compile(f, backend=backend)
    x = torch.arange(6.0).view(2, 3).requires_grad_()
    a, b = f(x, torch.tensor(1))
    (a.sum() + b.sum()).backward()
    assert a.tolist() == [[1.0], [4.0]] and b.tolist() == [[6.0, 8.0, 10.0]]
    assert x.grad.tolist() == [[0.0, 1.0, 0.0], [2.0, 3.0, 2.0]]


LISTS = [
    (lambda v: torch.meshgrid(torch.arange(3), v, indexing="ij"), torch.arange(2), (3, None, 1.5, "a")),
    (lambda v: torch.broadcast_tensors(torch.ones(2), v), torch.ones(1), (3, None, 2j)),
    (lambda v: torch.zeros(2).reshape([np.int64(1), v]), 2, (1.5, "a", None, torch.tensor(1.5))),
    (lambda v: torch.zeros(2).reshape([torch.tensor(1), v]), torch.tensor(2), (torch.tensor(2.5), torch.tensor(True))),
]


@pytest.mark.parametrize("call,right,wrong", LISTS)
def test_what_lists_held_before_doesnt_hide_a_wrong_element(call, right, wrong):
    """The overload that was chosen for a list of right elements isn't taken for one whose first element alone is right."""
    call(right)
    for v in wrong:
        with pytest.raises(TypeError):
            call(v)


def test_what_isnt_a_dtype_is_refused():
    for v in (3, None, torch.ones(2), "a"):
        with pytest.raises(TypeError, match="must be torch.dtype"):
            torch.promote_types(torch.int8, v)
        with pytest.raises(TypeError, match="must be torch.dtype"):
            torch.can_cast(v, torch.int8)
