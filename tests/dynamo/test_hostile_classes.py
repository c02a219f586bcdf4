"""Classes whose metaclass, names and hooks answer what they like: capture neither believes them nor runs them on its own account.

Each class logs every call of its hooks; a program's log, results and errors are the same compiled as plainly, over calls with another object
and another class in between."""

import builtins
import collections
import dataclasses
import enum
import types

import pytest
from programs import X, agree, attempt

import flambeau as torch


class Text(str):
    """A name that counts what is asked of it."""

    def __eq__(self, other):
        raise ValueError("no comparison")

    def startswith(self, *a):
        raise ValueError("no prefix")

    def split(self, *a):
        raise ValueError("no parts")

    __hash__ = str.__hash__


def body():
    def __init__(self, v=1.0):
        self.v = v

    def m(self, x):
        return x * 2 + self.v

    def __call__(self, x):
        return x + self.v

    return {"__init__": __init__, "m": m, "__call__": __call__, "c": 3.0, "__module__": __name__}


def make(log, meta=None, own=None):
    """A class of a metaclass with the hooks ``meta`` and the attributes ``own`` of its own."""
    M = type("M", (type,), {k: logged(log, k, f) for k, f in (meta or {}).items()})
    ns = {**body(), **{k: logged(log, k, f) for k, f in (own or {}).items()}}
    return type.__new__(M, "K", (), ns)


def logged(log, name, f):
    if isinstance(f, types.FunctionType):

        def hook(self, *args):
            log.append((name, *[a for a in args if isinstance(a, str)]))
            return f(self, *args)

        return hook
    if isinstance(f, property):
        return property(logged(log, name, f.fget))
    return f


def fails(error):
    def hook(self, *args):
        raise error("no")

    return hook


def answers(value):
    return lambda self, *args: value


HOSTILE = {
    # metaclasses that look attributes up
    "seven": dict(meta={"__getattribute__": answers(7)}),
    "no attribute": dict(meta={"__getattribute__": fails(AttributeError)}),
    "value error": dict(meta={"__getattribute__": fails(ValueError)}),
    "looks on": dict(meta={"__getattribute__": lambda c, n: type.__getattribute__(c, n)}),
    "getattr": dict(meta={"__getattr__": answers(7)}),
    "getattr fails": dict(meta={"__getattr__": fails(KeyError)}),
    **{
        f"meta {n}": dict(meta={n: property(answers(7))})
        for n in (
            "__module__",
            "__name__",
            "__dict__",
            "__mro__",
            "__flags__",
            "__bases__",
            "__class__",
        )
    },
    **{
        f"meta {n} fails": dict(meta={n: property(fails(OSError))})
        for n in ("__module__", "__name__", "__class__", "__doc__", "__new__", "__hash__")
    },
    # ... that compare, hash and count
    "meta eq": dict(meta={"__eq__": answers(True), "__hash__": answers(1)}),
    "meta eq fails": dict(meta={"__eq__": fails(OSError), "__hash__": fails(OSError)}),
    "meta bool fails": dict(meta={"__bool__": fails(OSError), "__len__": fails(OSError)}),
    "meta repr fails": dict(meta={"__repr__": fails(OSError), "__str__": fails(OSError)}),
    "meta iter": dict(meta={"__iter__": fails(OSError), "__contains__": answers(True)}),
    # ... that decide what is an instance
    "instancecheck": dict(meta={"__instancecheck__": answers(True), "__subclasscheck__": answers(True)}),
    "instancecheck fails": dict(meta={"__instancecheck__": fails(OSError), "__subclasscheck__": fails(OSError)}),
    "instancecheck odd": dict(meta={"__instancecheck__": answers([]), "__subclasscheck__": answers("yes")}),
    "meta call": dict(meta={"__call__": answers(5.0)}),
    # names of the class itself
    **{
        f"module {v!r}": dict(own={"__module__": v})
        for v in (3, None, "builtins", "flambeau.nn", "numpy", "typing", "re")
    },
    "module text": dict(own={"__module__": Text("mine")}),
    "module property": dict(own={"__module__": property(answers(3))}),
    **{
        f"own {n}": dict(own={n: 7})
        for n in (
            "_fields",
            "n_sequence_fields",
            "__torch_function__",
            "_torchdynamo_disable",
            "__wrapped__",
            "__self__",
        )
    },
    # objects that lie
    "class lies": dict(own={"__class__": property(answers(int))}),
    "class is a tensor's": dict(own={"__class__": property(lambda self: torch.Tensor)}),
    "class fails": dict(own={"__class__": property(fails(OSError))}),
    "object seven": dict(own={"__getattribute__": answers(7)}),
    "object fails": dict(own={"__getattribute__": fails(OSError)}),
    "object getattr": dict(own={"__getattr__": answers(7)}),
    "object getattr fails": dict(own={"__getattr__": fails(OSError)}),
    "object dict": dict(own={"__dict__": property(answers(7))}),
    "object hash": dict(own={"__hash__": fails(OSError), "__eq__": fails(OSError)}),
    "object repr": dict(own={"__repr__": fails(OSError)}),
    "object bool": dict(own={"__bool__": fails(OSError)}),
}


