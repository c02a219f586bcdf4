"""Builds the namespaces that have no code of their own from the tables ``devices.py`` and ``names.py``.

A table maps a module path (below ``flambeau.``) to lines ``rule: names``:

| rule | each name is |
| --- | --- |
| ``from module`` | that module's object, looked up when first asked for; ``new=old`` renames |
| ``value literal`` | the literal |
| ``returns literal`` | a function that takes anything and returns the literal |
| ``refuses`` | a function that raises NotImplementedError (of the module's ``why``) when it is called |
| ``class home`` | a class that can be named, subclassed and used with isinstance, and refuses to be made; ``home`` (else the section) is its module |
| ``decorator`` | returns the function it is put on, with or without arguments of its own |
| ``context`` | a context manager (and decorator) that does nothing |
| ``module`` | a submodule of the table |
| ``rest module`` (a line of its own, no names) | every other name is that module's (the root's for no module) |

``why`` is the reason in the errors of the section (else its parent's); names of a section can be added to a module that exists (see :func:`lookup`).
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import re
import types

from ..base import accelerator
from ..base.nearest import Absent
from ..core.overrides import wrap_function
from .aliases import ALIASES
from .devices import DEVICES
from .distributed_names import DISTRIBUTED
from .extras import EXTRAS
from .names import NAMES
from .paths import PATHS

__all__ = ["SECTIONS", "build", "lookup"]

SECTIONS: dict[str, str] = {**EXTRAS, **PATHS, **NAMES, **DISTRIBUTED, **DEVICES}
for _section, _text in [*SECTIONS.items()]:
    for _home, _names in re.findall(r"^(?:class|context) ([\w.]+): (.*)$", _text, re.MULTILINE):
        SECTIONS[_home] = f"{SECTIONS.get(_home, '')}\nfrom {_section.lstrip('+')}: {_names}"


class Unavailable(NotImplementedError):
    """A name that exists so that programs can be imported, and refuses its use."""


@functools.cache
def parse(section: str) -> dict[str, tuple[str, str]]:
    """{name: (rule, argument)}; ``why`` under the empty name."""
    parent = section.rpartition(".")[0]
    out = {"": parse(parent)[""] if parent in SECTIONS and section else ("why", "nothing here stands behind it")}
    for line in SECTIONS[section].strip().splitlines():
        if line.strip().partition(" ")[0] == "rest":
            out["*"] = ("rest", line.strip()[5:])
            continue
        head, _, names = line.strip().partition(": ")
        rule, _, argument = head.partition(" ")
        if rule == "why":
            out[""] = ("why", names)
            continue
        for name in names.split():
            new, _, old = name.partition("=")
            out[new] = (rule, f"{argument}:{old or new}" if rule == "from" else argument)
    return out


def _unavailable(path: str, why: str) -> Unavailable:
    if path.startswith(("torch.cuda.", "torch.backends.cuda.")) and accelerator.count():
        why = "it is not built for the CUDA device"
    return Unavailable(f"{path} is not available in flambeau: {why}")


def _refuse(path: str, why: str):
    def refuse(*args, **kwargs):
        raise _unavailable(path, why)

    refuse.__name__ = refuse.__qualname__ = path.rpartition(".")[2]
    refuse.__doc__ = f"Refuses: {why}."
    # What stands in for tensors, and modes, may do it in flambeau's place.
    return wrap_function(refuse, module=path.rpartition(".")[0])


def _class(path: str, why: str, home: str = ""):
    name = path.rpartition(".")[2]

    def __init__(self, *args, **kwargs):
        raise _unavailable(path, why)

    return type(
        name,
        (),
        {
            "__init__": __init__,
            "__module__": f"torch.{home}" if home else path.rpartition(".")[0],
            "__doc__": f"Can't be made: {why}.",
        },
    )


class _Nothing(contextlib.ContextDecorator):
    """A context that changes nothing; whatever it is given."""

    def __init__(self, *args, **kwargs):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


def _decorator(*args, **kwargs):
    """Gives the function back that it is put on: nothing here looks at it."""
    if len(args) == 1 and not kwargs and callable(args[0]):
        return args[0]
    return lambda fn: fn


def _constant(literal: str, name: str, why: str):
    value = ast.literal_eval(literal)

    def constant(*args, **kwargs):
        return value.copy() if isinstance(value, dict | list) else value

    constant.__name__ = constant.__qualname__ = name
    constant.__doc__ = f"Answers {value!r}, whatever it is given: {why}."
    return constant


def make(section: str, name: str):
    """The object that ``name`` is in ``section``. KeyError when the table doesn't have it."""
    rule, argument = parse(section)[name]
    if rule == "from":
        module, _, attribute = argument.partition(":")
        value = importlib.import_module(f"flambeau.{module}" if module else "flambeau")
        for part in attribute.split("."):
            value = getattr(value, part)
        return value
    if rule == "module":
        return importlib.import_module(f"flambeau.{section.lstrip('+')}.{name}" if section else f"flambeau.{name}")
    if rule == "value":
        return ast.literal_eval(argument)
    return _made(section, name)


@functools.cache
def _made(section: str, name: str):
    """What stands for a name without a home: one object however often it is asked for."""
    rule, argument = parse(section)[name]
    path = f"torch.{section.lstrip('+')}.{name}" if section else f"torch.{name}"
    why = parse(section)[""][1]
    if rule == "returns":
        return _constant(argument, name, why)
    if rule == "refuses":
        return _refuse(path, why)
    if rule == "class":
        return _class(path, why, argument)
    if rule == "decorator":
        return _decorator
    if rule == "context":
        doc = f"A block that changes nothing: {why}."
        return type(
            name,
            (_Nothing,),
            {"__module__": f"torch.{argument}" if argument else path.rpartition(".")[0], "__doc__": doc},
        )
    raise ValueError(f"rule {rule!r} of {path}")


def lookup(section: str, name: str):
    """``make``, for the ``__getattr__`` of a module that has code of its own. AttributeError when the table doesn't have the name either."""
    if name and section in SECTIONS and name in parse(section):
        return make(section, name)
    raise AttributeError(f"module 'torch.{section}' has no attribute {name!r}", name=name)


def extra(section: str, name: str):
    """(the object,) that ``extras.py`` has for a module with code of its own, or None."""
    key = "+" + section
    if key in SECTIONS and name and name in parse(key):
        return (make(key, name),)
    below = f"{section}.{name}"
    return (importlib.import_module(f"flambeau.{below}"),) if below in SECTIONS or below in ALIASES else None


def build(section: str, module: types.ModuleType) -> None:
    """Make ``module`` the namespace of ``section``: its names are made when they are asked for."""
    table = parse(section)
    rest = table.pop("*", None)

    def __getattr__(name):
        if rest is not None and name not in table and not name.startswith("__"):
            home = importlib.import_module(f"flambeau.{rest[1]}" if rest[1] else "flambeau")
            if hasattr(home, name):
                return getattr(home, name)
        if not name or name not in table:
            path = "torch" + module.__name__.removeprefix("flambeau")
            raise AttributeError(Absent.of_module(module, path, name), name=name, obj=module)
        value = module.__dict__[name] = make(section, name)
        return value

    names = [name for name in table if name]
    module.__dict__.update(
        __getattr__=__getattr__,
        __dir__=lambda: sorted({*module.__dict__, *names}),
        __all__=[name for name in names if not name.startswith("_")],
        __path__=[],
        __doc__=f"torch.{section}: {table[''][1]}",
    )
