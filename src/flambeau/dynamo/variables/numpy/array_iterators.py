"""``np.nditer``: the elements of arrays side by side, each an array without dimensions that shows its place, and ``np.broadcast``."""

from __future__ import annotations

import numpy as np

from ...exc import unsupported
from ...rules.reflect import name_of
from ..base import Variable
from ..containers.lists import ListVariable
from ..containers.sequences import TupleVariable
from ..functions.handlers import handles
from ..iterators.protocol import IteratorVariable
from ..values.constant import ConstantVariable
from .methods import strides_of
from .ndarray import NumpyNdarrayVariable
from .places import sizes_of
from .read_only import mark_read_only

__all__ = ["ArrayIteratorVariable"]

HARMLESS = frozenset({"multi_index", "refs_ok", "zerosize_ok"})
ACCESS = {("readonly",): False, ("readwrite",): True, ("writeonly",): True}


class ArrayIteratorVariable(IteratorVariable):
    """An nditer of ``arrays``, which are repeated to one shape; ``axes``: from the slowest to the fastest."""

    enters_again = False

    def __init__(self, arrays: list[NumpyNdarrayVariable], writes: list[bool], axes: tuple[int, ...], places: bool):
        super().__init__(np.nditer)
        self.arrays, self.writes, self.axes, self.places = arrays, writes, axes, places
        self.sizes = sizes_of(np.broadcast_shapes(*(sizes_of(a.val.shape) for a in arrays)))
        self.at, self.started = 0, False

    def __repr__(self):
        return "np.nditer"

    @property
    def total(self) -> int:
        return int(np.prod(self.sizes, dtype=int))

    def index(self) -> tuple[int, ...]:
        """The place that is looked at."""
        places = np.unravel_index(self.at, [self.sizes[k] for k in self.axes]) if self.sizes else ()
        at = dict(zip(self.axes, map(int, places)))
        return tuple(at[k] for k in range(len(self.sizes)))

    def element(self, tx, k: int) -> Variable:
        array, index = self.arrays[k], self.index()
        shape = array.val.shape
        own = tuple(0 if n == 1 else i for i, n in zip(index[len(index) - len(shape) :], shape))
        made = array.getitem(tx, TupleVariable([ConstantVariable(n) for n in (*own, ...)]))
        if not self.writes[k]:
            mark_read_only(made.node)
        return made

    def value(self, tx) -> Variable:
        elements = [self.element(tx, k) for k in range(len(self.arrays))]
        return elements[0] if len(elements) == 1 else TupleVariable(elements)

    def step(self) -> bool:
        self.at = min(self.at + 1, self.total)
        return self.at < self.total

    def advance(self, tx):
        if self.started:
            self.step()
        self.started = True
        return self.value(tx) if self.at < self.total else None

    def enter(self, tx):
        return self

    def exit(self, tx) -> None:
        """Nothing was buffered."""

    def getattr(self, tx, name):
        if name == "multi_index" and self.places and self.at < self.total:
            return ConstantVariable(self.index())
        if name == "value" and self.at < self.total:
            return self.value(tx)
        known = {"finished": self.at >= self.total, "itersize": self.total, "nop": len(self.arrays), "has_multi_index": self.places,
                 "iterindex": self.at}  # fmt: skip
        if self.places:
            known |= {"shape": self.sizes, "ndim": len(self.sizes)}
        if name in known:
            return ConstantVariable(known[name])
        return super().getattr(tx, name)

    def getitem(self, tx, key):
        k = key.as_constant() if key.can_constant() else None
        if type(k) is not int or not -len(self.arrays) <= k < len(self.arrays) or self.at >= self.total:
            unsupported("numpy", "an element of np.nditer that isn't known", "NumPy says what it is.")
        return self.element(tx, k)

    def setitem(self, tx, key, value):
        self.getitem(tx, key).setitem(tx, ConstantVariable(...), value)

    def call_method(self, tx, name, args, kwargs):
        if name == "__exit__":
            return ConstantVariable(None)
        if args or kwargs or name not in ("iternext", "reset", "close", "__enter__"):
            return super().call_method(tx, name, args, kwargs)
        tx.side_effects.touch(self)
        if name == "iternext":
            return ConstantVariable(self.step())
        if name == "reset":
            self.at, self.started = 0, False
        return self if name == "__enter__" else ConstantVariable(None)

    def parts(self):
        if self.started or self.axes != tuple(range(len(self.sizes))):
            unsupported("numpy", "np.nditer leaves captured code", "It has begun, or goes another way than the arrays.")
        return iterator_at, [
            ListVariable(list(self.arrays)),
            ConstantVariable((tuple(self.writes), self.places, self.at)),
        ]


def iterator_at(arrays: list[np.ndarray], state: tuple) -> np.nditer:
    writes, places, at = state
    flags = ["multi_index", "zerosize_ok"] if places else ["zerosize_ok"]
    it = np.nditer(arrays, flags, [["readwrite" if w else "readonly"] for w in writes], order="C")
    for _ in range(at):
        it.iternext()
    return it


def _constants(v: Variable | None, default):
    if v is None:
        return default
    return (
        v.as_constant()
        if v.can_constant()
        else unsupported("numpy", f"np.nditer with {name_of(type(v))}", "Its options are not known.")
    )


def _axes(arrays: list[NumpyNdarrayVariable], order: str, ndim: int) -> tuple[int, ...] | None:
    """From the slowest to the fastest axis; None where NumPy has to say."""
    inner = tuple(range(ndim))
    if order in "CF":
        return inner if order == "C" else inner[::-1]
    if len(arrays) == 1:
        strides = strides_of(arrays[0])
        return tuple(sorted(inner, key=lambda k: -strides[k])) if all(s >= 0 for s in strides) else None
    contiguous = all(a.getattr(None, "flags").getattr(None, "c_contiguous").as_constant() for a in arrays)
    return inner if contiguous else None


@handles(np.nditer)
def _(tx, args, kwargs):
    names = ("op", "flags", "op_flags")
    given = {**dict(zip(names, map(tx.realize, args))), **{k: tx.realize(v) for k, v in kwargs.items()}}
    if len(args) > 3 or given.keys() - {*names, "order"} or "op" not in given:
        return None
    op = given["op"]
    arrays = list(op.elements) if isinstance(op, ListVariable | TupleVariable) else [op]
    if not arrays or not all(isinstance(a, NumpyNdarrayVariable) and not a.scalar for a in map(tx.realize, arrays)):
        return None
    arrays = [tx.realize(a) for a in arrays]
    flags = _constants(given.get("flags"), ())
    ways = [
        tuple(w) if not isinstance(w, str) else w
        for w in _constants(given.get("op_flags"), (("readonly",),) * len(arrays))
    ]
    if ways and all(isinstance(w, str) for w in ways):  # one for all
        ways = [tuple(ways)] * len(arrays)
    order = _constants(given.get("order"), "K")
    if (
        set(flags) - HARMLESS
        or len(ways) != len(arrays)
        or any(w not in ACCESS for w in ways)
        or order not in ("C", "F", "K")
    ):
        return None
    try:
        shape = np.broadcast_shapes(*(sizes_of(a.val.shape) for a in arrays))
    except ValueError:
        return None
    writes = [ACCESS[w] for w in ways]
    if any(w and tuple(a.val.shape) != shape for w, a in zip(writes, arrays)):
        return None
    if 0 in shape and "zerosize_ok" not in flags:
        return None
    axes = _axes(arrays, order, len(shape))
    return None if axes is None else ArrayIteratorVariable(arrays, writes, axes, "multi_index" in flags)
