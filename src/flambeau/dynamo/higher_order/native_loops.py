"""Loops that become one node of the graph instead of being unrolled: those over arrays and numbers that flambeau.loops understands.

At the start of a loop over a long range, or of a while loop, the loop is compiled from its bytecode with the types that its variables have
there. What it writes goes back into the arrays, the numbers that are used later are results of the node.
"""

from __future__ import annotations

import functools
import itertools
import math
import types
from typing import Any

import numpy as np

from flambeau.base import logs
from flambeau.base.symint import sym_min
from flambeau.base.weak import remembered
from flambeau.loops import Declined, compile_region, operator, text
from flambeau.loops.bytecode import binary_name
from flambeau.loops.containers import MOST, MOST_ALIKE, Given
from flambeau.loops.emitter import constant
from flambeau.loops.inlining import Callee
from flambeau.loops.operands import Generator, GivenArray, Inputs, Items, OverItems, OverRange, Written
from flambeau.loops.region import find
from flambeau.loops.values import (
    COLLECTED,
    DONE,
    RETURNED,
    TABLES,
    Call,
    ContainerType,
    Known,
    NoValue,
    Symbolic,
    TupleType,
    memory_type,
)

from ...base.records import slotted
from ..bytecode.instructions import decode, live_locals
from ..config import config
from ..exc import SkipFrame, Unsupported
from ..graph.effects import has_effects, written_inputs
from ..guards.source import ConstSource, GetAttrSource
from ..numpy import numpy_bridge
from ..rules.reflect import name_of
from ..rules.trace_rules import inline_reason
from ..utils import counters
from ..variables.base import Variable
from ..variables.containers.deques import DequeVariable
from ..variables.containers.dicts import DictVariable
from ..variables.containers.grown import GrownVariable, grown
from ..variables.containers.lists import ListVariable, RangeVariable, TupleVariable
from ..variables.containers.sets import SetVariable
from ..variables.functions.python_functions import NestedFunctionVariable, UserFunctionVariable
from ..variables.iterators.builtin_iterators import EnumerateVariable, ZipVariable
from ..variables.iterators.container_iterators import NumpyIteratorVariable
from ..variables.iterators.protocol import IteratorVariable
from ..variables.numpy.places import IndicesVariable
from ..variables.numpy.random_generators import DrawVariable, NumpyGeneratorVariable
from ..variables.tensors.tensor import NumpyNdarrayVariable, TensorVariable, as_ndarray
from ..variables.values.constant import ConstantVariable
from ..variables.values.given_text import GivenTextVariable, TextIteratorVariable
from ..variables.values.graph_numbers import NumberVariable, complex_of
from ..variables.values.symbolic import SymbolicRangeVariable, SymbolicVariable
from .compiled_regions import CompiledRegions

__all__ = [
    "Trip", "loop_starts", "reads_arrays", "recurses", "trip_of", "try_arrays", "try_collecting", "try_function", "try_range", "try_while",
]  # fmt: skip

LOG = logs.artifact("loops", "which loops became native ones, and why others did not")
NOTES: dict[str, str] = {}
"""What became of each loop that was looked at since explain() last began, by function, file and line."""
WORTH = 1000  # instructions that unrolling would interpret
TOO_MANY = 100_000  # instructions that aren't unrolled: minutes
MANY = 50  # turns of a while loop over numbers
OF_NUMBERS = frozenset(
    "pi e inf nan sqrt exp log log2 log10 sin cos tan floor ceil abs int64 float64 int32 float32 bool_".split()
)
"""Names of NumPy in loops over numbers alone, too."""
WORTH_WRITING = 100  # the same where parts of arrays are written: unrolled, each write is a new array


@remembered
def loop_starts(code) -> frozenset[int]:
    """Instructions that are jumped back to, other than those of for loops: where while loops start."""
    insts = decode(code)
    return frozenset(
        i.target for i in insts if i.target is not None and i.target < i.index and insts[i.target].name != "FOR_ITER"
    )


