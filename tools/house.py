"""The numbers by which the code itself was reviewed: sizes, seams, circles, names, types and width, of one or more checkouts.

usage: house.py CHECKOUT...      prints a Markdown table for each subject with a column for each checkout (a git work tree)
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

Row = dict[str, str]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try)
COMPILER = ("aot", "dynamo", "fx", "inductor", "loops")
ANNOTATED = ("base", "core", "fx", "autograd", "nn", "optim", "numpy", "distributions")


class Checkout:
    """The tracked files of a work tree and the syntax trees of the package's modules."""

    def __init__(self, root: Path):
        self.root = root
        listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True, check=True)
        self.files = [name for name in listed.stdout.splitlines() if (root / name).is_file()]
        self.source = self.texts(r"src/flambeau/.*\.py")
        self.native = self.texts(r"csrc/.*\.[ch]")
        self.trees = {name: ast.parse(text) for name, text in self.source.items()}

    def texts(self, pattern: str) -> dict[str, str]:
        return {name: (self.root / name).read_text() for name in self.files if re.fullmatch(pattern, name)}

    def functions(self) -> Iterator[tuple[str, ast.FunctionDef]]:
        for name, tree in self.trees.items():
            yield from ((name, node) for node in ast.walk(tree) if isinstance(node, FUNCTIONS))


def package_of(name: str) -> str:
    return name.split("/")[2]


def length(node: ast.stmt) -> int:
    return node.end_lineno - node.lineno + 1


def depth(node: ast.AST, level: int = 0) -> int:
    """How deep blocks stand in each other below ``node``, other functions and classes left out."""
    children = (c for c in ast.iter_child_nodes(node) if not isinstance(c, (*FUNCTIONS, ast.Lambda, ast.ClassDef)))
    return max((depth(c, level + isinstance(c, BLOCKS)) for c in children), default=level)


def share(part: int, whole: int, digits: int = 0) -> str:
    return f"{100 * part / whole:.{digits}f} %" if whole else ""


def sizes(tree: Checkout) -> Row:
    functions = list(tree.functions())
    lengths = [length(node) for _, node in functions]
    name, longest = max(((name, text.count("\n")) for name, text in tree.source.items()), key=lambda pair: pair[1])
    return {
        "lines of Python, of C": f"{sum(t.count(chr(10)) for t in tree.source.values())}, "
        f"{sum(t.count(chr(10)) for t in tree.native.values())}",
        "files of Python, of C": f"{len(tree.source)}, {len(tree.native)}",
        "functions, their mean length": f"{len(lengths)}, {sum(lengths) / len(lengths):.1f}",
        "longer than 50 lines": share(sum(n > 50 for n in lengths), len(lengths), 2),
        "longer than 70 lines": str(sum(n > 70 for n in lengths)),
        "longest function": str(max(lengths)),
        "functions with blocks five deep": str(sum(depth(node) >= 5 for _, node in functions)),
        "longest file": f"{longest} ({name.removeprefix('src/flambeau/')})",
    }


def seams(tree: Checkout) -> Row:
    native, source = "\n".join(tree.native.values()), "\n".join(tree.source.values())
    compiler = "\n".join(text for name, text in tree.source.items() if package_of(name) in COMPILER)
    return {
        "reads of `numbers[k]` in C": str(len(re.findall(r"\bnumbers\[\d+\]", native))),
        "`const int64_t *numbers` in C": str(len(re.findall(r"const int64_t \*numbers", native))),
        "`getattr` with a default in the compiler": str(len(re.findall(r'getattr\([^()]*, "\w+", ', compiler))),
        "files of the compiler that search text by `re`": str(
            sum(bool(re.search(r"^import re$", t, re.M)) for n, t in tree.source.items() if package_of(n) in COMPILER)
        ),
        "files that read `._array`": str(sum("._array" in text for text in tree.source.values())),
        "`except Exception`": str(source.count("except Exception")),
        "imports of the package by `importlib`": str(len(re.findall(r'import_module\(f?"flambeau\.', source))),
    }


