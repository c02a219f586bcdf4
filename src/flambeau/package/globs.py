"""Patterns of module names: ``*`` stands for a part between dots, ``**`` for any number of parts."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["GlobGroup"]


class GlobGroup:
    """Names that one of ``include`` matches and none of ``exclude``. ValueError for a ``**`` beside other letters of a part."""

    def __init__(self, include: str | Iterable[str], *, exclude: str | Iterable[str] = (), separator: str = "."):
        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include, self.exclude = (
            [self._pattern(g) for g in ([given] if isinstance(given, str) else given)] for given in (include, exclude)
        )

    def __str__(self):
        return self._text

    __repr__ = __str__

    def matches(self, candidate: str) -> bool:
        """Whether the name belongs to the group."""
        candidate = self.separator + candidate
        return any(p.fullmatch(candidate) for p in self.include) and not any(
            p.fullmatch(candidate) for p in self.exclude
        )

    def _pattern(self, glob: str) -> re.Pattern:
        return re.compile("".join(map(self._part, glob.split(self.separator))))

    def _part(self, part: str) -> str:
        dot = re.escape(self.separator)
        if part == "**":
            return f"({dot}[^{dot}]+)*"
        if "**" in part:
            raise ValueError("** can only appear as an entire path segment")
        return dot + f"[^{dot}]*".join(map(re.escape, part.split("*")))
