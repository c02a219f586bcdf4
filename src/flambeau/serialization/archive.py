"""PyTorch's zip archive: records under one top folder, stored without compression, their data aligned to 64 bytes."""

from __future__ import annotations

import contextlib
import os
import struct
import zipfile
import zlib

import numpy as np

__all__ = ["Archive", "ArchiveWriter"]

ALIGNMENT = 64
_PACKED, _GROWTH = 1 << 26, 16  # compressed records may have so many bytes, or so many times the archive's
_LIMIT = 1 << 40  # bytes of a record: beyond, the header is a lie


def _broken(why: str) -> RuntimeError:
    return RuntimeError(f"PytorchStreamReader failed reading zip archive: {why}")


def _begins_archive(file) -> bool:
    file.seek(0)
    return file.read(4) == b"PK\x03\x04"


class Archive:
    """Records of an archive, by name below its top folder. RuntimeError for what isn't a sound archive."""

    def __init__(self, file, path: str | None, owned: bool):
        self.file, self.path, self._owned = file, path, owned
        try:
            self.zip = zipfile.ZipFile(file)
            names = self.zip.namelist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            raise _broken(f"failed finding central directory ({error})") from None
        if not names:
            raise _broken("it has no records")
        # Behind a second archive's directory the first one is out of sight: a stream that objects were saved to one after the other.
        first = min(info.header_offset for info in self.zip.infolist())
        if first > 0 and _begins_archive(file):
            raise _broken(
                "the file holds several archives, one behind the other: save each object to a file of its own"
            )
        self.prefix = names[0].split("/")[0]
        for name in names:
            parts = name.split("/")
            if name.startswith(("/", "\\")) or ".." in parts or "\\" in name or parts[0] != self.prefix:
                raise _broken(f"record name {name!r} leaves the archive's folder {self.prefix!r}")
        if len(set(names)) != len(names):
            raise _broken("two records have one name")
        self._check_sizes()

    def _check_sizes(self) -> None:
        """RuntimeError for records that overlap, and for an archive that grows too much when it is read."""
        size = self.file.seek(0, os.SEEK_END)
        records = sorted(self.zip.infolist(), key=lambda info: info.header_offset)
        ends = [info.header_offset for info in records[1:]] + [size]
        for info, end in zip(records, ends):
            if info.header_offset + 30 + info.compress_size > end:
                raise _broken(f"record {info.filename} overlaps another or ends beyond the file")
        packed = sum(info.file_size for info in records if info.compress_type != zipfile.ZIP_STORED)
        if packed > max(_PACKED, _GROWTH * size):
            raise _broken(
                f"its compressed records grow from {size} to {packed} bytes, more than {_GROWTH} times; unpack and store them to load it"
            )

    @classmethod
    def open(cls, f, *, mmap: bool = False):
        """From a path or a seekable binary file."""
        if isinstance(f, (str, os.PathLike)):
            return cls(open(f, "rb"), os.fspath(f), True)  # noqa: SIM115
        return cls(f, None, False)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.zip.close()
        if self._owned:
            self.file.close()

    def has(self, name: str) -> bool:
        return f"{self.prefix}/{name}" in self.zip.NameToInfo

    def names(self) -> list[str]:
        """Names of the records, below the top folder."""
        return [name.removeprefix(f"{self.prefix}/") for name in self.zip.NameToInfo]

    def _info(self, name: str) -> zipfile.ZipInfo:
        info = self.zip.NameToInfo.get(f"{self.prefix}/{name}")
        if info is None:
            raise _broken(f"file not found: {self.prefix}/{name}")
        return info

    def size(self, name: str) -> int:
        """Bytes of a record. RuntimeError when its header can't be true."""
        info = self._info(name)
        if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size or info.file_size > _LIMIT:
            raise _broken(f"record {name} claims {info.file_size} bytes and has {info.compress_size}")
        return info.file_size

    def record(self, name: str) -> bytes:
        """The bytes of a record, its checksum verified."""
        self.size(name)
        try:
            return self.zip.read(self._info(name))
        except (zipfile.BadZipFile, EOFError, OSError, zlib.error, NotImplementedError, RuntimeError) as error:
            raise _broken(f"record {name}: {error}") from None

    def array(self, name: str) -> np.ndarray:
        """A record as a writable array of bytes."""
        size = self.size(name)
        out = np.empty(size, np.uint8)
        try:
            with self.zip.open(self._info(name)) as source:
                at = 0
                while at < size and (n := source.readinto(memoryview(out)[at:])):
                    at += n
                if at == size:
                    source.read(1)  # the end of the record: the checksum is compared there
        except (zipfile.BadZipFile, EOFError, OSError, zlib.error, NotImplementedError, RuntimeError) as error:
            raise _broken(f"record {name}: {error}") from None
        if at != size:
            raise _broken(f"record {name} has {at} bytes of {size}")
        return out

    def mapped(self, name: str) -> np.ndarray:
        """A record as bytes mapped from the file, private: writes stay in memory."""
        info, size = self._info(name), self.size(name)
        if info.compress_type != zipfile.ZIP_STORED:
            raise _broken(f"record {name} is compressed and can't be mapped")
        if not size:
            return np.empty(0, np.uint8)
        self.file.seek(info.header_offset)
        header = self.file.read(30)
        if len(header) != 30 or header[:4] != b"PK\x03\x04":
            raise _broken(f"record {name} has no header")
        start = info.header_offset + 30 + sum(struct.unpack("<HH", header[26:30]))
        if start + size > os.fstat(self.file.fileno()).st_size:
            raise _broken(f"record {name} ends beyond the file")
        return np.memmap(self.path, np.uint8, "c", start, (size,)).view(np.ndarray)


class ArchiveWriter:
    """Writes records in PyTorch's layout to a path or a binary file."""

    def __init__(self, f):
        named = isinstance(f, (str, os.PathLike))
        self.prefix = os.path.splitext(os.path.basename(os.fspath(f)))[0] if named else "archive"
        self.own = open(f, "wb") if named else None
        self.zip = zipfile.ZipFile(f if self.own is None else self.own, "w", zipfile.ZIP_STORED)
        self._digest = 0

    def record(self, name: str, data) -> None:
        info = zipfile.ZipInfo(f"{self.prefix}/{name}")
        start = self.zip.fp.tell() + 30 + len(info.filename.encode()) + 4
        pad = -start % ALIGNMENT
        info.extra = b"FB" + struct.pack("<H", pad) + b"Z" * pad
        data = memoryview(data).cast("B")
        self._digest = zlib.crc32(data, self._digest)
        with self.zip.open(info, "w", force_zip64=data.nbytes >= 1 << 31) as out:
            out.write(data)

    def close(self, version: int = 3) -> None:
        self.record("version", b"%d\n" % version)
        self.record(".data/serialization_id", f"{self._digest:040d}".encode())
        self.zip.close()
        if self.own is not None:
            self.own.close()

    def abandon(self) -> None:
        """Leave the file unfinished: without a directory nobody takes it for whole."""
        self.zip.fp = None
        if self.own is not None:
            with contextlib.suppress(OSError):  # the disk is full, say: what stopped the writing is told already
                self.own.close()
