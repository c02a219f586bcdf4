"""The Python blocks of documents: printed one after another for the checkers of types, or run.

usage: code_blocks.py [--run] FILE...

With --run the blocks of a file are run in their order in one namespace; the first that fails ends with its traceback.
"""

from __future__ import annotations

import linecache
import re
import sys
from pathlib import Path


def blocks(text: str, language: str = "python") -> list[str]:
    """The contents of the blocks marked with a language, in their order."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.S | re.M)


def run(path: Path) -> None:
    """Run the blocks of a document. What a block raises names the document and the number of the block."""
    scope = {"__name__": "document"}
    for number, code in enumerate(blocks(path.read_text()), 1):
        name = f"<{path.name}, block {number}>"
        # Capture and tracebacks read the source of a function.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        exec(compile(code, name, "exec"), scope)


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name != "--run"]
    for name in names:
        if "--run" in sys.argv:
            run(Path(name))
        else:
            print("\n".join(blocks(Path(name).read_text())))
