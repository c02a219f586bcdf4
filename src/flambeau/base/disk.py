"""Entries of the caches on disk. They hold code that is run, so an entry counts only when nobody else can have written it.

A file is a digest of its name and content, followed by the content. It is written beside its place and renamed, so that readers never see
half of one. A link (a symbolic one) is another name for an entry. Folders are made private (0700) whatever the umask; a folder or file that
belongs to somebody else, or that others may write to, is not read and not used. A cache that can't be used costs time, never an error.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile

__all__ = ["link_entry", "linked_entry", "read_entry", "root", "write_entry"]

log = logging.getLogger("flambeau")

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_reported: set[str] = set()


def root() -> str:
    """Where the caches live: FLAMBEAU_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR or ~/.cache/flambeau."""
    return (
        os.environ.get("FLAMBEAU_CACHE_DIR")
        or os.environ.get("TORCHINDUCTOR_CACHE_DIR")
        or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "flambeau")
    )


def _mine(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & _OTHERS)


def _refuse(what: str, path: str) -> None:
    if path not in _reported:
        _reported.add(path)
        log.warning("%s %s is not used: it belongs to another user, or others may write to it", what, path)


def _folder(name: str) -> str | None:
    """The private folder of an entry below the root, made when missing; None when one on the way isn't ours."""
    path = root()
    if not os.path.isdir(path):
        os.makedirs(path, mode=0o700, exist_ok=True)
        os.chmod(path, 0o700)
    for part in os.path.dirname(name).split(os.sep):
        path = os.path.join(path, part)
        try:
            os.mkdir(path, 0o700)
            os.chmod(path, 0o700)
        except FileExistsError:
            if not _mine(os.lstat(path)):
                _refuse("cache folder", path)
                return None
    return path


def _digest(name: str, body: bytes) -> bytes:
    return hashlib.sha256(os.path.basename(name).encode() + b"\0" + body).digest()


def read_entry(name: str) -> bytes | None:
    """Content of the entry ``name`` (a path below the root); None when it is absent, damaged or not ours. Damage is logged."""
    path = os.path.join(root(), name)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
        with os.fdopen(handle, "rb") as f:
            found = os.fstat(f.fileno())
            if not stat.S_ISREG(found.st_mode) or not _mine(found) or not _mine(os.lstat(os.path.dirname(path))):
                _refuse("cache entry", path)
                return None
            data = f.read()
    except OSError:
        return None
    body = data[32:]
    if _digest(name, body) != data[:32]:
        log.warning("cache entry %s is damaged (checksum); it is made again", path)
        return None
    return body


def write_entry(name: str, body: bytes) -> None:
    """Keep an entry. Nothing is left behind when that fails."""
    made = None
    try:
        folder = _folder(name)
        if folder is None:
            return
        handle, made = tempfile.mkstemp(dir=folder)
        with os.fdopen(handle, "wb") as f:
            f.write(_digest(name, body) + body)
        os.replace(made, os.path.join(folder, os.path.basename(name)))
        made = None
    except OSError as e:
        log.info("cannot write the cache entry %s: %s", name, e)
    finally:
        if made is not None:
            try:
                os.unlink(made)
            except OSError as e:
                log.info("cannot remove %s: %s", made, e)


def linked_entry(name: str) -> str:
    """The entry that ``name`` is a link to, else ``name``."""
    try:
        to = os.readlink(os.path.join(root(), name))
    except OSError:
        return name
    return os.path.normpath(os.path.join(os.path.dirname(name), to))


def link_entry(name: str, to: str) -> bool:
    """Make ``name`` another name of the entry ``to``; False where that can't be done."""
    try:
        folder = _folder(name)
        if folder is None:
            return False
        target, path = os.path.relpath(to, os.path.dirname(name)), os.path.join(folder, os.path.basename(name))
        try:
            os.symlink(target, path)
        except FileExistsError:
            beside = f"{path}.{os.getpid()}"
            os.symlink(target, beside)
            os.replace(beside, path)
    except (OSError, NotImplementedError) as e:
        log.info("cannot link the cache entry %s: %s", name, e)
        return False
    return True
