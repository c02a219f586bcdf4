"""Settings: each knob is declared once with its default, type, help text, environment variables and whether it enters the compile-cache key.

A :class:`Config` is a namespace of knobs (``torch._dynamo.config``). Unknown names raise AttributeError, so that a misspelt setting can't
pass, and so do settings of PyTorch that aren't built, in words of their own; a value of the wrong type raises TypeError. Dotted
names ("trace.enabled") make nested groups.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

from .records import slotted

__all__ = ["Config", "Knob"]


def _flag(text: str) -> bool:
    return text.strip().lower() not in ("", "0", "false", "no", "off")


_PARSERS = {bool: _flag, int: int, float: float, str: str}


@slotted
class Knob:
    """``env``: environment variables that set it at start, the first one set wins. ``in_key``: a change makes cached code stale.
    ``only``: no value but the default is built. ``diagnostic``: it concerns what is said, shown and checked, never what is compiled."""

    default: Any
    help: str
    env: tuple[str, ...] = ()
    in_key: bool = False
    type: type | None = None
    only: bool = False
    diagnostic: bool = False

    def initial(self) -> Any:
        kind = self.type or type(self.default)
        for name in self.env:
            text = os.environ.get(name)
            if text is not None:
                try:
                    return _PARSERS.get(kind, str)(text)
                except ValueError:
                    raise ValueError(
                        f"environment variable {name}={text!r} is not a valid {kind.__name__} ({self.help})"
                    ) from None
        return copy.copy(self.default)


def _by_group(named: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Those of ``named`` whose names have a dot, by what stands before it."""
    out: dict[str, dict[str, Any]] = {}
    for group, rest, value in ((*n.split(".", 1), v) for n, v in named.items() if "." in n):
        out.setdefault(group, {})[rest] = value
    return out


def _of_group(accepted: Callable[[], dict[str, Any]], group: str) -> Callable[[], dict[str, Any]]:
    return lambda: _by_group(accepted()).get(group, {})


