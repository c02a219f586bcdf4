"""torch.__future__'s switches, swap_tensors, data of subclasses, and spectral norms of complex matrices."""

import copy

import pytest

import flambeau as torch
from flambeau import nn


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


@pytest.fixture
def overwriting():
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    yield
    torch.__future__.set_overwrite_module_params_on_conversion(False)


def converted():
    model = nn.Linear(2, 3)
    kept = model.weight
    return model.double().weight is kept, kept.dtype


def test_conversion_swaps(swapping):
    assert converted() == (True, torch.float64)


def test_conversion_overwrites(overwriting):
    assert converted() == (False, torch.float32)


def test_conversion_sets_data():
    assert converted() == (True, torch.float64)


class Marked(torch.Tensor):
    """Its values are loaded doubled."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.Tensor.module_load:
            return args[1] if cls is Lazy else torch.Tensor(args[1].detach() * 2).as_subclass(cls)
        return super().__torch_function__(func, types, args, kwargs or {})


class Lazy(Marked):
    """Returns what it is given."""


def test_loading_swaps(swapping):
    model = nn.Linear(2, 1, bias=False)
    kept = model.weight
    model.load_state_dict({"weight": Marked(torch.ones(1, 2))})
    assert model.weight is kept and type(kept) is Marked and isinstance(kept, nn.Parameter) and kept.requires_grad
    assert torch.equal(kept.detach().as_subclass(torch.Tensor), torch.full((1, 2), 2.0))
    with pytest.raises(RuntimeError, match="module_load returned one of self or other"):
        nn.Linear(2, 1, bias=False).load_state_dict({"weight": Lazy(torch.ones(1, 2))})


def test_swapped_tensors_exchange_everything():
    a, b = torch.ones(2), torch.zeros(3, requires_grad=True)
    b.sum().backward()
    a.note = "a"
    torch.utils.swap_tensors(a, b)
    assert a.shape == (3,) and a.requires_grad and a.grad.tolist() == [1.0] * 3 and not hasattr(a, "note")
    assert b.tolist() == [1.0, 1.0] and not b.requires_grad and b.grad is None and b.note == "a"


class Slotted(torch.Tensor):
    __slots__ = ["mark"]


def test_copies_of_slots():
    x = Slotted(torch.ones(2))
    x.mark = ["m"]
    y = copy.deepcopy(x)
    assert y.mark == ["m"] and y.mark is not x.mark


def test_data_of_sparse_tensors():
    x = torch.eye(2).to_sparse()
    x.data = (torch.eye(2) * 3).to_sparse()
    assert torch.equal(x.to_dense(), torch.eye(2) * 3)
    with pytest.raises(RuntimeError, match="must be floating point or complex"):
        torch.ones(2, requires_grad=True).data = torch.ones(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="Deleting tensor data"):
        del x.data


def test_a_subclass_is_asked_once_for_item_and_tolist():
    asked = []

    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func.__name__)
            return torch.overrides.redispatch_function(func, types, args, kwargs)

    assert Asked(torch.tensor(2.0)).item() == 2.0 and asked.count("item") == 1


def test_spectral_norm_of_complex_matrices():
    layer = nn.Linear(3, 2, dtype=torch.complex64)
    weight = layer.weight.detach().clone()
    nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=20)
    layer(torch.ones(1, 3, dtype=torch.complex64))
    assert torch.allclose(layer.weight, weight / torch.linalg.matrix_norm(weight, 2), atol=1e-4)


def test_hooks_go_with_what_is_swapped():
    a, b = (torch.tensor([x], requires_grad=True) for x in (1.0, 2.0))
    seen = []
    handle = a.register_hook(lambda g: g * 10)
    b.register_hook(lambda g: g * 100)
    b.register_post_accumulate_grad_hook(lambda p: seen.append(p is a))
    torch.utils.swap_tensors(a, b)
    (a * 2).sum().backward()
    (b * 3).sum().backward()
    assert (a.item(), b.item(), a.grad.item(), b.grad.item(), seen) == (2.0, 1.0, 200.0, 30.0, [True])
    handle.remove()
    (b * 3).sum().backward()
    assert b.grad.item() == 33.0


def test_what_a_class_says_goes_along():
    """How a tensor prints, and whether its class is asked by functions."""
    a, b = torch.ones(2), nn.Parameter(torch.zeros(2))
    torch.utils.swap_tensors(a, b)
    assert type(a) is nn.Parameter and repr(a).startswith("Parameter containing")
    assert type(b) is torch.Tensor and repr(b) == "tensor([1., 1.])"
    c, d = torch.ones(2).as_subclass(Told), torch.ones(2)
    torch.utils.swap_tensors(c, d)
    assert c.exp() is not None and d.exp() is Told


class Told(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls


GRAPHS = {
    "saved": (lambda t, w: (t * t).sum(), "modified by an inplace operation"),
    "reached": (lambda t, w: (t + 1).sum(), "poisoned by swap_tensors"),
    "saved without a gradient": (lambda t, w: (t.requires_grad_(False) * w).sum(), "modified by an inplace operation"),
}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_that_know_a_tensor_dont_run_backward(name, first):
    graph, message = GRAPHS[name]
    t, other, w = (torch.full((2,), float(k), requires_grad=True) for k in range(3))
    loss = graph(t, w)
    torch.utils.swap_tensors(*((t, other) if first else (other, t)))
    with pytest.raises(RuntimeError, match=message):
        loss.backward()
    assert t.grad is other.grad is w.grad is None
    (t * other).sum().backward()  # new graphs are none of the old ones'
    assert (other.grad if t.grad is None else t.grad) is not None


def test_slots_differ():
    class Slotted(torch.Tensor):
        __slots__ = ("more",)

    with pytest.raises(RuntimeError, match="different slots"):
        torch.utils.swap_tensors(torch.ones(1), torch.ones(1).as_subclass(Slotted))


def test_a_history_goes_along():
    p = torch.ones(2, requires_grad=True)
    q, y = p * 3, torch.zeros(3)
    torch.utils.swap_tensors(q, y)
    (y * 2).sum().backward()
    assert p.grad.tolist() == [6, 6] and q.tolist() == [0, 0, 0] and not q.requires_grad
    a, b = p * 3, p * 5
    torch.utils.swap_tensors(a, b)
    (grad,) = torch.autograd.grad(b.sum(), p)
    assert grad.tolist() == [3, 3]


def test_a_view_goes_along():
    b = torch.ones(4)
    v, y = b[:2], torch.zeros(3)
    torch.utils.swap_tensors(v, y)
    y.add_(1)
    assert y._base is b and v._base is None and b.tolist() == [2, 2, 1, 1]


@pytest.mark.parametrize("asks", [True, False])
def test_live_views_refuse(asks):
    p, y = torch.ones(2, requires_grad=asks), torch.zeros(2)
    view = p[:1]
    with pytest.raises(RuntimeError, match="Expected use_count of t1 to be 1 or 2 .* got 3"):
        torch.utils.swap_tensors(p, y)
    del view
    alias = p.detach()
    torch.utils.swap_tensors(p, y)
    assert y.tolist() == alias.tolist() == [1, 1] and y.requires_grad is asks


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


@pytest.mark.parametrize("swap", [True, False])
def test_parametrizations_keep_the_identity_of_buffers(swap):
    torch.__future__.set_swap_module_params_on_conversion(swap)
    try:
        model = nn.Linear(2, 2)
        model.register_buffer("b", torch.ones(2))
        kept = model.weight, model.b
        for name in ("weight", "b"):
            torch.nn.utils.parametrize.register_parametrization(model, name, Doubled())
        assert model.parametrizations.weight.original is kept[0] and model.parametrizations.b.original is kept[1]
        assert model.b.tolist() == [1, 1] and kept[1].tolist() == [0.5, 0.5]
        for name in ("weight", "b"):
            torch.nn.utils.parametrize.remove_parametrizations(model, name, leave_parametrized=True)
        assert model.weight is kept[0] and model.b is kept[1] and model.b.tolist() == [1, 1]
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)
