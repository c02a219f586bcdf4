"""``import torch`` means flambeau: the import hook behind ``flambeau run``, :func:`install` and the shim.

Invariant: ``torch.x.y`` is the very module ``flambeau.x.y``, so that there is one class of each name, whichever way it was imported. The package
``functorch``, which comes with PyTorch, is ``flambeau.functorch``. The finder also answers ``importlib.metadata`` for the distribution ``torch``,
whose version libraries compare.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import pkgutil
import sys
import types

from ..base.nearest import Absent
from ..version import __version__

__all__ = ["METADATA", "install", "installed", "uninstall"]

METADATA = f"""Metadata-Version: 2.1
Name: torch
Version: {__version__}
Summary: flambeau under PyTorch's name
"""


# Modules that are run by `python -m`.
RUNNABLE = ("torch.distributed.launch", "torch.distributed.run")


class _Distribution(importlib.metadata.Distribution):
    """What ``importlib.metadata`` reads of the distribution ``torch``."""

    _TEXT = {"METADATA": METADATA, "top_level.txt": "torch\n", "INSTALLER": "flambeau\n"}

    def read_text(self, filename):
        return self._TEXT.get(filename)

    def locate_file(self, path):
        raise FileNotFoundError(f"the distribution torch is flambeau's import hook: it has no file {path}")


# Top-level packages of PyTorch's distribution, and where they are here.
PACKAGES = {"torch": "flambeau", "functorch": "flambeau.functorch"}


def _real(fullname: str) -> str | None:
    """The module of flambeau's that stands for a name, None for other packages' names."""
    top, dot, below = fullname.partition(".")
    return PACKAGES[top] + dot + below if top in PACKAGES else None


class TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``torch`` and all below it in flambeau."""

    def find_spec(self, fullname, path=None, target=None):
        real = _real(fullname)
        if real is None:
            return None
        if fullname.endswith(".__main__") and fullname[:-9] in RUNNABLE:
            return importlib.machinery.ModuleSpec(fullname, self)
        if real in sys.modules or importlib.util.find_spec(real) is not None:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        text = f"No module named {fullname!r} (flambeau has none of that name)"
        parent, _, last = fullname.rpartition(".")
        raise ModuleNotFoundError(Absent(text, last, lambda: _modules_of(parent), parent + "."), name=fullname)

    def create_module(self, spec):
        # The import system puts a spec on what it gets from here, so it gets a stand-in, which exec_module replaces.
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        name = module.__spec__.name
        found = sys.modules[name] = importlib.import_module(_real(name))
        if name in RUNNABLE and not hasattr(found, "__path__"):
            found.__path__ = []  # `python -m` looks for the __main__ of what it takes for a package

    def get_code(self, fullname):
        """What ``python -m`` runs: the module's ``main``."""
        return compile(f"import sys\nfrom {fullname[:-9]} import main\nsys.exit(main())", f"<{fullname}>", "exec")

    def find_distributions(self, context=None):
        name = getattr(context, "name", None)
        return [_Distribution()] if name in (None, "torch") else []


def _modules_of(parent: str) -> list[str]:
    """Names of the modules below one, as far as files, aliases and tables know them."""
    from .aliases import ALIASES
    from .namespaces import SECTIONS

    below = (_real(parent) or "").removeprefix("flambeau").removeprefix(".")
    package = sys.modules.get(("flambeau." + below).rstrip("."))
    files = [m.name for m in pkgutil.iter_modules(getattr(package, "__path__", []))]
    start = below + "." if below else ""
    rows = [p.removeprefix(start) for p in (*ALIASES, *SECTIONS) if p.startswith(start)]
    return sorted({*files, *(r for r in rows if r and "." not in r and "+" not in r)})


def installed() -> bool:
    """Whether ``import torch`` means flambeau in this process."""
    return any(isinstance(finder, TorchFinder) for finder in sys.meta_path)


def install() -> None:
    """From now on ``import torch`` and its submodules mean flambeau in this process (also where PyTorch is installed).

    RuntimeError when the real PyTorch has been imported already.
    """
    if installed():
        return
    present = sys.modules.get("torch")
    if present is not None and present is not sys.modules["flambeau"] and hasattr(present, "Tensor"):
        raise RuntimeError("flambeau.compat.install(): the real torch has been imported already; call install() before")
    sys.meta_path.insert(0, TorchFinder())
    sys.modules["flambeau"].__name__ = "torch"  # libraries that patch functions by path compare it


def uninstall() -> None:
    """Take the hook away again, and the names it gave."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, TorchFinder)]
    sys.modules["flambeau"].__name__ = "flambeau"
    for name in [n for n in sys.modules if _real(n) is not None]:
        del sys.modules[name]
