"""Modules with hooks: the library's own ``__call__`` is traced like user code, so that hooks run where they would."""

from __future__ import annotations

from ..exc import unsupported

__all__ = ["call_with_hooks"]


def call_with_hooks(tx, module, call, args, kwargs):
    if any(module.table(n) for n in ("_backward_hooks", "_backward_pre_hooks")):
        unsupported(
            "module-hooks",
            f"call of {module!r} with backward hooks",
            "Backward hooks belong to the autograd of one call.",
        )
    if getattr(module.value, "_forward_hooks_with_kwargs", None) or getattr(
        module.value, "_forward_pre_hooks_with_kwargs", None
    ):
        unsupported("module-hooks", f"call of {module!r} with hooks that take kwargs")
    from ..source import AttrSource
    from .constant import ConstantVariable

    def hooks(name):
        table, source = module.table(name), AttrSource(module.source, name)
        if not table:
            if table is not None:
                tx.output.guard(source, "LENGTH", 0)
            return []
        return [v for _, v in tx.wrap(table, source).pairs(tx)]

    for h in hooks("_forward_pre_hooks"):
        r = h.call(tx, [module, tx.make_tuple(args)], {})
        if not (isinstance(r, ConstantVariable) and r.value is None):
            args = r.items(tx) if issubclass(r.python_type(), tuple) else [r]
    out = module.getattr(tx, "forward").call(tx, args, kwargs)
    for h in hooks("_forward_hooks"):
        r = h.call(tx, [module, tx.make_tuple(args), out], {})
        if not (isinstance(r, ConstantVariable) and r.value is None):
            out = r
    return out
