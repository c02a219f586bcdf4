"""What the demo prints and draws."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flambeau.demo.fused import Fused
from flambeau.demo.timing import Pairs

__all__ = ["agreement", "fused_lines", "megabytes", "milliseconds", "plot"]

EAGER, COMPILED = "#8d99ae", "#e4572e"
KINDS = {
    "product": "#3d5a80",
    "kernel": "#e4572e",
    "rows": "#f2a541",
    "planes": "#f2a541",
    "native": "#2a9d8f",
    "together": "#b56576",
}


def milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:.2f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def megabytes(n: int) -> str:
    return f"{n / 1e6:.1f} MB"


def agreement(differences: Sequence[float], tolerance: float) -> tuple[bool, float, int]:
    """Whether two loss curves stay within ``tolerance``, their greatest difference, and the step where it is."""
    worst = max(range(len(differences)), key=differences.__getitem__)
    return differences[worst] <= tolerance, differences[worst], worst


def fused_lines(fused: Fused, largest: int) -> list[str]:
    """What was fused, as lines of text."""
    products = sum(e.note is not None and e.note.kind == "product" for e in fused.launches)
    n_launches = f"{len(fused.launches)} launch{'es' if len(fused.launches) != 1 else ''}"
    head = f"{fused.operators} operators run as {n_launches}, {products} of them matrix products"
    return [head, *(f"  {line}" for line in fused.largest(largest))]


def _dots(axes: Any, times: Pairs, title: str) -> None:
    """Every measured run as a dot, the medians as bars."""
    from statistics import median

    for y, (values, colour) in enumerate(((times.compiled, COMPILED), (times.plain, EAGER))):
        ms = [1000 * v for v in values]
        spread = [y + 0.28 * ((i * 0.618) % 1 - 0.5) for i in range(len(ms))]
        axes.scatter(ms, spread, s=14, color=colour, alpha=0.55, linewidths=0)
        axes.vlines(median(ms), y - 0.32, y + 0.32, color=colour, linewidth=2.5)
        axes.annotate(f"{median(ms):.3g} ms", (median(ms), y + 0.36), ha="center", fontsize=8, color=colour)
    axes.set_yticks([0, 1], ["compiled", "plain"])
    axes.set_ylim(-0.6, 1.7)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds (every run is a dot)")
    low, high = times.middle_half
    axes.set_title(f"{title}: {times.speed_up:.3g}x  ({low:.3g} to {high:.3g})", fontsize=10, loc="left")


def _timeline(axes: Any, fused: Fused) -> None:
    """The kernels of a training step in the order in which they ran, coloured by kind."""
    begin = fused.launches[0].time_range.start
    rows: dict[str, int] = {}
    for e in fused.launches:
        row = rows.setdefault(e.cpu_parent.name, len(rows))
        kind = "kernel" if e.note is None else e.note.kind
        left = (e.time_range.start - begin) / 1000
        axes.barh(row, e.cpu_time_total / 1000, left=left, height=0.7, color=KINDS.get(kind, "#999999"), linewidth=0)
    axes.set_yticks(range(len(rows)), [name.removeprefix("compiled ") for name in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds")
    for kind in dict.fromkeys("kernel" if e.note is None else e.note.kind for e in fused.launches):
        axes.barh(
            0,
            0,
            color=KINDS.get(kind, "#999999"),
            label={"kernel": "fused loops", "product": "matrix product"}.get(kind, kind),
        )
    axes.legend(fontsize=7, frameon=False, loc="upper right")
    title = f"One compiled step: {fused.operators} operators in {len(fused.launches)} launches"
    axes.set_title(title, fontsize=10, loc="left")


def plot(
    path: Path, function: Pairs, eager: list[float], compiled: list[float], steps: Pairs | None, fused: Fused | None
) -> None:
    """Four panels as a PNG: the NumPy function, the training step, the loss curves, the kernels of a step."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    style = {
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "font.size": 9,
    }
    with pyplot.rc_context(style):
        figure, panels = pyplot.subplots(2, 2, figsize=(11, 7), dpi=120)
        _dots(panels[0, 0], function, "NumPy function, times faster")
        if steps is not None:
            _dots(panels[0, 1], steps, "GPT training step, times faster")
        else:
            panels[0, 1].set_visible(False)
        losses = panels[1, 0]
        if compiled:
            losses.plot(compiled, color=COMPILED, alpha=0.25, linewidth=1)
            losses.plot(_smooth(compiled), color=COMPILED, linewidth=2, label="compiled")
        losses.plot(
            eager,
            color=EAGER if compiled else COMPILED,
            linewidth=1.6,
            linestyle="--" if compiled else "-",
            label="eager",
        )
        losses.set_xlabel("step")
        losses.set_title("Cross-entropy, nats a character", fontsize=10, loc="left")
        losses.legend(frameon=False)
        if fused is not None and fused.launches:
            _timeline(panels[1, 1], fused)
        else:
            panels[1, 1].set_visible(False)
        figure.tight_layout()
        figure.savefig(path)
        pyplot.close(figure)


def _smooth(values: list[float], width: int = 25) -> list[float]:
    """The mean of up to ``width`` values that end at each."""
    return [sum(part := values[max(0, i - width + 1) : i + 1]) / len(part) for i in range(len(values))]
