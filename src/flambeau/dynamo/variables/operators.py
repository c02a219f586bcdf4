"""Operators, identity and iteration on variables: folded on constants, recorded on tensors, traced on containers and user objects."""

from __future__ import annotations

import collections
import enum
import functools
import operator
import types

import numpy as np

from ..exc import UserRaises, unsupported
from ..guards.source import ConstSource, ItemSource
from ..numpy import numpy_bridge
from ..rules.reflect import dict_of, is_a, mro_of, name_of
from ..tracing import world
from .base import WHICH_NAN, Variable, contents_of, has_nan
from .containers.deques import DequeVariable, combined_deque
from .containers.dicts import DictVariable, DictView
from .containers.lists import ListVariable, SequenceVariable, TupleVariable, is_size
from .containers.set_history import Elements, SetHistory
from .containers.sets import SetVariable, elements_of, taken_over
from .iterators.protocol import each
from .numpy.byte_arrays import ByteArrayVariable
from .numpy.byte_arrays import binary as binary_of_bytes
from .numpy.integer_scalars import tell_of_overflow
from .objects.builtin_subclass import DerivedVariable
from .objects.class_object import ClassVariable
from .objects.identity import IdVariable, compared
from .objects.instance import ObjectVariable, SlotMethod
from .objects.namespaces import InstanceDict, NamespaceDict
from .tensors.tensor import NumpyNdarrayVariable, TensorVariable, as_ndarray
from .tensors.tensor_subclass import SubclassVariable
from .values.complex_numbers import as_numpys, of_complex
from .values.constant import ConstantVariable
from .values.graph_numbers import NumberVariable
from .values.stdlib_values import ValueVariable
from .values.symbolic import SymbolicVariable, arithmetic, specialized, wrap_number

__all__ = ["OPERATORS", "UNARY", "binary", "fold", "found_among", "identical", "same_or_equal", "searched", "unary"]

REFLECTED = {
    operator.add: ("__add__", "__radd__"), operator.sub: ("__sub__", "__rsub__"), operator.mul: ("__mul__", "__rmul__"),
    operator.truediv: ("__truediv__", "__rtruediv__"), operator.floordiv: ("__floordiv__", "__rfloordiv__"),
    operator.mod: ("__mod__", "__rmod__"), operator.pow: ("__pow__", "__rpow__"), operator.matmul: ("__matmul__", "__rmatmul__"),
    operator.and_: ("__and__", "__rand__"), operator.or_: ("__or__", "__ror__"), operator.xor: ("__xor__", "__rxor__"),
    operator.lshift: ("__lshift__", "__rlshift__"), operator.rshift: ("__rshift__", "__rrshift__"),
    operator.lt: ("__lt__", "__gt__"), operator.le: ("__le__", "__ge__"), operator.gt: ("__gt__", "__lt__"),
    operator.ge: ("__ge__", "__le__"), operator.eq: ("__eq__", "__eq__"), operator.ne: ("__ne__", "__ne__"),
}  # fmt: skip
INPLACE = {
    operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul, operator.itruediv: operator.truediv,
    operator.ifloordiv: operator.floordiv, operator.imod: operator.mod, operator.ipow: operator.pow, operator.imatmul: operator.matmul,
    operator.iand: operator.and_, operator.ior: operator.or_, operator.ixor: operator.xor, operator.ilshift: operator.lshift,
    operator.irshift: operator.rshift,
}  # fmt: skip
OPERATORS = {*REFLECTED, *INPLACE}
UNARY = {
    operator.neg: "__neg__",
    operator.pos: "__pos__",
    operator.invert: "__invert__",
    operator.abs: "__abs__",
    operator.not_: None,
}
NUMPY_UNARY = {
    operator.neg: np.negative,
    operator.pos: np.positive,
    operator.invert: np.invert,
    operator.abs: np.absolute,
}


WHICH_TRUTH = "Which truth value a graph computes is not known while tracing."
SINGLETONS = (bool, type(None), type(Ellipsis), type(NotImplemented), enum.Enum)


