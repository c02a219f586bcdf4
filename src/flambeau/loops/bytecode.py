"""What each instruction of a loop's bytecode does to the stack, the variables and the text, in the version of CPython that runs."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.records import replace
from ..inductor.assembly import instructions as llvm
from . import (
    arithmetic,
    arrays,
    assembly,
    byte_strings,
    comparisons,
    conversions,
    gathers,
    generators,
    list_functions,
    numpy_calls,
    places,
    reductions,
    text,
    tuples,
    wrapping,
)
from . import bounds as between
from .arrays import OnElements
from .containers import Containers
from .emitter import I64, constant
from .inlining import Callee, Inlining
from .machine import InterpreterPart, Machine
from .operands import Operands
from .values import (
    COLLECTED,
    ArrayView,
    Container,
    Declined,
    Expression,
    Known,
    LocalFunction,
    Method,
    Null,
    Scalar,
    ScalarType,
    Slice,
    Stream,
    Tuple,
)
from .variables import Variables

__all__ = ["Instructions", "binary_name"]


class Instructions(InterpreterPart):
    """What isn't a call or an iterator's. ``attribute``: of what is known, see Inputs."""

    def __init__(
        self,
        machine: Machine,
        operands: Operands,
        variables: Variables,
        inlining: Inlining,
        attribute: Callable[[Known, str], Any],
        containers: Containers,
    ):
        super().__init__(machine)
        self.containers = containers
        self.own_cells: set[str] = set()  # variables of inner functions that only the loop assigns and reads
        self.operands, self.variables, self.inlining, self._known_attribute = operands, variables, inlining, attribute
        self.begin()

    def begin(self) -> None:
        """A block begins."""
        self.places: dict[int, tuple] = {}  # id of a view -> it, what it is a view of, and the key
        self.tests: dict[int, tuple] = {}  # id of a comparison's result -> it, operator, operands

    # ---- the stack -------------------------------------------------------------------------------------------------------
    def POP_TOP(self, inst):
        self.machine.pop()

    def PUSH_NULL(self, inst):
        self.stack.append(Null())

    def SWAP(self, inst):
        s = self.stack
        s[-1], s[-inst.arg] = s[-inst.arg], s[-1]

    def COPY(self, inst):
        self.stack.append(self.stack[-inst.arg])

    def LOAD_CONST(self, inst):
        v = inst.argval
        self.stack.append(self.constant(v))

    def constant(self, v):
        if type(v) in (bool, int, float, complex):
            if type(v) is int and not -(1 << 63) <= v < 1 << 63:
                raise Declined("a very large integer")
            return constant(v)
        if type(v) is tuple:
            return Tuple(tuple(map(self.constant, v)))
        if isinstance(v, slice):
            return Slice(self.constant(v.start), self.constant(v.stop), self.constant(v.step))
        return Known(v)

    def LOAD_FAST(self, inst):
        self.stack.append(self.variables.read(inst.argval))

    def STORE_FAST(self, inst):
        self.variables.write(inst.argval, self.machine.pop())

    def LOAD_GLOBAL(self, inst):
        v = self.operands.given(self.inlining.here.load_global(inst.argval))
        self.machine.push_callable(v) if inst.arg & 1 else self.stack.append(v)

    def LOAD_DEREF(self, inst):
        here = self.inlining.here
        outer = here.cells.get(inst.argval) if isinstance(here, Callee) and here.cells else None
        if outer in self.own_cells:
            self.stack.append(self.variables.read(outer))
            return
        self.stack.append(self.operands.given(self.inlining.here.deref(inst.argval)))

    def LOAD_CLOSURE(self, inst):
        if isinstance(self.inlining.here, Callee):
            raise Declined("a function that a function makes which the loop calls")
        self.stack.append(Known(inst.argval))

    def MAKE_FUNCTION(self, inst):
        code = self.machine.pop()
        if inst.arg not in (None, 0, 8) or not isinstance(code, Known):
            raise Declined("a function with default values that the loop makes")
        self.stack.append(self._with_cells(code.value, self.machine.pop() if inst.arg else Tuple(())))

    def SET_FUNCTION_ATTRIBUTE(self, inst):
        fn, cells = self.machine.pop(), self.machine.pop()
        if inst.arg != 8:
            raise Declined("a function with default values that the loop makes")
        self.stack.append(self._with_cells(fn.code, cells))

    def _with_cells(self, code, cells: Tuple) -> LocalFunction:
        return LocalFunction(code, tuple(cell.value for cell in cells.items))

    def BUILD_TUPLE(self, inst):
        self.stack.append(Tuple(tuple(self.machine.taken(inst.arg))))

    def BUILD_LIST(self, inst):
        insts = self.machine.insts
        following = {i.name for i in insts[inst.index + 1 : inst.index + 3]}
        if (inst.arg == 0 and "LIST_EXTEND" not in following) or self._is_changed(insts[inst.index + 1]):
            made = self.containers.create(self.machine.at, "list")
            for item in self.machine.taken(inst.arg):
                self.containers.append(made, item)
            self.stack.append(made)
            return
        self.stack.append(Tuple(tuple(self.machine.taken(inst.arg)), listed=True))

    def _is_changed(self, store) -> bool:
        """Whether the variable that an instruction stores into is a list that grows or shrinks."""
        insts, name = self.machine.insts, store.argval
        return store.name == "STORE_FAST" and any(
            i.name == "LOAD_FAST" and i.argval == name and j.argval in list_functions.CHANGING
            for i, j in itertools.pairwise(insts)
        )

    def BUILD_MAP(self, inst):
        items = self.machine.taken(2 * inst.arg)
        self._dict(items[::2], items[1::2])

    def BUILD_CONST_KEY_MAP(self, inst):
        keys = self.machine.pop().items
        self._dict(keys, self.machine.taken(inst.arg))

    def _dict(self, keys, values) -> None:
        made = self.containers.create(self.machine.at, "dict")
        for key, value in zip(keys, values):
            self.containers.put(made, key, value)
        self.stack.append(made)

    def BUILD_SET(self, inst):
        items = self.machine.taken(inst.arg)
        made = self.containers.create(self.machine.at, "set")
        for item in items:
            self.containers.put(made, item, None)
        self.stack.append(made)

    def CONTAINS_OP(self, inst):
        c, key = self.machine.pop(), self.machine.pop()
        if isinstance(c, Known) and type(c.value) is frozenset:
            c = self.constant(tuple(c.value))
        if not isinstance(c, Container) and (text.is_text(c) or text.is_text(key)):
            found = text.contains(self.e, c, key)
            self.stack.append(Scalar(np.dtype(bool), True, self.e.flip(found) if inst.arg else found))
            return None
        if byte_strings.is_bytes(c):
            c = Tuple(tuple(map(constant, c.value)))
        own = list_functions.contains(c, key, bool(inst.arg))
        if own is not None:
            return self.inlining.enter_own(own)
        found = self.containers.contains(c, key) if isinstance(c, Container) else self._among(key, c)
        self.stack.append(Scalar(np.dtype(bool), True, self.e.flip(found) if inst.arg else found))
        return None

    def _among(self, key, c):
        """Whether an integer, or a tuple of integers, equals one of a tuple's items."""
        if not isinstance(c, Tuple) or len(c.items) > 64:
            raise Declined(f"in, of a {type(c).__name__.lower()}")
        found = llvm.constant(llvm.I1, False)
        for item in c.items:
            found = self.e.op("or", found, self._equal(key, item))
        return found

    def _equal(self, a, b):
        if isinstance(a, Tuple) and isinstance(b, Tuple) and not a.listed and not b.listed:
            if len(a.items) != len(b.items):
                return llvm.constant(llvm.I1, False)
            pairs = [self._equal(x, y) for x, y in zip(a.items, b.items)]
            return functools.reduce(lambda x, y: self.e.op("and", x, y), pairs, llvm.constant(llvm.I1, True))
        if text.is_text(a) or text.is_text(b):
            return text.compare(self.e, "==", a, b).v
        if not all(isinstance(s, Scalar) and s.kind in "biu" for s in (a, b)):
            raise Declined("in, of other things than integers")  # a nan is in a list that holds it
        return comparisons.compare(self.e, "==", a, b).v

    def DELETE_SUBSCR(self, inst):
        key, c = self.machine.pop(), self.machine.pop()
        if not isinstance(c, Container) or c.kind != "dict":
            raise Declined("del of an item")
        self.containers.remove(c, key, True)

    # ---- comprehensions ----------------------------------------------------------------------------------------------------
    def _collected(self, inst) -> Container:
        """What a comprehension fills: on the stack where it lies within the loop, else what the loop was given."""
        c = self.stack[-inst.arg] if inst.arg <= len(self.stack) else self.variables.read(COLLECTED)
        if not isinstance(c, Container):
            raise Declined("a comprehension of other things than numbers")
        self.containers.changes(c)
        return c

    def LIST_APPEND(self, inst):
        value = self.machine.pop()
        self.containers.append(self._collected(inst), value)

    def YIELD_VALUE(self, inst):
        self.containers.changes(self.variables.read(COLLECTED))
        self.containers.append(self.variables.read(COLLECTED), self.machine.pop())
        # This is what is sent.
        self.stack.append(Known(None))

    def IS_SUMMED(self, inst):
        """An element is about to be added to the sum that sum() makes."""
        x = self.stack[-1]
        if generators.COMPENSATED and not (isinstance(x, Scalar) and (x.weak is False or x.kind in "biu")):
            raise Declined("a sum of Python's floats, which keeps what rounding loses")

    def SET_ADD(self, inst):
        value = self.machine.pop()
        self.containers.put(self._collected(inst), value, None)

    def MAP_ADD(self, inst):
        value, key = self.machine.pop(), self.machine.pop()
        self.containers.put(self._collected(inst), key, value)

    def LIST_EXTEND(self, inst):
        more, made = self.machine.pop(), self.stack[-inst.arg]
        if not isinstance(more, Tuple) or not isinstance(made, Tuple):
            raise Declined("a list that is extended by this value")
        self.stack[-inst.arg] = Tuple((*made.items, *more.items), made.listed)

    def BUILD_SLICE(self, inst):
        step = self.machine.pop() if inst.arg == 3 else Known(None)
        stop, start = self.machine.pop(), self.machine.pop()
        self.stack.append(Slice(start, stop, step))

    def UNPACK_SEQUENCE(self, inst):
        v = self.machine.pop()
        if isinstance(v, ArrayView):
            e, n = self.e, v.sizes[0]
            e.check(
                e.cmp("eq", n, inst.arg),
                "ValueError",
                f"expected {inst.arg} values to unpack, got {{0}}",
                n,
            )
            v = Tuple(tuple(arrays.subscript(e, v, constant(k)) for k in range(inst.arg)))
        if not isinstance(v, Tuple) or len(v.items) != inst.arg:
            raise Declined("unpacking of this value")
        self.stack.extend(reversed(v.items))

    # ---- arithmetic ------------------------------------------------------------------------------------------------------
    def BINARY_OP(self, inst):
        b, a = self.machine.pop(), self.machine.pop()
        said = _BINARY_NAMES[inst.arg]
        inplace, op = said.endswith("="), said.rstrip("=")
        if op == "@" and not inplace:
            self.stack.append(reductions.dot(self.e, a, b, f"product@{self.machine.at}"))
            return None
        if op not in arithmetic.BINARY:
            raise Declined(f"the operator {said}")
        own = list_functions.joined(a, b) if op == "+" and not inplace else None
        if own is not None:
            return self.inlining.enter_own(own)
        if op == "*" and not inplace and isinstance(a, Tuple) and a.listed and isinstance(b, Scalar):
            self.stack.append(self.containers.repeated(a.items, b))
            return None
        if isinstance(a, Tuple) or isinstance(b, Tuple):
            raise Declined(f"{said} of a tuple")
        out = arrays.elementwise(self.e, OnElements(self.e, lambda e, x, y: arithmetic.binary(e, op, x, y)), a, b)
        if self.inlining.inputs.tells_wrapping and all(isinstance(v, Scalar) for v in (a, b, out)):
            wrapping.note(self.e, op, a, b, out)
        if inplace and isinstance(a, ArrayView):
            if not arrays.may_hold(a.dtype, out.dtype):
                raise Declined(f"{said} would change the dtype of an array")
            self.store(a, out)
            out = a
        self.stack.append(out)
        return None

    def COMPARE_OP(self, inst):
        b, a = self.machine.pop(), self.machine.pop()
        if text.is_text(a) or text.is_text(b):
            self.stack.append(text.compare(self.e, inst.argval, a, b))
            return
        if isinstance(a, Tuple) and isinstance(b, Tuple):
            self.stack.append(tuples.compare(self.e, inst.argval, a, b))
            return
        fn = OnElements(self.e, lambda e, x, y: comparisons.compare(e, inst.argval, x, y))
        out = arrays.elementwise(self.e, fn, a, b)
        if isinstance(out, Scalar):
            self.tests[id(out)] = out, inst.argval, a, b
        self.stack.append(out)

    def IS_OP(self, inst):
        b, a = self.machine.pop(), self.machine.pop()
        if not (isinstance(a, Known) or isinstance(b, Known)):
            raise Declined("is")
        self.stack.append(constant((a == b) != bool(inst.arg)))

    def UNARY_NEGATIVE(self, inst):
        v = self.machine.pop()
        out = arrays.elementwise(self.e, OnElements(self.e, arithmetic.negate), v)
        if self.inlining.inputs.tells_wrapping and isinstance(out, Scalar):
            wrapping.note_negative(self.e, v, out)
        self.stack.append(out)

    def UNARY_POSITIVE(self, inst):
        v = self.machine.number()
        if v.kind not in "if":
            raise Declined("+ of this value")
        self.stack.append(v)

    def UNARY_INVERT(self, inst):
        self.stack.append(arrays.elementwise(self.e, OnElements(self.e, arithmetic.invert), self.machine.pop()))

    def UNARY_NOT(self, inst):
        v = self.e.flip(conversions.to_bool(self.e, self.machine.number()))
        self.stack.append(Scalar(np.dtype(bool), True, v))

    # ---- arrays ----------------------------------------------------------------------------------------------------------
    def BINARY_SUBSCR(self, inst):
        key, owner = self.machine.pop(), self.machine.pop()
        return self._taken(owner, key)

    def BINARY_SLICE(self, inst):
        stop, start, owner = self.machine.pop(), self.machine.pop(), self.machine.pop()
        return self._taken(owner, Slice(start, stop, Known(None)))

    def _taken(self, owner, key):
        """Push ``owner[key]``; the edge into the function that makes a part of a list."""
        own = list_functions.part(owner, key)
        if own is not None:
            return self.inlining.enter_own(own)
        self.stack.append(self.subscript(owner, key))
        return None

    def subscript(self, owner, key):
        if isinstance(owner, Container):
            return self.containers.subscript(owner, key)
        words = text.of(self.e, owner)
        if words is not None:
            return text.subscript(self.e, words, key)
        if byte_strings.is_bytes(owner):
            return byte_strings.subscript(self.e, owner.value, key)
        if isinstance(owner, Tuple) and isinstance(key, Scalar) and isinstance(key.const, int):
            if not -len(owner.items) <= key.const < len(owner.items):
                raise Declined("a subscript past the end of a tuple")
            return owner.items[key.const]
        if isinstance(owner, Tuple) and isinstance(key, Scalar):
            return places.chosen(self.e, owner.items, key, "list" if owner.listed else "tuple")
        if isinstance(owner, Tuple) and isinstance(key, Slice):
            ends = [
                None if k == Known(None) else getattr(k, "const", None) or 0 for k in (key.start, key.stop, key.step)
            ]
            if all(k == Known(None) or type(getattr(k, "const", None)) is int for k in (key.start, key.stop, key.step)):
                return Tuple(owner.items[slice(*ends)], owner.listed)
        if isinstance(owner, Expression):
            owner = self.variables.passing(owner)
        if not isinstance(owner, ArrayView):
            raise Declined(f"a subscript of a {type(owner).__name__.lower()}")
        key = self.indices(key)
        if gathers.advanced(key):
            later = written_under_same_key(self.machine.insts, self.machine.at)
            return gathers.read(self.e, owner, self.settled(key), f"gather@{self.machine.at}", later)
        out = arrays.subscript(self.e, owner, key)
        self.places[id(out)] = out, owner, key
        return out

    def indices(self, key):
        """A key whose lists are arrays, as NumPy takes them."""
        if not isinstance(key, Tuple):
            return key
        if key.listed:
            return assembly.array(self.e, f"indices@{self.machine.at}", key)
        made = []
        for d, item in enumerate(key.items):
            listed = isinstance(item, Tuple)
            made.append(assembly.array(self.e, f"indices{d}@{self.machine.at}", item) if listed else item)
        return Tuple(tuple(made))

    def settled(self, key):
        """A key whose arrays are in memory."""
        if isinstance(key, Tuple):
            return Tuple(tuple(map(self.settled, key.items)))
        return self.variables.passing(key) if isinstance(key, Expression) else key

    def STORE_SUBSCR(self, inst):
        key, owner, value = self.machine.pop(), self.machine.pop(), self.machine.pop()
        self.store_subscript(owner, key, value)

    def STORE_SLICE(self, inst):
        stop, start, owner, value = self.machine.pop(), self.machine.pop(), self.machine.pop(), self.machine.pop()
        self.store_subscript(owner, Slice(start, stop, Known(None)), value)

    def store_subscript(self, owner, key, value):
        if isinstance(owner, Container):
            self.containers.store_subscript(owner, key, value)
            return
        if not isinstance(owner, ArrayView):
            raise Declined(f"an item of a {type(owner).__name__.lower()} is set")
        key = self.indices(key)
        if isinstance(value, Tuple) and not gathers.advanced(key) and self._store_row(owner, key, value):
            return
        if isinstance(value, Tuple):
            value = assembly.array(self.e, f"items@{self.machine.at}", value, Known(owner.dtype))
        if gathers.advanced(key):
            self.variables.about_to_write(owner)
            if isinstance(value, Scalar) and isinstance(key, (ArrayView, Expression)) and key.dtype == np.bool_:
                arrays.assign_where(self.e, owner, key, value, self.variables.passing)
            else:
                gathers.write(
                    self.e, owner, self.settled(key), value, self.variables.passing, f"scatter@{self.machine.at}"
                )
            return
        if isinstance(value, Scalar):
            self.variables.about_to_write(owner)
            arrays.store_element(self.e, owner, key, value)
            return
        _, taken_of, by = self.places.get(id(value), (None, None, None))
        if taken_of is owner and _same_key(by, key):
            return  # a[k] += b: the view has been written already
        target = arrays.subscript(self.e, owner, key)
        if isinstance(target, Scalar):
            raise Declined("an array is stored as an element")
        self.store(target, value)

    def _store_row(self, owner: ArrayView, key, value: Tuple) -> bool:
        """``owner[key] = (a, b, ...)``, where that is one dimension: without an array between."""
        keys = key.items if isinstance(key, Tuple) else (key,)
        if not all(isinstance(k, Scalar) for k in keys) or owner.ndim - len(keys) != 1:
            return False
        numbers = assembly.row(self.e, value, owner.dtype)
        if numbers is None:
            return False
        target = arrays.subscript(self.e, owner, key)
        self.variables.about_to_write(target)
        arrays.assign_numbers(self.e, target, numbers)
        return True

    def store(self, target: ArrayView, value) -> None:
        self.variables.about_to_write(target)
        if value != target:
            arrays.assign(self.e, target, value)

    def LOAD_ATTR(self, inst):
        self.stack.append(self.attribute(self.machine.pop(), inst.argval))

    def LOAD_METHOD(self, inst):
        self.machine.push_callable(self.attribute(self.machine.pop(), inst.argval))

    def attribute(self, owner, name: str):
        asked = text.method_of(owner, name)
        if asked is not None:
            return asked
        if isinstance(owner, Known) and isinstance(owner.value, np.iinfo | np.finfo):
            n = getattr(owner.value, name)
            return constant(n) if type(n) is int or isinstance(n, np.floating) else Known(n)
        if isinstance(owner, Known):
            if owner.origin is None:
                raise Declined(f"{name} of {owner.value!r}")
            return self.operands.given(self._known_attribute(owner, name))
        if isinstance(owner, Stream | Container):
            return Method(owner, name)
        if isinstance(owner, ArrayView):
            if name == "shape":
                return Tuple(tuple(arrays.size(self.e, n) for n in owner.sizes))
            if name == "ndim":
                return constant(owner.ndim)
            if name == "size":
                return arrays.size(self.e, arrays.count(self.e, owner.sizes))
            if name == "T":
                return replace(owner, sizes=owner.sizes[::-1], strides=owner.strides[::-1], whole=None, rows=False)
            if name == "dtype":
                return Known(owner.dtype)
        if isinstance(owner, Scalar) and owner.weak is False and name == "dtype":
            return Known(owner.dtype)
        if name in ("real", "imag") and isinstance(owner, (Scalar, ArrayView, Expression)):
            return arrays.part(self.e, owner, name)
        if isinstance(owner, Scalar) and name in ("item", "is_integer", "bit_length", "bit_count"):
            return Method(owner, name)
        if name in ("conj", "conjugate") and isinstance(owner, (Scalar, ArrayView, Expression)):
            return Method(owner, name)
        if isinstance(owner, (ArrayView, Expression)) and (
            name in reductions.REDUCTIONS or name in numpy_calls.METHODS or name in ("copy", "astype", "dot", "nonzero")
        ):
            return Method(owner, name)
        raise Declined(f"the attribute {name} of a {type(owner).__name__.lower()}")

    # ---- control ---------------------------------------------------------------------------------------------------------
    def JUMP_FORWARD(self, inst):
        return None, [(inst.target, self.stack)]

    def JUMP_BACKWARD(self, inst):
        if self.machine.insts[inst.target].name != "FOR_ITER":
            self.e.spend(1)
        if not any(isinstance(v, (ArrayView, Expression)) for v in self.stack):
            self.e.flush()
        return None, [(inst.target, self.stack)]

    JUMP_BACKWARD_NO_INTERRUPT = JUMP_BACKWARD

    def _jump_if(self, inst, want: bool):
        if inst.target < inst.index:
            if self.machine.insts[inst.target].name != "FOR_ITER":
                self.e.spend(1)
            self.e.flush()
        number = self.machine.number()
        test = conversions.to_bool(self.e, number)
        yes, no = self.learnt(number)
        if not want:
            yes, no = no, yes
        ways = [(inst.target, self.stack, yes), (inst.index + 1, self.stack, no)]
        return test, ways if want else ways[::-1]

    def learnt(self, test: Scalar) -> tuple[dict, dict]:
        """The types of variables where a comparison holds, and where it doesn't."""
        _, op, *numbers = self.tests.get(id(test), (None, None))
        if len(numbers) != 2 or not all(s.dtype == I64 for s in numbers):
            return {}, {}
        out = []
        for known in (op, between.OPPOSITE[op]):
            types = {}
            bounds = between.refined(known, *(s.bounds for s in numbers))
            below = between.below_after(known, *(s.below for s in numbers))
            for s, within, under in zip(numbers, bounds, below):
                learnt = within != s.bounds or under != s.below
                for name, value in self.variables.values.items():
                    if value is s and learnt and isinstance(self.variables.types.get(name), ScalarType):
                        types[name] = replace(self.variables.types[name], bounds=within, below=under)
            out.append(types)
        return out[0], out[1]

    def POP_JUMP_IF_TRUE(self, inst):
        return self._jump_if(inst, True)

    def POP_JUMP_IF_FALSE(self, inst):
        return self._jump_if(inst, False)

    def JUMP_IF_TRUE_OR_POP(self, inst):
        test = conversions.to_bool(self.e, self.machine.as_number(self.stack[-1]))
        return test, [(inst.target, self.stack), (inst.index + 1, self.stack[:-1])]

    def JUMP_IF_FALSE_OR_POP(self, inst):
        test = conversions.to_bool(self.e, self.machine.as_number(self.stack[-1]))
        return test, [(inst.index + 1, self.stack[:-1]), (inst.target, self.stack)]


