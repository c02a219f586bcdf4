"""Kernels by content: in memory for the process, object code on disk for the machine.

The name of a kernel is a hash of its text, of the CPU, of llvmlite's version and of the settings that change code; identical loop nests
of one graph or of many are therefore one kernel. Entries on disk are base/disk.py's; what is loaded is looked at first.

Kernels that wait for a thread that generates code go to it together, as one module (:class:`Batch`): what LLVM does for a module takes a fifth
of the time otherwise. Their object code is one entry, to which their names are links.
"""

from __future__ import annotations

import hashlib
import logging
import os
import platform
import struct
import sys
from typing import Any

from ... import _runtime
from ...base import disk
from ...base.forks import held_while_forking as _lock
from .. import metrics
from ..settings import config
from . import divisors, processor

__all__ = [
    "addresses",
    "begin",
    "directory",
    "is_object",
    "kernel_name",
    "load",
    "machine",
    "made",
    "object_code",
    "read",
    "write",
]

log = logging.getLogger("flambeau.inductor")

_loaded: dict[str, int] = {}
_waiting: dict[str, str] = {}  # kernels that no thread was told of yet, and their texts
_begun: dict[str, Any] = {}  # object code, or the batch that it comes from
_made: dict[str, bytes] = {}  # object code of late, which is on disk too
_version = "3"
_FEW, _MANY = 4, 12  # kernels of a batch: when a thread is free, when none is
_KEPT = 2000  # of _made
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
            f"{_version}|{_llvmlite()}|{processor.description()}|{processor.level()}|{config.key()}".encode()
        ).hexdigest()
    return _seed


def kernel_name(text: str) -> str:
    called = divisors.functions(True) if divisors.CALLED in text else ""
    return "k" + hashlib.sha256((machine() + text + called).encode()).hexdigest()[:32]


def _entry(name: str) -> str:
    return os.path.join(name[1], name)


def read(name: str) -> bytes | None:
    """An entry's content, None when it is absent, damaged, somebody else's or no object code of that name."""
    if config.force_disable_caches:
        return None
    body = disk.read_entry(disk.linked_entry(_entry(name)))
    if body is not None and not is_object(body, name):
        log.warning("cache entry %s is no object code of that name; it is made again", name)
        return None
    return body


def made(name: str) -> bytes | None:
    """Object code of a kernel of a graph that was compiled just now, if it is on disk."""
    return _made.get(name) or read(name)


def write(names: list[str], body: bytes) -> None:
    """Keep an entry, under each of the names. A cache that can't be written costs time, never an error."""
    if config.force_disable_caches:
        return
    if len(_made) > _KEPT:
        _made.clear()
    _made.update(dict.fromkeys(names, body))
    entry = _entry(names[0])
    if len(names) > 1:
        entry = _entry("b" + hashlib.sha256(repr(names).encode()).hexdigest()[:32])
    disk.write_entry(entry, body)
    for name in names if len(names) > 1 else ():
        if not disk.link_entry(_entry(name), entry):
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


class Batch:
    """Kernels that are one module to LLVM. ``texts``: name -> text."""

    def __init__(self, texts: dict[str, str]):
        from . import llvm

        self.names, self.text, self._code = list(texts), llvm.joined(texts.values()), None
        self._job = llvm.start(self.text)

    def code(self) -> bytes:
        """The object code of all. Raises RuntimeError with LLVM's message when a text is wrong."""
        if self._code is None:
            from . import llvm

            self._code = llvm.compile_text(self.text) if self._job is None else llvm.finish(self._job, self.text)
            metrics.compiled_kernels += len(self.names)
            write(self.names, self._code)
        return self._code


def object_code(name: str, text: str) -> bytes:
    """Object code of a kernel alone, from disk or from LLVM."""
    entry = _entry(name)
    data = read(name) if disk.linked_entry(entry) == entry else None
    if data is not None:
        metrics.cache_hits += 1
        return data
    from . import llvm

    metrics.compiled_kernels += 1
    return llvm.compile_text(text)


def begin(name: str, text: str) -> None:
    """The kernel will be wanted: read it, or have its code generated meanwhile."""
    with _lock:
        if name in _loaded or name in _begun or name in _waiting:
            return
        data = read(name)
        if data is not None:
            _begun[name] = data
            return
        from . import llvm

        if llvm.on_threads():
            _waiting[name] = text
            jobs, threads = _runtime.emit_load()
            if not jobs or len(_waiting) >= (_FEW if jobs < threads else _MANY):
                _hand_over(list(_waiting))


def _hand_over(names: list[str]) -> None:
    batch = Batch({n: _waiting.pop(n) for n in names})
    _begun.update(dict.fromkeys(names, batch))


def _code(name: str, text: str, optimise: bool) -> bytes:
    found = _begun.pop(name, None)
    if isinstance(found, Batch):
        return found.code()
    data = read(name) if found is None else found
    if data is not None:
        metrics.cache_hits += 1
        return data
    from . import llvm

    data = llvm.compile_text(text, optimise)
    metrics.compiled_kernels += 1
    write([name], data)
    return data


def addresses(kernels: dict[str, str], optimise: bool = False) -> dict[str, int]:
    """name -> address, for kernels given as name -> text (which defines that name). ``optimise``: see llvm.compile_text."""
    with _lock:
        last = [n for n in kernels if n in _waiting]
        if last:
            parts = min(_runtime.emit_load()[1], len(last))
            for k in range(parts):
                _hand_over(last[k::parts])
        load({n: _code(n, text, optimise) for n, text in kernels.items() if n not in _loaded})
        return {n: _loaded[n] for n in kernels}


def load(objects: dict[str, bytes]) -> dict[str, int]:
    """name -> address of kernels given as object code. LLVM, whose import costs more than all the rest of a warm start, is asked only for
    objects that csrc/runtime/object.c can't link."""
    with _lock:
        new: dict[bytes, list[str]] = {}
        for n, code in objects.items():
            if n not in _loaded:
                new.setdefault(code, []).append(n)
        found = _runtime.load_objects(list(new), list(map(tuple, new.values()))) if new else []
        if found is None:
            from . import llvm

            for code, names in new.items():
                _loaded.update(
                    llvm.load_object(code, names, llvm.new_engine())
                )  # others may have some of its functions
        else:
            _loaded.update(zip((n for names in new.values() for n in names), found))
        return {n: _loaded[n] for n in objects}