class Config:
    """Attribute access to knobs. ``path`` is the name users know, e.g. ``torch._dynamo.config``."""

    def __init__(
        self,
        path: str,
        knobs: dict[str, Knob],
        aliases: dict[str, str] | None = None,
        not_built: frozenset[str] = frozenset(),
        accepted: Callable[[], dict[str, Any]] | None = None,
    ):
        """``accepted``: gives PyTorch's other settings by dotted name with the one value that may be set, asked for when one is used."""
        set_ = object.__setattr__
        set_(self, "_path", path)
        set_(self, "_knobs", {n: k for n, k in knobs.items() if "." not in n})
        set_(self, "_aliases", aliases or {})
        set_(self, "_not_built", not_built)
        set_(self, "_accepted", accepted)
        set_(self, "_values", {n: k.initial() for n, k in knobs.items() if "." not in n})
        set_(self, "_groups", {})
        set_(self, "_listeners", [])
        for group, inner in _by_group(knobs).items():
            self._groups[group] = Config(f"{path}.{group}", inner, accepted=accepted and _of_group(accepted, group))

    def _load_accepted(self) -> None:
        """Make the knobs of ``accepted``."""
        if self._accepted is None:
            return
        accepted, values = self._accepted, self._accepted()
        object.__setattr__(self, "_accepted", None)
        for name in values.keys() - self._knobs.keys():
            if "." not in name:
                self._knobs[name] = Knob(values[name], "PyTorch's, without meaning here", only=True)
                self._values[name] = self._knobs[name].initial()
        for group in _by_group(values).keys() - self._groups.keys():
            self._groups[group] = Config(f"{self._path}.{group}", {}, accepted=_of_group(accepted, group))

    def _name(self, name: str) -> str:
        name = self._aliases.get(name, name)
        if name in self._not_built:
            raise AttributeError(f"{self._path}.{name} is a setting of PyTorch that is not built here")
        if name not in self._knobs:
            self._load_accepted()
        if name not in self._knobs:
            raise AttributeError(f"{self._path}.{name} does not exist")
        return name

    def built(self, dotted: str) -> bool:
        """Whether there is such a knob and more than its default may be set."""
        group, _, rest = dotted.partition(".")
        if rest:
            return group in self._groups and self._groups[group].built(rest)
        return dotted in self._knobs and not self._knobs[dotted].only

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._groups:
            return self._groups[name]
        if name not in self._knobs:
            self._load_accepted()
            if name in self._groups:
                return self._groups[name]
        name = self._name(name)
        if name not in self._values:
            raise AttributeError(f"{self._path}.{name} was deleted")
        return self._values[name]

    def __setattr__(self, name, value):
        name = self._name(name)
        knob = self._knobs[name]
        if knob.type is not None and not isinstance(value, knob.type):
            raise TypeError(f"{self._path}.{name} must be {knob.type.__name__}, not {type(value).__name__}")
        if knob.only and value != knob.default:
            raise NotImplementedError(f"{self._path}.{name} = {value!r} is not built: only {knob.default!r} is")
        before = self._values.get(name, knob.default)
        self._values[name] = value
        try:
            for listener in self._listeners:
                listener(name, value)
        except BaseException:
            self._values[name] = before
            raise

    def __delattr__(self, name):
        """Takes a knob away until it is set again: unittest.mock.patch deletes what it then puts back."""
        name = self._name(name)
        if name not in self._values:
            raise AttributeError(f"{self._path}.{name} was deleted")
        del self._values[name]

    def __dir__(self):
        self._load_accepted()
        return [*self._values, *self._groups, *self._aliases, "patch", "help", "key"]

    def __contains__(self, dotted: str) -> bool:
        self._load_accepted()
        group, _, rest = dotted.partition(".")
        return (
            rest in self._groups[group]
            if rest and group in self._groups
            else self._aliases.get(dotted, dotted) in self._values
        )

    def names(self) -> list[str]:
        """Every knob, by dotted name."""
        self._load_accepted()
        return [*self._knobs, *(f"{g}.{n}" for g, inner in self._groups.items() for n in inner.names())]

    def get(self, dotted: str):
        """Value of a knob by its dotted name."""
        at = self
        for part in dotted.split("."):
            at = getattr(at, part)
        return at

    def set(self, dotted: str, value) -> None:
        *groups, last = dotted.split(".")
        at = self
        for part in groups:
            at = getattr(at, part)
        setattr(at, last, value)

    def help(self, dotted: str) -> str:
        """What the knob does."""
        *groups, last = dotted.split(".")
        at = self
        for part in groups:
            at = getattr(at, part)
        return at._knobs[at._name(last)].help

    def changed(self) -> dict[str, Any]:
        """The knobs (by dotted name) that differ from their defaults, and their values."""
        out = {n: v for n, v in self._values.items() if v != self._knobs[n].default}
        for group, inner in self._groups.items():
            out.update({f"{group}.{n}": v for n, v in inner.changed().items()})
        return out

    def key(self) -> str:
        """Text of the settings that change generated code, for cache keys."""
        own = [f"{n}={self._values.get(n, k.default)!r}" for n, k in sorted(self._knobs.items()) if k.in_key]
        return " ".join(own + [f"{g}({c.key()})" for g, c in sorted(self._groups.items()) if c.key()])

    @property
    def _compile_ignored_keys(self) -> frozenset[str]:
        """Knobs that change no generated code, PyTorch's name of them: how much is said, shown and checked."""
        return frozenset(n for n, k in self._knobs.items() if k.diagnostic)

    def get_hash(self) -> bytes:
        """Digest of the settings that may change what is compiled."""
        compiled = {n: v for n, v in self.changed().items() if n not in self._compile_ignored_keys}
        import hashlib  # OpenSSL, which a program that only imports flambeau needs not

        return hashlib.md5(repr(sorted(compiled.items())).encode(), usedforsecurity=False).digest()

    def patch(self, arg=None, value=None, **changes):
        """Context manager and decorator: ``patch(name=value)``, ``patch("a.b", value)`` or ``patch({"name": value})``."""
        from .patch import Patch

        if isinstance(arg, dict):
            changes = {**arg, **changes}
        elif arg is not None:
            changes = {arg: value, **changes}
        return Patch(self, changes)
