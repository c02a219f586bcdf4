"""What a trace produces: the graph with its inputs, the guards, and in the end captured code."""

from __future__ import annotations

import contextlib
import itertools
import operator
import re
import sys
import time
import types
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from flambeau import _C, _frame, fx
from flambeau.base import shape_env
from flambeau.base.errors import DataDependentOutputException
from flambeau.base.relations import symbols as relation_symbols
from flambeau.base.shape_env import ConstraintViolationError, ShapeEnv
from flambeau.base.symint import NUMBERS, is_int, is_symbolic
from flambeau.loops.streams import journaled
from flambeau.proxy.sizes import SizeNodes

from . import autocast, floating, numpy_bridge, python_numbers, subclasses, tensors, trace_logs, trace_rules, world
from .active_modes import OperatorCheck
from .codegen import TEMP, Codegen
from .config import config
from .dynamic import Seen, dimensions, setting
from .examples import example
from .exc import BackendCompilerFailed, SkipFrame, Unsupported, UserRaises, unsupported
from .graph_effects import (
    drawing_again,
    draws,
    has_effects,
    has_nodes,
    may_run_again,
    refuse_acting,
    refuse_read_only,
    refuse_shared_memory,
    under_handler,
    writes,
    written_inputs,
)
from .graph_inputs import GraphInput, symbolic_input
from .guards import GuardBuilder, ndarray_facts, tensor_facts
from .opaque import guard_function
from .process_guards import ProcessGuards
from .reflect import module_of, name_of
from .side_effects import SideEffects
from .source import CellSource, ConstSource, Source
from .subgraphs import Level
from .variables import backward
from .variables.base import Lazy, Variable
from .variables.constant import ConstantVariable, is_constant_value
from .variables.functions import CellVariable, NestedFunctionVariable, UserFunctionVariable
from .variables.lists import ListVariable, TupleVariable
from .variables.numpy_flips import refuse_shown
from .variables.storage_offsets import guard_asked
from .variables.symbolic import CheckVariable, SymbolicVariable, wrap_number
from .variables.tensor import (
    GIVES_NUMBERS,
    GIVES_SIZES,
    NumpyNdarrayVariable,
    TensorVariable,
    mark_read_only,
    wrap_result,
)
from .variables.torch_functions import TorchFunctionVariable
from .wrapper_gradients import Region, Runner, region_of

__all__ = ["OutputGraph"]

PLACE, NO_WORD = re.compile(r" at 0x[0-9a-f]+>"), re.compile(r"[^a-zA-Z0-9]+")
ESCAPE = "a tensor that a transformed function made leaves it other than as its result"


PLAIN_OPERANDS = frozenset({ConstantVariable, NumpyNdarrayVariable, TensorVariable})
NO_EFFECTS: frozenset[str] = frozenset()
NUMPY_ERRORS = ConstSource(np._core.umath._extobj_contextvar, "np.geterr()")
"""Where NumPy keeps what it does on floating-point errors."""


