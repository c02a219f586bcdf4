"""Writes ``ops/index.py``: which family declares which operators, and where they are exposed, so that families load when they are used.

python -m flambeau.testing.families [--check]
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import flambeau
from flambeau import ops
from flambeau.core.declare import EXPOSED
from flambeau.core.operator import namespace

_DATA = {"index", "aten_names"}


def lazy() -> list[str]:
    """The families that ``ops/__init__.py`` doesn't import."""
    here = Path(ops.__file__).parent
    return sorted(p.stem for p in here.glob("[a-z]*.py") if p.stem not in _DATA and p.stem not in ops.EAGER)


def text() -> str:
    """The file's text. Meant for a fresh process: what is loaded before can't be told apart."""
    aten = namespace("aten")
    families, exposed = {}, {place: {} for place in EXPOSED}
    for table in EXPOSED.values():
        for public in [p for p, o in table.items() if o in flambeau.core.bindings.LATER]:
            del table[public]
    aten._load = None
    for family in lazy():
        before, had = set(aten._packets), {place: dict(t) for place, t in EXPOSED.items()}
        ops.load_family(family)
        families[family] = sorted(set(aten._packets) - before)
        for place, table in EXPOSED.items():
            exposed[place].update({p: o for p, o in table.items() if had[place].get(p) != o})
    lines = [
        '"""Where families that load when used keep their names. Written by `python -m flambeau.testing.families`."""',
        "",
    ]
    lines.append("FAMILIES = {")
    for family, names in families.items():
        lines += [f'    "{family}": """', *textwrap.wrap(" ".join(names), 138), '""",']
    lines += ["}", "", "EXPOSED = {"]
    for place, table in exposed.items():
        entries = [p if p == o else f"{p}={o}" for p, o in sorted(table.items())]
        if entries:
            lines += [f'    "{place}": """', *textwrap.wrap(" ".join(entries), 138, break_on_hyphens=False), '""",']
    return "\n".join([*lines, "}"]) + "\n"


if __name__ == "__main__":
    path = Path(ops.__file__).with_name("index.py")
    wanted = text()
    if "--check" in sys.argv:
        sys.exit(path.read_text(encoding="utf-8") != wanted)
    path.write_text(wanted, encoding="utf-8")
