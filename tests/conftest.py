"""Shared by all tests: what the interpreter at hand can do."""

import pytest

from flambeau import _frame


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "needs_capture: calls torch.compile, which not every CPython can do yet (flambeau._frame.captures)"
    )


def pytest_runtest_setup(item):
    if not _frame.captures and item.get_closest_marker("needs_capture"):
        pytest.skip("frames aren't captured with this CPython: flambeau._frame.captures is 0")
