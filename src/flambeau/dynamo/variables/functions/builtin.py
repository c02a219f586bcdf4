"""Builtins: folded on constants, traced on containers and user objects."""

from __future__ import annotations

import enum
import functools
import inspect
import math
import operator
import sys
import types

import numpy as np

from flambeau.base.symint import sym_max, sym_min

from ...exc import SkipFrame, UserRaises, unsupported
from ...graph import tensor_queries
from ...rules import trace_rules
from ...rules.reflect import flags_of, is_among, module_of, name_of, qualname_of
from ...tracing import world
from ...tracing.wrapping import CLASS_WRAPPERS, FUNCTION_WRAPPERS, pin
from ..base import HeldVariable, KnownVariable, Variable, never_called, refuse_arguments
from ..containers.dicts import DictVariable, DictView
from ..containers.lists import RangeVariable, SequenceVariable, SliceVariable, TupleVariable
from ..containers.sets import SetVariable
from ..contexts.managers import ContextManagerVariable
from ..exceptions.exception import ExceptionVariable, make_exception
from ..objects import class_statements
from ..objects.builtin_subclass import MAPPINGS, NEW, builtin_base, new_derived
from ..objects.class_object import ClassVariable, SuperVariable
from ..objects.identity import IdVariable
from ..objects.instance import ObjectVariable, SlotMethod, refuse_excess
from ..objects.namespaces import NamespaceDict
from ..operators import INPLACE, OPERATORS, UNARY, binary, fold, identical, unary
from ..tensors.tensor import NumpyNdarrayVariable, TensorVariable
from ..values import text
from ..values.constant import ConstantVariable, indexed, is_none
from ..values.given_text import GivenTextVariable
from ..values.symbolic import FUNCTIONS, SymbolicRangeVariable, SymbolicVariable, arithmetic, specialized, wrap_number
from .getters import GetterVariable
from .handlers import HANDLERS, handles, takes
from .python_functions import PartialVariable, UserMethodVariable

__all__ = ["BuiltinVariable"]

PURE_MODULES = {"math", "_operator", "cmath"}
WRITERS = {"setitem", "delitem", "iconcat", *(fn.__name__ for fn in INPLACE)}  # they may write to the first argument
PURE = {
    abs, all, any, ascii, bin, bool, bytes, chr, complex, divmod, float, format, frozenset, hash, hex, int, len, max, min, oct, ord, pow,
    repr,
    round, str, sum, tuple, np.dtype, np.float32, np.float64, np.int32, np.int64, np.finfo, np.iinfo, np.prod, math.prod,
    functools.reduce, inspect.isclass, inspect.isfunction,
}  # fmt: skip


CONVERSIONS = {int: "__int__", float: "__float__"}  # to a number, by the class's own method


