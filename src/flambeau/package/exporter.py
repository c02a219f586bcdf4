"""``torch.package.PackageExporter``: objects, the source of the modules that they need, and resources in one zip file."""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import pickle
import pickletools
import sys
import zipfile
from collections.abc import Callable

from ..base.records import slotted
from .globs import GlobGroup
from .names import demangle, is_mangled, is_of_the_interpreter, modules_in

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError"]

# What stands in an archive for a module that was left out.
MOCK = '''"""A module that was left out when the package was made."""


class MockedObject:
    def __init__(self, name):
        self.__dict__["_name"] = name

    def _refuse(self, *args, **kwargs):
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging but it is being used: intern or extern its module"
        )

    __call__ = __getattr__ = __setattr__ = __getitem__ = __iter__ = __len__ = __bool__ = __add__ = __mul__ = _refuse


def __getattr__(name):
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return MockedObject(__name__ + "." + name)
'''


class EmptyMatchError(Exception):
    """A pattern with ``allow_empty=False`` matched no module."""


class PackagingError(Exception):
    """Modules that can't be packed, and why; raised when the exporter is closed."""

    def __init__(self, broken: dict[str, list[str]]):
        lines = [f"\n* {why}\n" + "".join(f"    {name}\n" for name in names) for why, names in broken.items()]
        super().__init__("".join(lines))


@slotted(frozen=False)
class Pattern:
    """A rule of the program's, in the order in which it was given."""

    action: str  # "intern", "extern", "mock" or "deny"
    group: GlobGroup
    allow_empty: bool
    matched: bool = False


class _Pickler(pickle._Pickler):
    """Names modules of packages as they are called inside of them."""

    def save_global(self, obj, name=None):
        module = pickle.whichmodule(obj, name or obj.__qualname__)
        if not is_mangled(module):
            return super().save_global(obj, name)
        self.save(demangle(module))
        self.save(name or obj.__qualname__)
        self.write(pickle.STACK_GLOBAL)
        self.memoize(obj)
        return None

    dispatch = pickle._Pickler.dispatch.copy()
    dispatch[type(lambda: 0)] = save_global

    def save_type(self, obj):
        if obj in (type(None), type(...), type(NotImplemented)):
            return super().save_type(obj)
        return self.save_global(obj)

    dispatch[type] = save_type