class OutputGraph:
    """One per attempt at tracing a frame."""

    def __init__(self, compiler, code: types.CodeType, globals: dict, seen: Seen | None = None):
        self.compiler = compiler
        self.seen = seen or Seen()
        self.numbers: dict[str, Variable] = {}  # by path, the numbers that are symbols
        # label -> the objects that go by it, in the order they were met
        self._constants: dict[str, dict[int, Any]] = {}
        self.tx = None  # the frame that is interpreted
        self.resumes = None  # of the frame that is captured
        self.code, self.globals = code, globals
        self.graph = self.root = fx.Graph()  # the graph being made: the root's, or that of the innermost subgraph
        self.levels: list[Level] = []  # subgraphs being traced, outermost first
        self.had_subgraphs = False
        self.subgraphs_of: Counter = Counter()  # subgraphs by what they are
        self.attributes: dict[str, Any] = {}  # subgraphs that the root graph holds
        self.roots: dict[int, GraphInput] = {}  # fake leaves that inputs with a history come from, which are written
        self.freed: dict[int, Any] = {}  # nodes of the tape of fake tensors that a backward while tracing has freed
        self.under_handler = False  # whether a node was made where the program handles exceptions
        self.function_modes: list[Variable] = []  # entered while tracing, innermost last
        self.left_strict = False
        self.errstates: tuple = ()  # np.errstate blocks entered while tracing: (kind, what happens) pairs
        self.regions: list[Any] = []  # entered while tracing: error_on_graph_break, patched settings
        self.function_disabled = 0  # depth of regions in which classes don't override functions
        self.has_subclasses = False  # among the inputs of the graph
        self.stand_ins = subclasses.StandIns()
        self.region: Region | None = None  # the derivative, when wrappers have a history
        self.unroll = True  # take the elements of iterators that existed before, as far as they are known
        self.first_call = None  # placeholders go in front of it
        self.inputs: list[GraphInput] = []
        self.examples: dict[Any, Any] = {}
        self.guards = GuardBuilder()
        self.side_effects = SideEffects()
        self.writes = False  # whether there were any side effects, once they are let go
        self.by_id: dict[int, Variable] = {}
        self.made_classes: dict[int, Variable] = {}  # made while tracing, by the ids of their stand-ins
        self.stood_for: dict[int, Variable] = {}  # by what stands for it in a stand-in
        self._by_name: dict[str, Any] = {}  # the objects of the first ``_named`` of them, by the names of their sources
        self._named = 0
        self.keep: list[Any] = []
        self.at_end: list[Callable[[], Any]] = []  # what lets go of the trace
        self.watched = trace_logs.watching()
        self.inlined: list[weakref.ref] = []  # frames of functions that are called
        self.mutable_sources: list[Source] = []
        self.cells: dict[int, CellVariable] = {}
        self.literals: dict[
            int, Variable
        ] = {}  # tuples and frozensets among the constants of codes, by id: each is one object
        self._fake_mode = None
        self.sizes: SizeNodes | None = None
        self.env: ShapeEnv | None = None  # made when something is a symbol
        self.named_sizes: dict[str, tuple[Any, str]] = {}  # of compile(dynamic_shapes=)
        self.dynamic = setting(compiler.dynamic)
        self.initial_grad = tensors.grad_enabled()
        self.process = ProcessGuards()
        self.outer_exception: BaseException | None = None  # that a caller handles
        self.generators: weakref.WeakSet = weakref.WeakSet()  # of traced code
        self.generator_dropped = (
            False  # one that is suspended inside try or with: the interpreter closes it there and then
        )
        self.weakly_known: weakref.WeakSet = weakref.WeakSet()  # what weak references made while tracing lead to
        self.weak_references: weakref.WeakKeyDictionary = (
            weakref.WeakKeyDictionary()
        )  # those without a callback, by what they lead to
        self.calling_references: weakref.WeakSet = weakref.WeakSet()  # those with one
        self.modes = None  # those that are on when the function is called
        self.graph_module = None
        self.compile_seconds = 0.0
        self.executed, self.most_instructions = 0, config.max_traced_instructions
        self.python_draws: list[
            tuple[Source, Callable, str]
        ] = []  # whose random.Random, what is called with it, the local that keeps the number
        self.draws = False  # whether the graph draws from NumPy's generators
        self.flips: list[tuple] = []  # storages (of the copy, of what it shows) of arrays that run backwards
        self.reads_numbers = self.has_data_numbers = False  # see data_numbers()

    def breaks_are_errors(self) -> bool:
        """Whether ``error_on_graph_break`` is on where the trace is."""
        found = [r.error for r in self.regions if hasattr(r, "error")]
        return found[-1] if found else self.left_strict

    def leave_regions(self) -> None:
        """The trace ends inside of them. What ends it is an error or a break by the rules that held there."""
        self.left_strict = self.breaks_are_errors()
        while self.regions:
            self.regions.pop().__exit__(None, None, None)

    # -- guards --
    def guard(self, source: Source | None, kind: str, payload=None) -> None:
        if source is not None:
            self.guards.add(source, kind, payload)

    def finish_guards(self):
        self.process.add(self.guards)
        self.guards.not_aliased([i.source for i in self.inputs if not i.number])
        if self.env is not None:
            self.env.check_constraints()
            self.guards.sizes(self.env)
        if self.writes:
            self.guards.not_aliased(self.mutable_sources)
        if self.compiler.guard_filter is not None:
            self.guards.filtered(self.compiler.guard_filter)
        return self.guards.build()

    def cell(self, cell: types.CellType, source: Source | None) -> CellVariable:
        v = self.cells.get(id(cell))
        if v is None:
            source = source or ConstSource(cell, "cell")
            try:
                contents = Lazy(cell.cell_contents, CellSource(source))
            except ValueError:
                contents = None
            v = self.cells[id(cell)] = CellVariable(contents, source)
            self.keep.append(cell)
        return v

    # -- the graph --
    @property
    def fake_mode(self):
        if self._fake_mode is None:
            self._fake_mode = tensors.fake_mode()
            trace = weakref.ref(self)  # fake tensors, which the graph holds, hold the mode

            def becoming(tensor, view):
                if trace() is not None:
                    trace()._becoming(tensor, view)

            self._fake_mode.becoming = becoming
        return self._fake_mode

    def release(self) -> None:
        """Nothing is traced any more: let go of the values of this call, and of what the fake tensors know of this object."""
        for end in self.at_end:
            end()
        self.at_end.clear()
        for frame in filter(None, [ref() for ref in self.inlined]):  # in cycles with what they made
            vars(frame).clear()
            frame.started = False  # whatever is a generator of it asks
        self.inlined.clear()
        self.writes = self.side_effects.any()
        self.side_effects, self.cells, self.literals, self.sizes = SideEffects(), {}, {}, None
        self.by_id.clear()
        self.made_classes.clear()
        self.stood_for.clear()
        self.keep.clear()  # a generator among it is closed when the program drops it
        self._by_name.clear()
        if self.env is not None:
            self.env.output, self.env.where = None, shape_env.user_line
        if self._fake_mode is not None:
            vars(self._fake_mode).pop("becoming", None)

    def _becoming(self, tensor, view) -> None:
        """The sizes of a value of the graph are about to be changed: nodes keep what they were, and are operands with what they are now."""
        self._fake_mode.effects.add("writes")
        for level in (self.root, *(lv.graph for lv in self.levels)):
            for n in level.nodes:
                if n.meta.get("val") is tensor:
                    n.meta["now"] = tensor
                    n.meta["val"] = n.meta["example_value"] = tensors.same_place(tensor)

    # -- symbols --
    def shape_env(self) -> ShapeEnv:
        """The environment of this trace's symbols."""
        if self.env is None:
            self.env = ShapeEnv(where=self.user_line)
            self.env.output = self
            data = self.compiler.fullgraph
            self.env.allow_data_dependent_numbers = data or config.capture_scalar_outputs
            self.env.allow_data_dependent_sizes = data or config.capture_dynamic_output_shape_ops
            self.fake_mode.shape_env = self.env
            self.sizes = SizeNodes(self.root)
        return self.env

    def user_line(self) -> str | None:
        """Where the user's program is, for guards."""
        stack = self.tx.user_stack() if self.tx is not None else ()
        if not stack:
            return None
        f = stack[-1]
        return f'File "{f.filename}", line {f.lineno}, in {f.name}, code: {f.line}'

    def data_symbols(self, name: str | None = None) -> bool:
        """Whether symbols may stand for what depends on data: numbers, sizes, or what the tensor method ``name`` gives."""
        numbers = self.compiler.fullgraph or config.capture_scalar_outputs or self.reads_numbers
        sizes = self.compiler.fullgraph or config.capture_dynamic_output_shape_ops
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

    def number_node(self, number):
        """The node (or constant) of a symbolic number."""
        if number.__sym__ == "bool" and not number.env.is_unbacked(number.expr):
            return bool(number)
        number = python_numbers.fitting(number, self.check_number)
        return self.sizes.node_of(number) if isinstance(number, NUMBERS) else number

    def check_number(self, condition) -> None:
        """The graph checks what is asked of numbers that depend on data; where it fails the frame runs plainly."""
        CheckVariable(shape_env.check).require(
            self.tx, wrap_number(condition), "a number is none that graphs compute with"
        )

    def path(self, source: Source) -> str:
        """A name for what is found at ``source``: no other source of this trace has it, and the next trace finds the same there. Objects that
        captured code holds on to may share a label (cells do), so they are counted."""
        root = source.root
        if not isinstance(root, ConstSource):
            return source.name
        known = self._constants.setdefault(root.label, {})
        known.setdefault(id(root.value), root.value)
        return f"object {list(known).index(id(root.value))}: {source.name}"

    def placeholder(self, source: Source):
        # Without the places of keys: the text of a graph must be that of the next process.
        name = source.name
        if " at 0x" in name:
            name = PLACE.sub(">", name)
        name = NO_WORD.sub("_", name)
        if name[:1].isdigit():
            name = "_" + name
        last = self.inputs[-1].node if self.inputs else None
        with self.root.inserting_before(None) if last is None else self.root.inserting_after(last):
            node = self.root.placeholder(name)
        node.meta["source"] = source.name
        return node

    def add_input(self, value, source: Source, ndarray: bool) -> TensorVariable:
        if ndarray:
            self.guard_numpy_errors()
            facts = ndarray_facts(value)
            tensor = numpy_bridge.tensor_of(value)
            if type(value) is numpy_bridge.Carried:
                self.guard(source, "CALL", numpy_bridge.asks if tensor.requires_grad else numpy_bridge.asks_not)
        else:
            facts = tensor_facts(value)
            tensor = value
        varying = self.seen.tensor(self.path(source), tuple(value.shape))
        spec = self.compiler.shapes.get(source.name)
        symbols = dimensions(value, varying, self.dynamic, lambda: self._is_static(value, source), spec)
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
        node = self.placeholder(source)
        node.meta["val"] = node.meta["example_value"] = fake
        self.inputs.append(GraphInput(node, source, tensor, ndarray, carried=type(value) is numpy_bridge.Carried))
        self.root.carries = getattr(self.root, "carries", False) or tensor.requires_grad
        self.examples[node] = tensor
        if symbols:
            self.sizes.bind_tensor(fake, node)
        if ndarray:
            if not value.flags.writeable:
                mark_read_only(node)
            out = NumpyNdarrayVariable(node, fake, source)
            out.scalar = getattr(value, "number", False) and value.ndim == 0
            return out
        return TensorVariable(node, fake, source, type(value))

    def _is_static(self, value, source: Source) -> bool:
        """Whether the sizes of a tensor stay constants though they vary."""
        if config.force_parameter_static_shapes and trace_rules.is_parameter_class(type(value)):
            return True
        owner: Any = source
        while owner is not None:
            cls = type(self._object_at(owner))
            if config.force_parameter_static_shapes and trace_rules.is_optimizer_class(cls):
                return True  # gradients and states have the sizes of parameters
            if config.force_nn_module_property_static_shapes and trace_rules.is_nn_module_class(cls):
                return True
            owner = getattr(owner, "base", None)
        return False

    def owner(self, source: Source) -> Any:
        """The object whose attribute is at ``source``, as far as it was looked at."""
        base = getattr(source, "base", None)
        return None if base is None else self._object_at(getattr(base, "base", None) or base)

    def _object_at(self, source: Source) -> Any:
        for v in itertools.islice(self.by_id.values(), self._named, None):
            if v.source is not None:
                self._by_name.setdefault(v.source.name, getattr(v, "value", None))
        self._named = len(self.by_id)
        return self._by_name.get(source.name)

    def input_values(self):
        return (i.node.meta["val"] for i in self.inputs)

    def source_of_node(self, node) -> Source | None:
        """The source of a graph input that is a tensor, for a value that is that tensor again."""
        return next((i.source for i in self.inputs if i.node is node and not i.ndarray and not i.number), None)

    def example_of(self, var: TensorVariable):
        """The tensor of this call behind a graph input (its fake tensor for an intermediate)."""
        return self.examples.get(var.node, var.val)

    def create_node(self, tx, op: str, target, args: tuple, kwargs: dict):
        if self.levels:
            args, kwargs = fx.map_arg((args, kwargs), self.lift)
        elif self.had_subgraphs and any(n.graph is not self.root for n in fx.node.nodes_in((args, kwargs))):
            unsupported("subgraph-escape", ESCAPE)
        node = self.graph.create_node(op, target, args, kwargs)
        if self.first_call is None and not self.levels:
            self.first_call = node
        if self.watched and op.startswith("call"):
            trace_logs.called(tx, f"FX call {node.name}")
        stack = tx.user_stack()
        node.meta["stack"] = stack[-1]
        node.meta["user_stack"] = stack
        if self.errstates:
            node.meta["errstate"] = self.errstates
        return node

    # -- subgraphs --
    @contextlib.contextmanager
    def entered(self, level: Level):
        """Nodes go into the subgraph."""
        before = self.graph
        self.had_subgraphs = True
        self.levels.append(level)
        self.graph = level.graph
        try:
            yield
        finally:
            self.levels.pop()
            self.graph = before

    def lift(self, node):
        """The node in the graph being made that stands for ``node``, which may be one of a graph around it."""
        if node.graph is self.graph:
            return node
        graphs = [self.root, *(level.graph for level in self.levels)]
        if node.graph not in graphs:
            unsupported("subgraph-escape", ESCAPE)
        for level in self.levels[graphs.index(node.graph) :]:
            inside = level.lifted.get(node)
            if inside is None:
                inside = level.lifted[node] = level.graph.placeholder(f"lifted_{node.name}")
                inside.meta.update(node.meta)
            node = inside
        return node

    def add_subgraph(self, module, kind: str = "body"):
        """A get_attr node for a subgraph of the graph being made, ``kind_0`` and so on."""
        table = self.levels[-1].attributes if self.levels else self.attributes
        # A subgraph within a subgraph is traced first, and numbered first.
        count = len(table) if kind == "body" else self.subgraphs_of[kind]
        self.subgraphs_of[kind] += 1
        name = f"{kind}_{count}"
        table[name] = module
        node = self.graph.get_attr(name)
        node.meta["val"] = None
        if self.first_call is None and not self.levels:
            self.first_call = node
        return node

    def detached(self, node):
        """The node of the same value without a history."""
        found = next((n for n in node.users if n.target == "detach" and n.op == "call_method"), None)
        if found is None:
            found = self.root.call_method("detach", (node,))
            found.meta["val"] = found.meta["example_value"] = node.meta["val"].detach()
        return found

    def checked_fake(self, name: str, fn: Callable, args, kwargs=None):
        """``fn`` on fake tensors; what it raises is a graph break that names the operation."""
        try:
            return self.eval_fake(fn, args, kwargs)
        except (Unsupported, UserRaises):
            raise
        except Exception as e:
            data = isinstance(e, DataDependentOutputException)
            data = data or "data" in name_of(type(e)).lower() and "depend" in name_of(type(e)).lower()
            if data and self.env is None and self.data_symbols():
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
        if self.function_modes:
            return self.call_function_mode(tx, op, target, args, kwargs)
        operands = [*args, *kwargs.values()]
        plain = PLAIN_OPERANDS.issuperset(map(type, operands))  # nothing among them that takes over, or that is code
        if not plain:
            if subclasses.interposes(self, args, kwargs):
                return subclasses.call_operation(tx, op, target, args, kwargs, none_ok)
            for a in operands:
                if isinstance(a, UserFunctionVariable) and not isinstance(target, str):
                    guard_function(tx, a.fn, a.source)
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
            value = self.checked_fake(name, target, fargs, fkwargs)
        if asked_offsets:
            guard_asked(self, asked_offsets)
        if value is None and not none_ok and not effects:
            unsupported("graph-result", f"{name} returned None", "Operations in the graph return tensors.")
        if not tensors.is_tensor(value) and (known := self._no_tensor(tx, target, value, pargs, pkwargs)) is not None:
            return known
        if (
            tensors.is_tensor(value)
            and value.requires_grad
            and tensors.is_new_leaf(value)
            and not any(f is value for f in self.input_values())
        ):
            unsupported(
                "leaf",
                f"{name} makes a tensor that requires grad",
                "A leaf of the autograd graph stays one only if it is made outside of the compiled graph.",
            )
        if "writes" in effects and self.flips:
            refuse_shown(self, fx.node.nodes_in(pargs[:1] if target is operator.setitem else (pargs, pkwargs)))
        if "writes" in effects and getattr(self.root, "read_only", False):
            refuse_read_only(name, pargs[:1] if target is operator.setitem else (pargs, pkwargs))
        node = self.create_node(tx, op, target, pargs, pkwargs)
        self.under_handler = self.under_handler or under_handler(tx)
        node.meta["effects"] = frozenset(effects) if effects else NO_EFFECTS
        node.meta["val"] = node.meta["example_value"] = value
        if value is None:
            return ConstantVariable(None)
        if self.env is not None:
            self._bind_new(value, node)
            if isinstance(value, NUMBERS):
                return SymbolicVariable(value)
        return wrap_result(tx, node, value, *args, *kwargs.values())

    def _no_tensor(self, tx, target, value, pargs: tuple, pkwargs: dict) -> Variable | None:
        """The variable of a result that needs no node: numbers, sizes, what the library knows without looking at tensors. None for others."""
        if isinstance(value, NUMBERS) and not self._is_new(value):
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

    def _is_new(self, number) -> bool:
        """Whether a number depends on data that no node was made for."""
        return any(s not in number.env.hints and not self.sizes.has(s) for s in relation_symbols(number.expr))

    def _bind_new(self, value, node) -> None:
        """Symbols of results whose size, or value, depends on data."""
        if isinstance(value, NUMBERS):
            self.sizes.bind_number(value, node)
        elif tensors.is_tensor(value):
            if is_symbolic(value._shape):
                self.sizes.bind_tensor(value, node, unbacked_only=True)
        elif isinstance(value, (tuple, list)):
            for i, v in enumerate(value):
                if tensors.is_tensor(v) and is_symbolic(v._shape):
                    self.sizes.bind_item(v, node, i)

    def call_function_mode(self, tx, op: str, target, args, kwargs) -> Variable:
        """Trace the innermost mode's handler, with that mode off."""
        if op != "call_method" and trace_rules.is_torch_callable(target):
            return self.ask_function_mode(tx, TorchFunctionVariable(target), args, kwargs)
        fn = (lambda o, *a, **k: getattr(o, target)(*a, **k)) if op == "call_method" else target
        asked = subclasses.asked_of_mode(tx, fn, args, kwargs)
        if asked is not None:
            return self.ask_function_mode(tx, *asked)
        modes, self.function_modes = self.function_modes, []  # modes are not asked for everything
        try:
            return self.call_in_graph(tx, op, target, args, kwargs, none_ok=True)
        finally:
            self.function_modes = modes

    def ask_function_mode(self, tx, func: Variable, args, kwargs) -> Variable:
        modes = self.function_modes
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
        """Captured operations neither raise nor call nor warn of anything on overflow and its kin: a plain call does (see floating.py)."""
        states = (floating.is_quiet_on_underflow, floating.is_quiet, floating.is_loud)
        self.guard(NUMPY_ERRORS, "CONTEXT_VAR", next(state for state in states if state(None)))

    def set_grad_mode(self, tx, mode: bool) -> None:
        if tensors.grad_enabled() != mode:
            node = self.create_node(tx, "call_function", tensors.set_grad_enabled, (mode,), {})
            node.meta["val"] = None
            tensors.set_grad_enabled(mode)

    # -- captured code --
    def has_work(self) -> bool:
        """Whether the graph has to run: something is taken from it, it writes, or it may raise an error that depends on data."""
        return any(n.op.startswith("call") and n.target is not tensors.set_grad_enabled for n in self.root.nodes)

    def emit(
        self,
        tx,
        stack: list[Variable],
        local_names: dict[str, Variable],
        tail: Callable[[Codegen], None],
        returning: bool,
    ) -> list:
        """Bytecode that computes the graph, rebuilds ``stack`` and the named locals, replays side effects, and goes on with ``tail``."""
        if self.side_effects.drops_finalizers({id(o): o for o in self.keep}, self.by_id):
            raise SkipFrame("an object that has __del__ may be dropped from what existed before")
        cg = Codegen(self.code, self.globals, self.root)
        cg.made_classes = self.made_classes
        cg.returning = returning
        final_grad = tensors.grad_enabled()
        base_grad = tx.base_grad_mode()  # outside the with blocks that the rebuilt stack enters again
        for counting in (True, False):
            cg.counting = counting
            cg.start()
            if base_grad != self.initial_grad:
                cg.call_function(tensors.set_grad_enabled, lambda: cg.load_const(base_grad), 1)
                cg.emit("POP_TOP")
            cg.stack(stack)
            cg.all(local_names.values())

            def flush(cell: CellVariable) -> bool:
                return cell.root_name is not None and (not returning or cell.escapes or cell.root_name in cg.free)

            write = self.side_effects.codegen(cg, flush)
        if not returning and tx.rebuilt_grad_mode() != final_grad:
            cg.call_function(tensors.set_grad_enabled, lambda: cg.load_const(final_grad), 1)
            cg.emit("POP_TOP")
        write()
        for place in cg.behind_writes:
            place()
        for name in reversed(list(local_names)):
            cg.store_local(name)
        tail(cg)
        body = cg.code
        if cg.wants_outer:
            cg.start()
            cg.call_function(sys.exc_info, None, 0)
            cg.load_const(1)
            cg.emit("BINARY_SUBSCR")
            cg.emit("STORE_FAST", f"{TEMP}outer")
            body = cg.code + body
        outputs = list(cg.outputs)
        draws = self._python_draws(cg)
        if not self.has_work():
            if not outputs:
                self._drop_calls()
                return draws + body
        for block in reversed(autocast.blocks(self)):
            block.end(self.root)
        if final_grad != self.initial_grad:
            self.root.call_function(tensors.set_grad_enabled, (self.initial_grad,)).meta["val"] = None
        fn = self.compile(tx, outputs)
        cg.start()
        cg.counting = False
        pushed = len(self.region.pushed()) if self.region is not None else 0
        cg.call_function(fn, lambda: self._push_inputs(cg), len(self.inputs) + pushed)
        cg.emit("STORE_FAST", f"{TEMP}graph_out")
        return draws + cg.code + body

    def _python_draws(self, cg) -> list:
        cg.start()
        cg.counting = False
        for source, call, local in self.python_draws:
            cg.call_function(call, lambda source=source: cg.load_source(source), 1)
            cg.emit("STORE_FAST", local)
        return cg.code

    def _drop_calls(self) -> None:
        for n in reversed(list(self.root.nodes)):
            if n.op != "placeholder" and not n.users:
                self.root.erase_node(n)
        self.first_call = None

    def _push_inputs(self, cg) -> None:
        with cg.sharing([i.source for i in self.inputs], self.guards.node):
            for i in self.inputs:
                if i.ndarray:
                    convert = numpy_bridge.tensor_of if i.carried else _C.from_array
                    cg.call_function(convert, lambda i=i: cg.load_source(i.source), 1)
                else:
                    cg.load_source(i.source)
            for v in self.region.pushed() if self.region is not None else ():
                cg.load_source(v.source)

    def compile(self, tx, outputs: list):
        """Hand the graph to the backend."""
        region = self.region = region_of(tx, outputs)
        if region is not None:
            region.prepare(self.root)
            outputs = region.results()
        elif getattr(self.root, "holds_arrays", False):
            outputs = outputs + floating.unused(self.root.nodes, outputs)
        out = self.root.output(tuple(outputs))
        out.meta["val"] = tuple(n.meta["val"] for n in outputs)
        keep = []
        for i in self.inputs:
            if i.node.users or (region is not None and region.needed(i.node)):
                keep.append(i)
            else:
                self.root.erase_node(i.node)
        self.inputs = keep
        if any(writes(n) for n in self.root.nodes if n.op.startswith("call")):
            refuse_shared_memory(self, [i for i in keep if not i.number])
        gm = fx.GraphModule(self.attributes, self.root)
        gm.meta["arrays"] = getattr(self.root, "holds_arrays", False)
        if self.env is not None and all(i.number for i in keep):
            gm.meta["fake_mode"] = self.fake_mode  # no input leads to it
        weakref.finalize(gm, release, self.graph).atexit = False
        self.graph_module = gm
        examples = [i.example if self.env is None else i.node.meta["val"] for i in keep]
        if region is not None:
            examples = [x.detach() if tensors.is_tensor(x) else x for x in examples]
        grad = tensors.grad_enabled()
        tensors.set_grad_enabled(self.initial_grad and region is None)
        if (self.has_data_numbers or self.draws or self.python_draws) and self.env is not None:
            self.env.allow_data_dependent_numbers = True  # what a generator gives may be a Python number
        start = time.perf_counter()
        try:
            fn = self.modes.backend_call(self.compiler, gm, examples)
            if region is not None and callable(fn):
                backward = self.modes.backend_call(self.compiler, region.graph, region.examples)
                fn = Runner(region, fn, backward, keep)
        except (Unsupported, BackendCompilerFailed):
            raise
        except Exception as e:
            raise BackendCompilerFailed(self.compiler.backend, e).with_traceback(e.__traceback__) from e
        finally:
            self.compile_seconds = time.perf_counter() - start
            tensors.set_grad_enabled(grad)
        if callable(fn) and any(n.target is getattr(autocast.library(), "_enter_autocast", n) for n in self.root.nodes):
            fn = autocast.restoring(fn)
        interpreted = fn is gm or getattr(fn, "__self__", None) is gm
        if interpreted and any(n.target is tensors.set_grad_enabled for n in self.root.nodes):
            fn = tensors.restoring_grad_mode(fn)
        if self.has_subclasses and callable(fn):
            fn = subclasses.without_overrides(fn)
        if not callable(fn):
            raise BackendCompilerFailed(
                self.compiler.backend, TypeError(f"a backend must return a callable, got {name_of(type(fn))}")
            )
        if self.draws:
            fn = journaled(fn)
        graph = _frame.DisabledFunction(fn)
        written = () if getattr(fn, "keeps_inputs_at_errors", False) else written_inputs(keep)
        repeatable = self.under_handler or (not self.modes.dispatch and all(map(may_run_again, self.root.nodes)))
        again = (gm.meta["arrays"] or repeatable) and not has_effects(self)
        if again and any(map(draws, self.root.nodes)):
            again = (
                self.under_handler or self.has_data_numbers
            )  # setting the generator back costs a little at each call
            fn = drawing_again(fn) if again else fn
            graph = _frame.DisabledFunction(fn)
        if again:
            if not written:
                # Nothing has happened at an error: the frame is run plainly, which raises it at the program's own line, where a handler may wait
                # for it, as NumPy does for arrays.
                graph.again = numpy_bridge.is_ours if gm.meta["arrays"] else numpy_bridge.is_of_data
            given = [
                i.example for i in keep if not i.number
            ]  # plain NumPy takes no tensor of autograd's or of a transform
            if (
                gm.meta["arrays"]
                and not any(t.requires_grad or t._keys for t in given)
                and all(keep[k].ndarray for k in written)
            ):
                graph.watch, graph.flagged = floating.watched(self.root.nodes)
                graph.written = tuple(written)
                graph.keeps = floating.kept_at_each_call(self.root.nodes, [keep[k].node.meta["val"] for k in written])
        return graph


def release(graph) -> None:
    """The module of a captured graph is gone: if nobody else has the graph, what its nodes hold is freed without the collector."""
    # References that a graph has by itself: from each node and from its root; from the arguments of this call, and of getrefcount.
    if sys.getrefcount(graph) <= len(graph.nodes) + 1 + 4:
        graph.release()
