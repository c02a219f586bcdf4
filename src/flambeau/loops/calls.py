"""What functions and methods do in a loop: Python's and NumPy's on numbers, reductions, products, new arrays."""

from __future__ import annotations

import collections
import inspect
import types

import numpy as np

from ..base.records import replace
from . import (
    arithmetic,
    arrays,
    assembly,
    byte_strings,
    comparisons,
    complex_functions,
    complexes,
    conversions,
    draws,
    gathers,
    generators,
    integers,
    list_functions,
    mathematics,
    numpy_calls,
    places,
    reductions,
    text,
    wrapping,
    written_out,
)
from .arrays import OnElements
from .assembly import FUNCTIONS
from .containers import Containers
from .emitter import constant
from .inlining import Inlining
from .machine import InterpreterPart, Machine
from .operands import Operands
from .values import (
    CHARACTER,
    ArrayView,
    Call,
    Container,
    Declined,
    Expression,
    Known,
    LocalFunction,
    Method,
    Null,
    Scalar,
    Slice,
    Stream,
    Text,
    Tuple,
    memory_type,
)
from .variables import Variables

__all__ = ["Calls"]

# Functions of Python's or NumPy's for which there is code here.
OURS = frozenset((*FUNCTIONS, generators.given_back))


class Calls(InterpreterPart):
    """The call instructions."""

    def __init__(
        self,
        machine: Machine,
        operands: Operands,
        variables: Variables,
        inlining: Inlining,
        rerunnable: bool,
        containers: Containers,
    ):
        """``rerunnable``: see Inputs."""
        super().__init__(machine)
        self.rerunnable, self.containers = rerunnable, containers
        self.operands, self.variables, self.inlining = operands, variables, inlining
        self.kw_names: tuple[str, ...] = ()

    def KW_NAMES(self, inst):
        self.kw_names = inst.argval if isinstance(inst.argval, tuple) else self.inlining.here.constants[inst.arg]

    def CALL(self, inst):
        args = self.machine.taken(inst.arg)
        b, a = self.machine.pop(), self.machine.pop()
        fn = b if isinstance(a, Null) else a
        if not (isinstance(a, Null) or isinstance(b, Null)):
            args = [b, *args]
        names, self.kw_names = self.kw_names, ()
        at = len(args) - len(names)
        args, kwargs = args[:at], dict(zip(names, args[at:]))
        found = self.of_containers(fn, args, kwargs)
        if found is not None:
            return self.inlining.enter_own(found)
        code = self.written_out(fn.value, args, kwargs) if isinstance(fn, Known) else None
        if code is not None:
            fn = LocalFunction(code, ())
            args = [self.variables.passing(a) if isinstance(a, Expression) else a for a in args]
        if isinstance(fn, LocalFunction) and generators.is_generator(fn.code):
            fn, started = self.consumed(fn)
            args += started
        if isinstance(fn, LocalFunction):
            return self.inlining.enter(fn, args, kwargs)
        if isinstance(fn, Known) and (
            fn.value is fn.origin or (isinstance(fn.value, types.FunctionType) and fn.value not in OURS)
        ):  # a function made while tracing is known as capture's variable
            return self.inlining.enter(fn, args, kwargs)
        self.stack.append(self.call(fn, args, kwargs))
        return None

    def of_containers(self, fn, args: list, kwargs: dict):
        """The function, written out, of a builtin or a method that takes all of a list, dict or set; None for other calls."""
        if isinstance(fn, Method) and isinstance(fn.owner, Container):
            found = list_functions.method(fn.owner, fn.name, args, kwargs)
            if found is not None:
                self.containers.changes(fn.owner)
            return found
        return list_functions.function(fn.value, args, kwargs) if isinstance(fn, Known) else None

    def written_out(self, f, args: list, kwargs: dict):
        """The code of a builtin function that is written out for these arguments."""
        if not isinstance(f, types.BuiltinFunctionType):
            return None
        return written_out.written_out(f, args, kwargs) or generators.on_list(f, args, kwargs)

    def consumed(self, fn: LocalFunction) -> tuple[LocalFunction, list]:
        """A generator's function, with the builtin that takes what it gives at once, and what a sum begins with."""
        found = generators.consumed(self.machine.insts, self.machine.at, self.stack)
        if found is None:
            raise Declined("a generator that no builtin function consumes at once")
        if found.done:
            self.stack[found.place] = Known(generators.given_back)
        return replace(fn, consumer=found.how), [] if found.start is None else [self.loaded(found.start)]

    def loaded(self, inst):
        """What an instruction loads that is a variable's or a constant's."""
        return self.variables.read(inst.argval) if inst.name == "LOAD_FAST" else constant(inst.argval)

    def CALL_KW(self, inst):
        self.kw_names = tuple(item.value for item in self.machine.pop().items)
        return self.CALL(inst)

    def call(self, fn, args, kwargs):
        """The value of a call: by code of its own, or left to NumPy."""
        if isinstance(fn, Method) and fn.name in numpy_calls.METHODS:
            fn, args = Known(numpy_calls.METHODS[fn.name]), [fn.owner, *args]
        rule = numpy_calls.rule_of(fn.value) if isinstance(fn, Known) else None
        if rule is None:
            return self.own_code(fn, args, kwargs)
        back = self.e.mark()
        try:
            return self.own_code(fn, list(args), dict(kwargs))
        except Declined:
            back()
            return numpy_calls.called(
                self.e, fn.value, args, kwargs, f"{fn.value.__name__}@{self.machine.at}", self.rerunnable
            )

    def own_code(self, fn, args, kwargs):
        e = self.e
        if isinstance(fn, Method):
            return self.method(fn, args, kwargs)
        if not isinstance(fn, Known):
            raise Declined(f"a call of a {type(fn).__name__.lower()}")
        f = fn.value
        if f is generators.given_back:
            return args[0]
        made = text.called(e, f, args) if not kwargs else None
        if made is not None:
            return made
        if text.has_text((*args, *kwargs.values())) and f not in (enumerate, zip, reversed):
            raise Declined(f"a call of {getattr(f, '__name__', f)} with text")
        method = _ufunc_method(f)
        if method is not None:
            return self.ufunc_method(*method, args, kwargs)
        if isinstance(f, np.ufunc) and ("out" in kwargs or len(args) > f.nin):
            return self.into(f, args, kwargs)
        try:
            reduction, making = _REDUCTIONS.get(f), _MAKING.get(f)
        except TypeError:
            raise Declined(f"a call of {f!r}") from None
        if reduction is not None and args:
            return self.reduction(reduction, *args, **kwargs)
        if making is not None:
            return self.new_array(making, args, kwargs)
        assembled = FUNCTIONS.get(f)
        if assembled is not None:
            try:
                inspect.signature(assembled).bind(e, "", *args, **kwargs)
            except TypeError:
                raise Declined(f"a call of {f.__name__} with these arguments") from None
            return assembled(e, f"{f.__name__}@{self.machine.at}", *args, **kwargs)
        if f in (range, enumerate, zip, np.ndindex):  # for GET_ITER
            return Call(f, tuple(args), kwargs)
        if kwargs:
            raise Declined(f"a call of {getattr(f, '__name__', f)} with keyword arguments")
        if f is reversed and len(args) == 1:
            return self.backwards(*args)
        made = self.made_of_numbers(f, args)
        if made is not None:
            return made
        if f in (abs, np.absolute) and len(args) == 1:
            (x,) = args
            whole = isinstance(x, (ArrayView, Expression)) and x.dtype.kind == "c"
            rule = complexes.absolute_of_element if whole else arithmetic.absolute if f is abs else mathematics.MATH[f]
            return arrays.elementwise(e, OnElements(e, rule), x)
        if f in (np.dot, np.matmul, np.vdot) and len(args) == 2:
            if f is np.vdot and not all(getattr(x, "ndim", 0) == 1 and x.dtype.kind != "c" for x in args):
                raise Declined("np.vdot of matrices or complex numbers")
            return reductions.dot(e, *args, f"product@{self.machine.at}")
        if f is np.where and len(args) == 3:
            return arrays.elementwise(e, OnElements(e, arrays.where), *args)
        known = mathematics.MATH.get(f)
        if known is None:
            raise Declined(f"a call of {getattr(f, '__name__', f)}")
        return arrays.elementwise(e, OnElements(e, known), *args)

    def backwards(self, x):
        """reversed() of a list, a row or a range, for GET_ITER."""
        if isinstance(x, Container) and x.kind == "list":
            return Call(reversed, (x,))
        words = text.of(self.e, x)
        if words is not None:
            return text.backwards(self.e, words)
        if isinstance(x, ArrayView) and x.ndim:
            down = Slice(Known(None), Known(None), constant(-1))
            return arrays.subscript(self.e, x, down)
        if isinstance(x, Call) and x.function is range and len(x.arguments) < 3:
            ends = [constant(0), *x.arguments][-2:]
            first, last = (arithmetic.binary(self.e, "-", n, constant(1)) for n in ends)
            return Call(range, (last, first, constant(-1)))
        raise Declined(f"reversed() of a {type(x).__name__.lower()}")

    def method(self, fn: Method, args, kwargs):
        """A call of a method of a container, a generator or an array."""
        e = self.e
        if isinstance(fn.owner, Text) or getattr(fn.owner, "dtype", None) == CHARACTER:
            return text.method(e, fn.owner, fn.name, args)
        if isinstance(fn.owner, Container):
            if kwargs:
                raise Declined(f"{fn.name}() with keyword arguments")
            return self.containers.method(fn.owner, fn.name, list(args))
        if isinstance(fn.owner, Stream):
            self.operands.drawn[fn.owner.n] = self.operands.drawn.get(fn.owner.n, False) or fn.name in draws.NORMALS
            if fn.name == "shuffle" and args and isinstance(args[0], ArrayView):
                self.variables.about_to_write(args[0])
            return draws.draw(e, fn.owner, fn.name, args, kwargs, f"{fn.name}@{self.machine.at}")
        if fn.name in ("conj", "conjugate") and not args and not kwargs:
            return arrays.elementwise(e, OnElements(e, complexes.conjugate), fn.owner)
        if fn.name in reductions.REDUCTIONS:
            return self.reduction(fn.name, fn.owner, *args, **kwargs)
        if kwargs:
            raise Declined(f"{fn.name}() with keyword arguments")
        if fn.name in _OF_NUMBERS and isinstance(fn.owner, Scalar) and not args:
            return _OF_NUMBERS[fn.name](e, fn.owner)
        if fn.name == "nonzero" and not args:
            return gathers.nonzero(e, f"nonzero@{self.machine.at}", fn.owner)
        if fn.name == "copy":
            return arrays.as_dtype(e, fn.owner, fn.owner.dtype)
        if fn.name == "astype":
            return arrays.as_dtype(e, fn.owner, _dtype(args[0]))
        return reductions.dot(e, fn.owner, args[0], f"product@{self.machine.at}")

    def made_of_numbers(self, f, args):
        """What functions of numbers, and of sizes and dtypes, give; None for others."""
        e = self.e
        if f in (max, min) and len(args) > 1 and all(isinstance(a, Scalar) for a in args):
            return comparisons.choose(e, f is max, args)
        if len(args) == 1 and isinstance(args[0], Tuple) and all(isinstance(a, Scalar) for a in args[0].items):
            made = places.of_items(e, f, list(args[0].items))
            if made is not None:
                return made
        if f is np.where and len(args) == 1:
            return gathers.nonzero(e, f"where@{self.machine.at}", *args)
        if f is round and len(args) == 2:
            return mathematics.rounded_to(e, *args)
        if f is set and not args:
            return self.containers.create(self.machine.at, "set")
        if f is collections.deque and (not args or (len(args) == 1 and isinstance(args[0], Tuple))):
            made = self.containers.create(self.machine.at, "deque")
            for item in args[0].items if args else ():
                self.containers.append(made, item)
            return made
        if f is len and isinstance(args[0], Container):
            return self.containers.count(args[0])
        if f is len and byte_strings.is_bytes(args[0]):
            return constant(len(args[0].value))
        if f is len and isinstance(args[0], ArrayView):
            return arrays.size(e, args[0].sizes[0])
        if isinstance(f, type) and issubclass(f, np.generic) and len(args) == 1 and isinstance(args[0], Scalar):
            dtype = np.dtype(f)
            memory_type(dtype)
            return conversions.as_type(e, args[0], dtype)
        if f in (np.iinfo, np.finfo) and len(args) == 1:
            return Known(f(_dtype(args[0])))
        if f in _ON_NUMBERS and len(args) == 1 and isinstance(args[0], Scalar):
            out = _ON_NUMBERS[f](e, *args)
            if f is abs and args[0].kind == "i" and self.inlining.inputs.tells_wrapping:
                wrapping.note_negative(e, args[0], out)
            return out
        if f is round and len(args) == 1 and isinstance(args[0], Scalar):
            return conversions.to_int(e, mathematics.MATH[np.rint](e, args[0]) if args[0].kind == "f" else args[0])
        if f is complex and args and all(isinstance(a, Scalar) for a in args):
            return complex_functions.python_complex(e, *args)
        return None

    def into(self, f: np.ufunc, args: list, kwargs: dict):
        """A ufunc that is given the array to write: ``f(x, y, out)`` or ``f(x, y, out=out)``."""
        given = [*args[f.nin :], *([kwargs["out"]] if "out" in kwargs else ())]
        out = given[0].items[0] if isinstance(given[0], Tuple) and len(given[0].items) == 1 else given[0]
        if len(given) > 1 or kwargs.keys() - {"out"}:
            raise Declined(f"np.{f.__name__} with these arguments")
        value = self.call(Known(f), args[: f.nin], {})
        if isinstance(out, Known) and out.value is None:
            return value
        if not isinstance(out, ArrayView) or not arrays.may_hold(out.dtype, value.dtype):
            raise Declined(f"np.{f.__name__} with such an out")
        self.variables.about_to_write(out)
        arrays.assign(self.e, out, value)
        return out

    def ufunc_method(self, f: np.ufunc, name: str, args: list, kwargs: dict):
        """``np.add.outer`` and its like."""
        if name == "outer" and len(args) == 2 and not kwargs:
            return assembly.outer_of(self.e, lambda *pair: self.call(Known(f), pair, {}), *args)
        if name == "reduce" and f in _REDUCED and args:
            x, *rest = args
            return self.reduction(_REDUCED[f], x, *(rest or [constant(0)] if "axis" not in kwargs else ()), **kwargs)
        if name == "accumulate" and f is np.add and len(args) == 1 and not kwargs:
            return assembly.cumsum(self.e, f"accumulate@{self.machine.at}", *args)
        raise Declined(f"np.{f.__name__}.{name} with these arguments")

    def reduction(self, name: str, x, *args, **kwargs):
        given = {**dict(zip(("axis",), args)), **kwargs}
        axis, keepdims = map(_plain, (given.pop("axis", Known(None)), given.pop("keepdims", constant(False))))
        axes = (axis,) if type(axis) is int else axis
        known = axes is None or (isinstance(axes, tuple) and all(type(k) is int for k in axes))
        if given or len(args) > 1 or not known or type(keepdims) is not bool:
            raise Declined(f"{name} with these arguments")
        return reductions.reduce(self.e, name, x, axes, keepdims, f"{name}@{self.machine.at}")

    def new_array(self, value: int, args, kwargs):
        """zeros, ones and empty, and those like another array (value None: the first argument's shape and a fill value)."""
        e = self.e
        dtype = _dtype(kwargs.pop("dtype")) if "dtype" in kwargs else _dtype(args.pop(1)) if len(args) > 1 else None
        if kwargs or len(args) != 1:
            raise Declined("a new array with these arguments")
        (shape,) = args
        if isinstance(shape, ArrayView):
            return arrays.filled(constant((dtype or shape.dtype).type(value)), shape.sizes)
        sizes = arrays.given_sizes(e, shape)
        return arrays.filled(constant((dtype or np.dtype(np.float64)).type(value)), sizes)


