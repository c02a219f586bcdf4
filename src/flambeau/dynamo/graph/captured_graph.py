"""The graph that capture records, with what is known of all its values."""

from __future__ import annotations

from flambeau import fx

__all__ = ["CapturedGraph"]


class CapturedGraph(fx.Graph):
    """``carries``: a value may ask for a gradient. ``holds_arrays``: values are NumPy's arrays to the program. ``read_only``: into one of them NumPy
    lets nobody write."""

    carries = False
    holds_arrays = False
    read_only = False
