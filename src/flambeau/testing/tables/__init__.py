"""Rows of the operator sample table, a file to a family."""

from . import (  # noqa: F401
    arithmetic,
    choosing,
    convolving,
    copying,
    functions,
    indexing,
    layers,
    making,
    matrices,
    networks,
    products,
    reducing,
    transforming,
    viewing,
)
