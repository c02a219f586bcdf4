"""Which of PyTorch's public names exist, by module. ``python tests/names/count.py [--write]`` shows (and writes docs/names.md)."""

import importlib
import json
from pathlib import Path

NAMES = {k: v.split() for k, v in json.loads(Path(__file__).with_name("pytorch_2_13.json").read_text()).items()}


def missing(name: str) -> list[str] | None:
    """Names of one module that flambeau lacks; None when it lacks the module."""
    import flambeau

    if name == "Tensor":
        where = flambeau.Tensor
    else:
        try:
            where = flambeau if name == "torch" else importlib.import_module(f"flambeau.{name}")
        except ImportError as error:
            if "flambeau" not in str(error):
                raise
            return None
    return [n for n in NAMES[name] if not _there(where, n)]


def _there(where, name: str) -> bool:
    try:
        return hasattr(where, name)
    except ImportError:
        return False


def table() -> tuple[dict, int, int]:
    """({module: (there, all, missing names)}, there, all)."""
    rows = {}
    for name, names in NAMES.items():
        gone = missing(name)
        rows[name] = (0 if gone is None else len(names) - len(gone), len(names), names if gone is None else gone)
    return rows, sum(r[0] for r in rows.values()), sum(r[1] for r in rows.values())


if __name__ == "__main__":
    rows, there, every = table()
    for name, (have, n, gone) in sorted(rows.items(), key=lambda r: -len(r[1][2])):
        if gone:
            print(f"{name} {have}/{n}: {' '.join(gone)}")
    print(there, every, f"{there / every:.1%}")
