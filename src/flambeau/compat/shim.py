"""The distribution ``torch`` whose import is flambeau: put into a virtual environment, or on the path of child processes.

A folder holds ``torch/__init__.py`` and ``functorch/__init__.py``, which install the hook, and ``torch-VERSION.dist-info`` with METADATA, RECORD
and INSTALLER, so that pip finds the requirement met and ``pip uninstall torch`` takes it away.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import sysconfig
import tempfile
import zlib
from pathlib import Path

from ..version import __version__
from .hook import METADATA, PACKAGES

__all__ = ["child_path", "find", "install", "remove", "status", "write"]

_INIT = '''"""``{package}`` is {module} here (``flambeau shim remove`` takes this away)."""

import flambeau.compat

flambeau.compat.install()
import sys as _sys  # noqa: E402

import {module}  # noqa: E402

_sys.modules["{package}"] = _sys.modules["{module}"]
'''


class ShimError(RuntimeError):
    """Why the shim can't be installed or removed here."""


def _files() -> dict[str, str]:
    """The files of the distribution by their path."""
    info = f"torch-{__version__}.dist-info"
    files = {
        **{f"{package}/__init__.py": _INIT.format(package=package, module=PACKAGES[package]) for package in PACKAGES},
        f"{info}/METADATA": METADATA,
        f"{info}/INSTALLER": "flambeau\n",
        f"{info}/top_level.txt": "".join(f"{package}\n" for package in PACKAGES),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: flambeau\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    return files


def write(folder: Path) -> None:
    """Write the distribution into ``folder``."""
    for name, text in _files().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def find(folder: Path | None = None) -> tuple[str, Path] | None:
    """("flambeau" or "pytorch", folder) of the distribution ``torch`` in ``folder`` or anywhere on the path; None where there is none."""
    where = {"path": [str(folder)]} if folder is not None else {"path": [p for p in sys.path if p]}
    for dist in importlib.metadata.Distribution.discover(name="torch", **where):
        at = getattr(dist, "_path", None)
        if at is None:
            continue  # the import hook of this process, no installation
        mine = (dist.read_text("INSTALLER") or "").strip() == "flambeau"
        return ("flambeau" if mine else "pytorch"), Path(at).parent
    return None


def _site_packages() -> Path:
    if sys.prefix == sys.base_prefix:
        raise ShimError(
            f"the shim goes into a virtual environment only, and {sys.prefix} is none; make one with: python -m venv .venv"
        )
    return Path(sysconfig.get_paths()["purelib"])


def install() -> Path:
    """Put the shim into this virtual environment; the folder. ShimError outside of one and where PyTorch is installed."""
    folder = _site_packages()
    found = find()
    if found is not None and found[0] == "pytorch":
        raise ShimError(
            f"PyTorch is installed in {found[1]}: uninstall it first (pip uninstall torch), or use: flambeau run"
        )
    if (folder / "torch").exists() and found is None:
        raise ShimError(f"{folder / 'torch'} exists and isn't the shim: remove it first")
    if found is not None:
        remove()
    write(folder)
    return folder


def remove() -> Path:
    """Take the shim out of this virtual environment; the folder it was in. ShimError where it isn't installed."""
    folder = _site_packages()
    found = find(folder)
    if found is None or found[0] != "flambeau":
        raise ShimError(f"the shim isn't installed in {folder}")
    for dist in importlib.metadata.Distribution.discover(name="torch", path=[str(folder)]):
        record = dist.read_text("RECORD") or ""
        for line in record.splitlines():
            (folder / line.split(",")[0]).unlink(missing_ok=True)
        packages = [folder / package for package in PACKAGES]
        for sub in (*(package / "__pycache__" for package in packages), *packages, Path(dist._path)):
            if sub.is_dir():
                for file in sub.iterdir():
                    if file.suffix == ".pyc":
                        file.unlink()
                if not any(sub.iterdir()):
                    sub.rmdir()
    return folder


def status() -> str:
    """One line: what ``import torch`` is in this environment."""
    found = find()
    if found is None:
        return "not installed: import torch finds nothing in this environment"
    kind, folder = found
    return (
        f"installed in {folder}: import torch is flambeau"
        if kind == "flambeau"
        else f"PyTorch itself is installed in {folder}"
    )


def child_path() -> str:
    """A folder with the shim, for PYTHONPATH of child processes. Written once for each content into the user's cache."""
    base = (
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        / "flambeau"
        / f"shim-{zlib.crc32(repr(_files()).encode()):08x}"
    )
    if not (base / "torch" / "__init__.py").exists():
        base.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(dir=base.parent))
        write(made)
        try:
            made.rename(base)
        except OSError:  # another process was first
            import shutil

            shutil.rmtree(made)
    return str(base)
