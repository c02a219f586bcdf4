"""Settings of capture, ``torch._dynamo.config``. Each knob is declared once; ``patch`` sets some for a while."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Config", "config"]


@dataclass(frozen=True)
class Knob:
    default: Any
    help: str
    env: str | None = None
    parse: Callable[[str], Any] = lambda s: s not in ("", "0", "false", "False")


KNOBS = {
    "cache_size_limit": Knob(8, "variants kept of one frame before it runs plainly"),
    "accumulated_cache_size_limit": Knob(256, "the same, over all configurations of one code object"),
    "fail_on_recompile_limit_hit": Knob(False, "raise instead of running plainly when the limit is hit"),
    "suppress_errors": Knob(False, "run plainly when the backend or capture itself fails", "TORCHDYNAMO_SUPPRESS_ERRORS"),
    "verbose": Knob(False, "show the traceback of capture with each break", "TORCHDYNAMO_VERBOSE"),
    "disable": Knob(False, "compile() does nothing", "TORCH_COMPILE_DISABLE"),
    "strict_guards": Knob(False, "run each guard's Python mirror too and compare", "FLAMBEAU_STRICT_GUARDS"),
    "strict_capture": Knob(False, "a defect of capture raises instead of running the frame plainly", "FLAMBEAU_STRICT_CAPTURE"),
    "trace_numpy": Knob(True, "capture NumPy functions and arrays"),
    "capture_func_transforms": Knob(True, "accepted for compatibility; transforms are captured"),
    "capture_scalar_outputs": Knob(False, "item() breaks the graph; capturing it is not implemented"),
    "capture_dynamic_output_shape_ops": Knob(False, "operators with data-dependent shapes break the graph"),
    "inline_inbuilt_nn_modules": Knob(True, "modules are traced through; their parameters are graph inputs"),
    "specialize_int": Knob(True, "integer arguments are guarded by value"),
    "assume_static_by_default": Knob(True, "sizes are guarded by value"),
    "automatic_dynamic_shapes": Knob(False, "sizes that change become symbolic; not implemented"),
    "dynamic_shapes": Knob(False, "sizes are symbolic; not implemented"),
    "skipfiles_inline_module_allowlist": Knob(None, "deprecated, without effect"),
    "numpy_default_float": Knob("float64", "default floating dtype of NumPy factories in captured code"),
    "numpy_default_complex": Knob("complex128", "default complex dtype of NumPy factories in captured code"),
    "numpy_default_int": Knob("int64", "default integer dtype of NumPy factories in captured code"),
    "max_traced_instructions": Knob(2_000_000, "instructions interpreted for one frame before it is given up"),
}
ALIASES = {"recompile_limit": "cache_size_limit", "accumulated_recompile_limit": "accumulated_cache_size_limit"}


class Config:
    """Attribute access to the knobs; unknown names raise AttributeError, as a misspelt setting must not pass."""

    def __init__(self):
        values = {}
        for name, k in KNOBS.items():
            text = os.environ.get(k.env) if k.env else None
            values[name] = k.default if text is None else k.parse(text)
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_listeners", [])

    def __getattr__(self, name):
        try:
            return self._values[ALIASES.get(name, name)]
        except KeyError:
            raise AttributeError(f"torch._dynamo.config.{name} does not exist") from None

    def __setattr__(self, name, value):
        name = ALIASES.get(name, name)
        if name not in self._values:
            raise AttributeError(f"torch._dynamo.config.{name} does not exist")
        self._values[name] = value
        for f in self._listeners:
            f(name, value)

    def __dir__(self):
        return [*self._values, *ALIASES, "patch", "help"]

    def help(self, name: str) -> str:
        return KNOBS[ALIASES.get(name, name)].help

    def patch(self, arg=None, value=None, **changes):
        """Context manager and decorator: ``patch(name=value)``, ``patch("name", value)`` or ``patch({"name": value})``."""
        if isinstance(arg, dict):
            changes = {**arg, **changes}
        elif arg is not None:
            changes = {arg: value, **changes}
        return _Patch(self, changes)


class _Patch:
    def __init__(self, config: Config, changes: dict[str, Any]):
        self.config, self.changes, self.saved = config, changes, []

    def __enter__(self):
        self.saved.append({k: getattr(self.config, k) for k in self.changes})
        for k, v in self.changes.items():
            setattr(self.config, k, v)
        return self

    def __exit__(self, *exc):
        for k, v in self.saved.pop().items():
            setattr(self.config, k, v)
        return False

    def __call__(self, fn):
        @functools.wraps(fn)
        def wrapper(*args, **kwargs):
            with self:
                return fn(*args, **kwargs)

        return wrapper


config = Config()
