"""The package itself is imported by lower levels for its native modules only; import-linter sees everything else."""

import ast
import functools
import re
import tomllib
from pathlib import Path

import pytest

import flambeau

ROOT = Path(flambeau.__file__).parent
LOWER = [
    "base",
    "core",
    "ops",
    "eager",
    "fake",
    "autograd",
    "functionalize",
    "batching",
    "fx",
    "proxy",
    "aot",
    "inductor",
    "dynamo",
]
NATIVE = {"_C", "_device", "_frame", "_runtime"}
SUBPACKAGES = {p.name for p in ROOT.iterdir() if p.is_dir()}
FILES = sorted(f for d in LOWER for f in (ROOT / d).rglob("*.py"))
LLVM_ALLOWED = {"inductor/machine/llvm.py", "inductor/machine/cache.py", "inductor/machine/nvptx.py"}


@functools.cache
def _nodes(file):
    """The imports of a file, and its calls where some import by name. Expressions have no imports: without such calls they aren't walked over."""
    source = file.read_text()
    looked_at = ast.stmt | ast.excepthandler | ast.match_case
    if "import_module" in source or "__import__" in source:
        looked_at = ast.AST
    nodes = [ast.parse(source)]
    for node in nodes:
        nodes += [n for n in ast.iter_child_nodes(node) if isinstance(n, looked_at)]
    return [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom | ast.Call)]


def _imports(file):
    for node in _nodes(file):
        if isinstance(node, ast.Import):
            for a in node.names:
                yield node, a.name, None
        elif isinstance(node, ast.ImportFrom):
            yield node, "." * node.level + (node.module or ""), [a.name for a in node.names]


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_of_the_package_itself(file):
    depth = len(file.relative_to(ROOT).parts)
    for node, module, names in _imports(file):
        where = f"{file.relative_to(ROOT)}:{node.lineno}"
        if module == "flambeau" and names is None:
            raise AssertionError(f"{where}: imports the whole package")
        if module == "flambeau" or module == "." * depth:
            extra = set(names or ()) - NATIVE - SUBPACKAGES
            assert not extra, f"{where}: takes {extra} from the package itself"


# Imports by name that go up, and why the level above has to be met there.
UPWARD: dict[str, str] = {}


def levels() -> dict[str, int]:
    """The level of each package, 0 the highest, as pyproject.toml has them for import-linter."""
    settings = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())
    contract = settings["tool"]["importlinter"]["contracts"][0]
    return {p: k for k, row in enumerate(contract["layers"]) for p in re.findall(r"\w+", row)}


# Imports by a name that isn't in the source, and whose module it is.
HELD = {
    "base/loading.py: name": "what the root package loads late, which names it",
    "base/optional.py: module": "a library that an extra installs",
    "base/pytree_nodes.py: module": "the program's, in a pickled tree",
    "core/pickling.py: place": "a namespace of functions, which a pickled function names",
    "debug/repro.py: module": "the program's, of a backend",
    "dynamo/tracing/opcodes/names.py: name": "the program's, of an import that is captured",
    "loops/numpy_calls/description.py: module": "NumPy's or SciPy's",
    "numpy/graph_calls.py: module": "NumPy's or SciPy's",
    "numpy/opaque.py: module": "NumPy's or SciPy's",
    "package/importer.py: _in_flambeau(name)": "the program's, which a package names",
    "package/importer.py: f'{name}.{attribute}'": "of the package that is read",
    "package/importer.py: module": "of the package that is read",
    "package/importer.py: name": "of the package that is read",
    "package/importer.py: name.partition('.')[0]": "of the package that is read",
    "package/importer.py: parent": "of the package that is read",
    "serialization/names.py: home": "the class of a checkpoint that is loaded late",
    "serialization/names.py: module": "the program's, which a trusted checkpoint names",
}


def imported_by_name(file):
    """(argument, the module that it names) for each call of ``importlib.import_module`` and ``__import__``. Of an f-string what it begins with, of
    a relative name "." only; "" where the source doesn't say which package it is."""
    for node in _nodes(file):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in ("import_module", "__import__"):
            continue
        argument = ast.unparse(node.args[0])
        begin = re.match(r"""f?['"](\.|\{__name__\}\.|flambeau\.\w+\.|(?!flambeau)\w+\.|[\w.]+['"])""", argument)
        yield argument, begin[1].replace("{__name__}", "").strip("'\"") if begin else ""


@pytest.mark.skipif(not (ROOT.parents[1] / "pyproject.toml").exists(), reason="the levels are in the repository's file")
def test_imports_by_name_go_down():
    level, upward, held = levels(), set(), set()
    for file in sorted(f for package in level if level[package] for f in (ROOT / package).rglob("*.py")):
        own, where = file.relative_to(ROOT).parts[0], file.relative_to(ROOT)
        for argument, module in imported_by_name(file):
            if not module:
                held.add(f"{where}: {argument}")
            elif module.startswith("flambeau.") and level.get(module.split(".")[1], level[own]) < level[own]:
                upward.add(f"{where}: {module}")
    assert upward == set(UPWARD), f"base/upper_levels.py hands such things down: {upward ^ set(UPWARD)}"
    assert held == set(HELD), f"which module is imported stands in the source: {held ^ set(HELD)}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_no_peer_is_imported(file):
    for node, module, _ in _imports(file):
        top = module.lstrip(".").split(".")[0] if not module.startswith(".") else ""
        assert top not in {"torch", "jax", "numba"}, f"{file}:{node.lineno} imports {top}"
        if top == "llvmlite":
            assert str(file.relative_to(ROOT)) in LLVM_ALLOWED, (
                f"{file}:{node.lineno}: llvmlite belongs into {sorted(LLVM_ALLOWED)}"
            )
