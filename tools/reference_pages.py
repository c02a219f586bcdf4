"""The reference of the documents, a page a module, written from signatures and docstrings while mkdocs builds the site (a hook of mkdocs.yml).

``python tools/reference_pages.py FOLDER`` writes the pages into a folder, to be looked at without mkdocs.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

# Page -> (title, module or class). Names that a module has from elsewhere are shown where PyTorch's users find them.
PAGES = {
    "torch": ("torch", "flambeau"),
    "tensor": ("torch.Tensor", "flambeau.Tensor"),
    "linalg": ("torch.linalg", "flambeau.linalg"),
    "fft": ("torch.fft", "flambeau.fft"),
    "special": ("torch.special", "flambeau.special"),
    "nn": ("torch.nn", "flambeau.nn"),
    "nn.functional": ("torch.nn.functional", "flambeau.nn.functional"),
    "nn.init": ("torch.nn.init", "flambeau.nn.init"),
    "nn.utils": ("torch.nn.utils", "flambeau.nn.utils"),
    "optim": ("torch.optim", "flambeau.optim"),
    "optim.lr_scheduler": ("torch.optim.lr_scheduler", "flambeau.optim.lr_scheduler"),
    "autograd": ("torch.autograd", "flambeau.autograd"),
    "func": ("torch.func", "flambeau.func"),
    "compiler": ("torch.compiler", "flambeau.compiler"),
    "export": ("torch.export", "flambeau.export"),
    "fx": ("torch.fx", "flambeau.fx"),
    "library": ("torch.library", "flambeau.library"),
    "amp": ("torch.amp", "flambeau.amp"),
    "sparse": ("torch.sparse", "flambeau.sparse"),
    "distributions": ("torch.distributions", "flambeau.distributions"),
    "utils.data": ("torch.utils.data", "flambeau.utils.data"),
    "utils.checkpoint": ("torch.utils.checkpoint", "flambeau.utils.checkpoint"),
    "profiler": ("torch.profiler", "flambeau.profiler"),
    "testing": ("torch.testing", "flambeau.testing"),
}

REFUSING = ("Can't be made", "Refuses:")  # how the documentation of what refuses at the use begins


def _module(path: str):
    if path == "flambeau.Tensor":
        return importlib.import_module("flambeau").Tensor
    return importlib.import_module(path)


def _names(where) -> list[str]:
    """What is public: ``__all__`` if there is one, else all names without an underscore."""
    every = getattr(where, "__all__", None) or dir(where)
    return sorted({n for n in every if not n.startswith("_")}, key=str.lower)


def _text(doc: str) -> str:
    """A docstring as Markdown: roles become code, examples and indented lines blocks."""
    doc = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", doc).replace("``", "`")
    lines, open_ = [], False
    for line in doc.splitlines():
        block = line.startswith("    ")
        if block != open_ and line.strip():
            lines += ["```", ""] if open_ else ["", "```text"]
            open_ = block
        lines.append(line[4:] if block and open_ else line)
    return "\n".join([*lines, *(["```"] if open_ else [])])


def _signature(name: str, value) -> str:
    try:
        shown = str(inspect.signature(value)).replace("'", "")
    except (TypeError, ValueError):
        shown = "(...)"
    # An address in a default is another one at each build.
    return re.sub(r" at 0x[0-9a-f]+", "", f"{name}{shown}")


def _entry(title: str, name: str, value) -> list[str]:
    doc = inspect.getdoc(value) if not isinstance(value, type) else inspect.cleandoc(value.__doc__ or "")
    return [f"## {name}", "", "```python", _signature(f"{title}.{name}", value), "```", "", _text(doc or ""), ""]


def page(title: str, path: str) -> str:
    """The page of a module: its own sentence, then each public callable."""
    where = _module(path)
    lines = [f"# {title}", "", _text(inspect.cleandoc(where.__doc__ or "")), ""]
    for name in _names(where):
        try:
            value = inspect.getattr_static(where, name) if isinstance(where, type) else getattr(where, name)
        except (AttributeError, ImportError):
            continue
        # What refuses at the use, and what has no documentation, isn't for readers.
        doc = value.__doc__ if isinstance(value.__doc__, str) else ""
        if callable(value) and not inspect.ismodule(value) and doc and not doc.startswith(REFUSING):
            lines += _entry(title, name, value)
    return "\n".join(lines)


def index() -> str:
    rows = [f"| [{title}]({name}.md) | {_first(_module(path))} |" for name, (title, path) in PAGES.items()]
    return "\n".join(
        [
            "# Reference",
            "",
            "Written from the signatures and docstrings.",
            "",
            "| module | |",
            "| --- | --- |",
            *rows,
            "",
        ]
    )


def _first(where) -> str:
    return inspect.cleandoc(where.__doc__ or "").partition("\n")[0].replace("``", "`").replace("|", "\\|")


def pages() -> dict[str, str]:
    """{path below docs/: text}."""
    warnings.simplefilter("ignore")
    made = {f"reference/{name}.md": page(title, path) for name, (title, path) in PAGES.items()}
    return {"reference/index.md": index(), **made}


def on_files(files, config):
    """mkdocs: the pages join the documents."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_config(config):
    """mkdocs: the pages join the part "Reference" of the navigation."""
    part = next(entry["Reference"] for entry in config.nav if "Reference" in entry)
    part[1:1] = [{title: f"reference/{name}.md"} for name, (title, _) in PAGES.items()]
    return config


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for path, text in pages().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
