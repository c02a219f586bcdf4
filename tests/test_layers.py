"""The package itself is imported by lower levels for its native modules only; import-linter sees everything else."""

import ast
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
NATIVE = {"_C", "_frame", "_runtime"}
SUBPACKAGES = {p.name for p in ROOT.iterdir() if p.is_dir()}
FILES = sorted(f for d in LOWER for f in (ROOT / d).rglob("*.py"))
LLVM_ALLOWED = {"inductor/machine/llvm.py", "inductor/machine/cache.py"}


def _imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for a in node.names:
                yield node, a.name, None
        elif isinstance(node, ast.ImportFrom):
            yield node, "." * node.level + (node.module or ""), [a.name for a in node.names]


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_imports_of_the_package_itself(file):
    depth = len(file.relative_to(ROOT).parts)
    tree = ast.parse(file.read_text())
    for node, module, names in _imports(tree):
        where = f"{file.relative_to(ROOT)}:{node.lineno}"
        if module == "flambeau" and names is None:
            raise AssertionError(f"{where}: imports the whole package")
        if module == "flambeau" or module == "." * depth:
            extra = set(names or ()) - NATIVE - SUBPACKAGES
            assert not extra, f"{where}: takes {extra} from the package itself"


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(ROOT)))
def test_no_peer_is_imported(file):
    for node, module, _ in _imports(ast.parse(file.read_text())):
        top = module.lstrip(".").split(".")[0] if not module.startswith(".") else ""
        assert top not in {"torch", "jax", "numba"}, f"{file}:{node.lineno} imports {top}"
        if top == "llvmlite":
            assert str(file.relative_to(ROOT)) in LLVM_ALLOWED, (
                f"{file}:{node.lineno}: llvmlite belongs into {sorted(LLVM_ALLOWED)}"
            )
