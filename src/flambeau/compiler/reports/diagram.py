"""An fx graph as SVG: nodes in rows by how far they are from the inputs."""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["diagram"]

WIDTH, HEIGHT, GAP_X, GAP_Y = 190, 40, 26, 46


def diagram(gm: Any, kernels: dict[str, int]) -> str:
    """``kernels``: name of a node -> number of the launch it became part of, which gives its colour."""
    nodes = [n for n in gm.graph.nodes if n.op != "output"]
    row: dict[Any, int] = {}
    for n in nodes:
        row[n] = 1 + max((row[a] for a in n.all_input_nodes if a in row), default=-1)
    rows: dict[int, list[Any]] = {}
    for n in nodes:
        rows.setdefault(row[n], []).append(n)
    at = {}
    for y, members in rows.items():
        members.sort(key=lambda n: _middle(n, at))
        for x, n in enumerate(members):
            at[n] = (x * (WIDTH + GAP_X), y * (HEIGHT + GAP_Y))
    width = max((len(m) for m in rows.values()), default=1) * (WIDTH + GAP_X)
    height = len(rows) * (HEIGHT + GAP_Y)
    parts = []
    for n in nodes:
        x, y = at[n]
        for a in n.all_input_nodes:
            if a in at:
                ax, ay = at[a][0] + WIDTH / 2, at[a][1] + HEIGHT
                bx = x + WIDTH / 2
                parts.append(f'<path d="M{ax},{ay} C{ax},{ay + 24} {bx},{y - 24} {bx},{y}"/>')
    for n in nodes:
        x, y = at[n]
        number = kernels.get(n.name)
        hue = f' style="--hue:{(number * 67) % 360}"' if number is not None else ""
        kind = "input" if n.op in ("placeholder", "get_attr") else "fused" if number is not None else "node"
        label = n.name if kind == "input" else f"{n.name}"
        what = _shape(n)
        title = f"{n.name}: {n.target}\n{what}" + (f"\nlaunch {number}" if number is not None else "")
        parts.append(
            f'<g class="{kind}"{hue} data-text="{escape(f"{n.name} {n.target}".lower(), quote=True)}" transform="translate({x},{y})">'
            f"<title>{escape(title)}</title>"
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6"/><text x="8" y="17">{escape(_cut(label))}</text>'
            f'<text x="8" y="32" class="small">{escape(_cut(what))}</text></g>'
        )
    return f'<svg class="graph" viewBox="-10 -10 {width + 20} {height + 20}" data-w="{width}" data-h="{height}">{"".join(parts)}</svg>'


def _middle(n: Any, at: dict) -> float:
    known = [at[a][0] for a in n.all_input_nodes if a in at]
    return sum(known) / len(known) if known else 1e9


def _cut(text: str) -> str:
    return text if len(text) <= 26 else text[:25] + "…"


def _shape(n: Any) -> str:
    val = n.meta.get("val", n.meta.get("example_value"))
    if hasattr(val, "shape"):
        return f"{str(val.dtype).removeprefix('torch.')}{list(val.shape)}"
    return "" if val is None else type(val).__name__
