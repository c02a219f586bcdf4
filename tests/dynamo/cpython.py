"""CPython's own tests with every function captured: ``python tests/dynamo/cpython.py test_with [test_scope ...]``.

A module of CPython's test package is loaded as a user's (from a copy of its source), then each test runs twice, plainly and with the frame
evaluator capturing every frame that it reaches (backend "eager", also frames without tensors). A test counts as failed when it passes plainly
only. ``run(name)`` gives the names of those with what went wrong."""

from __future__ import annotations

import importlib.util
import io
import logging
import sys
import traceback
import types
import unittest
import warnings
from contextlib import contextmanager

MODULES = (
    "test_generators",
    "test_with",
    "test_exceptions",
    "test_scope",
    "test_listcomps",
    "test_patma",
    "test_dataclasses",
    "test_descr",
    "test_raise",
    "test_super",
    "test_property",
    "test_dictcomps",
    "test_keywordonlyarg",
    "test_positional_only_arg",
    "test_contextlib",
    "test_bisect",
    "test_collections",
    "test_copy",
    "test_iter",
    "test_itertools",
    "test_builtin",
    "test_unpack",
    "test_unpack_ex",
    "test_operator",
    "test_functools",
    "test_coroutines",
    "test_enum",
)

# Tests that don't hold for captured code, and why. A name that ends with a dot stands for a class.
LEFT_OUT = {
    "TestCase.test_reduce_mutating_builtins_iter": "deletes builtins.iter, for all Python code of the process",
    "TestCase.test_ref_counting_behavior": "counts references to values that a handled error's traceback still holds while capturing",
    "TestBreakpoint.test_envar_good_path_builtin": "replaces builtins.int, for all Python code of the process",
    "TestTracing.": "sys.settrace() sees the lines of captured code, which are fewer",
    "ClassPropertiesAndMethods.test_cycle_through_dict": "an object that is its own dict breaks the graph, and the call of what goes on holds it",
    "GeneratorStackTraceTest.": "a generator that is captured has two frames on the stack",
    "TestTracebackType.test_attrs": "asks for the very frame that raised: the test's own frame goes on in other ones after a break",
    "FinalizationTest.test_refcycle": "counts references to a value that is not read again",
    "ExceptionTests.test_recursion_in_except_handler": "counts the frames that are left below the recursion limit",
    "ExceptionTests.test_recursion_normalizing_exception": "counts the frames that are left below the recursion limit",
    "ExceptionTests.test_memory_error_cleanup": "asks for the locals that the frames of a traceback keep; captured ones have none",
    "ExceptionTests.test_recursion_error_cleanup": "asks for the locals that the frames of a traceback keep; captured ones have none",
    "PEP626Tests.test_lineno_after_other_except": "asks a traceback's frame for the line at which it was left behind the one that raised",
    "PEP626Tests.test_lineno_in_try": "asks a traceback's frame for the line at which it was left behind the one that raised",
    "PEP626Tests.test_missing_lineno_shows_as_none": "a captured instruction without a line is told of the function's first",
    "ClassPropertiesAndMethods.test_bpo25750": "a class that changes while one of its attributes is read; capture says that its guard failed at once",
    "ClassPropertiesAndMethods.test_remove_subclass": "the guards of a captured function hold the classes that they look at",
    "ClassPropertiesAndMethods.test_slots": "counts all objects of the process",
    "ClassPropertiesAndMethods.test_vicious_descriptor_nonsense": "a key whose comparison deletes what is looked up; capture looks it up, too",
    "TestLRUC.test_lru_cache_weakrefable": "asks whether a class that is captured as a constant of a guard is gone",
    "TestLRUPy.test_lru_cache_weakrefable": "asks whether a class that is captured as a constant of a guard is gone",
    "TestPartialC.test_nested_optimization": "a second copy of the C module, whose partial is any class in C: what is made of it has its dict",
    "CoroutineTest.test_bpo_45813_1": "asks whether a coroutine is gone while its frame is still looked at",
    "CoroutineTest.test_for_2": "counts references",
    "CoroutineTest.test_for_3": "counts references",
    "CoroutineTest.test_for_4": "counts references",
    "CoroutineTest.test_for_6": "counts references",
    "OriginTrackingTest.test_origin_tracking": "sys.set_coroutine_origin_tracking_depth() sees what makes a captured coroutine",
    "OriginTrackingTest.test_origin_tracking_warning": "sys.set_coroutine_origin_tracking_depth() sees what makes a captured coroutine",
    "MiscTests.test_type_lookup_mro_reference": "a key whose comparison changes the MRO that is walked; capture walks it, too",
}

