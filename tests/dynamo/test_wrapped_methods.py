"""Methods that a class has by another way than a plain function: compiled, disabled, bound by ``partialmethod`` or by a descriptor of the program's.
The interpreter calls them as it would call functions, and so does captured code, on objects that it is given and on those that it makes."""

import functools

import pytest
from programs import attempt

import flambeau as torch


class Bound:
    """A descriptor that binds in Python."""

    def __init__(self, f):
        self.f = f

    def __get__(self, o, cls=None):
        return functools.partial(self.f, o)


WAYS = {
    "function": lambda f: f,
    "compiled": lambda f: torch.compile(f, backend="eager"),
    "disabled": lambda f: torch.compiler.disable(f, reason="a test"),
    "partialmethod": functools.partialmethod,
    "descriptor": Bound,
}
BASES = {
    "object": (object, ()), "dict": (dict, ({1: 2},)), "list": (list, ([1, 2],)), "int": (int, (7,)), "str": (str, ("ab",)),
    "exception": (ValueError, ("boom",)), "module": (torch.nn.Module, ()), "tensor": (torch.Tensor, (torch.ones(2),)),
}  # fmt: skip


def entered(o):
    with o as v:
        return v


def added_to(o):
    o += 5
    return o


# A method, what it does, how it is used, and the bases for which that matters.
METHODS = [
    ("__init__", lambda self, *a: setattr(self, "mark", 5), lambda o: o.mark, "object dict list int exception tensor"),
    ("__len__", lambda self: 3, len, "object dict list str tensor"),
    ("__bool__", lambda self: False, lambda o: 1 if o else 2, "object dict int exception module"),
    ("__getitem__", lambda self, k: ("got", k), lambda o: o[3], "object dict list str tensor"),
    ("__missing__", lambda self, k: ("missing", k), lambda o: o["none"], "dict"),
    ("__contains__", lambda self, k: k == 77, lambda o: (77 in o, 1 in o), "object dict list tensor"),
    ("__iter__", lambda self: iter([9, 8]), lambda o: ([*o], sum(o)), "object dict list tensor"),
    ("__eq__", lambda self, o: "eq", lambda o: (o == 1, 1 == o), "object int str tensor"),
    ("__add__", lambda self, o: ("add", o), lambda o: o + 1, "object list int tensor"),
    ("__rmul__", lambda self, o: ("rmul", o), lambda o: 2 * o, "object list int tensor"),
    ("__iadd__", lambda self, o: ("iadd", o), added_to, "object list int tensor"),
    ("__rfloordiv__", lambda self, o: ("rfloordiv", o), lambda o: 2 // o, "int"),
    ("__abs__", lambda self: "abs", abs, "object int tensor"),
    ("__round__", lambda self, *a: ("round", a), round, "object int tensor"),
    ("__str__", lambda self: "str!", lambda o: f"{o}", "object int str exception module"),
    ("__call__", lambda self, *a: ("call", a), lambda o: o(1, 2), "object dict int module"),
    ("__enter__", lambda self: "entered", entered, "object dict"),
    ("__getattr__", lambda self, n: ("attr", n), lambda o: o.nothing, "object dict int exception"),
    ("append", lambda self, v: ("append", v), lambda o: o.append(3), "object list"),
    ("add", lambda self, v: ("added", v), lambda o: o.add(3), "object tensor"),
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name, body, use, bases", METHODS, ids=[m[0] for m in METHODS])
def test_methods_that_are_no_functions(name, body, use, bases, way):
    for base in bases.split():
        parent, args = BASES[base]
        more = {"__exit__": lambda self, *a: None} if name == "__enter__" else {}
        cls = type("K", (parent,), {name: WAYS[way](body), **more})
        x = torch.ones(1)

        def of_given(o):
            return use(o), x + 1

        def of_made(args):
            return use(cls(*args)), x + 1

        compiled_given, compiled_made = (torch.compile(f, backend="eager") for f in (of_given, of_made))
        assert attempt(compiled_given, cls(*args)) == attempt(of_given, cls(*args)), base
        assert attempt(compiled_made, args) == attempt(of_made, args), base
