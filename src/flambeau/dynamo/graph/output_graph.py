"""What a trace produces: the graph with its inputs, the guards, and in the end captured code."""

from __future__ import annotations

import operator
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau import fx
from flambeau.base import user_line
from flambeau.base.errors import DataDependentOutputException
from flambeau.base.shape_env import ConstraintViolationError
from flambeau.base.symint import NUMBERS, is_int
from flambeau.core.operator import OpOverload
from flambeau.core.overload_arguments import checked

from ..config import config
from ..exc import SkipForGood, Unsupported, UserRaises, unsupported
from ..guards.dynamic import Seen, dimensions
from ..guards.process import ProcessGuards
from ..guards.source import ConstSource, Source
from ..guards.tree import GuardBuilder, ndarray_facts, tensor_facts
from ..higher_order.opaque import guard_function
from ..modes.ambient import OperatorCheck
from ..numpy import floating_errors, numpy_bridge
from ..numpy.flipped_memory import FlippedMemory
from ..rules import trace_rules
from ..rules.constants import is_constant_value
from ..rules.reflect import module_of, name_of
from ..subclasses import subclass_operations
from ..tracing import world
from ..tracing.side_effects import SideEffects
from ..variables.base import Variable
from ..variables.containers.lists import ListVariable
from ..variables.containers.sequences import TupleVariable
from ..variables.functions.nested_functions import NestedFunctionVariable
from ..variables.functions.python_functions import UserFunctionVariable
from ..variables.numpy.ndarray import NumpyNdarrayVariable
from ..variables.numpy.read_only import mark_read_only
from ..variables.tensors import backward
from ..variables.tensors.graph_results import wrap_result
from ..variables.tensors.storage_facts import guard_asked
from ..variables.tensors.tensor import TensorVariable
from ..variables.tensors.torch_functions import TorchFunctionVariable
from ..variables.tensors.torch_generators import TorchGeneratorVariable
from ..variables.values.constant import ConstantVariable
from ..variables.values.symbolic import SymbolicVariable, wrap_number
from . import tensor_queries
from .blocks import EnteredBlocks
from .effects import (
    has_nodes,
    of_the_library,
    refuse_acting,
    refuse_read_only,
    under_handler,
)
from .emission import Emission
from .examples import example
from .glances import only_looks
from .graph_recorder import GraphRecorder
from .inputs import GraphInput, symbolic_input
from .known_objects import KnownObjects
from .references import References
from .shapes import TraceShapes

__all__ = ["OutputGraph"]


PLAIN_OPERANDS = frozenset({ConstantVariable, NumpyNdarrayVariable, TensorVariable})
NO_EFFECTS: frozenset[str] = frozenset()
NUMPY_ERRORS = ConstSource(np._core.umath._extobj_contextvar, "np.geterr()")
"""Where NumPy keeps what it does on floating-point errors."""


