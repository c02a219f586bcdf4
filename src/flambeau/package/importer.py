"""``torch.package.PackageImporter``: modules and objects of a package, apart from those of the process."""

from __future__ import annotations

import builtins
import fnmatch
import importlib
import io
import linecache
import os
import pickle
import types
import zipfile
import zlib

from .names import Mangler

__all__ = ["PackageImporter"]


class PackageImporter:
    """Opens a package, a path or a binary file. Its modules are loaded from it under names of their own; only those that were left out when it was
    packed come from the process, and of these only the ones that ``module_allowed(name)`` takes (ImportError for others). RuntimeError for a file
    that is no package or is damaged."""

    def __init__(self, file_or_buffer, module_allowed=lambda name: True):
        is_path = isinstance(file_or_buffer, (str, os.PathLike))
        self.filename = str(file_or_buffer) if is_path else "<binary>"
        data = open(file_or_buffer, "rb").read() if is_path else file_or_buffer.read()  # noqa: SIM115
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                names = [n for n in archive.namelist() if "/" in n]
                self._files = {n.partition("/")[2]: archive.read(n) for n in names}
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as e:
            raise RuntimeError(f"{self.filename} is no package, or is damaged: {e}") from e
        self.extern_modules = self._files.get(".data/extern_modules", b"").decode().split("\n")[:-1]
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{file_or_buffer}' needs the external module '{name}' but that module has been disallowed"
                )
        self._mangler = Mangler()
        self.modules: dict[str, types.ModuleType] = {}
        self._builtins = {**vars(builtins), "__import__": self._import}

    def id(self) -> str:
        """The prefix of its modules' names."""
        return self._mangler.prefix

    def python_version(self) -> str | None:
        """The version of CPython that packed it."""
        found = self._files.get(".data/python_version")
        return None if found is None else found.decode()

    def file_structure(self, *, include="**", exclude=()) -> str:
        """The names of the files inside that ``include`` matches, one a line."""
        wanted = [include] if isinstance(include, str) else include
        refused = [exclude] if isinstance(exclude, str) else exclude
        kept = (
            n
            for n in sorted(self._files)
            if any(fnmatch.fnmatch(n, w) for w in wanted) and not any(fnmatch.fnmatch(n, r) for r in refused)
        )
        return "\n".join([self.id(), *(f"    {n}" for n in kept)])

    # -- resources ---------------------------------------------------------------------------------------------------------
    def load_binary(self, package: str, resource: str) -> bytes:
        """The bytes under this name. RuntimeError where there are none."""
        path = f"{package.replace('.', '/')}/{resource}"
        if path not in self._files:
            raise RuntimeError(f"failed locating file {path}: it isn't in the package {self.filename}")
        return self._files[path]

    def load_text(self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The text under this name."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location=None):
        """The object under this name, made of classes of the package. ``map_location``: where its tensors go."""
        found = _Unpickler(io.BytesIO(self.load_binary(package, resource)), self).load()
        return found.to(map_location) if map_location is not None and hasattr(found, "to") else found

    def get_source(self, module_name: str) -> str:
        """The source of a module of the package. RuntimeError for others."""
        found = self.source_of(module_name)
        if found is None:
            raise RuntimeError(f"{module_name} isn't in the package {self.filename}")
        return found[0]

    def source_of(self, name: str) -> tuple[str, bool] | None:
        """(source, whether it is a package) of a module that was packed; None for others."""
        path = name.replace(".", "/")
        for file, is_package in ((f"{path}/__init__.py", True), (f"{path}.py", False)):
            if file in self._files:
                return self._files[file].decode(), is_package
        return ("", True) if any(f.startswith(f"{path}/") and f.endswith(".py") for f in self._files) else None

    # -- modules -----------------------------------------------------------------------------------------------------------
    def import_module(self, name: str, package: str | None = None) -> types.ModuleType:
        """The module of this name: of the package, or of the process where it was left out. ModuleNotFoundError for any other."""
        name = importlib.util.resolve_name(name, package) if name.startswith(".") else name
        if name in self.modules:
            return self.modules[name]
        parent, _, last = name.rpartition(".")
        found = self.source_of(name)
        if found is None:
            if any(name == e or name.startswith(f"{e}.") or e.startswith(f"{name}.") for e in self.extern_modules):
                return importlib.import_module(_in_flambeau(name))
            raise ModuleNotFoundError(
                f'No module named "{name}" in self-contained archive "{self.filename}" and the module is also not in the list of '
                f"allowed external modules: {self.extern_modules}",
                name=name,
            )
        if parent:
            self.import_module(parent)
        module = self._run(name, *found)
        if parent:
            setattr(self.modules[parent], last, module)
        return module

    def _run(self, name: str, source: str, is_package: bool) -> types.ModuleType:
        if name in self.modules:  # its parent imported it
            return self.modules[name]
        module = self.modules[name] = types.ModuleType(self._mangler.mangle(name))
        path = self._mangler.mangle(name.replace(".", "/") + ("/__init__.py" if is_package else ".py"))
        module.__dict__.update(__builtins__=self._builtins, __file__=path, __torch_package__=True)
        module.__package__ = self._mangler.mangle(name if is_package else name.rpartition(".")[0])
        if is_package:
            module.__path__ = []
        linecache.cache[path] = (len(source), None, source.splitlines(True), path)
        try:
            exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
        except BaseException:
            del self.modules[name]
            raise
        return module

    def _import(self, name, globals=None, locals=None, fromlist=(), level=0):
        """What ``import`` does in modules of the package."""
        if level:
            package = globals["__package__"].partition(".")[2].split(".")
            name = ".".join([*package[: len(package) - level + 1], *([name] if name else [])])
        module = self.import_module(name)
        if not fromlist:
            return module if "." not in name else self.import_module(name.partition(".")[0])
        for attribute in fromlist:
            if attribute != "*" and not hasattr(module, attribute) and self.source_of(f"{name}.{attribute}"):
                self.import_module(f"{name}.{attribute}")
        return module

    def import_object(self, module: str, name: str):
        """The object of this qualified name. AttributeError where there is none."""
        found = self.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found


def _in_flambeau(name: str) -> str:
    return f"flambeau{name[5:]}" if name == "torch" or name.startswith("torch.") else name


class _Unpickler(pickle._Unpickler):
    def __init__(self, file, importer: PackageImporter):
        super().__init__(file)
        self.importer = importer

    def find_class(self, module, name):
        return self.importer.import_object(module, name)