class BuiltinVariable(KnownVariable):
    """A builtin function or type, or another C callable that may be folded."""

    def __repr__(self):
        return f"{getattr(self.value, '__name__', self.value)}"

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))

    def getattr(self, tx, name):
        value = getattr(self.value, name, None)
        if isinstance(self.value, type) and isinstance(
            value, (types.MethodDescriptorType, types.WrapperDescriptorType)
        ):
            return UnboundMethod(self.value, name, value)
        if name == "fromkeys" and isinstance(self.value, type) and is_among(self.value, MAPPINGS):
            return BuiltinVariable(self.value.fromkeys)
        return world.library_attr(tx, self, self.value, self.source, name)

    def getitem(self, tx, key):
        if isinstance(self.value, type) and hasattr(self.value, "__class_getitem__") and key.can_constant():
            return fold(tx, operator.getitem, [self, key])
        return super().getitem(tx, key)

    def call(self, tx, args, kwargs):
        fn = self.value
        if args and isinstance(args[0], ContextManagerVariable) and fn.__name__ in ("__enter__", "__exit__"):
            return args[0].call_method(tx, fn.__name__, args[1:], kwargs)  # found on its class, as ExitStack does
        if any(isinstance(tx.realize(a), SymbolicVariable) for a in args):
            args = [tx.realize(a) for a in args]
            found = self.call_symbolic(tx, args, kwargs)
            if found is not None:
                return found
            if not any(isinstance(a, TensorVariable) for a in args):
                args = [specialized(tx, a) for a in args]
        h = HANDLERS.get(fn)
        if h is not None and takes(fn, len(args), tuple(kwargs)):
            r = h(tx, args, kwargs)
            if r is not None:
                return r
        if fn in OPERATORS and len(args) == 2:
            return binary(tx, fn, *args)
        if fn in UNARY and len(args) == 1:
            return unary(tx, fn, args[0])
        everything = [*args, *kwargs.values()]
        pure = fn in PURE or (module_of(fn) in PURE_MODULES and fn.__name__ not in WRITERS)
        if pure and all(a.can_constant() for a in everything):
            return fold(tx, fn, args, kwargs)
        if isinstance(fn, type) and issubclass(fn, BaseException):
            return make_exception(tx, fn, args, kwargs)
        if isinstance(fn, (types.MethodDescriptorType, types.WrapperDescriptorType)) and args:
            return UnboundMethod(fn.__objclass__, fn.__name__, fn).call(tx, args, kwargs)
        if fn in CONVERSIONS and len(args) == 1 and not kwargs and isinstance(args[0], ObjectVariable):
            if type(world.class_attr(tx, args[0].cls, CONVERSIONS[fn])) is types.FunctionType:
                made = args[0].call_method(tx, CONVERSIONS[fn], [], {})
                if made.is_constant() and type(made.as_constant()) is fn:
                    return made
        if fn in CONVERSIONS and len(args) == 1 and not kwargs and isinstance(args[0], TensorVariable):
            if tx.output.shapes.data_symbols("item"):
                return args[0].call_method(tx, CONVERSIONS[fn], [], {})
        name = getattr(fn, "__name__", str(fn))
        kinds = [type(a) for a in args]
        if any(isinstance(a, TensorVariable) for a in everything):
            why = (
                f"{name}() of a tensor depends on tensor data."
                if fn in (int, float, bool, str, repr, complex)
                else f"{name}() with these arguments isn't traced."
            )
        else:
            why = f"{name}() is ordinary Python with effects that a graph can't hold, or isn't traced with these arguments."
        unsupported(
            f"builtin-{name}",
            f"builtin: {name} {kinds!r} {bool(kwargs)}",
            why,
            "Move the call out of the compiled function, or accept the graph break.",
            headline=why,
        )

    def call_symbolic(self, tx, args, kwargs) -> Variable | None:
        """A call with a symbolic number among the arguments; None when the number's value is needed."""
        fn = self.value
        if fn in OPERATORS and len(args) == 2:
            return binary(tx, fn, *args)
        if fn in UNARY and len(args) == 1:
            return unary(tx, fn, args[0])
        if fn is bool and len(args) == 1:
            return ConstantVariable(args[0].truth(tx))
        if fn in (min, max) and len(args) == 2 and not kwargs:
            kinds = {a.python_type() for a in args}
            if bool in kinds or len(kinds) > 1:
                # One of the two, with its type, not a number that equals it.
                second = binary(tx, operator.lt if fn is min else operator.gt, args[1], args[0])
                return args[1] if tx.truth(second) else args[0]
            return arithmetic(tx, sym_min if fn is min else sym_max, args)
        if fn is pow and len(args) == 2:
            return arithmetic(tx, operator.pow, args)
        if fn in FUNCTIONS and not kwargs:
            return arithmetic(tx, fn, args)
        if fn in TAKE_NUMBERS:
            h = HANDLERS.get(fn)
            return h(tx, args, kwargs) if h is not None else None
        return None


# Builtins that pass numbers on without looking at them.
TAKE_NUMBERS = (
    isinstance, type, tuple, list, slice, set, dict, setattr, getattr, hasattr, iter, next, zip, enumerate, operator.getitem,
    operator.setitem, id, range,
)  # fmt: skip


