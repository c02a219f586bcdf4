"""Introspection of compiled functions."""

from . import debug

__all__ = ["run_and_get_code"]


def run_and_get_code(fn, *args, **kwargs):
    """``(fn(*args, **kwargs), sources)``: the result, and the source text of every graph that was compiled during the call."""
    sources: list[str] = []
    listener = sources.append
    debug.listeners.append(listener)
    try:
        return fn(*args, **kwargs), sources
    finally:
        debug.listeners.remove(listener)