def identical(tx, a: Variable, b: Variable) -> bool:
    """``a is b``. When that is a matter of which objects the arguments are, it is guarded."""
    a, b = a.unwrap(), b.unwrap()
    if a is b:
        return True
    if isinstance(a, SymbolicVariable) or isinstance(b, SymbolicVariable):
        other = b if isinstance(a, SymbolicVariable) else a
        if other.is_constant() and not isinstance(other.as_constant(), (int, float)):
            return False
        return identical(tx, specialized(tx, a), specialized(tx, b))
    if isinstance(a, SubclassVariable) or isinstance(b, SubclassVariable):
        if a.source is not None and b.source is not None:
            tx.output.guards.not_aliased([a.source, b.source])
        return False
    if isinstance(a, TensorVariable) and isinstance(b, TensorVariable):
        same = a.node is b.node and type(a) is type(b)
        if not same:
            settle_numbers(a, b)
        if not same and a.source is not None and b.source is not None:
            tx.output.guards.not_aliased([a.source, b.source])  # the graph may need neither
        return same
    if isinstance(a, TensorVariable) or isinstance(b, TensorVariable):
        number, other = (a, b) if isinstance(a, TensorVariable) else (b, a)
        settle_number(number, other)
        return False
    if a.is_constant() and b.is_constant():
        x, y = a.as_constant(), b.as_constant()
        if type(x) is not type(y) or isinstance(x, SINGLETONS):
            return x is y
        return same_objects(tx, a, b, x, y)
    if a.is_constant() or b.is_constant():  # a class may be one or the other
        x, y = (v.as_constant() if v.is_constant() else known_object(v) for v in (a, b))
        return x is not None and x is y
    if isinstance(a, InstanceDict) and isinstance(b, InstanceDict):
        return a.owner is b.owner
    x, y = known_object(a), known_object(b)
    if x is not None and y is not None:
        return same_objects(tx, a, b, x, y)
    if a.mutable or b.mutable:
        return False  # at least one of them is made while tracing
    if x is not None or y is not None:
        return False
    if any(isinstance(v, TupleVariable) and v.source is None and not may_be_in_code(v) for v in (a, b)):
        return False  # it is made while tracing
    unsupported("identity", f"{a!r} is {b!r}", "Whether they are one object is not known while tracing.")


def settle_number(number: Variable, other: Variable) -> None:
    """Break the graph where a number that the graph computes may be the very object that ``other`` is: there is one of each truth value, and of small
    integers."""
    x = other.as_constant() if other.is_constant() else known_object(other)
    if isinstance(number, NumberVariable):
        if number.flag is not None or type(x) is number.number_type:
            number.as_proxy()
    elif isinstance(x, np.bool_) and is_truth(number):
        unsupported("identity", f"{number!r} is {other!r}", WHICH_TRUTH)


def settle_numbers(a: TensorVariable, b: TensorVariable) -> None:
    """The same for two of them."""
    if isinstance(a, NumberVariable) and isinstance(b, NumberVariable):
        if a.flag is not None or b.flag is not None or a.number_type is b.number_type:
            a.as_proxy()
    elif all(is_truth(v) for v in (a, b)):
        unsupported("identity", f"{a!r} is {b!r}", WHICH_TRUTH)


def is_truth(v: Variable) -> bool:
    """Whether it is one of NumPy's truth values, computed by the graph."""
    plain = type(v) is NumpyNdarrayVariable and v.scalar
    return plain and numpy_bridge.np_dtype(v.val).kind == "b"


def may_be_in_code(v: Variable) -> bool:
    """Whether a tuple may be a constant of the code, which is one object however often it is loaded."""
    return v.is_constant() or (isinstance(v, TupleVariable) and all(may_be_in_code(e.unwrap()) for e in v.elements))


def known_object(v: Variable):
    if type(v) is NamespaceDict:
        return v.table
    # Its base is a class.
    if isinstance(v, DerivedVariable):
        return v.value
    for name in ("value", "base", "open_value"):
        found = getattr(v, name, None)
        if found is not None:
            return found
    return None


def same_objects(tx, a, b, x, y) -> bool:
    p = a.source or ConstSource(x, "const")
    q = b.source or ConstSource(y, "const")
    if a.source is None and b.source is None and a.is_constant():
        unsupported(
            "identity", f"{a!r} is {b!r}", "Whether equal constants are one object is the interpreter's choice."
        )
    if type(p) is ConstSource and type(q) is ConstSource:
        return x is y
    if x is y:
        tx.output.guards.same_as(p, q)
    else:
        tx.output.guards.not_aliased([p, q])
    return x is y