class OutputGraph:
    """One per attempt at tracing a frame: what the parts of a trace record, and the operations that touch several of them."""

    def __init__(self, compiler, code: types.CodeType, globals: dict, seen: Seen | None = None):
        self.compiler = compiler
        self.code, self.globals = code, globals
        self.tx = None
        """The frame that is interpreted."""
        self.resumes = None
        """Of the frame that is captured."""
        self.recorder = GraphRecorder(self)
        self.shapes = TraceShapes(self, seen)
        self.blocks = EnteredBlocks()
        self.objects = KnownObjects()
        self.references = References()
        self.emission = Emission(self)
        self.guards = GuardBuilder()
        self.process = ProcessGuards()
        self.side_effects = SideEffects()
        # Whether what a function under lru_cache does is being traced.
        self.in_cached_function = False
        self.writes = False
        """Whether there were any side effects, once they are let go."""
        self.roots: dict[int, GraphInput] = {}
        """Fake leaves that inputs with a history come from, which are written."""
        self.freed: dict[int, Any] = {}
        """Nodes of the tape of fake tensors that a backward while tracing has freed."""
        self.under_handler = False
        """Whether a node was made where the program handles exceptions."""
        self.has_subclasses = False
        """Among the inputs of the graph."""
        self.stand_ins = subclass_operations.StandIns()
        self.unroll = True
        # Whether the frame was given NumPy's arrays and numbers alone.
        self.of_numpy = False
        # Those arguments, by name.
        self.given: dict[str, Any] = {}
        # Whether those arrays have a few elements each.
        self.of_few = False
        # Whether the frame has no graph break, as far as is known: classes are made by its captured code.
        self.whole = False
        """Take the elements of iterators that existed before, as far as they are known."""
        self._fake_mode = None
        self.initial_grad = tensor_queries.grad_enabled()
        self.outer_exception: BaseException | None = None
        """That a caller handles."""
        self.modes = None
        """Those that are on when the function is called."""
        self.executed, self.most_instructions = 0, config.max_traced_instructions
        """Instructions interpreted so far, and how many at most before :meth:`too_many`."""
        self.python_draws: list[tuple[Source, Callable, str]] = []
        """Whose random.Random, what is called with it, the local that keeps the number."""
        self.draws = False
        """Whether the graph draws from NumPy's generators."""
        self.flips = FlippedMemory()
        self.asks_numpy_errors = False
        """Whether a graph of what was given raises, warns and calls as NumPy's error settings say."""
        self.regions: Any = None
        """The native loops compiled so far, see higher_order/compiled_regions.py."""

    def too_many(self) -> None:
        """As many instructions were interpreted as are allowed: for the frame, or for one that has met no tensor yet."""
        if self.most_instructions < config.max_traced_instructions:
            if not self.recorder.has_work() and not self.recorder.inputs:
                raise SkipForGood(f"no tensor was met in {self.most_instructions} instructions: it is plain Python")
            self.most_instructions = config.max_traced_instructions
            return
        if not self.compiler.fullgraph and not self.modes.transforms:
            # A break here would leave the rest of the loop to be traced for as long.
            raise SkipForGood(f"more than {self.most_instructions} instructions: loops are unrolled while tracing")
        unsupported(
            "too-long",
            f"more than {self.most_instructions} instructions",
            "Loops are unrolled while tracing.",
            "Write the loop with tensor operations.",
        )

    def release(self) -> None:
        """Nothing is traced any more: let go of the values of this call, and of what the fake tensors know of this object."""
        self.references.release()
        self.given = {}
        self.writes = self.side_effects.any()
        self.regions = None
        self.side_effects, self.shapes.sizes = SideEffects(), None
        self.objects.release()
        if self.shapes.env is not None:
            self.shapes.env.output, self.shapes.env.where = None, user_line.user_line
        if self._fake_mode is not None:
            vars(self._fake_mode).pop("becoming", None)

    def guard(self, source: Source | None, kind: str, payload=None) -> None:
        if source is not None:
            self.guards.add(source, kind, payload)

    def finish_guards(self):
        if not (self.emission.graph_module is None and only_looks(self)):
            if self.asks_numpy_errors:
                self.guard_numpy_errors()
            self.process.add(self.guards)
        # Numbers are no memory: one object may be several of them.
        self.guards.not_aliased([i.source for i in self.recorder.inputs if not (i.number or i.numpy_number)])
        if self.shapes.env is not None:
            self.shapes.env.check_constraints()
            self.guards.sizes(self.shapes.env)
        if self.writes:
            self.guards.not_aliased(self.objects.mutable_sources)
        if self.compiler.guard_filter is not None:
            self.guards.filtered(self.compiler.guard_filter)
        return self.guards.build()

    @property
    def fake_mode(self):
        if self._fake_mode is None:
            self._fake_mode = tensor_queries.fake_mode()
            trace = weakref.ref(self)  # fake tensors, which the graph holds, hold the mode

            def becoming(tensor, view):
                if trace() is not None:
                    trace()._becoming(tensor, view)

            self._fake_mode.becoming = becoming
        return self._fake_mode

    def _becoming(self, tensor, view) -> None:
        """The sizes of a value of the graph are about to be changed: nodes keep what they were, and are operands with what they are now."""
        self._fake_mode.effects.add("writes")
        for level in (self.recorder.root, *(lv.graph for lv in self.recorder.levels)):
            for n in level.nodes:
                if n.meta.get("val") is tensor:
                    n.meta["now"] = tensor
                    n.meta["val"] = n.meta["example_value"] = tensor_queries.same_place(tensor)

    def user_line(self) -> user_line.UserLine | None:
        """Where the user's program is, for guards."""
        stack = self.tx.user_stack() if self.tx is not None else ()
        if not stack:
            return None
        f = stack[-1]
        return user_line.UserLine(f.filename, f.lineno, f.name, f.line)

    def add_input(self, value, source: Source, ndarray: bool) -> TensorVariable:
        if ndarray:
            self.asks_numpy_errors = True
            facts = ndarray_facts(value)
            tensor = numpy_bridge.tensor_of(value)
            if type(value) is numpy_bridge.Carried:
                self.guard(source, "CALL", numpy_bridge.asks if tensor.requires_grad else numpy_bridge.asks_not)
        else:
            facts = tensor_facts(value)
            tensor = value
        varying = self.shapes.seen.tensor(self.objects.path(source), tuple(value.shape))
        spec = self.compiler.shapes.get(source.name)
        symbols = dimensions(value, varying, self.shapes.dynamic, lambda: self.objects.is_static(value, source), spec)
        for d, said in (spec or {}).items():
            if d != "number":
                lo, hi, n = said["lo"], said["hi"], value.shape[d]
                if (lo is not None and n < lo) or (hi is not None and n > hi):
                    raise ConstraintViolationError(
                        f"{n} not in range [{lo or 0}, {'int_oo' if hi is None else hi}] for {source.name}.size()[{d}]"
                    )
            if d != "number" and said["size"] is not None and said["size"] != value.shape[d]:
                raise ConstraintViolationError(
                    f"Static shape constraint of {said['size']} does not match input size of {value.shape[d]}, for {source.name}.size()[{d}]"
                )
        if symbols:
            fake, facts = symbolic_input(self, tensor, source, symbols, facts, value.itemsize if ndarray else 1)
        else:
            fake = self.fake_mode.from_tensor(tensor, static_shapes=True)
        self.guard(source, "NDARRAY_MATCH" if ndarray else "TENSOR_MATCH", facts)
        node = self.recorder.placeholder(source)
        node.meta["val"] = node.meta["example_value"] = fake
        self.recorder.inputs.append(
            GraphInput(node, source, tensor, ndarray, carried=type(value) is numpy_bridge.Carried)
        )
        self.recorder.root.carries = self.recorder.root.carries or tensor.requires_grad
        self.recorder.examples[node] = tensor
        if symbols:
            self.shapes.sizes.bind_tensor(fake, node)
        if ndarray:
            if not value.flags.writeable:
                mark_read_only(node)
            out = NumpyNdarrayVariable(node, fake, source)
            out.scalar = getattr(value, "number", False) and value.ndim == 0
            return out
        return TensorVariable(node, fake, source, type(value))

    def checked_fake(self, name: str, fn: Callable, args, kwargs=None):
        """``fn`` on fake tensors; what it raises is a graph break that names the operation."""
        try:
            return self.eval_fake(fn, args, kwargs)
        except (Unsupported, UserRaises):
            raise
        except Exception as e:
            data = isinstance(e, DataDependentOutputException)
            data = data or "data" in name_of(type(e)).lower() and "depend" in name_of(type(e)).lower()
            if data and self.shapes.env is None and self.shapes.data_symbols():
                return self.checked_fake(name, fn, args, kwargs)
            if "leaf Variable" in str(e) and backward.give_histories(self):
                return self.checked_fake(name, fn, args, kwargs)
            if data:
                unsupported("data-dependent", f"{name}: {e}", "The value or shape depends on tensor data.")
            if module_of(fn).startswith("flambeau.numpy."):
                unsupported("numpy", f"np.{name.removeprefix('numpy_')}: {e}", "NumPy itself makes the call.")
            unsupported(
                "fake-tensor",
                f"running {name} on fake tensors raised {name_of(type(e))}: {e}",
                "The operation fails on these shapes, dtypes or arguments, or has no shape rule.",
            )

    def eval_fake(self, fn: Callable, args, kwargs=None):
        with self.fake_mode:
            if not trace_rules.disallowed or not trace_rules.disallows_operators():
                return fn(*args, **(kwargs or {}))
            with OperatorCheck():
                return fn(*args, **(kwargs or {}))

    def call_in_graph(
        self, tx, op: str, target, args: list[Variable], kwargs: dict[str, Variable], none_ok=False
    ) -> Variable:
        """Run the operation on fake tensors, record it, and wrap its result. Function modes entered while tracing come first."""
        if self.blocks.function_modes:
            return self.call_function_mode(tx, op, target, args, kwargs)
        operands = [*args, *kwargs.values()]
        plain = PLAIN_OPERANDS.issuperset(map(type, operands))  # nothing among them that takes over, or that is code
        if not plain:
            if subclass_operations.interposes(self, args, kwargs):
                return subclass_operations.call_operation(tx, op, target, args, kwargs, none_ok)
            for a in operands:
                if isinstance(a, UserFunctionVariable) and not isinstance(target, str):
                    guard_function(tx, a.fn, a.source)
                if type(a) is TorchGeneratorVariable and op == "call_function" and not of_the_library(target):
                    a.stay(tx)
        pargs = tuple([a.as_proxy() for a in args])
        pkwargs = {k: v.as_proxy() for k, v in kwargs.items()} if kwargs else {}
        if not plain:
            for a in operands:
                if isinstance(a, NestedFunctionVariable) and a._plain is not None:
                    guard_function(tx, a._plain, ConstSource(a._plain, a.name))
        refuse_acting(target, (pargs, pkwargs))
        fargs = tuple(map(example, pargs))
        fkwargs = {k: example(v) for k, v in pkwargs.items()} if kwargs else {}
        name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        effects, asked_offsets = self.fake_mode.effects, self.fake_mode.asked_offsets
        effects.clear()
        asked_offsets.clear()
        if op == "call_method":
            value = self.checked_fake(name, lambda o, *a, **k: getattr(o, target)(*a, **k), fargs, fkwargs)
        else:
            of_program = type(target) is OpOverload and not trace_rules.is_package_code(tx.code)
            value = self.checked_fake(name, checked(target) if of_program else target, fargs, fkwargs)
        if asked_offsets:
            guard_asked(self, asked_offsets)
        if value is None and not none_ok and not effects and not trace_rules.is_allowed(target):
            unsupported("graph-result", f"{name} returned None", "Operations in the graph return tensors.")
        if (
            not tensor_queries.is_tensor(value)
            and (known := self._no_tensor(tx, target, value, pargs, pkwargs)) is not None
        ):
            return known
        if (
            tensor_queries.is_tensor(value)
            and value.requires_grad
            and tensor_queries.is_new_leaf(value)
            and not any(f is value for f in self.recorder.input_values())
        ):
            unsupported(
                "leaf",
                f"{name} makes a tensor that requires grad",
                "A leaf of the autograd graph stays one only if it is made outside of the compiled graph.",
            )
        if "writes" in effects and self.flips:
            self.flips.refuse_writes(fx.node.nodes_in(pargs[:1] if target is operator.setitem else (pargs, pkwargs)))
        if "writes" in effects and self.recorder.root.read_only:
            refuse_read_only(name, pargs[:1] if target is operator.setitem else (pargs, pkwargs))
        node = self.recorder.create_node(tx, op, target, pargs, pkwargs)
        self.under_handler = self.under_handler or under_handler(tx)
        node.meta["effects"] = frozenset(effects) if effects else NO_EFFECTS
        node.meta["val"] = node.meta["example_value"] = value
        if value is None:
            return ConstantVariable(None)
        if self.shapes.env is not None:
            self.shapes.bind_new(value, node)
            if isinstance(value, NUMBERS):
                return SymbolicVariable(value)
        return wrap_result(tx, node, value, *args, *kwargs.values())

    def _no_tensor(self, tx, target, value, pargs: tuple, pkwargs: dict) -> Variable | None:
        """The variable of a result that needs no node: numbers, sizes, what the library knows without looking at tensors. None for others."""
        if isinstance(value, NUMBERS) and not self.shapes.is_new(value):
            return SymbolicVariable(value)  # a size, a stride, their sum: a node when it is used
        if isinstance(value, (tuple, list)) and all(map(is_int, value)) and any(isinstance(v, NUMBERS) for v in value):
            numbers = [wrap_number(v) for v in value]
            return TupleVariable(numbers, cls=type(value)) if isinstance(value, tuple) else ListVariable(numbers)
        if value is not None and is_constant_value(value):
            if not has_nodes(pargs, pkwargs):
                args, kwargs = tuple(map(example, pargs)), {k: example(v) for k, v in pkwargs.items()}
                world.library_state(tx, target, args, kwargs, value)
            return ConstantVariable(value)
        if type(value) is types.FunctionType and trace_rules.is_torch_callable(value) and not has_nodes(pargs, pkwargs):
            return TorchFunctionVariable(value)  # a transformed function: calling it is the operation
        if isinstance(value, tuple) and not hasattr(value, "_fields") and all(isinstance(v, int) for v in value):
            return tx.wrap_known(value)
        return None

    def call_function_mode(self, tx, op: str, target, args, kwargs) -> Variable:
        """Trace the innermost mode's handler, with that mode off."""
        if op != "call_method" and trace_rules.is_torch_callable(target):
            return self.ask_function_mode(tx, TorchFunctionVariable(target), args, kwargs)
        fn = (lambda o, *a, **k: getattr(o, target)(*a, **k)) if op == "call_method" else target
        asked = subclass_operations.asked_of_mode(tx, fn, args, kwargs)
        if asked is not None:
            return self.ask_function_mode(tx, *asked)
        modes, self.blocks.function_modes = self.blocks.function_modes, []  # modes are not asked for everything
        try:
            return self.call_in_graph(tx, op, target, args, kwargs, none_ok=True)
        finally:
            self.blocks.function_modes = modes

    def ask_function_mode(self, tx, func: Variable, args, kwargs) -> Variable:
        modes = self.blocks.function_modes
        mode = modes.pop()
        try:
            out = mode.getattr(tx, "__torch_function__").call(
                tx, [func, tx.make_tuple([]), tx.make_tuple(args), tx.make_dict(kwargs)], {}
            )
        finally:
            modes.append(mode)
        if out.is_constant() and out.as_constant() is NotImplemented:
            unsupported("function-mode", "a function mode that returns NotImplemented")
        return out

    def guard_numpy_errors(self) -> None:
        """Captured operations neither raise nor call nor warn of anything on overflow and its kin: a plain call does (numpy/floating_errors.py)."""
        states = (floating_errors.is_quiet_on_underflow, floating_errors.is_quiet, floating_errors.is_loud)
        self.guard(NUMPY_ERRORS, "CONTEXT_VAR", next(state for state in states if state(None)))

    def set_grad_mode(self, tx, mode: bool) -> None:
        if tensor_queries.grad_enabled() != mode:
            node = self.recorder.create_node(tx, "call_function", tensor_queries.set_grad_enabled, (mode,), {})
            node.meta["val"] = None
            tensor_queries.set_grad_enabled(mode)
