"""Saving and loading: ``torch.save`` and ``torch.load`` in PyTorch's formats, both ways.

``writer.py`` pickles with PyTorch's names, ``archive.py`` is the zip file, ``reader.py`` puts tensors on their storages, ``unpickler.py``
is the restricted unpickler that is the default: loading a file runs none of its code.
Invariant: what a file claims (sizes, offsets, names) is checked before
memory is touched.
"""

from __future__ import annotations

import enum
import os
from collections.abc import Callable
from typing import IO, Any, TypeAlias

from .reader import read
from .safe import add_safe_globals, clear_safe_globals, get_safe_globals, get_unsafe_globals_in_checkpoint, safe_globals
from .writer import write, write_stream

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "add_safe_globals",
    "clear_safe_globals",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
]

FILE_LIKE: TypeAlias = str | os.PathLike | IO[bytes]  # names that libraries use in annotations
MAP_LOCATION: TypeAlias = Callable | str | dict | Any | None


def save(
    obj,
    f,
    pickle_module=None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record=False,
):
    """Write ``obj`` to ``f`` (path or binary file) in PyTorch's zip format, or in the one before PyTorch 1.6
    (``_use_new_zipfile_serialization=False``). Tensors that share memory share it in the file; RuntimeError when they see it as different dtypes."""
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError(
            f"expected 'f' to be a string, a path, or an object with a 'write' attribute, got {type(f).__name__}"
        )
    if isinstance(f, (str, os.PathLike)) and not os.path.isdir(parent := os.path.dirname(os.fspath(f)) or os.curdir):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    (write if _use_new_zipfile_serialization else write_stream)(obj, f, pickle_protocol)


def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args,
):
    """The object that :func:`save` (or PyTorch) wrote to ``f``.

    ``weights_only`` (the default) allows tensors, containers, numbers, strings and the names added by :func:`add_safe_globals`; whatever else is
    refused with UnpicklingError, naming it. ``map_location``: a device or its name, a dict of names, or a function. ``mmap``: map the file instead
    of reading it. RuntimeError for files that are no checkpoints, are broken, or claim more than they hold.
    """
    if weights_only is None:
        weights_only = (
            os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() not in ("1", "y", "yes", "true")
            and pickle_module is None
        )
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true"):
        weights_only = True
    pickle_load_args.setdefault("encoding", "utf-8")
    return read(f, map_location, weights_only=weights_only, mmap=bool(mmap), **pickle_load_args)


class SourceChangeWarning(Warning):
    """Kept for programs that filter it."""


class LoadEndianness(enum.Enum):
    """Byte orders of files."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_options: dict = {"endianness": None, "crc32": True, "mmap": 2}


def get_default_load_endianness():
    """The byte order of files that don't tell theirs; None is this machine's."""
    return _options["endianness"]


def set_default_load_endianness(endianness) -> None:
    """Byte order of files that don't say theirs; they are taken as little-endian. TypeError for what isn't a LoadEndianness."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    if endianness is LoadEndianness.BIG:
        raise NotImplementedError("set_default_load_endianness: files without a byte order are taken as little-endian")
    _options["endianness"] = endianness


def get_crc32_options() -> bool:
    """What ``set_crc32_options`` set."""
    return _options["crc32"]


def set_crc32_options(compute_crc32: bool) -> None:
    """Remembered: checksums are always written, zip readers expect them."""
    _options["crc32"] = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """The flags with which ``load(mmap=True)`` maps files."""
    return _options["mmap"]


def set_default_mmap_options(flags: int) -> None:
    """Only private mappings (the default) are made."""
    import mmap

    if flags != mmap.MAP_PRIVATE:
        raise NotImplementedError("set_default_mmap_options: only mmap.MAP_PRIVATE is supported")


class skip_data:  # noqa: N801
    """PyTorch's block in which saving and loading leave the bytes of storages out."""

    def __init__(self, materialize_fake_tensors: bool = False):
        raise NotImplementedError(
            "torch.serialization.skip_data is not built; load with map_location='meta' for tensors without data"
        )


def register_package(priority, tagger, deserializer) -> None:
    """NotImplementedError: a file's storages go to the devices that flambeau has; others can't be registered."""
    raise NotImplementedError(
        "torch.serialization.register_package: storages of other devices than flambeau's own aren't built"
    )