def same_or_equal(tx, a: Variable, b: Variable) -> bool:
    """``a is b or a == b``, as containers compare."""
    a, b = tx.realize(a), tx.realize(b)
    if a is b:
        return True
    if any(v.is_symbol and v.python_type() is float for v in (a, b)):  # NaNs are not among what the symbol stands for
        if not all(v.is_constant() or tx.truth(binary(tx, operator.eq, v, v)) for v in (a, b)):
            unsupported("identity", f"{a!r} compared with {b!r}", WHICH_NAN)
    if isinstance(a, SymbolicVariable) or isinstance(b, SymbolicVariable):
        return bool(tx.truth(binary(tx, operator.eq, a, b)))
    if a.can_constant() and b.can_constant():
        settle_nans(tx, a, b)
        if a.is_constant() and b.is_constant() and a.as_constant() is b.as_constant():
            return True
        return bool(fold(tx, operator.eq, [a, b]).as_constant())
    if isinstance(a, (ObjectVariable, ClassVariable)) or isinstance(b, (ObjectVariable, ClassVariable)):
        if identical(tx, a, b):
            return True
        if not isinstance(a, ObjectVariable) and not isinstance(b, ObjectVariable):
            return False
    return tx.truth(binary(tx, operator.eq, a, b))


def settle_nans(tx, a: Variable, b: Variable) -> None:
    """Containers compare their elements by identity first, which shows with NaNs: this variant is for the very objects of this call."""
    if has_nan(a.as_constant()) and has_nan(b.as_constant()) and not (is_pinned(tx, a) and is_pinned(tx, b)):
        unsupported("identity", f"{a!r} compared with {b!r}", WHICH_NAN)


def is_pinned(tx, v: Variable, source=None) -> bool:
    """Guards that the NaNs in a value that is known are the objects that they are; False where that can't be said. ``source``: its place in a
    container that was guarded as a whole."""
    v = tx.realize(v)
    if v.is_constant():
        value = v.as_constant()
        if has_nan(value) and isinstance(value, (float, complex)):
            tx.output.guard(source or v.source, "ID_MATCH", value)
            return True
        return not has_nan(value)
    if isinstance(v, DictVariable):
        return all(is_pinned(tx, x) for pair in v.pairs(tx) for x in pair)
    whole = source or v.source if isinstance(v, TupleVariable) else None
    return isinstance(v, (ListVariable, TupleVariable)) and all(
        is_pinned(tx, e, whole and ItemSource(whole, i)) for i, e in enumerate(v.items(tx))
    )


def fold(tx, fn, args, kwargs=None):
    """What ``fn`` gives for values that are known while tracing."""
    for a in (*args, *(kwargs or {}).values()):
        if a.is_constant() and isinstance(a.as_constant(), enum.Enum):
            world.folded(tx, a.as_constant())
        elif type(a) is ValueVariable:
            return a.folded(tx, fn, args, kwargs or {})
        elif isinstance(a, ClassVariable) and not a.is_plain(tx):
            unsupported("metaclass", f"{fn.__name__} of {a!r}", "Its metaclass may have its own way to do that.")
    known, named = [a.as_constant() for a in args], {k: v.as_constant() for k, v in (kwargs or {}).items()}
    try:
        if not any(is_a(x, np.generic) for x in known):
            return tx.wrap_made(fn(*known, **named))
        with np.errstate(all="raise"):  # NumPy warns at each call
            return tx.wrap_made(fn(*known, **named))
    except UserRaises:
        raise
    except FloatingPointError as e:
        unsupported("numpy", f"{fn.__name__} of NumPy's scalars", f"NumPy warns: {e}.")
    except Exception as e:  # a mistake of the user's: happens for real in the plain frame
        tx.raise_user(e)


def unary(tx, fn, v: Variable) -> Variable:
    if isinstance(v, NumpyNdarrayVariable):
        impl = numpy_bridge.lookup(NUMPY_UNARY[fn])
        if impl is None:
            unsupported("numpy", f"{fn.__name__} of an ndarray", "It has no tensor counterpart registered.")
        made = as_ndarray(tx.output.call_in_graph(tx, "call_function", impl, [v], {}))
        return tell_of_overflow(tx, fn.__name__, [v], made)
    if isinstance(v, SubclassVariable) and UNARY.get(fn) and (own := v.special(tx, UNARY[fn])) is not None:
        return own.call(tx, [], {})
    if isinstance(v, TensorVariable):
        return tx.output.call_in_graph(tx, "call_function", fn, [v], {})
    if isinstance(v, SymbolicVariable):
        if fn is operator.not_:
            return ConstantVariable(not v.truth(tx))
        found = arithmetic(tx, fn, [v])
        return found if found is not None else fold(tx, fn, [specialized(tx, v)])
    if v.can_constant():
        return fold(tx, fn, [v])
    if isinstance(v, ObjectVariable) and UNARY.get(fn):
        return v.call_special(tx, UNARY[fn])
    unsupported("operator", f"{fn.__name__} of {v!r}")


