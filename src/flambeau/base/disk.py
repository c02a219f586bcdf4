"""Entries of the caches on disk. They hold code that is run, so an entry counts only when nobody else can have written it.

A file is a digest of its name and content, followed by the content. It is written beside its place and renamed, so that readers never see
half of one. A link (a symbolic one) is another name for an entry of the same cache. Folders are made private (0700) whatever the umask. From the
cache's folder to the entry each step is opened in the one before, never through a link: a folder, link or file that belongs to somebody else, or that
others may write to, is not read and not used, and what is no file is not waited for. A cache that can't be used costs time, never an error.

What has not been used for a while, and the oldest of what is too much together, is removed by one of the writers, once a day (:func:`sweep`).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import importlib
import logging
import os
import stat
import time
from collections.abc import Iterator

from .config import Knob

__all__ = ["entries", "link_entry", "linked_entry", "read_entry", "root", "sweep", "trouble", "write_entry"]

log = logging.getLogger("flambeau")

_SIZE = Knob(4 << 30, "bytes that the cache on disk may take", ("FLAMBEAU_CACHE_BYTES",))
_DAYS = Knob(
    60.0, "days after which an entry of the cache on disk that nobody used is removed", ("FLAMBEAU_CACHE_DAYS",)
)

_ENTRIES = "entries"  # below the root, so that nothing is swept but entries
_SWEPT = "swept"
_DAY = 24 * 3600.0
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
_reported: set[str] = set()
_look = [0.0]  # when this process asks next whether to sweep


class _Foreign(OSError):
    """Something on the way to an entry is somebody else's."""


def _home(path: str) -> str:
    """``path`` with the user's home; without a home a private folder among the temporary ones."""
    expanded = os.path.expanduser(path)
    if not expanded.startswith("~"):
        return expanded
    # Imported where there is no home: it brings archives and random numbers.
    temporary = importlib.import_module("tempfile").gettempdir()
    return os.path.join(temporary, f"flambeau-{os.geteuid()}", expanded.partition(os.sep)[2])


def root() -> str:
    """Where the caches live: FLAMBEAU_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR, $XDG_CACHE_HOME/flambeau or ~/.cache/flambeau. An absolute path."""
    named = os.environ.get("FLAMBEAU_CACHE_DIR") or os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if named:
        return os.path.abspath(_home(named))
    base = os.environ.get("XDG_CACHE_HOME", "")
    return os.path.join(base if os.path.isabs(base) else _home("~/.cache"), "flambeau")


def _mine(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and (stat.S_ISLNK(found.st_mode) or not found.st_mode & _OTHERS)


def _refuse(path: str) -> _Foreign:
    if path not in _reported:
        _reported.add(path)
        log.warning("cache entry or folder %s is not used: it belongs to another user, or others may write to it", path)
    return _Foreign(f"{path} is not ours alone")


def _parts(name: str) -> list[str]:
    """The steps to an entry. ValueError for a name that leaves the cache."""
    parts = name.split(os.sep)
    if not name or any(p in ("", os.curdir, os.pardir) for p in parts):
        raise ValueError(f"{name!r} is no name of a cache entry")
    return parts


def _step(part: str, at: int | None, path: str, make: bool) -> int:
    """A descriptor of the folder ``part`` in the folder ``at``, ours alone."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(part, 0o700, dir_fd=at)
    # The cache's own folder may be reached through links: its name is the user's.
    handle = os.open(part, _DIRECTORY | (0 if at is None else os.O_NOFOLLOW), dir_fd=at)
    if not _mine(os.fstat(handle)):
        os.close(handle)
        raise _refuse(path)
    return handle


@contextlib.contextmanager
def _folder(parts: list[str], make: bool = False) -> Iterator[int]:
    """A descriptor of the folder below the entries' one. OSError when it is absent, or when a step isn't ours."""
    path = root()
    if make:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    at = None
    try:
        for part in (path, _ENTRIES, *parts):
            path = os.path.join(path, part)
            below = _step(part, at, path, make)
            if at is not None:
                os.close(at)
            at = below
        yield at
    finally:
        if at is not None:
            os.close(at)


def trouble() -> str | None:
    """Why entries can't be kept in the cache's folder, which is made if it is absent; None when they can."""
    try:
        with _folder([], make=True) as folder:
            return None if os.access(".", os.W_OK, dir_fd=folder) else os.strerror(errno.EACCES)
    except OSError as error:
        return error.strerror or str(error)


def _digest(name: str, body: bytes) -> bytes:
    return hashlib.sha256(os.path.basename(name).encode() + b"\0" + body).digest()


_MOST = 1 << 30
"""Bytes of an entry: the largest, compiled graphs with their constants, have some MiB."""


def read_entry(name: str) -> bytes | None:
    """Content of the entry ``name`` (a path below the cache's folder); None when it is absent, damaged or not ours. Damage is logged."""
    *parts, last = _parts(name)
    try:
        with _folder(parts) as folder:
            # Not blocking: a pipe in its place would be waited for.
            handle = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(handle, "rb") as f:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode) or not _mine(found):
                    raise _refuse(os.path.join(root(), _ENTRIES, name))
                # A file that was made longer than its disk (its end are holes) isn't read into memory.
                data = f.read() if found.st_size <= _MOST else b""
                if time.time() - found.st_mtime > _DAY:
                    os.utime(handle)  # it is in use: see sweep()
    except OSError:
        return None
    body = data[32:]
    if _digest(name, body) != data[:32]:
        log.warning("cache entry %s is damaged (checksum); it is made again", name)
        return None
    return body


def _put(folder: int, last: str, make) -> None:
    """``make(name)`` beside the place of ``last`` and a rename. Nothing is left behind when that fails."""
    beside = f"tmp{os.urandom(8).hex()}"
    try:
        make(beside)
        os.replace(beside, last, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside, dir_fd=folder)
        raise


def _tell_unwritable(error: OSError) -> None:
    """One line a process for each cache's folder; a folder of somebody else's has been told already."""
    folder = root()
    if isinstance(error, _Foreign) or folder in _reported:
        return
    _reported.add(folder)
    log.warning(
        "the cache %s can't be written (%s): the next process compiles again; FLAMBEAU_CACHE_DIR names another folder",
        folder,
        error.strerror or error,
    )


def write_entry(name: str, body: bytes) -> None:
    """Keep an entry. Nothing is left behind when that fails; one that is too large isn't kept."""
    *parts, last = _parts(name)
    if len(body) + 32 > _MOST:
        log.info("the cache entry %s of %d bytes is too large to keep", name, len(body))
        return

    def make(beside):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(beside, flags, 0o600, dir_fd=folder), "wb") as f:
            f.write(_digest(name, body) + body)

    try:
        with _folder(parts, make=True) as folder:
            _put(folder, last, make)
    except OSError as e:
        log.info("cannot write the cache entry %s: %s", name, str(e))
        _tell_unwritable(e)
    else:
        _sweep_daily()


