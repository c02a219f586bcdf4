"""Globals that programs allow in checkpoints: ``add_safe_globals`` and its relatives."""

from __future__ import annotations

import contextlib
import io

from ..base.public import public_in

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals", "safe_names"]

_added: list = []


def _name(obj) -> str:
    if isinstance(obj, tuple):
        return obj[1]
    module = obj.__module__
    return f"{'torch' + module[8:] if module == 'flambeau' or module.startswith('flambeau.') else module}.{obj.__qualname__}"


def safe_names() -> dict[str, object]:
    """{full name: object} of what programs added."""
    return {_name(obj): obj[0] if isinstance(obj, tuple) else obj for obj in _added}


def add_safe_globals(safe_globals: list) -> None:
    """Allow functions and classes (or pairs of one and its name in the file) in ``weights_only`` loads."""
    for obj in safe_globals:
        if not (callable(obj) or (isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[1], str))):
            raise TypeError(f"add_safe_globals: expected a class, a function or a pair (object, name), got {obj!r:.80}")
        if obj not in _added:
            _added.append(obj)


def get_safe_globals() -> list:
    """What :func:`add_safe_globals` allowed."""
    return list(_added)


def clear_safe_globals() -> None:
    """Forget what :func:`add_safe_globals` allowed."""
    _added.clear()


@public_in("serialization")
class safe_globals(contextlib.AbstractContextManager):  # noqa: N801
    """Allow ``names`` in the block."""

    def __init__(self, safe_globals: list):
        self.names = safe_globals

    def __enter__(self):
        self.before = list(_added)
        add_safe_globals(self.names)
        return self

    def __exit__(self, *exc):
        _added[:] = self.before


def get_unsafe_globals_in_checkpoint(f) -> list[str]:
    """Names that a checkpoint uses and ``weights_only`` refuses. Nothing is run: the pickle is only read."""
    import pickletools

    from .archive import Archive
    from .names import SAFE

    with Archive.open(f) as archive:
        data = archive.record("data.pkl")
    names, texts = set(), []
    for op, arg, _ in pickletools.genops(io.BytesIO(data)):
        if isinstance(arg, str):
            texts.append(arg)
        if op.name == "GLOBAL":
            names.add(arg.replace(" ", "."))
        elif op.name == "STACK_GLOBAL" and len(texts) >= 2:
            names.add(".".join(texts[-2:]))
    return sorted(n for n in names if n not in SAFE and n not in safe_names())
