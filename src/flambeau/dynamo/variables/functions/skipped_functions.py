"""Callables that run as ordinary Python, behind a graph break, and those that mustn't be called in captured code."""

from __future__ import annotations

import types

from ...exc import ForbiddenCall, unsupported
from ...rules import trace_rules
from ...rules.reflect import module_of, qualname_of
from ...tracing import world
from ...tracing.wrapping import FUNCTION_WRAPPERS, WRAPPERS, pin
from ..base import HeldVariable

__all__ = ["ForbiddenVariable", "SkippedFunctionVariable", "skipped"]


class SkippedFunctionVariable(HeldVariable):
    """A callable that runs as ordinary Python: calling it breaks the graph."""

    def __init__(self, value, id: str, reason: str, why: str, hint: str = "", source=None):
        super().__init__(value, source)
        self.id, self.reason, self.why, self.hint = id, reason, why, hint

    def __repr__(self):
        return f"function {getattr(self.value, '__qualname__', self.value)!s}"

    def call(self, tx, args, kwargs):
        unsupported(self.id, self.reason, self.why, self.hint)

    def getattr(self, tx, name):
        return world.library_attr(tx, self, self.value, self.source, name)

    def hasattr(self, tx, name):
        return world.has(tx, lambda: self.getattr(tx, name))


class ForbiddenVariable(SkippedFunctionVariable):
    """What must not be called in captured code: that is an error, not a graph break."""

    def __init__(self, value, why: str, source=None):
        super().__init__(value, "forbidden", f"call of {getattr(value, '__qualname__', value)}", why, source=source)

    def call(self, tx, args, kwargs):
        raise ForbiddenCall(f"Attempt to trace forbidden callable {self.value!r}: {self.why}")


class DisabledFunctionVariable(SkippedFunctionVariable):
    """A function for which ``torch._dynamo.disable`` was called."""

    def __init__(self, value, source=None):
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or repr(value)
        reason = getattr(value, "_torchdynamo_disable_msg", None)
        super().__init__(
            value,
            "disabled",
            f"call to {name}, on which torch._dynamo.disable was used" + (f": {reason}" if reason else ""),
            f"reason: {reason}" if reason else "Disabled functions run as ordinary Python.",
            "Remove the disable.",
            source,
        )

    def call(self, tx, args, kwargs):
        original = getattr(self.value, "_torchdynamo_orig_callable", None)
        if tx.output.blocks.dispatch_handlers and type(original) is types.FunctionType:
            return tx.wrap_function(original).call(tx, args, kwargs)
        if tx.root.break_at is None:
            trace_rules.warn_disabled(self.value)
        return super().call(tx, args, kwargs)


def skipped(value, why: str, source) -> SkippedFunctionVariable:
    return SkippedFunctionVariable(
        value,
        "skipped-function",
        f"call to skipped function {module_of(value)}.{value.__qualname__}",
        f"Not traced: {why}.",
        "torch._dynamo.allow_in_graph puts it in the graph as it is.",
        source,
    )


@WRAPPERS.row("forbidden")
def _(tx, value, source):
    why = trace_rules.forbidden.get(value)
    if why is None:
        return None
    pin(tx, source, "ID_MATCH", value)
    return ForbiddenVariable(value, why, source)


@WRAPPERS.row("disabled function")
def _(tx, value, source):
    if not trace_rules.is_disabled(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return DisabledFunctionVariable(value, source)


@WRAPPERS.row("other callable")
def _(tx, value, source):
    if not callable(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    cls = type(value)
    return SkippedFunctionVariable(
        value,
        "c-callable",
        f"call to {module_of(cls)}.{qualname_of(cls)} object",
        "It is implemented in C.",
        source=source,
    )


@FUNCTION_WRAPPERS.row("disallowed")
def _(tx, value, source):
    if not trace_rules.is_disallowed(value):
        return None
    pin(tx, source, "ID_MATCH", value)
    return SkippedFunctionVariable(
        value,
        "disallowed",
        f"call to disallowed function {value.__qualname__}",
        "disallow_in_graph was called for it.",
        source=source,
    )


@FUNCTION_WRAPPERS.row("disabled")
def _(tx, value, source):
    if not getattr(value, "_torchdynamo_disable", False) or trace_rules.inline_reason(value).inlined:
        return None
    pin(tx, source, "ID_MATCH", value)
    return DisabledFunctionVariable(value, source)


@FUNCTION_WRAPPERS.row("skipped")
def _(tx, value, source):
    decision = trace_rules.inline_reason(value)
    if decision.inlined:
        return None
    pin(tx, source, "ID_MATCH", value)
    return skipped(value, decision.why, source)