class UnboundMethod(HeldVariable):
    """str.upper, list.append, object.__setattr__ taken from the type."""

    def __init__(self, cls, name, value):
        super().__init__(value)
        self.cls, self.name = cls, name

    def call(self, tx, args, kwargs):
        o, owner = args[0] if args else None, getattr(self.value, "__objclass__", object)
        kind = type(None) if o is None else type(o.as_constant()) if o.is_constant() else o.python_type()
        # By identity: a metaclass of the program may have an __eq__.
        told = o is None or o.is_constant() or any(kind is t for t in (int, float, list, dict, set, tuple, frozenset))
        if o is None or told and not issubclass(kind, owner):
            try:  # refuses its receiver before it does anything
                self.value(*(a.as_constant() if a.is_constant() else kind() for a in args[:1]))
            except TypeError as e:
                tx.raise_user(TypeError(str(e)))
            unsupported("descriptor", f"{self.name} of another class")
        if isinstance(o, ObjectVariable) or self.value is type.__getattribute__:
            return SlotMethod(o, self.name, self.value).call(tx, args[1:], kwargs)
        if o.is_container:
            refuse_arguments(tx, kind, self.name, args[1:], kwargs)
        made = o.call_method(tx, self.name, args[1:], kwargs)
        if isinstance(made, DictView):
            made.cls = owner
        return made


@handles(len)
def _(tx, args, kwargs):
    if isinstance(args[0].unwrap(), GivenTextVariable):
        return wrap_number(args[0].unwrap().size())
    known = args[0].is_constant() and not isinstance(args[0].as_constant(), enum.Enum)
    return None if known else wrap_number(args[0].length(tx))


@handles(bool)
def _(tx, args, kwargs):
    if not args:
        return ConstantVariable(False)
    return ConstantVariable(tx.truth(args[0]))


@handles(operator.truth)
def _(tx, args, kwargs):
    return ConstantVariable(tx.truth(args[0]))


@handles(operator.not_)
def _(tx, args, kwargs):
    return ConstantVariable(not tx.truth(args[0]))


@handles(operator.is_)
def _(tx, args, kwargs):
    return ConstantVariable(identical(tx, *args))


@handles(operator.is_not)
def _(tx, args, kwargs):
    return ConstantVariable(not identical(tx, *args))


@handles(operator.contains)
def _(tx, args, kwargs):
    found = args[0].contains(tx, args[1])
    return found if isinstance(found, SymbolicVariable) else ConstantVariable(tx.truth(found))


@handles(operator.getitem)
def _(tx, args, kwargs):
    return args[0].getitem(tx, args[1])


@handles(operator.setitem)
def _(tx, args, kwargs):
    args[0].setitem(tx, args[1], args[2])
    return ConstantVariable(None)


@handles(operator.delitem)
def _(tx, args, kwargs):
    args[0].delitem(tx, args[1])
    return ConstantVariable(None)


@handles(type)
def _(tx, args, kwargs):
    if len(args) not in (1, 3):
        tx.raise_user(TypeError("type() takes 1 or 3 arguments"))
    if len(args) == 3:
        return class_statements.of_type(tx, args)
    v = args[0]
    if isinstance(v, ObjectVariable):
        return tx.make_class(v.cls)
    return tx.wrap_known(v.python_type())


@handles(hash)
def _(tx, args, kwargs):
    v = args[0].unwrap()
    if type(v) is TensorVariable and v.cls.__hash__ is tensor_queries.Tensor.__hash__:
        return IdVariable(v)
    if not isinstance(args[0], ObjectVariable):
        return None
    f = args[0].class_attr(tx, "__hash__")
    if f is None:
        tx.raise_user(TypeError(f"unhashable type: {name_of(args[0].cls)!r}"))
    if f is object.__hash__ and args[0].value is not None:
        found = IdVariable(args[0]).object(tx)
        return None if found is None else ConstantVariable(hash(found[1]))
    return args[0].call_special(tx, "__hash__") if type(f) is types.FunctionType else None


@handles(callable)
def _(tx, args, kwargs):
    return ConstantVariable(callable_variable(tx, args[0]))


def callable_variable(tx, v) -> bool:
    if isinstance(v, TensorVariable):
        return False
    if v.is_constant() or isinstance(v, (SequenceVariable, DictVariable, SetVariable)):
        return False
    return v.python_type() is type or world.class_attr(tx, v.python_type(), "__call__") is not world.ABSENT


@handles(range)
def _(tx, args, kwargs):
    for a in args:
        if isinstance(a, TensorVariable):
            unsupported("data-dependent", "range() of a tensor", "The value depends on tensor data.")
        indexed(tx, a)
        if isinstance(a, SymbolicVariable) and a.python_type() is float:
            tx.raise_user(TypeError("'float' object cannot be interpreted as an integer"))
    no_step = len(args) == 3 and args[2].is_constant() and args[2].as_constant() == 0
    if any(isinstance(a, SymbolicVariable) for a in args) and 1 <= len(args) <= 3 and not no_step:
        return SymbolicRangeVariable(args)
    try:
        return RangeVariable(range(0, 1, 0) if no_step else range(*[a.as_constant() for a in args]))
    except (TypeError, ValueError) as e:
        tx.raise_user(e)


