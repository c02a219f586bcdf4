"""The world changes between two calls: constants, identity, order, the library's state, tensors' own attributes, modules and their parts."""

import collections
import types

import numpy as np
import pytest
from programs import X, agree, attempt, changed

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def module(**names):
    m = types.ModuleType("some_module")
    m.__dict__.update(names)
    return m


# -- constants --


for _i, (_a, _b) in enumerate(
    [
        ((1, (2.0, 3)), (1, (2, 3))),
        ((1, 0.0), (1, -0.0)),
        ((complex(0, 0.0),), (complex(0, -0.0),)),
        (frozenset([1]), frozenset([True])),
        ((1,), (True,)),
        (1.0, np.float64(1.0)),
        (np.float32(0.0), np.float32(-0.0)),
        ("a", b"a"),
        (range(0, 3, 2), range(0, 4, 2)),
        (slice(0, 2), slice(0, 3)),
        ([1, 2], [1.0, 2]),
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ((None, 1), (1, None)),
    ]
):

    def _constant(C, torch, a=_a, b=_b):
        def flat(d):
            if isinstance(d, dict):
                return [*d.items()]
            if isinstance(d, (list, tuple, frozenset)):
                return [flat(v) for v in d]
            if isinstance(d, (range, slice)):
                return [d.start, d.stop, d.step]
            return d

        f = C(lambda x, d: (x + 1, flat(d)))
        g = {"torch": torch, "D": a, "flat": flat}
        exec("def h(x):\n    return x + 1, flat(D)\n", g)
        h = C(g["h"])
        out = [f(X(), a), f(X(), b), f(X(), a), h(X())]
        g["D"] = b
        return [*out, h(X())]

    PROGRAMS[f"constant_{_i}"] = _constant


# -- identity and order --


@program
def identity_of_lists(C, torch):
    f = C(lambda x, a, b: x + (1 if a is b else 2))
    v = [1]
    return [f(X(), [1], [1]), f(X(), v, v), f(X(), [1], [1]), f(X(), (), ())]


@program
def identity_of_objects_in_containers(C, torch):
    class A:
        pass

    p, q = A(), A()
    f = C(lambda x, a, c: x + (1 if a in c else 2) + (c.index(a) if a in c else 9) + c.count(a))
    return [f(X(), p, [q, p]), f(X(), p, [p, q]), f(X(), q, [p, p]), f(X(), p, (q, q)), f(X(), p, (q, p))]


@program
def identity_by_default_equality(C, torch):
    class A:
        pass

    p, q = A(), A()
    f = C(lambda x, a, b: x + (1 if a == b else 2) + (10 if a != b else 20))
    return [f(X(), p, q), f(X(), p, p), f(X(), q, q), f(X(), q, p)]


@program
def identity_of_floats(C, torch):
    a, b = float("1.5"), float("1.5")
    f = C(lambda x, p, q: x + (1 if p is q else 2))
    return [f(X(), a, a), f(X(), a, b), f(X(), b, a), f(X(), b, b)]


@program
def objects_as_keys(C, torch):
    class A:
        pass

    p, q = A(), A()
    f = C(lambda x, a, d: x * d[a] + len(d))
    g = C(lambda x, d: sum([x * (i + 1) * v for i, v in enumerate(d.values())]))
    return [
        f(X(), p, {p: 1, q: 2}),
        f(X(), q, {p: 1, q: 2}),
        f(X(), p, {q: 1, p: 5}),
        attempt(f, X(), p, {q: 1})[:2],
        g(X(), {p: 1, q: 2}),
        g(X(), {q: 2, p: 1}),
        g(X(), {"a": 1, "b": 2}),
        g(X(), {"b": 2, "a": 1}),
    ]


@program
def order_of_an_ordered_dict(C, torch):
    d = collections.OrderedDict(a=1, b=2)
    return changed(C, lambda x: sum([x * v * 10**i for i, v in enumerate(d.values())]), lambda: d.move_to_end("a"))


@program
def order_of_sets(C, torch):
    def f(x, s):
        out = []
        for v in s:
            out.append(v)
        made = {3, 1, 2, 100, 8}
        made.add(0)
        return x + 1, out, list(made), sorted(s), len(s)

    a, b = {8, 0, 16}, {16, 0, 8}
    g = C(f)
    return [[list(a) == g(X(), a)[1], list(b) == g(X(), b)[1]], g(X(), a)[2:], g(X(), {5})[1:]]


@program
def set_in_an_unchanged_namespace(C, torch):
    m = module(s={1, 2}, l=[1], d={"a": 1})
    return changed(
        C,
        lambda x: x * (1 if 2 in m.s else 3) + len(m.l) + m.d["a"],
        lambda: m.s.discard(2),
        again=lambda: (m.l.append(1), m.d.update(a=7)),
    )


