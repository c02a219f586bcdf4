"""Shared by all tests: memory that runs out."""

import ctypes
import gc
import sys
import types

import pytest


class FailingMemory:
    """``run(k, job)``: the result of job(), with the k-th allocation from its beginning failing; MemoryError is the caller's to catch."""

    def __init__(self, hooks):
        self.hooks = hooks

    def run(self, k, job):
        if not k:
            spare_code_objects()
        self.hooks.set_nomemory(k, k + 1)
        try:
            return job()
        finally:
            self.hooks.remove_mem_hooks()


_spare: dict = {}


def spare_code_objects():
    """CPython 3.12 and 3.13 release a code object once too often where making a function of it fails (MAKE_FUNCTION leaves it on the stack of
    values, which is then unwound): each gets references to spare, for good. Nobody gives them back when the interpreter ends, either: a function
    that lives so long would be left with code that is gone (the process aborted at its exit)."""
    if sys.version_info < (3, 12):
        return
    todo = [f.__code__ for f in gc.get_objects() if isinstance(f, types.FunctionType)]
    while todo:
        code = todo.pop()
        if id(code) not in _spare:
            _spare[id(code)] = spare = [code] * 500
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(spare))
            todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]


@pytest.fixture
def failing_memory():
    return FailingMemory(pytest.importorskip("_testcapi", reason="this CPython has no allocation hooks"))
