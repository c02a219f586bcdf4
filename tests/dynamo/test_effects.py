"""What calls do beside returning a value: writes and random draws are kept, saved tensors are checked, grad mode and leaves are right."""

import collections
import functools
import itertools
import sys
import types
import weakref

import pytest
from programs import X, agree, attempt

import flambeau as torch
from flambeau.compiler import graph_break

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


_names = itertools.count()


def custom(mutates, body, fake=None, **kwargs):
    op = torch.library.custom_op(f"effects_test::op{next(_names)}", mutates_args=mutates, **kwargs)(body)
    if fake is not None:
        op.register_fake(fake)
    return op


def unused(call, *shape, draws=False):
    """``call(x)`` with its result unused: alone in its function, and beside something that is used."""

    def prog(C, torch):
        def alone(x):
            call(torch, x)

        def beside(x):
            call(torch, x)
            return x * 2

        def view(x):
            y = x[0]
            call(torch, y)

        out = []
        for f in (alone, beside, *(() if draws else (view,))):
            torch.manual_seed(5)
            x = torch.arange(6.0).reshape(2, 3) - 2.5
            g = C(f)
            out += [attempt(g, x), attempt(g, x), x, torch.rand(2)]
        return out

    return prog


for _name, _call in {
    "relu_positional": lambda torch, x: torch.nn.functional.relu(x, True),
    "relu_keyword": lambda torch, x: torch.nn.functional.relu(x, inplace=True),
    "relu_module": lambda torch, x: torch.nn.ReLU(True)(x),
    "leaky_relu": lambda torch, x: torch.nn.functional.leaky_relu(x, 0.1, True),
    "method": lambda torch, x: x.mul_(3),
    "function": lambda torch, x: torch.relu_(x),
    "overload": lambda torch, x: torch.ops.aten.add_.Tensor(x, 1),
    "packet": lambda torch, x: torch.ops.aten.mul_(x, 2),
    "out": lambda torch, x: torch.add(x, 1, out=x),
    "copy": lambda torch, x: x.copy_(torch.ones_like(x)),
    "fill": lambda torch, x: torch.fill_(x, 4.0),
    "init": lambda torch, x: torch.nn.init.constant_(x, 5.0),
    "setitem": lambda torch, x: x.__setitem__(0, 7.0),
    "operator": lambda torch, x: x.__iadd__(1),
    "index_put": lambda torch, x: x.index_fill_(0, torch.tensor([0]), 9.0),
    "zero": lambda torch, x: x.zero_(),
    "clamp": lambda torch, x: x.clamp_(-1, 1),
    "of_a_view": lambda torch, x: x.view(-1)[1:].add_(10),
    "transposed": lambda torch, x: x.t().mul_(2) if x.dim() == 2 else x.mul_(2),
}.items():
    PROGRAMS["writes_" + _name] = unused(_call)

for _name, _call in {
    "randn": lambda torch, x: torch.randn(3),
    "rand_like": lambda torch, x: torch.rand_like(x),
    "dropout": lambda torch, x: torch.nn.functional.dropout(x, 0.5),
    "dropout_module": lambda torch, x: torch.nn.Dropout(0.3)(x),
    "bernoulli": lambda torch, x: torch.bernoulli(torch.full((3,), 0.5)),
    "randint": lambda torch, x: torch.randint(0, 5, (3,)),
    "randperm": lambda torch, x: torch.randperm(4),
    "normal_": lambda torch, x: x.normal_(),
    "uniform_": lambda torch, x: torch.empty(3).uniform_(),
    "init": lambda torch, x: torch.nn.init.normal_(torch.empty(3)),
    "of_a_product": lambda torch, x: torch.randn(3) * 0,
}.items():
    PROGRAMS["draws_" + _name] = unused(_call, draws=True)


def _inc(x: torch.Tensor) -> None:
    x.add_(1)


def _inc_list(xs: list[torch.Tensor], k: float) -> torch.Tensor:
    for x in xs:
        x.mul_(k)
    return xs[0].clone()


