"""Numbers that are symbols: sizes, ints and floats that vary, and what is computed from them."""

from __future__ import annotations

import math
import operator
from typing import Any

from flambeau.base import shape_checks, symint
from flambeau.base.dtypes import float64, int64
from flambeau.base.shape_env import GuardOnDataDependentSymNode
from flambeau.base.symint import NUMBERS, SymBool, SymFloat, SymInt
from flambeau.core.operator import namespace

from ...exc import unsupported
from ...graph import python_numbers
from ...rules.reflect import has_item
from ...tracing.wrapping import FUNCTION_WRAPPERS, pin
from ..base import HeldVariable, Variable
from ..containers.lists import ListVariable
from ..containers.ranges import RangeVariable
from ..containers.sequences import TupleVariable
from ..containers.slices import SliceVariable
from ..iterators.container_iterators import ElementsVariable
from .constant import ConstantVariable

__all__ = [
    "CheckVariable",
    "SymbolicRangeVariable",
    "SymbolicVariable",
    "arithmetic",
    "number_of",
    "settled",
    "specialized",
    "wrap_number",
]

_TYPES = {"int": int, "float": float, "bool": bool}

# Functions of numbers that need no value.
FUNCTIONS: dict[Any, Any] = {
    int: symint.sym_int,
    float: symint.sym_float,
    abs: operator.abs,
    math.sqrt: symint.sym_sqrt,
    math.floor: math.floor,
    math.ceil: math.ceil,
    math.trunc: math.trunc,
    divmod: divmod,
    math.prod: math.prod,
    **{getattr(math, n.removeprefix("sym_")): f for n, f in symint.FUNCTIONS.items()},
    **{getattr(symint, n): getattr(symint, n) for n in symint.__all__ if n.startswith("sym_")},
}


class SymbolicVariable(Variable):
    """``number``: a SymInt, SymFloat or SymBool of the trace's environment."""

    is_symbol = True

    def __init__(self, number, source=None):
        super().__init__(source)
        self.number = number

    def __repr__(self):
        return f"the number {self.number!r}"

    def python_type(self):
        return _TYPES[self.number.__sym__]

    def is_constant(self):
        return False

    def as_constant(self):
        """The value; the number is a constant of this variant from here on."""
        return _ask(_value, self.number)

    def key_object(self):
        """As a key it is a constant: which entry of a dict is meant depends on it."""
        return self.as_constant()

    def as_proxy(self):
        return self.number.env.output.shapes.number_node(self.number)

    def reloadable(self):
        return self.source is not None

    def reconstruct(self, cg):
        node = self.as_proxy()
        if isinstance(node, (int, float)):
            cg.load_const(node)
        else:
            cg.graph_output(node)

    def truth(self, tx):
        return _ask(bool, self.number)

    def getattr(self, tx, name):
        if name == "real" or (name == "numerator" and isinstance(self.number, SymInt)):
            return self
        if name == "imag":
            return ConstantVariable(self.python_type()(0))
        if name == "denominator" and isinstance(self.number, SymInt):
            return ConstantVariable(1)
        if name == "__class__":
            return tx.wrap_known(self.python_type())
        return specialized(tx, self).getattr(tx, name)

    def hasattr(self, tx, name):
        return has_item(self.python_type(), name)

    def call_method(self, tx, name, args, kwargs):
        if name in ("__index__", "__int__") and isinstance(self.number, SymInt):
            return self
        if name == "is_integer" and isinstance(self.number, SymInt):
            return ConstantVariable(True)
        return specialized(tx, self).call_method(tx, name, [specialized(tx, a) for a in args], kwargs)


class CheckVariable(HeldVariable):
    """``torch._check``: what is symbolic is true from here on, and is checked by the graph where it depends on data."""

    def call(self, tx, args, kwargs):
        first = tx.realize(args[0] if args else next(iter(kwargs.values())))
        if self.value is not shape_checks.check_is_size:
            return self.require(tx, first, message_of(tx, args[1] if len(args) > 1 else kwargs.get("message")))
        limits = [(operator.ge, ConstantVariable(0))]
        most = tx.realize(kwargs["max"]) if "max" in kwargs else ConstantVariable(None)
        if not (most.is_constant() and most.as_constant() is None):
            limits.append((operator.le, most))
        for fn, limit in limits:
            condition = arithmetic(tx, fn, [first, limit])
            if condition is None:
                unsupported("check", f"torch._check_is_size({first!r})", "It is no number that is traced.")
            self.require(tx, condition)
        return ConstantVariable(None)

    def target(self):
        return shape_checks.check if self.value is shape_checks.check_is_size else self.value

    def require(self, tx, condition, said: str | None = None) -> Variable:
        """The condition holds from here on; where it depends on data an error comes up in plain code, if nothing has happened yet."""
        if not isinstance(condition, SymbolicVariable):
            if condition.truth(tx):
                return ConstantVariable(None)
            unsupported("check", "torch._check of a condition that is false or a tensor", "It raises in plain Python.")
        number, env = condition.number, condition.number.env
        data = env.is_unbacked(env.simplify(number.expr)) and env.known(number.expr) is None
        if not data:
            if condition.truth(tx):
                return ConstantVariable(None)
            unsupported("check", f"torch._check({number!r}), which is false", "It raises in plain Python.")
        message = said or f"Runtime assertion failed for expression {number!r}"
        if said is not None:  # the plain call has the words, and the class, of the error
            tx.output.under_handler = True
        node = tx.output.recorder.create_node(tx, "call_function", self.target(), (condition.as_proxy(), message), {})
        node.meta["val"] = None
        node.meta["effects"] = frozenset({"checks"})
        env.learn(number.expr)
        return ConstantVariable(None)


