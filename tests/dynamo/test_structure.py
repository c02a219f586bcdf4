"""How the files of capture depend on each other. Run this file to see the numbers: ``python tests/dynamo/test_structure.py``."""

import ast
import pathlib

import flambeau.dynamo

ROOT = pathlib.Path(flambeau.dynamo.__file__).parent
PACKAGE = "flambeau.dynamo"
# Imports inside functions, each with a reason that is no circle.
INSIDE = {
    "comptime.py: pdb": "only whoever asks for a debugger pays for it",
    "rules/pure.py: importlib.util": "only a function in C with a twin in Python needs it",
}


def modules() -> dict[str, pathlib.Path]:
    out = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        out[".".join((PACKAGE, *parts)).removesuffix(".__init__")] = path
    return out


def imported(name: str, path: pathlib.Path, known) -> list[tuple[str, bool]]:
    """(module, whether inside a function) of each import; of ``from package import module`` the module."""
    tree = ast.parse(path.read_text())
    inside = {
        node
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(f)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    out = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            out += [(a.name, node in inside) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*base, *([node.module] if node.module else [])])
            for a in node.names:
                whole = f"{base}.{a.name}"
                out.append((whole if whole in known else base, node in inside))
    return out


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one module (Tarjan)."""
    index, low, stack, on, out = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in edges[v]:
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            component = []
            while not component or component[-1] != v:
                component.append(stack.pop())
                on.discard(component[-1])
            out.append(sorted(component))

    for v in edges:
        if v not in index:
            visit(v)
    return [c for c in out if len(c) > 1]


def measured():
    known = modules()
    found = {name: imported(name, path, known) for name, path in known.items()}
    edges = {name: {m for m, _ in rows if m in known and m != name} for name, rows in found.items()}
    inside = {
        f"{known[name].relative_to(ROOT)}: {m}"
        for name, rows in found.items()
        for m, in_function in rows
        if in_function
    }
    return circles(edges), inside


def test_no_circle_of_imports():
    found, _ = measured()
    assert not found, f"modules that import one another: {found}"


def test_imports_inside_functions():
    _, found = measured()
    assert found == set(INSIDE)


if __name__ == "__main__":
    knots, local = measured()
    print(f"{len(modules())} modules; circles: {knots or 'none'}")
    print(f"imports inside functions: {len(local)}", *sorted(local), sep="\n  ")