def _two(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a.add_(b)
    return a.clone(), b * 2


@program
def custom_op_without_result(C, torch):
    op = custom({"x"}, _inc)

    def f(x):
        op(x)
        y = x * 1
        op(x)
        return y, x + 1

    x = X()
    g = C(f)
    return [g(x), x, g(x), x]


@program
def custom_op_that_writes_a_list(C, torch):
    op = custom({"xs"}, _inc_list, lambda xs, k: torch.empty_like(xs[0]))

    def f(a, b):
        op([a, b], 3.0)
        return a + b

    a, b = X(), X() + 1
    g = C(f)
    return [g(a, b), a, b, g(a, b), a, b]


@program
def custom_op_with_several_results(C, torch):
    op = custom({"a"}, _two, lambda a, b: (torch.empty_like(a), torch.empty_like(b)))

    def f(a, b):
        t = a * 1
        p, q = op(t, b)
        op(a, b)
        return p, q, t

    a, b = X(), X() + 1
    g = C(f)
    return [g(a, b), a, b]


@program
def custom_op_on_a_view(C, torch):
    op = custom({"x"}, _inc)

    def f(x):
        op(x[1:])
        return x * 2

    x = X()
    g = C(f)
    return [g(x), x]


# -- saved tensors --


def broken(C, torch, fn, change, n=1, **kwargs):
    """What backward says after ``change(inputs, output)``."""
    f = C(fn)
    leaves = [torch.full((3,), float(i + 2), requires_grad=True) for i in range(n)]
    inputs = [v * 1 for v in leaves]
    y = f(*inputs)
    with torch.no_grad() if kwargs.get("no_grad", True) else torch.enable_grad():
        change(inputs, y)
    r = attempt(lambda: y.sum().backward())
    return [r if r is None else (r[1], "modified by an inplace operation" in r[2]), *[v.grad for v in leaves]]


for _name, (_fn, _change, _n) in {
    "input": (lambda x: x * x, lambda i, y: i[0].add_(1), 1),
    "input_as_a_view": (lambda x: x.view(1, 3).t() @ torch.ones(1, 2) * x.view(3, 1), lambda i, y: i[0].zero_(), 1),
    "view_of_the_input": (lambda x: x * x, lambda i, y: i[0][:1].add_(1), 1),
    "output": (lambda x: x.exp(), lambda i, y: y.mul_(2), 1),
    "view_of_the_output": (lambda x: x.tanh(), lambda i, y: y[1:].mul_(2), 1),
    "second_input": (lambda x, w: x * w, lambda i, y: i[1].mul_(2), 2),
    "not_saved": (lambda x: x + 1, lambda i, y: i[0].mul_(2), 1),
    "output_not_saved": (lambda x: x * 3, lambda i, y: y.mul_(2), 1),
    "nothing_written": (lambda x, w: (x * w).tanh(), lambda i, y: None, 2),
    "sigmoid_of_a_sum": (lambda x, w: (x + w).sigmoid(), lambda i, y: y.zero_(), 2),
    "matmul": (lambda x, w: x.view(1, 3) @ w.view(3, 1), lambda i, y: i[1].fill_(0.0), 2),
}.items():

    def _saved(C, torch, fn=_fn, change=_change, n=_n):
        return broken(C, torch, fn, change, n)

    PROGRAMS["saved_" + _name] = _saved


@program
def saved_parameters_and_a_step(C, torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    for p in m.parameters():
        torch.nn.init.constant_(p, 0.5)
    f = C(m)
    opt = torch.optim.SGD(m.parameters(), lr=0.1)
    a, b = f(torch.ones(1, 2)).sum(), f(torch.full((1, 2), 2.0)).sum()
    a.backward()
    opt.step()
    r = attempt(b.backward)
    return [r[1], [p.grad for p in m.parameters()]]


@program
def saved_for_the_second_derivative(C, torch):
    f = C(lambda x: (x**3).sum())
    x = torch.full((2,), 2.0, requires_grad=True)
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    y = f(x)
    with torch.no_grad():
        x.add_(1)
    r = attempt(lambda: torch.autograd.grad(y, x, create_graph=True))
    return [g, h, r[1]]


@program
def backward_twice(C, torch):
    f = C(lambda x: (x * x).sum())
    x = torch.ones(2, requires_grad=True)
    y = f(x)
    y.backward(retain_graph=True)
    y.backward()
    r = attempt(y.backward)
    return [x.grad, r[1]]


@program
def gradients_that_nothing_reaches(C, torch):
    f = C(lambda x, y, z: (x * 2, y * 3, x * z))
    x, y, z = (torch.ones(2, requires_grad=True) for _ in range(3))
    a, b, c = f(x, y, z)
    a.sum().backward()
    first = [x.grad, y.grad, z.grad]
    a, b, c = f(x, y, z)
    c.sum().backward()
    return [*first, x.grad, y.grad, z.grad, torch.autograd.grad(f(x, y, z)[1].sum(), [x, y], allow_unused=True)]


# -- grad mode, leaves, hooks --


@program
def regions_of_grad_mode(C, torch):
    def f(x):
        a = x * 2
        with torch.enable_grad():
            b = x * 3
            with torch.no_grad():
                c = b * 4
        with torch.no_grad():
            d = x * 5
        return a, b, c, d

    g = C(f)
    x = torch.ones(2, requires_grad=True)
    out = [g(x)]
    with torch.no_grad():
        out.append(g(x))
    for r in out:
        sum([v.sum() for v in r if v.requires_grad]).backward()
    return [out, x.grad]


@program
def enable_grad_of_a_module(C, torch):
    m = torch.nn.Linear(2, 1)
    torch.nn.init.ones_(m.weight)

    def f(x):
        with torch.enable_grad():
            return m(x).sum()

    g = C(f)
    with torch.no_grad():
        y = g(torch.ones(1, 2))
    y.backward()
    return [y, m.weight.grad, g(torch.ones(1, 2))]


@program
def decorated_with_a_grad_mode(C, torch):
    @torch.enable_grad()
    def h(x):
        return x * 3

    @torch.no_grad()
    def f(x):
        return x * 2, h(x)

    g = C(lambda x: (*f(x), x * 4))
    x = torch.ones(2, requires_grad=True)
    a, b, c = g(x)
    (b.sum() + c.sum()).backward()
    with torch.no_grad():
        out = g(x)
    return [a, b, c, x.grad, out]


@program
def leaves_made_inside(C, torch):
    def f(x):
        w = torch.ones(2, requires_grad=True)
        v = (x * 2).detach().requires_grad_()
        u = torch.tensor([1.0, 2.0], requires_grad=True)
        z = torch.zeros(2, requires_grad=True)
        return w, v, u, z, (w * v * u + z * x).sum()

    x = X()
    w, v, u, z, y = C(f)(x)
    y.backward()
    return [[t.is_leaf for t in (w, v, u, z)], w.grad, v.grad, u.grad, z.grad, y]


@program
def parameter_made_inside(C, torch):
    def f(x):
        p = torch.nn.Parameter(torch.ones(2))
        return p, (p * x).sum()

    p, y = C(f)(X())
    y.backward()
    return [p.is_leaf, type(p).__name__, p.grad]


@program
def requires_grad_of_an_input(C, torch):
    def f(x):
        x.requires_grad_()
        return (x * x).sum()

    x = X()
    y = C(f)(x)
    y.backward()
    return [x.is_leaf, x.requires_grad, x.grad]


@program
def tensor_hooks(C, torch):
    log = []

    def f(x):
        y = x * 2
        if y.requires_grad:
            y.register_hook(lambda g: log.append("inside") or g * 10)
        return (y * 3).sum()

    g = C(f)
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: log.append("input") or g + 1)
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    y = g(x)
    y.register_hook(lambda g: log.append("output") or g * 2)
    y.backward()
    return [x.grad, log]


@program
def hooks_on_saved_tensors(C, torch):
    log = []
    f = C(lambda x: (x * x).sin().sum())
    x = torch.ones(2, requires_grad=True)
    f(x).backward()
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: log.append("pack") or t.clone(), lambda t: log.append("unpack") or t
    ):
        y = f(x)
    y.backward()
    return [x.grad, bool(log), log.count("pack") == log.count("unpack")]