def _repeated(tx, a: SequenceVariable, times: Variable) -> list[Variable]:
    try:
        return list(a.items(tx)) * times.as_constant()
    except (TypeError, MemoryError) as e:
        tx.raise_user(e)


COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.gt, operator.le, operator.ge)
SWAPPED = {fn: getattr(operator, REFLECTED[fn][1]) for fn in COMPARISONS}


def binary(tx, fn, a: Variable, b: Variable) -> Variable:
    a, b = tx.realize(a), tx.realize(b)
    if isinstance(a, IdVariable) or isinstance(b, IdVariable):
        return compared(tx, fn, a, b)
    if isinstance(a, SymbolicVariable) or isinstance(b, SymbolicVariable):
        found = symbolic_binary(tx, fn, a, b)
        if found is not None:
            return found
        a, b = (x if isinstance(x, TensorVariable) else specialized(tx, x) for x in (a, b))
    if isinstance(a, ByteArrayVariable) or isinstance(b, ByteArrayVariable):
        return binary_of_bytes(tx, fn, a, b)
    if isinstance(a, TensorVariable) or isinstance(b, TensorVariable):
        return tensor_binary(tx, fn, a, b)
    if isinstance(a, ObjectVariable) or isinstance(b, ObjectVariable):
        return object_binary(tx, fn, a, b)
    made = container_binary(tx, fn, a, b)
    if made is not None:
        return made
    written, fn = fn, INPLACE.get(fn, fn)
    for x in (a, b):
        if isinstance(x, SequenceVariable):
            x.realized(tx)
    if fn is operator.add and all(isinstance(x, TupleVariable) and x.python_type() is tuple for x in (a, b)):
        if not (a.elements and b.elements):
            return a if a.elements else b  # nothing is added: it is the tuple itself
    if (
        a.can_constant()
        and b.can_constant()
        and not (isinstance(a, (ListVariable, DictVariable, SetVariable)) and fn not in COMPARISONS)
    ):
        if fn is operator.or_ and any(isinstance(v, ClassVariable) and not plain_union(tx, v) for v in (a, b)):
            unsupported("operator", "a union of types", "Their metaclass says what that is.")
        if fn in COMPARISONS and not is_a(a.as_constant(), (int, float, complex, str)):
            settle_nans(tx, a, b)
        # An error names the operator as it is written; what has a method of its own to change itself is a copy here, and isn't changed.
        same = (
            a.is_constant()
            or isinstance(a, SequenceVariable)
            or not hasattr(a.python_type(), f"__{written.__name__}__")
        )
        return fold(tx, written if same else fn, [a, b])
    made = sequence_binary(tx, fn, a, b)
    if made is not None:
        return made
    if fn in (operator.eq, operator.ne):
        r = equal(tx, a, b)
        return ConstantVariable(r == (fn is operator.eq))
    if is_keys(a) and fn in SET_OPERATIONS:
        return operation_on_keys(tx, fn, a, b)
    if fn is operator.mod and a.is_constant() and isinstance(a.as_constant(), str):
        unsupported("format", f"formatting {b!r}", "The text is not known while tracing.")
    unsupported("operator", f"{fn.__name__} of {a!r} and {b!r}", "This combination of operands is not traced.")


def container_binary(tx, fn, a: Variable, b: Variable) -> Variable | None:
    """The operators of lists, sets, dicts and deques that write, or make one of the same kind; None for what isn't theirs."""
    if isinstance(a, ListVariable) and fn in (operator.iadd, operator.imul) and a.cls is list:
        if fn is operator.iadd:
            a.call_method(tx, "extend", [b], {})
            return a
        new = _repeated(tx, a, b)
        a.changed(tx)
        a.elements[:] = new
        return a
    if fn in SET_OPERATIONS and (isinstance(a, SetVariable) or isinstance(b, SetVariable)):
        r = set_operation(tx, fn, a, b)
        if r is not None:
            return r
    if isinstance(a, DictVariable) and fn is operator.ior:
        a.call_method(tx, "update", [b], {})
        return a
    if fn is operator.or_ and isinstance(a, DictVariable) and isinstance(getattr(b, "shown", b), DictVariable):
        derived = type(b) is DictVariable and b.cls is not a.cls and issubclass(b.cls, a.cls)
        # What the right one is derived from leaves it to the right one.
        both = DictVariable(cls=b.cls, factory=b.factory) if derived else a.call_method(tx, "copy", [], {})
        for part in (a, b) if derived else (b,):
            both.call_method(tx, "update", [part], {})
        return both
    if fn is operator.or_ and isinstance(a, DictVariable) and (b.is_constant() or isinstance(b, SequenceVariable)):
        kinds = " and ".join(f"'{x.python_type_name()}'" for x in (a, b))
        tx.raise_user(TypeError(f"unsupported operand type(s) for |: {kinds}"))
    if fn in (operator.add, operator.mul, operator.iadd, operator.imul) and (
        isinstance(a, DequeVariable) or isinstance(b, DequeVariable)
    ):
        return combined_deque(tx, fn, a, b)
    return None


