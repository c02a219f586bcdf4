"""docs/reference/numpy.md says what becomes of each NumPy function."""

from pathlib import Path

import numpy as np
import pytest

from flambeau.testing.numpy_cover import MODULES, START, functions, status, table

DOCUMENT = Path(__file__).parents[2] / "docs/reference/numpy.md"


def test_plain_functions_have_a_reason():
    for module in MODULES:
        for name, f in functions(module):
            what, why = status(module, name, f)
            assert what != "plain" or why, f"{module.__name__}.{name}"


def test_document_is_current():
    text = DOCUMENT.read_text()
    if f"with NumPy {'.'.join(np.__version__.split('.')[:2])}." not in text:
        pytest.skip(f"docs/reference/numpy.md is written with another NumPy than {np.__version__}")
    assert table() == text[text.index(START) :], "run: python -m flambeau.testing.numpy_cover docs/reference/numpy.md"
