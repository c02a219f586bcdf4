"""``flambeau run --missing``: what a program asked ``torch`` for and didn't find, with file and line.

Only in this mode the namespaces get a class of their own, whose ``__getattr__`` sees what a look-up didn't find; so does Tensor.
"""

from __future__ import annotations

import collections
import importlib
import os
import sys
import types

from . import hook

__all__ = ["report", "watch"]

_IMPORT = ("<frozen", os.path.dirname(importlib.__file__) + os.sep)
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_found: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)


def _note(name: str) -> None:
    """Remember who asked for ``name``: the first frame outside of the import system. What flambeau asks itself for doesn't count."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith(_IMPORT):
        frame = frame.f_back
    if frame is not None and not frame.f_code.co_filename.startswith(_HERE):
        _found[name][f"{frame.f_code.co_filename}:{frame.f_lineno}"] += 1


class _Watched(types.ModuleType):
    def __getattr__(self, name):
        if not (name.startswith("__") and name.endswith("__")):
            _note("torch" + self.__name__.removeprefix("flambeau").removeprefix("torch") + "." + name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)


def _missing_member(self, name):
    if not name.startswith("__"):
        _note(f"torch.Tensor.{name}")
    raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)


class _Finder(hook.TorchFinder):
    def find_spec(self, fullname, path=None, target=None):
        try:
            return super().find_spec(fullname, path, target)
        except ModuleNotFoundError:
            _note(fullname + " (module)")
            raise

    def exec_module(self, module):
        name = module.__spec__.name
        super().exec_module(module)
        _class(sys.modules[name])


def _class(module) -> None:
    if type(module) is types.ModuleType:
        module.__class__ = _Watched


def watch() -> None:
    """Record from now on, in this process."""
    sys.meta_path[:] = [_Finder() if isinstance(f, hook.TorchFinder) else f for f in sys.meta_path]
    root = sys.modules["flambeau"]
    _class(root)
    for name, module in list(sys.modules.items()):
        if name.startswith("flambeau.") and name.count(".") == 1:
            _class(module)
    root.Tensor.__getattr__ = _missing_member


def report(file) -> None:
    """Write the list: name, how often, where first."""
    if not _found:
        print("flambeau run --missing: everything that was asked for is there", file=file)
        return
    print(
        f"flambeau run --missing: {len(_found)} name{'s were' if len(_found) > 1 else ' was'} asked for and not found",
        file=file,
    )
    width = max(map(len, _found))
    for name, places in sorted(_found.items(), key=lambda item: -sum(item[1].values())):
        times = sum(places.values())
        where = ", ".join(list(places)[:3]) + (", ..." if len(places) > 3 else "")
        print(f"  {name:<{width}}  {times:>4}x  {where}", file=file)