def _describe(tx, operands: dict, v):
    """A variable as flambeau.loops wants it; arrays and generators are entered in ``operands``."""
    v = tx.realize(v)
    if isinstance(v, GivenTextVariable):
        return Written(_describe(tx, operands, v.codes()))
    if isinstance(v, NumberVariable):
        raise Declined("a number that another loop computed")
    if isinstance(v, NumpyNdarrayVariable):
        dtype = numpy_bridge.np_dtype(v.val)
        memory_type(dtype)
        if v.val.requires_grad and not _records():
            raise Declined("a gradient is asked for, and native_loop_gradients is off")
        ndim = len(v.val.shape)
        if ndim == 0 and not v.scalar:
            raise Declined("an array without dimensions")
        operands[id(v.node)] = v
        dense = ndim > 0 and v.val.stride()[-1] == 1
        return GivenArray(v.node, dtype, ndim, dense, tuple(map(_size, v.val.shape)))
    if type(v) is TupleVariable and v.cls is tuple:
        return Items(tuple(_describe(tx, operands, item) for item in v.elements))
    if isinstance(v, NumpyGeneratorVariable | DrawVariable):
        owner = v if isinstance(v, NumpyGeneratorVariable) else v.owner
        operands[id(owner.node)] = owner
        legacy = owner.cls is np.random.RandomState
        return Generator(owner.node, tuple(map(_size, owner.val.shape)), legacy, None if owner is v else v.name)
    if isinstance(v, TensorVariable):
        raise Declined("a tensor")
    if isinstance(v, SymbolicVariable):
        kind = v.python_type()
        if kind is bool:
            raise Declined("a bool that is a symbol")
        return _whole(v) if kind is int else Symbolic(v, np.dtype(np.float64))
    if v.is_constant():
        value = v.as_constant()
        if type(value) in (bool, int, float, complex):
            if type(value) is int and not -(1 << 62) < value < 1 << 62:
                raise Declined("a very large integer")
            return constant(value)
        if isinstance(value, (np.bool_, np.integer, np.inexact)):
            memory_type(value.dtype)
            return constant(value)
        return Known(value, v)
    if isinstance(v, NestedFunctionVariable):
        return Known(v, v)
    value = getattr(v, "value", None)
    if value is None:
        value = getattr(v, "fn", None)
    if value is None:
        raise Declined(f"a value of class {name_of(v.python_type())}")
    return Known(value, v)


_KINDS: dict[type, str] = {ListVariable: "list", DequeVariable: "deque", DictVariable: "dict", SetVariable: "set"}


def _container(v, described) -> Given | None:
    """A list, deque, dict or set of a few numbers that is made in the frame, which a loop may change."""
    kind = _KINDS.get(type(v))
    if (
        kind is None
        or getattr(v, "maxlen", None) is not None
        or v.source is not None
        or v.python_type().__name__ != kind
    ):
        return None
    items = [*v.entries.values()] if kind in TABLES else v.elements
    long = kind == "list" and MOST < len(items) <= MOST_ALIKE
    by = _step_of(items) if long else None
    if (len(items) > MOST and by is None) or (kind == "dict" and (v.base is not None or v.factory is not None)):
        return None

    def item(x):
        return Items(tuple(map(item, x.elements))) if type(x) is TupleVariable and x.cls is tuple else _number_of(x)

    if kind == "list" and items and not all(map(_is_number, items)):
        return Given(kind, (), None, True)
    return Given(kind, tuple(Items(tuple(map(item, x))) if kind == "dict" else item(x) for x in items), by)


def _is_number(x) -> bool:
    """Whether it is one that a container holds, or a tuple of such."""
    if type(x) is TupleVariable and x.cls is tuple:
        return all(map(_is_number, x.elements))
    known = x.is_constant() and type(x.as_constant()) in (bool, int, float)
    return known or (x.is_constant() and type(x.as_constant()) is str and len(x.as_constant()) == 1)


