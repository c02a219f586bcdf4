"""The world changes between two calls: what a captured function read of classes, objects, modules and functions is guarded."""

import builtins
import collections
import dataclasses
import enum
import math
import types

import pytest
from programs import X, agree, changed

import flambeau as torch
from flambeau.compat import hook

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


# -- classes and super --


def classes():
    class A:
        scale = 2

        def __init__(self):
            self.v = 1.0

        def g(self, x):
            return x + 1

        @classmethod
        def make(cls):
            return cls.scale

        @staticmethod
        def st(x):
            return x + 7

        @property
        def p(self):
            return 3

    class Mid(A):
        pass

    class B(Mid):
        def g(self, x):
            return super().g(x) * 2

        @classmethod
        def make(cls):
            return super().make() + 1

        @property
        def p(self):
            return super().p + 1

    return A, Mid, B


@program
def super_method_in_the_middle(C, torch):
    A, Mid, B = classes()
    b = B()
    return changed(
        C, lambda x: b.g(x), lambda: setattr(Mid, "g", lambda self, x: x * 50), again=lambda: delattr(Mid, "g")
    )


@program
def super_classmethod(C, torch):
    A, Mid, B = classes()
    return changed(
        C,
        lambda x: x * B.make(),
        lambda: setattr(A, "scale", 9),
        again=lambda: setattr(Mid, "make", classmethod(lambda c: 70)),
    )


@program
def super_of_a_temporary(C, torch):
    A, Mid, B = classes()
    return changed(
        C,
        lambda x: B().g(x) + B().p,
        lambda: setattr(A, "g", lambda s, x: x - 5),
        again=lambda: setattr(A, "p", property(lambda s: 90)),
    )


@program
def super_attribute(C, torch):
    class A:
        k = 2

    class B(A):
        k = 3

        def f(self, x):
            return x * super().k

    b = B()
    return changed(C, lambda x: b.f(x), lambda: setattr(A, "k", 40), again=lambda: setattr(A, "k", 2.5))


@program
def method_removed_from_the_subclass(C, torch):
    A, Mid, B = classes()
    b = B()
    return changed(C, lambda x: b.g(x), lambda: delattr(B, "g"))


@program
def bases_replaced(C, torch):
    class A:
        k = 1

    class A2:
        k = 20

    class B(A):
        pass

    b = B()
    return changed(C, lambda x: x * b.k, lambda: setattr(B, "__bases__", (A2,)))


@program
def class_of_an_object_replaced(C, torch):
    class A:
        def g(self, x):
            return x + 1

    class B:
        def g(self, x):
            return x + 100

    a = A()
    return changed(C, lambda x: a.g(x), lambda: setattr(a, "__class__", B))


@program
def init_replaced(C, torch):
    A, Mid, B = classes()

    def init(self):
        self.v = 77.0

    return changed(
        C,
        lambda x: x * B().v,
        lambda: setattr(A, "__init__", init),
        again=lambda: setattr(B, "__init__", lambda s: setattr(s, "v", -1.0)),
    )


for _name, _use in {
    "__call__": lambda K, x: K()(x),
    "__len__": lambda K, x: x + len(K()),
    "__bool__": lambda K, x: x + 1 if K() else x - 1,
    "__getitem__": lambda K, x: x + K()[3],
    "__contains__": lambda K, x: x + (1 if 3 in K() else 2),
    "__add__": lambda K, x: x + (K() + 3),
    "__radd__": lambda K, x: x + (3 + K()),
    "__eq__": lambda K, x: x + (1 if K() == 3 else 2),
    "__iter__": lambda K, x: x + sum(K()),
    "__neg__": lambda K, x: x + (-K()),
}.items():

    def _special(C, torch, name=_name, use=_use):
        before = {
            "__call__": lambda s, x: x + 1,
            "__len__": lambda s: 4,
            "__bool__": lambda s: True,
            "__iter__": lambda s: iter([1, 2]),
        }.get(name, lambda s, *a: 5)
        after = {
            "__call__": lambda s, x: x + 50,
            "__len__": lambda s: 40,
            "__bool__": lambda s: False,
            "__iter__": lambda s: iter([10, 20]),
        }.get(name, lambda s, *a: 0)
        K = type("K", (), {name: before})
        return changed(C, lambda x: use(K, x), lambda: setattr(K, name, after), again=lambda: delattr(K, name))

    PROGRAMS["special" + _name] = _special


