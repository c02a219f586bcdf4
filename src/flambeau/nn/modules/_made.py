"""Layers that hold options and call one function with them, made from their signatures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from flambeau.modules.module import Module
from flambeau.nn.modules._tuples import _single

__all__ = ["layer"]


def layer(
    name: str,
    function: Callable[..., Any],
    options: str,
    doc: str,
    *,
    inputs: str = "input",
    shown: str | None = None,
    check: str = "",
    passed: str | None = None,
    base: type[Module] = Module,
) -> type[Module]:
    """The class ``name``: ``__init__(options)`` keeps each option as an attribute, ``forward(inputs)`` is ``function(inputs, options)``.

    ``options`` is a parameter list as in Python ("kernel_size, stride=None"), ``shown`` the options in the repr (all; ``*name``: its
    value only, and ``inplace`` is only told when it is on), ``check`` statements that
    refuse bad options, ``passed`` the options that the function takes (all), with ``name=expression`` for another expression than the attribute:
    an input with a default, too.
    """
    names = [part.split(":")[0].split("=")[0].strip() for part in options.split(",")] if options else []
    names = [n for n in names if n != "*"]
    calls = [f"{n}={n_}" for n, n_ in _pairs(passed if passed is not None else " ".join(names))]
    shown_names = names if shown is None else shown.split()
    lines = [f"def __init__(self{', ' + options if options else ''}):", "    super(cls, self).__init__()"]
    lines += [f"    {line}" for line in check.strip().splitlines()]
    lines += [f"    self.{n} = {n}" for n in names]
    required = [i.strip() for i in inputs.split(",") if "=" not in i]
    lines += [
        f"def forward(self, {inputs}):",
        f"    return function({', '.join([*required, *calls])})",
    ]
    lines += [
        "def extra_repr(self):",
        f"    shown = [{', '.join(_shown(n) for n in shown_names if n != 'inplace')}]",
        *(["    shown += ['inplace=True'] if self.inplace else []"] if "inplace" in shown_names else []),
        "    return ', '.join(shown)",
    ]
    env = {"function": function, "single": _single}
    exec("\n".join(lines), env)
    members = {n: env[n] for n in ("__init__", "forward", "extra_repr")}
    for method in members.values():
        method.__qualname__ = f"{name}.{method.__name__}"
    caller = sys._getframe(1).f_globals["__name__"]
    cls = type(name, (base,), {**members, "__doc__": doc, "__module__": caller})
    env["cls"] = cls
    return cls


def _shown(name: str) -> str:
    return f"f'{{self.{name[1:]}!r}}'" if name.startswith("*") else f"f'{name}={{self.{name}!r}}'"


def _pairs(passed: str):
    for item in passed.split():
        name, _, expression = item.partition("=")
        yield name, expression or f"self.{name}"