@handles(slice)
def _(tx, args, kwargs):
    none = ConstantVariable(None)
    parts = [none, args[0], none] if len(args) == 1 else [*args, none][:3]
    return SliceVariable(parts)


@handles(abs)
def _(tx, args, kwargs):
    return unary(tx, operator.abs, args[0]) if not args[0].is_constant() else None


@handles(divmod)
def _(tx, args, kwargs):
    if any(isinstance(a, NumpyNdarrayVariable) for a in args):
        return TupleVariable([binary(tx, operator.floordiv, *args), binary(tx, operator.mod, *args)])
    return None


@handles(pow)
def _(tx, args, kwargs):
    return binary(tx, operator.pow, *args) if len(args) == 2 and not kwargs else None


@handles(round)
def _(tx, args, kwargs):
    if args and isinstance(args[0], TensorVariable):
        cls = args[0].python_type()
        found = world.class_attr(tx, cls, "__round__")
        if world.is_defined(found) and tensor_queries.is_of_program(cls, "__round__", found):
            return world.bind(tx, args[0], cls, "__round__", found).call(tx, args[1:], kwargs)
        if found is world.ABSENT:
            tx.raise_user(TypeError(f"type {name_of(cls)} doesn't define __round__ method"))
        digits = args[1] if len(args) > 1 else kwargs.get("ndigits")
        whole = is_none(digits)
        if whole and isinstance(args[0], NumpyNdarrayVariable):
            unsupported("data-dependent", f"round() of a {cls.__name__}", "It gives Python's int.", "Use np.rint.")
        return args[0].call_method(tx, "round", [], {} if whole else {"decimals": digits})
    return None


def _attribute_name(tx, fn, args, most: int) -> str:
    """The second argument of ``getattr`` and its like; Python's own error where it is no name, or where arguments are too many or few."""
    name = args[1].as_constant() if 2 <= len(args) <= most else None
    if not isinstance(name, str):
        try:
            fn(None, *[name] * (len(args) - 1))
        except TypeError as e:
            tx.raise_user(e)
    return name


@handles(getattr)
def _(tx, args, kwargs):
    name = _attribute_name(tx, getattr, args, 3)
    if len(args) == 2:
        return tx.attribute(args[0], name)
    try:
        return args[0].getattr(tx, name)
    except UserRaises as e:
        if isinstance(e.exception, AttributeError):
            return args[2]
        raise


@handles(hasattr)
def _(tx, args, kwargs):
    return ConstantVariable(bool(args[0].hasattr(tx, _attribute_name(tx, hasattr, args, 2))))


@handles(setattr)
def _(tx, args, kwargs):
    args[0].setattr(tx, _attribute_name(tx, setattr, args, 3), args[2])
    return ConstantVariable(None)


@handles(delattr)
def _(tx, args, kwargs):
    args[0].delattr(tx, _attribute_name(tx, delattr, args, 2))
    return ConstantVariable(None)


@handles(globals)
def _(tx, args, kwargs):
    return NamespaceDict(tx.globals, f"globals<{tx.globals.get('__name__')}>")


@handles(super)
def _(tx, args, kwargs):
    if not args:
        cell = tx.cells.get("__class__")
        if cell is None:
            return None
        if not tx.code.co_argcount:
            tx.raise_user(RuntimeError("super(): no arguments"))
        first = tx.code.co_varnames[0]
        obj = tx.locals.get(first) or (tx.cells[first].get(tx) if first in tx.cells else None)
        if obj is None:
            raise SkipFrame("super() whose object was deleted, which a captured frame keeps")
        args = [cell.get(tx), tx.realize(obj)]
        if args[0] is None:
            tx.raise_user(RuntimeError("super(): empty __class__ cell"))
    if len(args) != 2 or not isinstance(args[0].unwrap(), ClassVariable | BuiltinVariable):
        return None
    cls = args[0].as_constant()
    if not isinstance(cls, type):
        return None
    made = SuperVariable(cls, args[1].unwrap())
    made.owner(tx)
    return made