@program
def bool_appears(C, torch):
    class A:
        pass

    a = A()
    return changed(
        C,
        lambda x: x + (1 if a else 2),
        lambda: setattr(A, "__len__", lambda s: 0),
        again=lambda: setattr(A, "__bool__", lambda s: True),
    )


@program
def call_appears(C, torch):
    class A:
        pass

    a = A()
    return changed(C, lambda x: x + (1 if callable(a) else 2), lambda: setattr(A, "__call__", lambda s: 0))


# -- attributes of instances --


@program
def instance_attribute_shadows(C, torch):
    class A:
        k = 1

    a = A()
    return changed(C, lambda x: x * a.k, lambda: setattr(a, "k", 30), again=lambda: delattr(a, "k"))


@program
def method_shadowed_in_the_instance(C, torch):
    A, Mid, B = classes()
    b = B()
    return changed(C, lambda x: b.g(x), lambda: setattr(b, "g", lambda x: x * 1000), again=lambda: delattr(b, "g"))


@program
def property_appears_over_an_attribute(C, torch):
    class A:
        pass

    a = A()
    a.k = 2
    return changed(C, lambda x: x * a.k, lambda: setattr(A, "k", property(lambda s: 50)), again=lambda: delattr(A, "k"))


@program
def attribute_removed(C, torch):
    class A:
        pass

    a = A()
    a.k = 2
    return changed(C, lambda x: x * getattr(a, "k", 7), lambda: delattr(a, "k"), again=lambda: setattr(a, "k", 2.0))


@program
def slot(C, torch):
    class A:
        __slots__ = ("k",)

    a = A()
    a.k = 2
    return changed(
        C, lambda x: x * (a.k if hasattr(a, "k") else 100), lambda: delattr(a, "k"), again=lambda: setattr(a, "k", 5)
    )


@program
def slot_appears(C, torch):
    class A:
        __slots__ = ("k",)

    a = A()
    return changed(C, lambda x: x * getattr(a, "k", 3), lambda: setattr(a, "k", 20))


@program
def getattr_hook(C, torch):
    class A:
        def __getattr__(self, n):
            return 4

    a = A()
    return changed(
        C,
        lambda x: x * a.zz,
        lambda: setattr(A, "__getattr__", lambda s, n: 50),
        again=lambda: delattr(A, "__getattr__"),
    )


@program
def getattribute_appears(C, torch):
    class A:
        k = 2

    a = A()
    return changed(
        C,
        lambda x: x * a.k,
        lambda: setattr(A, "__getattribute__", lambda s, n: 50 if n == "k" else object.__getattribute__(s, n)),
    )


@program
def descriptor(C, torch):
    class D:
        def __get__(self, o, t):
            return 2

    class A:
        d = D()

    a = A()
    return changed(
        C,
        lambda x: x * a.d,
        lambda: setattr(D, "__get__", lambda s, o, t: 60),
        again=lambda: setattr(D, "__set__", lambda s, o, v: None),
    )


@program
def descriptor_becomes_data(C, torch):
    class D:
        def __get__(self, o, t):
            return 2

    class A:
        d = D()

    a = A()
    a.__dict__["d"] = 9
    return changed(C, lambda x: x * a.d, lambda: setattr(D, "__set__", lambda s, o, v: None))


@program
def setattr_hook_appears(C, torch):
    class A:
        pass

    a = A()

    def f(x):
        a.k = 3
        return x * a.k

    return [changed(C, f, lambda: setattr(A, "__setattr__", lambda s, n, v: object.__setattr__(s, n, v * 10))), a.k]


@program
def property_replaced(C, torch):
    A, Mid, B = classes()
    b = B()
    return changed(
        C, lambda x: x * b.p, lambda: setattr(A, "p", property(lambda s: 30)), again=lambda: setattr(B, "p", 4)
    )


@program
def hasattr_of_a_property(C, torch):
    class A:
        on = True

        @property
        def p(self):
            if A.on:
                return 1
            raise AttributeError("off")

    a = A()
    return changed(C, lambda x: x + (1 if hasattr(a, "p") else 2), lambda: setattr(A, "on", False))


# -- classes read directly, metaclasses --


@program
def inherited_class_attribute(C, torch):
    A, Mid, B = classes()
    return changed(C, lambda x: x * B.scale, lambda: setattr(A, "scale", 30), again=lambda: setattr(Mid, "scale", 5))


@program
def class_attribute_missing(C, torch):
    class A:
        pass

    return changed(C, lambda x: x * getattr(A, "k", 2), lambda: setattr(A, "k", 30), again=lambda: delattr(A, "k"))