_BINARY_NAMES = (
    "+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^",
    "+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^=",
)  # fmt: skip


def binary_name(inst) -> str:
    """The operator of a BINARY_OP instruction, with = behind it for the in-place form."""
    return inst.argrepr if hasattr(inst, "argrepr") else _BINARY_NAMES[inst.arg]


# Of a statement between a read and its write: nothing is called, and nothing is written.
_PLAIN = frozenset(("LOAD_FAST", "LOAD_CONST", "BINARY_SUBSCR", "BINARY_OP", "UNARY_NEGATIVE", "NOP"))


def written_under_same_key(insts, at: int) -> bool:
    """Whether what is read by the subscript at ``at`` goes into a statement ``x[key] = ...`` by the same variable."""
    key = insts[at - 1]
    for i in range(at + 1, len(insts)):
        if insts[i].name == "STORE_SUBSCR":
            last = insts[i - 1]
            return key.name == last.name == "LOAD_FAST" and key.argval == last.argval
        if insts[i].name not in _PLAIN or (insts[i].name == "BINARY_OP" and binary_name(insts[i]).endswith("=")):
            return False
    return False


def _same_key(a, b) -> bool:
    """Whether two subscripts are the same values."""
    if isinstance(a, Slice) and isinstance(b, Slice):
        return all(_same_key(x, y) for x, y in ((a.start, b.start), (a.stop, b.stop), (a.step, b.step)))
    if isinstance(a, Tuple) and isinstance(b, Tuple):
        return len(a.items) == len(b.items) and all(map(_same_key, a.items, b.items))
    return a is b or (isinstance(a, Known) and a == b)