def _step_of(items: list) -> int | None:
    """By how much the known numbers of a list grow: 0 where they are one number, as in ``[0.0] * n``; None where that differs."""
    if not all(x.is_constant() and type(x.as_constant()) in (bool, int, float) for x in items):
        return None
    numbers = [x.as_constant() for x in items]
    if len({(type(n), repr(n)) for n in numbers}) == 1:
        return 0
    if any(type(n) is not int for n in numbers):
        return None
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else None


def _number_of(x):
    if x.is_constant() and type(x.as_constant()) is str and len(x.as_constant()) == 1:
        return text.character(Known(x.as_constant()))
    if not x.is_constant() or type(x.as_constant()) not in (bool, int, float):
        raise Declined("a container of other things than known numbers")
    if type(x.as_constant()) is int and not -(1 << 62) < x.as_constant() < 1 << 62:
        raise Declined("a very large integer")
    return constant(x.as_constant())


def _records() -> bool:
    """Whether loops are native where a gradient is asked for."""
    return config.native_loop_gradients


def _size(n):
    """A size as a number, or as an expression; equal ones are one object."""
    return n if type(n) is int else n.expr


def _whole(v: SymbolicVariable) -> Symbolic:
    """An int that differs between calls, which may be the size of an array or near one."""
    return Symbolic(v, np.dtype(np.int64), _size(v.number))


def _stays(where: str, reason: str) -> bool:
    LOG("loop in %s stays Python: %s", where, reason)
    if not NOTES.get(where, "").startswith("native"):
        NOTES[where] = f"stays Python: {reason}"
    return False


def _with_tape(done, compiled):
    """(the loop, the same with a tape), which are called with the same numbers. Declined where a gradient can't be taken."""
    if done.drawn:
        raise Declined("a gradient is asked for, and the loop draws random numbers")
    if any(weak is True and dtype.kind == "f" for _, dtype, weak in done.results):
        raise Declined("a gradient is asked for, and the loop computes a float of Python's")
    done, recorded = compiled(False), compiled(True)
    if any(len(getattr(done, what)) != len(getattr(recorded, what)) for what in ("arrays", "ints", "floats")):
        raise Declined("a gradient is asked for, and the loop reads other numbers then")
    return done, recorded


@slotted(frozen=False)
class Compiled:
    """A loop that flambeau.loops has compiled, with what is around it in the program."""

    done: Any
    recorded: Any
    """The same loop with a tape, where a gradient is asked for."""
    first: bool
    """Whether nothing has happened in the graph before it."""
    key: str
    where: str


def _native(tx, header: int, operands: dict, trip, count=None, vary: bool = False) -> bool:
    """``operands``: the arrays and generators that were described so far, by the ids of their nodes. ``count``: the number of turns, an int or a
    SymInt, where it is known. ``vary``: whole numbers among the locals are operands."""
    where, key = _where(tx, header), _key(tx, header)
    site, one_graph = operator.SITES[key], tx.output.compiler.fullgraph or tx.output.modes.transforms
    if not site.native:
        return _stays(where, "it met what native loops have no place for when it ran")
    if site.reshapes and one_graph:
        return _stays(where, "it leaves an array in another shape, which breaks the graph")
    first = not has_effects(tx.output) and not written_inputs(tx.output.recorder.inputs)
    try:
        done, recorded = _compiled(tx, header, operands, _inputs(tx, header, operands, trip, count, first, vary))
    except Declined as reason:
        return _stays(where, str(reason))
    except Unsupported as e:
        return _stays(where, e.reason.reason)
    loop = Compiled(done, recorded, first, key, where)
    given = [operands[id(node)] for node in done.arrays]
    _place_results(tx, loop, given, _call(tx, loop, given), header)
    counters["stats"]["native_loops"] += 1
    note = "native, on several threads" if done.in_order is None else f"native, on one thread: {done.in_order}"
    LOG("loop in %s is %s", where, note)
    NOTES[where] = note
    tx.ip = done.exit
    if trip is not None:
        tx.pop()  # what it runs over
    if done.returned is not None:
        insts = tx.insts
        tx.push(_returned(tx, RETURNED, done.returned))
        tx.ip = next(i.index for i in insts if i.name == "RETURN_VALUE" and i.handler == insts[header].handler)
    return True


