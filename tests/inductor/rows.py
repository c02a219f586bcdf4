"""Rows of tables that run by default; the others are marked slow."""

import pytest

from flambeau.inductor.machine import processor

__all__ = ["level", "thinned"]


def level(name, *more):
    """A row of a kind of CPU (FLAMBEAU_CPU): slow where the processor has no AVX-512 to leave out, since the row of its own level runs the same code."""
    same = name not in ("", "default") and "avx512f" not in processor.description()
    return pytest.param(name, *more, marks=pytest.mark.slow if same else ())


def thinned(rows, columns, whole):
    """The product of both, for a test with these two arguments: all rows in the column ``whole``, and by turns a part of them in each other column."""
    step = max(len(columns), 4)
    return [
        pytest.param(row, column, marks=() if column == whole or i % step == j else pytest.mark.slow)
        for i, row in enumerate(rows)
        for j, column in enumerate(columns)
    ]
