"""Symbols of a trace."""

from __future__ import annotations

import contextlib
import weakref
from typing import Any

from flambeau.base import shape_checks
from flambeau.base.relations import symbols as relation_symbols
from flambeau.base.shape_env import ShapeEnv
from flambeau.base.symint import NUMBERS, is_symbolic
from flambeau.proxy.sizes import SizeNodes

from ..config import config
from ..guards.dynamic import Seen, setting
from ..variables.base import Variable
from ..variables.tensors.untraced import GIVES_NUMBERS, GIVES_SIZES
from ..variables.values.symbolic import CheckVariable, wrap_number
from . import python_numbers, tensor_queries


class TraceShapes:
    """Which sizes and numbers of a trace are symbols, and the nodes that stand for them."""

    def __init__(self, output, seen: Seen | None):
        self.output = weakref.proxy(output)  # no cycle: a trace is freed with its last reference
        self.seen = seen or Seen()
        self.numbers: dict[str, Variable] = {}
        """The numbers that are symbols, by path."""
        self.numpy_integers: set[str] = set()
        """Those of NumPy's integers that are arrays without dimensions, by path."""
        self.sizes: SizeNodes | None = None
        self.env: ShapeEnv | None = None
        """Made when something is a symbol."""
        self.named_sizes: dict[str, tuple[Any, str]] = {}
        """Of compile(dynamic_shapes=)."""
        self.dynamic = setting(output.compiler.dynamic)
        self.reads_numbers = self.has_data_numbers = False
        """See :meth:`data_numbers`."""

    def shape_env(self) -> ShapeEnv:
        """The environment of this trace's symbols."""
        if self.env is None:
            self.env = ShapeEnv(where=self.output.user_line)
            self.env.output = self.output
            data = self.output.compiler.fullgraph
            self.env.allow_data_dependent_numbers = data or config.capture_scalar_outputs
            self.env.allow_data_dependent_sizes = data or config.capture_dynamic_output_shape_ops
            self.output.fake_mode.shape_env = self.env
            self.sizes = SizeNodes(self.output.recorder.root, self.output.recorder.place)
        return self.env

    def data_symbols(self, name: str | None = None) -> bool:
        """Whether symbols may stand for what depends on data: numbers, sizes, or what the tensor method ``name`` gives."""
        numbers = self.output.compiler.fullgraph or config.capture_scalar_outputs or self.reads_numbers
        sizes = self.output.compiler.fullgraph or config.capture_dynamic_output_shape_ops
        allowed = (
            (numbers or sizes) if name is None else numbers if name in GIVES_NUMBERS else sizes and name in GIVES_SIZES
        )
        if allowed:
            self.shape_env()
        return allowed

    @contextlib.contextmanager
    def data_numbers(self):
        """Numbers that depend on data are symbols in this block whatever the settings say: the library makes them for itself."""
        env = self.shape_env()
        before = self.reads_numbers, env.allow_data_dependent_numbers
        self.has_data_numbers = self.reads_numbers = env.allow_data_dependent_numbers = True
        try:
            yield
        finally:
            self.reads_numbers, env.allow_data_dependent_numbers = before

    def data_sizes(self):
        """Sizes that depend on data are symbols in this block whatever the settings say: the operator is only about them."""
        return self.shape_env().data_sizes()

    def number_node(self, number, decide: bool = True):
        """The node (or constant) of a symbolic number. ``decide``: a truth value that doesn't depend on data is a constant."""
        if decide and number.__sym__ == "bool" and not number.env.is_unbacked(number.expr):
            return bool(number)
        number = python_numbers.fitting(number, self.check_number)
        return self.sizes.node_of(number) if isinstance(number, NUMBERS) else number

    def check_number(self, condition) -> None:
        """The graph checks what is asked of numbers that depend on data; where it fails the frame runs plainly."""
        CheckVariable(shape_checks.check).require(
            self.output.tx, wrap_number(condition), "a number is none that graphs compute with"
        )

    def is_new(self, number) -> bool:
        """Whether a number depends on data that no node was made for."""
        return any(s not in number.env.hints and not self.sizes.has(s) for s in relation_symbols(number.expr))

    def bind_new(self, value, node) -> None:
        """Symbols of results whose size, or value, depends on data."""
        if isinstance(value, NUMBERS):
            self.sizes.bind_number(value, node)
        elif tensor_queries.is_tensor(value):
            if is_symbolic(value._shape):
                self.sizes.bind_tensor(value, node, unbacked_only=True)
        elif isinstance(value, (tuple, list)):
            for i, v in enumerate(value):
                if tensor_queries.is_tensor(v) and is_symbolic(v._shape):
                    self.sizes.bind_item(v, node, i)
