"""``torch.return_types``: the named tuples that functions with several named results give, one class an operator."""

from __future__ import annotations

from .core.named_results import named_return_type, return_type

__all__ = ["return_type"]


def __getattr__(name):
    from .core.operator import namespace

    packet = namespace("aten")._packet(name) or namespace("aten")._packet(name.removesuffix("_out"))
    for op in packet._overloads.values() if packet is not None else ():
        made = return_type(op)
        if made is not None:
            # With out= a function returns a class of its own.
            return named_return_type(name, made._fields) if name.endswith("_out") else made
    raise AttributeError(f"module 'flambeau.return_types' has no attribute '{name}'")
