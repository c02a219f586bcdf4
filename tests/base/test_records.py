"""Slotted records, and what `import flambeau` and a first compilation may load."""

import copy
import inspect
import os
import pickle
import subprocess
import sys
from typing import ClassVar

import pytest

from flambeau.base.records import astuple, fields_of, made_by, replace, slotted


@slotted
class Point:
    """A point."""

    x: int
    y: int = 0
    kind = "point"

    def norm(self):
        return abs(self.x) + abs(self.y)


@slotted(frozen=False)
class Counter:
    n: int = 0


@slotted(eq=False)
class Token:
    name: str


@slotted
class Pair:
    first: int
    second: int


class Named:
    def label(self):
        return "named"


@slotted(frozen=False)
class Group(Named):
    size: ClassVar = 3
    points: tuple = ()
    notes: list = made_by(list)

    def label(self):
        return super().label() + " group"


@slotted(frozen=False)
class Colored(Group):
    color: str = "red"


@slotted
class Empty:
    pass


def test_fields_of_bases():
    a, b = Colored((Point(1), Point(2))), Colored()
    a.notes.append(1)
    assert fields_of(Colored) == ("points", "notes", "color") and fields_of(Empty) == () and a.size == 3
    assert (a.color, a.notes, b.notes, a.label()) == ("red", [1], [], "named group")
    assert repr(b) == "Colored(points=(), notes=[], color='red')" and b == Colored() != Group() and Empty() == Empty()
    assert astuple(a) == (((1, 0), (2, 0)), [1], "red")
    assert copy.copy(a) == a and pickle.loads(pickle.dumps(a)) == a


def test_values():
    p = Point(1, y=2)
    assert (p.x, p.y, p.kind, p.norm(), p.__doc__) == (1, 2, "point", 3, "A point.")
    assert repr(p) == "Point(x=1, y=2)" and Point(4) == Point(4, 0) != p and p != (1, 2)
    assert hash(Point(1, 2)) == hash(p) and replace(p, y=5) == Point(1, 5)
    for other in (pickle.loads(pickle.dumps(p)), copy.copy(p), copy.deepcopy(p)):
        assert other == p and type(other) is Point
    match p:
        case Point(a, b):
            assert (a, b) == (1, 2)


def test_bad_input():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        Point()
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        replace(Point(1), z=3)
    with pytest.raises(AttributeError, match="Point is immutable: cannot change its field 'x'"):
        Point(1).x = 2
    with pytest.raises(AttributeError):
        del Point(1).x
    with pytest.raises(AttributeError):
        Counter().other = 1
    with pytest.raises(TypeError, match="field 'y' of Late has no default"):

        @slotted
        class Late:
            x: int = 0
            y: int


def test_records_of_as_many_fields_have_their_own_parameters():
    a, b = inspect.signature(Point), inspect.signature(Pair)
    assert [*a.parameters] == ["x", "y"] and a.parameters["y"].default == 0
    assert [*b.parameters] == ["first", "second"] and Pair(1, second=2).second == 2
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'second'"):
        Pair(1)


def test_options():
    c = Counter()
    c.n += 1
    assert c == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(c)
    assert Token("a") != Token("a") and len({Token("a"), Token("a")}) == 2


def printed(code, **environment):
    """The words that a new process prints."""
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | environment
    )
    return made.stdout.split()


def test_import_loads_little():
    """`import flambeau` stays at about an eighth of `import torch`: what is not needed by every program loads when it is used."""
    code = "import numpy, sys; before = set(sys.modules); import flambeau; print(*sorted(set(sys.modules) - before))"
    loaded = printed(code)
    own = [m for m in loaded if m.startswith("flambeau")]
    # Seven of them are folders of operators, a docstring each: together a millisecond of about ninety. Four are the second device's. Quantised
    # tensors (printed, pickled and guarded as others are) have two, checks of what hooks and callers of overloads give two more, one is the table
    # of Python's operators, and six are parts of larger subjects: joins, indices that are
    # tensors (subscripts, reads and writes), results with names, and what native code is told of an operator. Plans of eager calls have thirteen files by
    # subject, which every first call needs, and NumPy's error state has one, as addresses of functions have.
    assert len(own) <= 166, own
    assert not {"dataclasses", "json", "tempfile", "importlib.abc", "traceback", "scipy", "optree"} & set(loaded)


UNROLLED = """
import sys, flambeau as torch

@torch.compile
def f(xs):
    total = sum([x * i for i, x in zip(range(3), xs)])
    for i in range(3):
        for k, x in enumerate(xs):
            total = total + x.sin() * i * k
    return total.sum()

f([torch.ones(8)] * 3)
print(*sys.modules)
"""


def test_first_compilation_loads_little(tmp_path):
    """The compiler of native loops, a fifth of the compiler, is loaded by the first loop that isn't unrolled."""
    made = printed(UNROLLED, FLAMBEAU_CACHE_DIR=str(tmp_path))
    assert "llvmlite.binding" in made and not {"numpy.random", "optree", "secrets", "statistics"} & set(made)
    # From here on its code is kept, and llvmlite, which brings folders and archives, is not loaded.
    loaded = printed(UNROLLED, FLAMBEAU_CACHE_DIR=str(tmp_path))
    own = [m for m in loaded if m.startswith("flambeau")]
    assert not {"llvmlite.binding", "numpy.random", "optree", "pathlib", "tempfile"} & set(loaded)
    # The tables of PyTorch's names are for names that flambeau's modules lack.
    assert not {"flambeau.compat.namespaces", "flambeau.compat.root"} & set(own)
    # The operators of bytecode, and the random generators that a graph may draw from.
    assert [m for m in own if m.startswith("flambeau.loops.")] == [
        "flambeau.loops.binary_operators",
        "flambeau.loops.random_numbers",
        "flambeau.loops.random_numbers.ziggurat",
        "flambeau.loops.random_numbers.twister",
        "flambeau.loops.random_numbers.streams",
    ]
    assert len(own) <= 648, own


def test_operators_of_loops_are_found_by_name():
    """A graph that another process made names them."""
    code = (
        "import flambeau as torch; print(torch.ops.flambeau.loop.default, torch.ops.flambeau.loop_cotangents.default)"
    )
    assert printed(code) == ["flambeau.loop.default", "flambeau.loop_cotangents.default"]
