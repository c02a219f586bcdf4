"""``repr`` of tensors, in PyTorch's layout, each number as wide as the widest."""

from __future__ import annotations

import contextlib
import math

import numpy as np

from ..base import dtypes
from . import quantized
from .device_memory import on_device, read
from .lazy import resolved

_PROFILES = {
    "default": dict(precision=4, threshold=1000, edgeitems=3, linewidth=80),
    "short": dict(precision=2, threshold=1000, edgeitems=2, linewidth=80),
    "full": dict(precision=4, threshold=math.inf, edgeitems=3, linewidth=80),
}
_options: dict = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """How tensors print: digits after the point, the number of elements from which the middle is left out, how many are then shown at each
    edge, characters a line, and whether numbers are in scientific notation (None: where magnitudes differ much). ``profile`` (``default``,
    ``short`` or ``full``) sets the first four; what is given beside it counts more. KeyError for another profile."""
    if profile is not None:
        _options.update(_PROFILES[profile])
    for k, v in dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth).items():
        if v is not None:
            _options[k] = v
    _options["sci_mode"] = sci_mode


class _Format:
    """One format for all elements: integers as such, floats with a fixed number of digits, or scientific where magnitudes differ much.

    The width is that of the widest element that is finite and not zero: nan, inf and zeros may stand out.
    """

    def __init__(self, a: np.ndarray):
        self.width = 1
        if a.dtype.kind in "biu":
            self.text = str
            self.width = max((len(str(x)) for x in a.ravel().tolist()), default=1)
            return
        p, scientific, whole = _options["precision"], False, True
        a = a.astype(np.float64)
        counted = a[np.isfinite(a) & (a != 0)]
        if counted.size:
            top, low = np.abs(counted).max(), np.abs(counted).min()
            whole = bool(np.all(counted == np.ceil(counted)))
            scientific = top > 1000 * low or top > 1e8 or (not whole and low < 1e-4)
            # Zeros, nan and infinities alone are never written with exponents.
            scientific = scientific if _options["sci_mode"] is None else _options["sci_mode"]
        kind = "e" if scientific else "f"
        self.text = self._whole if whole and not scientific else lambda x: f"{float(x):.{p}{kind}}"
        self.width = max((len(self.text(x)) for x in counted.tolist()), default=1)

    @staticmethod
    def _whole(x) -> str:
        x = float(x)
        return f"{x:.0f}." if math.isfinite(x) else f"{x:.0f}"

    def __call__(self, x) -> str:
        return self.text(x).rjust(self.width)


class _ComplexFormat:
    """Real and imaginary parts, each in a format of its own."""

    def __init__(self, a: np.ndarray):
        self.real, self.imag = _Format(a.real), _Format(a.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, x) -> str:
        imag = self.imag(x.imag).lstrip()
        return f"{self.real(x.real)}{'' if imag.startswith('-') else '+'}{imag}j"


