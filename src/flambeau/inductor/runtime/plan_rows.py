"""Plans as rows of plain values, for a file: a record is the name of its class and its fields."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ... import _runtime
from ...base.dtypes import ALL
from ...base.records import fields_of, slotted
from ...base.relations import FloatSymbol
from ...core.higher_order import HigherOrderOperator
from ...core.messages import About, Message
from ...core.operator import OpOverload
from ...proxy.encoding import Decoder, Encoder
from ..lowering.eager_call import ArgumentSlot, EagerCall, NumberCall, call_rule, call_schema
from ..lowering.eager_call import Late as LateArgument
from . import records
from .plan import LaunchPlan

__all__ = ["dtype_name", "read_plan", "write_plan"]

_RECORDS = {name: getattr(records, name) for name in records.__all__}
_FIELDS = {cls: fields_of(cls) for cls in _RECORDS.values()}
_DTYPES = {d.np.name: d.np for d in ALL}
_ROWS = (list, tuple)
_LEAVES = frozenset((int, str, bool, float, type(None)))


def write_plan(plan: LaunchPlan, enc: Encoder, constants: list[np.ndarray]) -> dict:
    """Rows of plain values; arrays go to ``constants``. NotEncodable where a call holds what a file can't."""

    def kept(array):
        constants.append(array)
        return len(constants) - 1

    leaves = {
        (records.LayoutRecord, "dtype"): dtype_name,
        (records.ConstantSlot, "array"): kept,
        (records.CallStep, "call"): lambda call: _write_call(call, enc, constants),
        (records.ConstantOutput, "value"): lambda x: enc.argument(x, {}),
    }

    special = {cls for cls, _ in leaves}

    # Most of a plan is numbers and names: each is looked at where it stands, without a call.
    def row(x):
        cls = type(x)
        if cls in _ROWS:
            return [v if type(v) in _LEAVES else row(v) for v in x]
        names = _FIELDS.get(cls)
        if names is None:
            return x
        if cls in special:
            return [cls.__name__, *(leaves.get((cls, f), row)(getattr(x, f)) for f in names)]
        fields = [getattr(x, f) for f in names]
        return [cls.__name__, *[v if type(v) in _LEAVES else row(v) for v in fields]]

    return {
        "inputs": plan.inputs,
        "values": plan.values,
        "stages": row(plan.stages),
        "slots": row(plan.slots),
        "steps": row(plan.steps),
        "outputs": row(plan.outputs),
        "arena": plan.arena,
        "messages": [[int(m.about), m.text] for m in plan.messages],
        "dtypes": [None if d is None else dtype_name(d) for d in plan.dtypes],
        "small": plan.small,
        "checks": [[place, enc.expr(s), enc.expr(r), message] for place, s, r, message in plan.checks],
        "together": list(map(list, plan.together)),
    }


def read_plan(rows: dict, dec: Decoder, constants: list[np.ndarray], addresses: dict[str, int]) -> LaunchPlan:
    """Inverse of :func:`write_plan`; bodies are bound to ``addresses`` at once. KeyError, TypeError or ValueError for rows that are none."""
    leaves = {
        (records.LayoutRecord, "dtype"): _DTYPES.__getitem__,
        (records.ConstantSlot, "array"): constants.__getitem__,
        (records.CallStep, "call"): lambda call: _read_call(call, dec, constants, addresses),
        (records.ConstantOutput, "value"): lambda x: dec.argument(x, []),
    }
    special = {cls for cls, _ in leaves}

    # Most of a plan is numbers: each is looked at where it stands in its row, without a call.
    def value(x):
        if type(x) not in _ROWS:
            return x
        if not x or type(x[0]) is not str:
            return [value(v) if type(v) in _ROWS else v for v in x]
        cls = _RECORDS[x[0]]
        names = _FIELDS[cls]
        if len(x) != len(names) + 1:
            raise ValueError(f"a row of {len(x)} values is no {cls.__name__}")
        if cls in special:
            return cls(*(leaves.get((cls, f), value)(v) for f, v in zip(names, x[1:])))
        return cls(*[value(v) if type(v) in _ROWS else v for v in x[1:]])

    return LaunchPlan(
        rows["inputs"],
        rows["values"],
        [(value(bindings), list(map(tuple, code))) for bindings, code in rows["stages"]],
        value(rows["slots"]),
        value(rows["steps"]),
        value(rows["outputs"]),
        rows["arena"],
        [Message(About(about), text) for about, text in rows["messages"]],
        [None if d is None else _DTYPES[d] for d in rows["dtypes"]],
        rows["small"],
        [(place, dec.expr(s), dec.expr(r), message) for place, s, r, message in rows["checks"]],
        list(map(tuple, rows["together"])),
    )


@functools.cache
def dtype_name(d: Any) -> str:
    # NumPy works a name out each time.
    return np.dtype(d).name


def _write_call(call: EagerCall, enc: Encoder, constants: list) -> dict:
    def leaf(x):
        if isinstance(x, ArgumentSlot):
            return ["slot", x.k]
        if isinstance(x, LateArgument):
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


def _read_call(row: dict, dec: Decoder, constants: list, addresses: dict) -> EagerCall:
    def tree(x):
        kind, *rest = x
        if kind == "l":
            return list(map(tree, rest[0]))
        if kind == "dict":
            return {k: tree(v) for k, v in rest[0]}
        if kind == "slot":
            return ArgumentSlot(rest[0])
        if kind == "late":
            return LateArgument(dec.expr(rest[0]), [(dec.expr(s), i) for s, i in rest[1]])
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
    cls = EagerCall if call is not None else NumberCall
    return cls.of(call, tree(row["template"]), floats, row["orders"], row["count"])


@slotted(frozen=False)
class _Info:
    """Stands for the source of a graph that was read from a file."""

    plan: LaunchPlan
