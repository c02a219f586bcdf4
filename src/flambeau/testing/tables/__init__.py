"""Rows of the operator sample table, a file to a family."""

from . import arithmetic, convolving, indexing, layers, making, networks, products, reducing, viewing  # noqa: F401
