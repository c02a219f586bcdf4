"""Names of modules inside of packages: ``<torch_package_0>.a.b`` is ``a.b`` of the first package that this process opened."""

from __future__ import annotations

import ast
import itertools
import sys

__all__ = ["Mangler", "demangle", "is_from_package", "is_mangled", "is_of_the_interpreter", "modules_in"]

_count = itertools.count()


class Mangler:
    """Gives the names of one package their prefix."""

    def __init__(self):
        self.prefix = f"<torch_package_{next(_count)}>"

    def mangle(self, name: str) -> str:
        """The name with the prefix."""
        return f"{self.prefix}.{name}"


def is_mangled(name: str) -> bool:
    """Whether a name is that of a module in a package."""
    return name.startswith("<torch_package_")


def demangle(name: str) -> str:
    """The name without the prefix."""
    return name.partition(".")[2] if is_mangled(name) else name


def is_from_package(obj) -> bool:
    """Whether an object, or its class, was defined in a module of a package."""
    home = (
        obj.__name__
        if type(obj) is type(sys)
        else getattr(obj if isinstance(obj, type) else type(obj), "__module__", "")
    )
    return is_mangled(home)


def is_of_the_interpreter(name: str) -> bool:
    """Whether a module comes with CPython, or is of this library: such modules are never packed."""
    root = name.partition(".")[0]
    return root in sys.stdlib_module_names or root in ("torch", "flambeau")


def modules_in(source: str, name: str, is_package: bool) -> list[tuple[str, str | None]]:
    """What a module imports: (module, None), or (module, name) of ``from module import name``; relative ones are made absolute."""
    found: list[tuple[str, str | None]] = []
    package = name.split(".") if is_package else name.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            home = ".".join([*base, *([node.module] if node.module else [])])
            found += [(home, None if alias.name == "*" else alias.name) for alias in node.names]
    return list(dict.fromkeys(found))
