"""NumPy's random generators as compiled code knows them: a small table of numbers for each, an array of int64 in memory.

A graph is given the table as a tensor. Python finds the generator by it (:func:`stream_of`); a native loop reads from it where the bit generator
lies, whose functions give the next numbers (the struct ``bitgen_t`` of NumPy's documented C interface), and the addresses of NumPy's
own distributions (those that ``numpy/random/distributions.h`` declares, in the module where NumPy's examples find them). What the table
belongs to lives as long as the table.

A graph that draws is run under a journal (:func:`journaled`): when it ends with an error, generators are set back to where they
stood, as the arrays it writes are, so that it may be run again plainly.
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import functools
import sys
import threading
import weakref

import numpy as np

from ... import _C, _frame
from ...base.foreign import address_of
from . import ziggurat
from .twister import Twister, spare_place

__all__ = [
    "DISTRIBUTIONS",
    "Stream",
    "address_at",
    "classes",
    "generator_of",
    "journaled",
    "stream_of",
    "table_of",
    "ziggurat_tables",
]

DISTRIBUTIONS = (
    "random_standard_normal",
    "random_standard_exponential",
    "random_gamma",
    "random_beta",
    "random_poisson",
    "random_binomial",
)
OWNER, BITGEN, HAS_GAUSS, GAUSS, ZIGGURAT, FIRST = range(6)
KEPT = 64  # tables of generators that calls of the last time were given


def classes() -> tuple[type, ...]:
    """NumPy's classes of generators; none before its random module is loaded, which few programs need: NumPy imports it when it is asked for."""
    return (np.random.Generator, np.random.RandomState) if "numpy.random" in sys.modules else ()


@functools.cache
def _addresses() -> tuple[int, ...]:
    """Where NumPy's distributions are; 0 for those that this NumPy doesn't export."""
    try:
        library = ctypes.CDLL(np.random._generator.__file__)
    except OSError:
        return (0,) * len(DISTRIBUTIONS)
    found = [getattr(library, name, None) for name in DISTRIBUTIONS]
    return tuple(0 if f is None else address_of(f) for f in found)


def ziggurat_tables() -> np.ndarray | None:
    """What normal numbers are made with in native code; None where NumPy's own function has to be called."""
    address = _addresses()[DISTRIBUTIONS.index("random_standard_normal")]
    return ziggurat.tables(address) if address else None


def address_at(distribution: str) -> int | None:
    """The place in a table of a distribution's address; None when there is none."""
    n = DISTRIBUTIONS.index(distribution)
    return FIRST + n if _addresses()[n] else None


def bit_generator(generator):
    return generator.bit_generator if isinstance(generator, np.random.Generator) else generator._bit_generator


class Stream:
    """A generator and its table."""

    def __init__(self, generator):
        self.generator, self.bits = generator, bit_generator(generator)
        self.numbers = np.array([id(self), self.bits.ctypes.bit_generator.value, 0, 0, 0, *_addresses()], np.int64)
        self.__array_interface__ = self.numbers.__array_interface__
        _streams[id(self)] = self

    @property
    def legacy(self) -> bool:
        return isinstance(self.generator, np.random.RandomState)

    @functools.cached_property
    def twister(self) -> Twister | None:
        """The memory of a RandomState over MT19937, whose own functions take longer than a thousand draws; None for others."""
        plain = type(self.generator) is np.random.RandomState and type(self.bits) is np.random.MT19937
        return Twister(self.generator, self.bits) if plain and spare_place() is not None else None

    def state(self):
        if self.twister is not None:
            return self.twister.state()
        return self.generator.get_state(legacy=False) if self.legacy else self.bits.state

    def restore(self, state) -> None:
        if isinstance(state, bytes):
            self.twister.restore(state)
        elif self.legacy:
            self.generator.set_state(state)
        else:
            self.bits.state = state

    @contextlib.contextmanager
    def drawn_from(self, normals: bool):
        """While native code draws. ``normals``: normal numbers too, for which RandomState keeps a spare one and Generator has its tables."""
        if normals and not self.legacy and (tables := ziggurat_tables()) is not None:
            self.numbers[ZIGGURAT] = tables.ctypes.data
        with self.bits.lock:
            state = self.remember()
            if not (self.legacy and normals):
                yield
            elif self.twister is not None:
                spare = self.numbers[HAS_GAUSS : GAUSS + 1]
                self.twister.read_spare(spare)
                yield
                self.twister.write_spare(spare)
            else:
                state = state or self.state()
                self.numbers[HAS_GAUSS] = before = state["has_gauss"]
                self.numbers[GAUSS : GAUSS + 1].view(np.float64)[0] = state["gauss"]
                yield
                if self.numbers[HAS_GAUSS] or before:
                    state = self.state()
                    state["has_gauss"] = int(self.numbers[HAS_GAUSS])
                    state["gauss"] = float(self.numbers[GAUSS : GAUSS + 1].view(np.float64)[0])
                    self.restore(state)

    def remember(self):
        """Something is about to be drawn. The state, where it had to be asked for."""
        journal = _here.journal
        if journal is None or self in journal:
            return None
        journal[self] = state = self.state()
        return state


_streams: weakref.WeakValueDictionary[int, Stream] = weakref.WeakValueDictionary()
_tables: collections.OrderedDict[int, tuple[Stream, _C.TensorBase]] = collections.OrderedDict()


class _Here(threading.local):
    journal: dict | None = None  # of the call that is running on this thread


_here = _Here()


def table_of(generator) -> _C.TensorBase:
    """The table of a generator, as a tensor."""
    stream, table = _tables.get(id(generator), (None, None))
    if stream is not None and stream.generator is generator and stream.bits is bit_generator(generator):
        return table
    return new_table(generator)


def new_table(generator) -> _C.TensorBase:
    stream = Stream(generator)
    table = _C.from_array(np.asarray(stream))  # which holds the stream
    _tables[id(generator)] = stream, table
    while len(_tables) > KEPT:
        _tables.popitem(last=False)
    return table


def stream_of(table: np.ndarray) -> Stream:
    """What a table belongs to."""
    stream = _streams.get(int(table[OWNER]))
    if stream is None:
        raise RuntimeError("a random generator of a compiled function is gone")
    return stream


def generator_of(table: _C.TensorBase):
    return stream_of(table._array).generator


def bits_of(table: _C.TensorBase):
    return stream_of(table._array).bits


def journaled(fn):
    """``fn``, a graph, with generators set back when it raises an error, or floating-point errors that NumPy tells of."""

    @functools.wraps(fn, updated=())
    def run(*args):
        outer = _here.journal
        _here.journal = journal = {}
        try:
            out = fn(*args)
            _frame.tell_floating_errors()
        except BaseException:
            for stream, state in journal.items():
                stream.restore(state)
            raise
        finally:
            _here.journal = outer
        if outer is not None:
            for stream, state in journal.items():
                outer.setdefault(stream, state)
        return out

    run.keeps_inputs_at_errors = getattr(fn, "keeps_inputs_at_errors", False)
    run.untouched_at_errors = getattr(fn, "untouched_at_errors", False)
    return run