def sequence_binary(tx, fn, a: Variable, b: Variable) -> Variable | None:
    """Sequences put together, and repeated."""
    if isinstance(a, SequenceVariable) and isinstance(b, SequenceVariable) and fn is operator.add:
        if a.plain_class() is not b.plain_class():
            kind, other = name_of(a.plain_class()), name_of(b.python_type())
            sizes = f"can only concatenate tuple (not {other}) to torch.Size"
            lists = f'can only concatenate {kind} (not "{other}") to {kind}'
            tx.raise_user(TypeError(sizes if is_size(a.python_type()) else lists))
        both = a.items(tx) + b.items(tx)
        if is_size(a.python_type()) or is_size(b.python_type()):
            return TupleVariable(both, cls=type(a.python_type()(()) + b.python_type()(())))
        return (ListVariable if a.plain_class() is list else TupleVariable)(both)
    if fn is operator.mul and isinstance(b, SequenceVariable):
        a, b = b, a
    if fn is operator.mul and isinstance(a, SequenceVariable) and b.is_constant():
        cls = type(a.python_type()(()) * 1) if is_size(a.python_type()) else None
        return (ListVariable if a.plain_class() is list else TupleVariable)(_repeated(tx, a, b), cls=cls)
    return None


def plain_union(tx, v: ClassVariable) -> bool:
    return all(world.class_attr(tx, type(v.value), n) is vars(type)[n] for n in ("__or__", "__ror__"))


# Operator -> (method that makes a set, method that changes the left one).
SET_OPERATIONS = {
    operator.or_: ("union", None),
    operator.and_: ("intersection", None),
    operator.sub: ("difference", None),
    operator.xor: ("symmetric_difference", None),
    operator.ior: ("union", "update"),
    operator.iand: ("intersection", "intersection_update"),
    operator.isub: ("difference", "difference_update"),
    operator.ixor: ("symmetric_difference", "symmetric_difference_update"),
}


def is_keys(v: Variable) -> bool:
    return isinstance(v, DictView) and v.what == "keys"


def operation_on_keys(tx, fn, a, b) -> SetVariable:
    """An operator with a dict's keys on one side: a new set, whether it is written with "=" or not."""
    make, _ = SET_OPERATIONS[fn]
    if make != "intersection":
        change = next(c for m, c in SET_OPERATIONS.values() if m == make and c is not None)
        whole = taken_over(tx, a) or Elements(dict, a.items(tx))
        out = SetVariable(elements_of(tx, a), history=SetHistory(whole))
        out.call_method(tx, change, [b], {})
        return out
    keys, other = (a, b) if is_keys(a) else (b, a)
    # CPython goes through the smaller one; of two dicts that are equally large through the right one.
    if isinstance(other, SetVariable) and other.cls is set and keys.length(tx) <= other.length(tx):
        return other.call_method(tx, make, [keys], {})
    if is_keys(other) and other.length(tx) > keys.length(tx):
        keys, other = other, keys
    taken = list(elements_of(tx, other))
    whole = taken_over(tx, other)
    # A set's method goes through what is no set in the same way.
    history = SetHistory(Elements(dict, keys.items(tx)))
    history = history.result(make, [Elements(list, whole if isinstance(whole, SetHistory) else taken)])
    return SetVariable([e for e in taken if keys.contains(tx, e).as_constant()], history=history)


def set_operation(tx, fn, a, b) -> Variable | None:
    """An operator on sets, which wants a set on both sides; None for what isn't that."""
    views = [is_keys(x) for x in (a, b)]
    if not all(isinstance(x, SetVariable) or view for x, view in zip((a, b), views)):
        known = all(x.is_constant() or isinstance(x, (SequenceVariable, DictVariable, SetVariable)) for x in (a, b))
        if known:
            sign = {
                "or_": "|",
                "and_": "&",
                "sub": "-",
                "xor": "^",
                "ior": "|=",
                "iand": "&=",
                "isub": "-=",
                "ixor": "^=",
            }
            kinds = " and ".join(f"'{x.python_type_name()}'" for x in (a, b))
            tx.raise_user(TypeError(f"unsupported operand type(s) for {sign[fn.__name__]}: {kinds}"))
        return None
    if any(views):
        return operation_on_keys(tx, fn, a, b)
    make, change = SET_OPERATIONS[fn]
    if change is not None and a.cls is set:
        a.call_method(tx, change, [b], {})
        return a
    return a.call_method(tx, make, [b], {})


