"""Settings changed for a while: a context manager, and a decorator of functions and of classes of tests."""

from __future__ import annotations

import functools
import sys
from typing import Any

__all__ = ["Patch"]


class Patch:
    """``changes`` of ``config`` by dotted name, while it is entered or what it decorates runs."""

    def __init__(self, config: Any, changes: dict[str, Any]):
        self.config, self.changes, self.saved = config, changes, []

    def __enter__(self):
        self.saved.append({k: self.config.get(k) for k in self.changes})
        for k, v in self.changes.items():
            self.config.set(k, v)
        return self

    def __exit__(self, *exc):
        for k, v in self.saved.pop().items():
            self.config.set(k, v)
        return False

    def __call__(self, fn):
        if isinstance(fn, type):
            return self._of_class(fn)

        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with Patch(self.config, self.changes):
                return fn(*args, **kwargs)

        return wrapper

    def _of_class(self, cls: type) -> type:
        """``cls``, a unittest.TestCase, with the changes made around all of its tests. TypeError for any other class."""
        unittest = sys.modules.get("unittest")  # nothing else here needs it
        if unittest is None or not issubclass(cls, unittest.TestCase):
            raise TypeError(f"patch() decorates functions and classes of tests, not the class {cls.__name__}")
        config, changes = self.config, self.changes

        def setUpClass(tests):
            patch = Patch(config, changes)
            patch.__enter__()
            tests.addClassCleanup(patch.__exit__)
            super(patched, tests).setUpClass()

        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        patched = type(cls)(cls.__name__, (cls,), {**names, "setUpClass": classmethod(setUpClass)})
        return patched
