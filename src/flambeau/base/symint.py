"""SymInt, SymFloat, SymBool: numbers of a program that is being traced, known as expressions only.

They behave as Python's numbers. What doesn't depend on a symbol comes out as a plain number. Asking one for its value (a branch, an index, a
format) asks its :class:`~.shape_env.ShapeEnv`, which answers from what is known or from the example value, and then remembers that as a guard."""

from __future__ import annotations

import math
import operator
from typing import Any

from . import dtypes
from . import expr as E
from . import relations as R
from .expr import Expr
from .public import public_in

__all__ = [
    "SymBool",
    "SymFloat",
    "SymInt",
    "as_float",
    "check_fits",
    "expression",
    "is_int",
    "is_number",
    "is_symbolic",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
    "wrap",
]


class _Sym:
    """Common part: ``expr`` and ``env`` (a ShapeEnv)."""

    __slots__ = ("expr", "env", "__weakref__")
    __sym__: str  # "int", "float", "bool": marks the class for code that knows no more

    def __init__(self, expr, env):
        self.expr, self.env = expr, env

    @property
    def node(self):
        """What tools look at: ``node.expr``, ``node.shape_env``, ``node.hint``."""
        return self

    @property
    def shape_env(self):
        return self.env

    @property
    def hint(self):
        """The example value; None for what depends on data."""
        return self.env.hint(self.expr)

    @property
    def _expr(self):
        return self.expr

    def has_hint(self) -> bool:
        return self.hint is not None

    def maybe_as_int(self):
        return None

    def is_symbolic(self) -> bool:
        return True

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __repr__(self):
        return repr(self.env.simplify(self.expr))

    __str__ = __repr__

    def __format__(self, spec):
        return repr(self) if not spec else format(self._value(), spec)

    def __reduce__(self):
        return (
            type(self.hint) if self.hint is not None else str,
            (self.hint if self.hint is not None else repr(self),),
        )

    def __hash__(self):
        raise TypeError(f"unhashable type: {type(self).__name__} ({self!r} has no value yet)")

    def _value(self):
        raise NotImplementedError(f"{type(self).__name__} does not define _value")


def wrap(x, env):
    """The number or symbolic number of an expression."""
    if isinstance(x, (bool, int, float)):
        return x
    if type(x) is Expr:
        return SymInt(x, env)
    if isinstance(x, R.FloatSymbol) or (type(x) is R.Float and x.args[0] not in _COMPARISONS):
        return SymFloat(x, env)
    return SymBool(x, env)


_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")  # of two numbers


def expression(x):
    """The expression of a number or symbolic number; None for anything else."""
    if isinstance(x, _Sym):
        return _as_int(x.expr) if type(x) is SymBool else x.expr
    return x if isinstance(x, (int, float)) else None


def _as_int(truth):
    """A truth value in arithmetic is 0 or 1."""
    return truth if isinstance(truth, bool) else R.Float("float", truth).to_int()


def _env(a, b):
    return a.env if isinstance(a, _Sym) else b.env


def _is_float(e) -> bool:
    return isinstance(e, (float, R.FloatSymbol, R.Float))


def _arith(name: str, a, b):
    """``name`` of two operands, at least one symbolic. NotImplemented for what isn't a number."""
    x, y = expression(a), expression(b)
    if x is None or y is None:
        return NotImplemented
    env = _env(a, b)
    if name in _COMPARISONS:
        return wrap(R.float_op(name, x, y) if _is_float(x) or _is_float(y) else R.compare(name, x, y), env)
    if name == "truediv" or _is_float(x) or _is_float(y):
        if name in ("truediv", "floordiv", "mod") and isinstance(y, (int, float)) and y == 0:
            raise ZeroDivisionError("division by zero")
        return wrap(R.float_op(name, x, y), env)
    if name in ("floordiv", "mod"):
        if not (isinstance(y, int) and y) and not env.evaluate(R.compare("ne", y, 0)):
            raise ZeroDivisionError("integer division or modulo by zero")
        return wrap((E.floordiv if name == "floordiv" else E.mod)(x, y), env)
    if name == "pow":
        if isinstance(y, int) and y < 0 or type(y) is Expr and not env.evaluate(R.compare("ge", y, 0)):
            return wrap(R.float_op("pow", x, y), env)
        return wrap(E.apply("pow", x, y), env)
    if name in ("and", "or", "xor", "lshift", "rshift"):
        return wrap(E.apply(name, x, y), env)
    return wrap(getattr(operator, name)(x, y), env)


