"""What is disabled for capture: modules by pattern, and functions, of which programs are told when they are met."""

from __future__ import annotations

import fnmatch
import warnings

from flambeau.base.weak import Marks

from .callable_kinds import is_disabled
from .reflect import module_of

__all__ = ["disabled_module", "disabled_modules", "warn_disabled"]

disabled_modules: set[str] = set()  # patterns of names


def disabled_module(fn) -> str | None:
    """The pattern that the module of ``fn`` is disabled by."""
    if not disabled_modules:
        return None
    name = module_of(fn) or fn.__globals__.get("__name__") or ""
    return next((p for p in disabled_modules if fnmatch.fnmatchcase(name, p)), None)


_warned_disabled = Marks()


def warn_disabled(fn) -> None:
    """One line for each disabled function that is met without a reason: they are easily left behind after debugging."""
    inner = fn.fn if is_disabled(fn) else fn
    if getattr(fn, "_torchdynamo_disable_msg", None) or inner in _warned_disabled:
        return
    _warned_disabled.add(inner)
    code = getattr(inner, "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code is not None else ""
    name = getattr(inner, "__qualname__", repr(inner))
    warnings.warn(
        f"torch.compile met {name}{where}, on which torch._dynamo.disable was used: it breaks the graph. "
        "Give disable a reason= if that is meant to stay.",
        UserWarning,
        stacklevel=2,
    )