def symbolic_binary(tx, fn, a, b) -> Variable | None:
    """An operation on a symbolic number; None when it needs the number's value."""
    if isinstance(a, ByteArrayVariable) or isinstance(b, ByteArrayVariable):
        return binary_of_bytes(tx, fn, a, b)
    if isinstance(a, TensorVariable) or isinstance(b, TensorVariable):
        return tensor_binary(tx, fn, a, b)
    if isinstance(a, ObjectVariable) or isinstance(b, ObjectVariable):
        return object_binary(tx, fn, a, b)
    base = INPLACE.get(fn, fn)
    if base in (operator.eq, operator.ne) and any(
        x.is_constant() and type(x.as_constant()) in (str, bytes, type(None), tuple) for x in (a, b)
    ):
        return ConstantVariable(base is operator.ne)
    return arithmetic(tx, base, [a, b])


def searched(tx, v: Variable):
    """The elements of what is searched, one by one. ``in`` has words of its own for what can't be."""
    try:
        return each(tx, v)
    except UserRaises as e:
        if not isinstance(e.exception, TypeError):
            raise
        tx.raise_user(TypeError(f"argument of type {v.python_type_name()!r} is not iterable"))


def found_among(tx, v: Variable, key: Variable) -> Variable:
    """``key in v`` for what has no method of its own for it: its elements are gone through."""
    undecided = []
    for e in searched(tx, v):
        depends = depending_equality(tx, e, key)
        if depends is not None:
            undecided.append(depends)
        elif same_or_equal(tx, e, key):
            return ConstantVariable(True)
    return wrap_number(functools.reduce(operator.or_, undecided)) if undecided else ConstantVariable(False)


def depending_equality(tx, a: Variable, b: Variable):
    """Whether ``a == b`` as a truth value that depends on the data of a tensor of one element; None where it doesn't, or the graph breaks for it."""
    a, b = tx.realize(a), tx.realize(b)
    if a is b or not any(type(v) is TensorVariable for v in (a, b)) or not tx.output.shapes.data_symbols("item"):
        return None
    same = binary(tx, operator.eq, a, b)
    if type(same) is not TensorVariable or same.val.numel() != 1:
        return None
    return same.call_method(tx, "item", [], {}).number


def equal(tx, a: Variable, b: Variable) -> bool:
    if a is b:
        return True
    if isinstance(a, SequenceVariable) and isinstance(b, SequenceVariable):
        if a.plain_class() is not b.plain_class():
            return False
        x, y = a.items(tx), b.items(tx)
        return len(x) == len(y) and all(same_or_equal(tx, p, q) for p, q in zip(x, y))
    if a.is_constant() != b.is_constant() and (a.distinct_from(b) or b.distinct_from(a)):
        return False
    x, y = getattr(a, "value", None), getattr(b, "value", None)
    if x is not None and y is not None and (isinstance(x, (type, types.FunctionType)) or callable(x)):
        return x is y
    if isinstance(a, DictVariable) and isinstance(b, DictVariable):
        p, q = a.pairs(tx), b.pairs(tx)
        if a.cls is b.cls is collections.OrderedDict and list(a.entries) != list(b.entries):
            return False
        return len(p) == len(q) and all(
            b.contains(tx, k).value and same_or_equal(tx, v, b.getitem(tx, k)) for k, v in p
        )
    unsupported("operator", f"eq of {a!r} and {b!r}", "Whether they are equal is not known while tracing.")


def special_binary(tx, fn, a, b) -> Variable | None:
    """An operator that a tensor subclass defines itself; None when it is the library's."""
    base = INPLACE.get(fn, fn)
    forward, reflected = REFLECTED[base]
    order = [(a, b, forward), (b, a, reflected)]
    if fn is not base:
        order.insert(0, (a, b, f"__{fn.__name__}__"))
    p, q, declined = a.python_type(), b.python_type(), False
    if p is q and base not in COMPARISONS:
        order.pop()
    elif p is not q and issubclass(q, p):
        order.insert(0, order.pop())
    for x, y, name in order:
        own = x.special(tx, name) if isinstance(x, SubclassVariable) else None
        if own is not None:
            r = own.call(tx, [y], {})
            if not declines(r):
                return r
            declined = True
        elif isinstance(x, TensorVariable):
            return None
    if declined:
        unsupported("operator", f"{fn.__name__} of {a!r} and {b!r}", "Their methods leave it to each other.")
    return None