@program
def module_backward_hooks(C, torch):
    log = []
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    torch.nn.init.ones_(m[0].weight)
    torch.nn.init.zeros_(m[0].bias)
    f = C(m)

    def run():
        x = torch.ones(1, 2, requires_grad=True)
        f(x).sum().backward()
        return x.grad

    out = [run()]
    for register in (
        m.register_full_backward_pre_hook,
        m[0].register_full_backward_pre_hook,
        m[1].register_full_backward_hook,
    ):
        h = register(lambda mod, g, *rest: (log.append(type(mod).__name__), (g[0] * 10,))[1])
        out.append(run())
        h.remove()
        out.append(run())
    h = torch.nn.modules.module.register_module_full_backward_hook(lambda mod, gi, go: log.append("global"))
    out.append(run())
    h.remove()
    return [out, run(), log]


@program
def out_of_another_shape(C, torch):
    f = C(lambda x, o: (torch.mul(x, 2, out=o), o.shape)[1])
    o = torch.empty(0)
    return [tuple(f(torch.ones(3), o)), o]


@program
def inputs_side_by_side_in_one_memory(C, torch):
    def f(a, b):
        a.add_(1)
        b.mul_(2)
        return a + b

    out = []
    for split in (lambda x: (x[:2], x[2:]), lambda x: (x[:3], x[1:]), lambda x: (x, x)):
        x = torch.arange(4.0)
        out += [C(f)(*split(x)), x]
    return out