def linked_entry(name: str) -> str:
    """The entry that ``name`` is a link to, else ``name``: a link that isn't ours, or that leads out of the cache, counts for nothing."""
    *parts, last = _parts(name)
    try:
        with _folder(parts) as folder:
            if not _mine(os.stat(last, dir_fd=folder, follow_symlinks=False)):
                return name
            to = os.path.normpath(os.path.join(*parts, os.readlink(last, dir_fd=folder)))
        _parts(to)
    except (OSError, ValueError):
        return name
    return to


def link_entry(name: str, to: str) -> bool:
    """Make ``name`` another name of the entry ``to``; False where that can't be done."""
    *parts, last = _parts(name)
    target = os.path.relpath(to, os.path.join(*parts))
    try:
        with _folder(parts, make=True) as folder:
            _put(folder, last, lambda beside: os.symlink(target, beside, dir_fd=folder))
    except (OSError, NotImplementedError) as e:
        log.info("cannot link the cache entry %s: %s", name, str(e))
        return False
    return True


# -- what is too old, or too much --------------------------------------------------------------------------------------


def _files(parts: list[str]) -> Iterator[tuple[list[str], str, os.stat_result]]:
    """(folders, name, status) of the entries and links below a folder; folders that aren't ours are left out."""
    try:
        with _folder(parts) as folder:
            found = [(e.name, e.stat(follow_symlinks=False)) for e in os.scandir(folder)]
    except OSError:
        return
    for name, status in found:
        if stat.S_ISDIR(status.st_mode):
            yield from _files([*parts, name])
        elif _mine(status) and (parts or name != _SWEPT):
            yield parts, name, status


def entries() -> Iterator[tuple[str, int | None]]:
    """(name, bytes) of all entries that are ours; None for the bytes of a link, which is another name of an entry."""
    for parts, name, status in _files([]):
        yield os.path.join(*parts, name), None if stat.S_ISLNK(status.st_mode) else status.st_size


def sweep(limit: int, days: float) -> int:
    """Remove entries that were not used for so many days, then those unused the longest until the rest takes no more than ``limit`` bytes. The
    number that was removed. Links count for nothing and are removed by age; one whose entry is gone is made again with it."""
    now = time.time()
    found = sorted(_files([]), key=lambda f: -f[2].st_mtime)
    kept = removed = 0
    for parts, name, status in found:
        kept += 0 if stat.S_ISLNK(status.st_mode) else status.st_blocks * 512
        # Nothing younger than an hour: somebody may be about to use it, or is still writing it.
        if now - status.st_mtime < 3600 or (kept <= limit and now - status.st_mtime <= days * _DAY):
            continue
        with contextlib.suppress(OSError), _folder(parts) as folder:
            os.unlink(name, dir_fd=folder)
            removed += 1
    return removed


def _sweep_daily() -> None:
    """Sweep, unless some process has in the last day."""
    if time.monotonic() < _look[0]:
        return
    _look[0] = time.monotonic() + _DAY
    try:
        with _folder([]) as folder:
            handle = os.open(
                _SWEPT, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600, dir_fd=folder
            )
            try:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode) or found.st_size and time.time() - found.st_mtime < _DAY:
                    return
                os.pwrite(handle, b"1", 0)
            finally:
                os.close(handle)
        removed = sweep(_SIZE.initial(), _DAYS.initial())
        if removed:
            log.info("%d entries of the cache in %s were removed: old, or too much together", removed, root())
    except OSError as e:
        log.info("cannot sweep the cache: %s", str(e))