@handles(str)
def _(tx, args, kwargs):
    if not args and not kwargs:
        return ConstantVariable("")
    v = args[0] if args else kwargs.get("object")
    if v is None or len(args) + len(kwargs) > 1:
        return None
    if isinstance(v, ExceptionVariable):
        return v.text(tx, "__str__")
    if isinstance(v, ObjectVariable):
        return text.of_object(tx, v, "__str__")
    said = text.of_code(tx, v, "__str__")
    if said is not None:
        return said
    v = text.settled(tx, v)
    if isinstance(v, ClassVariable) or not v.can_constant():
        return None
    return fold(tx, str, [v])


@handles(format)
def _(tx, args, kwargs):
    if not isinstance(args[0], ObjectVariable):
        return None if len(args) > 1 else text.of_code(tx, args[0], "__format__")
    return text.of_object(tx, args[0], "__format__", args[1] if len(args) > 1 else ConstantVariable(""))


@handles(repr)
def _(tx, args, kwargs):
    if isinstance(args[0], ObjectVariable):
        return text.of_object(tx, args[0], "__repr__")
    return args[0].text(tx, "__repr__") if isinstance(args[0], ExceptionVariable) else text.of_code(tx, args[0])


@handles(print)
def _(tx, args, kwargs):
    return None


@handles(functools.partial)
def _(tx, args, kwargs):
    if not args:
        tx.raise_user(TypeError("type 'partial' takes at least one argument"))
    fn, *given = args
    if never_called(fn):
        tx.raise_user(TypeError("the first argument must be callable"))
    if isinstance(inner := tx.realize(fn).unwrap(), PartialVariable) and inner.is_merged(tx):
        fn, given, kwargs = inner.fn, [*inner.args, *given], {**inner.keywords(tx), **kwargs}
    return PartialVariable(fn, given, kwargs)


def evaluated(tx, args, kwargs) -> Variable | None:
    """``eval`` of a text that is known: traced as a function of the names that it finds among the locals, or in a dict of globals that was made
    while tracing. None where the frame itself is needed."""
    if kwargs or not 1 <= len(args) <= 2 or not args[0].is_constant() or not isinstance(args[0].as_constant(), str):
        return None
    text = args[0].as_constant().lstrip(" \t")
    try:
        code = compile(text, "<string>", "eval")
    except SyntaxError as e:
        tx.raise_user(e)
    if any(isinstance(c, types.CodeType) for c in code.co_consts):
        return None
    if len(args) == 1:
        given = {n: tx.locals[n] for n in code.co_names if n in tx.locals}
        if any(n in tx.cells for n in code.co_names):
            return None
    else:
        if type(args[1]) is not DictVariable or args[1].source is not None:
            return None
        given = {k.as_constant(): v for k, v in args[1].pairs(tx) if k.as_constant() in code.co_names}
        if any(n not in given and n in tx.globals for n in code.co_names) or args[1].get_key(tx, "__builtins__"):
            return None
    made = compile(f"lambda {', '.join(given)}: ({text}\n)", "<string>", "eval").co_consts[0]
    made = made.replace(co_name="<module>", co_qualname="<module>")
    return tx.wrap_function(types.FunctionType(made, tx.globals)).call(tx, list(given.values()), {})


def above(tx, depth):
    """The traced frame ``depth`` calls further out; None beyond the captured one."""
    while tx is not None and isinstance(depth, int) and depth > 0:
        tx, depth = tx.parent, depth - 1
    return tx


def of_frame(fn, name: str):
    """Functions that look at their caller's frame, which captured code doesn't have."""

    def handler(tx, args, kwargs):
        if name in ("vars", "dir") and args:
            if name == "dir":
                return None
            try:
                return args[0].getattr(tx, "__dict__")
            except UserRaises as e:
                if not isinstance(e.exception, AttributeError):
                    raise
            tx.raise_user(TypeError("vars() argument must have __dict__ attribute"))
        if fn is locals and not args and (found := tx.locals_dict()) is not None:
            return found
        if fn is eval and (found := evaluated(tx, args, kwargs)) is not None:
            return found
        if fn is sys._getframe:  # of a caller, perhaps
            tx = above(tx, args[0].as_constant() if args and args[0].is_constant() else 0)
        if tx is None or tx.parent is None or (fn is sys._getframe and "f_back" in tx.code.co_names):
            raise SkipFrame(f"{name}() looks at the frame itself")
        unsupported(
            "frame", f"call to {name}()", "It looks at the frame itself, so the function runs as ordinary Python."
        )

    HANDLERS[fn] = handler