_REDUCTIONS = {
    np.sum: "sum", np.prod: "prod", np.max: "max", np.min: "min", np.mean: "mean", np.argmax: "argmax", np.argmin: "argmin",
    np.any: "any", np.all: "all",
}  # fmt: skip
_REDUCED = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}
_MAKING = {np.zeros: 0, np.ones: 1, np.empty: 0, np.zeros_like: 0, np.ones_like: 1, np.empty_like: 0}
_ON_NUMBERS = {
    int: conversions.to_int,
    float: conversions.to_float,
    bool: lambda e, x: Scalar(np.dtype(bool), True, conversions.to_bool(e, x)),
    abs: arithmetic.absolute,
}


_OF_NUMBERS = {
    "item": conversions.item,
    "is_integer": mathematics.is_integer,
    "bit_length": integers.bit_length,
    "bit_count": integers.bit_count,
}


def _ufunc_method(f) -> tuple[np.ufunc, str] | None:
    """The ufunc and the name of a method of one."""
    owner = getattr(f, "__self__", None)
    return (owner, f.__name__) if isinstance(owner, np.ufunc) else None


def _plain(v):
    """The Python object that a value is known to be."""
    if isinstance(v, Tuple):
        return tuple(map(_plain, v.items))
    return v.value if isinstance(v, Known) else getattr(v, "const", v)


def _dtype(x) -> np.dtype:
    if not isinstance(x, Known):
        raise Declined("a dtype that isn't known")
    try:
        dtype = np.dtype(x.value)
    except TypeError:
        raise Declined(f"the dtype {x.value!r}") from None
    memory_type(dtype)
    return dtype
