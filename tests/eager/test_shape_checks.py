"""The shape rule of an operator with a kernel of ours is asked before the kernel sees arguments of a new description, and only then."""

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.base.errors import DataDependentOutputException
from flambeau.core.declare import extern
from flambeau.core.definition import TensorMeta


class Seen:
    """What the rule and the kernel of the operator below have seen."""

    def __init__(self):
        self.rule, self.kernel = [], []
        self.during_rule = lambda x: None


seen = Seen()


def _rule(self, index, others, factor):
    seen.rule.append((tuple(self.shape), factor))
    if factor < 0:
        raise DataDependentOutputException("test: only the data tells")
    if tuple(index.shape) != tuple(self.shape) or any(tuple(x.shape) != tuple(self.shape) for x in others):
        raise RuntimeError("test: sizes that don't fit")
    seen.during_rule(self)
    return TensorMeta(tuple(self.shape), tuple(self.stride()), self.dtype, self.device)


@pytest.fixture(scope="module")
def declared():
    @extern(
        "flambeau_test::picked(Tensor self, Tensor index, Tensor[] others=[], *, int factor=1) -> Tensor",
        meta=_rule,
        inplace=True,
        has_out=True,
        variants="",
    )
    def picked(self, index, others, factor):
        """Looks at no size."""
        seen.kernel.append(self.shape)
        return np.array(self, order="C")

    return picked


@pytest.fixture
def op(declared):
    seen.__init__()
    _C.forget_call_plans()
    return declared


def test_the_rule_is_asked_once_a_description(op):
    x = torch.ones(3)
    for _ in range(5):
        op(x, torch.ones(3))
    assert seen.rule == [((3,), 1)] and seen.kernel == [(3,)] * 5
    for other in (torch.ones(4), torch.ones(3, 2), torch.ones(6)[::2], torch.ones(3, dtype=torch.float64)):
        before = len(seen.rule)
        op(other, other)
        op(other.clone() if other.is_contiguous() else other, other)
        assert len(seen.rule) == before + 1
    op(x, torch.ones(3), factor=2)
    assert seen.rule[-1] == ((3,), 2)


FORMS = {
    "the call": lambda op, x, y: op(x, y),
    "with a gradient": lambda op, x, y: op(x.requires_grad_(), y),
    "in place": lambda op, x, y: torch.ops.flambeau_test.picked_.default(x, y),
    "out=": lambda op, x, y: torch.ops.flambeau_test.picked.out(x, y, out=torch.empty(3)),
    "among several": lambda op, x, y: op(x, x, [x, y]),
    "of many, which have no description": lambda op, x, y: op(x, x, [x] * 60 + [y]),
    "under a dispatch mode": lambda op, x, y: _under_a_mode(lambda: op(x, y)),
}


def _under_a_mode(call):
    from flambeau.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Mode():
        return call()


@pytest.mark.parametrize("form", FORMS)
def test_the_kernel_never_sees_what_is_refused(op, form):
    call = FORMS[form]
    for wrong in (torch.ones(4), torch.ones(()), torch.ones(0), torch.ones(3, 1)):
        for _ in range(3):
            with pytest.raises(RuntimeError, match="sizes that don't fit"):
                call(op, torch.ones(3), wrong)
    assert not seen.kernel
    assert call(op, torch.ones(3), torch.ones(3)).shape == (3,)
    with pytest.raises(RuntimeError, match="sizes that don't fit"):
        call(op, torch.ones(3), torch.ones(4))
    assert len(seen.kernel) == 1


def test_many_descriptions(op):
    """More than an operator's table holds: those that made room for others are asked about again."""
    for _ in range(2):
        for n in range(300):
            op(torch.ones(n), torch.ones(n))
            with pytest.raises(RuntimeError, match="sizes"):
                op(torch.ones(n), torch.ones(n + 1))
    assert len(seen.kernel) == 600 and len(seen.rule) >= 900


def test_what_data_tells_is_left_to_the_kernel(op):
    for _ in range(3):
        op(torch.ones(3), torch.ones(9), factor=-1)
    assert seen.kernel == [(3,)] * 3


def test_arguments_that_change_meanwhile_are_looked_at_again(op):
    def grow(x):
        seen.during_rule = lambda x: None
        x.resize_(8)

    seen.during_rule = grow
    with pytest.raises(RuntimeError, match="sizes"):
        op(torch.ones(3), torch.ones(3))
    assert not seen.kernel and [shape for shape, _ in seen.rule] == [(3,), (8,)]


def test_descriptions_are_forgotten_with_the_plans(op):
    for _ in range(2):
        op(torch.ones(3), torch.ones(3))
        _C.forget_call_plans()
    assert len(seen.rule) == 2


i = torch.tensor
RULES = {  # what PyTorch 2.13 raises of it
    "indices that don't go together": (
        lambda: torch.ones(3, 4)[i([0, 1, 2, 0]), i([0, 1])],
        IndexError,
        r"indexing tensors could not be broadcast together with shapes \[4\], \[2\]",
    ),
    "writes at them": (
        lambda: torch.ones(3, 4).index_put((i([0, 1, 2, 0]), i([0, 1])), torch.ones(1)),
        IndexError,
        r"indexing tensors could not be broadcast together with shapes \[4\], \[2\]",
    ),
    "a mask of numbers": (
        lambda: torch.ones(3).masked_scatter(torch.ones(3), torch.ones(3)),
        RuntimeError,
        "masked_scatter_ only supports boolean masks, but got mask with dtype Float",
    ),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", RULES)
def test_rules_say_what_kernels_said(name, compiled):
    call, error, text = RULES[name]
    with pytest.raises(error, match=text):
        (torch.compile(call) if compiled else call)()
