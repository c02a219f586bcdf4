"""Native code keeps what it reads, checks what it is given, passes exceptions on, and goes on in a forked child."""

import gc
import os
import sys
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C, _frame
from flambeau.base import kernels
from flambeau.utils._python_dispatch import TorchDispatchMode

x = torch.ones(2, 3)
ARRAY = np.ones(3)
FACTS = (torch.Tensor, torch.float32, torch.device("cpu"), (3,), (1,), False, 0)
CHECK, ACCESS = _frame.CHECK, _frame.ACCESS
TEMPLATE = kernels.count.capsule


def tree(*checks, access="arg", key=0, parent=-1):
    return _frame.GuardTree([(parent, ACCESS[access], key, tuple(checks))])


def one_argument(a):
    pass


CONTEXT = _frame.Context()
CACHE = _frame.cache_for(one_argument.__code__, CONTEXT)
assert (x + x).dim() == 2  # add's parameters are known


BAD = {
    "from_array: a class": lambda: _C.from_array(ARRAY, int),
    "from_array: an array": lambda: _C.from_array([1.0]),
    "from_array: dtype": lambda: _C.from_array(np.array(["a"])),
    "alias": lambda: _C.alias(x, int),
    "view_of": lambda: _C.view_of(1, ARRAY),
    "strided": lambda: _C.strided(x, (2,), (1, 1), 0),
    "strided: numbers": lambda: _C.strided(x, ("a",), (1,), 0),
    "without_data: storage": lambda: _C.without_data(torch.Tensor, (2,), (1,), torch.float32, x.device, 0, object()),
    "without_data: strides": lambda: _C.without_data(torch.Tensor, (2,), (), torch.float32, x.device, 0, None),
    "configure": lambda: _C.configure(tensor=int),
    "configure: size": lambda: _C.configure(size=list),
    "configure: dtypes": lambda: _C.configure(dtypes={1: 2}),
    "_array": lambda: setattr(x, "_array", [1.0]),
    "_array: none": lambda: delattr(x, "_array"),
    "_storage": lambda: setattr(x, "_storage", object()),
    "_grad_fn": lambda: setattr(x, "_grad_fn", object()),
    "_keys": lambda: setattr(x, "_keys", "a"),
    "storage.version": lambda: setattr(x._storage, "version", 7),
    "storage.owner": lambda: setattr(x._storage, "owner", None),
    "Function": lambda: _C.Function("f", 3),
    "Function.impl": lambda: delattr(torch.sum, "impl"),
    "set_subscript": lambda: _C.set_subscript(1, 2, 3, 4, 5, 6),
    "set_kernel": lambda: torch.ops.aten.add.Tensor.set_kernel(1, 2),
    "set_signature": lambda: torch.ops.aten.add.Tensor.set_signature((("self", 1, 0, 0, 0, 0, 0, 0),)),
    "CallPlan: parts": lambda: _C.CallPlan(-1, ()),
    "CallPlan: result": lambda: _C.CallPlan(1, ((1, (2,), (4,), 0),)),
    "CallPlan: steps": lambda: _C.CallPlan(1, (), steps=((("copy", 4), (), (), (), ((9, 0, ()),), (), 0),)),
    "CallPlan: operands": lambda: _C.CallPlan(2, (), steps=((("copy", 4), (), (1,), (4, 4), ((0, 0, ()),), (), 0),)),
    "CallPlan: gather": lambda: _C.CallPlan(
        2, (), steps=((("gather",), (), (), (), ((0, 0, ()), (1, 0, ())), (), -1),)
    ),
    "CallPlan: loop": lambda: _C.CallPlan(2, (), steps=((None, (), (), (), ((0, 0, ()), (1, 0, ())), (), 4),)),
    "CallPlan: scatter": lambda: _C.CallPlan(2, (), steps=((("scatter", "a", 11), (), (), (), (), (), 4),)),
    "CallPlan: template": lambda: _C.CallPlan(1, (), steps=((1, (), (), False),)),
    "CallPlan: parts of a template": lambda: _C.CallPlan(1, (), steps=((TEMPLATE, ((0, 0, (), ()),), (), False),)),
    "CallPlan: slots of a template": lambda: _C.CallPlan(
        1, (), steps=((TEMPLATE, ((0, 0, (), ()), (5, 0, (), ())), (), False),)
    ),
    "CallPlan: views of a template": lambda: _C.CallPlan(1, (), steps=((TEMPLATE, (1, 2), (), False),)),
    "CallPlan: temporaries": lambda: _C.CallPlan(1, (), temporaries=(-8,)),
    "Rule": lambda: _C.Rule(1, 65, "a", 0, 0, True, False, False, False),
    "Rule: a view of nothing": lambda: _C.Rule(1, 0, "a", 0, 0, True, False, True, False),
    "Rule: functional": lambda: _C.Rule(1, 1, "a", 0, 0, True, False, False, False, 3),
    "Plan": lambda: _C.Plan(((1, 2),), print),
    "record": lambda: _C.record(torch.ops.aten.add.Tensor, (), x),
    "record: operator": lambda: _C.record(3, (), x),
    "inplace_end": lambda: _C.inplace_end(x, 3),
    "note_view": lambda: _C.note_view(x, 3, None, ()),
    "set_history": lambda: _C.set_history(x, 3, 0),
    "SavedTensor": lambda: _C.SavedTensor(3, None, "a"),
    "run_backward": lambda: _C.run_backward((1,), (None,), None, False, False, False),
    "run_backward: edges": lambda: _C.run_backward((x,), (), [], False, False, False),
    "Guard": lambda: _C.Guard(push="no stack"),
    "Guard: two": lambda: _C.Guard(push="devices", pop="devices"),
    "Guard: left": lambda: _C.Guard(grad_enabled=True).__exit__(None, None, None),
    "tls": lambda: _C.tls("nothing"),
    "tls: depth": lambda: _C.tls("devices", 5),
    "set_fake": lambda: _C.set_fake(int, int),
    "tree: nodes": lambda: _frame.GuardTree([1]),
    "tree: access": lambda: _frame.GuardTree([(-1, 99, 0, ())]),
    "tree: parent": lambda: _frame.GuardTree([(0, ACCESS["attr"], "a", ())]),
    "tree: a later node": lambda: tree((CHECK["DUPLICATE_INPUT"], 1)),
    "tree: no node": lambda: tree((CHECK["NO_TENSOR_ALIASING"], (0, 5))),
    "tree: below none": lambda: tree((CHECK["NO_MEMORY_OVERLAP"], (-1,))),
    "tree: sizes of no node": lambda: tree((CHECK["SIZES"], ((3, 0, 0), (), ()))),
    "tree: sizes of no dimension": lambda: tree((CHECK["SIZES"], ((0, 0, -1), (), ()))),
    "tree: facts": lambda: tree((CHECK["TENSOR_MATCH"], (int, *FACTS[1:]))),
    "tree: facts of an array": lambda: tree((CHECK["NDARRAY_MATCH"], (np.ndarray, *FACTS[1:]))),
    "tree: arguments": lambda: tree(key=3).check(one_argument, ()),
    "tree: mirror": lambda: setattr(tree(), "mirror", 3),
    "cache.add: a tree": lambda: CACHE.add(type("flambeau._frame.GuardTree", (), {})(), one_argument.__code__),
    "Storage: recorded": lambda: setattr(x._storage, "recorded", 3),
    "Storage: version": lambda: setattr(x._storage, "version", "a"),
    "Node: materialize": lambda: setattr((x * 2).grad_fn, "materialize", 1),
    "Node: no materialize": lambda: delattr((x * 2).grad_fn, "materialize"),
    "Cache: skip": lambda: setattr(CACHE, "skip", 1),
    "Cache: no skip": lambda: delattr(CACHE, "skip"),
    "cache.add: arguments": lambda: CACHE.add(tree(key=3), one_argument.__code__),
}


