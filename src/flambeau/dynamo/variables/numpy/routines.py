"""Functions of NumPy: those with a graph form, those that describe arrays, and those that run as NumPy between graphs."""

from __future__ import annotations

import numpy as np

from ....base.quiet import errstate
from ...config import config
from ...exc import unsupported
from ...numpy import numpy_bridge
from ...rules import trace_rules
from ...rules.constants import is_constant_value
from ...rules.reflect import module_of, name_of, type_item
from ...tracing import world
from ...tracing.wrapping import FUNCTION_WRAPPERS, WRAPPERS, pin
from ..base import HeldVariable, Variable
from ..functions.builtin import PURE, BuiltinVariable
from ..functions.skipped_functions import SkippedFunctionVariable
from ..tensors.tensor import TensorVariable
from ..values.complex_numbers import as_numpys
from ..values.constant import ConstantVariable
from . import byte_arrays
from .ndarray import NumpyNdarrayVariable
from .traced import TRACED

__all__ = ["of_numpy"]


def of_numpy(value, source) -> Variable:
    """The variable for a function of NumPy, or for a call of it that leaves the graph."""
    if config.trace_numpy and value in TRACED:
        return NumpyTracedVariable(value, source)
    return of_table(value, source)


def of_table(value, source) -> Variable:
    if config.trace_numpy and value in numpy_bridge.DESCRIPTIONS:
        return NumpyDescriptionVariable(value, source)
    impl = numpy_bridge.lookup(value)
    if impl is None or not config.trace_numpy:
        name = f"{module_of(value)}.{getattr(value, '__name__', value)}"
        if value in PURE:
            return BuiltinVariable(value, source)
        said = (
            f"call to {name}",
            "This NumPy function has no tensor counterpart registered.",
            "The piece runs in NumPy.",
        )
        if config.trace_numpy and byte_arrays.of_numpy().name_of_function(value) is not None:
            return NumpyTextFunctionVariable(value, "numpy", *said, source)
        return SkippedFunctionVariable(value, "numpy", *said, source)
    return NumpyFunctionVariable(value, impl, source)


class _Function(HeldVariable):
    def __repr__(self):
        return f"np.{self.value.__name__}"

    def truth(self, tx):
        return True


# Functions that give NumPy's scalars for lists of numbers.
OF_NUMBERS = frozenset(
    (np.all, np.any, np.argmax, np.argmin, np.max, np.mean, np.median, np.min, np.prod, np.ptp, np.std, np.sum, np.var)
)


# Functions that make an array of what has a method for it.
CONVERTERS = frozenset((np.array, np.asarray, np.asanyarray, np.ascontiguousarray))


class NumpyFunctionVariable(_Function):
    """A function of NumPy with a graph form, ``impl``."""

    def __init__(self, value, impl, source):
        super().__init__(value, source)
        self.impl = impl

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def call(self, tx, args, kwargs):
        made = byte_arrays.called(tx, self.value, args, kwargs)
        if made is not None:
            return made
        if self.value in CONVERTERS and len(args) == 1 and type(args[0].unwrap()) is TensorVariable:
            # What it asks the tensor for is the array on the same memory.
            args = [args[0].unwrap().call_method(tx, "numpy", [], {})]
        if any(
            isinstance(a, TensorVariable) and not isinstance(a, NumpyNdarrayVariable) for a in [*args, *kwargs.values()]
        ):
            unsupported(
                "numpy",
                f"np.{self.value.__name__} of a tensor",
                "NumPy converts the tensor by itself.",
                "Call .numpy() first.",
            )
        if (
            (isinstance(self.value, np.ufunc) or self.value in OF_NUMBERS)
            and not any(isinstance(a, TensorVariable) for a in args)
            and all(a.can_constant() for a in [*args, *kwargs.values()])
        ):
            return self.of_numbers([a.as_constant() for a in args], {k: a.as_constant() for k, a in kwargs.items()})
        tx.output.guard_numpy_errors()
        return NumpyNdarrayVariable.call_impl(tx, self.impl, as_numpys(args), kwargs)

    def of_numbers(self, args, kwargs):
        """A ufunc of known numbers: computed now, unless NumPy would warn, which it does at each call."""
        try:
            with errstate(all="raise"):
                value = self.value(*args, **kwargs)
        except (FloatingPointError, TypeError, ValueError, OverflowError) as e:
            unsupported("numpy", f"np.{self.value.__name__} of numbers", f"NumPy raises or warns: {e}.")
        if not is_constant_value(value):
            unsupported("numpy", f"np.{self.value.__name__} of numbers", f"It returns {name_of(type(value))}.")
        return ConstantVariable(value)


