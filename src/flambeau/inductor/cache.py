"""Kernels by content: in memory for the process, object code on disk for the machine.

The name of a kernel is a hash of its text, of the CPU, of llvmlite's version and of the settings that change code; identical loop nests
of one graph or of many are therefore one kernel. A file is a checksum followed by the object code, written beside its final name and renamed,
so that readers never see half of it; one that fails its checksum is reported once and made again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile

from ..base.forks import held_while_forking as _lock
from . import metrics
from .settings import config

__all__ = ["addresses", "directory", "kernel_name", "read", "write"]

log = logging.getLogger("flambeau.inductor")

_loaded: dict[str, int] = {}
_version = "1"


def directory() -> str:
    """Where cached code lives: FLAMBEAU_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR or ~/.cache/flambeau."""
    return (
        os.environ.get("FLAMBEAU_CACHE_DIR")
        or os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "flambeau")
    )


_seed: str | None = None


def _llvmlite() -> str:
    """llvmlite's version and its library's size and date, without importing it."""
    import importlib.util

    spec = importlib.util.find_spec("llvmlite")
    folder = spec.submodule_search_locations[0]
    with open(os.path.join(folder, "_version.py")) as f:
        text = f.read()
    library = os.path.join(folder, "binding", "libllvmlite.so")
    found = os.stat(library) if os.path.exists(library) else None
    return f"{text}|{found and (found.st_size, int(found.st_mtime))}"


def _machine() -> str:
    """What a kernel's code depends on besides its text. Read without importing LLVM: a warm start shouldn't pay for it."""
    global _seed
    if _seed is None:
        cpu = ""
        try:
            with open("/proc/cpuinfo") as f:
                cpu = "".join(
                    line
                    for line in f.read().split("\n\n")[0].splitlines(True)
                    if line.startswith(("model name", "flags", "vendor"))
                )
        except OSError:
            import platform

            cpu = platform.processor() + platform.machine()
        _seed = hashlib.sha256(f"{_version}|{_llvmlite()}|{cpu}|{config.key()}".encode()).hexdigest()
    return _seed


def kernel_name(text: str) -> str:
    return "k" + hashlib.sha256((_machine() + text).encode()).hexdigest()[:32]


def read(name: str) -> bytes | None:
    """An entry's content, None when it is absent or damaged."""
    if config.force_disable_caches:
        return None
    path = os.path.join(directory(), name[1:3], name)
    try:
        with open(path, "rb") as f:
            data = f.read()
    except OSError:
        return None
    body = data[32:]
    if hashlib.sha256(body).digest() != data[:32]:
        log.warning("cache entry %s is damaged (checksum); it is made again", path)
        return None
    return body


def write(name: str, body: bytes) -> None:
    """Keep an entry. A cache that can't be written costs time, never an error."""
    if config.force_disable_caches:
        return
    folder = os.path.join(directory(), name[1:3])
    try:
        os.makedirs(folder, exist_ok=True)
        handle, path = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as f:
            f.write(hashlib.sha256(body).digest() + body)
        os.replace(path, os.path.join(folder, name))
    except OSError as e:
        log.info("cannot write the cache in %s: %s", folder, e)


def addresses(kernels: dict[str, str], optimise: bool = False) -> dict[str, int]:
    """name -> address, for kernels given as name -> text (which defines that name). ``optimise``: see llvm.compile_text."""
    from . import llvm

    with _lock:
        missing = [n for n in kernels if n not in _loaded]
        objects: dict[str, bytes] = {}
        for name in missing:
            data = read(name)
            if data is None:
                data = llvm.compile_text(kernels[name], optimise)
                metrics.compiled_kernels += 1
                write(name, data)
            else:
                metrics.cache_hits += 1
            objects[name] = data
        for name, data in objects.items():
            _loaded.update(llvm.load_object(data, [name]))
        return {n: _loaded[n] for n in kernels}
