"""``__torch_dispatch__`` of tensor subclasses."""

import threading

import pytest
from flambeau._subclasses import FakeTensorMode

import flambeau as torch
from flambeau.testing._internal.logging_tensor import LoggingTensor, LoggingTensorReentrant, capture_logs
from flambeau.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from flambeau.utils._pytree import tree_map


class Wrap(torch.Tensor):
    log: list = []

    @staticmethod
    def __new__(cls, elem, requires_grad=False):
        r = torch.Tensor._make_wrapper_subclass(
            cls, elem.size(), strides=elem.stride(), dtype=elem.dtype, device=elem.device, requires_grad=requires_grad
        )
        r.elem = elem
        return r

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        Wrap.log.append((func, types))
        un = lambda t: t.elem if isinstance(t, Wrap) else t  # noqa: E731
        out = func(*tree_map(un, args), **tree_map(un, kwargs or {}))
        return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, out)


@pytest.fixture(autouse=True)
def _empty_log():
    Wrap.log.clear()


PLAIN = torch.arange(6.0).reshape(2, 3)

KEEP = {
    "second": lambda w: torch.add(PLAIN, w),
    "list": lambda w: torch.cat([PLAIN, w]),
    "kwarg": lambda w: torch.add(PLAIN, other=w),
    "stack": lambda w: torch.stack([w, w]),
    "where": lambda w: torch.where(w > 1, w, 0.0),
    "einsum": lambda w: torch.einsum("ij,kj->ik", w, w),
    "index": lambda w: w[torch.tensor([1])],
    "slice": lambda w: w[:, 1:],
    "new": lambda w: w.new_zeros(3),
    "like": lambda w: torch.rand_like(w),
    "softmax": lambda w: w.softmax(0),
    "matmul": lambda w: w @ PLAIN.t(),
    "reflected": lambda w: 1 - w,
    "rpow": lambda w: 2.0**w,
    "chunk": lambda w: w.chunk(2)[0],
    "max": lambda w: torch.max(w, 0)[0],
    "to": lambda w: w.to(torch.float64),
    "tensor": lambda w: torch.tensor(w),
    "norm": lambda w: torch.nn.functional.layer_norm(w, (3,)),
    "conv": lambda w: torch.nn.functional.conv1d(w[None], torch.ones(1, 2, 2)),
    "dropout": lambda w: torch.nn.functional.dropout(w, 0.5),
    "T": lambda w: w.T,
    "detach": lambda w: w.detach(),
    "sort": lambda w: w.sort()[0],
}


@pytest.mark.parametrize("name", KEEP)
def test_every_pattern_keeps_the_subclass(name):
    assert type(KEEP[name](Wrap(PLAIN))) is Wrap


def test_types_and_identity_of_the_operator():
    torch.add(PLAIN, Wrap(PLAIN))
    assert Wrap.log == [(torch.ops.aten.add.Tensor, (Wrap,))]
    w = Wrap(PLAIN)
    assert w._is_python_dispatch is True and PLAIN._is_python_dispatch is False
    assert "Python" in str(torch._C._dispatch_keys(w)) and "Python" not in str(torch._C._dispatch_keys(PLAIN))
    assert torch.Tensor.__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl


def _declining(order, name, base):
    def handler(cls, func, types, args=(), kwargs=None):
        order.append(name)
        return NotImplemented

    return type(name, (base,), {"__torch_dispatch__": classmethod(handler)})


def test_subclasses_come_before_superclasses():
    order = []
    a = _declining(order, "A", Wrap)
    b = _declining(order, "B", a)
    with pytest.raises(TypeError, match=r"aten\.add\.Tensor.*NotImplemented: B, A"):
        torch.add(a(PLAIN), b(PLAIN))
    assert order == ["B", "A"]


def test_wrapper_in_wrapper():
    w = Wrap(Wrap(Wrap(PLAIN)))
    r = w * 2
    assert len(Wrap.log) == 3 and type(r.elem.elem) is Wrap and torch.equal(r.elem.elem.elem, PLAIN * 2)


def test_modes_come_first_and_may_decline():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(types)
            return NotImplemented if types else func(*args, **(kwargs or {}))

    seen = []
    with Mode(), Mode():
        assert type(Wrap(PLAIN) + 1) is Wrap
    # Both decline; both see what the subclass does.
    assert seen == [(Wrap,), (Wrap,), (), ()] and len(Wrap.log) == 1


def test_reentrant_subclass_under_a_mode():
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x = LoggingTensorReentrant(torch.ones(2))
    with Mode():
        assert type((x * x).sum()) is LoggingTensorReentrant


def test_gradients_are_subclasses_also_from_a_thread():
    x = Wrap(torch.ones(2), requires_grad=True)
    y = x
    for _ in range(1000):
        y = y * 1.0
    total = y.sum()
    t = threading.Thread(target=total.backward)
    t.start()
    t.join()
    assert type(x.grad) is Wrap and x.grad.elem.tolist() == [1.0, 1.0]


def test_inner_tensors_may_carry_the_gradient():
    inner = torch.ones(2, requires_grad=True)
    (Wrap(inner) * 3).sum().elem.backward()
    assert inner.grad.tolist() == [3.0, 3.0]


def test_saving_a_result_detaches_it():
    with capture_logs() as logs:
        x = LoggingTensor(torch.ones(2), requires_grad=True)
        torch.exp(x)
    assert [line.split("aten.")[1].split("(")[0] for line in logs] == ["exp.default", "detach.default"]


