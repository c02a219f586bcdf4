"""NumPy's random generators: in the graph the table of one (loops/random_numbers/streams.py); each call of a method is a node that draws."""

from __future__ import annotations

import types

import numpy as np

from flambeau.loops.random_numbers import streams

from ...config import config
from ...exc import unsupported
from ...guards.source import CallSource, ConstSource, GetAttrSource
from ...numpy import numpy_bridge
from ...rules.reflect import has_item, module_of, name_of
from ...tracing.wrapping import WRAPPERS, pin
from ..base import HeldVariable, MethodOf, Variable
from ..objects.opaque_object import OpaqueVariable
from ..tensors.tensor import TensorVariable
from ..values.constant import ConstantVariable
from ..values.graph_numbers import NumberVariable
from .ndarray import NumpyNdarrayVariable, as_ndarray

__all__ = ["NumpyGeneratorVariable", "of_function", "of_generator", "of_method"]


class NumpyGeneratorVariable(Variable):
    """A Generator or RandomState. ``node``: its table in the graph."""

    mutable = True

    def __init__(self, node, val, cls, source=None):
        super().__init__(source)
        self.node, self.val, self.cls = node, val, cls

    def python_type(self):
        return self.cls

    def as_proxy(self):
        return self.node

    def truth(self, tx):
        return True

    def reconstruct(self, cg):
        cg.call_function(streams.generator_of, lambda: cg.graph_output(self.node), 1)

    def getattr(self, tx, name):
        if (self.cls, name) in numpy_bridge.draws:
            return DrawVariable(self, name)
        unsupported(
            "numpy-random",
            f"{name_of(self.cls)}.{name}",
            "It is no draw of numbers with a known shape.",
            "The piece runs in NumPy.",
        )

    def hasattr(self, tx, name):
        return has_item(self.cls, name)


class DrawVariable(MethodOf):
    """A method of a generator."""

    def __repr__(self):
        return f"np.random.Generator.{self.name}"

    def python_type(self):
        return types.MethodType

    def truth(self, tx):
        return True

    def call(self, tx, args, kwargs):
        args = [tx.realize(a) for a in args]
        kwargs = {k: tx.realize(v) for k, v in kwargs.items()}
        for a in (*args, *kwargs.values()):
            if isinstance(a, TensorVariable) and not isinstance(a, NumpyNdarrayVariable):
                unsupported(
                    "numpy-random", f"np.random's {self.name} of a tensor", "NumPy converts the tensor by itself."
                )
        impl = numpy_bridge.draws[self.owner.cls, self.name]
        tx.output.draws = True
        out = tx.output.call_in_graph(tx, "call_function", impl, [self.owner, *args], kwargs)
        kind = impl.made[0]
        if kind is type(None) or self.name == "shuffle":
            return ConstantVariable(None)
        if kind is float:
            return python_number(tx, out)
        if kind in (int, bool):  # as a symbol it would be a number of 64 bits in kernels
            return NumberVariable(out.node, out.val, kind)
        return as_ndarray(out, scalar=kind is not np.ndarray)


def python_number(tx, t) -> Variable:
    """The Python number that a tensor without dimensions holds, as a symbol."""
    with tx.output.shapes.data_numbers():
        return tx.output.call_in_graph(tx, "call_method", "item", [t], {})


class MakerVariable(HeldVariable):
    """``np.random.default_rng`` and the like."""

    def __init__(self, value, impl, source):
        super().__init__(value, source)
        self.impl = impl

    def __repr__(self):
        return f"np.random.{self.value.__name__}"

    def truth(self, tx):
        return True

    def call(self, tx, args, kwargs):
        args = [tx.realize(a) for a in args]
        if len(args) == 1 and isinstance(args[0], NumpyGeneratorVariable) and args[0].cls is np.random.Generator:
            return args[0]  # default_rng() of a generator
        if any(isinstance(a, BitGeneratorVariable | NumpyGeneratorVariable) for a in args):
            unsupported("numpy-random", f"np.random.{self.value.__name__} of a generator", "It is made by plain code.")
        out = tx.output.call_in_graph(tx, "call_function", self.impl, args, kwargs)
        if isinstance(self.value, type) and issubclass(self.value, np.random.BitGenerator):
            return BitGeneratorVariable(out, self.value)
        cls = np.random.RandomState if self.value is np.random.RandomState else np.random.Generator
        return NumpyGeneratorVariable(out.node, out.val, cls)