@program
def default_factory(C, torch):
    d = collections.defaultdict(lambda: 2)
    return changed(C, lambda x: x * d["k"], lambda: (d.clear(), setattr(d, "default_factory", lambda: 50)))


# -- state of the library --


@program
def default_dtype(C, torch):
    def f(x):
        i = torch.arange(3)
        return [
            i * 1.5,
            i / 2,
            torch.ones(2),
            torch.tensor(1.5),
            torch.zeros(2).dtype == torch.float64,
            i.to(torch.get_default_dtype()),
            i.sqrt(),
        ]

    return changed(
        C, f, lambda: torch.set_default_dtype(torch.float64), again=lambda: torch.set_default_dtype(torch.float32)
    )


@program
def grad_mode_read(C, torch):
    f = C(lambda x: x + (1 if torch.is_grad_enabled() else 2))
    out = [f(X())]
    with torch.no_grad():
        out.append(f(X()))
    return out


@program
def settings_read(C, torch):
    c = torch._dynamo.config
    old = c.cache_size_limit
    try:
        return changed(
            C, lambda x: x * torch._dynamo.config.cache_size_limit, lambda: setattr(c, "cache_size_limit", 50)
        )
    finally:
        c.cache_size_limit = old


@program
def seed_read(C, torch):
    torch.manual_seed(3)
    return changed(C, lambda x: x + torch.initial_seed(), lambda: torch.manual_seed(40))


# -- tensors' own attributes --


@program
def tensor_attributes(C, torch):
    f = C(lambda x: x * getattr(x, "scale", 1) + (10 if hasattr(x, "tag") else 0))
    x = X()
    out = [f(x)]
    x.scale = 5
    out.append(f(x))
    x.tag = None
    out.append(f(x))
    del x.scale
    return [*out, f(x), f(X())]


@program
def parameter_attributes(C, torch):
    m = torch.nn.Linear(2, 2)
    torch.nn.init.ones_(m.weight)
    return changed(C, lambda x: x * getattr(m.weight, "lr_scale", 2), lambda: setattr(m.weight, "lr_scale", 30))


@program
def tensor_attribute_that_is_a_tensor(C, torch):
    x = X()
    x.other = torch.ones(2)
    f = C(lambda x: x + x.other)
    out = [f(x)]
    x.other = torch.full((2,), 50.0)
    return [*out, f(x)]


# -- one model of one object --


@program
def instance_dict_views(C, torch):
    class A:
        pass

    def f(x, a):
        a.__dict__["v"] = 5
        vars(a)["w"] = a.v + 1
        a.__dict__.update(u=a.w + 1)
        a.z = 1
        before = list(a.__dict__)
        del a.__dict__["z"]
        return x * a.v + a.w + a.u, before, "z" in vars(a), hasattr(a, "z"), sorted(vars(a).items()), len(vars(a))

    a = A()
    a.first = 0
    g = C(f)
    return [g(X(), a), g(X(), a), a]


@program
def order_of_attributes(C, torch):
    class A:
        def __init__(self):
            self.a, self.b = 1, 2

    def f(x, o):
        o.c = 3
        del o.a
        o.a = 4
        return x, list(vars(o)), dict(o.__dict__)

    g = C(f)
    return [g(X(), A()), g(X(), A()), g(X(), (o := A())), vars(o)]


@program
def dict_write_past_a_property(C, torch):
    class A:
        @property
        def k(self):
            return self.__dict__["k"] * 2

        @k.setter
        def k(self, v):
            self.__dict__["k"] = v + 1

    def f(x, a):
        a.k = 3
        y = x * a.k
        a.__dict__["k"] = 10
        return y, x * a.k

    a = A()
    g = C(f)
    return [g(X(), a), g(X(), a), a.k, vars(a)]


@program
def buffers_are_one(C, torch):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(1))
            self.register_buffer("gone", torch.ones(1))

        def forward(self, x):
            self.n = self.n + 1
            y = x + self.n + self._buffers["n"] + sum([b.sum() for b in self.buffers()])
            self.gone = None
            return y, len(list(self.buffers())), self.gone is None

    m = M()
    f = C(m)
    return [f(torch.ones(1)), f(torch.ones(1)), dict(m.named_buffers()), list(m._buffers)]


@program
def user_setattr_of_a_module(C, torch):
    class M(torch.nn.Module):
        def __setattr__(self, n, v):
            super().__setattr__(n, v * 2 if isinstance(v, int) and not isinstance(v, bool) else v)

        def forward(self, x):
            self.k = 3
            return x * self.k

    m = M()
    f = C(m)
    return [f(X()), m.k, f(X()), m.k]


