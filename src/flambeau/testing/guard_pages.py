"""Arrays between pages that nobody may touch: a kernel that reads or writes outside its buffers ends the process with a fault.

A fault can't be caught, so a check runs in an interpreter of its own (`run_alone`)."""

import ctypes
import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

available = sys.platform == "linux"  # mprotect() through ctypes is used as Linux has it


class GuardPages:
    """`GuardPages(at_end)(array)`: a copy, of the array's shape and dtype in C order, right behind a page that can't be touched, or right before
    one. The memory lives as long as the array."""

    def __init__(self, at_end: bool):
        self.at_end = at_end
        self._protect = ctypes.CDLL(None, use_errno=True).mprotect

    def __call__(self, array: np.ndarray) -> np.ndarray:
        page, size = mmap.PAGESIZE, array.nbytes
        room = -(-max(size, 1) // page) * page
        area = mmap.mmap(-1, room + 2 * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(area))
        for place in (start, start + page + room):
            if self._protect(ctypes.c_void_p(place), ctypes.c_size_t(page), 0):
                raise OSError(ctypes.get_errno(), "mprotect failed")
        offset = page + (room - size if self.at_end else 0)
        out = np.frombuffer(area, array.dtype, array.size, offset).reshape(array.shape)
        out[...] = array
        return out


def run_alone(file: str, call: str, timeout: float = 300, **environment: str) -> None:
    """Runs `call`, an expression on the module that `file` is, in a new interpreter with these environment variables on top of this one's; raises
    subprocess.CalledProcessError if it doesn't end with 0. The module's folder and then this interpreter's path are searched for what it imports."""
    path = Path(file)
    folders = [str(path.parent), *map(os.path.abspath, filter(None, sys.path))]
    code = f"import sys; sys.path += [p for p in {folders!r} if p not in sys.path]; import {path.stem} as module; module.{call}"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, **environment}, check=True, timeout=timeout)