def _where(tx, header: int) -> str:
    return f"{tx.code.co_name} ({tx.code.co_filename}:{tx.insts[header].line})"


def _key(tx, header: int) -> str:
    """Of the loop in SITES."""
    return f"{_where(tx, header)} {header}"


def _inputs(tx, header: int, operands: dict, trip, count, first: bool, vary: bool) -> Inputs:
    """How flambeau.loops asks for what the loop reads."""
    live = live_locals(tx.code, header)

    def described(v):
        return _describe(tx, operands, v)

    def local(name):
        missing = name not in tx.locals or tx.locals[name] is None
        if missing or (name not in live and name != COLLECTED):
            raise NoValue
        v = tx.realize(tx.locals[name])
        if vary and _is_whole_number(v):
            return Symbolic(ConstantVariable(v.as_constant()), np.dtype(np.int64))
        return _container(v, described) or described(v)

    def function(known):
        f = known.origin
        nested = isinstance(f, NestedFunctionVariable)
        if not nested and (not isinstance(f, UserFunctionVariable) or inline_reason(f.fn)[0] != "inline"):
            raise Declined(f"a call of {getattr(known.value, '__qualname__', known.value)}")
        frame = tx.frame_of(f, {})
        named = f.code.co_varnames[: f.code.co_argcount]
        defaults = f.defaults(tx)
        return Callee(
            f.code,
            frame.insts,
            lambda name: described(frame.load_global(name)),
            lambda name: described(_in_cell(frame, name)),
            {
                name: functools.partial(described, v)
                for name, v in (*zip(named[len(named) - len(defaults) :], defaults), *f.kwdefaults(tx).items())
            },
        )

    return Inputs(
        local,
        lambda name: described(tx.load_global(name)),
        lambda name: described(_in_cell(tx, name)),
        lambda known, name: described(known.origin.getattr(tx, name)),
        function,
        trip,
        tx.code.co_consts,
        first,
        None if count is None else lambda period: _remainder(count, period),
        decode,
        COLLECTED in tx.locals,
        live_locals,
        config.numpy_floating_point_errors == "exact",
        operator.SITES[_key(tx, header)].reshapes,
    )


def _in_cell(frame, name: str):
    """What a variable holds that functions share."""
    if name not in frame.cells:
        raise Declined(f"a function within shares {name}, an argument")
    return frame.cells[name].get(frame)


def _compiled(tx, header: int, operands: dict, inputs: Inputs):
    """(the loop, the same with a tape or None). Declined for one that stays Python."""
    options = tx.output.compiler.options
    fast, spread, reordered = (
        bool(options.get("fastmath")),
        options.get("parallel") is not False,
        options.get("parallel"),
    )

    def compiled(spread, tape=False, inputs=inputs):
        live = functools.partial(live_locals, tx.code)
        return compile_region(tx.insts, header, inputs, live, fast, spread, tape, reordered is True)

    if tx.parent is not None and inputs.trip is None and not inputs.collects:
        key = tx.code, header, fast, spread, reordered, inputs.rerunnable, inputs.reshapes
        tx.output.regions = tx.output.regions or CompiledRegions()
        done = tx.output.regions.compiled(key, inputs, lambda heard: compiled(spread, inputs=heard))
    else:
        done = compiled(spread)
    if not done.arrays and not done.grown and all(name == DONE for name, *_ in done.results):
        raise Declined("it computes nothing")
    _refuse_shared_memory([operands[id(node)] for node in done.arrays], done.written)
    asked = any(operands[id(node)].val.requires_grad for node in done.arrays)
    if not asked and not tx.output.modes.transforms:
        return done, None
    try:
        return _with_tape(done, lambda tape: compiled(False, tape))
    except Declined:
        if asked:
            raise
    return done, None