def scoped(x, K, o):
    class Sub(K):
        pass

    return x + 1, Sub


def matches(x, K, o):
    match o:
        case K():
            return x + 1
        case _:
            return x - 1


def breaks(x, K, o):
    y = x + 1
    builtins.print(end="")
    torch._dynamo.graph_break()
    return y * 2, K, o


def raises(x, K, o):
    try:
        raise K
    except TypeError as e:
        return x + 1, str(e)


def catches(x, K, o):
    try:
        try:
            raise ValueError("no")
        except K:
            return x - 1
    except TypeError as e:
        return x + 1, str(e)


def writes(x, K, o):
    o.w = x
    return x + 1


def lists(x, K, o):
    return [K, o, x + 1, (o, K)], {"K": K, "o": o}


def enters(x, K, o):
    with o:
        return x + 1


def raw(x, K, o):
    return x + 1, object.__getattribute__(o, "v"), type.__getattribute__(K, "c")


USES = {
    "passed": lambda x, K, o: (x + 1, K, o),
    "called": lambda x, K, o: o(x),
    "made": lambda x, K, o: K(2.0).m(x),
    "method": lambda x, K, o: o.m(x),
    "attribute": lambda x, K, o: x + o.v,
    "class attribute": lambda x, K, o: x + K.c,
    "absent": lambda x, K, o: x + getattr(o, "zz", 1) + getattr(K, "zz", 2),
    "has": lambda x, K, o: x + hasattr(o, "zz") + hasattr(K, "zz"),
    "isinstance": lambda x, K, o: (x + 1, isinstance(o, K)),
    "isinstance of others": lambda x, K, o: (
        x + 1,
        isinstance(x, K),
        isinstance(1, K),
        isinstance(o, int),
        isinstance(K, type),
    ),
    "isinstance of a tuple": lambda x, K, o: (x + 1, isinstance(o, (int, K)), isinstance(o, int | list)),
    "issubclass": lambda x, K, o: (x + 1, issubclass(K, int), issubclass(K, K)),
    "issubclass of others": lambda x, K, o: (x + 1, issubclass(int, K)),
    "names": lambda x, K, o: (x + 1, K.__name__, K.__module__, K.__qualname__),
    "class names": lambda x, K, o: (x + 1, type(o).__name__, o.__module__),
    "type": lambda x, K, o: (x + 1, type(o) is K, type(K) is type, o.__class__),
    "equal": lambda x, K, o: (x + 1, K == K, o == o, K != 3),
    "is": lambda x, K, o: (x + 1, K is o, K is K),
    "in": lambda x, K, o: (x + 1, K in (int, K), o in [1, o]),
    "in a set": lambda x, K, o: (x + 1, K in {int, float}),
    "a key": lambda x, K, o: (x + 1, {K: 1}[K]),
    "true": lambda x, K, o: x + 1 if K and o else x - 1,
    "text": lambda x, K, o: (x + 1, type(o).__name__ + "", f"{K.__name__}"),
    "callable": lambda x, K, o: (x + 1, callable(o), callable(K)),
    "length": lambda x, K, o: (x + 1, len(o)),
    "iterated": lambda x, K, o: x + sum(list(K)),
    "contained": lambda x, K, o: (x + 1, 3 in K),
    "subclass": scoped,
    "match": matches,
    "break": breaks,
    "raise": raises,
    "except": catches,
    "write": writes,
    "lists": lists,
    "with": enters,
    "past the hooks": raw,
    "operator": lambda x, K, o: (x + 1, o + 1),
    "tensor operand": lambda x, K, o: x + o,
}


def shown(K, log, value):
    """A result without asking the hostile anything."""
    if type(value) is tuple or type(value) is list:
        return [shown(K, log, v) for v in value]
    if type(value) is dict:
        return {k: shown(K, log, v) for k, v in value.items()}
    if issubclass(type(value), type):
        return ("class", type.__dict__["__name__"].__get__(value))
    if issubclass(type(value), (torch.Tensor, int, float, str)):
        return value
    return ("object of", type.__dict__["__name__"].__get__(type(value)))


