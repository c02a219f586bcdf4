"""Guards that a program does without, at its own risk: ``torch.compile(options={"guard_filter_fn": f})`` and the filters of ``torch.compiler``.

A filter gets a list of :class:`GuardFilterEntry` and returns a list of bools, which of them are kept. A guard that is dropped is not evaluated any
more: captured code then runs for calls that it was not made for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.records import slotted
from ..exc import UserError, UserErrorType
from ..rules.reflect import module_of, name_of
from .source import ConstSource, Source

__all__ = [
    "GuardFilterEntry",
    "apply",
    "keep_portable_guards_unsafe",
    "keep_tensor_guards_unsafe",
    "skip_all_guards_unsafe",
    "skip_guard_on_all_nn_modules_unsafe",
    "skip_guard_on_globals_unsafe",
    "skip_guard_on_inbuilt_nn_modules_unsafe",
]


@slotted
class GuardFilterEntry:
    """``name``: the source as text; ``value``: what the guard compares with; ``guard_type``: its kind (``"TENSOR_MATCH"``, ``"ID_MATCH"``, ...);
    ``is_global``: whether it is about what the program's module or the library holds; ``orig_guard``:
    the guard; ``module_class``: of the module that it reaches its value through, if any."""

    name: str
    has_value: bool
    value: Any
    guard_type: str
    derived_guard_types: tuple[str, ...]
    is_global: bool
    orig_guard: Any
    module_class: type | None


def root_of(source: Source) -> Source:
    while source.base is not None:
        source = source.base
    return source


def is_global(source: Source) -> bool:
    return isinstance(root_of(source), ConstSource) or root_of(source).access in ("globals", "global")


def apply(keep: Callable, rows: list[tuple[Source, Any, type | None]]) -> list[bool]:
    """Which of the guards (each with the source it is about, and the class of its module) the filter keeps. UserError when it raises or
    gives another number of answers."""
    entries = [
        GuardFilterEntry(g.source, g.payload is not None, g.payload, g.kind, (), is_global(source), g, cls)
        for source, g, cls in rows
    ]
    try:
        answers = list(keep(entries))
    except Exception as e:
        raise UserError(UserErrorType.INVALID_INPUT, f"guard_filter_fn raised {name_of(type(e))}: {e}") from e
    if len(answers) != len(entries):
        raise UserError(
            UserErrorType.INVALID_INPUT, f"guard_filter_fn returned {len(answers)} answers for {len(entries)} guards"
        )
    return [bool(a) for a in answers]


def skip_all_guards_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """Keeps nothing: the first captured code is always used."""
    return [False for _ in guard_entries]


def keep_tensor_guards_unsafe(guard_entries: Sequence[GuardFilterEntry], keep_parameters: bool = False) -> list[bool]:
    """Keeps what is guarded of tensors, those of modules' parameters only if ``keep_parameters``."""
    return [
        e.guard_type in ("TENSOR_MATCH", "SIZES") and (keep_parameters or "_parameters" not in e.name)
        for e in guard_entries
    ]


def skip_guard_on_globals_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """Drops what is guarded of globals."""
    return [not e.is_global for e in guard_entries]


def skip_guard_on_all_nn_modules_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """Drops what is guarded of modules and of what they hold."""
    return [e.module_class is None for e in guard_entries]


def skip_guard_on_inbuilt_nn_modules_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """Drops the guards on the library's own modules and on the objects that they hold."""
    return [e.module_class is None or not module_of(e.module_class).startswith("flambeau.") for e in guard_entries]


def keep_portable_guards_unsafe(guard_entries: Sequence[GuardFilterEntry]) -> list[bool]:
    """Keeps what would mean the same in another process: values and tensors, not identities."""
    return [e.guard_type != "ID_MATCH" and not isinstance(e.value, type) for e in guard_entries]
