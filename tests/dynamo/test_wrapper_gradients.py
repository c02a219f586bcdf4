"""Wrappers (``__torch_dispatch__``, no data of their own) that require grad, in compiled functions: values, gradients and their types, as plain."""

import pytest
from programs import agree, attempt, graphs_of

import flambeau as torch
from flambeau.utils._pytree import tree_map, tree_map_only


def t(*shape):
    n = 1
    for s in shape:
        n *= s
    return torch.arange(float(n)).reshape(shape) / n + 0.5


class Wrapper(torch.Tensor):
    """One tensor, and a name that must not be lost."""

    @staticmethod
    def __new__(cls, a, tag=None, requires_grad=False):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.shape, strides=a.stride(), dtype=a.dtype, requires_grad=requires_grad
        )

    def __init__(self, a, tag=None, requires_grad=False):
        self.a, self.tag = a, tag

    def __tensor_flatten__(self):
        return ["a"], self.tag

    @staticmethod
    def __tensor_unflatten__(inner, tag, size, stride):
        return Wrapper(inner["a"], tag)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        tags = [x.tag for x in args if isinstance(x, cls)]
        un = lambda x: x.a if isinstance(x, cls) else x  # noqa: E731
        out = func(*tree_map(un, args), **tree_map(un, kwargs or {}))
        return tree_map_only(torch.Tensor, lambda x: cls(x, tags[0] if tags else None), out)


class Quantised(torch.Tensor):
    """8-bit integers and a scale: a derivative of the parts would be nothing."""

    @staticmethod
    def __new__(cls, q, scale, requires_grad=False):
        r = torch.Tensor._make_wrapper_subclass(cls, q.shape, dtype=torch.float32, requires_grad=requires_grad)
        r.q, r.scale = q, scale
        return r

    def __tensor_flatten__(self):
        return ["q", "scale"], None

    @staticmethod
    def __tensor_unflatten__(inner, ctx, size, stride):
        return Quantised(inner["q"], inner["scale"])

    def dequantise(self):
        return self.q.to(torch.float32) * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.detach.default:
            return cls(args[0].q, args[0].scale)
        un = lambda x: x.dequantise() if isinstance(x, cls) else x  # noqa: E731
        return func(*tree_map(un, args), **tree_map(un, kwargs or {}))


