"""Written by tools/stubs.py."""

# ruff: noqa
# mypy: ignore-errors

from flambeau.base.pytree import *
