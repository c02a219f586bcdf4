"""Tensor subclasses in captured code: with ``__torch_function__``, with ``__torch_dispatch__``, as arguments, made inside, returned."""

import abc

import pytest
from programs import agree, attempt, graphs_of

import flambeau as torch
from flambeau.fx import ProxyableClassMeta
from flambeau.utils._python_dispatch import return_and_correct_aliasing
from flambeau.utils._pytree import tree_leaves, tree_map, tree_map_only


class Plain(torch.Tensor):
    unit = 3

    def double(self):
        return self * 2

    @property
    def half(self):
        return self / 2

    def __len__(self):
        return 40 + super().__len__()


class Derived(Plain):
    def double(self):
        return super().double() + 1


class Disabled(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl


class Scaled(torch.Tensor):
    factor = 10.0
    log = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.log.append(func.__name__)
        if func in (torch.add, torch.Tensor.add, torch.Tensor.__add__):
            return args[0].as_subclass(torch.Tensor) * cls.factor
        return super().__torch_function__(func, types, args, kwargs or {})


class Named(torch.Tensor):
    """Carries an attribute on."""

    @staticmethod
    def __new__(cls, data, name="none"):
        out = torch.Tensor._make_subclass(cls, data)
        out.name_ = name
        return out

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and not isinstance(out, cls):
            return cls(out, "+".join(a.name_ for a in args if isinstance(a, cls)))
        return out


class Refuses(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Duck:
    """No tensor, but takes part."""

    def __init__(self, k):
        self.k = k

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*[a.k if isinstance(a, cls) else a for a in args], **(kwargs or {})) + 100


class Wrapper(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, a):
        r = torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype)
        r.a = a
        return r

    @classmethod
    def __torch_dispatch__(cls, f, types, args=(), kwargs=None):
        def un(v):
            return v.a if isinstance(v, Wrapper) else v

        o = f(*tree_map(un, args), **tree_map(un, kwargs or {}))
        return tree_map(lambda x: Wrapper(x) if isinstance(x, torch.Tensor) else x, o)


class Two(torch.Tensor):
    """Two tensors side by side, and a number."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, a, b, scale=1.0):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.size(), strides=a.stride(), dtype=a.dtype, device=a.device, requires_grad=a.requires_grad
        )

    def __init__(self, a, b, scale=1.0):
        self.a, self.b, self.scale = a, b, scale

    def __tensor_flatten__(self):
        return ["a", "b"], self.scale

    @staticmethod
    def __tensor_unflatten__(inner, scale, outer_size, outer_stride):
        return Two(inner["a"], inner["b"], scale)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        scale = next(x.scale for x in tree_leaves(args) if isinstance(x, cls))
        a = func(*tree_map_only(Two, lambda t: t.a, args), **tree_map_only(Two, lambda t: t.a, kwargs))
        b = func(*tree_map_only(Two, lambda t: t.b, args), **tree_map_only(Two, lambda t: t.b, kwargs))
        if isinstance(a, list):
            return [Two(p, q * scale, scale) for p, q in zip(a, b)]
        if not isinstance(a, torch.Tensor):
            return a
        return return_and_correct_aliasing(func, args, kwargs, Two(a, b * scale, scale))


class Table(torch.Tensor):
    """Handlers in a table, by operator; the rest falls back."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    HANDLERS = {}

    @staticmethod
    def __new__(cls, data):
        r = torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)
        r.data_ = data
        return r

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        handler = cls.HANDLERS.get(func)
        if handler is not None:
            return handler(*args, **(kwargs or {}))
        args = tree_map(lambda x: x.data_ if isinstance(x, cls) else x, args)
        return func(*args, **(kwargs or {}))


def implements(op):
    def add(f):
        Table.HANDLERS[op] = f
        return f

    return add


@implements(torch.ops.aten.mul.Tensor)
def table_mul(x, y):
    return Table(x.data_ + y)


def t(*shape):
    n = 1
    for s in shape:
        n *= s
    return torch.arange(float(n)).reshape(shape or ()) + 1


def show(x):
    """What can be seen of a result."""
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, *map(show, x)]
    if isinstance(x, Wrapper):
        return ["Wrapper", show(x.a)]
    if isinstance(x, Two):
        return ["Two", show(x.a), show(x.b), x.scale]
    if isinstance(x, Table):
        return ["Table", show(x.data_)]
    if isinstance(x, torch.Tensor):
        plain = x.as_subclass(torch.Tensor)
        return [type(x).__name__, plain.tolist(), x.requires_grad, dict(vars(x)) if type(x) is Named else None]
    return x


