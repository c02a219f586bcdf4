"""Writes ``ops/family_index.py``: which family declares which operators, and where they are exposed, so that families load when they are used.

python -m flambeau.testing.families [--check]
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from flambeau import ops
from flambeau.core.bindings import LATER
from flambeau.core.declare import EXPOSED
from flambeau.core.operator import namespace


def lazy() -> list[str]:
    """The families that ``ops/__init__.py`` doesn't import, as ``folder.file``."""
    here = Path(ops.__file__).parent
    found = (f"{p.parent.name}.{p.stem}" for p in here.glob("*/[a-z]*.py") if p.parent.name != "manual")
    return sorted(set(found) - ops.EAGER)


def declared() -> dict[str, set[str]]:
    """{name of an operator: the families that declare overloads of it}; what is loaded already comes before as ``""``."""
    aten, found = namespace("aten"), {}
    for name in list(aten._packets):
        found[name] = {""} if name not in LATER else set()
    register = aten._register

    def noted(op):
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        found.setdefault(op._opname, set()).add(frame.f_globals["__name__"].removeprefix("flambeau.ops."))
        register(op)

    aten._register = noted
    try:
        for family in lazy():
            ops.load_family(family)
    finally:
        del aten._register
    return found


def text() -> str:
    """The file's text. Meant for a fresh process: what is loaded before can't be told apart."""
    for table in EXPOSED.values():
        for public in [p for p, o in table.items() if o in LATER]:
            del table[public]
    before = {place: dict(table) for place, table in EXPOSED.items()}
    owners = declared()
    split = {name: sorted(places) for name, places in owners.items() if len(places) > 1}
    if split:
        raise SystemExit(f"overloads of one operator belong into one family: {split}")
    families: dict[str, list[str]] = {}
    for name, places in sorted(owners.items()):
        for family in places - {""}:
            families.setdefault(family, []).append(name)
    exposed = {place: {p: o for p, o in t.items() if before[place].get(p) != o} for place, t in EXPOSED.items()}
    lines = [
        '"""Where families that load when used keep their names. Written by `python -m flambeau.testing.families`."""',
        "",
    ]
    lines.append("FAMILIES = {")
    for family, names in sorted(families.items()):
        lines += [f'    "{family}": """', *textwrap.wrap(" ".join(names), 138), '""",']
    lines += ["}", "", "EXPOSED = {"]
    for place, table in exposed.items():
        entries = [p if p == o else f"{p}={o}" for p, o in sorted(table.items())]
        if entries:
            lines += [f'    "{place}": """', *textwrap.wrap(" ".join(entries), 138, break_on_hyphens=False), '""",']
    return "\n".join([*lines, "}"]) + "\n"


if __name__ == "__main__":
    path = Path(ops.__file__).with_name("family_index.py")
    wanted = text()
    if "--check" in sys.argv:
        sys.exit(path.read_text(encoding="utf-8") != wanted)
    path.write_text(wanted, encoding="utf-8")
