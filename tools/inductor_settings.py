"""Write src/flambeau/inductor/accepted.py, the settings of ``torch._inductor.config`` and their defaults. Run it with PyTorch.

    python tools/inductor_settings.py && ruff format src/flambeau/inductor/accepted.py

A default that depends on the machine (a path, a number of cores) stands there as the empty value of its type.
"""

import json
import pathlib
import textwrap

HEAD = '''"""PyTorch's settings of its compiler and their defaults, written by tools/inductor_settings.py from PyTorch {version}."""

from __future__ import annotations

__all__ = ["accepted"]

# Names by default, and the other names with theirs.
'''
TAIL = '''

def accepted() -> dict[str, object]:
    """Every setting of ``torch._inductor.config`` by its dotted name, and PyTorch's default."""
    return {name: value for value, names in _SAME.items() for name in names.split()} | _OTHERS
'''
OF_MACHINE = {"cutlass_dir": "", "compile_threads": 0}
# No setting, and lists of settings that PyTorch's own caches and reports leave out.
LEFT_OUT = ("TYPE_CHECKING", "_cache_config_ignore_prefix", "_save_config_ignore")


def defaults(config) -> dict[str, object]:
    found = {name: getattr(config, name) for name in config._config if name not in LEFT_OUT}
    return {name: OF_MACHINE.get(name.split(".")[-1], value) for name, value in sorted(found.items())}


def table(values: dict[str, object]) -> str:
    """Source text of the two dictionaries."""
    same = []
    for constant in (False, True, None):
        names = " ".join(name for name, value in values.items() if value is constant)
        lines = "\n".join(textwrap.wrap(names, 140, break_on_hyphens=False, break_long_words=False))
        same.append(f'    {constant}: """\n{lines}\n""",\n')
    lines = [""]
    for entry in (f"{json.dumps(n)}: {v!r}," for n, v in values.items() if v is not None and not isinstance(v, bool)):
        lines[-1:] = [f"{lines[-1]} {entry}"] if len(lines[-1]) + len(entry) < 135 else [lines[-1], f"    {entry}"]
    others = "\n".join(lines).replace("'", '"')
    return "_SAME = {\n" + "".join(same) + "}\n# fmt: off\n_OTHERS = {" + others + "\n}\n# fmt: on\n"


if __name__ == "__main__":
    import torch
    from torch._inductor import config

    path = pathlib.Path(__file__).parents[1] / "src/flambeau/inductor/accepted.py"
    version = ".".join(torch.__version__.split(".")[:2])
    path.write_text(HEAD.format(version=version) + table(defaults(config)) + TAIL)
