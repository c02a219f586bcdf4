"""Kernels by content: in memory for the process, object code on disk for the machine.

The name of a kernel is a hash of its text, of the CPU, of llvmlite's version and of the settings that change code; identical loop nests
of one graph or of many are therefore one kernel. Entries on disk are base/disk.py's; what is loaded is looked at first.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import struct
import sys
from typing import Any

from .. import _runtime
from ..base import disk
from ..base.forks import held_while_forking as _lock
from . import metrics, processor
from .settings import config

__all__ = [
    "addresses",
    "begin",
    "directory",
    "is_object",
    "kernel_name",
    "load",
    "machine",
    "object_code",
    "read",
    "write",
]

log = logging.getLogger("flambeau.inductor")

_loaded: dict[str, int] = {}
_begun: dict[str, Any] = {}  # object code, or the job that makes it
_version = "1"
directory = disk.root
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


def machine() -> str:
    """What a kernel's code depends on besides its text. Read without importing LLVM: a warm start shouldn't pay for it."""
    global _seed
    if _seed is None:
        _seed = hashlib.sha256(
            f"{_version}|{_llvmlite()}|{processor.description()}|{config.key()}".encode()
        ).hexdigest()
    return _seed


def kernel_name(text: str) -> str:
    return "k" + hashlib.sha256((machine() + text).encode()).hexdigest()[:32]


def _entry(name: str) -> str:
    return os.path.join(name[1:3], name)


def read(name: str) -> bytes | None:
    """An entry's content, None when it is absent, damaged, somebody else's or no object code of that name."""
    if config.force_disable_caches:
        return None
    body = disk.read_entry(_entry(name))
    if body is not None and not is_object(body, name):
        log.warning("cache entry %s is no object code of that name; it is made again", name)
        return None
    return body


def write(name: str, body: bytes) -> None:
    """Keep an entry. A cache that can't be written costs time, never an error."""
    if not config.force_disable_caches:
        disk.write_entry(_entry(name), body)


_MACHINES = {"x86_64": 62, "aarch64": 183}


def is_object(data: bytes, name: str) -> bool:
    """Whether this is a relocatable ELF object for this machine, whole, with a symbol ``name``. LLVM ends the process on one that isn't."""
    if sys.platform != "linux":
        return True
    if len(data) < 64 or data[:7] != b"\x7fELF\x02\x01\x01":
        return False
    kind, machine = struct.unpack_from("<HH", data, 16)
    if kind != 1 or machine != _MACHINES.get(platform.machine(), machine):
        return False
    (at,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    if size != 64 or not count or at + size * count > len(data):
        return False
    for k in range(count):
        (section,) = struct.unpack_from("<I", data, at + 64 * k + 4)
        offset, length = struct.unpack_from("<QQ", data, at + 64 * k + 24)
        if section != 8 and offset + length > len(data):  # 8: SHT_NOBITS
            return False
    return b"\0" + name.encode() + b"\0" in data


def object_code(name: str, text: str, optimise: bool = False) -> bytes:
    """Object code of a kernel, from disk or from LLVM."""
    job = _begun.pop(name, None)
    data = job if isinstance(job, bytes) else read(name) if job is None else None
    if data is not None:
        metrics.cache_hits += 1
        return data
    from . import llvm

    data = llvm.compile_text(text, optimise) if job is None else llvm.finish(job, text)
    metrics.compiled_kernels += 1
    write(name, data)
    return data


def begin(name: str, text: str) -> None:
    """The kernel will be wanted: read it, or have its code generated meanwhile."""
    with _lock:
        if name in _loaded or name in _begun:
            return
        data = read(name)
        if data is None:
            from . import llvm

            data = llvm.start(text)
        if data is not None:
            _begun[name] = data


def addresses(kernels: dict[str, str], optimise: bool = False) -> dict[str, int]:
    """name -> address, for kernels given as name -> text (which defines that name). ``optimise``: see llvm.compile_text."""
    with _lock:
        load({n: object_code(n, text, optimise) for n, text in kernels.items() if n not in _loaded})
        return {n: _loaded[n] for n in kernels}


def load(objects: dict[str, bytes]) -> dict[str, int]:
    """name -> address of kernels given as object code. LLVM, whose import costs more than all the rest of a warm start, is asked only for
    objects that csrc/object.c can't link."""
    with _lock:
        new = [n for n in objects if n not in _loaded]
        found = _runtime.load_objects([objects[n] for n in new], new) if new else []
        if found is None:
            from . import llvm

            for n in new:
                _loaded.update(llvm.load_object(objects[n], [n]))
        else:
            _loaded.update(zip(new, found))
        return {n: _loaded[n] for n in objects}
