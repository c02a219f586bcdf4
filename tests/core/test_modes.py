"""Dispatch modes: what they see, nesting, and that they are off where they should be."""

import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau.utils import _python_dispatch as pd
from flambeau.utils._mode_utils import no_dispatch
from flambeau.utils._python_dispatch import TorchDispatchMode


class Record(TorchDispatchMode):
    """Remembers the names of the calls, and their types."""

    def __init__(self):
        super().__init__()
        self.log, self.types, self.calls = [], [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(func.__name__)
        self.types.append(types)
        self.calls.append((args, kwargs))
        return func(*args, **(kwargs or {}))


X = torch.ones(2, 3)

SEEN = [
    (lambda: torch.ones(2) + 1, ["ones.default", "add.Tensor"]),
    (lambda: torch.add(X, X, alpha=1), ["add.Tensor"]),
    (lambda: torch.tensor([1.0]), ["lift_fresh.default"]),
    (lambda: torch.Tensor([1.0]), ["lift_fresh.default"]),
    (lambda: torch.as_tensor([1.0]), ["lift_fresh.default"]),
    (lambda: torch.from_numpy(np.ones(2)), ["lift_fresh.default"]),
    (
        lambda: torch.einsum("ij,kj->ik", X, X).shape,
        ["permute.default", "permute.default", "view.default", "view.default", "bmm.default", "view.default"],
    ),
    (lambda: torch.nn.functional.conv2d(X[None, None], X[None, None, :1, :1]), None),  # indexing, then convolution
    (
        lambda: torch.nn.functional.dropout(X, 0.5),
        ["empty_like.default", "bernoulli_.float", "div_.Scalar", "mul.Tensor"],
    ),
    (lambda: torch.softmax(X, 0), ["_softmax.default"]),
    (lambda: torch.nn.functional.layer_norm(X, (3,)), ["native_layer_norm.default"]),
    (lambda: torch.nn.functional.linear(X, X), ["t.default", "mm.default"]),
    (lambda: torch.nn.functional.linear(X, X, torch.ones(2)), ["ones.default", "t.default", "addmm.default"]),
    (lambda: X.to(torch.float64), ["_to_copy.default"]),
    (lambda: X.to("cpu"), []),
    (lambda: X.sum().item(), ["sum.default", "_local_scalar_dense.default"]),
    (lambda: torch.add(X, X, out=torch.empty(2, 3)), ["empty.memory_format", "add.out"]),
    (lambda: X.shape, []),
]


@pytest.mark.parametrize("k", range(len(SEEN)))
def test_what_a_mode_sees(k):
    f, names = SEEN[k]
    with Record() as r:
        f()
    if names is None:
        assert r.log[-1] == "convolution.default"
    else:
        assert r.log == names
    assert all(t == () for t in r.types)


def test_backward_is_seen():
    w = torch.ones(2, requires_grad=True)
    with Record() as r:
        (w * w).sum().backward()
    assert r.log[:2] == ["mul.Tensor", "sum.default"] and r.log.count("mul.Tensor") == 3
    assert w.grad.tolist() == [2.0, 2.0]


DEFAULTS = [
    (lambda: X.sum(0, keepdim=False), ([0],), {}),
    (lambda: X.sum(0, True), ([0], True), {}),
    (lambda: X.sum(0, dtype=torch.float64), ([0],), {"dtype": torch.float64}),
    (lambda: torch.topk(X, 1), (1,), {}),
    (lambda: torch.topk(X, 1, sorted=False), (1, -1, True, False), {}),
    (lambda: torch.add(X, 1, alpha=2), (1,), {"alpha": 2}),
    (lambda: torch.nn.functional.leaky_relu(X, 0.01), (), {}),
]


@pytest.mark.parametrize("k", range(len(DEFAULTS)))
def test_arguments_equal_to_defaults_are_removed(k):
    f, args, kwargs = DEFAULTS[k]
    with Record() as r:
        f()
    ((got, got_kwargs),) = r.calls
    assert (tuple(got[1:]), got_kwargs) == (args, kwargs)


@pytest.mark.parametrize("given", [{}, {"pin_memory": False}, {"pin_memory": None}])
def test_factory_arguments(given):
    with Record() as r:
        torch.empty(2, **given)
        torch.zeros_like(X, **given)
        torch.ops.aten.empty.memory_format([2])
    assert r.calls[0] == (([2],), {"device": torch.device("cpu")})
    assert r.calls[1][1] == {}
    assert r.calls[2] == (([2],), {})


def test_nesting_order_reuse_and_exceptions():
    order = []

    class Named(TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            torch.ones(1)  # not seen by itself, seen by the outer
            return func(*args, **(kwargs or {}))

    with Named("outer"), Named("inner"):
        torch.zeros(1)
    assert order == ["inner", "outer", "outer"]
    m = Record()
    with m, m:
        torch.ones(1)
    assert m.log == ["ones.default"] * 2

    class Boom(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"), Boom():
        torch.ones(1)
    assert pd._get_current_dispatch_mode() is None and torch.ones(1).item() == 1.0
    with Record() as r:
        with pytest.raises(ValueError), Boom():
            torch.ones(1)
        torch.zeros(1)
    assert r.log == ["zeros.default"]


def test_reenabled_inside_its_handler():
    class Again(TorchDispatchMode):
        depth = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.depth += 1
            if self.depth < 3:
                with self:
                    return func(*args, **(kwargs or {}))
            return func(*args, **(kwargs or {}))

    with Again() as m:
        torch.ones(1)
    assert m.depth == 3


def test_stack_helpers():
    with Record() as p:
        assert pd._get_current_dispatch_mode() is p and len(pd._get_current_dispatch_mode_stack()) == 1
        with pd._pop_mode_temporarily() as q:
            assert q is p
            torch.ones(1)
        with pd._disable_current_modes() as off:
            assert off == [p]
            torch.ones(1)
        with no_dispatch():
            torch.ones(1)
        with pd.BaseTorchDispatchMode():
            torch.zeros(1)
    assert p.log == ["zeros.default"]


def test_enable_does_not_compose():
    m = Record()
    with pd.enable_torch_dispatch_mode(m):
        torch.ones(1)
    assert m.log == ["ones.default"]
    with Record(), pytest.raises(RuntimeError, match=r"with Record\(\)"), pd.enable_torch_dispatch_mode(Record()):
        pass


def test_stacks_are_of_a_thread():
    seen = []

    def work():
        seen.append(len(pd._get_current_dispatch_mode_stack()))
        torch.ones(3)

    with Record() as r:
        t = threading.Thread(target=work)
        t.start()
        t.join()
    assert seen == [0] and r.log == []


class Declines(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return NotImplemented


def test_declining_falls_through():
    with Record() as r, Declines():
        torch.ones(1)
    assert r.log == ["ones.default"]
    with pytest.raises(TypeError, match=r"aten\.ones\.default.*NotImplemented: Declines"), Declines():
        torch.ones(1)


BAD = [
    (lambda: torch.add(X, X), "x", "str for aten.add.Tensor"),
    (lambda: torch.max(X, 0), [X], "a list of 1 for aten.max.dim"),
    (lambda: torch.split(X, 1), X, "Tensor for aten.split.Tensor"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_results_are_checked(k):
    f, result, message = BAD[k]

    class Returns(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return result

    with Returns(), pytest.raises(TypeError, match=message):
        f()


def test_in_place_returns_its_argument():
    class Copies(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})).clone()

    x = torch.zeros(2)
    with Copies():
        assert x.add_(1) is x
    assert x.tolist() == [1.0, 1.0]


def test_fill_defaults():
    op = torch.ops.aten.sum.dim_IntList
    args, kwargs = pd.fill_defaults(op._schema, (X, [0]), {})
    assert args[1:] == ([0], False) and kwargs == {"dtype": None}
    assert op.normalize((X, [0], False), {"dtype": None}) == ((X, [0]), {})
