"""From an ATen-level fx graph to the loop IR: one rule per operator kind, none per operator.

While lowering, a tensor is a :class:`Lazy`: its shape and a function from coordinates to the Value of that element. Pointwise operators,
factories and views only compose such functions. A tensor becomes a buffer when something needs memory (a matrix product, an eager kernel, an
output), when it is reduced or scattered, or when it is costly and read more than once; fusion may later remove the buffer again.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import operator
from typing import Any

import numpy as np

from ...base.dtypes import as_element
from ...base.enums import Out
from ...base.expr import Expr, Symbol, Var, const, floordiv, linear, mod, of, symbols, terms, variable
from ...base.relations import symbols as symbols_of
from ...base.shapes import normalize_dims
from ...core import native_kernels
from ...core.body import TABLE, Input, topological, trace
from ...core.handler import Handler
from ...core.higher_order import HigherOrderOperator
from ...core.messages import About, Message
from ...core.promotion import compute_dtype, operand_indices
from ...core.reductions import arguments as reduction_arguments
from ...core.viewmap import Recorder, Strided, source_index
from ...fx import GraphModule
from ..assembly.dtypes import compute_type
from ..ir.nodes import Buffer, BufferKind, ExternCall, Pointwise, Reduction, Region, dense_strides, is_dense
from ..ir.sizes import IndexOps, size, sizes, symbolic
from ..ir.values import DEEPEST, Value, Values, is_complex, loaded_atoms, part_of, short, to_numpy, walk, weight
from ..passes.decompose import Call
from ..settings import config
from . import boxes, conditions, layouts
from .complex_tensors import ComplexLowering
from .complex_values import OPERATIONS as PAIRED
from .contractions import lower_contraction, packed_product
from .eager_call import EagerCall, Number, call_rule, call_schema, replace, same_layout
from .lazy import Lazy, broadcast_coords
from .native import data_sizes as native_sizes
from .native import launch as native
from .native import linalg as native_linalg
from .native import random as native_random
from .native import recurrence as native_recurrence
from .native import select as native_select
from .native import special as native_special

__all__ = ["Lazy", "Lowering", "Unsupported"]


class Unsupported(Exception):
    """A node that has no native lowering here; it is run by its eager kernel. Carries the reason."""


def _may_divide_by_zero(node) -> bool:
    """Whether a scalar operation raises for a divisor that isn't known."""
    if node.op == "input" or not getattr(TABLE[node.op].numpy, "refuses_zero", False):
        return False
    return not (isinstance(node.args[1], (int, float)) and node.args[1])


def _root(x):
    """The tensor that ``x`` is a view of, or itself."""
    return x if x.view is None else _root(x.view[0])


