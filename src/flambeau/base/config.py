"""Settings: each knob is declared once with its default, type, help text, environment variables and whether it enters the compile-cache key.

A :class:`Config` is a namespace of knobs (``torch._dynamo.config``). Unknown names raise AttributeError, so that a misspelt setting can't
pass, and so do settings of PyTorch that aren't built, in words of their own; a value of the wrong type raises TypeError. Dotted
names ("trace.enabled") make nested groups.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import os
import sys
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


class Config:
    """Attribute access to knobs. ``path`` is the name users know, e.g. ``torch._dynamo.config``."""

    def __init__(
        self,
        path: str,
        knobs: dict[str, Knob],
        aliases: dict[str, str] | None = None,
        not_built: frozenset[str] = frozenset(),
    ):
        set_ = object.__setattr__
        set_(self, "_path", path)
        set_(self, "_knobs", {n: k for n, k in knobs.items() if "." not in n})
        set_(self, "_aliases", aliases or {})
        set_(self, "_not_built", not_built)
        set_(self, "_values", {n: k.initial() for n, k in knobs.items() if "." not in n})
        set_(self, "_groups", {})
        set_(self, "_listeners", [])
        for group in {n.split(".")[0] for n in knobs if "." in n}:
            inner = {n[len(group) + 1 :]: k for n, k in knobs.items() if n.startswith(group + ".")}
            self._groups[group] = Config(f"{path}.{group}", inner)

    def _name(self, name: str) -> str:
        name = self._aliases.get(name, name)
        if name in self._not_built:
            raise AttributeError(f"{self._path}.{name} is a setting of PyTorch that is not built here")
        if name not in self._knobs:
            raise AttributeError(f"{self._path}.{name} does not exist")
        return name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
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
        return [*self._values, *self._groups, *self._aliases, "patch", "help", "key"]

    def __contains__(self, dotted: str) -> bool:
        group, _, rest = dotted.partition(".")
        return (
            rest in self._groups[group]
            if rest and group in self._groups
            else self._aliases.get(dotted, dotted) in self._values
        )

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
        return hashlib.md5(repr(sorted(compiled.items())).encode(), usedforsecurity=False).digest()

    def patch(self, arg=None, value=None, **changes):
        """Context manager and decorator: ``patch(name=value)``, ``patch("a.b", value)`` or ``patch({"name": value})``."""
        if isinstance(arg, dict):
            changes = {**arg, **changes}
        elif arg is not None:
            changes = {arg: value, **changes}
        return _Patch(self, changes)


class _Patch:
    def __init__(self, config: Config, changes: dict[str, Any]):
        self.config, self.changes, self.saved = config, changes, []

    def __enter__(self):
        self.saved.append({k: self.config.get(k) for k in self.changes})
        for k, v in self.changes.items():
            self.config.set(k, v)
        return self

    def __exit__(self, *exc):
        for k, v in self.saved.pop().items():
            self.config.set(k, v)
        return False

    def __call__(self, fn):
        if isinstance(fn, type):
            return self._of_class(fn)

        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with _Patch(self.config, self.changes):
                return fn(*args, **kwargs)

        return wrapper

    def _of_class(self, cls: type) -> type:
        """``cls``, a unittest.TestCase, with the changes made around all of its tests. TypeError for any other class."""
        unittest = sys.modules.get("unittest")  # nothing else here needs it
        if unittest is None or not issubclass(cls, unittest.TestCase):
            raise TypeError(f"patch() decorates functions and classes of tests, not the class {cls.__name__}")
        config, changes = self.config, self.changes

        def setUpClass(tests):
            patch = _Patch(config, changes)
            patch.__enter__()
            tests.addClassCleanup(patch.__exit__)
            super(patched, tests).setUpClass()

        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        patched = type(cls)(cls.__name__, (cls,), {**names, "setUpClass": classmethod(setUpClass)})
        return patched