class Doubles(Wrapper):
    """Its derivative differs from that of what it holds."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        un = lambda x: x.a if isinstance(x, Wrapper) else x  # noqa: E731
        out = func(*tree_map(un, args), **tree_map(un, kwargs or {}))
        if func is torch.ops.aten.exp.default:
            out = out * 2
        return tree_map_only(torch.Tensor, lambda x: cls(x), out)


def show(x):
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, *map(show, x)]
    if isinstance(x, Wrapper):
        return [type(x).__name__, x.tag, show(x.a), x.requires_grad]
    if isinstance(x, Quantised):
        return ["Quantised", show(x.q), show(x.scale)]
    if isinstance(x, torch.Tensor):
        return [type(x).__name__, x.detach(), x.requires_grad]
    return x


def with_history(x):
    if isinstance(x, (list, tuple)):
        return [y for e in x for y in with_history(e)]
    return [x] if isinstance(x, torch.Tensor) and x.requires_grad else []


MAKE = {
    "wrapper": lambda: Wrapper(t(2, 3), "n", True),
    "nested": lambda: Wrapper(Wrapper(t(2, 3), "inner"), "outer", True),
    "doubles": lambda: Doubles(t(2, 3), None, True),
    "quantised": lambda: Quantised((t(2, 3) * 10).to(torch.int8), torch.tensor(0.1), True),
    "history": lambda: Wrapper(t(2, 3), "n", True) * 3,
}
BODIES = {
    "arithmetic": lambda w, p: (w * 2 + 1).exp(),
    "twice": lambda w, p: w * w + w,
    "mixed": lambda w, p: (w * p).sum(),
    "plain_too": lambda w, p: (w.sin(), p.exp() * 2, p),
    "matmul": lambda w, p: (w @ p.t()).relu(),
    "linear": lambda w, p: torch.nn.functional.linear(p, w, None).tanh(),
    "softmax": lambda w, p: torch.softmax(w, -1) * p,
    "norm": lambda w, p: torch.nn.functional.layer_norm(w, (3,)),
    "constant": lambda w, p: (w * 3, torch.ones(2), 5),
    "nothing": lambda w, p: p * 2,
    "several": lambda w, p: [w.sum(0), {"x": w.exp() + p}["x"], (w * 2).detach()],
    "in_place": lambda w, p: (w * 2).add_(p),
    "view": lambda w, p: w.t().reshape(6) * 2,
    "no_grad": lambda w, p: without(w) * w,
    "same_twice": lambda w, p: (lambda y: [y, y])(w + 1),
    "cat": lambda w, p: torch.cat([w, w * p]),
    "loop": lambda w, p: repeated(w),
    "break": lambda w, p: broken(w, p),
}


def without(w):
    with torch.no_grad():
        return w * 2


def repeated(w):
    for _ in range(3):
        w = (w * 1.5).sigmoid()
    return w


def broken(w, p):
    y = w * p
    torch._dynamo.graph_break()
    return y.exp()


def show_all(out, w, p):
    losses = [x.sum() for x in with_history(out)]
    for loss in losses:
        loss.backward(retain_graph=True)
    return [show(out), show(losses), show(w.grad), show(p.grad)]


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("body", BODIES)
def test_gradients(kind, body):
    def prog(C, torch):
        f = C(BODIES[body])
        out = []
        for _ in range(2):
            leaf = MAKE[kind]()
            if not leaf.is_leaf:
                leaf.retain_grad()
            p = t(2, 3).requires_grad_()
            out.append(show_all(f(leaf, p), leaf, p))
        return out

    agree(prog)


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("body", [b for b in BODIES if b != "break"])
def test_one_graph(kind, body):
    def prog(C, torch):
        f = C(BODIES[body], fullgraph=True)
        return attempt(lambda: f(MAKE[kind](), t(2, 3).requires_grad_()) and None)

    assert graphs_of(prog) == (1 if body == "nothing" else 2)  # forward and backward


class Plain(torch.Tensor):
    """One with data of its own."""


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def module_with_wrapped_parameters(C, torch):
    m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    with torch.no_grad():
        for p in m.parameters():
            p.copy_(t(*p.shape))
    m[0].weight = torch.nn.Parameter(Wrapper(m[0].weight.detach(), "w"))
    f = C(m)
    out = []
    for _ in range(2):
        x = t(5, 3)
        loss = f(x).square().mean()
        loss.backward()
        out.append([show(loss), [show(p.grad) for p in m.parameters()]])
    return out


@program
def training_with_an_optimizer(C, torch):
    w = Wrapper(t(2, 3), "w", True)
    f = C(lambda w, x: ((w * x) ** 2).sum())
    out = []
    for k in range(3):
        loss = f(w, t(2, 3) + k)
        loss.backward()
        with torch.no_grad():
            w.sub_(w.grad * 0.1)
        w.grad = None
        out.append([show(loss), show(w)])
    return out


@program
def tag_changes(C, torch):
    f = C(lambda w: w * 2)
    return [show_all(f(w), w, t(1)) for w in (Wrapper(t(2), "a", True), Wrapper(t(2), "b", True))]


@program
def only_one_result_has_a_gradient(C, torch):
    f = C(lambda w: (w * 2, w.exp()))
    w = Wrapper(t(2), "a", True)
    y, _ = f(w)
    y.sum().backward()
    return show(w.grad)


@program
def sizes_change(C, torch):
    f = C(lambda w: (w * 2).sin())
    out = []
    for n in (2, 3, 4, 5):
        w = Wrapper(t(n), "a", True)
        out.append(show_all(f(w), w, t(1)))
    return out


@program
def grad_mode_changes(C, torch):
    f = C(lambda w: w * 2)
    w = Wrapper(t(2), "a", True)
    out = [show(f(w))]
    with torch.no_grad():
        out.append(show(f(w)))
    return out


@program
def handler_of_the_derivative_is_patched(C, torch):
    class Own(Wrapper):
        k = 1.0

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            un = lambda x: x.a if isinstance(x, Wrapper) else x  # noqa: E731
            out = func(*tree_map(un, args), **(kwargs or {}))
            if func is torch.ops.aten.sigmoid_backward.default:
                out = out * cls.k
            return cls(out)

    f = C(lambda w: w.sigmoid())
    out = []
    for k in (1.0, 5.0):
        Own.k = k
        w = Own(t(2), None, True)
        f(w).sum().backward()
        out.append(show(w.grad))
    return out


@program
def gradient_through_made_inside(C, torch):
    def f(w, x):
        v = Wrapper(x * 2, "inside")
        return (v * w).sum()

    w = Wrapper(t(3), "outside", True)
    return show_all(C(f)(w, t(3)), w, t(1))


@program
def loss_that_is_plain(C, torch):
    def f(q, x):
        return (x @ q).relu().sum()

    q = Quantised((t(3, 2) * 10).to(torch.int8), torch.tensor(0.1), True)
    x = t(4, 3).requires_grad_()
    loss = C(f)(q, x)
    loss.backward()
    return [show(loss), show(q.grad), show(x.grad)]


@program
def grad_is_read(C, torch):
    w = Wrapper(t(2), "a", True)
    f = C(lambda w: (w * 2, w.grad is None, w.is_leaf))
    out = [f(w)[1:]]
    f(w)[0].sum().backward()
    return [out, f(w)[1:]]


@program
def log_of_the_derivative(C, torch):
    log = []

    class Logs(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            log.append(func.__name__)
            un = lambda x: x.a if isinstance(x, Wrapper) else x  # noqa: E731
            return cls(func(*tree_map(un, args), **(kwargs or {})))

    f = C(lambda w: w.sigmoid() * 2)
    for _ in range(2):
        w = Logs(t(2), None, True)
        f(w).sum().backward()
    return [log, show(w.grad)]


@program
def written_between_forward_and_backward(C, torch):
    w = Wrapper(t(2), "a", True)
    f = C(lambda w: w * w)
    y = f(w)
    with torch.no_grad():
        w.mul_(2)
    return "modified by an inplace operation" in str(attempt(lambda: y.sum().backward()))


@program
def autograd_function_that_wraps(C, torch):
    class Wrap(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return Wrapper(x, "wrapped")

        @staticmethod
        def backward(ctx, g):
            return g.a

    f = C(lambda x: (Wrap.apply(x * 2) * 3).exp())
    x = t(2).requires_grad_()
    y = f(x)
    y.sum().backward()
    return [show(y), show(x.grad)]


@program
def an_input_without_history_is_written(C, torch):
    """It lost the history that the write gave it."""
    seen = []
    for f in map(C, (lambda w, x: w.mul_(x), lambda w, x: w.mul_(x) * 1, lambda w, x: (w.mul_(x), x * 1)[1])):
        w, x = Wrapper(t(2), "a"), t(2).requires_grad_()
        y = f(w, x)
        seen += [y.requires_grad, w.requires_grad]
        (w * 3).sum().backward()
        seen.append(show(x.grad))
    return seen


@program
def a_derivative_between_operations(C, torch):
    """The graph of a wrapper's derivative holds no other one (found by fuzz_objects.py, seed 8100055)."""
    leaf = torch.nn.Parameter(torch.ones(2))

    def before(w, x):
        w.mul_(x)
        (leaf * 3).sum().backward()
        return w, leaf.grad

    def behind(w, x):
        (g,) = torch.autograd.grad((leaf**3).sum(), leaf)
        return w * x, g

    seen = []
    for f in map(C, (before, behind)):
        for w in (Wrapper(t(2), "a"), t(2).as_subclass(Plain)):
            x = t(2).requires_grad_()
            y, g = f(w, x)
            y.sum().backward()
            seen += [show(y), show(g), show(x.grad)]
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    agree(PROGRAMS[name])