def tensor_binary(tx, fn, a, b):
    if isinstance(a, SubclassVariable) or isinstance(b, SubclassVariable):
        own = special_binary(tx, fn, a, b)
        if own is not None:
            return own
        if fn in SWAPPED and a.python_type() is not b.python_type() and issubclass(b.python_type(), a.python_type()):
            a, b, fn = b, a, SWAPPED[fn]  # a derived class is asked first
    numpy = isinstance(a, NumpyNdarrayVariable) or isinstance(b, NumpyNdarrayVariable)
    if fn in (operator.mod, operator.imod) and issubclass(a.python_type(), (str, bytes, bytearray)):
        unsupported("format", f"formatting {b!r}", "The text depends on tensor data.")
    if isinstance(b, DerivedVariable) or (isinstance(a, DerivedVariable) and a.can_constant()):
        a, b = contents_of(a), contents_of(b)  # the tensor's own operation takes it for what it is derived from
    for x, y in ((a, b), (b, a)):
        if isinstance(x, ObjectVariable):
            return object_binary(tx, fn, a, b)
        if (
            isinstance(y, TensorVariable)
            and fn in (operator.eq, operator.ne)
            and x.is_constant()
            and x.as_constant() is None
        ):
            if isinstance(y, NumpyNdarrayVariable) and not y.scalar:
                unsupported("numpy", f"{fn.__name__} of an array and None", "NumPy compares each element with it.")
            return ConstantVariable(fn is operator.ne)
    if numpy:
        made = of_complex(tx, fn, a, b)
        if made is not None:
            return made
        a, b = as_numpys([a, b])
        arrays = isinstance(a, NumpyNdarrayVariable), isinstance(b, NumpyNdarrayVariable)
        if isinstance(a, TensorVariable) and isinstance(b, TensorVariable) and arrays[0] is not arrays[1]:
            if is_number_for(b, a):
                return tx.output.call_in_graph(tx, "call_function", fn, [a, TensorVariable(b.node, b.val)], {})
            unsupported(
                "numpy",
                f"{fn.__name__} of a tensor and an ndarray",
                "The two libraries decide the result's type between them.",
            )
        if (
            fn in (operator.pow, operator.ipow)
            and isinstance(a, TensorVariable)
            and numpy_bridge.np_dtype(a.val) == np.bool_
        ):
            unsupported("numpy", "a power of booleans", "NumPy gives int8 for it.")
        if fn in (operator.mul, operator.imul) and (is_repetition(a, b) or is_repetition(b, a)):
            unsupported("data-dependent", "a sequence repeated by a NumPy number", "How long it gets depends on data.")
        numpy_bridge.load()
        base = INPLACE.get(fn)
        if base is not None and (a.python_type() is not np.ndarray):
            fn = base  # NumPy's scalars are not changed, nor is what is no array
        impl = numpy_bridge.binary.get(fn.__name__, fn)
        made = as_ndarray(tx.output.call_in_graph(tx, "call_function", impl, [a, b], {}))
        return tell_of_overflow(tx, fn.__name__, [a, b], made)
    return tx.output.call_in_graph(tx, "call_function", fn, [a, b], {})


def is_repetition(sequence: Variable, number: Variable) -> bool:
    """Whether a product of these repeats a sequence of Python's: NumPy's numbers leave that to it, its arrays don't."""
    repeatable = (list, tuple, str, bytes, bytearray)
    return getattr(number, "scalar", False) and issubclass(sequence.python_type(), repeatable)


def is_number_for(b: Variable, a: Variable) -> bool:
    """Whether NumPy's scalar ``b`` on the right of the tensor ``a`` counts as a tensor without dimensions does, as it is a number of a's kind."""
    if not isinstance(b, NumpyNdarrayVariable) or not b.scalar or isinstance(a, NumpyNdarrayVariable) or not a.val.ndim:
        return False
    kind = numpy_bridge.np_dtype(b.val).kind
    return (
        kind == "f" if a.val.is_floating_point() else kind == "i" and not a.val.is_complex() and a.val.dtype.is_signed
    )


def declines(r: Variable) -> bool:
    """Whether a method of an operator leaves the answer to the next one."""
    return r.is_constant() and r.as_constant() is NotImplemented


def reflected_first(tx, a, b, name) -> bool:
    """Whether the right operand is asked first: its class is derived from the left one's and has a method of its own."""
    if not isinstance(b, ObjectVariable) or isinstance(a, TensorVariable):
        return False
    p, q = a.python_type(), b.python_type()
    return p is not q and issubclass(q, p) and world.class_attr(tx, p, name) is not world.class_attr(tx, q, name)


