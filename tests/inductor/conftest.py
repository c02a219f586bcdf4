import os
import sys

import pytest

from flambeau.inductor import compile as passes
from flambeau.inductor.ir.nodes import ExternCall
from flambeau.inductor.settings import config
from flambeau.testing.assembly import verified

sys.path.insert(0, os.path.dirname(__file__))


@pytest.fixture(autouse=True, scope="session")
def _private_cache(tmp_path_factory):
    os.environ["FLAMBEAU_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True, scope="session")
def _verified():
    with verified():
        yield


@pytest.fixture
def python_calls(monkeypatch):
    """Names of what the graphs that are compiled call from Python."""
    found, original = [], passes.compile_program

    def look(*args, **kwargs):
        graph, made = original(*args, **kwargs)
        found.extend(s.name for s in graph.info.steps if isinstance(s, ExternCall) and s.what == "call")
        return graph, made

    monkeypatch.setattr(passes, "compile_program", look)
    before, config.force_disable_caches = config.force_disable_caches, True  # a graph that is recalled is not looked at
    yield found
    config.force_disable_caches = before
