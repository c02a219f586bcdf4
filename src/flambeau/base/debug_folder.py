"""The folder of a run that TORCH_COMPILE_DEBUG=1 fills: each package writes into a folder of its own below it."""

from __future__ import annotations

import os
import time

from .forks import held_while_forking

__all__ = ["append", "directory", "enabled", "root", "set_root"]

_root: str | None = None
_run: tuple[str, int, str] | None = None  # root, process, folder


def enabled() -> bool:
    """Whether the environment asks for the folder."""
    return os.environ.get("TORCH_COMPILE_DEBUG", "0") == "1"


def set_root(path: str | None) -> None:
    """Where the folders of runs are made; None: where the environment says, or in the current folder."""
    global _root
    _root = path


def root() -> str:
    return _root or os.environ.get("TORCH_COMPILE_DEBUG_DIR") or os.path.join(os.getcwd(), "torch_compile_debug")


def directory(base: str | None = None) -> str:
    """The folder of this run, below ``base`` or :func:`root`: made once for each of them and each process."""
    global _run
    base = base or root()
    with held_while_forking:
        if _run is None or _run[:2] != (base, os.getpid()):
            stamp = (
                time.strftime("run_%Y_%m_%d_%H_%M_%S_") + f"{int(time.time() * 1e6) % 1000000:06d}-pid_{os.getpid()}"
            )
            _run = base, os.getpid(), os.path.join(base, stamp)
            os.makedirs(_run[2], exist_ok=True)
        return _run[2]


def append(package: str, text: str) -> None:
    """Add to ``PACKAGE/debug.log`` of this run."""
    folder = os.path.join(directory(), package)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "debug.log"), "a", encoding="utf-8") as f:
        f.write(text + "\n")
