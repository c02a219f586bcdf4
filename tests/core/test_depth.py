"""Recursion without end is a RecursionError and not the end of the process, also with a recursion limit that the C stack can't hold.

The jobs run in a process of their own, in turn: one that dies is named by what was printed before.
"""

import os
import subprocess
import sys

import pytest

PROGRAM = r"""
import sys, threading
import flambeau as torch
from flambeau.autograd import Function
from flambeau.autograd.graph import saved_tensors_hooks
from flambeau.overrides import TorchFunctionMode
from flambeau.utils._python_dispatch import TorchDispatchMode
from flambeau.utils.checkpoint import checkpoint

one = torch.ones(1, requires_grad=True)


class Again(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            Again.apply(one).sum().backward()
        return g


class Sub(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return torch.add(args[0], 1)


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with self:
            return func(*args)


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        with self:
            return func(*args, **(kwargs or {}))


class Items:
    def __len__(self):
        return 1

    def __getitem__(self, i):
        return torch.tensor(self)


def a_hook():
    with torch.enable_grad():
        y = one * 2
        y.register_hook(lambda g: a_hook())
        y.backward()


def a_hook_on_a_leaf():
    x = torch.ones(2, requires_grad=True)
    def again(p):
        with torch.enable_grad():
            (x * 2).sum().backward()
    x.register_post_accumulate_grad_hook(again)
    again(x)


def a_mode(mode):
    with mode:
        torch.ones(1) + 1


def packing():
    def pack(t):
        with torch.enable_grad(), saved_tensors_hooks(pack, lambda t: t):
            return (one * one).exp()
    pack(one)


def checkpoints(x=one):
    return checkpoint(checkpoints, x * 1, use_reentrant=False)


def gradients(x=one.detach()[0]):
    return torch.func.grad(gradients)(x)


def module_hook():
    m = torch.nn.Linear(1, 1)
    m.register_forward_hook(lambda m, a, out: m(*a))
    m(one)


def nested_data():
    data = 1.0
    for _ in range(50_000):
        data = [data]
    try:
        torch.tensor(data)
    except ValueError as e:
        assert "too many dimensions" in str(e)
    else:
        raise AssertionError
    raise RecursionError


def broken(f):
    x = torch.ones(2)
    torch.compile(f, backend="eager")(x)


def calls(x):
    def deep(n):
        return n and 1 + deep(n - 1)
    x = x + 1
    print("calls", end="")
    return x * deep(50_000)


def generators(x):
    def deep(n):
        if n:
            yield from deep(n - 1)
        yield n
    x = x + 1
    print("generators", end="")
    return x * len(list(deep(50_000)))


class Operand:
    def __add__(self, other):
        return Operand() + other


def slots(x):
    x = x + 1
    print("slots", end="")
    return x * (Operand() + 1)


def coroutines(x):
    async def deep(n):
        return await deep(n + 1)
    x = x + 1
    print("coroutines", end="")
    deep(0).send(None)


def itself():
    @torch.compile(backend="eager")
    def f(x):
        return g(x)
    @torch.compiler.disable
    def g(x):
        return f(x)
    f(one)


EAGER = {
    "a backward in a backward": lambda: Again.apply(one).sum().backward(),
    "a hook": a_hook, "a hook on a leaf": a_hook_on_a_leaf,
    "__torch_function__": lambda: torch.add(torch.ones(1).as_subclass(Sub), 1),
    "a dispatch mode": lambda: a_mode(Dispatch()), "a function mode": lambda: a_mode(Functions()),
    "saving": packing, "checkpoints": checkpoints, "transforms": gradients, "a module's hook": module_hook,
    "a sequence": lambda: torch.tensor(Items()), "nested data": nested_data,
}
CAPTURED = {
    "calls": lambda: broken(calls), "generators": lambda: broken(generators), "slots": lambda: broken(slots),
    "coroutines": lambda: broken(coroutines), "itself": itself,
}


def work():
    for name, job in (CAPTURED if sys.argv[1] == "captured" else EAGER).items():
        print(f"<{name}", end="", flush=True)
        try:
            job()
        except RecursionError:
            print(">", flush=True)
        else:
            raise AssertionError("it ends")
        x = torch.ones(2, requires_grad=True)
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0] and torch._C.backward_id() == -1
    print("done")


sys.setrecursionlimit(int(sys.argv[2]))
if sys.argv[3] == "thread":
    threading.stack_size(1 << 20)
    t = threading.Thread(target=work)
    t.start()
    t.join()
else:
    work()
"""


# The ordinary limit is what other tests run under: here it is asked of capture alone.
@pytest.mark.parametrize(
    ("what", "limit", "where"),
    [
        pytest.param("eager", 1000, "main", marks=pytest.mark.slow),
        ("eager", 200_000, "main"),
        ("eager", 200_000, "thread"),
        ("captured", 1000, "main"),
        ("captured", 200_000, "main"),
        pytest.param("captured", 200_000, "thread", marks=pytest.mark.slow),
    ],
)
def test_endless_recursion_is_an_error(what, limit, where):
    r = subprocess.run(
        [sys.executable, "-c", PROGRAM, what, str(limit), where],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )
    assert r.returncode == 0 and r.stdout.endswith("done\n"), f"exit {r.returncode}\n{r.stdout}\n{r.stderr[-2000:]}"
