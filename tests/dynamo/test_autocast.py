"""autocast inside captured functions and around them: dtypes, gradients, settings that change, breaks and errors, as plain."""

import pytest
from programs import agree, attempt, graphs_of

import flambeau as torch
from flambeau.compiler import compile, graph_break


def r(*shape):
    n = 1
    for s in shape:
        n *= s
    return torch.arange(float(n)).reshape(shape) / n


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def dtypes(*tensors):
    return [str(t.dtype) for t in tensors] + [t.float() for t in tensors]


@program
def inside(C, torch):
    w = r(3, 3)

    def f(x):
        y = x @ w
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z, e = x @ w, x.exp()
            on = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
        return y, z, e, (z + y) @ w, on, torch.is_autocast_enabled("cpu")

    y, z, e, v, *rest = C(f)(r(2, 3))
    return [dtypes(y, z, e, v), repr(rest), torch.is_autocast_enabled("cpu")]


@program
def around(C, torch):
    w = r(3, 3).requires_grad_()
    f = C(lambda x: torch.nn.functional.linear(x, w).relu())
    out = []
    for options in (None, {"dtype": torch.bfloat16}, {"dtype": torch.float16}, {"enabled": False}, None):
        x = r(2, 3).requires_grad_()
        if options is None:
            y = f(x)
        else:
            with torch.autocast("cpu", **options):
                y = f(x)
        y.float().sum().backward()
        out.append([dtypes(y, x.grad, w.grad)])
        w.grad = None
    return out


@program
def training(C, torch):
    m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(r(*p.shape))
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    loss_of = torch.nn.CrossEntropyLoss()

    def step(x, t):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(m(x), t)
        return loss

    f = C(step)
    out = []
    for _ in range(3):
        loss = f(r(5, 3), torch.tensor([0, 1, 0, 1, 1]))
        o.zero_grad()
        loss.backward()
        o.step()
        out.append(dtypes(loss))
    return [out, [str(p.grad.dtype) for p in m.parameters()]]


@program
def nested_blocks(C, torch):
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = x @ x
            with torch.autocast("cpu", dtype=torch.float16):
                b = x @ x
            with torch.autocast("cpu", enabled=False):
                c = x @ x
                d = torch.is_autocast_enabled("cpu")
            e = x @ x
        return a, b, c, e, d

    *t, d = C(f)(r(2, 2))
    return [dtypes(*t), d]


@program
def an_object_from_outside(C, torch):
    block = torch.autocast("cpu", dtype=torch.bfloat16)

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def g(x):
        return x @ x

    def f(x):
        with block:
            y = x @ x
        return y, x @ x, g(x)

    return dtypes(*C(f)(r(2, 2)))


@program
def a_break_inside(C, torch):
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            graph_break()
            z = x @ x
            on = torch.is_autocast_enabled("cpu")
        return y, z, x @ x, on

    *t, on = C(f)(r(2, 2))
    return [dtypes(*t), on, torch.is_autocast_enabled("cpu")]


@program
def an_error_inside(C, torch):
    def f(x, i):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = x @ x
            return y[i] if x.shape[0] == 2 else 1 / 0

    f = C(f)
    out = [type(attempt(f, r(2, 2), torch.tensor([7]))).__name__, attempt(f, r(3, 3), torch.tensor([0]))]
    return [out, torch.is_autocast_enabled("cpu"), dtypes(r(2, 2) @ r(2, 2))]


@program
def a_checkpoint_inside(C, torch):
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.utils.checkpoint.checkpoint(lambda y: (y @ y).sin(), x, use_reentrant=False).float().sum()

    x = r(2, 2).requires_grad_()
    y = C(f)(x)
    y.backward()
    return dtypes(y, x.grad)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    agree(PROGRAMS[name])


@pytest.mark.parametrize("name", ["inside", "around", "training", "nested_blocks", "an_object_from_outside"])
def test_captured(name):
    assert graphs_of(PROGRAMS[name]) == {"around": 4}.get(name, 1)


def test_one_graph_inside():
    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return x @ x

    assert compile(f, backend="inductor", fullgraph=True)(r(2, 2)).dtype is torch.bfloat16
