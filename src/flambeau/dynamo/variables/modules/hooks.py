"""Modules with hooks: the library's own call with hooks is traced like user code, so that hooks run where they would."""

from __future__ import annotations

from ...exc import unsupported
from ...tracing import world

__all__ = ["call_with_hooks"]


def call_with_hooks(tx, module, hooks, args, kwargs):
    """``hooks``: the library's module of hooks."""
    backward = {"_backward_hooks", "_backward_pre_hooks"}
    if backward & {*module.hooks(tx)} or world.module_attr(tx, hooks, "global_backward").length(tx):
        unsupported(
            "module-hooks",
            f"call of {module!r} with backward hooks",
            "Backward hooks belong to the autograd of one call.",
        )
    return world.module_attr(tx, hooks, "call").call(tx, [module, tx.make_tuple(args), tx.make_dict(kwargs)], {})