class BitGeneratorVariable(Variable):
    """A new bit generator, around which a Generator will be made."""

    def __init__(self, table, cls):
        super().__init__()
        self.table, self.cls, self.taken = table, cls, False

    def python_type(self):
        return self.cls

    def reconstruct(self, cg):
        cg.call_function(streams.bits_of, lambda: cg.graph_output(self.table.node), 1)


class GeneratorClassVariable(Variable):
    """``np.random.Generator``."""

    def python_type(self):
        return type

    def truth(self, tx):
        return True

    def reconstruct(self, cg):
        cg.load_const(np.random.Generator)

    def call(self, tx, args, kwargs):
        bits = tx.realize(args[0]) if len(args) == 1 and not kwargs else None
        if not isinstance(bits, BitGeneratorVariable) or bits.taken:
            unsupported("numpy-random", "np.random.Generator of this", "It is made by plain code.")
        bits.taken = True
        return NumpyGeneratorVariable(bits.table.node, bits.table.val, np.random.Generator)


def _is_generator(value) -> bool:
    """Whether it is a generator of NumPy's own class, not of one derived from it."""
    return any(type(value) is c for c in streams.classes())


def of_generator(tx, value, source) -> Variable:
    """The variable of a generator that existed before, whose class is guarded."""
    table = tx.output.add_input(streams.table_of(value), CallSource(source, streams.table_of, "stream"), ndarray=False)
    return NumpyGeneratorVariable(table.node, table.val, type(value), source)


def of_method(tx, value, source) -> Variable | None:
    """The variable of a generator's bound method; None for another method."""
    if not config.trace_numpy or not _is_generator(value.__self__):
        return None
    numpy_bridge.load()
    if value.__self__ is np.random.mtrand._rand:
        tx.output.guard(source, "ID_MATCH", value)
        return the_global(tx).getattr(tx, value.__name__)
    tx.output.guard(source, "TYPE_MATCH", types.MethodType)
    tx.output.guard(GetAttrSource(source, "__name__"), "EQUALS_MATCH", value.__name__)
    owner = tx.wrap(value.__self__, GetAttrSource(source, "__self__"))
    return owner.getattr(tx, value.__name__)


def the_global(tx) -> Variable:
    """The generator that np.random's functions draw from."""
    return tx.wrap(np.random.mtrand._rand, ConstSource(np.random.mtrand._rand, "np.random"))


def of_function(tx, value, source) -> Variable | None:
    """The variable of a function or class of np.random; None for others."""
    if not config.trace_numpy or not module_of(value).startswith("numpy.random"):
        return None
    numpy_bridge.load()
    if value is np.random.Generator:
        tx.output.guard(source, "ID_MATCH", value)
        return GeneratorClassVariable(source)
    hit, impl = numpy_bridge.makers.get(id(value), (None, None))
    if hit is value:
        tx.output.guard(source, "ID_MATCH", value)
        return MakerVariable(value, impl, source)
    hit, method = numpy_bridge.of_the_global.get(id(value), (None, None))
    if hit is value:
        tx.output.guard(source, "ID_MATCH", value)
        return the_global(tx).getattr(tx, method)
    return None


# A row of :func:`wrapping.exactly` would load NumPy's random module.
@WRAPPERS.row("NumPy's generators and their functions")
def _(tx, value, source):
    if not _is_generator(value):
        return of_function(tx, value, source)
    pin(tx, source, "TYPE_MATCH", type(value))
    return of_generator(tx, value, source) if config.trace_numpy else OpaqueVariable(value, source)
