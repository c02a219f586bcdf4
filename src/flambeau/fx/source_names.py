"""Names for the objects that a graph's source needs: a dotted path where one leads to them, else a global of its own."""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import re
import sys
import types
import typing
from typing import Any, Union

from .. import _C
from ..core.pickling import public_path

__all__ = ["Globals", "is_name", "type_text"]


def is_name(text: str) -> bool:
    return text.isidentifier() and not keyword.iskeyword(text)


class Globals:
    """Names for objects: an importable dotted name if there is one, else a fresh global."""

    def __init__(self, taken: set[str]):
        self.values: dict[str, Any] = {}
        self.names: dict[int, str] = {}
        self.taken = taken

    def bind(self, hint: str, obj: Any) -> str:
        known = self.names.get(id(obj))
        if known is not None:
            return known
        hint = re.sub(r"[^0-9a-zA-Z_]+", "_", hint).lstrip("0123456789") or "constant"
        name, n = hint, 0
        while name in self.taken or name in self.values or keyword.iskeyword(name) or hasattr(builtins, name):
            n += 1
            name = f"{hint}_{n}"
        self.values[name] = obj
        self.names[id(obj)] = name
        return name

    def root(self, name: str, module) -> str | None:
        """``name`` as a global meaning ``module``, unless the name is taken by something else."""
        if name in self.taken or self.values.get(name, module) is not module:
            return None
        self.values[name] = module
        return name

    def function(self, f: Any) -> str:
        """Source that evaluates to the callable ``f``."""
        known = self.names.get(id(f))
        if known is not None:
            return known
        torch = sys.modules.get("flambeau")
        if hasattr(f, "_schema") and torch is not None:
            if self.root("torch", torch):
                return f"torch.ops.{f}"
        name = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
        module = getattr(f, "__module__", None)
        if isinstance(name, str) and name.replace(".", "_").isidentifier():
            if getattr(builtins, name, None) is f and name not in self.taken:
                return name
            short = name.rpartition(".")[2]
            if torch is not None:
                place = public_path(f) if isinstance(f, _C.Function) else None
                if place is not None and self.root("torch", torch):
                    return f"torch{place[0].removeprefix('flambeau')}.{place[1]}"
                for path in (name, f"nn.functional.{short}", f"Tensor.{short}", f"_C.{short}"):
                    if _lookup(torch, path) is f and self.root("torch", torch):
                        return f"torch.{path}"
        label = f"{module}_{name}" if module and name else name or type(f).__name__
        return self.bind(label.replace(".", "_"), f)

    def imports(self) -> list[str]:
        """The lines that bind what can be imported: modules, and what a module has under its own name."""
        lines = []
        for name, v in self.values.items():
            if name == "torch" and getattr(v, "__name__", "") == "flambeau":
                lines.append("import flambeau as torch")
            elif name in ("device", "inf", "nan"):
                lines.append(f"from flambeau import {name}")
            elif type(v).__name__ == "module" and v.__name__ == name:
                lines.append(f"import {name}")
            else:
                module, own = getattr(v, "__module__", None), getattr(v, "__qualname__", None)
                if module and own and module in sys.modules and getattr(sys.modules[module], own, None) is v:
                    lines.append(f"from {module} import {own} as {name}")
        return lines

    def literal(self, v: Any) -> str:
        """Source that evaluates to the constant ``v``."""
        t = type(v)
        if v is None or v is Ellipsis or t in (bool, int, str, bytes):
            return repr(v)
        if t is float:
            if math.isfinite(v):
                return repr(v)
            if v != v and math.copysign(1.0, v) < 0:
                return "float('-nan')"  # nan has a sign too
            self.root("nan" if v != v else "inf", math.nan if v != v else math.inf)
            return repr(v)
        if t is complex:
            # NOTE: read as an expression, the text of a complex number loses signs of zeros: -0j is the negative of 0j.
            return (
                repr(v) if v.imag and math.isfinite(v.real) and math.isfinite(v.imag) and v.real else f"complex('{v}')"
            )
        if t is range:
            return repr(v)
        if isinstance(v, enum.Enum):
            return f"{self.function(t)}.{v.name}" if v.name is not None else self.bind(t.__name__.lower(), v)
        if t.__name__ in ("Tensor", "Parameter"):
            return self.bind(t.__name__.lower(), v)
        text = repr(v)
        torch = sys.modules.get("flambeau")
        if (
            torch is not None
            and re.fullmatch(r"torch(\.\w+)+", text)
            and _lookup(torch, text[6:]) is v
            and self.root("torch", torch)
        ):
            return text
        if (
            t.__name__.lower() == "device"
            and torch is not None
            and getattr(torch, "device", None) is t
            and self.root("device", t)
        ):
            return text if text.startswith("device(") else f"device({str(v)!r})"
        if isinstance(v, type) or callable(v):
            return self.function(v)
        return self.bind(t.__name__.lower(), v)


def _lookup(obj: Any, path: str) -> Any:
    # Looks only at what is already loaded: printing a graph must not import a lazily loaded subpackage.
    for part in path.split(".") if path else ():
        obj = vars(obj).get(part) if isinstance(obj, types.ModuleType) else getattr(obj, part, None)
        if obj is None:
            return None
    return obj


def type_text(t: Any, g: Globals) -> str:
    """An annotation as code: ``int``, ``torch.Tensor``, ``typing_List[torch.Tensor]``."""
    if t == ():
        return "()"
    origin = getattr(t, "__origin__", None)
    args = getattr(t, "__args__", None)
    if origin is not None and args and getattr(t, "__module__", None) == "typing" and origin is not Union:
        generic = getattr(typing, getattr(t, "_name", None) or "", origin)
        return f"{g.bind(f'typing_{generic._name}', generic)}[{','.join(type_text(a, g) for a in args)}]"
    if isinstance(t, type) and origin is None:
        torch = sys.modules.get("flambeau")
        if torch is not None and getattr(torch, t.__name__, None) is t and g.root("torch", torch):
            return f"torch.{t.__name__}"
        return g.function(t)
    if isinstance(t, str):
        return repr(t)
    return g.bind(re.sub(r"\W+", "_", repr(t)).strip("_"), t)