class Lowering(ComplexLowering, Handler):
    """Lowers one graph. Results: ``nodes``, ``buffers``, ``outputs`` and ``messages`` (what errors of "checked" tags are about)."""

    compile_body: Any  # compiles a subgraph; set where graphs are compiled

    def __init__(self):
        self.values = Values()
        self.nodes: list = []
        self.buffers: dict[str, Buffer] = {}
        self.outputs: list = []
        self.messages: list[Message] = []
        self.inputs: list[str | None] = []
        self.numbers: dict[int, Any] = {}  # input -> the integer it is, where it is no tensor
        self.late: dict = {}  # symbol that depends on data -> buffer of the call that tells it
        self.example = None  # some symbolic integer of the graph
        self.fallbacks: list[str] = []
        self.bodies: dict[GraphModule, Any] = {}
        self.free: frozenset[int] = frozenset()
        self.by_strides = False  # some call sees in which order a result lies in memory
        self.orders: dict[int, tuple[int, ...]] = {}  # of free outputs that lie otherwise than their shape rule says
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
        return b

    def lazy(self, *args, **kwargs) -> Lazy:
        return Lazy(*args, **kwargs, example=self.example)

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

    def in_memory(self, region: Region, dtype, strides=None, device=None) -> Lazy:
        """The Lazy of a region of a buffer."""
        buffer = self.buffers[region.buffer]

        def at(coords):
            place = linear(coords, region.strides, region.offset)
            if buffer.width == 1:
                return self.values.load(region.buffer, place, buffer.dtype)
            pair = tuple(self.values.load(region.buffer, place * 2 + k, buffer.dtype) for k in (0, 1))
            return self.values.make("complex", pair, short(dtype))

        return self.lazy(region.shape, dtype, at, region, strides or region.strides, device)

    def realize(self, x: Lazy, strides=None) -> Region:
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
        self.fill(buffer, x)
        region = Region(buffer.name, x.sizes, buffer.strides)
        x.at, x.region = self.in_memory(region, x.dtype).at, region
        return region

    def elements(self, x: Lazy) -> int:
        """How many elements, or an example of it."""
        return self.values.hint(math.prod(x.sizes))

    def realize_base(self, x: Lazy) -> None:
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

    def fill(self, buffer: Buffer, x: Lazy) -> None:
        """A loop nest that stores x, its loops in the order of the memory."""
        if 0 in x.sizes:
            return
        loops = self.variables(x.sizes)
        coords = tuple(variable(v) for v in loops)
        value = self.values.cast(x.at(coords), short(x.dtype) if buffer.width == 2 else buffer.dtype)
        order = sorted(range(len(loops)), key=lambda d: (-self.values.hint(buffer.strides[d]), d))
        self.store(buffer, tuple(loops[d] for d in order), value, linear(coords, buffer.strides))

    def contiguous(self, x: Lazy) -> Region:
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
        self.by_strides = any("reads_memory" in getattr(call.target, "tags", ()) for call in program.calls)
        for call in program.calls:
            if call.what == "input":
                env[call] = self.placeholder(call.val, program.orders.get(len(self.inputs)))
            elif call.what == "constant":
                env[call] = self.constant(call.val)
            else:
                args, kwargs = _map((call.args, call.kwargs), env.__getitem__)
                env[call] = self.settle(self.call(call, args, kwargs), call, (args, kwargs))
        results = [_map(x, env.__getitem__) for x in program.outputs]
        self.finish(results, [x.val if isinstance(x, Call) else None for x in program.outputs])

    def placeholder(self, val, order=None):
        if not hasattr(val, "stride"):
            self.inputs.append(None)
            if hasattr(val, "__sym__"):
                return self.number(val)
            return int(val) if hasattr(val, "__index__") and not isinstance(val, (bool, float)) else val
        for n in (*val.shape, *val.stride()):
            self.meet(n)
        shape, strides = sizes(val.shape), sizes(val.stride())
        if order is not None:
            strides = layouts.strides_in(order, shape)
        try:
            buffer = self.new_buffer(shape, strides, short(val.dtype), BufferKind.INPUT, val.dtype.np)
        except NotImplementedError:
            buffer = self.new_buffer(shape, strides, "opaque", BufferKind.INPUT, val.dtype.np)
        self.inputs.append(buffer.name)
        return self.in_memory(Region(buffer.name, shape, strides), val.dtype, strides, val.device)

    def number(self, val):
        """An input that is a symbolic number. A floating-point one is read from memory, like a tensor of one element."""
        self.meet(val)
        k, e = len(self.inputs) - 1, val.expr
        if isinstance(e, Expr):
            self.numbers[k] = e
        elif not isinstance(e, (bool, int, float)):
            self.inputs[k] = self.values.scalars[e] = self._scalar(k)
        return val

    def _scalar(self, k: int) -> str:
        name = f"arg{k}"
        self.buffers[name] = Buffer(name, (), (), "f64", BufferKind.INPUT)
        return name

    def meet(self, n) -> None:
        """Learn from a symbolic integer what its symbols are like."""
        if hasattr(n, "__sym__"):
            if self.example is None:
                self.example = n
            for s in symbols(n.expr) if isinstance(n.expr, Expr) else ():
                hint = n.env.hint_overrides.get(s, n.env.hint(of(s)))
                if hint is not None:
                    self.values.hints[s] = hint

    def backed_hint(self, e):
        """An example of a size; None when it is not known before the graph runs."""
        return self.values.hint(e) if all(s in self.values.hints for s in symbols(e)) else None

    def constant(self, tensor):
        if not hasattr(tensor, "stride"):
            return tensor
        array = tensor.detach()._array
        strides = tuple(tensor.stride())
        buffer = self.new_buffer(
            tuple(tensor.shape), strides, short(tensor.dtype), BufferKind.CONSTANT, tensor.dtype.np, array
        )
        return self.in_memory(Region(buffer.name, tuple(tensor.shape), strides), tensor.dtype, strides, tensor.device)

    def settle(self, result, call, given):
        """Give a node's result memory when several readers would each compute something costly, or when it is a chain of too many nodes: each
        is one more call of Python's within another when an element is written down."""
        if self.by_strides:
            return layouts.ruled(self, result, call.val)
        if isinstance(result, Lazy) and result.region is None:
            pending = (x.depth for x in _flatten(given) if isinstance(x, Lazy) and x.region is None)
            result.depth = 1 + max(pending, default=0)
            if result.depth > DEEPEST or call.uses > 1 and self.costly(result):
                self.realize(result, layouts.followed(self, result, result.strides))
        return result

    def costly(self, x: Lazy) -> bool:
        if 0 in x.sizes:
            return False
        probe = walk(x.at(tuple(variable(v) for v in self.variables(x.sizes))))
        return weight(probe) > 6 or sum(v.op == "load" for v in probe) > 2

    def finish(self, results, vals) -> None:
        roots = [id(_root(x)) for k, x in enumerate(results) if isinstance(x, Lazy) and k not in self.free]
        for k, (x, val) in enumerate(zip(results, vals)):
            if not isinstance(x, Lazy):
                self.outputs.append(self.plain_output(x))
                continue
            strides = sizes(val.stride()) if hasattr(val, "stride") else x.strides
            if k in self.free:
                strides = layouts.chosen(self, k, x, strides)
            dense = strides is None or is_dense(x.sizes, strides, self.values.hint)
            if not dense:
                x = self.as_view(x, strides)
            if not dense or roots.count(id(_root(x))) > 1:  # results that share memory in eager share it here
                self.realize_base(x)
            region = self.realize(x, strides)
            if dense and strides is not None and not same_layout(x.sizes, region.strides, strides):
                region = self.realize(self.lazy(x.sizes, x.dtype, x.at), strides)
            buffer = self.buffers[region.buffer]
            if buffer.kind == BufferKind.TEMP:
                buffer.kind = BufferKind.OUTPUT
            self.outputs.append((Out.SLOT, region, x.dtype))

    def as_view(self, x: Lazy, strides) -> Lazy:
        """``x`` without the dense memory that an earlier reader gave it, where it is a view of other strides."""
        if x.region is None or x.view is None or same_layout(x.sizes, x.region.strides, strides):
            return x
        again = self.lazy(x.sizes, x.dtype, x.at, strides=x.strides, device=x.device)
        again.view = x.view
        return again

    def plain_output(self, x):
        """What the caller gets for a result that is no tensor."""
        if not hasattr(x, "__sym__"):
            return Out.CONSTANT, x
        if isinstance(x.expr, Expr):
            e = size(x)
            return (Out.NUMBER, e) if type(e) is Expr else (Out.CONSTANT, e)
        given = self.values.scalars.get(x.expr)
        if given is not None and given in self.inputs:
            return Out.INPUT, self.inputs.index(given)
        floats, regions = self.floats([x])
        buffer = self.new_buffer((), (), "f64", BufferKind.VALUE)
        self.add(ExternCall("call", "number", regions, [buffer.name], Number(x, floats), effect=True))
        return Out.VALUE, buffer.name

    def floats(self, args):
        """(floating-point symbols in the numbers among ``args``, the memory of each)."""
        found: dict = {}
        for x in _flatten(args):
            if hasattr(x, "__sym__") and not isinstance(x.expr, Expr):
                for s in symbols_of(x.expr):
                    if not isinstance(s, Symbol):
                        if s not in self.values.scalars:
                            raise NotImplementedError(f"inductor: {s!r} is not a number of the inputs")
                        found[s] = Region(self.values.scalars[s], (), ())
        return list(found), list(found.values())

    # --- rules --------------------------------------------------------------------------------------------------------
    rules = (
        native_kernels, native, boxes, conditions, native_linalg, native_random, native_recurrence, native_select, native_sizes, native_special,
    )  # fmt: skip

    def message(self, text: str, about: About = About.INDEX) -> int:
        """The number by which a kernel names a message when it fails."""
        self.messages.append(Message(about, text))
        return len(self.messages) - 1

    def packed_product(self, *args) -> Lazy:
        return packed_product(self, *args)

    def _random(self, op, full, val):
        return native_random.random(self, op, full, val)

    # --- calls --------------------------------------------------------------------------------------------------------
    def call(self, call, args, kwargs):
        if call.target is operator.getitem:
            return args[0][args[1]]
        if isinstance(call.target, HigherOrderOperator):
            return self._extern(call.target, (args, tuple(kwargs.items())), call.val)
        if not hasattr(call.target, "definition"):
            if any(isinstance(a, Lazy) for a in _flatten((args, kwargs))):
                raise NotImplementedError(f"inductor: {call.target} is not an ATen operator")
            return call.target(*args, **kwargs)
        return self.operator(call.target, args, kwargs, call.val)

    def operator(self, op, args, kwargs, val):
        full = op.full(*args, **kwargs)
        rule = getattr(self, f"_{op.definition.kind}", None)
        try:
            if rule is None and "lower" not in op.overrides:
                raise Unsupported(f"kind {op.definition.kind}")
            for x in _flatten(full):
                if isinstance(x, Lazy):
                    short(x.dtype)
            for v in val if isinstance(val, (tuple, list)) else (val,):
                if hasattr(v, "stride"):
                    short(v.dtype)
            special = op.overrides.get("lower")
            if "has_side_effects" in op.tags or hasattr(val, "__sym__"):
                with contextlib.suppress(NotImplementedError):
                    if special is not None:
                        return special(self, val, *full)
                return self._extern(op, full, val)  # a check, or a number out of a tensor: Python's, and no fallback
            self.refuse_complex(op, full, val)
            if special is not None:
                return special(self, val, *full)
            return rule(op, full, val)
        except (Unsupported, NotImplementedError) as reason:
            self.fallbacks.append(f"{op.name()}: {reason}")
            return self._extern(op, full, val)

    def _pointwise(self, op, full, val):
        d = op.definition
        known = [isinstance(x, Lazy) or hasattr(x, "__sym__") for x in full]
        try:
            root, _ = trace(d.body, [Input(a.name) if k else x for a, x, k in zip(op._schema.arguments, full, known)])
        except TypeError as e:
            raise Unsupported(f"it looks at a symbolic number ({e})") from e
        taking = set(operand_indices(op))
        compute = compute_dtype(op, full)
        paired = (
            compute.is_complex or val.dtype.is_complex or any(isinstance(x, Lazy) and x.dtype.is_complex for x in full)
        )
        for node in topological(root):
            if node.op != "input" and not (TABLE[node.op].llvm or paired and node.op in PAIRED):
                raise Unsupported(
                    f"scalar operation {node.op} has no LLVM text{' for complex numbers' if paired else ''}"
                )
        if (
            compute.category == 1
        ):  # numbers wrap as in the eager kernel; those that must fit were checked by the shape rule
            full = [
                as_element(x, compute).item()
                if x.__class__ in (int, float) and (a.is_tensor or a.type == "Scalar")
                else x
                for a, x in zip(op._schema.arguments, full)
            ]
        t, out = short(compute), short(val.dtype)
        shape = sizes(val.shape)
        handler = self.handler(short(compute.to_complex()) if paired else t)
        if compute.category == 1 and (divisions := {n.op for n in topological(root) if _may_divide_by_zero(n)}):
            conditions.dividing(self, handler, divisions)
        if paired:
            d.body(
                handler, *[self.values.const(0, short(x.dtype)) if isinstance(x, Lazy) else x for x in full]
            )  # refuses what it can't

        def at(coords):
            actual = []
            for k, x in enumerate(full):
                if isinstance(x, Lazy):
                    v = x.at(broadcast_coords(coords, x.sizes))
                    v = self.values.cast(v, t) if k in taking else v
                    actual.append(self.values.cast(v, compute_type(v.dtype)))
                else:
                    actual.append(handler.number(x))
            result = d.body(handler, *actual)
            if not isinstance(result, Value):
                result = handler.number(result)
            if not isinstance(result, Value):
                result = self.values.const(result, compute_type(out))
            return self.values.cast(result, out)

        return self.lazy(shape, val.dtype, at, strides=_strides(val), device=val.device)

    def _reduction(self, op, full, val):
        d = op.definition
        r = reduction_arguments(op)(full)
        x, params, keepdim = r.input, r.params, r.keepdim
        dims = sorted(normalize_dims(r.dims, x.ndim)) if x.ndim else []
        acc = compute_type(short(r.acc))
        handler = self.handler(acc)
        n = math.prod(x.sizes[k] for k in dims)
        kept = [k for k in range(x.ndim) if k not in dims]

        def element(coords):
            v = x.at(coords)
            v = (
                self.values.cast(v, compute_type(v.dtype))
                if d.acc == "bool" and d.map is not None
                else self.values.cast(v, acc)
            )
            if d.map is not None:
                v = d.map(handler, v, *params)
                v = v if isinstance(v, Value) else self.values.const(v, acc)
            return self.values.cast(v, acc)

        if n == 0 and d.init is None:
            raise Unsupported("empty reduction without an initial value")
        if is_complex(acc):
            result = self.reduce_pairs(d, x, kept, dims, element)
        else:
            result = self.reduce(d.combine, d.init, x.sizes, kept, dims, element)
        out = short(val.dtype)

        def at(coords):
            outer = (
                [c for k, c in enumerate(coords) if k not in dims]
                if keepdim and x.ndim == len(coords)
                else list(coords)
            )
            v = result(tuple(outer))
            if d.finalize is not None:
                v = d.finalize(handler, v, symbolic(n, self.example), *params)
                v = v if isinstance(v, Value) else self.values.const(v, acc)
            return self.values.cast(v, out)

        return self.lazy(sizes(val.shape), val.dtype, at, strides=_strides(val), device=val.device)

    def reduce(self, combine, init, shape, kept, dims, element):
        """Emit the reduction; returns the function from kept coordinates to the accumulated Value. A reduction with few results is done in
        two steps, pieces of fixed length first: parallel, and with the accuracy of a pairwise sum, whatever the number of threads."""
        outer, inner = [shape[k] for k in kept], [shape[k] for k in dims]
        rows, n, hint = math.prod(outer), math.prod(inner), self.values.hint
        coords: list = [None] * len(shape)

        def value(outer_coords, inner_coords):
            for k, c in zip(kept, outer_coords):
                coords[k] = c
            for k, c in zip(dims, inner_coords):
                coords[k] = c
            return element(tuple(coords))

        if n == 0:
            v = value([0] * len(kept), [0] * len(dims))
            return lambda c: self.values.const(init, v.dtype)
        if n == 1:
            zero = [0] * len(dims)
            if combine in ("argmax", "argmin"):
                return lambda c: self.values.const(0, "i64")
            return lambda c: value(c, zero)
        arg = combine in ("argmax", "argmin")
        column = bool(kept) and kept[-1] == len(shape) - 1
        many = hint(n)
        if type(n) is Expr and not column:
            many = max(many, 4 * config.reduction_piece) if many > 1024 else many  # it may be longer next time
        long = (
            many >= config.reduction_piece
            if column
            else many >= 4 * config.reduction_piece and (hint(rows) < 16 or many > 64 * config.reduction_piece)
        )
        inside = (
            len(shape) - 1 - kept[-1] if kept else 0
        )  # dimensions of a sum over channels (n, c, h, w) that lie together
        if not arg and long and 0 < inside < len(dims) and hint(math.prod(shape[len(shape) - inside :])) >= 64:
            rest = [k for k in range(len(shape)) if k < len(shape) - inside]
            part = self.reduce(combine, init, shape, rest, dims[-inside:], element)
            return self.reduce(combine, init, [shape[k] for k in rest], kept, dims[:-inside], part)
        if not arg and long:
            # Columns are summed one element after the other: pieces of about the square root keep the error that of a pairwise sum.
            piece = max(64, 1 << (many.bit_length() // 2)) if column else config.reduction_piece
            pieces = floordiv(n + (piece - 1), piece)
            c, l = self.variables((pieces, piece))
            loops = self.variables(outer)
            flat = variable(c) * piece + variable(l)
            v = value([variable(p) for p in loops], _unflatten(flat, inner))
            buffer = self.new_buffer((pieces, *outer), dense_strides((pieces, *outer)), v.dtype)
            where = linear([variable(c), *map(variable, loops)], buffer.strides)
            limit = (c, l, n) if mod(n, piece) != 0 else None
            self.add(Reduction(buffer.name, (c, *loops), (l,), combine, init, v, where, limit))
            return self.reduce(
                combine,
                init,
                (pieces, *outer),
                list(range(1, len(outer) + 1)),
                [0],
                lambda cs: self.values.load(buffer.name, linear(cs, buffer.strides), v.dtype),
            )
        loops, reduced = self.variables(outer), self.variables(inner)
        v = value([variable(p) for p in loops], [variable(r) for r in reduced])
        t = "i64" if arg else v.dtype
        buffer = self.new_buffer(outer, dense_strides(outer), t)
        self.add(Reduction(buffer.name, loops, reduced, combine, init, v, linear(map(variable, loops), buffer.strides)))
        return lambda c: self.values.load(buffer.name, linear(c, buffer.strides), t)

    def _view(self, op, full, val):
        x, rest = full[0], full[1:]
        if not isinstance(x, Lazy):
            raise Unsupported("no tensor argument")
        results = None
        if x.region is not None:
            try:
                results = op.definition.map(self.strided(x.region), *rest)
            except RuntimeError:
                results = None  # a reshape that needs other strides: by index below
        if results is None:
            results = op.definition.map(Recorder(x.shape), *rest)
        vals = val if isinstance(val, (tuple, list)) else [val]
        listed = isinstance(results, (tuple, list))
        out = []
        for position, (r, v) in enumerate(zip(results if listed else [results], vals)):
            if isinstance(r, Strided):
                region = Region(x.region.buffer, sizes(r.shape), sizes(r.strides), size(r.offset))
                out.append(self.in_memory(region, x.dtype, _strides(v), x.device))
                continue

            def at(coords, r=r):
                return x.at(source_index(r.steps, coords, IndexOps))

            def again(handler, n=position):
                made = op.definition.map(handler, *rest)
                return made[n] if listed else made

            out.append(self.lazy(sizes(r.shape), x.dtype, at, strides=_strides(v), device=x.device))
            out[-1].view = (x, again)
        return out if listed else out[0]

    def _factory(self, op, full, val):
        body = op.definition.body
        t = short(val.dtype)
        handler = self.handler(t)

        def at(coords):
            v = 0 if body is None else body(handler, tuple(self.values.index(c) for c in coords), *full)
            return self.values.cast(v, t) if isinstance(v, Value) else self.values.element(v, t)

        if is_complex(t):
            at((0,) * len(val.shape))  # refuses what it can't
        return self.lazy(sizes(val.shape), val.dtype, at, strides=_strides(val), device=val.device)

    def _index(self, op, full, val):
        d = op.definition
        bound = dict(zip((a.name for a in op._schema.arguments), full))
        source = bound[d.source]
        shape, fn = d.coords(IndexOps, *full)
        shape = sizes(shape)
        tag = self.message(op.name())

        def load(name, *coords):
            tensor = bound[name] if isinstance(name, str) else name
            v = tensor.at(tuple(coords))
            return of(self.values.cast(v, "i64"))

        def position(coords, extents):
            out = []
            for c, extent in zip(fn(tuple(coords), load, IndexOps), extents):
                if loaded_atoms(c):
                    whole = self.values.index(c)
                    if len(terms(c)) == 1 and not const(c) and c.terms[0][1] == 1 and isinstance(c.terms[0][0], Value):
                        whole = c.terms[0][0]
                    c = of(self.values.make("checked", (whole, extent, tag, d.wrap), "i64"))
                out.append(c)
            return tuple(out)

        if d.mode == "read":
            if 0 in source.sizes and math.prod(shape):
                raise Unsupported("reading from an empty tensor")
            return self.lazy(
                shape,
                source.dtype,
                lambda coords: source.at(position(coords, source.sizes)),
                strides=_strides(val),
                device=source.device,
            )
        out_shape = sizes(val.shape)
        t = short(val.dtype)
        start = bound.get(d.base) if d.base else None
        if start is None:
            zero = self.values.const(0, compute_type(t))
            start = self.lazy(out_shape, val.dtype, lambda coords: self.values.cast(zero, t))
        target = self.new_buffer(out_shape, dense_strides(out_shape), t)
        self.fill(target, start)
        if math.prod(shape):
            loops = self.variables(shape)
            coords = tuple(variable(v) for v in loops)
            if isinstance(source, Lazy):
                value = self.values.cast(source.at(broadcast_coords(coords, source.sizes)), t)
            else:
                value = self.values.element(source, t)
            where = linear(position(coords, out_shape), target.strides)
            self.add(Pointwise(target.name, loops, value, where, d.combine))
        return self.in_memory(Region(target.name, out_shape, target.strides), val.dtype, target.strides, val.device)

    def _contraction(self, op, full, val):
        return lower_contraction(self, op, full, val)

    def _composite(self, op, full, val):
        raise Unsupported("a composite that wasn't decomposed")

    # --- operations that "lower" overrides of operators are written in ----------------------------------------------
    def take(self, x, indices, val) -> Lazy:
        """``x[indices]``."""
        if 0 in x.sizes:
            raise Unsupported("indexing an empty tensor")
        indices = native_sizes.masked(self, x.sizes, indices, lambda at: val.shape[at])
        shape, position = native_sizes.advanced(self, x.sizes, indices, "aten::index")
        return self.lazy(shape, x.dtype, lambda coords: x.at(position(coords)), strides=_strides(val), device=x.device)

    def put(self, x, indices, values, accumulate, val) -> Lazy:
        """``x`` with ``values`` put at ``x[indices]``, or added there."""
        if 0 in x.sizes:
            raise Unsupported("indexing an empty tensor")
        indices = native_sizes.places_to_put(self, x, indices, values)
        shape, position = native_sizes.advanced(self, x.sizes, indices, "aten::index_put")
        t = short(val.dtype)
        target = self.new_buffer(x.sizes, dense_strides(x.sizes), t)
        self.fill(target, x)
        if math.prod(shape):
            loops = self.variables(shape)
            coords = tuple(variable(v) for v in loops)
            value = self.values.cast(values.at(broadcast_coords(coords, values.sizes)), t)
            where = linear(position(coords), target.strides)
            self.add(Pointwise(target.name, loops, value, where, "add" if accumulate else "assign"))
        return self.in_memory(Region(target.name, target.shape, target.strides), val.dtype, target.strides, val.device)

    # --- eager kernels ------------------------------------------------------------------------------------------------
    def _extern(self, op, full, val):
        """A call of the operator itself, on tensors over the buffers."""
        tensors: list[Lazy] = [x for x in _flatten(full) if isinstance(x, Lazy)]
        regions = [self.realize(x) for x in tensors]
        vals = list(val) if isinstance(val, (tuple, list)) else [val]
        outs = []
        results: list = []
        for v in vals:
            if hasattr(v, "__sym__"):
                outs.append(self.bind_number(v))
                results.append(v)
                continue
            if not hasattr(v, "stride"):
                results.append(v)
                continue
            for n in (*v.shape, *v.stride()):
                self.meet(n)
            shape, strides = sizes(v.shape), sizes(v.stride())
            if not is_dense(shape, strides, self.values.hint):
                strides = dense_strides(shape)
            try:
                t = short(v.dtype)
            except NotImplementedError:
                t = "opaque"
            buffer = self.new_buffer(shape, strides, t, BufferKind.OBJECT, v.dtype.np)
            for n in (*shape, *strides):
                for s in symbols(n):
                    if s not in self.values.hints:
                        self.late.setdefault(s, buffer.name)
            outs.append(buffer.name)
            results.append(self.in_memory(Region(buffer.name, shape, strides), v.dtype, strides, v.device))
        if isinstance(op, HigherOrderOperator):
            full = replace(full, self.compiled_body, GraphModule)
            name, effect, run = op.__name__, True, functools.partial(call_rule, op)
        else:
            effect = bool({"nondeterministic_seeded", "has_side_effects"} & set(op.tags))
            effect = effect or op.definition.kind in ("random", "extern") or any(hasattr(v, "__sym__") for v in vals)
            name, run = op.name(), functools.partial(call_schema, op)
        floats, more = self.floats(full)
        regions += more
        plan = EagerCall(run, full, [self.buffers[n] for n in outs], self.values.hint, floats)
        self.add(ExternCall("call", name, regions, outs, plan, effect, replays="may_run_plainly" in op.tags))
        return results if isinstance(val, (tuple, list)) else results[0]

    def compiled_body(self, gm: GraphModule):
        """The body of an operator, compiled once however many nodes call it."""
        found = self.bodies.get(gm)
        if found is None:
            found = self.bodies[gm] = self.compile_body(gm)
        return found

    def bind_number(self, v) -> str:
        """The buffer of a number that a call tells: a floating-point one is read from memory, an integer is no memory at all."""
        self.meet(v)
        inside = symbols_of(v.expr)
        if all(isinstance(s, Symbol) for s in inside):  # an integer, or a truth value: its symbol is 0 or 1
            (symbol,) = inside
            buffer = self.new_buffer((), (), "i64", BufferKind.NUMBER)
            buffer.constant = of(symbol)
            self.late.setdefault(symbol, buffer.name)
        else:
            buffer = self.new_buffer((), (), "f64", BufferKind.OBJECT)
            self.values.scalars[v.expr] = buffer.name
        return buffer.name


# --- helpers ----------------------------------------------------------------------------------------------------------
def _strides(val):
    return sizes(val.stride()) if hasattr(val, "stride") else None


def _unflatten(flat: Expr | int, shape):
    out, stride = [], math.prod(shape)
    for k, n in enumerate(shape):
        stride = floordiv(stride, n)
        q = floordiv(flat, stride)
        out.append(mod(q, n) if k else q)
    return out


def _map(tree, fn):
    if isinstance(tree, (tuple, list)):
        return type(tree)(_map(x, fn) for x in tree) if type(tree) in (tuple, list) else [_map(x, fn) for x in tree]
    if isinstance(tree, dict):
        return {k: _map(v, fn) for k, v in tree.items()}
    if isinstance(tree, slice):
        return slice(*(_map(x, fn) for x in (tree.start, tree.stop, tree.step)))
    return fn(tree) if isinstance(tree, Call) else tree


def _flatten(tree):
    if isinstance(tree, (tuple, list)):
        for x in tree:
            yield from _flatten(x)
    elif isinstance(tree, dict):
        for x in tree.values():
            yield from _flatten(x)
    else:
        yield tree