def _nested(a: np.ndarray, fmt, indent: int, summarize: bool) -> str:
    edge = _options["edgeitems"]
    if a.ndim == 0:
        return fmt(a[()])
    short = summarize and len(a) > 2 * edge
    shown = (*a[:edge], *a[len(a) - edge :]) if short else a
    if a.ndim == 1:
        per_line = max(1, (_options["linewidth"] - indent) // (fmt.width + 2))
        items = [fmt(x) for x in shown]
        if short:
            items.insert(edge, " ...")
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [_nested(x, fmt, indent + 1, summarize) for x in shown]
    if short:
        rows.insert(edge, "...")
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def _array_text(a: np.ndarray, indent: int, summarize: bool) -> str:
    if a.size == 0:
        return "[]"
    shown = a
    if summarize:
        edge = _options["edgeitems"]
        for d in range(a.ndim):
            if a.shape[d] > 2 * edge:
                shown = np.take(shown, [*range(edge), *range(a.shape[d] - edge, a.shape[d])], axis=d)
    return _nested(a, (_ComplexFormat if a.dtype.kind == "c" else _Format)(shown), indent, summarize)


def _unsaid_dtypes() -> tuple:
    """What a literal's elements have without a word."""
    default = dtypes.get_default_dtype()
    return default, default.to_complex(), dtypes.int64, dtypes.bool_


def _sparse_str(t, record) -> str:
    """Parts one below the other, then what is known of the whole."""
    lines = []
    for name, part in record.named_parts():
        a = part._array
        size = f", size={tuple(a.shape)}" if a.size == 0 else ""
        head = f"{name}=tensor("
        lines.append(f"{head}{_array_text(a, 7 + len(head), a.size > _options['threshold'])}{size})")
    text = "tensor(" + (",\n" + " " * 7).join(lines)
    tail = [f"size={tuple(t._shape)}", f"nnz={record.nnz}"]
    if t._dtype not in _unsaid_dtypes():
        tail.append(f"dtype={t._dtype}")
    tail.append(f"layout={record.layout}")
    return _with_tail(t, text, tail, 7, newline=t.is_sparse)


def _quantized_str(t) -> str:
    """The values, then how the codes are read."""
    p, a = quantized.parts(t), quantized.dequantized(t)
    tail = [f"size={tuple(t._shape)}", f"dtype={t._dtype}", f"quantization_scheme={p.scheme}"]
    if p.axis is None:
        tail += [f"scale={p.scale}", f"zero_point={p.zero_point}"]
    else:
        tail += [f"scale={tensor_str(p.scale)}", f"zero_point={tensor_str(p.zero_point)}", f"axis={p.axis}"]
    return _with_tail(t, f"tensor({_array_text(a, 7, a.size > _options['threshold'])}", tail, 7)


def _with_tail(t, text: str, tail: list[str], indent: int, newline: bool = False) -> str:
    try:
        node = t._grad_fn
        name = None if node is None else node.name().rpartition("::")[2]
    except RuntimeError:
        # A view that has lost its history to a write.
        name = "Invalid"
    if name is not None:
        tail.append(f"grad_fn=<{name}>")
    elif t._requires_grad:
        tail.append("requires_grad=True")
    if t._forward is not None and t._forward.value is not None:
        tail.append(f"tangent={t._forward.value!r}")
    column = len(text) - text.rfind("\n") + 1
    for part in tail:
        if newline or column + len(part) + 2 > _options["linewidth"]:
            text, column, newline = f"{text},\n{' ' * indent}{part}", indent + len(part), False
        else:
            text, column = f"{text}, {part}", column + len(part) + 2
    return text + ")"


def tensor_str(t, contents: str | None = None) -> str:
    """The text of ``repr(t)``. A wrapper subclass without data shows what is known of it. ``contents``: in place of the elements."""
    text = _tensor_str(t, contents)
    # A wrapper that stands for a parameter keeps its class; PyTorch shows it so.
    return f"Parameter({text})" if getattr(t, "_is_param", False) and not t._flags & 2 else text


def _tensor_str(t, contents: str | None) -> str:
    name = "Parameter containing:\n" if t._flags & 2 else ""
    if t._array is None and not t._keys and hasattr(t._payload, "named_parts"):
        return name + _sparse_str(t, t._payload)
    if t._array is None and not t._keys and quantized.parts(t) is not None:
        return name + _quantized_str(t)
    plain = resolved(t)
    a = read(plain) if not t._keys and on_device(plain) else plain._array
    cls = "tensor" if type(t).__name__ in ("Tensor", "Parameter") else type(t).__name__
    indent = len(cls) + 1
    tail = []
    if contents is not None:
        tail += [f"device='{t._device}'"] if t._device.type != "cpu" else []
        tail += [f"dtype={t._dtype}"] if t._dtype not in _unsaid_dtypes() else []
        return name + _with_tail(t, f"{cls}({contents}", tail, indent)
    if a is None or t._keys:
        if t._device.type != "cpu":
            tail.append(f"device='{t._device}'")
        tail.append(f"size={tuple(t._shape)}")
        if t._dtype is not dtypes.get_default_dtype():
            tail.append(f"dtype={t._dtype}")
        return name + _with_tail(t, f"{cls}(...", tail, indent)
    summarize = a.size > _options["threshold"]
    text = _array_text(a, indent, summarize)
    if a.size == 0 and a.ndim != 1:
        tail.append(f"size={tuple(a.shape)}")
    if t._device.type != "cpu":
        tail.insert(0, f"device='{t._device}'")
    if t._dtype not in _unsaid_dtypes() or (a.size == 0 and t._dtype is not dtypes.get_default_dtype()):
        tail.append(f"dtype={t._dtype}")
    return name + _with_tail(t, f"{cls}({text}", tail, indent)


class _Options:
    """The settings of printing as attributes."""

    def __getattr__(self, name):
        if name in _options:
            return _options[name]
        if name == "sci_mode":
            return None
        raise AttributeError(name)


PRINT_OPTS = _Options()


def get_printoptions() -> dict:
    """The settings that :func:`set_printoptions` changes."""
    return {**_options, "sci_mode": None}


@contextlib.contextmanager
def printoptions(**kwargs):
    """Other settings for a block."""
    before = dict(_options)
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        _options.update(before)


def _add_suffixes(tensor_str: str, suffixes: list, indent: int, force_newline: bool) -> str:
    """``tensor_str, suffix, ...)`` broken where a line gets too long."""
    line = len(tensor_str) - tensor_str.rfind("\n") + 1
    parts = [tensor_str]
    for suffix in suffixes:
        if force_newline or line + len(suffix) + 2 > _options["linewidth"]:
            parts.append(",\n" + " " * indent + suffix)
            line, force_newline = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            line += len(suffix) + 2
    return "".join(parts) + ")"
