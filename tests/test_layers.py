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


def imported_by_name(file):
    """The module of each call of ``importlib.import_module`` and ``__import__`` with a module of the package."""
    for node in _nodes(file):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0]
        if isinstance(first, ast.JoinedStr):
            first = first.values[0]
        if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
            if str(first.value).startswith("flambeau."):
                yield first.value


@pytest.mark.skipif(not (ROOT.parents[1] / "pyproject.toml").exists(), reason="the levels are in the repository's file")
def test_imports_by_name_go_down():
    level, found = levels(), set()
    for file in sorted(f for package in level for f in (ROOT / package).rglob("*.py")):
        own = file.relative_to(ROOT).parts[0]
        for module in imported_by_name(file):
            other = module.split(".")[1]
            if other in level and level[other] < level[own]:
                found.add(f"{file.relative_to(ROOT)}: {module}")
    assert found == set(UPWARD), f"base/upper_levels.py hands such things down: {found ^ set(UPWARD)}"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_no_peer_is_imported(file):
    for node, module, _ in _imports(file):
        top = module.lstrip(".").split(".")[0] if not module.startswith(".") else ""
        assert top not in {"torch", "jax", "numba"}, f"{file}:{node.lineno} imports {top}"
        if top == "llvmlite":
            assert str(file.relative_to(ROOT)) in LLVM_ALLOWED, (
                f"{file}:{node.lineno}: llvmlite belongs into {sorted(LLVM_ALLOWED)}"
            )
