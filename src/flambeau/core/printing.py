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


def _unsaid():
    """The dtypes that values are taken to have."""
    real = dtypes.get_default_dtype()
    return real, real.to_complex(), dtypes.int64, dtypes.bool_


def _formatter(a: np.ndarray):
    """One format for all elements: integers as such, floats with a fixed number of digits, scientific where magnitudes differ much."""
    if a.dtype.kind == "b":
        width = max((len(str(bool(x))) for x in a.flat), default=0)
        return lambda x: str(bool(x)).rjust(width)
    if a.dtype.kind in "iu":
        width = max((len(str(x)) for x in a.flat), default=0)
        return lambda x: str(x).rjust(width)
    if a.dtype.kind == "c":
        real, imag = _formatter(a.real), _formatter(a.imag)

        def both(x):
            tail = imag(x.imag).lstrip() + "j"
            return real(x.real) + (tail if tail[0] == "-" else "+" + tail)

        return both
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
    width = max((len(text(x)) for x in finite), default=0)  # as in PyTorch: zeros, nan and infinities don't count
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


def _array_text(a: np.ndarray, indent: int, summarize: bool) -> str:
    shown = a
    if summarize:
        edge = _options["edgeitems"]
        for d in range(a.ndim):
            if a.shape[d] > 2 * edge:
                shown = np.take(shown, [*range(edge), *range(a.shape[d] - edge, a.shape[d])], axis=d)
    return _nested(a, _formatter(shown), indent, summarize) if a.size or a.ndim == 1 else "[]"


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
    if t._dtype not in _unsaid():
        tail.append(f"dtype={t._dtype}")
    tail.append(f"layout={record.layout}")
    return _with_tail(t, text, tail, 7, newline=t.is_sparse)


def _with_tail(t, text: str, tail: list[str], indent: int, newline: bool = False) -> str:
    if t._grad_fn is not None:
        tail.append(f"grad_fn=<{t._grad_fn.name()}>")
    elif t._requires_grad:
        tail.append("requires_grad=True")
    column = len(text) - text.rfind("\n") + 1
    for part in tail:
        if newline or column + len(part) + 2 > _options["linewidth"]:
            text, column, newline = f"{text},\n{' ' * indent}{part}", indent + len(part), False
        else:
            text, column = f"{text}, {part}", column + len(part) + 2
    return text + ")"


def tensor_str(t) -> str:
    """The text of ``repr(t)``. A wrapper subclass without data shows what is known of it."""
    name = "Parameter containing:\n" if t._flags & 2 else ""
    if t._array is None and not t._keys and hasattr(t._payload, "named_parts"):
        return name + _sparse_str(t, t._payload)
    if t._array is None or t._keys:
        device = f", device='{t._device}'" if t._device.type != "cpu" else ""
        return f"{type(t).__name__}(..., size={tuple(t._shape)}, dtype={t._dtype}{device})"
    a = t._array
    summarize = a.size > _options["threshold"]
    cls = "tensor" if type(t).__name__ in ("Tensor", "Parameter") else type(t).__name__
    indent = len(cls) + 1
    text = _array_text(a, indent, summarize)
    tail = []
    if a.size == 0 and a.ndim != 1:
        tail.append(f"size={tuple(a.shape)}")
    if t._dtype not in _unsaid() or (a.size == 0 and t._dtype is not dtypes.get_default_dtype()):
        tail.append(f"dtype={t._dtype}")
    return name + _with_tail(t, f"{cls}({text}", tail, indent)