def _refuse_shared_memory(operands: list, written: list[int]) -> None:
    """Declined where an operand that is written is a view of the same elements as another one: results are arrays of their own."""
    for n in written:
        for k, other in enumerate(operands):
            if k != n and isinstance(other, NumpyNdarrayVariable) and _share_memory(operands[n].val, other.val):
                raise Declined("two of its arrays share memory, and one is written")


def _share_memory(a, b) -> bool:
    """Whether two tensors have elements in common."""
    if a._storage is not b._storage:
        return False
    try:
        return np.shares_memory(_Described(a).array(), _Described(b).array(), max_work=10_000)
    except np.exceptions.TooHardError:
        return True


class _Described:
    """Where the elements of a tensor lie, as NumPy's array interface tells it; nothing is read there. Sizes that are symbols become constants."""

    def __init__(self, t):
        dtype = numpy_bridge.np_dtype(t)
        shape, strides = (tuple(map(_number, n)) for n in (t.shape, t.stride()))
        self.__array_interface__ = {
            "data": ((1 << 40) + _number(t.storage_offset()) * dtype.itemsize, True),
            "shape": shape,
            "strides": tuple(dtype.itemsize * s for s in strides),
            "typestr": dtype.str,
            "version": 3,
        }

    def array(self) -> np.ndarray:
        return np.asarray(self)


def _number(n) -> int:
    return n if type(n) is int else SymbolicVariable(n).as_constant()  # a guard


def _call(tx, loop: Compiled, operands: list) -> list:
    """The node of the loop: its results, those written over first."""
    done, output = loop.done, tx.output
    site = ConstSource(operator.SITES[loop.key], f"loop {loop.key}")
    output.guard(GetAttrSource(site, "native"), "EQUALS_MATCH", True)
    output.guard(GetAttrSource(site, "reshapes"), "EQUALS_MATCH", operator.SITES[loop.key].reshapes)
    output.draws = output.draws or bool(done.drawn)
    given = list(operands)
    if loop.recorded is not None:  # a derivative needs them as they were
        for n in done.written:
            given[n] = output.call_in_graph(tx, "call_method", "clone", [operands[n]], {})
    cached = output.compiler.options.get("cache") is not False
    program = operator.program(done, loop.first, cached, loop.recorded, loop.key)
    return output.call_in_graph(
        tx,
        "call_function",
        operator.drawing_loop if done.drawn else operator.loop,
        [
            ListVariable(given),
            ListVariable([n if isinstance(n, Variable) else ConstantVariable(n) for n in done.ints]),
            ListVariable([x if isinstance(x, SymbolicVariable) else ConstantVariable(x) for x in done.floats]),
            ConstantVariable(program),
        ],
        {},
    ).items(tx)


def _place_results(tx, loop: Compiled, operands: list, outs: list, header: int) -> None:
    """Arrays that were written over, and the locals behind the loop."""
    done = loop.done
    for n, new in zip(done.written, outs):
        operands[n].setitem(tx, ConstantVariable(...), as_ndarray(new, scalar=False))
    before = dict(tx.locals)
    for name in find(tx.insts, header).assigned(tx.insts):
        tx.locals.pop(name, None)
    rest = iter(outs[len(done.written) :])
    for name, n in done.same:
        tx.locals[name] = operands[n]
    for name, _ in done.fresh:
        tx.locals[name] = as_ndarray(next(rest), scalar=False)
    for name, dtype, weak in done.results:
        out = next(rest)
        if dtype.kind == "c":
            out = tx.output.call_in_graph(tx, "call_function", complex_of, [out, next(rest)], {})
        if weak is None and loop.recorded is not None and dtype.kind == "f":
            next(rest)  # whose number it is doesn't matter where gradients go through it: NumPy's
            tx.locals[name] = as_ndarray(out)
        elif weak is not False:
            kind = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[dtype.kind]
            tx.locals[name] = NumberVariable(out.node, out.val, kind, next(rest).node if weak is None else None)
        else:
            tx.locals[name] = as_ndarray(out)
    for made in done.grown:
        name = made.name
        if not made.given:
            tx.locals[name] = GrownVariable()
        grown(tx.realize(before[name]) if made.given else tx.locals[name], next(rest), made.kind, name in done.behind)
    for name, of in done.held:
        tx.locals[name] = before[of]
    for name, t in done.tuples:
        tx.locals[name] = _returned(tx, name, t)


