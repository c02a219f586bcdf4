"""``torch.jit.load`` of an archive that PyTorch wrote."""

from __future__ import annotations

import io
import os
import pickle

from ...modules.module import Module
from ...serialization.archive import Archive
from ...serialization.reader import Storages
from . import pickles
from .program import Program

__all__ = ["is_archive", "load"]

_LATEST = 10  # of the versions of files that PyTorch reads


def is_archive(archive: Archive) -> bool:
    """Whether it has code beside its data."""
    return archive.has("constants.pkl")


def _version(archive: Archive) -> int:
    text = archive.record("version").strip() if archive.has("version") else b"1"
    if not text.isdigit():
        raise RuntimeError(f"torch.jit.load: the archive's version is {text[:20]!r}")
    version = int(text[:9])
    if version > _LATEST:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {version}, but the maximum supported version for reading is {_LATEST}. The file is "
            "newer than flambeau knows"
        )
    return version


def _unpickled(archive: Archive, name: str, program: Program, map_location):
    reader = pickles.Reader(io.BytesIO(archive.record(f"{name}.pkl")), encoding="utf-8")
    reader.program, reader.storage = program, Storages(archive, map_location, "data" if name == "data" else name)
    try:
        return reader.load()
    except pickle.UnpicklingError as error:
        why = str(error).partition("WeightsUnpickler error: ")
        raise RuntimeError(f"torch.jit.load: {name}.pkl: {why[2] or why[0]}") from None
    except EOFError as error:
        raise RuntimeError(f"torch.jit.load: {name}.pkl: {error}") from None


def load(archive: Archive, map_location=None) -> Module:
    """The module of an archive. RuntimeError for one that isn't sound, and for code that isn't TorchScript; NotImplementedError for what PyTorch has
    and flambeau doesn't."""
    if not archive.has("data.pkl"):
        raise RuntimeError(
            "torch.jit.load: the archive has no data.pkl: it was written before PyTorch 1.3, or is none of torch.jit.save's"
        )
    name = os.path.basename(archive.path) if isinstance(archive.path, str) else archive.prefix
    kept: dict[str, bytes] = {}

    def read(path: str) -> bytes | None:
        if path not in kept and archive.has(path):
            kept[path] = archive.record(path)
        return kept.get(path)

    program = Program(name, read, _version(archive))
    constants = _unpickled(archive, "constants", program, map_location)
    if type(constants) not in (tuple, list):
        raise RuntimeError(f"torch.jit.load: constants.pkl holds a {type(constants).__name__}, expected a tuple")
    program.constants = tuple(constants)
    try:
        module = _unpickled(archive, "data", program, map_location)
        if not isinstance(module, Module):
            raise RuntimeError(
                f"torch.jit.load: data.pkl holds a {type(module).__name__}, expected a module of the archive"
            )
        program.compile()
        pickles.tie(module)
    except RecursionError:
        raise RuntimeError("torch.jit.load: the archive's objects are nested too deeply") from None
    program.keep(
        {path: archive.record(path) for path in archive.names() if path.startswith("code/") and path.endswith(".py")}
    )
    return module