def takes_functions(tx, v: ObjectVariable) -> bool:
    """Whether the class of an object that is no tensor takes functions over. It is looked up without its metaclass's hooks before it is asked."""
    said = any("__torch_function__" in dict_of(c) for c in mro_of(v.python_type()))
    return said and tx.subclasses.interposes(tx.output, [v], {}) == "function"


def object_binary(tx, fn, a, b):
    try:
        return _object_binary(tx, fn, a, b)
    except UserRaises as e:
        if type(e.exception) is TypeError and (isinstance(a, DerivedVariable) or isinstance(b, DerivedVariable)):
            said = _as_said_of_classes(fn, a, b, str(e.exception))
            if said is not None:
                tx.raise_user(said)
        raise


def _object_binary(tx, fn, a, b):
    base = INPLACE.get(fn, fn)
    if fn is not base and isinstance(a, ObjectVariable):
        f = a.special(tx, f"__{fn.__name__}__")
        r = None if f is None else f.call(tx, [b], {})
        if r is not None and not declines(r):
            return r
    forward, reflected = REFLECTED[base]
    order = [(a, b, forward), (b, a, reflected)]
    if a.python_type() is b.python_type() and base not in COMPARISONS:
        # Its own method has declined.
        order.pop()
    elif reflected_first(tx, a, b, reflected):
        order.reverse()
    for x, y, name in order:
        if isinstance(x, ObjectVariable):
            f = x.special(tx, name)
            if type(f) is SlotMethod and f.value is object.__ne__:  # asks __eq__, and turns its answer round
                same = x.special(tx, "__eq__")
                if same is not None and type(same) is not SlotMethod:
                    r = same.call(tx, [y], {})
                    if not declines(r):
                        return unary(tx, operator.not_, r)
                continue
            if f is not None and (type(f) is not SlotMethod or isinstance(x, DerivedVariable)):
                r = f.call(tx, [y], {})
                if not declines(r):
                    return r
        elif isinstance(x, TensorVariable) and takes_functions(tx, y):
            return tx.output.call_in_graph(tx, "call_function", fn, [a, b], {})
    if isinstance(a, DerivedVariable) or isinstance(b, DerivedVariable):
        return binary(tx, base, contents_of(a), contents_of(b))
    of_numpy = any(isinstance(v, NumpyNdarrayVariable | ByteArrayVariable) for v in (a, b))
    # An array compares its elements with any object.
    if base in (operator.eq, operator.ne) and not of_numpy:
        return ConstantVariable(equal_in_c(tx, a, b) == (base is operator.eq))
    unsupported("operator", f"{fn.__name__} of {a!r} and {b!r}", "This combination of operands is not traced.")


def _as_said_of_classes(fn, a: Variable, b: Variable, text: str) -> TypeError | None:
    """The interpreter's error of an operator that the classes don't have, where ``text`` is what it says of those that they are derived from."""
    bases = [contents_of(v).python_type() for v in (a, b)]
    if not all(isinstance(v, DerivedVariable) or v.is_constant() for v in (a, b)):
        return None
    if text not in {_error_of(f, *(base() for base in bases)) for f in (fn, INPLACE.get(fn, fn))}:
        return None
    derived = [
        type(v.python_type().__name__, (base,), {})() if v.python_type() is not base else base()
        for v, base in zip((a, b), bases)
    ]
    said = _error_of(fn, *derived)
    return None if said is None else TypeError(said)


def _error_of(fn, *operands) -> str | None:
    try:
        fn(*operands)
    except TypeError as e:
        return str(e)
    return None


def equal_in_c(tx, a: Variable, b: Variable) -> bool:
    """Equality of objects whose classes have no method for it in Python: the interpreter's, identity mostly."""
    if identical(tx, a, b):
        return True
    ways = {v.class_attr(tx, "__eq__") for v in (a, b) if isinstance(v, ObjectVariable)} - {object.__eq__}
    if ways == {types.SimpleNamespace.__eq__} and all(isinstance(v, ObjectVariable) for v in (a, b)):
        if all(issubclass(v.cls, types.SimpleNamespace) for v in (a, b)):
            return tx.truth(binary(tx, operator.eq, *(v.own_getattr(tx, "__dict__") for v in (a, b))))
    elif any(type(f) is not types.FunctionType for f in ways):
        unsupported("operator", f"eq of {a!r} and {b!r}", "A class in C says when its objects are equal.")
    return False