def module_of(name: str) -> str:
    return name.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def targets(name: str, node: ast.stmt, known: set[str]) -> Iterator[str]:
    """The modules that an import statement names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    package = module_of(name).split(".")
    package = package if name.endswith("__init__.py") else package[:-1]
    base = package[: len(package) - node.level + 1] if node.level else []
    home = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        yield f"{home}.{alias.name}" if f"{home}.{alias.name}" in known else home


def largest_circle(edges: dict[str, set[str]]) -> int:
    """The size of the greatest set of modules each of which reaches each other."""
    reach = {v: reached(v, edges) for v in edges}
    return max((sum(v in reach[w] for w in reach[v] if w in reach) for v in edges if v in reach[v]), default=0)


def reached(start: str, edges: dict[str, set[str]]) -> set[str]:
    seen, todo = set(), [start]
    while todo:
        for w in edges.get(todo.pop(), ()):
            if w not in seen:
                seen.add(w)
                todo.append(w)
    return seen


def circles(tree: Checkout) -> Row:
    known = {module_of(name) for name in tree.trees}
    edges: dict[str, set[str]] = {module: set() for module in known}
    inside: Counter[str] = Counter()
    for name, parsed in tree.trees.items():
        local = {n for f in ast.walk(parsed) if isinstance(f, FUNCTIONS) for n in ast.walk(f)}
        for node in ast.walk(parsed):
            if isinstance(node, ast.Import | ast.ImportFrom):
                inside[package_of(name)] += node in local
                edges[module_of(name)].update(m for m in targets(name, node, known) if m in known)
    lines = {p: sum(t.count("\n") for n, t in tree.source.items() if p in ("", package_of(n))) for p in ("", "dynamo")}
    dynamo = {
        v: {w for w in to if w.startswith("flambeau.dynamo")} for v, to in edges.items() if "flambeau.dynamo" in v
    }
    return {
        "imports inside functions": f"{inside.total()} ({1000 * inside.total() / lines['']:.1f} in 1000 lines)",
        "of them in dynamo": f"{inside['dynamo']} ({1000 * inside['dynamo'] / lines['dynamo']:.1f} in 1000 lines)",
        "files of dynamo": str(len(dynamo)),
        "files in its largest circle": str(largest_circle(dynamo)),
    }


def names(tree: Checkout) -> Row:
    classes = Counter(
        node.name for parsed in tree.trees.values() for node in ast.walk(parsed) if isinstance(node, ast.ClassDef)
    )
    public = [name for name, n in classes.items() if n >= 3 and not name.startswith("_")]
    tests = {
        Path(name).stem.removeprefix("test_") for name in tree.files if re.fullmatch(r"tests/.*/test_\w+\.py", name)
    }
    modules = [Path(name).stem.lstrip("_") for name in tree.source if not name.endswith("__init__.py")]

    def flat(folder: str) -> str:
        return str(sum(Path(name).parent.as_posix() == folder for name in tree.files))

    return {
        "public names of three classes or more": f"{len(public)} ({', '.join(sorted(public))})" if public else "0",
        "modules named `more_...`, `..._more`": str(sum("more_" in m or m.endswith("_more") for m in modules)),
        "files at the top of `ops`, `inductor`": ", ".join(flat(f"src/flambeau/{p}") for p in ("ops", "inductor")),
        "files at the top of `dynamo`, `csrc`": ", ".join((flat("src/flambeau/dynamo"), flat("csrc"))),
        "modules that a test's name finds": f"{sum(m in tests for m in modules)} of {len(modules)}",
    }


def prose(tree: Checkout) -> Row:
    documents = tree.texts(r"docs/.*\.md")
    compiler = next((t for n, t in documents.items() if n.endswith("inductor.md")), "")
    subjects = subprocess.run(
        ["git", "-C", str(tree.root), "log", "--format=%s"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    lines = [line for text in tree.native.values() for line in text.splitlines()]
    return {
        "lines of C wider than 110, than 120": ", ".join(str(sum(len(x) > n for x in lines)) for n in (110, 120)),
        "decimal fractions in inductor.md": str(len(re.findall(r"\d\.\d", compiler))),
        "lines of the documents wider than 150": str(
            sum(len(x) > 150 and not x.startswith("|") for n, t in documents.items() for x in t.splitlines())
        ),
        "subjects of commits longer than 72": f"{sum(len(s) > 72 for s in subjects)} of {len(subjects)}",
        "LICENSE, CONTRIBUTING, glossary, .clang-format": ", ".join(
            "yes" if any(f.endswith(name) for f in tree.files) else "no"
            for name in ("LICENSE", "CONTRIBUTING.md", "docs/glossary.md", ".clang-format")
        ),
    }


def types(tree: Checkout) -> Row:
    """Public functions and methods: those with a docstring, and those whose every parameter and result is annotated."""
    found: Counter[tuple[str, str]] = Counter()
    for name, node in tree.functions():
        if node.name.startswith("_"):
            continue
        given = [
            a for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs) if a.arg not in ("self", "cls")
        ]
        for package in ("", package_of(name)):
            found[package, "all"] += 1
            found[package, "docstring"] += ast.get_docstring(node) is not None
            found[package, "typed"] += node.returns is not None and all(a.annotation for a in given)
    rows = {
        "with a docstring": share(found["", "docstring"], found["", "all"]),
        "annotated": share(found["", "typed"], found["", "all"]),
    }
    return rows | {f"annotated in {p}": share(found[p, "typed"], found[p, "all"]) for p in ANNOTATED}


SUBJECTS: dict[str, Callable[[Checkout], Row]] = {
    "Sizes": sizes,
    "Seams": seams,
    "Circles": circles,
    "Names and folders": names,
    "Prose": prose,
    "Docstrings and types": types,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="+", type=Path)
    trees = [Checkout(path) for path in parser.parse_args().checkouts]
    heads = [
        subprocess.run(
            ["git", "-C", str(t.root), "log", "-1", "--format=%h (%cs)"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for t in trees
    ]
    for title, measure in SUBJECTS.items():
        columns = [measure(tree) for tree in trees]
        print(f"\n## {title}\n\n| | {' | '.join(heads)} |\n| --- |{' --- |' * len(heads)}")
        for row in columns[0]:
            print(f"| {row} | {' | '.join(column[row] for column in columns)} |")


if __name__ == "__main__":
    main()