def test_gradient_of_another_class():
    """As in PyTorch, what came in must have the form that the graph was made for."""
    f = torch.compile(lambda w: w * 2, backend="eager")
    w = Wrapper(t(2), "a", True)
    with pytest.raises(RuntimeError, match="guessed its metadata incorrectly"):
        torch.autograd.grad(f(w), w, t(2))


def test_twice():
    f = torch.compile(lambda w: w * w, backend="eager")
    w = Wrapper(t(2), "a", True)
    (g,) = torch.autograd.grad(f(w).sum(), w, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_a_function_applied_in_the_backward_of_another_is_differentiated():
    """It is captured where nothing is recorded; a second derivative goes through it nevertheless."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x, y):
            return torch.tensor(x.detach().numpy() * y.detach().numpy())

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return Product.apply(g, y), Product.apply(g, x)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.tensor(x.detach().numpy() ** 3)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return Product.apply(g, 3 * Product.apply(x, x))

    def second(f):
        x = torch.tensor([0.5, 2.0], requires_grad=True)
        (g,) = torch.autograd.grad((f(x) ** 2).sum(), x, create_graph=True)
        return torch.autograd.grad((g**2).sum(), x)[0]

    torch.testing.assert_close(second(torch.compile(lambda x: Cube.apply(x), backend="eager")), second(Cube.apply))
