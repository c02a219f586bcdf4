"""What is measured. A case is a function of a module that looks like torch, and returns the call to time.

The same code runs on every peer: cases are written against the common interface, and ``numpy`` ones against NumPy alone.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import layers

GPT_SOURCE = Path(__file__).resolve().parents[1] / "src/flambeau/examples/gpt.py"

CASES: dict[str, dict[str, object]] = {}


def case(name: str, peers: tuple[str, ...] = ("flambeau", "torch")):
    """Register a function as the case ``name`` of the given peers."""

    def register(make):
        for peer in peers:
            CASES.setdefault(name, {})[peer] = make
        return make

    return register


# Small eager operators, 8x8 float32


@case("add 8x8")
def _(torch):
    x, y = torch.rand(8, 8), torch.rand(8, 8)
    return lambda: x + y


@case("add 8x8", peers=("numpy",))
def _(np):
    x, y = np.ones((8, 8), np.float32), np.ones((8, 8), np.float32)
    return lambda: x + y


@case("add with grad 8x8")
def _(torch):
    x, y = torch.rand(8, 8, requires_grad=True), torch.rand(8, 8)
    return lambda: x + y


@case("view")
def _(torch):
    x = torch.rand(8, 8)
    return lambda: x.view(64)


@case("slice")
def _(torch):
    x = torch.rand(8, 8)
    return lambda: x[1:5]


@case("index with an int tensor")
def _(torch):
    x, i = torch.rand(8, 8), torch.tensor([5, 0, 3, 3])
    return lambda: x[i]


@case("matmul 8x8")
def _(torch):
    x, y = torch.rand(8, 8), torch.rand(8, 8)
    return lambda: x @ y


@case("sum 8x8")
def _(torch):
    x = torch.rand(8, 8)
    return lambda: x.sum()


@case("three operators forward and backward")
def _(torch):
    x = torch.rand(8, 8, requires_grad=True)

    def run():
        x.grad = None
        (x * 2).sin().sum().backward()

    return run


@case("training step of a 16-32-32-1 network with AdamW")
def _(torch):
    torch.manual_seed(0)
    nn = torch.nn
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    x, y = torch.randn(64, 16), torch.randn(64, 1)

    def step():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()

    return step


# Interposition and fake tensors


@case("100 adds under a pass-through dispatch mode")
def _(torch):
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")

    class PassThrough(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    x, y = torch.rand(8, 8), torch.rand(8, 8)

    def run():
        with PassThrough():
            for _ in range(100):
                x + y

    return run


@case("add of fake tensors")
def _(torch):
    fake = importlib.import_module(f"{torch.__name__}._subclasses.fake_tensor")
    mode = fake.FakeTensorMode()
    x = mode.from_tensor(torch.rand(8, 8))
    return lambda: x + x


# Compiled call of a two-operator function


@case("compiled x * y + 1, 8x8")
def _(torch):
    f = torch.compile(lambda x, y: x * y + 1)
    x, y = torch.rand(8, 8), torch.rand(8, 8)
    f(x, y)
    return lambda: f(x, y)


# An optimizer's step over 100 parameters: plain, and captured as one graph


def optimizer_step(torch, name: str, compiled: bool):
    """A step that has not run yet."""
    torch.manual_seed(0)
    parameters = [torch.nn.Parameter(torch.randn(32, 32)) for _ in range(100)]
    optimizer = getattr(torch.optim, name)(parameters, lr=1e-3)
    for p in parameters:
        p.grad = torch.randn(32, 32)
    step = torch.compile(optimizer.step) if compiled else optimizer.step
    return step


def warm(step):
    for _ in range(8):  # states, and what is compiled after a few steps
        step()
    return step


for _name in ("SGD", "AdamW"):
    for _how in (False, True):
        case(f"{_name} step over 100 parameters, {'compiled' if _how else 'eager'}")(
            lambda torch, name=_name, how=_how: warm(optimizer_step(torch, name, how))
        )


# Kernels of docs/measurements/kernels.md


def _gelu_layer_norm(torch):
    F = torch.nn.functional
    x, w, b = torch.randn(4096, 1024), torch.randn(1024), torch.randn(1024)
    return (lambda x, w, b: F.layer_norm(F.gelu(x), (1024,), w, b)), (x, w, b)


def _softmax(torch):
    return (lambda x: torch.softmax(x, -1)), (torch.randn(4096, 1024),)


def _eager(make):
    def build(torch):
        f, args = make(torch)
        return lambda: f(*args)

    return build


def _compiled(make):
    def build(torch):
        f, args = make(torch)
        f = torch.compile(f)
        f(*args)
        return lambda: f(*args)

    return build


case("gelu + layer_norm 4096x1024, eager")(_eager(_gelu_layer_norm))
case("gelu + layer_norm 4096x1024, compiled")(_compiled(_gelu_layer_norm))
case("softmax 4096x1024, eager")(_eager(_softmax))
case("softmax 4096x1024, compiled")(_compiled(_softmax))


@case("copy 4096x1024")
def _(torch):
    x = torch.randn(4096, 1024)
    return lambda: x.clone()


def _outer_sum(np):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1024, 64))
    return (lambda X, Y: np.sum(X[:, :, None] * Y[:, None, :], axis=(-2, -1))), (x, x)


case("np.sum(X[:, :, None] * Y[:, None, :])", peers=("numpy",))(_eager(_outer_sum))


@case("np.sum(X[:, :, None] * Y[:, None, :]), compiled")
def _(torch):
    import numpy as np

    f, args = _outer_sum(np)
    f = torch.compile(f)
    f(*args)
    return lambda: f(*args)


# A training step of the GPT of the demo


def _gpt_step(torch, compiled: bool, optimizer_too: bool = False):
    namespace = {"__name__": "gpt"}
    source = GPT_SOURCE.read_text().replace("import flambeau as torch", f"import {torch.__name__} as torch")
    import sys
    import types

    module = types.ModuleType("gpt")  # dataclasses look their module up
    sys.modules["gpt"] = module
    namespace = module.__dict__
    exec(compile(source, str(GPT_SOURCE), "exec"), namespace)
    torch.manual_seed(0)
    model = namespace["GPT"](namespace["GPTConfig"](vocab_size=96, block_size=64))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    forward = torch.compile(model) if compiled else model
    update = torch.compile(optimizer.step) if optimizer_too else optimizer.step
    x = torch.randint(0, 96, (16, 64))
    y = torch.randint(0, 96, (16, 64))

    def step():
        _, loss = forward(x, y)
        optimizer.zero_grad()
        loss.backward()
        update()
        return loss.item()

    return step


@case("GPT training step, eager")
def _(torch):
    return _gpt_step(torch, False)


@case("GPT training step, compiled")
def _(torch):
    step = _gpt_step(torch, True)
    step()
    return step


@case("GPT training step, model and optimizer compiled")
def _(torch):
    step = _gpt_step(torch, True, True)
    step()
    return step


layers.register(case)

# First calls: each runs once in a fresh process


def first_pointwise(torch):
    f = torch.compile(lambda x, y: (x * y + 1).tanh())
    x, y = torch.rand(1000), torch.rand(1000)
    return lambda: f(x, y)


def first_gpt_step(torch):
    return _gpt_step(torch, True)


def first_whole_step(torch):
    return _gpt_step(torch, True, True)


FIRST = {
    "first call of a compiled pointwise function": first_pointwise,
    "first compiled GPT training step": first_gpt_step,
    "first compiled GPT training step, optimizer compiled too": first_whole_step,
}
