"""``repr`` of tensors, in PyTorch's layout, by NumPy's array printer."""

from __future__ import annotations

import numpy as np

from ..base import dtypes

_options = dict(precision=4, threshold=1000, edgeitems=3, linewidth=80)


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Change how tensors print."""
    for k, v in dict(precision=precision, threshold=threshold, edgeitems=edgeitems, linewidth=linewidth).items():
        if v is not None:
            _options[k] = v


def _formatter(a: np.ndarray):
    """One format for all elements: integers as such, floats with a fixed number of digits, scientific where magnitudes differ much."""
    if a.dtype.kind == "b":
        width = max((len(str(bool(x))) for x in a.flat), default=0)
        return lambda x: str(bool(x)).rjust(width)
    if a.dtype.kind in "iu":
        width = max((len(str(x)) for x in a.flat), default=0)
        return lambda x: str(x).rjust(width)
    if a.dtype.kind == "c":
        return lambda x: f"{x.real:.4f}{x.imag:+.4f}j"
    p = _options["precision"]
    a = a.astype(np.float64)
    finite = a[np.isfinite(a) & (a != 0)]
    ints = bool(np.all(a[np.isfinite(a)] == np.ceil(a[np.isfinite(a)])))
    top, low = (np.abs(finite).max(), np.abs(finite).min()) if finite.size else (0.0, 1.0)
    if ints and top < 1e8:
        text = lambda x: f"{float(x):.0f}." if np.isfinite(x) else str(float(x))  # noqa: E731
    elif finite.size and (top / low > 1000 or top > 1e8 or low < 1e-4):
        text = lambda x: f"{float(x):.{p}e}" if np.isfinite(x) else str(float(x))  # noqa: E731
    else:
        text = lambda x: f"{float(x):.{p}f}" if np.isfinite(x) else str(float(x))  # noqa: E731
    width = max((len(text(x)) for x in a.flat), default=0)
    return lambda x: text(x).rjust(width)


def _nested(a: np.ndarray, fmt, indent: int, summarize: bool) -> str:
    edge = _options["edgeitems"]
    if a.ndim == 0:
        return fmt(a[()])
    if a.ndim == 1:
        per_line = max(1, (_options["linewidth"] - indent) // (max(len(fmt(x)) for x in a.flat) + 2)) if a.size else 1
        items = (
            [fmt(x) for x in a[:edge]] + ["..."] + [fmt(x) for x in a[-edge:]]
            if summarize and len(a) > 2 * edge
            else [fmt(x) for x in a]
        )
        lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    rows = [
        _nested(x, fmt, indent + 1, summarize)
        for x in (a if not summarize or len(a) <= 2 * edge else (*a[:edge], *a[-edge:]))
    ]
    if summarize and len(a) > 2 * edge:
        rows.insert(edge, "...")
    return "[" + ("," + "\n" * (a.ndim - 1) + " " * (indent + 1)).join(rows) + "]"


def tensor_str(t) -> str:
    """The text of ``repr(t)``. A wrapper subclass without data shows what is known of it."""
    name = "Parameter containing:\n" if t._flags & 2 else ""
    if t._array is None or t._keys:
        device = f", device='{t._device}'" if t._device.type != "cpu" else ""
        return f"{type(t).__name__}(..., size={tuple(t._shape)}, dtype={t._dtype}{device})"
    a = t._array
    summarize = a.size > _options["threshold"]
    shown = a
    if summarize:
        edge = _options["edgeitems"]
        for d in range(a.ndim):
            if a.shape[d] > 2 * edge:
                shown = np.take(shown, [*range(edge), *range(a.shape[d] - edge, a.shape[d])], axis=d)
    cls = "tensor" if type(t).__name__ in ("Tensor", "Parameter") else type(t).__name__
    indent = len(cls) + 1
    text = _nested(a, _formatter(shown), indent, summarize) if a.size or a.ndim == 1 else "[]"
    tail = []
    if a.size == 0 and a.ndim != 1:
        tail.append(f"size={tuple(a.shape)}")
    if t._dtype not in (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_) or (
        a.size == 0 and t._dtype is not dtypes.get_default_dtype()
    ):
        tail.append(f"dtype={t._dtype}")
    if t._grad_fn is not None:
        tail.append(f"grad_fn=<{t._grad_fn.name()}>")
    elif t._requires_grad:
        tail.append("requires_grad=True")
    text = f"{cls}({text}"
    column = len(text) - text.rfind("\n") + 1
    for part in tail:
        if column + len(part) + 2 > _options["linewidth"]:
            text, column = f"{text},\n{' ' * indent}{part}", indent + len(part)
        else:
            text, column = f"{text}, {part}", column + len(part) + 2
    return f"{name}{text})"
