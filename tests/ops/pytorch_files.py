"""Files of PyTorch's wheel run a second time, with flambeau for torch."""

import ast
import importlib.util
import types
from pathlib import Path

# What they take from beside them: lists of dtypes that nobody reads here, the records of an entry and of a sample.
BESIDE = {
    "common_dtype": "all_types_and = custom_types = empty_types = lambda *dtypes: dtypes",
    "core": "import types\nfrom torch.testing._internal.opinfo.core import SampleInput\n"
    "OpInfo = lambda name, **fields: types.SimpleNamespace(name=name, **fields)",
}


class _Renamed(ast.NodeTransformer):
    """Imports of torch as imports of flambeau."""

    def __init__(self, beside):
        self.beside = beside

    def visit_Import(self, node):
        return ast.parse("import flambeau as torch").body[0] if node.names[0].name == "torch" else node

    def visit_ImportFrom(self, node):
        first, _, rest = node.module.partition(".")
        if "testing._internal" in node.module:
            name = node.module.rpartition(".")[2]
            if name in self.beside:
                parts = [ast.alias(a.name, a.asname) for a in node.names]
                return ast.ImportFrom(self.beside[name], parts, 0)
            return ast.parse(BESIDE[name]).body
        if first not in ("torch", "functorch"):
            return node
        root = "flambeau.functorch" if first == "functorch" else "flambeau"
        return ast.ImportFrom(f"{root}.{rest}".rstrip("."), node.names, 0)


def run_again(name: str, beside: dict[str, str] | None = None) -> types.ModuleType:
    """``torch.testing._internal.NAME`` with flambeau for torch. ``beside``: modules for what it imports from its own folder."""
    path = Path(importlib.util.find_spec(f"torch.testing._internal.{name}").origin)
    tree = ast.fix_missing_locations(_Renamed(beside or {}).visit(ast.parse(path.read_text())))
    module = types.ModuleType(f"{name}_of_flambeau")
    exec(compile(tree, str(path), "exec"), module.__dict__)
    return module
