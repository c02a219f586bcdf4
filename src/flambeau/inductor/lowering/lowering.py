"""From an ATen-level fx graph to the loop IR: one rule per operator kind, none per operator.

While lowering, a tensor is a :class:`LazyTensor`: its shape and a function from coordinates to the Value of that element. Pointwise operators,
factories and views only compose such functions. A tensor becomes a buffer when something needs memory (a matrix product, an eager kernel, an
output), when it is reduced or scattered, or when it is costly and read more than once; fusion may later remove the buffer again.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import operator
from collections import Counter
from typing import Any

import numpy as np

from ...base.expr import Expr, Var, linear, of, symbols, variable
from ...core import native_kernels
from ...core.handler import Handler
from ...core.higher_order import HigherOrderOperator
from ...core.messages import About, Message
from ...core.viewmap import Strided
from ...fx import GraphModule
from ...fx.targets import base_of, tags_of
from ..ir.nodes import Buffer, BufferKind, ExternCall, Pointwise, Region, dense_strides, is_dense
from ..ir.notes import Origin, origin
from ..ir.sizes import size, sizes, symbolic
from ..ir.values import DEEPEST, Typed, Values, is_complex, loaded_atoms, part_of, short, to_numpy, walk, weight
from ..passes.decompose import OpCall
from . import boxes, complex_tensors, conditions, indexing, kinds, layouts, reductions
from .complex_tensors import refuse_complex
from .complex_values import ComplexTyped
from .contractions import packed_product
from .eager_call import NotLowered, same_layout
from .extern import call_eagerly
from .interface import constant, finish, placeholder
from .lazy import LazyTensor, tensors_in
from .native import data_sizes, launch, linalg, random, recurrence, select, special

__all__ = ["Lowering"]

# Operators that a value names as its origins.
REPEATED = 16  # times that an element is read for each element of a result, from which on it is small beside it
_ORIGINS = 128


class Lowering(Handler):
    """Lowers one graph. Results: ``nodes``, ``buffers``, ``outputs`` and ``messages`` (what errors of "checked" tags are about)."""

    def __init__(self, compile_body=None, on_device=None, overwritten=(), checks_first=False):
        """``compile_body``: what compiles a subgraph (the body of a higher-order operator). ``on_device``: the program's tensors lie on a device of
        threads, and this makes loops of what would be a launch of a native kernel. ``overwritten``: positions of inputs whose new contents are
        wanted in their memory. ``checks_first``: they are written when nothing can fail any more."""
        self.compile_body, self.on_device = compile_body, on_device
        self.overwritten, self.checks_first = frozenset(overwritten), checks_first
        self.inside: dict[str, Any] = {}  # buffer of integers from 0 on -> what all are below
        self.checked: dict[tuple, LazyTensor] = {}  # (indices in memory, what they are below) -> those of ``inside``
        self.parts_written: list = []  # indices at which parts of new contents of inputs are stored
        self.copies: set[str] = set()  # buffers that begin as copies of what they may lie over
        self.draws = 0  # of a device, so far
        self.values = Values()
        self.nodes: list = []
        self.buffers: dict[str, Buffer] = {}
        self.outputs: list = []
        self.messages: list[Message] = []
        self.inputs: list[str | None] = []
        self.numbers: dict[int, Any] = {}  # input -> the integer it is, where it is no tensor
        self.late: dict = {}  # symbol that depends on data -> buffer of the call that tells it
        self.given: set = set()  # symbols that shapes of inputs tell
        self.example = None  # some symbolic integer of the graph
        self.fallbacks: list[str] = []
        self.bodies: dict[GraphModule, Any] = {}
        self.free: frozenset[int] = frozenset()
        self.by_strides = False  # some call sees in which order a result lies in memory
        self.orders: dict[int, tuple[int, ...]] = {}  # of free outputs that lie otherwise than their shape rule says
        self.here: tuple[
            Origin, ...
        ] = ()  # the operator at hand, and those that its arguments are still to be computed by
        self.origins: dict[str, tuple[Origin, ...]] = {}  # buffer -> the operators that its elements are computed by
        self.lines: dict = {}  # of the user's, by their places
        self._ids = itertools.count()
        self._names = itertools.count()

    # --- buffers and loops --------------------------------------------------------------------------------------------
    def variables(self, extents) -> tuple[Var, ...]:
        return tuple(Var(next(self._ids), n) for n in extents)

    def new_buffer(self, shape, strides, t, kind=BufferKind.TEMP, np_dtype=None, constant=None) -> Buffer:
        name = f"buf{next(self._names)}" if kind != BufferKind.INPUT else f"arg{len(self.inputs)}"
        width = 1
        if is_complex(t):
            t, np_dtype, width = part_of(t), np_dtype or np.dtype(to_numpy(t)), 2
        b = self.buffers[name] = Buffer(name, tuple(shape), tuple(strides), t, kind, np_dtype, constant, width)
        self.origins[name] = self.here
        return b

    def lazy(self, *args, **kwargs) -> LazyTensor:
        made = LazyTensor(*args, **kwargs, example=self.example)
        made.origins = self.here
        return made

    def add(self, node) -> None:
        if self.late:
            node.after = self.needs(node)
        self.nodes.append(node)

    def needs(self, node) -> frozenset:
        """Buffers whose making tells a size that the node uses."""
        if isinstance(node, ExternCall):
            data = node.data
            parts = [*data.numbers] if node.what != "gemm" else [data.m, data.n, data.k, data.lda, data.ldb, data.ldc]
            parts += [e for r in node.inputs for e in (*r.shape, *r.strides, r.offset)]
        else:
            values = walk(node.value, *loaded_atoms(node.index))
            parts = [a for v in values for a in v.args if isinstance(a, Expr)] + [node.index]
            parts += [v.extent for v in (*node.loops, *getattr(node, "reduced", ()))]
        return frozenset(self.late[s] for e in parts for s in symbols(e) if s in self.late)

    def in_memory(self, region: Region, dtype, strides=None, device=None) -> LazyTensor:
        """The LazyTensor of a region of a buffer."""
        buffer = self.buffers[region.buffer]

        def at(coords):
            place = linear(coords, region.strides, region.offset)
            if buffer.width == 1:
                return self.values.load(region.buffer, place, buffer.dtype)
            pair = tuple(self.values.load(region.buffer, place * 2 + k, buffer.dtype) for k in (0, 1))
            return self.values.make("complex", pair, short(dtype))

        return self.lazy(region.shape, dtype, at, region, strides or region.strides, device)

    def realize(self, x: LazyTensor, strides=None) -> Region:
        """The tensor in memory; computed into a new buffer unless it is there already."""
        if x.region is None and x.view is not None and self.elements(x.view[0]) <= 2 * self.elements(x):
            self.realize_base(x)
        if x.region is not None:
            return x.region
        strides = (
            strides if strides is not None and is_dense(x.sizes, strides, self.values.hint) else dense_strides(x.sizes)
        )
        t = short(x.dtype)
        buffer = self.new_buffer(x.sizes, strides, t)
        self.origins[buffer.name] = x.origins or self.here
        self.fill(buffer, x)
        region = Region(buffer.name, x.sizes, buffer.strides)
        x.at, x.region = self.in_memory(region, x.dtype).at, region
        return region

    def elements(self, x: LazyTensor) -> int:
        """How many elements, or an example of it."""
        return self.values.hint(math.prod(x.sizes))

    def realize_base(self, x: LazyTensor) -> None:
        """Put a view where the tensor it is a view of lies, as eager does: an expanded or stepped result keeps its strides."""
        if x.region is not None or x.view is None:
            return
        base, map = x.view
        self.realize_base(base)
        region = self.realize(base, base.strides)
        try:
            r = map(self.strided(region))
        except RuntimeError:
            return
        x.region = Region(region.buffer, sizes(r.shape), sizes(r.strides), size(r.offset))
        x.at = self.in_memory(x.region, x.dtype).at

    def strided(self, region: Region) -> Strided:
        """A region for view maps to work on."""
        shape, strides = ([symbolic(n, self.example) for n in part] for part in (region.shape, region.strides))
        return Strided(tuple(shape), tuple(strides), symbolic(region.offset, self.example))

    def fill(self, buffer: Buffer, x: LazyTensor) -> None:
        """A loop nest that stores x, its loops in the order of the memory. Of what is undefined only the first element, since somebody has to
        write a buffer before it is read."""
        if 0 in x.sizes:
            return
        if x.undefined and buffer.width == 1:
            self.store(buffer, (), self.values.cast(x.at((0,) * len(x.sizes)), buffer.dtype), 0)
            return
        loops = self.variables(x.sizes)
        coords = tuple(variable(v) for v in loops)
        value = self.values.cast(x.at(coords), short(x.dtype) if buffer.width == 2 else buffer.dtype)
        order = sorted(range(len(loops)), key=lambda d: (-self.values.hint(buffer.strides[d]), d))
        self.store(buffer, tuple(loops[d] for d in order), value, linear(coords, buffer.strides))

    def contiguous(self, x: LazyTensor) -> Region:
        """In memory in C order."""
        region = self.realize(x)
        if same_layout(region.shape, region.strides, dense_strides(region.shape)):
            return region
        return self.realize(self.lazy(x.sizes, x.dtype, x.at))

    # --- the graph ----------------------------------------------------------------------------------------------------
    def run(self, program) -> None:
        """``program``: a decomposed graph, see decompose.py."""
        env: dict[Any, Any] = {}
        self.free = frozenset(program.free)
        self.by_strides = any("reads_memory" in tags_of(call.target) for call in program.calls)
        shared = self.shared_bases(program)
        for call in program.calls:
            self.here = ()
            if call.what == "input":
                env[call] = placeholder(self, call.val, program.orders.get(len(self.inputs)))
            elif call.what == "constant":
                env[call] = constant(self, call.val)
            else:
                given = env.__getitem__
                if getattr(call.target, "overrides", {}).get("exact_strides"):
                    given = lambda c: layouts.exact(self, env[c], c.val)  # noqa: E731
                args, kwargs = _map((call.args, call.kwargs), given)
                tensors = tensors_in((args, kwargs))
                self.here = self.origins_of(call, tensors)
                result = self.call(call, args, kwargs)
                ruled = call in shared
                env[call] = layouts.ruled(self, result, call.val) if ruled else self.settle(result, call, tensors)
        results = [_map(x, env.__getitem__) for x in program.outputs]
        finish(self, results, [x.val if isinstance(x, OpCall) else None for x in program.outputs])

    def shared_bases(self, program) -> set[OpCall]:
        """What several outputs are views of, or one with gaps: its memory has to lie as each of them is to."""
        outputs = {x for k, x in enumerate(program.outputs) if k not in self.free and isinstance(x, OpCall)}
        bases = Counter(map(base_of, outputs))
        gaps = {base_of(x) for x in outputs if hasattr(x.val, "stride") and self.has_gaps(x.val)}
        return {call for call, n in bases.items() if n > 1 or call in gaps}

    def has_gaps(self, val) -> bool:
        return not is_dense(sizes(val.shape), sizes(val.stride()), self.values.hint)

    def origins_of(self, call, tensors: list[LazyTensor]) -> tuple[Origin, ...]:
        """The operator of a call, and those by which its arguments are still to be computed."""
        own = () if call.node is None else (origin(call.node, self.lines),)
        pending = (o for x in tensors if x.region is None for o in x.origins)
        # The last ones: of a chain of thousands each element would name all.
        return tuple(dict.fromkeys((*pending, *own)))[-_ORIGINS:]

    def meet(self, n) -> None:
        """Learn from a symbolic integer what its symbols are like."""
        if hasattr(n, "__sym__"):
            if self.example is None:
                self.example = n
            # Its own, and those that it is known to be made of: sizes are written in these.
            for s in symbols(n.expr) | symbols(size(n)) if isinstance(n.expr, Expr) else ():
                hint = n.env.hint_overrides.get(s, n.env.hint(of(s)))
                if hint is not None:
                    self.values.hints[s] = hint

    def backed_hint(self, e):
        """An example of a size; None when it is not known before the graph runs."""
        return self.values.hint(e) if all(s in self.values.hints for s in symbols(e)) else None

    def settle(self, result, call, tensors: list[LazyTensor]):
        """Give a node's result memory when several readers would each compute something costly, or when it is a chain of too many nodes: each
        is one more call of Python's within another when an element is written down."""
        if self.by_strides:
            return layouts.ruled(self, result, call.val)
        if isinstance(result, LazyTensor) and result.region is None:
            result.depth = 1 + max((x.depth for x in tensors if x.region is None), default=0)
            if result.depth > DEEPEST or call.uses > 1 and self.costly(result):
                self.realize(result, layouts.followed(self, result, result.strides))
        return result

    def costly(self, x: LazyTensor) -> bool:
        if 0 in x.sizes:
            return False
        loops = self.variables(x.sizes)
        probe = walk(x.at(tuple(map(variable, loops))))
        if loops:
            # What is the same along a row is computed once for it.
            probe = [v for v in probe if loops[-1] in v.variables()]
        return weight(probe) > 6 or sum(v.op == "load" and self.large(v.args[0], x) for v in probe) > 2

    def large(self, name: str, x: LazyTensor) -> bool:
        """Whether a buffer takes memory like ``x``; what is repeated (a number a row) is in the cache when it is read again."""
        count, whole = self.backed_hint(self.buffers[name].size), self.backed_hint(math.prod(x.sizes))
        return count is None or whole is None or count > whole // REPEATED

    rules = (
        *native_kernels.SUBJECTS, boxes, complex_tensors, conditions, indexing, kinds, reductions,
        data_sizes, launch, linalg, random, recurrence, select, special,
    )  # fmt: skip

    def message(self, text: str, about: About = About.INDEX) -> int:
        """The number by which a kernel names a message when it fails."""
        self.messages.append(Message(about, text))
        return len(self.messages) - 1

    def packed_product(self, *args) -> LazyTensor:
        return packed_product(self, *args)

    def handler(self, t: str) -> Typed:
        """What scalar bodies run on to compute in type ``t``."""
        return ComplexTyped(self.values, t) if is_complex(t) else Typed(self.values, t)

    def store(self, buffer: Buffer, loops, value, where, combine=None) -> None:
        """A loop nest that stores ``value``, a complex one in two halves."""
        if not is_complex(value.dtype):
            self.add(Pointwise(buffer.name, loops, value, where, combine))
            return
        if combine not in (None, "part"):
            raise NotImplementedError("complex numbers in a scatter")
        for k, part in enumerate(value.args):
            self.add(Pointwise(buffer.name, loops, part, where * 2 + k, "half"))

    # --- calls --------------------------------------------------------------------------------------------------------
    def call(self, call, args, kwargs):
        if call.target is operator.getitem:
            return args[0][args[1]]
        if isinstance(call.target, HigherOrderOperator):
            return call_eagerly(self, call.target, (args, tuple(kwargs.items())), call.val)
        if not hasattr(call.target, "definition"):
            if tensors_in((args, kwargs)):
                raise NotImplementedError(f"inductor: {call.target} is not an ATen operator")
            return call.target(*args, **kwargs)
        return self.operator(call.target, args, kwargs, call.val)

    def operator(self, op, args, kwargs, val):
        full = op.full(*args, **kwargs)
        rule = kinds.KINDS.get(op.definition.kind)
        try:
            if rule is None and "lower" not in op.overrides:
                if "prepared" in op.overrides or "has_side_effects" in op.tags or op.is_view:
                    # A native call of its own, Python's, or a view: no fallback.
                    return call_eagerly(self, op, full, val)
                raise NotLowered(f"kind {op.definition.kind}")
            tensors = tensors_in(full)
            for x in tensors:
                short(x.dtype)
            for v in val if isinstance(val, (tuple, list)) else (val,):
                if hasattr(v, "stride"):
                    short(v.dtype)
            special = op.overrides.get("lower")
            if "has_side_effects" in op.tags or hasattr(val, "__sym__"):
                with contextlib.suppress(NotImplementedError):
                    if special is not None:
                        return special(self, val, *full)
                return call_eagerly(
                    self, op, full, val
                )  # a check, or a number out of a tensor: Python's, and no fallback
            refuse_complex(op, tensors, val)
            if special is not None:
                return special(self, val, *full)
            return rule(self, op, full, val)
        except (NotLowered, NotImplementedError) as reason:
            self.fallbacks.append(f"{op.name()}: {reason}")
            return call_eagerly(self, op, full, val)


def _map(tree, fn):
    if isinstance(tree, (tuple, list)):
        return type(tree)(_map(x, fn) for x in tree) if type(tree) in (tuple, list) else [_map(x, fn) for x in tree]
    if isinstance(tree, dict):
        return {k: _map(v, fn) for k, v in tree.items()}
    if isinstance(tree, slice):
        return slice(*(_map(x, fn) for x in (tree.start, tree.stop, tree.step)))
    return fn(tree) if isinstance(tree, OpCall) else tree
