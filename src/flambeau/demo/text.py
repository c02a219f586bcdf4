"""The text that the demo trains on, and the batches drawn from it."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import numpy as np

__all__ = ["Corpus", "read_text", "standard_library_text"]

_SKIP = {"site-packages", "dist-packages", "test", "tests", "idle_test", "__pycache__", "lib2to3", "encodings"}
_PRINTABLE = bytes([9, 10, *range(32, 127)])


def _ascii(data: bytes) -> bytes:
    """``data`` without what isn't printable ASCII, tab or newline."""
    return data.translate(None, delete=bytes(sorted(set(range(256)) - set(_PRINTABLE))))


_DOCSTRING = re.compile(r'"""(.*?)"""', re.S)
_COMMENT = re.compile(r"(?:^[ \t]*#[^\n]*\n)+", re.M)
_ODD = re.compile(r"[^a-z ,.'\n-]")
_CODE = re.compile(r"\([^)]*\)|\S*[^a-z ,.'-]\S*")  # parentheses, and words with other characters


def _prose(source: str):
    """Paragraphs of English in docstrings and comments, in lower case, with nothing but letters, commas, full stops and apostrophes."""
    blocks = [m.group(1) for m in _DOCSTRING.finditer(source)]
    blocks += [re.sub(r"^[ \t]*#+", "", m.group(0), flags=re.M) for m in _COMMENT.finditer(source)]
    for block in blocks:
        for paragraph in re.split(r"\n[ \t]*\n", block):
            text = " ".join(paragraph.split()).lower()
            if len(text) < 60 or "." not in text or 50 * len(_ODD.findall(text)) > len(text):
                continue
            text = re.sub(r"[-\s]+", " ", _CODE.sub(" ", text))
            yield text.replace(" ,", ",").replace(" .", ".").strip()


def standard_library_text(limit: int = 1_000_000) -> bytes:
    """The English in the docstrings and comments of the standard library installed here, a paragraph a line, in the order of the files' names, up to
    ``limit`` bytes.

    Raises FileNotFoundError if there is none.
    """
    root = Path(sysconfig.get_path("stdlib"))
    parts, size = [], 0
    for path in sorted(root.rglob("*.py")):
        if _SKIP.intersection(path.relative_to(root).parts[:-1]):
            continue
        try:
            source = path.read_text("utf-8", "ignore")
        except OSError:  # unreadable for this user: the text is any sample of the library's
            continue
        for text in _prose(source):
            parts.append(text)
            size += len(text) + 1
        if size >= limit:
            break
    if not parts:
        raise FileNotFoundError(f"no Python sources in {root}; give a text with --text PATH")
    return "\n".join(parts).encode()[:limit]


def read_text(path: str | Path) -> bytes:
    """The printable ASCII of a file, or of all ``*.txt``, ``*.py`` and ``*.md`` files below a folder."""
    path = Path(path)
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix in (".txt", ".py", ".md") and p.is_file())
        return b"\n".join(_ascii(p.read_bytes()) for p in files)
    return _ascii(path.read_bytes())


class Corpus:
    """Characters as indices into a sorted vocabulary, and batches drawn by seed.

    ``batches(seed, n, batch_size, block_size)`` yields the same ``n`` pairs of int64 arrays (batch, block) for the same seed.
    Raises ValueError when the text is too short for one block.
    """

    def __init__(self, text: bytes, block_size: int):
        if len(text) < block_size + 2:
            raise ValueError(f"the text has {len(text)} usable characters, but a block needs {block_size + 2}")
        raw = np.frombuffer(text, dtype=np.uint8)
        codes, self.data = np.unique(raw, return_inverse=True)
        self.data = self.data.astype(np.int64)
        self.chars = "".join(map(chr, codes))
        self.block_size = block_size

    def __len__(self) -> int:
        return len(self.data)

    @property
    def vocab_size(self) -> int:
        return len(self.chars)

    def batches(self, seed: int, n: int, batch_size: int):
        rng = np.random.default_rng(seed)
        window = np.arange(self.block_size)
        for _ in range(n):
            starts = rng.integers(0, len(self.data) - self.block_size, size=(batch_size, 1))
            yield self.data[starts + window], self.data[starts + window + 1]

    @property
    def words(self) -> set[str]:
        """All words of the text."""
        return set(self.decode(self.data).split())

    def encode(self, text: str) -> np.ndarray:
        return np.array([self.chars.index(c) for c in text if c in self.chars], dtype=np.int64)

    def decode(self, indices) -> str:
        return "".join(self.chars[int(i)] for i in indices)