MAKE = {
    "plain": lambda: t(2, 3).as_subclass(Plain),
    "derived": lambda: t(2, 3).as_subclass(Derived),
    "disabled": lambda: t(2, 3).as_subclass(Disabled),
    "scaled": lambda: t(2, 3).as_subclass(Scaled),
    "named": lambda: Named(t(2, 3), "x"),
    "refuses": lambda: t(2, 3).as_subclass(Refuses),
    "wrapper": lambda: Wrapper(t(2, 3)),
    "two": lambda: Two(t(2, 3), t(2, 3) * 2, 2.0),
    "nested": lambda: Wrapper(Wrapper(t(2, 3))),
    "nested_two": lambda: Two(Wrapper(t(2, 3)), Wrapper(t(2, 3)), 3.0),
}  # fmt: skip

BODIES = {
    "arithmetic": lambda x: x * 2 + 1,
    "own": lambda x: x * x + x,
    "mixed": lambda x: (x + t(3), t(3) * x, 2 - x),
    "method": lambda x: x.sum(0).relu(),
    "function": lambda x: torch.cat([x, x]).neg(),
    "several": lambda x: (x * 1).split(1),
    "matmul": lambda x: torch.nn.functional.linear(x, x),
    "shape": lambda x: x * x.shape[0] + x.size(1) + x.dim(),
    "view": lambda x: x.view(3, 2).t()[0],
    "dtype": lambda x: (x.to(torch.float64), x.dtype == torch.float32),
    "isinstance": lambda x: (isinstance(x, torch.Tensor), isinstance(x, Wrapper), type(x).__name__, x * 2),
    "length": lambda x: x * len(x),
    "in_place": lambda x: (x * 1).add_(5).mul_(2),
    "loop": lambda x: sum(v for v in x),
    "itself": lambda x: (x, x + 1),
    "transpose": lambda x: x.T * 2,
    "compare": lambda x: (x > 2, x == x),
    "factory": lambda x: torch.zeros_like(x) + 1,
}  # fmt: skip


@pytest.mark.parametrize("kind", MAKE)
@pytest.mark.parametrize("body", BODIES)
def test_argument(kind, body):
    def prog(C, torch):
        Scaled.log.clear()
        f = C(BODIES[body])
        return [show(attempt(f, MAKE[kind]())), show(attempt(f, MAKE[kind]())), list(Scaled.log)]

    agree(prog)


@pytest.mark.parametrize("kind", [k for k in MAKE if k != "refuses"])
@pytest.mark.parametrize("body", ["arithmetic", "own", "method", "function", "matmul", "shape", "view", "in_place"])
def test_captured(kind, body):
    assert graphs_of(lambda C, torch: show(C(BODIES[body])(MAKE[kind]()))) == 1


INSIDE = {
    "as_subclass": lambda x: x.as_subclass(Plain).double(),
    "as_subclass_derived": lambda x: (x.as_subclass(Derived).double(), x.as_subclass(Plain).half),
    "plain_again": lambda x: (x.as_subclass(Plain) * 2).as_subclass(torch.Tensor) + 1,
    "constructed": lambda x: Plain(x) + 1,
    "named": lambda x: Named(x, "a") * Named(x, "b"),
    "named_attribute": lambda x: (Named(x, "q") + 1).name_,
    "wrapper": lambda x: Wrapper(x) * 2,
    "wrapper_inner": lambda x: (Wrapper(x) * 2).a + 1,
    "two": lambda x: Two(x, x * 3, 4.0) + 1,
    "two_sum": lambda x: (Two(x, x, 1.0).sum().a, Two(x, x + 1, 2.0).b),
    "table": lambda x: Table(x) * 3,
    "table_fallback": lambda x: Table(x) + 3,
    "duck": lambda x: torch.add(x, Duck(3)),
    "attribute": lambda x: [p := x.as_subclass(Plain), setattr(p, "mark", 5), p.mark, p * p.mark, p.unit],
    "disabled": lambda x: disabled_sum(x.as_subclass(Scaled)),
}  # fmt: skip


def disabled_sum(x):
    with torch._C.DisableTorchFunctionSubclass():
        return x + 1


@pytest.mark.parametrize("name", INSIDE)
def test_made_inside(name):
    def prog(C, torch):
        f = C(INSIDE[name])
        return [show(attempt(f, t(2, 3))), show(attempt(f, t(2, 3))), show(attempt(f, t(4)))]

    agree(prog)


@pytest.mark.parametrize("name", INSIDE)
def test_made_inside_captured(name):
    assert graphs_of(lambda C, torch: show(C(INSIDE[name])(t(2, 3)))) == 1


PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@program
def gradient_of_function_subclass(C, torch):
    f = C(lambda x: (x * x).double().sum())
    x = t(3).requires_grad_()
    y = f(x.as_subclass(Plain))
    y.backward()
    leaf = t(3).as_subclass(Plain).requires_grad_()
    f(leaf).backward()
    return [show(x.grad), show(leaf.grad), type(y).__name__]


