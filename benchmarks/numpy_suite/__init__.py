"""Programs as people write them with NumPy, for benchmarks/numpy_programs.py and tests/numpy/test_programs.py.

A program is a function of arrays and numbers, registered by :func:`program` with a function that makes its arguments for a size:
``arguments(rng, n)``. ``small`` and ``large`` are sizes for tests and for measuring. ``functional`` says that nothing is written in place and
no Python loop depends on data, so that the same source runs on jax.numpy too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["PROGRAMS", "Program", "program"]


@dataclass(frozen=True)
class Program:
    name: str
    function: Callable
    arguments: Callable
    small: int
    large: int
    functional: bool


PROGRAMS: dict[str, Program] = {}


def program(arguments: Callable, small: int, large: int, functional: bool = False):
    """Register the decorated function, which stays as it is."""

    def register(fn):
        PROGRAMS[fn.__name__] = Program(fn.__name__, fn, arguments, small, large, functional)
        return fn

    return register


from . import dynamic, factorisations, fields, lectures, numerics, physics, signals, statistics, stencils, texts  # noqa: E402, F401