@pytest.mark.parametrize("name", ["numpy", "tolist"])
def test_what_needs_the_data_is_refused(name):
    with pytest.raises(RuntimeError, match=f"{name}.. is not supported for tensor subclasses"):
        getattr(Wrap(PLAIN), name)()
    assert Wrap(PLAIN).sum().item() == 15.0


def test_make_subclass_and_as_subclass_are_tagged():
    class Tagged(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    for t in (torch.Tensor._make_subclass(Tagged, PLAIN), PLAIN.as_subclass(Tagged)):
        assert t._is_python_dispatch and type(t) is Tagged
    with pytest.raises(TypeError, match="Plain must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(type("Plain", (torch.Tensor,), {}), (2,))


def test_plain_subclasses_are_preserved_unless_disabled():
    kept = type("Kept", (torch.Tensor,), {})
    lost = type("Lost", (torch.Tensor,), {"__torch_function__": torch._C._disabled_torch_function_impl})
    assert type(PLAIN.as_subclass(kept) + 1) is kept and type(PLAIN.as_subclass(lost) + 1) is torch.Tensor


def test_return_and_correct_aliasing():
    class Aliasing(Wrap):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_dispatch__(func, types, args, kwargs)
            return return_and_correct_aliasing(func, args, kwargs or {}, out)

    w = Aliasing(torch.zeros(2, 3))
    assert w.view(3, 2).untyped_storage() is w.untyped_storage()
    assert w.mul_(2) is w


def _answering(answers, **options):
    class Answering(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return answers.get(str(func), NotImplemented)

    options = dict(dtype=torch.float32, **options)
    return torch.Tensor._make_wrapper_subclass(Answering, (6, 2), **options)


ANSWERS = {
    "sizes": ("sizes", "aten.sym_size.default", lambda t: (t.size(), t.shape), ((5, 3), (5, 3)), (5, 3)),
    "one size": ("sizes", "aten.sym_size.default", lambda t: t.size(-1), 3, (5, 3)),
    "sizes, by default": ("sizes", "aten.sym_size.default", lambda t: t.size(), (6, 2), None),
    "dimensions": ("sizes", "aten.dim.default", lambda t: (t.dim(), t.ndim), (7, 7), 7),
    "strides": ("strides", "aten.sym_stride.default", lambda t: t.stride(), (4, 2), (4, 2)),
    "contiguity": ("strides", "aten.is_contiguous.default", lambda t: t.is_contiguous(), False, False),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_subclasses_answer_for_their_metadata(name):
    policy, op, ask, expected, answer = ANSWERS[name]
    assert ask(_answering({op: answer}, dispatch_sizes_strides_policy=policy)) == expected
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.aten"):
        ask(_answering({}, dispatch_sizes_strides_policy=policy))


def test_subclasses_answer_for_device_and_layout():
    t = _answering({"prim.device.default": torch.device("meta")}, dispatch_device=True)
    assert t.device.type == "meta" and torch.ones(1).device.type == "cpu"
    t = _answering({"prim.layout.default": torch.sparse_csr}, dispatch_layout=True)
    assert t.layout is torch.sparse_csr and torch.ones(1).layout is torch.strided


def test_type_as_takes_the_device():
    assert torch.ones(2).type_as(torch.empty(3, dtype=torch.int64, device="meta")).device.type == "meta"


def test_wrappers_are_pickled_with_what_they_hold():
    import pickle

    x = Pair(torch.arange(3), torch.zeros(3, dtype=torch.int64))
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is Pair and y.dtype is torch.int64 and torch.equal(y.a, x.a) and torch.equal(y.b, x.b)


class Pair(torch.Tensor):
    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, device=a.device)

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


class Seen(torch.Tensor):
    pass


def _write_subclass(y):
    o = y.as_subclass(Seen)
    o.mul_(3)
    return y


def _write_base(y):
    o = y.as_subclass(Seen)
    y.mul_(3)
    return o


def _write_plain_again(y):
    o = y.as_subclass(Seen)
    t = o.as_subclass(torch.Tensor)
    t.mul_(3)
    return o


def _write_part(y):
    o = y[:2].as_subclass(Seen)
    o.mul_(3)
    return y[:2]


def _view_of_a_result(y):
    s = (y * 1).as_subclass(Seen)
    w = s.view(3, 1)
    s.mul_(3)
    return w


@pytest.mark.parametrize("program", [_write_subclass, _write_base, _write_plain_again, _write_part, _view_of_a_result])
def test_a_write_to_either_is_in_the_history_of_both(program):
    x = torch.ones(3, requires_grad=True)
    seen = program(x * 1)
    seen.sin().sum().backward()
    assert torch.allclose(x.grad[: seen.numel()].as_subclass(torch.Tensor), 3 * torch.tensor(3.0).cos())


def test_a_subclass_of_a_leaf_is_a_view_of_it():
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x.as_subclass(Seen).mul_(2)
    assert torch.ones(3).as_subclass(Seen)._is_view()


def made_fake():
    with FakeTensorMode():
        return torch.ones(3)


class Itself(torch.Tensor):
    """Does the operators on its own elements."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return super().__torch_dispatch__(func, types, args, kwargs or {})


DATA = {
    "a wrapper": lambda: Wrap(torch.ones(3)),
    "one with elements": lambda: torch.ones(3).as_subclass(Itself),
    "a fake tensor": lambda: FakeTensorMode().from_tensor(torch.ones(3)),
    "one made by the mode": made_fake,
}


@pytest.mark.parametrize("kind", DATA)
def test_writes_to_data_are_counted_for_it_alone(kind):
    x = DATA[kind]()
    data = x.data
    data.add_(1)
    assert (x._version, data._version) == (0, 1)
    x.mul_(2)
    assert (x._version, data._version) == (1, 1)
