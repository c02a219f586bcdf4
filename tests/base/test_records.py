"""Slotted records, and what `import flambeau` may load."""

import copy
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


def test_options():
    c = Counter()
    c.n += 1
    assert c == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(c)
    assert Token("a") != Token("a") and len({Token("a"), Token("a")}) == 2


def test_import_loads_little():
    """`import flambeau` stays at about an eighth of `import torch`: what is not needed by every program loads when it is used."""
    code = "import numpy, sys; before = set(sys.modules); import flambeau; print(*sorted(set(sys.modules) - before))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    own = [m for m in loaded if m.startswith("flambeau")]
    # Seven of them are folders of operators, a docstring each: together a millisecond of about ninety. Four are the second device's. Quantised
    # tensors (printed, pickled and guarded as others are) have two, checks of what hooks and callers of overloads give two more, one is the table
    # of Python's operators, and six are parts of larger subjects: joins, indices that are
    # tensors (subscripts, reads and writes), results with names, and what native code is told of an operator.
    assert len(own) <= 147, own
    assert not {"dataclasses", "json", "tempfile", "importlib.abc", "traceback", "scipy", "optree"} & set(loaded)