@pytest.mark.parametrize("call", BAD.values(), ids=list(BAD))
def test_arguments_are_checked_at_the_boundary(call):
    with pytest.raises((TypeError, ValueError, AttributeError, RuntimeError)):
        call()


def test_what_a_rule_shows_is_a_copy():
    y = torch.ones(2, requires_grad=True) * 3
    rule = torch.ops.aten.mul.Tensor
    assert y.grad_fn is not None
    plans = _C.Rule(rule, 2, "a", 0, 0, True, False, False, False).plans
    assert plans == () and not hasattr(plans, "append")


def test_a_hook_on_a_saved_value_that_drops_it():
    saved = _C.SavedTensor(torch.ones(2), None, "a")

    def pack(t):
        saved.release()
        return t

    saved.register_hooks(pack, lambda t: t)
    with pytest.raises(RuntimeError, match="a second time"):
        saved.unpack(None)


def test_a_kernel_that_keeps_and_changes_its_list_of_results():
    kept = []
    lib = torch.library.Library("hygiene_lists", "FRAGMENT")
    lib.define("pair(Tensor a) -> Tensor[]")

    def pair(a):
        kept[:] = [a * 2, a * 3]
        return kept

    lib.impl("pair", pair, "CPU")
    for _ in range(3):
        got = torch.ops.hygiene_lists.pair(torch.ones(2))
        kept.clear()
        assert len(got) in (0, 2)


def test_an_operator_that_is_changed_while_it_runs():
    op = torch.ops.aten.mul.Tensor

    class Changing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            op.forget()
            _C.forget_call_plans()
            return func(*args, **(kwargs or {}))

    w = torch.ones(2, requires_grad=True)
    for _ in range(3):
        with Changing():
            y = torch.mul(w, other=2.0) + torch.clamp(w, max=3)
        y.sum().backward()
    assert w.grad.tolist() == [9.0, 9.0]