@program
def gradient_of_wrapper(C, torch):
    f = C(lambda x: (x * x).sum())
    w = Two(t(3).requires_grad_(), t(3), 2.0)
    y = f(w)
    y.backward()
    return [type(y).__name__, show(w.grad), show(y.detach())]


@program
def attribute_of_wrapper_changes(C, torch):
    f = C(lambda x: x + 1)
    w = Two(t(3), t(3), 2.0)
    out = [show(f(w))]
    w.scale = 5.0
    out.append(show(f(w)))
    w.a = t(3) * 10
    return [*out, show(f(w))]


@program
def handler_is_patched(C, torch):
    class Patched(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs)

    f = C(lambda x: x * 2)
    x = t(3).as_subclass(Patched)
    out = [show(f(x))]
    Patched.__torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: 7)
    return [*out, show(f(x))]


@program
def class_attribute_changes(C, torch):
    f = C(lambda x: x + 2)
    x = t(3).as_subclass(Scaled)
    out = [show(f(x))]
    Scaled.factor = 20.0
    out.append(show(f(x)))
    Scaled.factor = 10.0
    return [*out, show(f(x))]


@program
def method_is_patched(C, torch):
    class P(torch.Tensor):
        def m(self):
            return self * 2

    f = C(lambda x: x.m())
    x = t(3).as_subclass(P)
    out = [show(f(x))]
    P.m = lambda self: self * 3
    return [*out, show(f(x))]


@program
def other_class_other_code(C, torch):
    f = C(lambda x: x * 2 + 1)
    return [show(f(v)) for v in (t(3), t(3).as_subclass(Plain), Wrapper(t(3)), t(3).as_subclass(Scaled), t(3))]


@program
def the_same_object_comes_back(C, torch):
    f = C(lambda x: (x, x + 1)[0])
    x, w = t(3).as_subclass(Plain), Wrapper(t(3))
    return [f(x) is x, f(w) is w]


@program
def argument_is_detached(C, torch):
    """The caller's tensor loses its history, whatever the backend."""
    f = C(lambda x: (x.detach_(), x * 2)[1])
    out = []
    for _ in range(2):
        x = torch.ones(2, requires_grad=True) * 1
        out.append((show(f(x)), x.requires_grad, x.grad_fn is None))
    return out


@program
def plain_again(C, torch):
    """as_subclass(Tensor) of an argument is another object, a plain tensor that shares the memory."""
    f = C(lambda x: (x.as_subclass(torch.Tensor), x))
    out = [*f(t(3).as_subclass(Plain)), *f(t(3))]
    out[0].add_(1)
    out[2].mul_(2)
    return [(show(y), type(y).__name__) for y in out] + [out[0] is out[1], out[2] is out[3]]


@program
def identity(C, torch):
    f = C(lambda x, y: (x is y, x is x, x + y))
    p, q, w, v = t(3).as_subclass(Plain), t(3).as_subclass(Plain), Wrapper(t(3)), Wrapper(t(3))
    return [show(f(p, q)), show(f(p, p)), show(f(w, v)), show(f(w, w)), show(f(w, v))]


@program
def argument_is_written(C, torch):
    f = C(lambda x: x.add_(1))
    x, w = t(3).as_subclass(Plain), Wrapper(t(3))
    return [show(f(x)), show(x), f(x) is x, show(f(w)), show(w), f(w) is w]


@program
def in_containers(C, torch):
    f = C(lambda d: [d["a"] * 2, {"b": d["l"][0] + d["l"][1]}])
    return [show(list(f({"a": t(3).as_subclass(Plain), "l": [Wrapper(t(3)), t(3)]})[0:1])) for _ in range(2)]


@program
def parameters_and_buffers(C, torch):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(t(3))
            self.register_buffer("b", t(3).as_subclass(Plain))
            self.wrapped = Wrapper(t(3))

        def forward(self, x):
            return x * self.w + self.b.double(), self.wrapped * x

    m = M()
    f = C(m)
    y, z = f(t(3))
    y.sum().backward()
    return [show(y), show(m.w.grad), show(z)]


@program
def break_in_between(C, torch):
    def f(x):
        y = x * 2
        torch._dynamo.graph_break()
        return y + 1

    f = C(f)
    return [show(f(v())) for v in MAKE.values() if v is not MAKE["refuses"]]


@program
def effects_of_a_handler(C, torch):
    calls = []

    class Counts(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs)

    f = C(lambda x: (x * 2).sum() + x.shape[0])
    x = t(3).as_subclass(Counts)
    return [show(f(x)), show(f(x)), calls]


