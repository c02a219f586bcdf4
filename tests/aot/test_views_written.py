"""Writes to memory that is reached several ways: views that show elements twice, views made before their base got a history, memory with two
histories. Functionalized and compiled they do what eager does."""

import pytest

import flambeau as torch
from flambeau.func import functionalize

WAYS = {
    "functionalize": functionalize,
    "aot_eager": lambda f: torch.compile(f, backend="aot_eager"),
    "inductor": torch.compile,
}

WRITES = """
x.unfold(0, 2, 1).select(0, 0).add_(1)
x.unfold(0, 2, 1)[1:2].mul_(2)
x.unfold(0, 3, 2).select(1, 1).mul_(2)
x.unfold(0, 2, 2).mul_(2)
x.unfold(0, 2, 1).add_(1)
x.unfold(0, 2, 1).transpose(0, 1)[1].add_(1)
x.view(2, 2).unfold(0, 2, 1)[0].t().add_(1)
x.expand(3, 4)[0].add_(1)
x[None].expand(3, 4)[1, 1:].zero_()
x.view(2, 2).expand(2, 2, 2).diagonal(0, 0, 1).add_(1)
x.as_strided((3,), (1,), 1).add_(1)
""".strip().splitlines()


def program(text):
    scope: dict = {}
    exec(f"def f(x):\n    {text}\ndef g(w):\n    x = w * 2\n    {text}\n    return x * x", scope)
    return scope["f"], scope["g"]


def numbers():
    return torch.tensor([1.0, 2, 3, 4])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", WRITES)
def test_views_that_show_elements_twice(text, way):
    f, g = program(text)
    want, got = numbers(), numbers()
    f(want)
    WAYS[way](f)(got)
    assert got.tolist() == want.tolist()
    if way != "functionalize":
        gradients = []
        for run in (g, WAYS[way](g)):
            w = numbers().requires_grad_()
            run(w).sum().backward()
            gradients.append(w.grad.tolist())
        assert gradients[0] == gradients[1]


