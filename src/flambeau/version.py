"""Which PyTorch the public names are those of, and which flambeau this is."""

from __future__ import annotations

import re

__all__ = ["TorchVersion", "__version__", "cuda", "debug", "flambeau", "git_version", "hip", "rocm", "xpu"]

flambeau = "0.1.0"


class TorchVersion(str):
    """A version string that compares by number with strings and tuples, as libraries do: ``torch.__version__ >= (2, 1)``."""

    def _numbers(self, other) -> tuple[tuple, tuple]:
        mine, theirs = _release(self), _release(other)
        n = max(len(mine), len(theirs))
        return mine + (0,) * (n - len(mine)), theirs + (0,) * (n - len(theirs))

    def __eq__(self, other):
        if isinstance(other, str) and "+" in other:
            return str.__eq__(self, other)
        try:
            mine, theirs = self._numbers(other)
        except (TypeError, ValueError):
            return str.__eq__(self, other)
        return mine == theirs

    def __ne__(self, other):
        return not self == other

    def __lt__(self, other):
        mine, theirs = self._numbers(other)
        return mine < theirs

    def __gt__(self, other):
        mine, theirs = self._numbers(other)
        return mine > theirs

    def __le__(self, other):
        return not self > other

    def __ge__(self, other):
        return not self < other

    __hash__ = str.__hash__


def _release(version) -> tuple[int, ...]:
    """The numbers of "2.13.0+local" or of a tuple. ValueError for what is neither."""
    if isinstance(version, str):
        found = re.match(r"v?(\d+(?:\.\d+)*)", version)
        if not found:
            raise ValueError(f"not a version: {version!r}")
        return tuple(map(int, found[1].split(".")))
    return tuple(int(part) for part in version)


__version__ = TorchVersion(f"2.13.0+flambeau.{flambeau}")
debug = False
cuda = hip = rocm = xpu = git_version = None
