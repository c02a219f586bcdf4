"""Inputs of a graph. Where values or sizes vary they are symbols: a number as a whole, a tensor among its sizes and strides."""

from __future__ import annotations

from typing import Any

from flambeau.base.dtypes import int64
from flambeau.base.relations import as_symbol
from flambeau.base.shape_env import ConstraintViolationError
from flambeau.base.symbolic_queries import hint_int

from ...base.records import slotted
from ..config import config
from ..guards.dynamic import SizeSource, after_marks
from ..guards.source import CallSource, Source
from ..rules import trace_rules
from ..variables.base import Variable
from ..variables.values.symbolic import SymbolicVariable

__all__ = ["GraphInput", "integer_of_numpys", "number_input", "symbolic_input"]


@slotted(frozen=False)
class GraphInput:
    node: Any
    source: Source
    example: Any  # the tensor of this call
    ndarray: bool
    number: bool = False  # an int or float
    carried: bool = False  # an array of carried.Carried
    numpy_number: bool = False  # an array without dimensions is made of it


def integer_of_numpys(output, number: Variable) -> Variable | None:
    """The symbolic integer that a NumPy number counts as beside a tensor; None where it is no input of the graph, or no int64."""
    given = next((i for i in output.recorder.inputs if i.node is number.node and i.numpy_number), None)
    if given is None or given.example.dtype is not int64:
        return None
    return number_input(output, int(given.example.item()), CallSource(given.source, int, "int"), varies=True)


def number_input(output, value, source: Source, varies: bool = False) -> Variable | None:
    """The symbolic variable of an int or float that varies (as it is seen to, or as ``varies`` says); None when it is a constant."""
    path = output.objects.path(source)
    varies = (
        varies
        or output.shapes.seen.number(path, value)
        or output.compiler.shapes.get(source.name, {}).get("number", False)
    )
    varies = varies or (output.shapes.dynamic is True and type(value) is int)
    if not varies or value != value or output.shapes.dynamic is False:
        return None
    if type(value) is int and not -(2**63) <= value < 2**63:  # symbols are 64-bit integers
        return None
    if config.specialize_float if type(value) is float else config.specialize_int:
        return None
    owner = output.objects.owner(source) if type(value) is int else None
    if owner is not None and getattr(type(owner), "_dynamo_marked_static", False):
        return None
    # 0 or 1 in a module is a switch, as a rule: a constant, as in PyTorch.
    if owner is not None and trace_rules.is_nn_module_class(type(owner)):
        if not config.allow_unspec_int_on_nn_module or value in (0, 1):
            return None
    known = output.shapes.numbers.get(path)
    if known is not None:
        return known
    output.guard(source, "TYPE_MATCH", type(value))
    env = output.shapes.shape_env()
    origin = SizeSource(source, "value")
    number = env.create_int(value, origin) if type(value) is int else env.create_float(value, origin)
    output.shapes.sizes.bind_lazily(number, lambda: _placeholder(output, number, value, source))
    out = output.shapes.numbers[path] = SymbolicVariable(number, source)
    return out


def _placeholder(output, number, value, source: Source):
    node = output.recorder.placeholder(source)
    node.meta["val"] = node.meta["example_value"] = number
    output.recorder.inputs.append(GraphInput(node, source, value, False, number=True))
    return node


def symbolic_input(output, tensor, source: Source, symbols: dict, facts: tuple, unit: int):
    """(fake tensor, what is guarded natively) of an input with symbols for the dimensions in ``symbols``."""
    env = output.shapes.shape_env()
    fake = output.fake_mode.from_tensor(
        tensor,
        static_shapes=False,
        symbolic_context=symbols.get,
        source=lambda part: SizeSource(source, *part),
    )
    _after_marks(output, tensor, fake, source)
    shape = tuple(n if type(n) is int else None for n in fake._shape)
    strides = tuple(n * unit if type(n) is int else None for n in fake._strides)
    for d, s in enumerate(fake._strides):
        if strides[d] is None and 0 not in shape:  # of an empty array they say nothing
            own = as_symbol(s.expr)
            if own is None or not any(
                o.base is source and (o.what, o.dim) == ("stride", d) for o in env.origins[own].sources
            ):
                env.same_value(s.expr, SizeSource(source, "stride", d))  # a product of sizes
    return fake, (*facts[:3], shape, strides, *facts[5:])


def _after_marks(output, tensor, fake, source: Source) -> None:
    """What marks and specifications say beyond making symbols: hints, criteria, and names that several sizes share."""
    after_marks(tensor, fake)
    for d, said in output.compiler.shapes.get(source.name, {}).items():
        if d == "number" or said["name"] is None:
            continue
        size = fake._shape[d]
        known, where = output.shapes.named_sizes.setdefault(said["name"], (size, f"{source.name}.size()[{d}]"))
        if known is not size and not (known == size):
            raise ConstraintViolationError(
                f"{source.name}.size()[{d}] = {hint_int(size)} is not equal to {where} = {hint_int(known)}, "
                f"and both are {said['name']}"
            )