def _binary(name):
    def forward(self, other):
        return _arith(name, self, other)

    def backward(self, other):
        return _arith(name, other, self)

    return forward, backward


class _Number(_Sym):
    """Arithmetic and comparisons, for integers and floating-point numbers."""

    __slots__ = ()

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("sub")
    __mul__, __rmul__ = _binary("mul")
    __truediv__, __rtruediv__ = _binary("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv")
    __mod__, __rmod__ = _binary("mod")
    __pow__, __rpow__ = _binary("pow")
    __lt__, _ = _binary("lt")
    __le__, _ = _binary("le")
    __gt__, _ = _binary("gt")
    __ge__, _ = _binary("ge")
    __eq__, _ = _binary("eq")
    __ne__, _ = _binary("ne")
    __hash__ = _Sym.__hash__

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __pos__(self):
        return self

    def __neg__(self):
        return self * -1

    def __bool__(self):
        return bool(self != 0)

    def __int__(self):
        return int(self._value())

    def __float__(self):
        return float(self._value())

    def __complex__(self):
        return complex(self._value())


@public_in("")
class SymInt(_Number):
    """A symbolic integer: a size, a stride, an offset, a number of the program."""

    __slots__ = ()
    __sym__ = "int"

    __and__, __rand__ = _binary("and")
    __or__, __ror__ = _binary("or")
    __xor__, __rxor__ = _binary("xor")
    __lshift__, __rlshift__ = _binary("lshift")
    __rshift__, __rrshift__ = _binary("rshift")

    def _value(self) -> int:
        return self.env.specialize(self.expr)

    def __index__(self):
        return self._value()

    def maybe_as_int(self):
        e = self.env.simplify(self.expr)
        return e if isinstance(e, int) else None

    def __abs__(self):
        return wrap(E.maximum(self.expr, -self.expr), self.env)

    def __invert__(self):
        return -self - 1

    def __round__(self, ndigits=None):
        return self

    def __trunc__(self):
        return self

    __floor__ = __ceil__ = __trunc__

    def is_integer(self):
        return True

    def bit_length(self):
        return self._value().bit_length()


@public_in("")
class SymFloat(_Number):
    """A symbolic floating-point number."""

    __slots__ = ()
    __sym__ = "float"

    def _value(self) -> float:
        return self.env.specialize(self.expr)

    def __abs__(self):
        return wrap(R.float_op("abs", self.expr), self.env)

    def __neg__(self):
        return wrap(R.float_op("neg", self.expr), self.env)

    def __trunc__(self):
        return wrap(self.expr.to_int() if type(self.expr) is R.Float else _whole(self.expr), self.env)

    def __floor__(self):
        return wrap(_whole(R.float_op("floordiv", self.expr, 1)), self.env)

    def __ceil__(self):
        return -wrap(_whole(R.float_op("floordiv", R.float_op("neg", self.expr), 1)), self.env)

    def __round__(self, ndigits=None):
        return round(self._value(), ndigits)

    def is_integer(self):
        return self == self // 1


def _whole(e):
    return e.to_int() if type(e) is R.Float else R.Float("float", e).to_int()


@public_in("")
class SymBool(_Sym):
    """A symbolic truth value. ``and``/``or``/``not`` ask for the value; ``&``, ``|``, :func:`sym_not` don't."""

    __slots__ = ()
    __sym__ = "bool"
    __hash__ = _Sym.__hash__

    def _value(self) -> bool:
        return self.env.evaluate(self.expr)

    __bool__ = _value

    def __int__(self):
        return int(self._value())

    __index__ = __int__

    def __and__(self, other):
        e = _truth(other)
        return NotImplemented if e is None else wrap(R.junction("and", self.expr, e), self.env)

    def __or__(self, other):
        e = _truth(other)
        return NotImplemented if e is None else wrap(R.junction("or", self.expr, e), self.env)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self):
        return wrap(R.negate(self.expr), self.env)

    def __sym_not__(self):
        return wrap(R.negate(self.expr), self.env)

    def __eq__(self, other):
        e = _truth(other)
        if e is None:
            return NotImplemented
        both = R.junction("and", self.expr, e)
        return wrap(R.junction("or", both, R.junction("and", R.negate(self.expr), R.negate(e))), self.env)

    def __ne__(self, other):
        same = self.__eq__(other)
        return same if same is NotImplemented else sym_not(same)

    def _number(self):
        return wrap(_as_int(self.expr), self.env)

    def __add__(self, other):
        return self._number() + other

    def __mul__(self, other):
        return self._number() * other

    def __sub__(self, other):
        return self._number() - other

    def __rsub__(self, other):
        return other - self._number()

    __radd__, __rmul__ = __add__, __mul__