@program
def metaclass_method(C, torch):
    class M(type):
        def k(cls):
            return 2

    class A(metaclass=M):
        pass

    return changed(
        C, lambda x: x * A.k(), lambda: setattr(M, "k", lambda c: 30), again=lambda: setattr(A, "k", lambda: 5)
    )


@program
def metaclass_getattr(C, torch):
    class M(type):
        def __getattr__(cls, n):
            return 2

    class A(metaclass=M):
        pass

    return changed(
        C, lambda x: x * A.zz, lambda: setattr(M, "__getattr__", lambda c, n: 30), again=lambda: setattr(A, "zz", 4)
    )


@program
def instancecheck(C, torch):
    class M(type):
        def __instancecheck__(cls, o):
            return True

    class A(metaclass=M):
        pass

    class B:
        pass

    b = B()
    return changed(
        C, lambda x: x + (1 if isinstance(b, A) else 2), lambda: setattr(M, "__instancecheck__", lambda c, o: False)
    )


@program
def enum_property(C, torch):
    class E(enum.Enum):
        A = 1
        B = 2

        @property
        def k(self):
            return self.value * 2

        def __len__(self):
            return 3

    return changed(
        C,
        lambda x: x * E.A.k + len(E.B),
        lambda: setattr(E, "k", property(lambda s: 50)),
        again=lambda: setattr(E, "__len__", lambda s: 9),
    )


@program
def dataclass_parts(C, torch):
    @dataclasses.dataclass
    class D:
        k: int = 2
        w: float = 1.0

        def __post_init__(self):
            self.z = 3

    def post(self):
        self.z = 40

    return changed(C, lambda x: x * D().k + D(w=2.0).w + D().z, lambda: setattr(D, "__post_init__", post))


@program
def named_tuple_method(C, torch):
    class P(collections.namedtuple("P", "a b")):
        def s(self):
            return self.a + self.b

    p = P(1, 2)
    return changed(C, lambda x: x * p.s(), lambda: setattr(P, "s", lambda s: 50))


# -- modules, globals, builtins --


def module(**names):
    m = types.ModuleType("some_module")
    m.__dict__.update(names)
    return m


@program
def module_name_removed(C, torch):
    m = module(k=2)
    return changed(C, lambda x: x * getattr(m, "k", 5), lambda: delattr(m, "k"), again=lambda: setattr(m, "k", 3))


@program
def module_getattr_replaced(C, torch):
    m = module(__getattr__=lambda n: 3)
    return changed(
        C, lambda x: x * m.k, lambda: setattr(m, "__getattr__", lambda n: 40), again=lambda: setattr(m, "k", 5)
    )


@program
def module_function_replaced(C, torch):
    m = module(f=lambda x: x + 1)
    return changed(C, lambda x: m.f(x), lambda: setattr(m, "f", lambda x: x * 40))


@program
def module_constant(C, torch):
    m = module(k=1)
    return changed(
        C, lambda x: torch.arange(3) * m.k, lambda: setattr(m, "k", 1.0), again=lambda: setattr(m, "k", True)
    )


@program
def module_dict(C, torch):
    m = module(k=1)

    def f(x):
        m.__dict__["k"] = m.k + 1
        vars(m)["w"] = 5
        return x * m.k + m.w

    f2 = C(f)
    return [f2(X()), f2(X()), m.k, m.w]


@program
def global_shadows_builtin(C, torch):
    g = {"torch": torch}
    exec("def h(x):\n    return x + len([1, 2])\n", g)
    return changed(C, g["h"], lambda: g.__setitem__("len", lambda v: 50), again=lambda: g.__delitem__("len"))


@program
def builtin_replaced(C, torch):
    g = {"torch": torch}
    exec("def h(x):\n    return x + frobnicate([1, 2])\n", g)
    builtins.frobnicate = lambda v: 1
    try:
        return changed(C, g["h"], lambda: setattr(builtins, "frobnicate", lambda v: 50))
    finally:
        del builtins.frobnicate


@program
def global_appears(C, torch):
    g = {"torch": torch}
    exec("def h(x):\n    try:\n        return x + N\n    except NameError:\n        return x - 1\n", g)
    return changed(C, g["h"], lambda: g.__setitem__("N", 50), again=lambda: g.__delitem__("N"))


@program
def globals_read_and_written(C, torch):
    g = {"torch": torch, "N": 1}
    exec(
        "def h(x):\n    global N\n    N = N + 1\n    g = globals()\n    g['N'] = g['N'] * 2\n    return x + N + ('M' in g)\n",
        g,
    )
    f = C(g["h"])
    out = [f(X()), f(X()), g["N"]]
    g["M"] = 0
    return [*out, f(X()), g["N"]]