OVERLAPPING = {
    "copied": lambda y: y.copy_(torch.arange(6.0).view(3, 2)),
    "a row": lambda y: y[0].fill_(5),
    "filled": lambda y: y.fill_(2),
    "a row set": lambda y: y.__setitem__(1, 7.0),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", OVERLAPPING)
@pytest.mark.parametrize("own", [False, True])
def test_overlapping_strides_are_written_as_in_eager(name, own, backend):
    def f(x):
        x = x * 2 if own else x
        OVERLAPPING[name](torch.as_strided(x, (3, 2), (1, 1)))
        return x + 1

    x, y = numbers(), numbers()
    want, got = f(x), torch.compile(f, backend=backend)(y)
    assert got.tolist() == want.tolist() and x.tolist() == y.tolist()


@pytest.mark.parametrize("way", ["plain", *WAYS])
def test_expanded_memory_is_not_written(way):
    with pytest.raises(Exception, match="more than one element of the written-to tensor"):
        WAYS.get(way, lambda f: f)(lambda x: x.expand(3, 4).add_(1))(numbers())


def view_of_zeros(x):
    v = torch.zeros(4)
    w = v[1:]
    inner = w[1:]
    v.add_(x)
    return w, inner * 2


def second_view(x):
    v = torch.zeros(4)
    w, other = v.view(2, 2), v[1:]
    w.add_(x.view(2, 2))
    return other * x[1:], w


def piece(x):
    v = torch.zeros(4)
    parts = v.split(2)
    v.copy_(x)
    return parts[1] * 3


def detached(x):
    a = x * 1
    v = a.detach()
    v.add_(a)
    v.copy_(v)
    return a, v


def detached_view(x):
    a = x * 1
    v = a.detach()
    w = v.view(-1)
    w.mul_(2)
    v.add_(a)
    return a, v, w


def detached_input(x):
    v = x.detach()
    v.mul_(x * 1)
    return v * 2, v


@pytest.mark.parametrize("way", ["aot_eager", "inductor"])
@pytest.mark.parametrize("f", [view_of_zeros, second_view, piece, detached, detached_view, detached_input])
def test_who_requires_a_gradient(f, way):
    """A view takes part in the history that its base gets later; memory that was detached and written has a history of its own."""
    seen = []
    for run in (f, WAYS[way](f)):
        leaf = numbers().requires_grad_()
        x = leaf * 1
        out = run(x)
        out = out if isinstance(out, tuple) else (out,)
        flags = [o.requires_grad for o in out]
        total = sum((o * (k + 2)).sum() for k, o in enumerate(out) if o.requires_grad)
        try:
            gradient = torch.autograd.grad(total, leaf)[0].tolist()
        except RuntimeError:
            gradient = None  # the program itself is at fault: a saved value was overwritten
        with torch.no_grad():
            out[-1].add_(100)  # who shares memory with whom
        seen.append((flags, gradient, [o.tolist() for o in out], x.tolist()))
    assert seen[0] == seen[1]


def test_an_output_without_cotangent_may_have_been_overwritten():
    def f(b):
        b = b * 1
        y = torch.nn.functional.softplus(b, 2, 3)
        b[b > 0] *= 0.5
        return y.isnan(), b * b

    b = numbers().sub(2.5).requires_grad_()
    f(b)[1].sum().backward()
    want, b.grad = b.grad, None
    torch.compile(f, backend="aot_eager")(b)[1].sum().backward()
    assert b.grad.tolist() == want.tolist()


def stepped(x):
    v = (x + 1)[::2]
    v.mul_(2)
    return v


def summed_in_place(x):
    v = torch.complex(x, x).view(2, 2).imag
    v.cumsum_(0)
    return v, x + 1


def read_densely(x):
    v = (x.view(2, 2) + 1).diagonal()
    return v, v.cumsum(0), torch.fft.fft(v).imag


@pytest.mark.parametrize("way", ["aot_eager", "inductor"])
@pytest.mark.parametrize("f", [stepped, summed_in_place, read_densely])
def test_strides_of_results_that_are_views(f, way):
    """A view of something made inside keeps its gaps, whatever was written through it or read it before."""
    seen = []
    for run in (f, WAYS[way](f)):
        out = run(numbers())
        seen.append([(o.tolist(), o.stride(), o.storage_offset()) for o in (out if isinstance(out, tuple) else (out,))])
    assert seen[0] == seen[1]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("write", [lambda x: x.tril_(), lambda x: x.cumsum_(0), lambda x: x[:, 1:].triu_()])
def test_a_write_leaves_the_order_of_memory(write, dynamic):
    def f(x):
        y = x * 1
        write(y)
        return y

    strides = []
    for size in (3, 5):
        x = torch.arange(2.0 * size).reshape(size, 2).t()
        for fn in (f, torch.compile(f, backend="aot_eager", dynamic=dynamic)):
            y = fn(x)
            strides.append((y.tolist(), y.stride()))
        assert strides[-1] == strides[-2]


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize(
    "view", [lambda x: x * 1, lambda x: (x * 1).view(2, 2).t(), lambda x: torch.view_as_real(x * 1j)]
)
def test_put(view, accumulate):
    x, source = numbers().double().requires_grad_(), torch.tensor([5.0, 7.0], dtype=torch.float64, requires_grad=True)

    def f(x, source):
        v = view(x)
        v.put_(torch.tensor([1, 2]), source * 1, accumulate)
        return v * v

    assert torch.autograd.gradcheck(f, (x, source))
    assert torch.autograd.gradgradcheck(f, (x, source))


VIEWS_OF_ONE_BASE = {
    "the other is saved": (lambda b: (b[0], b[1]), "x.mul_(3); return (x * y).sum()"),
    "the other is kept by its tape": (lambda b: (b[0], b[1]), "x.mul_(3); return (y * y).sum()"),
    "without grad": (lambda b: (b[0], b[1]), "with torch.no_grad():\n        x.zero_()\n    return (y * y).sum()"),
    "copied": (lambda b: (b[0], b[1]), "x.copy_(y); return (y * x).sum()"),
    "returned": (lambda b: (b[0], b[1]), "x.mul_(3); return (x * 2).sum() + (y * y).exp().sum()"),
    "both": (lambda b: (b[0], b[1]), "x.mul_(3); y.add_(x); return (x * y).sum()"),
    "rows and a column": (lambda b: (b[:2, 1:], b[:, 0]), "x.exp_(); return (x.sum() * y * y).sum()"),
    "over one another": (lambda b: (b[0], b), "x.mul_(3); return (x * 2).sum() + (y * y).sum()"),
    "of a view": (lambda b: (b.view(12)[6:], b[0]), "x.mul_(y.sum()); return (x.sum() * y.sin()).sum()"),
}


@pytest.mark.parametrize("way", ["aot_eager", "inductor"])
@pytest.mark.parametrize("row", VIEWS_OF_ONE_BASE)
def test_a_view_is_written_beside_another_of_one_base(row, way):
    """The write only counts for the views beside it: they keep their elements, so the backward may go on using them."""
    views, text = VIEWS_OF_ONE_BASE[row]
    scope: dict = {"torch": torch}
    exec(f"def f(x, y):\n    {text.replace('; ', chr(10) + '    ')}", scope)
    seen = []
    for run in (scope["f"], WAYS[way](scope["f"])):
        leaf = torch.arange(12.0).div(10).reshape(3, 4).requires_grad_()
        base = leaf * 2
        out = run(*views(base))
        (out + base.sum()).backward()
        seen.append((out.detach(), leaf.grad, base.detach()))
    for want, got in zip(*seen):
        torch.testing.assert_close(got, want)


@pytest.mark.parametrize("way", ["aot_eager", "inductor"])
def test_a_write_after_the_call_is_still_noticed(way):
    def f(x, y):
        x.mul_(3)
        return (x * y).sum()

    leaf = torch.arange(12.0).reshape(3, 4).requires_grad_()
    base = leaf * 2
    out = WAYS[way](f)(base[0], base[1])
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


OUTSIDE = {
    "dense": (lambda b: b[4:20], (2, 2, 1)),
    "with steps": (lambda b: b[2::3], (2, 2, 5)),
    "columns": (lambda b: b.view(4, 6)[:, 2:5], (2, 2, 5)),
    "rows": (lambda b: b.view(4, 6)[1:3], (2, 2, 5)),
    "inside": (lambda b: b[4:20], (2, 2, 6)),
}


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("part,place", OUTSIDE.values(), ids=OUTSIDE)
def test_a_write_by_strides_reaches_what_the_input_hasnt(part, place, backend):
    size, stride, offset = place

    def fn(x):
        written = x.as_strided((size,), (stride,), offset).mul_(3)
        return written + 1, x * 2

    plain, memory = torch.arange(24.0), torch.arange(24.0)
    want, got = fn(part(plain)), torch.compile(fn, backend=backend)(part(memory))
    assert torch.equal(memory, plain)
    assert all(map(torch.equal, got, want))


BETWEEN = """
v.mul_(2)
y.mul_(2)
r = r + (v * 5).sum(); v.mul_(2)
r = r + (v * 5).sum(); v.mul_(2); r = r + (v * 7).sum()
r = r + (v * 5).sum(); y.mul_(2); r = r + (v * 7).sum()
v.mul_(2); r = r + (v * 5).sum(); v.add_(1)
""".strip().splitlines()


@pytest.mark.parametrize("result", ["(v, y)", "(y,)", "(v, y.detach())"])
@pytest.mark.parametrize("way", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("text", BETWEEN)
def test_hooks_of_a_view_stay_with_what_was_read_before_a_write(text, way, result):
    def run(backend):
        scope: dict = {"torch": torch, "seen": []}
        exec(
            "def f(x):\n    y = x * 1\n    v = y[0:2]\n    r = x.sum()\n    v.register_hook(lambda g: seen.append(g.tolist()))\n"
            f"    torch._dynamo.graph_break()\n    {text}\n    return (r, *{result})",
            scope,
        )
        x = numbers().requires_grad_()
        f = scope["f"] if backend is None else torch.compile(scope["f"], backend=backend)
        sum((i + 1) * t.sum() for i, t in enumerate(f(x))).backward()
        return scope["seen"], x.grad.tolist()

    assert run(way) == run(None)