@program
def class_attributes_are_written(C, torch):
    class Meta(type):
        def __setattr__(cls, name, value):
            super().__setattr__(name, value * 2)

    class A:
        n, last, held = 0, None, []

    class B(A):
        pass

    class M(metaclass=Meta):
        n = 1

    def f(x, cls):
        cls.n += 1
        cls.last = x * cls.n
        cls.held = [*cls.held, cls.n]
        return cls.last + 1, cls.n, hasattr(cls, "last"), cls().n

    g = C(f)
    out = [g(torch.ones(2), c) for c in (A, A, B, A, B)]
    m = C(lambda x: (setattr(M, "n", M.n + 1), x * M.n)[1])
    return [out, A.n, B.n, A.last, B.last, A.held, B.held, m(torch.ones(2)), M.n]


@program
def class_attribute_that_is_a_property(C, torch):
    class A:
        k = property(lambda self: 5)

    def f(x):
        A.k = 3
        return x * A().k

    return [C(f)(torch.ones(2)), A.k]


@program
def a_metaclass_looks_attributes_up(C, torch):
    class Meta(type):
        def __getattribute__(cls, name):
            return 5.0 if name == "q" else type.__getattribute__(cls, name)

        def __getattr__(cls, name):
            return len(name)

    class Other(type):
        k = 3.0

        def __getattribute__(cls, name):
            found = super().__getattribute__(name)
            return found * Other.k if name == "q" else found

    class A(metaclass=Meta):
        q, r = 1.0, 2.0

    class B(metaclass=Other):
        q = 1.0

    f = C(lambda x: x * A.q * A.r + A.abc + B.q)
    out = [f(torch.ones(2))]
    A.r, Other.k = 7.0, 4.0
    return [*out, f(torch.ones(2))]


@program
def a_class_gets_another_metaclass(C, torch):
    class Meta(type):
        k = 1

    class A(metaclass=Meta):
        pass

    f = C(lambda x: x * A.k)
    out = [f(torch.ones(2))]
    for k in (2, 3):
        A.__class__ = type("Another", (Meta,), {"k": k})
        out.append(f(torch.ones(2)))
    return out


@program
def weak_references(C, torch):
    class A:
        k = 2.0

    a = A()
    r = weakref.ref(a)
    f = C(lambda x: x * (r().k if r() is not None else 7))
    out = [f(torch.ones(2))]
    a.k = 3.0
    out.append(f(torch.ones(2)))
    del a
    return [*out, f(torch.ones(2))]


@program
def functions_with_a_cache(C, torch):
    calls, made = [], functools.lru_cache(lambda k: [k])
    pure = functools.lru_cache(lambda k: k * 2)
    counted = functools.lru_cache(lambda k: calls.append(k) or k)

    def f(x):
        made(1).append(2)
        return x * pure(3) + counted(4) + len(made(1))

    f = C(f)
    return [f(torch.ones(2)), f(torch.ones(2)), calls, made(1)]


