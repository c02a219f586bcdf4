"""Shared by all tests: memory that runs out, and what the garbage collector need not look at."""

import builtins
import ctypes
import gc
import inspect
import os
import signal
import sys
import traceback
import types
import warnings

import pytest


@pytest.fixture(autouse=True, scope="module")
def _others_frozen(request):
    """A full collection takes about a second with all that other tests left: those of files that collect look at what is newer. (Nothing is
    frozen for the others: automatic collections would come sooner.)"""
    source = inspect.getsource(request.module)
    # The demo and bench collect before they time.
    collects = any(text in source for text in ("gc.collect()", "gc.get_objects()", '"demo"', '"bench"'))
    if not collects or "gc.freeze()" in source:
        yield
        return
    gc.freeze()
    yield
    gc.unfreeze()


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
    # What is frozen isn't listed.
    gc.unfreeze()
    # Classes of tests may answer for their instances: the type itself is asked.
    todo = [f.__code__ for f in gc.get_objects() if type(f) is types.FunctionType]
    while todo:
        code = todo.pop()
        if id(code) not in _spare:
            _spare[id(code)] = spare = [code] * 500
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(spare))
            todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]


def remember_compiled_text():
    """CPython 3.11's ``compile()`` releases its buffers twice where making one of them fails (assemble_init in Python/compile.c, then assemble_free):
    from here on, for good, a text is compiled once."""
    compile_text, known = builtins.compile, {}

    def remembered(source, filename, mode, *args, **kwargs):
        if args or kwargs or not isinstance(source, str):
            return compile_text(source, filename, mode, *args, **kwargs)
        if (source, mode) not in known:
            known[source, mode] = compile_text(source, filename, mode)
        return known[source, mode]

    builtins.compile = remembered


@pytest.fixture
def failing_memory():
    return FailingMemory(pytest.importorskip("_testcapi", reason="this CPython has no allocation hooks"))


def in_a_fork(test):
    """Call ``test()`` in a forked child, which has one thread; an exception there is an AssertionError with its traceback here."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # CPython 3.12 warns about every fork of a process with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.close(read)
        text = ""
        try:
            test()
        except BaseException:
            text = traceback.format_exc()
        with open(write, "w") as out:
            out.write(text)
        os._exit(0)
    os.close(write)
    try:
        with open(read) as source:
            text = source.read()
        status = os.waitpid(child, 0)[1]
        child = 0
    finally:
        if child:
            # A time limit ended the wait.
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    assert not text, text
    assert status == 0, f"the child ended with status {os.waitstatus_to_exitcode(status)}"


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Allocations fail in every thread of a process: a test that makes them fail has a process of its own where a worker's thread listens."""
    if "failing_memory" not in pyfuncitem.fixturenames or "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    spare_code_objects()
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    in_a_fork(lambda: pyfuncitem.obj(**arguments))
    return True
