"""What the runtime must know of a traced function beyond its graph: where outputs come from and which inputs were
written.
"""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import no_grad
from ..base.records import made_by, slotted
from ..base.relations import evaluate
from ..base.symint import NUMBERS
from ..fx import GraphModule
from ..proxy.tape import OffTape
from .versions import Kept

__all__ = ["Computed", "Constant", "InputAlias", "InputView", "Number", "OutputView", "Traced", "sizes_in"]


@slotted
class Computed:
    """The graph's ``index``-th output."""

    index: int
    requires_grad: bool


@slotted
class InputAlias:
    """The input itself."""

    index: int


@slotted
class View:
    """A view that is made again at each call, so that memory and history are shared as they are without compiling.

    ``chain``: (operator, arguments after the first, keyword arguments, which result or None) from the base on. ``history``: the graph's output
    whose gradient it carries, where it shares its memory with the base and not its history (it was detached and written later).
    ``unrecorded``: it is made under no_grad, so that writes to it are refused as they are without compiling."""

    index: int
    chain: tuple
    history: int | None = None
    unrecorded: bool = False

    def replay(self, tensor: Any, sizes: dict | None = None) -> Any:
        """The view of ``tensor``; ``sizes``: values of the symbols in the arguments."""
        if self.unrecorded:
            with no_grad():
                return self._made(tensor, sizes)
        return self._made(tensor, sizes)

    def _made(self, tensor: Any, sizes: dict | None) -> Any:
        for op, rest, kwargs, which in self.chain:
            if sizes is not None:
                rest, kwargs = _numbers(rest, sizes), _numbers(kwargs, sizes)
            tensor = op(tensor, *rest, **kwargs)
            if which is not None:
                tensor = tensor[which]
        return tensor


def _numbers(a: Any, sizes: dict) -> Any:
    if isinstance(a, NUMBERS):
        return evaluate(a.expr, sizes)
    if isinstance(a, (tuple, list)):
        return type(a)(_numbers(x, sizes) for x in a) if type(a) in (tuple, list) else [_numbers(x, sizes) for x in a]
    return {k: _numbers(v, sizes) for k, v in a.items()} if isinstance(a, dict) else a


def sizes_in(a: Any) -> list:
    """The symbolic numbers among nested arguments."""
    if isinstance(a, NUMBERS):
        return [a]
    if isinstance(a, (tuple, list)):
        return [n for x in a for n in sizes_in(x)]
    return [n for x in a.values() for n in sizes_in(x)] if isinstance(a, dict) else []


class InputView(View):
    """A view of the ``index``-th input, made from the caller's tensor."""

    __slots__ = ()


class OutputView(View):
    """A view of the graph's ``index``-th output, which is returned as well."""

    __slots__ = ()


@slotted
class Number:
    """A number that follows from the sizes and numbers of the inputs, as an expression."""

    expr: Any


@slotted
class Constant:
    """Not a tensor, or a tensor the graph holds unchanged."""

    value: Any


@slotted(frozen=False)
class Traced:
    """A functional ATen graph and its facts.

    The graph's outputs are: the new contents of ``mutated`` inputs, the computed outputs, and in a joint graph the
    gradients of all inputs (None where there is none). Its inputs are the function's, then in a joint graph one
    tangent for each index of ``tangent_of`` (an index into the forward outputs)."""

    gm: GraphModule | None
    fake_inputs: list[Any]
    outputs: list[Computed | InputAlias | InputView | OutputView | Number | Constant]
    mutated: list[int]
    num_forward: int
    joint: bool
    tangent_of: list[int] = made_by(list)
    fake_tangents: list[Any] = made_by(list)
    # Of the mutated inputs, those whose new contents carry gradients.
    mutated_with_grad: frozenset = frozenset()
    # Inputs whose own sizes and strides are changed, and the view of themselves that they become.
    reshaped: list[tuple[int, InputView]] = made_by(list)
    random: bool = False
    # Whether an error that depends on data may come out of the graph: an index out of bounds, a matrix that is singular.
    fallible: bool = False
    # Of the mutated inputs, those written through ``x.data`` only: autograd doesn't count that.
    uncounted: frozenset = frozenset()
    # Of the mutated inputs, those that are written in grad mode, which some views may not be.
    mutated_under_grad: frozenset = frozenset()
    # Whether a function of the program's took part whose derivative is marked as not differentiable.
    once_differentiable: bool = False
    # What the tape keeps of the caller's tensors: for each of ``tangent_of``.
    kept: list[Kept] = made_by(list)
    # For each input the tangents any of which alone gives it a gradient, whatever that is computed from: a Function fills in those that are missing.
    filled: list[set[int]] = made_by(list)
    # The gradients alone as a second derivative sees them, where that isn't what ``gm`` computes, or how the tape ended: see ``aot/detached.py``.
    gradient: GraphModule | OffTape | None = None
    # Make ``gm`` and ``gradient`` where they were left on disk.
    load: Any = None
    load_gradient: Any = None

    def graph_module(self) -> GraphModule:
        if self.gm is None:
            self.gm = self.load()
        return self.gm

    def gradient_module(self) -> GraphModule | OffTape | None:
        if self.gradient is None and self.load_gradient is not None:
            self.gradient = self.load_gradient()
        return self.gradient