def odd():
    """A class whose attributes can't be asked for."""

    class Interrupting(type):
        def __getattr__(cls, name):
            raise KeyboardInterrupt

    return Interrupting("Odd", (), {})


class Failing:
    def __eq__(self, other):
        raise KeyboardInterrupt

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    "call",
    [
        lambda: x + odd()(),
        lambda: odd()() - x,
        lambda: x == odd()(),
        lambda: torch.add(x, odd()()),
        lambda: torch.stack([x, odd()()]),
        lambda: tree((CHECK["EQUALS_MATCH"], Failing())).check(one_argument, (Failing(),)),
        lambda: tree((CHECK["CALL"], _interrupt)).check(one_argument, (1,)),
        lambda: _frame.GuardTree([(-1, ACCESS["arg"], 0, ()), (0, ACCESS["getattr"], "a", ())]).check(
            one_argument, (odd(),)
        ),
    ],
)
def test_an_interrupt_is_passed_on(call):
    with pytest.raises(KeyboardInterrupt):
        call()


def _interrupt(value):
    raise KeyboardInterrupt


def test_a_guard_that_runs_out_of_memory_says_so():
    def fails(value):
        raise MemoryError

    with pytest.raises(MemoryError):
        tree((CHECK["CALL"], fails)).check(one_argument, (1,))


REPEATED = {
    "bad argument": (lambda: torch.add(x, "no"), TypeError),
    "bad shape": (lambda: x + torch.ones(7), RuntimeError),
    "bad index": (lambda: x[9], IndexError),
    "bad view": (lambda: x.view(5), RuntimeError),
    "a second backward": (lambda: _twice(), RuntimeError),
    "a leaf in place": (lambda: torch.ones(2, requires_grad=True).add_(1), RuntimeError),
    "a failing hook": (lambda: _hook(), ZeroDivisionError),
    "a failing guard": (lambda: tree((CHECK["CALL"], _interrupt)).check(one_argument, (1,)), KeyboardInterrupt),
    "a bad tree": (lambda: tree((CHECK["DUPLICATE_INPUT"], 1)), ValueError),
    "a bad call plan": (lambda: _C.CallPlan(1, (), temporaries=(-8,)), ValueError),
    "a bad guard": (lambda: _C.Guard(push="devices", pop="devices"), TypeError),
}


def _twice():
    y = (torch.ones(2, requires_grad=True) ** 2).sum()
    y.backward()
    y.backward()


def _hook():
    y = torch.ones(2, requires_grad=True) * 2
    y.register_hook(lambda g: 1 / 0)
    y.sum().backward()


@pytest.mark.parametrize("name", REPEATED)
def test_errors_leave_nothing_behind(name):
    job, error = REPEATED[name]

    def run(n):
        for _ in range(n):
            try:
                job()
            except error:
                continue
            raise AssertionError

    run(30)
    gc.collect()
    watched = (x, x.dtype, x.device, torch.Tensor, _C.Guard, job)
    before, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    run(1000)
    gc.collect()
    assert (
        max(sys.getrefcount(o) - a for a, o in zip(before, watched, strict=True)) < 30
    )  # other tests' may go meanwhile
    assert sys.getallocatedblocks() - blocks < 900  # less than one for each


LARGE = torch.ones(400, 400)


def _busy_allocating():
    [torch.ones(n) * 2 for n in (10, 1000, 100_000)]


def _busy_multiplying():
    LARGE @ LARGE
    (LARGE * 2).sum()


def _busy_with_gradients():
    w = torch.ones(50, requires_grad=True)
    torch.autograd.graph.register_multi_grad_hook((w,), lambda grads: None)
    (w * w).sum().backward()


def _busy_with_transforms():
    torch.vmap(lambda a: a * 2)(x)
    with torch.device("meta"):
        torch.ones(2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork.*:DeprecationWarning")
@pytest.mark.parametrize("busy", [_busy_allocating, _busy_multiplying, _busy_with_gradients, _busy_with_transforms])
def test_a_child_forked_while_another_thread_works(busy):
    stop = threading.Event()

    def work():
        while not stop.is_set():
            busy()

    busy()
    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(8):
            pid = os.fork()
            if not pid:
                code = 1
                try:
                    import signal

                    signal.alarm(20)
                    busy()
                    w = torch.ones(2, requires_grad=True)
                    (w * w).sum().backward()
                    code = 0 if w.grad.tolist() == [2.0, 2.0] and _C.tls("devices") == 0 else 2
                finally:
                    os._exit(code)
            assert os.waitpid(pid, 0)[1] == 0
    finally:
        stop.set()
        thread.join()