def _returned(tx, name: str, t):
    """What the loop returns from the function."""
    if isinstance(t, TupleType):
        items = [_returned(tx, f"{name}.{k}", item) for k, item in enumerate(t.items)]
        return ListVariable(items) if t.listed else TupleVariable(items)
    if isinstance(t, ContainerType):
        return tx.locals[name]
    if isinstance(t, Known):
        return t.origin if t.origin is not None else tx.wrap_known(t.value)
    return tx.locals.pop(name)


def reads_arrays(tx, header: int) -> bool:
    """Whether something that the loop reads may be an array or a random generator: a quick look before it is compiled."""
    try:
        blocks = [*find(tx.insts, header).blocks.items()]
    except Declined:
        if tx.insts[header].name != "FOR_ITER":
            return False
        blocks = [(header + 1, tx.insts[header].target)]
    return any(_reads_array(tx, i) for start, end in blocks for i in tx.insts[start:end])


def _reads_array(tx, i) -> bool:
    if i.name == "LOAD_GLOBAL" and tx.globals.get(i.argval) is np:
        return tx.insts[i.index + 1].argval not in OF_NUMBERS
    if i.name in ("LOAD_DEREF", "LOAD_CLOSURE") and i.argval in tx.cells:
        v = tx.cells[i.argval].get(tx)
    elif i.name == "LOAD_FAST":
        v = tx.locals.get(i.argval)
    else:
        return False
    if v is not None and _may_be_text(tx, v):
        return True
    if v is not None and isinstance(v.unwrap(), NumpyNdarrayVariable | NumpyGeneratorVariable | DrawVariable):
        return True
    return isinstance(getattr(v, "value", None), np.ndarray | np.random.Generator | np.random.RandomState)


def _may_be_text(tx, v) -> bool:
    return isinstance(tx.realize(v) if v.python_type() is str else None, GivenTextVariable)


def try_range(tx, v: RangeVariable) -> bool:
    """At GET_ITER of a range: run the loop natively when it is long. True when that happened; the range is gone and control is behind
    the loop then."""
    header = tx.ip
    if not config.native_loops or tx.insts[header].name != "FOR_ITER":
        return False
    trip = _trip(v)
    if trip is None:
        return False
    *ends, count = trip
    reads = reads_arrays(tx, header)
    worth = _work(tx, header, count)
    if not _is_worth_it(tx, header, worth, count):
        return False
    if not reads and count < WORTH and worth < TOO_MANY and not recurses(tx, header):
        return False
    return _native(tx, header, {}, OverRange(*ends), _turns(*ends)) or (reads and _left_to_python(tx, header, count))


@slotted
class Trip:
    """What a loop runs over: ``what`` as Inputs has it, about how many turns, the exact number where it is known, and what it reads."""

    what: OverRange | OverItems
    about: int
    count: Any
    operands: dict


def trip_of(tx, v) -> Trip | None:
    """Of a range, or of arrays; None for what is empty, or no native loop's."""
    if isinstance(v, RangeVariable):
        trip = _trip(v)
        return trip and Trip(OverRange(*trip[:3]), trip[3], _turns(*trip[:3]), {})
    operands: dict = {}
    try:
        found = _iterable(tx, operands, v)
    except Declined:
        return None
    return found and Trip(OverItems(found[0]), found[1], found[2], operands)