def _truth(x):
    return x if isinstance(x, bool) else x.expr if type(x) is SymBool else None


NUMBERS = (SymInt, SymFloat, SymBool)


# --- helpers that take plain numbers too ------------------------------------------------------------------------------
def is_int(x: Any) -> bool:
    """Whether ``x`` is an integer, symbolic or not (``bool`` counts, as in ``isinstance(x, int)``)."""
    return isinstance(x, (int, SymInt))


def is_number(x: Any) -> bool:
    """Whether ``x`` is a Python number, symbolic or not."""
    return isinstance(x, (int, float, complex, _Sym))


def as_float(value: Any) -> Any:
    """An integer as the float that it is, which unsigned dtypes don't wrap around; it stays where floats are coarser than 64-bit integers."""
    if isinstance(value, SymInt):
        return sym_float(value)
    return float(value) if value.__class__ is int and not 1 << 53 < abs(value) < 1 << 63 else value


def check_fits(value: Any, dtype: dtypes.DType) -> None:
    """``dtypes.check_number`` of a number that may be symbolic: then what is traced is for the numbers that fit. Truth values fit all dtypes. Nothing
    is known of a number without a hint."""
    if not isinstance(value, _Sym):
        if value.__class__ in (int, float, complex):
            dtypes.check_number(value, dtype)
    elif type(value) is not SymBool and dtype.category in (1, 2) and value.has_hint():
        low, high = dtypes.limits(dtype)
        # Every 64-bit number fits.
        if low > -(2**63) or high < 2**63 - 1 or type(value) is not SymInt:
            dtypes.check_number(value, dtype)


def is_symbolic(x: Any) -> bool:
    """Whether ``x`` is a symbolic number, or a sequence with one inside."""
    if isinstance(x, (tuple, list)):
        for y in x:  # a loop: this is asked about every shape
            if type(y) is not int and is_symbolic(y):
                return True
        return False
    return isinstance(x, _Sym)


def _extreme(name, a, b):
    if not isinstance(a, _Sym) and not isinstance(b, _Sym):
        return max(a, b) if name == "max" else min(a, b)
    x, y = expression(a), expression(b)
    if x is None or y is None:
        raise TypeError(f"sym_{name} takes two numbers, got {type(a).__name__} and {type(b).__name__}")
    if _is_float(x) or _is_float(y):
        return wrap(R.float_op(name, x, y), _env(a, b))
    return wrap((E.maximum if name == "max" else E.minimum)(x, y), _env(a, b))


def sym_max(a, b):
    """The greater of two numbers, without a guard."""
    return _extreme("max", a, b)


def sym_min(a, b):
    """The lesser of two numbers, without a guard."""
    return _extreme("min", a, b)


def sym_not(a):
    """``not a`` without a guard."""
    return a.__sym_not__() if hasattr(a, "__sym_not__") else not a


def sym_ite(b, t, f):
    """``t if b else f``; without a guard when the three are truth values or when one branch is known."""
    if isinstance(b, bool):
        return t if b else f
    e, x, y = b.expr, _truth(t), _truth(f)
    if x is not None and y is not None:
        both = R.junction("and", e, x)
        return wrap(R.junction("or", both, R.junction("and", R.negate(e), y)), b.env)
    n = b._number()
    return n * t + (1 - n) * f


def sym_sum(args):
    """The sum of a sequence."""
    out = 0
    for a in args:
        out = out + a
    return out


def sym_int(a):
    """``int(a)`` without a guard."""
    if isinstance(a, SymInt):
        return a
    if isinstance(a, SymFloat):
        return a.__trunc__()
    return a._number() if isinstance(a, SymBool) else int(a)


def sym_float(a):
    """``float(a)`` without a guard."""
    if isinstance(a, SymFloat):
        return a
    if isinstance(a, _Sym):
        return wrap(R.float_op("float", expression(a)), a.env)
    return float(a)


def _function(name):
    def fn(a):
        if isinstance(a, _Sym):
            return wrap(R.float_op(name, expression(a)), a.env)
        return getattr(math, name)(a)

    fn.__name__ = fn.__qualname__ = f"sym_{name}"
    fn.__doc__ = f"``math.{name}`` of a number, symbolic or not, without a guard."
    return fn


sym_sqrt = _function("sqrt")
FUNCTIONS = {
    f"sym_{n}": _function(n)
    for n in ("cos", "sin", "tan", "cosh", "sinh", "tanh", "acos", "asin", "atan", "exp", "log2")
}
