"""Functions of one code with globals of their own. Captured code knows its resume functions weakly: each variant finds its own, whichever
thread made it and whatever the globals are."""

import threading
import types
import weakref

import pytest

import flambeau as torch
from flambeau import _frame
from flambeau.dynamo.bytecode import resume

BREAKS = """
def f(x):
    y = x + K
    torch._dynamo.graph_break()
    return y * K
"""
SUSPENDS = """
def f(x):
    def pieces():
        y = x + K
        yield y
        yield y * K
    return list(pieces())[-1]
"""


LEAVES = """
def f(x):
    def pieces():
        yield x + K
        yield (x + K) * K
    it = pieces()
    next(it)
    return it
"""
ASKS = """
def f(x):
    return (x + globals()['K']) * K
"""


def functions_of_one_code(source: str, constants) -> list:
    space: dict = {}
    exec(source, space)
    return [types.FunctionType(space["f"].__code__, {"torch": torch, "K": k}) for k in constants]


@pytest.mark.parametrize("source", [BREAKS, SUSPENDS, LEAVES, ASKS])
def test_functions_of_one_code_read_their_own_globals(source):
    constants = (2, 3, 4)
    compiled = [torch.compile(f, backend="eager") for f in functions_of_one_code(source, constants)]
    x = torch.ones(2)
    for _ in range(3):
        results = [f(x) for f in compiled]
        results = [r.tolist() if isinstance(r, torch.Tensor) else next(r).tolist() for r in results]
        assert results == [[(1 + k) * k] * 2 for k in constants]


def test_two_threads_make_the_resume_function_of_one_place(monkeypatch):
    """While this thread makes it another one does, and captures a variant that goes on in its own."""
    (f,) = functions_of_one_code(BREAKS, (2,))
    compiled, results = torch.compile(f, backend="eager"), []

    def run():
        results.append(compiled(torch.ones(2)).tolist())

    class Meanwhile:
        """_frame, in whose CompiledFunction the other thread runs."""

        def __getattr__(self, name):
            return getattr(_frame, name)

        def CompiledFunction(self, *args):
            monkeypatch.undo()
            other = threading.Thread(target=run)
            other.start()
            other.join()
            return _frame.CompiledFunction(*args)

    monkeypatch.setattr(resume, "_frame", Meanwhile())
    run()
    variants = _frame.cache_for(f.__code__, compiled.context).entries
    known = [c for _, code, *_ in variants for c in code.co_consts if isinstance(c, weakref.ref)]
    assert results == [[6.0, 6.0]] * 2
    assert len(variants) == len(known) == 2 and all(ref() is not None for ref in known)