def message_of(tx, v: Variable | None) -> str | None:
    """The text of a message, or of what makes one, where it is known."""
    v = None if v is None else tx.realize(v)
    if v is None or (v.is_constant() and v.as_constant() is None):
        return None
    if not v.can_constant():
        v = v.call(tx, [], {})
    return str(v.as_constant()) if v.can_constant() else None


def require_element(tx, tensor: Variable, said: str | None) -> None:
    """The one element of a tensor is not zero, which the graph checks."""
    if tx.output.shapes.data_symbols("item"):
        # Not the method: a program's call of it is left out where nobody reads the number.
        whole = tensor.call_method(tx, "long", [], {}) if tensor.val.dtype.name == "bool" else tensor
        number = tx.output.call_in_graph(tx, "call_method", "item", [whole], {})
    else:
        number = tensor.call_method(tx, "item", [], {})
    if number.is_constant() and number.as_constant():
        return
    if not isinstance(number, SymbolicVariable):
        unsupported("check", f"an assertion about {tensor!r}", "The value depends on tensor data.")
    if number.python_type() is not bool:
        number = arithmetic(tx, operator.ne, [number, ConstantVariable(0)])
    CheckVariable(shape_checks.check).require(tx, number, said)


# Turns of a loop that are worth an operator each with a symbol rather than one graph to a size.
_FEW = 64


class SymbolicRangeVariable(RangeVariable):
    """A range of which a bound is a symbol. It becomes a constant (``known``) when it is asked for anything but its ends, or its elements and
    their number where that is the same for all values of the symbols."""

    def __init__(self, args: list[Variable]):
        Variable.__init__(self)
        self.args = args
        self.made: range | None = None

    @property
    def known(self) -> bool:
        return self.made is not None

    @property
    def value(self) -> range:
        if self.made is None:
            self.made = range(*[a.as_constant() for a in self.args])
        return self.made

    def ends(self) -> tuple[Variable, Variable, Variable]:
        """start, stop and step."""
        if len(self.args) == 1:
            return ConstantVariable(0), self.args[0], ConstantVariable(1)
        return (*self.args, ConstantVariable(1))[:3]

    def few(self) -> list[Variable] | None:
        """The elements, where the ends differ by a known number: ``range(n - 1, n - 3, -1)``. None for other ranges and for long ones."""
        if self.known:
            return None
        start, stop, step = map(_plain, self.ends())
        if start is None or stop is None or type(step) is not int or not step:
            return None
        length = stop - start
        if type(length) is not int:
            return None
        steps = range(0, length, step)
        return [wrap_number(start + k) for k in steps] if len(steps) <= _FEW else None

    def python_type(self):
        return range

    def items(self, tx):
        few = self.few()
        return few if few is not None else super().items(tx)

    def iter(self, tx):
        few = self.few()
        return super().iter(tx) if few is None else ElementsVariable(few, self, self.iterator_type())

    def length(self, tx):
        few = self.few()
        return super().length(tx) if few is None else len(few)

    def truth(self, tx):
        few = self.few()
        return super().truth(tx) if few is None else bool(few)

    def iterator_type(self) -> type:
        return type(iter(range(0)))


def _value(x):
    return x._value()


def _ask(question, number):
    try:
        return question(number)
    except GuardOnDataDependentSymNode as e:
        unsupported("data-dependent-guard", str(e), "The value depends on tensor data.")


def specialized(tx, v: Variable) -> Variable:
    """A constant in the place of a symbolic number."""
    v = tx.realize(v)
    return ConstantVariable(v.as_constant()) if isinstance(v, SymbolicVariable) else v


def settled(tx, v: Variable, around: tuple[Variable, ...] = ()) -> Variable:
    """A text says which numbers they are: constants in the place of a number that varies, and of those in a sequence or a slice. ``around``: the
    sequences that it is in."""
    v = tx.realize(v)
    if v.can_constant() or v in around:
        return v
    if isinstance(v, SliceVariable):
        return SliceVariable([settled(tx, p, around) for p in v.parts])
    if isinstance(v, TupleVariable | ListVariable):
        elements = v.realized(tx)
        known = [settled(tx, e, (*around, v)) for e in elements]
        if any(k is not e for k, e in zip(known, elements)):
            return (TupleVariable if isinstance(v, TupleVariable) else ListVariable)(known, cls=v.cls)
    return specialized(tx, v)