@program
def caches_count_calls(C, torch):
    @functools.lru_cache(maxsize=3)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    @functools.lru_cache
    def times(n, k=1):
        return n * k

    @functools.lru_cache
    def raises(n):
        raise ValueError(n)

    class M:
        @functools.lru_cache  # noqa: B019
        def of_self(self, k):
            return k + 1

        @staticmethod
        @functools.lru_cache
        def of_nothing(k):
            return k + 1

    m, out = M(), []

    def read(x):
        return x + times(1) + times(1, k=2) + times(2), times.cache_info()

    def cleared(x):
        a = times(3)
        times.cache_clear()
        return x + a + times(3), times.cache_info()

    def handled(x):
        try:
            raises(1)
        except ValueError:
            x = x + 1
        return x

    def made_inside(x):
        @functools.lru_cache(maxsize=2)
        def inner(n):
            return n * 2

        return x + inner(1) + inner(1) + inner(2) + inner(3) + inner(1), inner.cache_info()

    def on_two_paths(x):
        return x + times(8) + (times(8) if x.sum() > 0 else times(9))

    fs = (
        lambda x: x + fib(7) + fib(3),
        lambda x: x + M.of_nothing(2) + m.of_nothing(2),
        lambda x: x + m.of_self(2) + m.of_self(2),
    )
    for f in (*fs, read, cleared, handled, made_inside, on_two_paths):
        c = C(f)
        for _ in range(3):
            out.append(c(torch.ones(1)))
            out.extend(tuple(g.cache_info()) for g in (fib, times, raises, M.of_self, M.of_nothing))
    return out


@program
def ordered_dicts(C, torch):
    d = collections.OrderedDict(a=1, b=2, c=3)

    def f(x):
        d.move_to_end("a")
        d.move_to_end("c", last=False)
        k, v = d.popitem(last=False)
        e = {"p": 1, "q": 2}
        return x * v, k, list(d), e.popitem(), e, attempt(d.move_to_end, "zz")

    out = C(f)(torch.ones(2))
    return [out, d]


@program
def imported_module_is_replaced(C, torch):
    def f(x):
        from replaced_module import k

        return x * k

    f = C(f)
    out = []
    try:
        for k in (2, 3):
            m = sys.modules["replaced_module"] = types.ModuleType("replaced_module")
            m.k = k
            out.append(f(torch.ones(2)))
            m.k = 10
            out.append(f(torch.ones(2)))
    finally:
        del sys.modules["replaced_module"]
    return out


@program
def checkpoint_sequential_of_modules(C, torch):
    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            torch.nn.init.eye_(self.linear.weight)
            torch.nn.init.ones_(self.linear.bias)

        def forward(self, x):
            return torch.tanh(self.linear(x))

    m = torch.nn.Sequential(Block(), Block(), Block())
    f = C(lambda x: torch.utils.checkpoint.checkpoint_sequential(m, 2, x, use_reentrant=False).sum())
    g = C(lambda x: (graph_break(), torch.utils.checkpoint.checkpoint(m, x, use_reentrant=False).sum())[1])
    out = []
    for h in (f, g):
        x = torch.ones(2, 3).requires_grad_()
        h(x).backward()
        out += [x.grad, m[0].linear.weight.grad.clone()]
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_effects(name):
    agree(PROGRAMS[name])


def test_functions_of_the_library_that_act_are_called_once():
    """They take no tensors and have no node: capture breaks before the call instead of trying it."""
    done = []
    future = torch.futures.Future()
    future.add_done_callback(lambda f: done.append(f.value()))

    def f(x, name):
        torch.library.define(f"flb_effects::{name}", "(Tensor x) -> Tensor")
        future.set_result(5)
        return x + future.value()

    assert torch.equal(torch.compile(f, backend="eager")(torch.ones(2), "once"), torch.full((2,), 6.0))
    assert done == [5]
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(lambda: future.then(done.append), backend="eager", fullgraph=True)()
    assert done == [5]