class PackageExporter:
    """Writes a package to ``f``, a path or a binary file.

    Say what is to become of modules by ``intern``, ``extern``, ``mock`` and ``deny`` (the first pattern that matches counts), then save objects;
    leaving the ``with`` block writes the file. ``importer``: what finds the modules of objects, a PackageImporter or a list of them; the
    process's own modules by default. ``debug`` is accepted."""

    def __init__(self, f, importer=None, debug: bool = False):
        self._file, self.debug = f, debug
        self._importers = (
            list(importer) if isinstance(importer, (list, tuple)) else [] if importer is None else [importer]
        )
        self._patterns: list[Pattern] = []
        self._resources: dict[str, bytes] = {}
        self._actions: dict[str, str] = {}
        self._edges: dict[str, list[str]] = {}
        self._broken: dict[str, list[str]] = {}
        self._unique = 0
        self._hooks: dict[str, list[Callable]] = {"extern": [], "mock": [], "intern": []}
        self._closed = False

    # -- what becomes of modules -------------------------------------------------------------------------------------------
    def _rule(self, action: str, include, exclude, allow_empty: bool) -> None:
        self._patterns.append(Pattern(action, GlobGroup(include, exclude=exclude), allow_empty))

    def intern(self, include, *, exclude=(), allow_empty: bool = True) -> None:
        """Pack the source of modules that ``include`` matches. ``allow_empty=False``: EmptyMatchError if none does."""
        self._rule("intern", include, exclude, allow_empty)

    def extern(self, include, *, exclude=(), allow_empty: bool = True) -> None:
        """Take modules that ``include`` matches from the process that loads the package."""
        self._rule("extern", include, exclude, allow_empty)

    def mock(self, include, *, exclude=(), allow_empty: bool = True) -> None:
        """Put stand-ins, which can be imported but not used, in the place of modules that ``include`` matches."""
        self._rule("mock", include, exclude, allow_empty)

    def deny(self, include, *, exclude=()) -> None:
        """PackagingError if a module that ``include`` matches is needed."""
        self._rule("deny", include, exclude, True)

    def register_intern_hook(self, hook) -> None:
        """Call ``hook(exporter, module name)`` for each module whose source is packed."""
        self._hooks["intern"].append(hook)

    def register_extern_hook(self, hook) -> None:
        """Call ``hook(exporter, module name)`` for each module that is left to the loading process."""
        self._hooks["extern"].append(hook)

    def register_mock_hook(self, hook) -> None:
        """Call ``hook(exporter, module name)`` for each module that gets a stand-in."""
        self._hooks["mock"].append(hook)

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """The module is needed: what the first matching pattern says becomes of it, and of what it imports."""
        name = demangle(module_name)
        if name in self._actions:
            return
        action = "extern" if is_of_the_interpreter(name) else None
        for pattern in self._patterns if action is None else ():
            if pattern.group.matches(name):
                action, pattern.matched = pattern.action, True
                break
        self._actions[name] = action or "none"
        if action in ("intern", None) and not self._exists(
            name
        ):  # an import that may fail: it does so when it is loaded, too
            self._actions[name] = "missing"
        elif action == "intern":
            self._intern(name, dependencies)
        elif action == "mock":
            self._resources[self._path(name, False)] = MOCK.encode()
        elif action == "deny":
            self._break("Module was denied by a pattern.", name)
        elif action is None:
            self._break("Module did not match against any action pattern. Extern, mock, or intern it.", name)
        for hook in self._hooks.get(action or "", ()):
            hook(self, name)

    def _break(self, why: str, name: str) -> None:
        self._broken.setdefault(why, []).append(name)

    def _path(self, name: str, is_package: bool) -> str:
        return name.replace(".", "/") + ("/__init__.py" if is_package else ".py")

    def _source(self, name: str) -> tuple[str, bool] | None:
        for importer in self._importers:
            found = importer.source_of(name) if hasattr(importer, "source_of") else None
            if found is not None:
                return found
        try:
            spec = sys.modules[name].__spec__ if name in sys.modules else importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is None or spec.origin is None or not spec.origin.endswith(".py") or not os.path.exists(spec.origin):
            return None
        with open(spec.origin, encoding="utf-8") as file:
            return file.read(), spec.submodule_search_locations is not None

    def _intern(self, name: str, dependencies: bool) -> None:
        found = self._source(name)
        if found is None:
            self._break("Module has no source in Python. torch.package packs Python modules only.", name)
            return
        self.save_source_string(name, *found, dependencies=dependencies)

    def _exists(self, name: str) -> bool:
        if name in sys.modules or self._source(name) is not None:
            return True
        try:
            return importlib.util.find_spec(name) is not None
        except (ImportError, ValueError):
            return False

    def _needed_by(self, name: str, source: str, is_package: bool) -> None:
        self._edges.setdefault(name, [])
        for module, attribute in modules_in(source, name, is_package):
            inner = f"{module}.{attribute}" if attribute else None
            needed = [module] if module else []
            if inner is not None and not is_of_the_interpreter(module) and self._exists(inner):
                needed.append(inner)
            for n in needed:
                self._edges[name].append(n)
                self.add_dependency(n)

    # -- what is saved -----------------------------------------------------------------------------------------------------
    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """Pack ``src`` as the module of this name, with what it imports unless ``dependencies`` is False."""
        self._actions[module_name] = "intern"
        self._resources[self._path(module_name, is_package)] = src.encode()
        if dependencies:
            self._needed_by(module_name, src, is_package)

    def save_source_file(self, module_name: str, file_or_directory: str, dependencies: bool = True) -> None:
        """Pack a file as the module of this name, or the Python files of a folder as the package of this name."""
        if not os.path.isdir(file_or_directory):
            with open(file_or_directory, encoding="utf-8") as file:
                self.save_source_string(module_name, file.read(), False, dependencies)
            return
        for folder, _, files in sorted(os.walk(file_or_directory)):
            inside = os.path.relpath(folder, file_or_directory)
            parts = [module_name, *([] if inside == "." else inside.split(os.sep))]
            for name in sorted(f for f in files if f.endswith(".py")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    is_package = name == "__init__.py"
                    full = ".".join(parts if is_package else [*parts, name[:-3]])
                    self.save_source_string(full, file.read(), is_package, dependencies)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Pack the source of a module. TypeError where a name isn't given, PackagingError at the end where there is no source."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        self._actions[module_name] = "intern"
        self._intern(module_name, dependencies)

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Pack a text under this name."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Pack bytes under this name."""
        self._resources[f"{package.replace('.', '/')}/{resource}"] = bytes(binary)

    def save_pickle(
        self, package: str, resource: str, obj, dependencies: bool = True, pickle_protocol: int = 4
    ) -> None:
        """Pack an object as a pickle, and the modules of its classes unless ``dependencies`` is False."""
        file = io.BytesIO()
        _Pickler(file, max(pickle_protocol, 4)).dump(obj)
        data = file.getvalue()
        for module in dict.fromkeys(_modules_of(data)) if dependencies else ():
            self._edges.setdefault(f"<{package}.{resource}>", []).append(module)
            self.add_dependency(module)
        self.save_binary(package, resource, data)

    # -- the end -------------------------------------------------------------------------------------------------------------
    def __enter__(self):
        return self

    def __exit__(self, exc_type, *_):
        if exc_type is None:
            self.close()

    def close(self) -> None:
        """Write the file. PackagingError and EmptyMatchError where a module can't be packed or a pattern matched none."""
        if self._closed:
            return
        self._closed = True
        for p in self._patterns:
            if not p.matched and not p.allow_empty:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {p.group}, which was marked as allow_empty=False"
                )
        if self._broken:
            raise PackagingError(self._broken)
        with zipfile.ZipFile(self._file, "w") as archive:
            for name, data in self._resources.items():
                archive.writestr(f"archive/{name}", data)
            archive.writestr("archive/.data/extern_modules", "".join(f"{n}\n" for n in self.externed_modules()))
            archive.writestr("archive/.data/python_version", ".".join(map(str, sys.version_info[:3])))
            archive.writestr("archive/.data/version", "6\n")

    def _with(self, action: str) -> list[str]:
        return [n for n, a in self._actions.items() if a == action]

    def externed_modules(self) -> list[str]:
        """Modules that the loading process is to have."""
        return self._with("extern")

    def interned_modules(self) -> list[str]:
        """Modules whose source is packed."""
        return self._with("intern")

    def mocked_modules(self) -> list[str]:
        """Modules that have a stand-in."""
        return self._with("mock")

    def denied_modules(self) -> list[str]:
        """Modules that are needed and denied."""
        return self._with("deny")

    def get_rdeps(self, module_name: str) -> list[str]:
        """Which modules and pickles import it."""
        return [n for n, needed in self._edges.items() if module_name in needed]

    def dependency_graph_string(self) -> str:
        """The graph of which module needs which, as Graphviz source."""
        lines = [f'"{a}" -> "{b}";' for a, needed in self._edges.items() for b in dict.fromkeys(needed)]
        return "digraph G {\nrankdir = LR;\nnode [shape=box];\n" + "\n".join(lines) + "\n}\n"

    def get_unique_id(self) -> str:
        """A number that this exporter hasn't given yet."""
        self._unique += 1
        return str(self._unique - 1)


def _modules_of(data: bytes) -> list[str]:
    """The modules that a pickle names."""
    found, strings, memo = [], [], {}
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "GLOBAL":
            found.append(argument.partition(" ")[0])
        elif opcode.name == "STACK_GLOBAL":
            found.append(strings[-2])
        elif opcode.name in ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"):
            strings.append(argument)
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = strings[-1] if strings else None
        elif opcode.name in ("BINGET", "LONG_BINGET") and isinstance(memo.get(argument), str):
            strings.append(memo[argument])
    return found
