"""Rows of the operator sample table, a file to a family."""

from . import arithmetic, choosing, convolving, indexing, layers, making, networks, products, reducing, viewing  # noqa: F401
