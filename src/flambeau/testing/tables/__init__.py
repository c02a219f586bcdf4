"""Rows of the operator sample table, a file to a family."""

from . import arithmetic, convolving, indexing, making, networks, products, reducing, viewing  # noqa: F401