def wrap_number(x, source=None) -> Variable:
    """The variable of a number, symbolic or not."""
    return SymbolicVariable(x, source) if isinstance(x, NUMBERS) else ConstantVariable(x)


def number_of(v: Variable):
    """The number of a variable, as ``wrap_number`` takes it."""
    return v.number if isinstance(v, SymbolicVariable) else v.as_constant()


def _plain(v: Variable):
    """The number of an operand; None when it is no number that is known. One of a derived class has operators of its own."""
    if isinstance(v, SymbolicVariable):
        return v.number
    if v.is_constant() and type(v.as_constant()) in (int, float, bool):
        return v.as_constant()
    return None


EXACT = {
    operator.add, operator.sub, operator.mul, operator.neg, operator.pos, operator.abs, operator.iadd, operator.isub, operator.imul, operator.lt,
    operator.le, operator.gt, operator.ge, operator.eq, operator.ne, abs, float,
    symint.sym_min, symint.sym_max,
}  # fmt: skip
"""What kernels do with floating-point numbers as Python does: the rest raises for some of them."""


def _as_python(tx, fn, args, numbers) -> None:
    """A number that a random generator gave is in a computation: where Python raises, the graph has to end with an error (it is run plainly
    then), or not to have the number at all."""
    drawn = any(isinstance(n, NUMBERS) and n.env.is_unbacked(n.expr) for n in numbers)
    if drawn and fn not in EXACT and fn not in (operator.truediv, operator.itruediv):
        unsupported(
            "numpy-random", f"{getattr(fn, '__name__', fn)} of a Python number that was drawn", "It may raise an error."
        )


_WHOLE = {symint.sym_int: "trunc", math.trunc: "trunc", math.floor: "floor", math.ceil: "ceil"}


def _whole(tx, name: str, number) -> Variable:
    """A float that depends on data, cut to an integer, which is read from a tensor: so it is a symbol like any size that depends on data. The
    graph checks that 64 bits hold it."""
    most = python_numbers.WORD // 2
    for within in (number <= float(most), number >= -float(most)):
        tx.output.shapes.check_number(within)
    make = tx.wrap_known(namespace("aten").scalar_tensor.default)
    t = make.call(tx, [SymbolicVariable(number)], {"dtype": ConstantVariable(float64)})
    cut = t.call_method(tx, name, [], {}).call_method(tx, "long", [], {}).call_method(tx, "item", [], {})
    for within in (cut.number <= most, cut.number >= -most):
        cut.number.env.learn(within.expr)
    return cut


_LOGIC = {
    operator.and_, operator.or_, operator.xor, operator.iand, operator.ior, operator.ixor, operator.not_, symint.sym_not,
}  # fmt: skip


def _counted(tx, n):
    """An operand: a truth value in arithmetic is a number. One that depends on data is read from a tensor: a symbol like any integer that does."""
    if not isinstance(n, SymBool):
        return n
    if not n.env.is_unbacked(n.expr):
        return bool(n)
    make = tx.wrap_known(namespace("aten").scalar_tensor.default)
    t = make.call(tx, [SymbolicVariable(n)], {"dtype": ConstantVariable(int64)})
    number = t.call_method(tx, "item", [], {}).number
    for within in (number <= 1, number >= 0):
        number.env.learn(within.expr)
    return number


def arithmetic(tx, fn, args) -> Variable | None:
    """``fn`` of numbers, some of them symbolic, without asking for a value; None where that can't be."""
    numbers: list | None = [_plain(a) for a in args]
    if any(n is None for n in numbers):
        return None
    if tx.output.draws:
        _as_python(tx, fn, args, numbers)
    given, fn = fn, FUNCTIONS.get(fn, fn)
    if fn not in _LOGIC:
        numbers = [_counted(tx, n) for n in numbers]
    try:
        numbers = python_numbers.operands(fn, numbers, tx.output.shapes.check_number)
        if numbers is None:
            return None
        if fn in _WHOLE and isinstance(numbers[0], SymFloat) and numbers[0].env.is_unbacked(numbers[0].expr):
            return _whole(tx, _WHOLE[fn], numbers[0])
        out = _ask(lambda ns: fn(*ns), numbers)
        out = python_numbers.result(fn, numbers, out, tx.output.shapes.check_number)
    except (ZeroDivisionError, OverflowError, ValueError) as e:
        tx.raise_user(python_numbers.error_of(given, [_plain(a) for a in args], e))
    except TypeError:
        return None
    if isinstance(out, tuple):
        return TupleVariable([wrap_number(x) for x in out])
    return wrap_number(out) if isinstance(out, (*NUMBERS, int, float)) else None


@FUNCTION_WRAPPERS.row("check of sizes")
def _(tx, value, source):
    if value is not shape_checks.check and value not in shape_checks.CHECKS:
        return None
    pin(tx, source, "ID_MATCH", value)
    return CheckVariable(value, source)