class NumpyTextFunctionVariable(SkippedFunctionVariable):
    """A function of arrays of text, dates or records."""

    def call(self, tx, args, kwargs):
        made = byte_arrays.called(tx, self.value, args, kwargs)
        return super().call(tx, args, kwargs) if made is None else made


class NumpyTracedVariable(_Function):
    """A function of NumPy that is made of others, see :mod:`.traced`."""

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def call(self, tx, args, kwargs):
        args, kwargs = [tx.realize(a) for a in args], {k: tx.realize(v) for k, v in kwargs.items()}
        made = byte_arrays.called(tx, self.value, args, kwargs)
        if made is not None:
            return made
        made = TRACED[self.value](tx, self.value, args, kwargs)
        return of_table(self.value, self.source).call(tx, args, kwargs) if made is None else made


class NumpyDescriptionVariable(_Function):
    """A NumPy function of what an array is like, not of its values: its result is a constant."""

    def call(self, tx, args, kwargs):
        attribute = numpy_bridge.ATTRIBUTE_OF.get(self.value)
        if attribute is not None and len(args) == 1 and not kwargs and isinstance(args[0], NumpyNdarrayVariable):
            return args[0].getattr(tx, attribute)

        def stand_in(v):
            if isinstance(v, NumpyNdarrayVariable):
                dtype = numpy_bridge.np_dtype(v.val)
                if v.scalar:
                    return dtype.type(1)
                if any(type(n) is not int for n in v.val.shape):
                    unsupported("numpy", f"np.{self.value.__name__}", "The array's size is not known.")
                return np.broadcast_to(np.ones((), dtype), tuple(v.val.shape))
            return (
                v.as_constant()
                if v.can_constant()
                else unsupported(
                    "numpy",
                    f"np.{self.value.__name__} of {name_of(type(v))}",
                    "Its arguments are not arrays and constants.",
                )
            )

        try:
            value = self.value(*map(stand_in, args), **{k: stand_in(v) for k, v in kwargs.items()})
        except (TypeError, ValueError, IndexError, AttributeError) as e:
            return tx.raise_user(e)
        return tx.wrap_known(value)


@FUNCTION_WRAPPERS.row("of SciPy")
def _(tx, value, source):
    if not module_of(value).startswith("scipy.") or not config.trace_numpy or numpy_bridge.lookup(value) is None:
        return None
    pin(tx, source, "ID_MATCH", value)
    return of_numpy(value, source)


@FUNCTION_WRAPPERS.row("of NumPy")
def _(tx, value, source):
    module = module_of(value)
    if (module != "numpy" and not module.startswith("numpy.")) or trace_rules.inline_reason(value).inlined:
        return None
    pin(tx, source, "ID_MATCH", value)
    return of_numpy(value, source)


@WRAPPERS.row("function of NumPy")
def _(tx, value, source):
    cls = type(value)
    if not trace_rules.is_a(value, np.ufunc) and not (
        module_of(cls) == "numpy" and callable(value) and type_item(cls, "__hash__") is not None
    ):
        return None
    pin(tx, source, "ID_MATCH", value)
    return of_numpy(value, source)