@program
def user_getattr_of_a_module(C, torch):
    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def __getattr__(self, n):
            if n == "extra":
                return 5
            return super().__getattr__(n)

        def forward(self, x):
            return x * self.w * self.extra

    m = M()
    return changed(
        C, lambda x: m(x), lambda: setattr(M, "__getattr__", lambda s, n: 50 if n == "extra" else s._parameters[n])
    )


for _name in ("children", "parameters", "named_parameters", "modules", "buffers", "named_modules"):

    def _walk(C, torch, name=_name):
        class Inner(torch.nn.Module):
            pass

        class M(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.a = torch.nn.Linear(2, 2)
                self.b = torch.nn.Linear(2, 2)

            def forward(self, x):
                return x + len(list(getattr(self, name)()))

        m = M()
        out = changed(
            C,
            lambda x: m(x),
            lambda: setattr(M, name, lambda s, *a, **k: iter([1, 2, 3])),
            again=lambda: setattr(m, name, lambda: [0]),
        )
        n = M()
        n.a.extra = torch.nn.Parameter(torch.ones(1))
        f = C(n)
        first = f(X())
        n.c = torch.nn.Linear(1, 1)
        return [out, first, f(X())]

    PROGRAMS["walk_" + _name] = _walk


@program
def named_parameters_of_a_part_overridden(C, torch):
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def named_modules(self, *a, **k):
            return iter([])

    class M(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            return x + sum([p.sum() for p in self.parameters()]) + 0

    return [C(M())(X())]


@program
def containers_overridden(C, torch):
    class L(torch.nn.ModuleList):
        def __len__(self):
            return 42

    class L2(torch.nn.ModuleList):
        def __getitem__(self, i):
            return torch.nn.Tanh()

    class L3(torch.nn.ModuleList):
        def __iter__(self):
            return iter([torch.nn.functional.relu])

    class S(torch.nn.Sequential):
        def forward(self, x):
            return x * 3

    class D(torch.nn.ModuleDict):
        def keys(self):
            return ["z"]

    parts = [torch.nn.ReLU(), torch.nn.Sigmoid()]
    a, b, c, s, d = L(parts), L2(parts), L3(parts), S(*parts), D({"a": parts[0]})

    def f(x):
        y = x + len(a) + b[0](x) + s(x) + len(d.keys())
        for g in c:
            y = y + g(x)
        return y

    return changed(C, f, lambda: setattr(L, "__len__", lambda s: 7), again=lambda: s.append(torch.nn.Tanh()))


@program
def modules_changed(C, torch):
    m = torch.nn.Sequential(
        torch.nn.Linear(2, 2), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(2, track_running_stats=True)
    )
    m.eval()
    f = C(m)
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    out = [f(x)]
    m[0].weight = torch.nn.Parameter(torch.ones(2, 2))
    out.append(f(x))
    m[0].bias = None
    out.append(f(x))
    m[2].running_mean = torch.full((2,), 5.0)
    out.append(f(x))
    m[0] = torch.nn.Identity()
    out.append(f(x))
    m[2].train()
    return [*out, f(x), m[2].running_mean, m[2].num_batches_tracked]


@program
def hooks_come_and_go(C, torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    torch.nn.init.ones_(m[0].weight)
    torch.nn.init.zeros_(m[0].bias)
    f = C(m)
    log = []

    def x():
        return torch.ones(1, 2, requires_grad=True)

    out = [f(x())]
    h = m[0].register_forward_hook(lambda mod, a, o: o * 10)
    out.append(f(x()))
    h2 = m[1].register_forward_pre_hook(lambda mod, a: (a[0] + 1,))
    out.append(f(x()))
    h.remove()
    out.append(f(x()))
    h2.remove()
    h3 = m[0].register_forward_pre_hook(lambda mod, a, k: ((a[0] * 3,), k), with_kwargs=True)
    out.append(f(x()))
    h3.remove()
    h4 = m[0].register_full_backward_hook(lambda mod, gi, go: log.append("full"))
    v = x()
    f(v).sum().backward()
    out.append(v.grad)
    h4.remove()
    h5 = torch.nn.modules.module.register_module_forward_hook(lambda mod, a, o: o + 1)
    try:
        out.append(f(x()))
    finally:
        h5.remove()
    return [*out, f(x()), log]


@program
def finalizers(C, torch):
    log = []

    class A:
        def __del__(self):
            log.append("del")

    def f(x):
        a = A()
        y = x + 1
        del a
        return y

    g = C(f)
    return [g(X()), g(X()), log]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_world_changes(name):
    agree(PROGRAMS[name], ("eager",) if name.startswith(("special", "constant")) else ("eager", "aot_eager"))