@program
def two_classes(C, torch):
    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if not all(issubclass(cls, k) for k in types):
                return NotImplemented
            return "A", [k.__name__ for k in types]

    class B(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "B", [k.__name__ for k in types]

    class C2(A):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "C2", [k.__name__ for k in types]

    f = C(lambda x, y: x + y)
    a, b, c = (t(3).as_subclass(k) for k in (A, B, C2))
    return [attempt(f, x, y) for x in (a, b, c) for y in (a, b, c)]


@program
def function_mode_over_subclass(C, torch):
    class M(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    def f(x):
        with M():
            return x * 2 + 1

    f = C(f)
    return [show(f(t(3).as_subclass(Plain))), show(f(Wrapper(t(3))))]


@program
def attributes_with_the_names_of_methods(C, torch):
    given = t(2).as_subclass(Plain)
    given.inner = 4

    def f(x, given):
        made = (x * 1).as_subclass(Plain)
        made.inner, made.kron = 7, x
        return made.inner, made.kron, given.inner, given.sum()

    def deleted(given):
        given.sum = 3
        seen = given.sum
        del given.sum
        return seen, given.sum()

    return C(f)(t(2), given), C(deleted)(given), C(deleted)(given)


@program
def no_class_hears_of_guards(C, torch):
    heard = []

    class Tagged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            heard.append(getattr(func, "__name__", "?"))
            return super().__torch_function__(func, types, args, kwargs or {})

    def f(x):
        made = (x * 1).as_subclass(Tagged)
        try:
            torch.ones(2) + torch.ones(3)
        except RuntimeError as e:
            heard.append(str(e))
        made.add_(1)
        return x

    f = C(f)
    return [f(t(2).requires_grad_(k < 2)) for k in range(3)], heard


@program
def functions_of_the_program_keep_the_class(C, torch):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(type(x).__name__)
            return x * 2, x.double()

        @staticmethod
        def backward(ctx, g, h):
            return g * 2 + h

    def f(x):
        a, b = Two.apply(x)
        c = torch.utils.checkpoint.checkpoint(lambda t: Two.apply(t)[0], x, use_reentrant=False)
        d = torch.cond(torch.tensor(True), lambda t: t * 2, lambda t: t, (x,))
        return [type(v).__name__ for v in (a, b, c, d, a + b)], a, b, c, d

    seen, out, g = [], [], C(f)
    for asked in (False, True):
        x = torch.Tensor._make_subclass(Plain, torch.ones(2), asked)
        out.append([g(x), g(x * 1)])
    return out, seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    agree(PROGRAMS[name])


class Joined(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return torch.ones(1) if func is torch.cat else super().__torch_function__(func, types, args, kwargs or {})


@pytest.mark.parametrize("kind", [list, tuple])
def test_elements_of_an_argument_take_over(kind):
    """A list that nothing has looked at before the call."""
    given = kind([torch.ones(3), torch.ones(3).as_subclass(Joined)])
    assert torch.compile(lambda v: torch.cat(v), fullgraph=True)(given).tolist() == [1.0]


class Pair(torch.Tensor):
    """Its constructor is disabled for capture, as those of libraries' subclasses are."""

    @staticmethod
    def __new__(cls, a, b):
        facts = {"strides": a.stride(), "dtype": a.dtype, "device": a.device, "requires_grad": a.requires_grad}
        return torch.Tensor._make_wrapper_subclass(cls, a.size(), **facts)

    @torch._dynamo.disable(reason="plain attributes")
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, meta, size, stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        a, b = (func(*tree_map_only(Pair, lambda x, n=n: getattr(x, n), args), **(kwargs or {})) for n in "ab")
        return cls(a, b) if isinstance(a, torch.Tensor) else a


def parts(p):
    return type(p), p.a.tolist(), p.b.tolist(), type(p.a), type(p.b)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_constructors_that_are_disabled_are_traced_in_handlers(backend):
    def f(x):
        return (x * 2)[1:]

    def make(x):
        return Pair(x, x + 1)

    p = Pair(torch.arange(3.0), torch.ones(3))
    assert parts(torch.compile(f, backend=backend, fullgraph=True)(p)) == parts(f(p))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="disable"):
        torch.compile(make, backend=backend, fullgraph=True)(torch.ones(2))


@torch._dynamo.allow_in_graph
def paired(x):
    return Pair(x.clone(), x + 1)


# The compilers take no such graph: it runs as it is.
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", [paired, lambda x: paired(x).view(-1), lambda x: paired(x) * 2])
def test_subclasses_that_functions_in_the_graph_make(f, backend):
    x = torch.arange(4.0).reshape(2, 2)
    assert parts(torch.compile(lambda x: f(x), backend=backend)(x)) == parts(f(x))


class OfProxies(abc.ABCMeta, ProxyableClassMeta):
    pass


class Made(metaclass=OfProxies):
    def __init__(self, n):
        self.n = n


def test_objects_of_classes_that_take_proxies():
    def f(x):
        return x * Made(3).n, type(Made(2)).__bases__

    y, bases = torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
    assert y.tolist() == [3, 3] and bases == (object,)