def try_collecting(tx, header: int, trip: Trip) -> bool:
    """Run the loop of a comprehension natively, which fills the local COLLECTED."""
    return _native(tx, header, trip.operands, trip.what, trip.count)


def _turns(start, stop, step: int):
    """The number of turns of a range that isn't empty."""
    start, stop = (end.token.number if isinstance(end, Symbolic) else end for end in (start, stop))
    return (stop - start + step - (1 if step > 0 else -1)) // step


def _remainder(count, period: int) -> int:
    return _number(count % period)


def _is_worth_it(tx, header: int, work: int, count: int) -> bool:
    """Whether unrolling the loop would be long, or has turned out to break the graph. A loop of one turn is none."""
    body = tx.insts[header + 1 : tx.insts[header].target]
    writes = count > 1 and any(map(_writes, body))
    return tx.output.resumes.short_loops or work >= (WORTH_WRITING if writes else WORTH)


def _work(tx, header: int, count: int) -> int:
    """About how many instructions ``count`` turns are."""
    body = tx.insts[header + 1 : tx.insts[header].target]
    inner, size = len({i.target for i in body if i.target is not None and header < i.target < i.index}), len(body)
    for code in _called(tx, body):
        insts = decode(code)
        recursive = code.co_name in code.co_names
        inner += max(min(sum(i.target is not None and i.target <= i.index for i in insts), 2), recursive)
        size += len(insts)
    return count * size * 10**inner


def recurses(tx, header: int) -> bool:
    """Whether the body calls a function that calls itself: the turns are more than they look, and each call would be a node of its own."""
    body = tx.insts[header + 1 : tx.insts[header].target]
    return any(code.co_name in code.co_names for code in _called(tx, body))


def _called(tx, body) -> set[types.CodeType]:
    """Functions of the program's that the body names."""
    named = (tx.globals.get(i.argval) for i in body if i.name == "LOAD_GLOBAL")
    return {f.__code__ for f in named if type(f) is types.FunctionType and f.__globals__ is tx.globals}


def _left_to_python(tx, header: int, count: int) -> bool:
    """Have the frame run plainly whose loop over arrays stays Python, where unrolling it would take minutes and nothing (a derivative, ``fullgraph``)
    wants one graph. Else False."""
    compiler, body = tx.output.compiler, tx.insts[header + 1 : tx.insts[header].target]
    one_graph = compiler.fullgraph or tx.output.modes.transforms
    if one_graph or count * len(body) < TOO_MANY:
        return False
    raise SkipFrame(
        f"a loop of {count} turns over arrays in line {tx.insts[header].line} is no native one, and too long to be unrolled"
    )


def try_arrays(tx, v) -> bool:
    """The same for an array, or enumerate() or zip() of arrays of which nothing has been taken."""
    header = tx.ip
    if not config.native_loops or tx.insts[header].name != "FOR_ITER":
        return False
    if isinstance(v, IteratorVariable) and any(v is other for other in (*tx.locals.values(), *tx.stack[:-1])):
        return False  # what is left of it may be asked for later
    operands: dict = {}
    try:
        found = _iterable(tx, operands, v)
    except Declined:
        return False
    if found is None or not _is_worth_it(tx, header, _work(tx, header, found[1]), found[1]):
        return False
    return _native(tx, header, operands, OverItems(found[0]), found[2])


