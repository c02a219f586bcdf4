"""Why a region is no native loop."""

from __future__ import annotations

__all__ = ["Declined", "Empty", "NoValue"]


class Declined(Exception):
    """The region can't be a native loop; the text says why."""


class NoValue(Declined):
    """A variable has no value before the loop."""

    def __init__(self):
        super().__init__("it may have no value")


class Empty(Exception):
    """An item is read of a container into which nothing has been put so far, or a variable to which nothing was assigned so far: what follows isn't
    reached yet. The text is why the region is declined if that stays so."""
