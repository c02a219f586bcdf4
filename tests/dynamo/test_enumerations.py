"""Members of enumerations asked for by value in compiled code: the class's own ``_missing_`` and metaclass run as often as plainly, their errors are theirs."""

import enum

import pytest
from programs import agree

import flambeau as torch

log: list = []


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    @classmethod
    def _missing_(cls, item):
        log.append(item)
        if item == "error":
            raise ZeroDivisionError
        return {"three": cls.GREEN, "wrong": 5}.get(item)


class Meta(enum.EnumMeta):
    def __call__(cls, *args, **kwargs):
        log.append(args)
        return super().__call__(*args, **kwargs)


class Told(enum.Enum, metaclass=Meta):
    A = 1


class Bits(enum.Flag):
    A = 1
    B = 2


class Numbers(enum.IntFlag):
    A = 1


CALLS = {
    "member": lambda: (Color(1), Color(Color.RED), Color(True), Color(2.0)),
    "missing": lambda: Color("three"),
    "none": lambda: Color(7),
    "no member": lambda: Color("wrong"),
    "raises": lambda: Color("error"),
    "metaclass": lambda: Told(1),
    "flags": lambda: (Bits(3), Bits(Bits.B), Numbers(9)),
    "too many bits": lambda: Bits(9),
    "text for bits": lambda: Bits("a"),
    "no argument": lambda: Color(),
    "unhashable": lambda: Color([1]),
    "extended": lambda: Color("Foo", "pink black"),
    "made": lambda: enum.Enum("A", "p q") is enum.Enum("A", "p q"),
    "made and read": lambda: enum.Enum("A", "p q").q.value,
}


@pytest.mark.parametrize("name", CALLS)
def test_asked_by_value(name):
    call = CALLS[name]

    def f(x):
        try:
            found = call()
        except (TypeError, ValueError, ZeroDivisionError) as e:
            found = type(e).__name__, str(e), str(e.__context__)
        return repr(found), x + 1

    def prog(C, _):
        log.clear()
        g = C(f)
        return [g(torch.ones(1)), g(torch.ones(1)), list(log)]

    agree(prog, ["eager"])


class Empty(enum.Enum):
    pass


class NoFlags(enum.Flag):
    pass


@pytest.mark.parametrize("cls", [Empty, NoFlags], ids=lambda c: c.__name__)
def test_without_members(cls):
    """From CPython 3.12 on that is a TypeError, and a ValueError before."""

    def f(x):
        try:
            return x, cls(7)
        except (ValueError, TypeError) as e:
            return x, type(e), str(e)

    x = torch.ones(1)
    assert torch.compile(f, backend="eager", fullgraph=True)(x)[1:] == f(x)[1:]
