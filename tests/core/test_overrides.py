"""``__torch_function__``: modes, subclasses, duck-typed arguments."""

import operator

import pytest

import flambeau as torch
from flambeau import overrides
from flambeau.overrides import (
    BaseTorchFunctionMode,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    TorchFunctionMode,
)

F = torch.nn.functional
X = torch.ones(2, 2)


class Log(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(getattr(func, "__name__", str(func)))
        return func(*args, **(kwargs or {}))


PUBLIC = [
    (lambda: torch.rand(2), ["rand"]),
    (lambda: X.shape, ["__get__"]),
    (lambda: X.size(), ["size"]),
    (lambda: X[0], ["__getitem__"]),
    (lambda: X.clone().__setitem__(0, 1.0), ["clone", "__setitem__"]),
    (lambda: F.relu(X), ["relu"]),
    (lambda: F.linear(X, X), ["linear"]),
    (lambda: F.cross_entropy(X, torch.tensor([0, 1])), ["tensor", "cross_entropy"]),
    (lambda: torch.tensor([1]), ["tensor"]),
    (lambda: X + 1, ["add"]),
    (lambda: 1 - X, ["__rsub__"]),
    (lambda: X.item, []),
    (lambda: torch.where(X > 0, X, X), ["gt", "where"]),
    (lambda: torch.einsum("ij->i", X), ["einsum"]),
]


@pytest.mark.parametrize("k", range(len(PUBLIC)))
def test_modes_see_the_public_api(k):
    f, names = PUBLIC[k]
    with Log() as m:
        f()
    assert m.log == names


def test_order_replacing_and_declining():
    class Cosine(BaseTorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return super().__torch_function__(torch.cos if func is torch.sin else func, types, args, kwargs)

    with Cosine():
        assert torch.sin(torch.zeros(1)).item() == 1.0

    class Declines(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with Log() as m, Declines():
        torch.ones(1)
    assert m.log == ["ones"]
    with pytest.raises(TypeError, match="no implementation found for 'ones'"), Declines():
        torch.ones(1)
    assert torch.ones(1).item() == 1.0


class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types


DUCK = [
    (lambda d: torch.add(X, d), "add"),
    (lambda d: X + d, "add"),
    (lambda d: torch.cat([X, d]), "cat"),
    (lambda d: F.linear(X, d), "linear"),
    (lambda d: F.cross_entropy(X, d), "cross_entropy"),
    (lambda d: torch.where(d), "where"),
]


@pytest.mark.parametrize("k", range(len(DUCK)))
def test_duck_typed_arguments(k):
    f, name = DUCK[k]
    assert f(Duck()) == (name, (Duck,))


def test_a_subclass_sees_calls_and_the_engine_stays_hidden():
    log = []

    class S(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    s = torch.ones(3).as_subclass(S)
    total = s.requires_grad_().sum()
    torch.autograd.grad(total, s)
    assert log == ["requires_grad_", "sum", "grad"]
    assert type(torch.stack([s, s])) is S and type(s[0]) is S
    with DisableTorchFunctionSubclass():
        assert type(s + 1) is torch.Tensor


def test_disabling():
    with Log() as m, DisableTorchFunction():
        torch.ones(1)
    assert m.log == []
    with Log() as m, DisableTorchFunctionSubclass():
        torch.ones(1)
    assert m.log == ["ones"]


def test_declared_functions():
    functions = overrides.get_overridable_functions()
    assert all(isinstance(fs, list) and fs for fs in functions.values())
    dummies = overrides.get_testing_overrides()
    assert torch.add in dummies and callable(dummies[torch.add])
    assert not set(overrides.get_ignored_functions()) & set(dummies)
    assert (
        overrides.resolve_name(torch.add) == "torch.add"
        and overrides.is_tensor_like(Duck())
        and not overrides.is_tensor_like(3)
    )
    assert overrides.has_torch_function((Duck(),)) and not overrides.has_torch_function((X,))


def test_wrap_torch_function():
    @overrides.wrap_torch_function(lambda a: (a,))
    def mine(a):
        return a

    assert mine(3) == 3 and mine(Duck()) == ("mine", (Duck,))


def test_function_modes_see_operators_called_by_name():
    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 2)
    with Mode():
        torch.ops.aten.add.Tensor(x, x)
        torch.ops.aten.add(x, 1)
        with torch.autocast("cpu"):
            assert torch.ops.aten.mm(x, x).dtype is torch.bfloat16
        with Mode():
            torch.ops.aten.layer_norm(x, [2])
        with DisableTorchFunction():
            torch.ops.aten.mul.Tensor(x, x)
    assert [s for s in seen if s.startswith("aten")] == [
        "aten.add.Tensor",
        "aten.add",
        "aten.mm",
        *["aten.layer_norm"] * 2,
    ]
    seen.clear()
    torch.compile(lambda x: torch.ops.aten.add.Tensor(x, x), backend="aot_eager")(x)
    assert not seen


class _Foreign:
    """No tensor; its class refuses every function, its reflected methods don't."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented

    def __radd__(self, other):
        return "radd"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __eq__(self, other):
        return "eq"

    def __gt__(self, other):
        return "gt"


class _Raising(_Foreign):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise (TypeError if func is torch.Tensor.add else ValueError)("no operand")


def test_a_refused_operator_is_the_other_operands():
    x, other = torch.ones(2), _Foreign()
    assert (x + other, x @ other, x == other, x < other) == ("radd", "rmatmul", "eq", "gt")
    assert x + _Raising() == "radd"
    for call in (lambda: x - other, lambda: x <= other, lambda: x & other, lambda: x.add(other), lambda: other - x):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="no operand"):
        x - _Raising()
    x += other
    assert x == "radd"


def test_overrides_see_the_public_functions_of_the_library():
    seen = []

    class Container:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return torch.zeros(2)

        _add_batch_dim = _maybe_remove_batch_dim = lambda self, *args, **kwargs: self

    torch.vmap(lambda x: Container(), chunk_size=1)(torch.ones(2))
    assert seen[-1] is torch.cat


class Told(torch.Tensor):
    log: list = []  # noqa: RUF012

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


class Foreign:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func


@torch.library.custom_op("overrides_test::scaled", mutates_args=())
def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * n


aten, ours = torch.ops.aten, torch.ops.overrides_test
BY_NAME = {
    "packet": (lambda x: aten.add(x, 1), aten.add),
    "overload": (lambda x: aten.add.Tensor(x, 1), aten.add.Tensor),
    "by keyword": (lambda x: aten.mul.Tensor(X, other=x), aten.mul.Tensor),
    "second": (lambda x: aten.add(X, x, alpha=2), aten.add),
    "in a list": (lambda x: aten.cat.default([X, x]), aten.cat.default),
    "packet, in a list": (lambda x: aten.stack([X, x]), aten.stack),
    "composite": (lambda x: aten.linear.default(x, X), aten.linear.default),
    "in place": (lambda x: aten.relu_(x), aten.relu_),
    "a program's": (lambda x: ours.scaled(x, 3), ours.scaled),
    "a program's overload": (lambda x: ours.scaled.default(x, 3), ours.scaled.default),
    "a program's function": (lambda x: scaled(x, 3), ours.scaled.default),
}


@pytest.mark.parametrize("name", BY_NAME)
def test_operators_called_by_name(name):
    call, shown = BY_NAME[name]
    x, modes = X.clone().as_subclass(Told), []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            modes.append(func)
            return func(*args, **(kwargs or {}))

    want = call(X.clone())
    Told.log.clear()
    got = call(x)
    assert type(got) is Told and Told.log == [shown]
    assert torch.equal(got.as_subclass(torch.Tensor), want)
    given = X.clone()
    with Mode():
        call(given)
    assert modes == [shown]
    assert call(Foreign()) is shown
    with DisableTorchFunctionSubclass():
        Told.log.clear()
        call(X.clone().as_subclass(Told))
        assert not Told.log
        # An overload says what its schema takes, a packet what its parts ask for.
        with pytest.raises(
            RuntimeError if "overload" in name else (AttributeError, TypeError, RuntimeError), match="Foreign"
        ):
            call(Foreign())


def test_what_the_library_calls_by_name_is_not_shown():
    x = X.clone().as_subclass(Told).requires_grad_()
    loss = (x * x * x).relu().as_subclass(torch.Tensor).sum()
    Told.log.clear()
    (g,) = torch.autograd.grad(loss, [x.as_subclass(torch.Tensor)], create_graph=True, allow_unused=True)
    loss.backward(create_graph=True)
    loss.backward()
    x.as_subclass(torch.Tensor)
    operators = [f for f in Told.log if isinstance(f, torch._C.Operator) or type(f).__name__ == "OpOverloadPacket"]
    assert g is None and not operators


def test_rules_of_transforms_show_no_operators():
    x = X.clone().as_subclass(Told)
    for f in (
        torch.func.vmap(lambda v: v * 2),
        torch.func.grad(lambda v: (v * v).sum()),
        lambda x: torch.func.jvp(torch.sin, (x,), (X,))[1],
        torch.func.jacrev(torch.sin),
        torch.func.jacfwd(torch.sin),
    ):
        Told.log.clear()
        assert type(f(x)) is torch.Tensor
        assert not [s for s in map(str, Told.log) if s.startswith("aten")]


def test_rules_of_the_librarys_classes_hold_for_packets():
    nested = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
    masked = torch.masked.masked_tensor(torch.arange(4.0), torch.tensor([True, False, True, True]))
    for t in (nested, masked):
        for op in (aten.mul, aten.mul.Tensor):
            made = op(t, 2)
            assert type(made) is type(t) and made.shape == t.shape and str(made) == str(t * 2)


def test_a_tensor_of_a_tensor_is_a_view_with_its_history():
    class Sub(torch.Tensor):
        pass

    for cls in (Sub, torch.Tensor):
        a = torch.ones(2, requires_grad=True)
        made = cls(a)
        assert type(made) is cls and made._base is a and made.requires_grad
        (made * 3).sum().backward()
        assert a.grad.tolist() == [3, 3]


class Refuses(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


REFLECTED = "sub truediv floordiv mod pow matmul lshift rshift".split()


@pytest.mark.parametrize("name", [*REFLECTED, "add", "mul", "and_", "or_", "xor"])
def test_operators_that_are_refused(name):
    reflected = f"__r{name.rstrip('_')}__"

    class Reflected(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "reflected" if func is getattr(torch.Tensor, reflected) else NotImplemented

    operation = getattr(operator, name)
    for left in (Refuses(), torch.ones(1)):
        if name in REFLECTED:
            assert operation(left, Reflected()) == "reflected"
        else:
            with pytest.raises(TypeError, match="unsupported operand"):
                operation(left, Reflected())
    with pytest.raises(TypeError, match="unsupported operand"):
        operation(Refuses(), Refuses())


def test_comparisons_that_are_refused():
    assert (Refuses() == Refuses()) is False and (Refuses() != Refuses()) is True
    with pytest.raises(TypeError, match="not supported between instances"):
        Refuses() < Refuses()  # noqa: B015