def _iterable(tx, operands: dict, v):
    """(what flambeau.loops is to iterate over, about how many elements, how many), or None. It isn't empty."""
    if isinstance(v, NumpyIteratorVariable) and v.over is not None and not v.at:
        v = v.over
    if isinstance(v, GivenTextVariable):
        v = v.iter(tx)
    if isinstance(v, TextIteratorVariable) and v.over is not None:
        n, codes = v.text.size(), _describe(tx, operands, v.text)
        return Call(reversed, (codes,)) if v.down else codes, n if type(n) is int else n.env.hint(n.expr), n
    if v.is_constant() and type(v.as_constant()) is bytes and v.as_constant():
        n = len(v.as_constant())
        return Known(v.as_constant(), v), n, n
    if isinstance(v, NumpyNdarrayVariable) and v.val.ndim:
        n = v.val.shape[0]
        if not n > 0:
            return None
        return _describe(tx, operands, v), n if type(n) is int else n.env.hint(n.expr), n
    if isinstance(v, EnumerateVariable):
        inner = _iterable(tx, operands, v.it)
        return inner and (Call(enumerate, (inner[0], constant(v.at))), *inner[1:])
    if isinstance(v, IndicesVariable) and not v.at and 0 not in v.sizes:
        n = math.prod(v.sizes)
        return Call(np.ndindex, tuple(map(constant, v.sizes))), n, n
    if not isinstance(v, ZipVariable) or v.strict:
        return None
    inner = [_iterable(tx, operands, it) for it in v.its]
    if not inner or None in inner:
        return None
    counts = [n for *_, n in inner]
    return Call(zip, tuple(item for item, *_ in inner)), min(n for _, n, _ in inner), functools.reduce(sym_min, counts)


def _writes(inst) -> bool:
    """Whether an instruction may write into an array."""
    return inst.name in ("STORE_SUBSCR", "STORE_SLICE") or (
        inst.name == "BINARY_OP" and binary_name(inst).endswith("=")
    )


def _trip(v: RangeVariable):
    """(start, stop, step, about how many turns) of a range that isn't empty; its ends may be symbols."""
    if not isinstance(v, SymbolicRangeVariable) or v.known:
        r = v.value
        return (r.start, r.stop, r.step, len(r)) if r else None
    start, stop, step = v.ends()
    if isinstance(step, SymbolicVariable):
        return None
    step = step.as_constant()
    numbers = [e.number if isinstance(e, SymbolicVariable) else e.as_constant() for e in (start, stop)]
    if step == 0 or not ((numbers[0] < numbers[1]) if step > 0 else (numbers[0] > numbers[1])):
        return None
    hints = [
        e.number.env.hint(e.number.expr) if isinstance(e, SymbolicVariable) else e.as_constant() for e in (start, stop)
    ]
    if any(type(h) is not int for h in hints):
        return None
    ends = [_whole(e) if isinstance(e, SymbolicVariable) else e.as_constant() for e in (start, stop)]
    return *ends, step, len(range(*hints, step))


def try_while(tx, again: bool = False) -> bool:
    """At the start of a while loop's body, when its condition has just been found true, or is a true constant. ``again``: not for the first turn.
    A loop over numbers alone is worth it once it has had many turns; what they came to is what the native loop begins with."""
    header = tx.ip
    if not config.native_loops or (again and header not in tx.turns):
        return False
    if not again and reads_arrays(tx, header):
        tx.turns.pop(header, None)
    else:
        tx.turns[header] = tx.turns.get(header, 0) + 1
        if tx.turns[header] != MANY:
            return False
    return _native(tx, header, {}, None)


def try_function(tx) -> bool:
    """At the first instruction of a function: run all of it natively. In a function that another one calls, whole numbers are operands: the same
    code serves all calls. Where the code wants to know one (an axis), it is known."""
    vary = tx.parent is not None and any(map(_is_whole_number, tx.locals.values()))
    return (vary and _native(tx, tx.ip, {}, None, vary=True)) or _native(tx, tx.ip, {}, None)


def _is_whole_number(v) -> bool:
    """Whether a variable is an int that a native loop may be handed as an operand."""
    known = v is not None and v.is_constant() and type(v.as_constant()) is int
    return known and -(1 << 62) < v.as_constant() < 1 << 62
