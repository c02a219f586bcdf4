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


class Told2(enum.Enum):
    """Special methods that tell when they run."""

    A = 1

    def __iter__(self):
        log.append("iter")
        return iter([1, 2])

    def __len__(self):
        log.append("len")
        return 2

    def __getitem__(self, i):
        log.append("getitem")
        return i

    def __contains__(self, i):
        log.append("contains")
        return i == 3

    def __index__(self):
        log.append("index")
        return 1

    def __format__(self, spec):
        log.append("format")
        return "it"

    def __str__(self):
        log.append("str")
        return "it"

    def __repr__(self):
        log.append("repr")
        return "it"


class Text(enum.StrEnum):
    A = "ab"


class Backward(enum.StrEnum):
    A = "ab"

    def __iter__(self):
        log.append("iter")
        return iter("ba")


class Row(tuple, enum.Enum):
    A = (1, 2)


class Zero(enum.IntEnum):
    A = 1

    def __index__(self):
        log.append("index")
        return 0


class NotIterable(enum.Enum):
    A = 1
    __iter__ = None


def told(f):
    try:
        return f()
    except (TypeError, AttributeError) as e:
        return type(e), str(e)


USES = {
    "flags": lambda: ([*Bits(3)], list(Bits.A), list(Bits(0)), [m.name for m in Bits.A | Bits.B], len(Bits(3)), tuple(Numbers.A)),
    "flags, some": lambda: (next(iter(Bits(3))), Bits.A in Bits(3), sum(m.value for m in Bits(3))),
    "iterated": lambda: (list(Told2.A), [i for i in Told2.A], [*Told2.A], sum(Told2.A), list(zip(Told2.A, Told2.A))),
    "asked": lambda: (len(Told2.A), Told2.A[7], 3 in Told2.A, 4 in Told2.A),
    "an index": lambda: ([4, 5, 6][Told2.A], (4, 5, 6)[Told2.A], list(range(Told2.A))),
    "shown": lambda: (f"{Told2.A}", f"{Told2.A}", str(Told2.A), Told2.A.name, Told2.A.value, getattr(Told2.A, "q", 3)),
    "text": lambda: (list(Text.A), len(Text.A), [*Backward.A], "a" in Text.A, Text.A[0]),
    "row": lambda: (list(Row.A), len(Row.A), sum(Row.A), Row.A[1]),
    "an int is its value": lambda: ([4, 5, 6][Zero.A], (4, 5, 6)[Zero.A], list(range(Zero.A))),
    "no length": lambda: told(lambda: len(Color.RED)),
    "none of an int": lambda: told(lambda: len(Zero.A)),
    "no iterator": lambda: told(lambda: list(Color.RED)),
    "taken away": lambda: told(lambda: list(NotIterable.A)),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_special_methods_of_members(name):
    def f(x):
        return x + 1, told(USES[name])

    def run(g):
        log.clear()
        return [g(torch.ones(2))[1] for _ in range(2)], list(log)

    torch._dynamo.reset()
    want = run(f)
    assert run(torch.compile(f, backend="eager")) == want


def test_flags_are_iterated_in_one_graph():
    def f(x):
        return x + sum(m.value for m in Bits.A | Bits.B), [m.name for m in Bits(3)]

    out, names = torch.compile(f, backend="eager", fullgraph=True)(torch.zeros(2))
    assert out.tolist() == [3, 3] and names == ["A", "B"]


MADE = {
    "names in a text": lambda: enum.Enum("Made", "RED GREEN"),
    "names in a list": lambda: enum.IntEnum("Made", ["RED", "GREEN"], start=5),
    "a dict": lambda: enum.Enum("Made", {"RED": 10, "GREEN": "g"}),
    "pairs": lambda: enum.Enum("Made", [("RED", 3), ("GREEN", 4)], module="elsewhere"),
    "flags": lambda: enum.Flag("Made", "RED GREEN"),
}


@pytest.mark.parametrize("name", MADE)
def test_made_by_a_call(name):
    make = MADE[name]

    def f(x):
        made = make()
        number = made.RED.value * len(made) + (made["GREEN"] is made.GREEN)
        return x * number, made, made.RED, [made.GREEN]

    compiled = torch.compile(f, backend="eager", fullgraph=True)
    x = torch.ones(2)
    calls = [compiled(x), compiled(x)]
    for y, made, red, (green,) in calls:
        assert torch.equal(y, f(x)[0]) and red is made.RED and green is made.GREEN
        assert repr(made) == repr(make()) and [(m.name, m.value) for m in made] == [(m.name, m.value) for m in make()]
    assert calls[0][1] is not calls[1][1]  # as each plain call has its own
    assert calls[0][1].__module__ == ("elsewhere" if name == "pairs" else __name__)


def test_made_by_a_call_and_combined_or_refused():
    def combined(x):
        made = enum.Flag("Made", "A B C")
        return x * (made.A | made.C).value, made.A | made.B, made

    _, both, made = torch.compile(combined, backend="eager", fullgraph=True)(torch.ones(1))
    assert both is made.A | made.B

    def twice(x):
        return x, enum.Enum("Made", "RED RED")

    with pytest.raises(TypeError, match="already defined"):
        torch.compile(twice, backend="eager")(torch.ones(1))

    def broken(x):
        made = enum.Enum("Made", "RED GREEN")
        torch._dynamo.graph_break()
        return x * made.GREEN.value, made.RED

    assert torch.compile(broken, backend="eager")(torch.ones(1))[0].item() == 2
