"""Hooks of modules beyond the plain forward hook: those of the old kind, of every module, named tuples, kwargs."""

import collections
import warnings

import pytest

import flambeau as fl
from flambeau import nn

module = nn.modules.module
Pair = collections.namedtuple("Pair", "left right")


class Twice(nn.Module):
    def forward(self, x, n=2):
        return Pair(x * n, x + n)


def test_a_regular_backward_hook_sees_one_node():
    seen = []
    x = fl.randn(3, requires_grad=True).clone()
    layer = nn.Sigmoid()
    layer.register_backward_hook(lambda m, gi, go: seen.append((len(gi), len(go))))
    layer(x).sum().backward()
    assert seen == [(1, 1)]
    linear = nn.Linear(3, 2)
    linear.register_backward_hook(lambda m, gi, go: None)
    with pytest.warns(FutureWarning, match="multiple autograd Nodes"):
        linear(x)
    with pytest.raises(RuntimeError, match="regular backward hooks and full"):
        linear.register_full_backward_hook(lambda m, gi, go: None)


def test_hooks_of_every_module():
    seen = []
    handles = [
        module.register_module_forward_hook(lambda m, a, k, out: seen.append(("after", k)), with_kwargs=True),
        module.register_module_full_backward_hook(lambda m, gi, go: seen.append(("back", len(go)))),
    ]
    try:
        with pytest.raises(RuntimeError, match="global Module hook"):
            module.register_module_backward_hook(lambda m, gi, go: None)
        out = Twice()(fl.ones(2, requires_grad=True), n=3)
        assert type(out) is Pair
        (out.left.sum() + out.right.sum()).backward()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("after", {"n": 3}), ("back", 2)]
    assert not module._global_forward_hooks and not module._global_backward_hooks


def test_registries_by_pytorchs_names():
    called = []
    handle = module.register_module_forward_pre_hook(lambda m, a: called.append(1))
    assert list(module._global_forward_pre_hooks) == [handle.id] and handle.hooks_dict_ref() is not None
    module._global_forward_pre_hooks = collections.OrderedDict()
    nn.ReLU()(fl.ones(1))
    assert not called


def test_always_called_hooks_of_every_module():
    called = []
    with module.register_module_forward_hook(lambda m, a, out: called.append(out), always_call=True):
        with pytest.raises(NotImplementedError):
            nn.Module()(fl.ones(1))
    assert called == [None]


def test_hooks_may_replace_gradients_of_some_arguments():
    class Mixed(nn.Module):
        def forward(self, flag, x, y):
            assert x.requires_grad and not y.requires_grad
            return flag, x * y

    layer, seen = Mixed(), []
    layer.register_full_backward_hook(lambda m, gi, go: seen.append((gi[0], go[0])) or (None, gi[1] * 2, None))
    x = fl.ones(2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(True, x, fl.full((2,), 3.0))[1].sum().backward()
    assert x.grad.tolist() == [6.0, 6.0] and seen == [(None, None)]


REGISTERS = {
    "after each": (lambda m: module.register_module_forward_hook, 4),
    "after": (lambda m: m.register_forward_hook, 4),
    "before": (lambda m: m.register_forward_pre_hook, 3),
}


@pytest.mark.parametrize("where", REGISTERS)
def test_a_hook_that_is_removed_in_the_middle_runs_as_it_was_registered(where):
    """By an earlier hook, or by another thread that traces."""
    m, seen, handles = nn.Identity(), [], []
    register, given = REGISTERS[where]
    handles.append(register(m)(lambda *values: handles[1].remove()))
    handles.append(register(m)(lambda *values: seen.append(len(values)), with_kwargs=True))
    try:
        m(fl.ones(1))
        m(fl.ones(1))
    finally:
        handles[0].remove()
    assert seen == [given]