for _fn in (locals, vars, dir, eval, exec, sys._getframe):
    of_frame(_fn, _fn.__name__)


@handles(sys.exc_info)
def _(tx, args, kwargs):
    v = tx.handled()
    if v is None:
        tx.handles_nothing_outside()
        return TupleVariable([ConstantVariable(None)] * 3)
    return TupleVariable([tx.wrap_known(v.python_type()), v, v.getattr(tx, "__traceback__")])


@handles(sys.exception) if hasattr(sys, "exception") else lambda f: f
def _(tx, args, kwargs):
    v = tx.handled()
    if v is None:
        tx.handles_nothing_outside()
        return ConstantVariable(None)
    return v


@handles(math.sqrt, math.exp, math.sin, math.cos, math.log, math.tanh, math.floor, math.ceil)
def _(tx, args, kwargs):
    if any(isinstance(a, TensorVariable) for a in args):
        unsupported(
            "data-dependent",
            "a math function of a tensor",
            "math functions take numbers: the value depends on tensor data.",
            "Use the tensor's own function.",
        )
    return None


def made_getter(tx, cls: type, args, kwargs) -> Variable:
    """One whose names are looked at when it is made."""
    try:
        cls(*(a.as_constant() if a.is_constant() else a for a in args), **dict.fromkeys(kwargs))
    except TypeError as e:
        tx.raise_user(e)
    return GetterVariable(cls, args, kwargs)


@handles(operator.attrgetter)
def _(tx, args, kwargs):
    return made_getter(tx, operator.attrgetter, args, {})


@handles(operator.itemgetter)
def _(tx, args, kwargs):
    return GetterVariable(operator.itemgetter, args, {})


@handles(operator.methodcaller)
def _(tx, args, kwargs):
    return made_getter(tx, operator.methodcaller, args, kwargs)


@handles(object)
def _(tx, args, kwargs):
    return ObjectVariable(None, object)


@handles(object.__new__)
def _(tx, args, kwargs):
    cls = args[0].as_constant()
    if trace_rules.is_nn_module_class(cls) or builtin_base(cls) is not None or issubclass(cls, BaseException):
        unsupported("construct", f"object.__new__({qualname_of(cls)})", "Its base is not plain Python.")
    if args[1:] or kwargs:
        refuse_excess(tx, cls, "__new__")
    return ObjectVariable(None, cls)


def _new(base):
    def handler(tx, args, kwargs):
        cls = args[0].as_constant()
        if cls is base:
            return tx.wrap_known(base).call(tx, args[1:], kwargs)
        if builtin_base(cls) is not base:
            unsupported("construct", f"{base.__name__}.__new__({qualname_of(cls)})")
        return new_derived(tx, base, cls, args[1:], kwargs)

    return handler


for _f, _base in NEW.items():
    HANDLERS[_f] = _new(_base)


@handles(types.MethodType)
def _(tx, args, kwargs):
    return UserMethodVariable(*args) if len(args) == 2 else None


@FUNCTION_WRAPPERS.row("with a handler")
def _(tx, value, source):
    if value not in HANDLERS or trace_rules.inline_reason(value)[0] != "skip":
        return None
    pin(tx, source, "ID_MATCH", value)
    return BuiltinVariable(value, source)


@CLASS_WRAPPERS.row("builtin")
def _(tx, value, source):
    immutable = module_of(value) == "builtins" and flags_of(value) & world.IMMUTABLE
    if is_among(value, HANDLERS) or is_among(value, PURE) or immutable:
        return BuiltinVariable(value, source)
    of_numpy = module_of(value) == "numpy" and not issubclass(value, np.ndarray)
    return BuiltinVariable(value, source) if of_numpy else None


@CLASS_WRAPPERS.row("of itertools")
def _(tx, value, source):
    return BuiltinVariable(value, source) if module_of(value) == "itertools" or value is functools.partial else None