def program(hostile, use):
    def prog(C, torch):
        log = []
        K, K2 = make(log, **hostile), make(log, **hostile)
        o, o2, p = (object.__new__(k) for k in (K, K, K2))
        for obj in (o, o2, p):
            if "__dict__" not in (hostile.get("own") or {}):
                object.__setattr__(obj, "v", 2.0)
        del log[:]
        f, out = C(use), []
        for k, obj in ((K, o), (K, o2), (K, o), (K2, p)):
            out.append(shown(K, log, attempt(f, X(), k, obj)))
            out.append(list(log))
            del log[:]
        return out

    return prog


# Each kind of class with every other use, each use with every other kind of class; the other half is slow.
@pytest.mark.parametrize("half", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", HOSTILE)
def test_uses(name, half):
    failed = {}
    for use, f in list(USES.items())[(half + list(HOSTILE).index(name)) % 2 :: 2]:
        try:
            agree(program(HOSTILE[name], f), ("eager",))
        except AssertionError as e:
            failed[use] = str(e)[:600]
    assert not failed, "\n".join(f"{use}: {what}" for use, what in failed.items())


@pytest.mark.parametrize("backend", ("aot_eager", "inductor"))
@pytest.mark.parametrize(
    "name", ("seven", "looks on", "meta __module__", "meta eq", "module 3", "class fails", "object seven")
)
def test_backends(name, backend):
    for use in ("passed", "method", "isinstance of others", "match", "break", "write", "names"):
        agree(program(HOSTILE[name], USES[use]), (backend,))


def built():
    """Classes that the library makes, with names that are none."""
    point = dataclasses.make_dataclass("Point", [("a", float)], namespace={"__module__": 3})
    colour = enum.Enum("Colour", {"RED": 1, "BLUE": 2})
    colour.__module__ = 3
    pair = collections.namedtuple("Pair", "a b")
    pair.__module__ = None
    odd = type("Odd", (pair,), {"__module__": property(answers(3))})
    return {"dataclass": point(2.0), "enum": colour.RED, "named tuple": pair(1.0, 2.0), "below one": odd(1.0, 2.0)}


@pytest.mark.parametrize("name", built())
def test_made_by_the_library(name):
    def use(x, o):
        kind = type(o)
        if isinstance(o, tuple):
            return x + o.a, kind._fields, o
        return x + 1, kind is type(o), isinstance(o, kind), o == o, {o: 1}[o] if isinstance(o, enum.Enum) else o.a

    def prog(C, torch):
        o = built()[name]
        f = C(use)
        return [shown(None, None, attempt(f, X(), o)) for _ in range(3)]

    agree(prog)


@pytest.mark.parametrize(
    "name", ("seven", "value error", "meta __module__ fails", "module 3", "class fails", "object fails")
)
def test_told_of(name):
    """explain and filters of guards look at such objects as well."""
    log = []
    K = make(log, **HOSTILE[name])
    o = object.__new__(K)
    del log[:]
    said = torch._dynamo.explain(USES["break"])(X(), K, o)
    assert said.graph_break_count == 2 and "graph_break" in str(said)
    keep = torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe
    f = torch.compile(lambda x, K, o: (x + 1, o), backend="eager", options={"guard_filter_fn": keep})
    assert f(X(), K, o)[1] is o and f(X(), K, o)[1] is o
    assert not log


CHECKS = {
    "no class": lambda x: isinstance(1, 1),
    "no class in a tuple": lambda x: isinstance(1, (str, 1)),
    "behind what holds": lambda x: isinstance(1, (int, 1)),
    "nested": lambda x: isinstance({}, (str, (dict, 3))),
    "a list of classes": lambda x: isinstance(x, [int]),
    "text": lambda x: isinstance(x, "a"),
    "of a list": lambda x: isinstance([x], 1),
    "tensor": lambda x: isinstance(x, (torch.Tensor, 1)),
    "a tensor": lambda x: isinstance(x, x),
    "None": lambda x: isinstance(None, (int, None)),
    "nothing": lambda x: isinstance((x,), ()),
    "union": lambda x: isinstance(1, int | str),
    "union with an alias": lambda x: isinstance(x, int | list[int]),
    "alias": lambda x: isinstance([x], list[int]),
    "one argument": lambda x: isinstance(1),
    "three arguments": lambda x: isinstance(print, int, 3),
    "subclass of no class": lambda x: issubclass(int, 3),
    "no subclass": lambda x: issubclass(1, int),
    "a tensor as a class": lambda x: issubclass(x, int),
    "a list as a class": lambda x: issubclass([x], int),
    "subclass of a union": lambda x: issubclass(bool, (str, int | float)),
    "subclass of one argument": lambda x: issubclass(int),
}


@pytest.mark.parametrize("name", CHECKS)
def test_errors_of_checks(name):
    check = CHECKS[name]
    agree(lambda C, torch: [attempt(C(lambda x: (x + 1, check(x))), X()) for _ in range(2)], ("eager", "inductor"))
