"""Print one of the README's shell commands, so that `.ci/run` runs what a reader would type.

usage: readme_commands.py install|test

The README has two blocks marked ```sh that a newcomer types: the first installs flambeau and runs the demo, the second installs the
test extra and runs the tests. The exit status is 1 where the README has fewer.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"
PLACES = {"install": 0, "test": 1}


def blocks(text: str) -> list[str]:
    """The contents of the blocks marked ```sh, in their order."""
    return re.findall(r"^```sh\n(.*?)^```", text, flags=re.S | re.M)


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in PLACES:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    found = blocks(README.read_text())
    place = PLACES[sys.argv[1]]
    if len(found) <= place:
        print(
            f"{README.name} has {len(found)} blocks marked sh; the command '{sys.argv[1]}' is number {place + 1}",
            file=sys.stderr,
        )
        return 1
    print(found[place], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