for _c in ("combinations", "combinations_with_replacement", "permutations", "product"):
    LEFT_OUT[f"TestBasicOps.test_{_c}_tuple_reuse"] = (
        "asks whether a tuple that nobody refers to is used for the next row"
    )

for _c in ("TestLRUC", "TestLRUPy"):
    LEFT_OUT[f"{_c}.test_lru_reentrancy_with_len"] = (
        "replaces builtins.len by one that refuses lists, for all Python code of the process"
    )

if sys.version_info >= (3, 13):
    LEFT_OUT["TestLRUPy.test_lru_recursion"] = "counts the frames that are left below the recursion limit"
    for _c in ("ListComprehensionTest", "DictComprehensionTest"):
        LEFT_OUT[f"{_c}.test_exception_locations"] = (
            "an iterator's error in an inlined comprehension is told of the line where the captured function begins"
        )


def source_of(name: str) -> tuple[str, str]:
    spec = importlib.util.find_spec(f"test.{name}")
    if spec is None:
        raise LookupError(f"this installation has no test.{name}")
    with open(spec.origin, encoding="utf-8") as f:
        return spec.origin, f.read()


def load(name: str, kind: str) -> types.ModuleType:
    path, text = source_of(name)
    module = types.ModuleType(f"{name}_{kind}")
    filename = f"/cpython/{kind}/{name}.py"
    text = text.replace(f"test.{name}.", f"{module.__name__}.")  # what doctests say of a class
    module.__file__ = path
    if path.endswith("__init__.py"):  # test_dataclasses is a package since 3.13
        module.__path__ = [path.removesuffix("/__init__.py")]
    module.__package__ = "test" if not hasattr(module, "__path__") else f"test.{name}"
    sys.modules[module.__name__] = module
    import linecache

    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)
    return module


@contextmanager
def capturing():
    """Frames of this thread are captured, all of them."""
    from flambeau import _frame
    from flambeau.compiler.backends import lookup_backend
    from flambeau.dynamo.config import config
    from flambeau.dynamo.convert import Compiler
    from flambeau.dynamo.rules import trace_rules

    compiler = Compiler(lookup_backend("eager"))
    has_tensors = trace_rules.frame_has_tensors
    trace_rules.frame_has_tensors = lambda func, args: func.__code__.co_filename.startswith(("/cpython/", "<doctest"))
    logging.getLogger("flambeau._dynamo").setLevel(logging.ERROR)  # recompile limits
    with config.patch(capture_empty_graphs=True, cache_size_limit=4):
        before = _frame.set_context(compiler)
        try:
            yield compiler
        finally:
            _frame.set_context(before)
            trace_rules.frame_has_tensors = has_tensors


def outcomes(module, captured: bool, only: str = "") -> dict[str, str]:
    """Test -> "" where it passes, else what went wrong."""
    out = {}

    class Result(unittest.TestResult):
        def addSuccess(self, test):
            out[test.id().partition(".")[2]] = ""

        def failed(self, test, err):
            text = traceback.format_exception(err[0], err[1], err[2], limit=-4, chain=False)
            out[test.id().partition(".")[2]] = "".join(text)

        def addError(self, test, err):
            self.failed(test, err)

        def addFailure(self, test, err):
            self.failed(test, err)

        def addSubTest(self, test, subtest, err):
            if err is not None:
                self.failed(test, err)

    def every(suite):
        for t in suite:
            if isinstance(t, unittest.TestSuite):
                yield from every(t)
            else:
                yield t

    for t in every(unittest.defaultTestLoader.loadTestsFromModule(module)):
        name = t.id().partition(".")[2]
        if only not in name or name in LEFT_OUT or name.partition(".")[0] + "." in LEFT_OUT:
            continue
        result, limit = Result(), sys.getrecursionlimit()
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            stdout, sys.stdout = sys.stdout, io.StringIO()
            try:
                if captured:
                    with capturing():
                        t.run(result)
                else:
                    t.run(result)
            finally:
                sys.stdout = stdout
                sys.setrecursionlimit(limit)
    return out


def run(name: str, only: str = "") -> tuple[int, dict[str, str]]:
    """How many tests pass plainly, and those of them that fail with every function captured."""
    plain = outcomes(load(name, "plain"), False, only)
    passing = {t for t, what in plain.items() if not what}
    captured = outcomes(load(name, "captured"), True, only)
    return len(passing), {t: captured.get(t, "did not run") for t in sorted(passing) if captured.get(t, "did not run")}


if __name__ == "__main__":
    only = ""
    for name in sys.argv[1:] or MODULES:
        if "=" in name:
            only = name.partition("=")[2]
            continue
        n, failed = run(name, only)
        for t, what in failed.items():
            print(f"--- {name} {t}\n{what}")
        print(f"{name}: {n} pass plainly, {len(failed)} of them fail captured", flush=True)