# -- functions --


def kernel(x, k=2, *, w=3):
    return x * k + w


def fresh_kernel():
    return types.FunctionType(kernel.__code__, {"torch": torch}, "kernel", kernel.__defaults__)


@program
def function_defaults(C, torch):
    k = fresh_kernel()
    k.__kwdefaults__ = {"w": 3}
    return changed(
        C,
        lambda x: k(x),
        lambda: setattr(k, "__defaults__", (20,)),
        again=lambda: setattr(k, "__kwdefaults__", {"w": 30}),
    )


@program
def function_default_added(C, torch):
    k = types.FunctionType((lambda x, y: x * y).__code__, {})
    k.__defaults__ = (2,)
    return changed(
        C,
        lambda x: k(x, x) + k(x),
        lambda: setattr(k, "__defaults__", (5, 7)),
        again=lambda: setattr(k, "__defaults__", None),
    )


@program
def function_code(C, torch):
    k = fresh_kernel()
    k.__kwdefaults__ = {"w": 3}
    return changed(C, lambda x: k(x), lambda: setattr(k, "__code__", (lambda x, k=1, *, w=1: x - 100).__code__))


@program
def method_code(C, torch):
    class A:
        def m(self, x):
            return x + 1

    a = A()
    return changed(C, lambda x: a.m(x), lambda: setattr(A.m, "__code__", (lambda self, x: x * 100).__code__))


@program
def function_attributes(C, torch):
    def k(x):
        return x

    k.n = 1
    return changed(
        C, lambda x: x * k.n + hasattr(k, "m"), lambda: setattr(k, "n", 1.5), again=lambda: setattr(k, "m", 0)
    )


@program
def function_name(C, torch):
    def k(x):
        return x

    return changed(C, lambda x: x * len(k.__name__), lambda: setattr(k, "__name__", "kkkk"))


@program
def closure_cell(C, torch):
    n = 1

    def inc():
        nonlocal n
        n += 10

    return changed(C, lambda x: x * n, inc)


@program
def patched_torch_functions(C, torch):
    F = torch.nn.functional
    old = F.relu, torch.sigmoid
    try:
        return changed(
            C,
            lambda x: F.relu(x) + torch.sigmoid(x),
            lambda: setattr(F, "relu", lambda x: x * 100),
            again=lambda: setattr(torch, "sigmoid", torch.tanh),
        )
    finally:
        F.relu, torch.sigmoid = old


@program
def patched_tensor_method(C, torch):
    old = torch.Tensor.relu
    try:
        return changed(C, lambda x: x.relu(), lambda: setattr(torch.Tensor, "relu", lambda s: s + 100))
    finally:
        torch.Tensor.relu = old


@program
def patched_math(C, torch):
    m = module(sqrt=math.sqrt)
    return changed(C, lambda x: x * m.sqrt(4.0), lambda: setattr(m, "sqrt", lambda v: 50.0))


@program
def patched_linear(C, torch):
    old = torch.nn.Linear.forward
    m = torch.nn.Sequential(torch.nn.Linear(2, 2))
    try:
        return changed(C, lambda x: m(x), lambda: setattr(torch.nn.Linear, "forward", lambda s, x: x * 100))
    finally:
        torch.nn.Linear.forward = old


@program
def patched_forward_of_a_compiled_module(C, torch):
    class M(torch.nn.Module):
        def forward(self, x):
            return x + 1

    m = M()
    f = C(m)
    out = [f(X())]
    M.forward = lambda s, x: x * 100
    out.append(f(X()))
    m.forward = lambda x: x - 7
    return [*out, f(X())]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_world_changes(name):
    agree(PROGRAMS[name], ("eager",) if name.startswith(("special", "constant")) else ("eager", "aot_eager"))


@pytest.mark.parametrize("name", ["einsum", "func"])
def test_lazy_names_where_import_torch_means_flambeau(name, monkeypatch, request):
    """The module is called "torch" then, and finds what was not asked for yet by its ``__getattr__``."""

    def f(x):
        return torch.einsum("ij,jk->ik", x, x) if name == "einsum" else torch.func.vmap(torch.sum)(x)

    if not hook.installed():
        hook.install()
        request.addfinalizer(hook.uninstall)
    monkeypatch.delitem(vars(torch), name, raising=False)
    assert torch.compile(f, backend="eager", fullgraph=True)(torch.ones(2, 2)).sum() > 0
