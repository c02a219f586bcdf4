"""The text of errors about names that don't exist: module, name, and the nearest that does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

__all__ = ["Absent"]


class Absent:
    """An error's argument. Looking for a near name takes milliseconds, and most callers only ask whether there is an attribute."""

    def __init__(self, text: str, name: str, names: Callable[[], Iterable[str]], prefix: str = ""):
        self.text, self.name, self.names, self.prefix = text, name, names, prefix

    def __str__(self) -> str:
        import difflib

        names = list(self.names())
        near = [n for n in names if n.lower() == self.name.lower()][:1] or difflib.get_close_matches(
            self.name, names, 1
        )
        return self.text + (f"; the nearest is '{self.prefix}{near[0]}'" if near else "")

    __repr__ = __str__

    @classmethod
    def of_module(cls, module, path: str, name: str) -> Absent:
        """For ``getattr(module, name)``; ``path`` is how the module is called."""
        return cls(f"module '{path}' has no attribute '{name}' (flambeau)", name, lambda: dir(module))
