"""What a native graph is made of, as data: it can be bound to code in this process, and written to a file for another one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _runtime
from ..base import blas, lapack, ufuncs
from ..base.dtypes import ALL
from ..base.errors import LinAlgError, OutOfBounds
from ..base.relations import FloatSymbol, evaluate
from ..core.higher_order import HigherOrderOperator
from ..core.operator import OpOverload
from ..proxy.encoding import Decoder, Encoder
from .eager_call import EagerCall, Number, Slot, call_rule, call_schema
from .eager_call import Late as LateNumber

__all__ = ["Plan", "read_plan", "write_plan"]


@dataclasses.dataclass
class Plan:
    """The arguments of ``_runtime.Graph`` with names in the place of addresses: a kernel step has its kernel's, a product its type.
    ``dtypes``: of the tensors among the inputs. ``messages``: what errors of kernels are about. ``checks``: (place of a number that depends
    on data, its symbol, a relation that the program checks, the words when it doesn't hold). ``together``:
    (the first, how many) of steps that run side by side."""

    inputs: int
    values: list[int]
    stages: list
    slots: list[tuple]
    steps: list[tuple]
    outputs: list[tuple]
    arena: int
    messages: list[str]
    dtypes: list[Any]
    small: bool
    checks: list[tuple[int, Any, Any, str]] = dataclasses.field(default_factory=list)
    together: list[tuple[int, int]] = dataclasses.field(default_factory=list)

    def bind(self, addresses: dict[str, int], info: Any) -> Any:
        """The native graph; ``addresses`` of the kernels by name."""

        def bound(s):
            if s[0] == "kernel":
                return (s[0], addresses[s[1]], *s[2:])
            if s[0] == "native":
                blas.share_threads()  # templates make products; who recalls a graph has not looked for the library
            if s[0] == "native" and s[1] == "lapack":
                lapack.ready("fdFD"[self.values[s[4][1]]])
            if s[0] == "native" and s[1] == "ufunc":
                ufuncs.ready(self.values[s[4][0]])
            if s[0] == "native" and len(s) > 5:  # who takes its planes
                planes, unit, steps, ratios = s[5]
                return (*s[:5], (planes, unit, list(map(bound, steps)), ratios))
            if s[0] == "gemm":
                return ("gemm", blas.gemm_address(s[1]), s[1] == "f64", *s[2:])
            return (*s[:6], list(map(bound, s[6])), *s[7:]) if s[0] == "rows" else s

        return _runtime.Graph(
            self.inputs,
            self.values,
            self.stages,
            self.slots,
            list(map(bound, self.steps)),
            self.outputs,
            self.arena,
            self._on_error,
            self._on_mismatch,
            info,
            self.small,
            self.together,
        )

    def _on_error(self, code, value, size):
        if code == -2:  # a number at place ``size`` is out of its range
            for place, symbol, relation, message in self.checks:
                if place == size and not evaluate(relation, {symbol: value}):
                    raise RuntimeError(message)
            return
        if code < 0:
            raise MemoryError("a compiled graph got no memory for intermediate results")
        if self.messages[code - 1].startswith("!"):  # a condition that the program states
            raise RuntimeError(self.messages[code - 1][1:].replace("{value}", str(value)))
        if self.messages[code - 1].startswith("#"):
            raise LinAlgError(self.messages[code - 1][1:].replace("{value}", str(value)).replace("{size}", str(size)))
        name = self.messages[code - 1].split("::")[-1].split(".")[0]
        raise OutOfBounds(f"{name}: index {value} is out of bounds for dimension with size {size}")

    def _on_mismatch(self, k, tensor, shape, strides):
        """The input in the layout the kernels read (strides in bytes): other strides are copied, anything else is a caller's error."""
        dtype = self.dtypes[k]
        array = getattr(tensor, "_array", None)
        if array is None:
            raise TypeError(f"compiled graph: input {k} must be a tensor with data, got {type(tensor).__name__}")
        if tuple(array.shape) != shape or array.dtype != dtype:
            raise RuntimeError(
                f"compiled graph: input {k} has shape {list(array.shape)} and dtype {array.dtype}, it was compiled for shape "
                f"{list(shape)} and dtype {dtype}"
            )
        size = 1 + sum((n - 1) * s for n, s in zip(shape, strides)) // dtype.itemsize
        made = np.ndarray(shape, dtype, np.empty(max(size, 1), dtype), 0, strides)
        made[...] = array
        return made

    def body_graphs(self) -> list[Any]:
        """The native graphs that are arguments of calls."""
        found: list[Any] = []
        for s in self.steps:
            if s[0] == "call":
                _walk(s[1].template, lambda x: found.append(x) if isinstance(x, _runtime.Graph) else None)
        return found


def _walk(tree: Any, see: Callable) -> None:
    if isinstance(tree, (list, tuple)):
        for x in tree:
            _walk(x, see)
    elif isinstance(tree, dict):
        for x in tree.values():
            _walk(x, see)
    else:
        see(tree)


# -- files -------------------------------------------------------------------------------------------------------------


def write_plan(plan: Plan, enc: Encoder, constants: list[np.ndarray]) -> dict:
    """Rows of plain values; arrays go to ``constants``. NotEncodable where a call holds what a file can't."""

    def layout(x):
        return [x[0], x[1], dtype_name(x[2])]

    def slot(s):
        kind = s[0]
        if kind == "constant":
            constants.append(s[1])
            return [kind, len(constants) - 1]
        return list(s) if kind in ("value", "local") else [*s[:-1], layout(s[-1])]

    def step(s):
        if s[0] == "native":
            return [*s[:3], [[at, layout(x)] for at, x in s[3]], *s[4:]]
        if s[0] == "tell":
            return [*s[:2], [[at, layout(x)] for at, x in s[2]], s[3]]
        if s[0] != "call":
            return list(s)
        _, call, args, parts, outs, stage, numbers = s
        return [
            "call",
            _write_call(call, enc, constants),
            args,
            [[at, layout(x)] for at, x in parts],
            outs,
            stage,
            numbers,
        ]

    def output(o):
        if o[0] == "slot":
            return [*o[:3], None if o[3] is None else layout(o[3])]
        return ["constant", enc.argument(o[1], {})] if o[0] == "constant" else list(o)

    return {
        "inputs": plan.inputs,
        "values": plan.values,
        "stages": [[list(map(list, bindings)), list(map(list, code))] for bindings, code in plan.stages],
        "slots": list(map(slot, plan.slots)),
        "steps": list(map(step, plan.steps)),
        "outputs": list(map(output, plan.outputs)),
        "arena": plan.arena,
        "messages": plan.messages,
        "dtypes": [None if d is None else dtype_name(d) for d in plan.dtypes],
        "small": plan.small,
        "checks": [[place, enc.expr(s), enc.expr(r), message] for place, s, r, message in plan.checks],
        "together": list(map(list, plan.together)),
    }


def dtype_name(d: Any) -> str:
    return np.dtype(d).name


def _write_call(call: EagerCall, enc: Encoder, constants: list) -> dict:
    def leaf(x):
        if isinstance(x, Slot):
            return ["slot", x.k]
        if isinstance(x, LateNumber):
            return ["late", enc.expr(x.expr), [[enc.expr(s), i] for s, i in x.symbols]]
        if isinstance(x, _runtime.Graph):
            return ["graph", write_plan(x.info.plan, enc, constants)]
        return ["value", enc.argument(x, {})]

    def tree(x):
        if isinstance(x, (list, tuple)):
            return ["l", list(map(tree, x))]
        if isinstance(x, dict):
            return ["dict", [[k, tree(v)] for k, v in x.items()]]
        return leaf(x)

    target = None
    if call.call is not None:
        target = [call.call.func is call_rule, enc.target(call.call.args[0])]
    return {
        "target": target,
        "template": tree(call.template),
        "floats": list(map(enc.expr, call.floats)),
        "orders": call.orders,
        "count": call.count,
    }


def read_plan(rows: dict, dec: Decoder, constants: list[np.ndarray], addresses: dict[str, int]) -> Plan:
    """Inverse of :func:`write_plan`; bodies are bound to ``addresses`` at once. KeyError, TypeError or ValueError for rows that are none."""
    dtypes = {d.np.name: d.np for d in ALL}

    def layout(x):
        return x[0], x[1], dtypes[x[2]]

    def slot(s):
        kind = s[0]
        if kind == "constant":
            return kind, constants[s[1]]
        return tuple(s) if kind in ("value", "local") else (*s[:-1], layout(s[-1]))

    def step(s):
        if s[0] == "rows":
            return *s[:6], list(map(tuple, s[6])), list(map(tuple, s[7])), s[8]
        if s[0] == "native":
            planes = [(*p[:2], list(map(tuple, p[2])), list(map(tuple, p[3]))) for p in s[5:]]
            return *s[:3], [(at, layout(x)) for at, x in s[3]], s[4], *planes
        if s[0] == "tell":
            return *s[:2], [(at, layout(x)) for at, x in s[2]], s[3]
        if s[0] != "call":
            return tuple(s)
        _, call, args, parts, outs, stage, numbers = s
        made = _read_call(call, dec, constants, addresses)
        return "call", made, args, [(at, layout(x)) for at, x in parts], outs, stage, numbers

    def output(o):
        if o[0] == "slot":
            return (*o[:3], None if o[3] is None else layout(o[3]))
        return ("constant", dec.argument(o[1], [])) if o[0] == "constant" else tuple(o)

    return Plan(
        rows["inputs"],
        rows["values"],
        [(list(map(tuple, bindings)), list(map(tuple, code))) for bindings, code in rows["stages"]],
        list(map(slot, rows["slots"])),
        list(map(step, rows["steps"])),
        list(map(output, rows["outputs"])),
        rows["arena"],
        rows["messages"],
        [None if d is None else dtypes[d] for d in rows["dtypes"]],
        rows["small"],
        [(place, dec.expr(s), dec.expr(r), message) for place, s, r, message in rows["checks"]],
        list(map(tuple, rows["together"])),
    )


def _read_call(row: dict, dec: Decoder, constants: list, addresses: dict) -> EagerCall:
    def tree(x):
        kind, *rest = x
        if kind == "l":
            return list(map(tree, rest[0]))
        if kind == "dict":
            return {k: tree(v) for k, v in rest[0]}
        if kind == "slot":
            return Slot(rest[0])
        if kind == "late":
            return LateNumber(dec.expr(rest[0]), [(dec.expr(s), i) for s, i in rest[1]])
        if kind == "graph":
            plan = read_plan(rest[0], dec, constants, addresses)
            return plan.bind(addresses, _Info(plan))
        return dec.argument(rest[0], [])

    floats = [dec.expr(s) for s in row["floats"]]
    if not all(isinstance(s, FloatSymbol) for s in floats):
        raise ValueError("a call takes floating-point symbols")
    call = None
    if row["target"] is not None:
        is_rule, target = row["target"]
        op = dec.target(target)
        if not isinstance(op, HigherOrderOperator if is_rule else OpOverload):
            raise ValueError(f"{target} is no operator")
        call = functools.partial(call_rule if is_rule else call_schema, op)
    cls = EagerCall if call is not None else Number
    return cls.of(call, tree(row["template"]), floats, row["orders"], row["count"])


@dataclasses.dataclass
class _Info:
    """What a graph that was read has in the place of its source."""

    plan: Plan
