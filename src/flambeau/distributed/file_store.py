"""A store in a file that all processes can open and lock: one of local disks, or a shared one with working locks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading

from .server import frame, parse
from .store import Store, added, swapped

__all__ = ["FileStore"]

_SET, _DELETE = range(2)


class FileStore(Store):
    """``FileStore(file_name, world_size)``: the file is a log of what was set, made when it isn't there, removed when the last of
    ``world_size`` stores is gone (never when ``world_size`` isn't given)."""

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        self.path, self._size = os.fspath(file_name), world_size
        self._data: dict[str, bytes] = {}
        self._read = 0
        self._thread_lock = threading.RLock()
        self._add("flambeau/users", 1)

    @contextlib.contextmanager
    def _locked(self):
        """The file, locked, and all that others have written to it read."""
        with self._thread_lock, open(self.path, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_size < self._read:  # removed and made anew
                self._data.clear()
                self._read = 0
            file.seek(self._read)
            log = file.read()
            at = 0
            while at < len(log):
                n = int.from_bytes(log[at : at + 4], "big")
                op, (key, *value) = parse(log[at + 4 : at + 4 + n])
                at += 4 + n
                if op == _SET:
                    self._data[key.decode()] = value[0]
                else:
                    self._data.pop(key.decode(), None)
            self._read += at
            yield file

    def _write(self, file, op: int, key: str, *value: bytes) -> None:
        record = frame(op, [key.encode(), *value])
        file.write(record)
        file.flush()
        self._read += len(record)
        if op == _SET:
            self._data[key] = value[0]
        else:
            self._data.pop(key, None)

    def _get(self, key):
        with self._locked():
            return self._data[key]

    def _set(self, values):
        with self._locked() as file:
            for key, value in values.items():
                self._write(file, _SET, key, value)

    def _add(self, key, amount):
        with self._locked() as file:
            value = added(self._data.get(key), amount)
            self._write(file, _SET, key, str(value).encode())
            return value

    def _compare_set(self, key, expected, desired):
        with self._locked() as file:
            writes, value = swapped(self._data.get(key), expected, desired)
            if writes:
                self._write(file, _SET, key, value)
            return value

    def _check(self, keys):
        with self._locked():
            return all(k in self._data for k in keys)

    def _delete(self, key):
        with self._locked() as file:
            there = key in self._data
            if there:
                self._write(file, _DELETE, key)
            return there

    def _append(self, key, value):
        with self._locked() as file:
            self._write(file, _SET, key, self._data.get(key, b"") + value)

    def num_keys(self) -> int:
        with self._locked():
            return len(self._data)

    def list_keys(self) -> list[str]:
        with self._locked():
            return list(self._data)

    def __del__(self):
        # The interpreter may be ending, the folder gone.
        with contextlib.suppress(Exception):
            if self._size > 0 and os.path.exists(self.path) and self._add("flambeau/gone", 1) >= self._size:
                os.unlink(self.path)
