"""The HTML file of a report: one document, no requests, light and dark."""

from __future__ import annotations

import linecache
import os
from html import escape
from typing import Any

from .diagram import diagram

__all__ = ["page"]

STYLE = """
:root { color-scheme: light dark; --ink: #1d2433; --dim: #667085; --back: #f6f7f9; --card: #ffffff; --line: #e3e6ec; --good: #1f8a5b;
  --bad: #c2410c; --accent: #3457d5; --soft: 92%; --edge: 55%; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9f0; --dim: #98a2b3; --back: #12151c; --card: #1b2029; --line: #2c3340; --good: #4ccb8f;
  --bad: #ff8a5b; --accent: #8fa8ff; --soft: 24%; --edge: 48%; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); }
main { max-width: 1180px; margin: 0 auto; padding: 20px 16px 60px; }
h1 { font-size: 24px; margin: 8px 0 2px; } h2 { font-size: 18px; margin: 0 0 10px; } h3 { font-size: 15px; margin: 14px 0 6px; }
p { margin: 4px 0; } .dim { color: var(--dim); } .bad { color: var(--bad); } .good { color: var(--good); }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px; margin: 14px 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin-bottom: 12px; }
.figures div { border: 1px solid var(--line); border-radius: 8px; padding: 8px 12px; }
.figures b { display: block; font-size: 20px; }
pre, code, .mono { font: 13px/1.5 ui-monospace, monospace; } pre { margin: 6px 0; overflow-x: auto; }
.source div { display: grid; grid-template-columns: 46px minmax(0, 1fr); white-space: pre; }
.source div > span:first-child { color: var(--dim); text-align: right; padding-right: 10px; user-select: none; }
.source div > span:last-child { overflow-x: auto; padding-left: 8px; border-left: 3px solid transparent; }
.source .compiled > span:last-child { border-color: var(--good); } .source .broken > span:last-child { border-color: var(--bad); }
.source p { margin: 0 0 4px 58px; white-space: normal; overflow-wrap: anywhere; font-size: 13px; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: 13px; }
td, th { padding: 4px 10px 4px 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); } td.n, th.n { text-align: right; }
.bar { display: inline-block; height: 9px; border-radius: 3px; background: var(--accent); vertical-align: middle; }
details { border-top: 1px solid var(--line); padding: 6px 0; } summary { cursor: pointer; overflow-wrap: anywhere; }
.track { position: relative; height: 26px; background: var(--back); border-radius: 5px; margin: 4px 0; overflow: hidden; }
.track i { position: absolute; top: 3px; bottom: 3px; min-width: 1px; background: hsl(var(--hue) 60% var(--edge)); border-radius: 2px; }
.graphbox { border: 1px solid var(--line); border-radius: 8px; height: 380px; overflow: hidden; position: relative; touch-action: none; }
svg.graph { width: 100%; height: 100%; cursor: grab; } svg.graph path { fill: none; stroke: var(--dim); stroke-opacity: .5; }
svg.graph rect { fill: var(--back); stroke: var(--line); } svg.graph .fused rect {
  fill: hsl(var(--hue) 60% var(--soft)); stroke: hsl(var(--hue) 50% var(--edge)); }
svg.graph text { fill: var(--ink); font: 12px ui-monospace, monospace; } svg.graph .small { fill: var(--dim); font-size: 10.5px; }
svg.graph .input rect { rx: 18; } svg.graph .hit rect { stroke: var(--bad); stroke-width: 3; } svg.graph.searching g:not(.hit) { opacity: .3; }
input { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--line); border-radius: 6px; 
  padding: 4px 10px; max-width: 100%; }
li { margin: 4px 0; overflow-wrap: anywhere; }
"""

SCRIPT = """
for (const svg of document.querySelectorAll('svg.graph')) {
  let [x, y, w, h] = svg.viewBox.baseVal ? ['x', 'y', 'width', 'height'].map(k => svg.viewBox.baseVal[k]) : [0, 0, 100, 100];
  const show = () => svg.setAttribute('viewBox', `${x} ${y} ${w} ${h}`);
  const box = () => svg.getBoundingClientRect();
  const scale = () => Math.max(w / box().width, h / box().height);
  const most = 1.6;
  if (scale() > most) { w = box().width * most; h = box().height * most; show(); }
  svg.addEventListener('wheel', e => {
    if (!e.ctrlKey && !e.shiftKey && e.target === svg) return;
    e.preventDefault();
    const f = e.deltaY > 0 ? 1.15 : 1 / 1.15, b = box();
    x += w * (1 - f) * (e.clientX - b.left) / b.width; y += h * (1 - f) * (e.clientY - b.top) / b.height; w *= f; h *= f; show();
  }, { passive: false });
  let from = null;
  svg.addEventListener('pointerdown', e => { from = [e.clientX, e.clientY, x, y]; svg.setPointerCapture(e.pointerId); });
  svg.addEventListener('pointermove', e => {
    if (!from) return;
    const s = scale(); x = from[2] - (e.clientX - from[0]) * s; y = from[3] - (e.clientY - from[1]) * s; show();
  });
  svg.addEventListener('pointerup', () => { from = null; });
  const field = svg.closest('section, details').querySelector('input');
  field && field.addEventListener('input', () => {
    const text = field.value.toLowerCase();
    svg.classList.toggle('searching', !!text);
    let first = null;
    for (const g of svg.querySelectorAll('g[data-text]')) {
      const hit = text && g.dataset.text.includes(text);
      g.classList.toggle('hit', !!hit);
      if (hit && !first) first = g;
    }
    if (first) { const t = first.transform.baseVal[0].matrix; x = t.e + 95 - w / 2; y = t.f + 20 - h / 2; show(); }
  });
}
"""


def page(report: Any) -> str:
    parts = [
        _head(report),
        _advice(report),
        _source(report),
        *(_program(report, p, i) for i, p in enumerate(report.programs)),
        _guards(report),
    ]
    title = escape(f"{report.title}: what the compiler did")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body><main>{''.join(parts)}</main><script>{SCRIPT}</script></body></html>\n"
    )


def _ms(seconds: float) -> str:
    return (
        f"{seconds * 1e6:.1f} µs"
        if seconds < 1e-3
        else f"{seconds * 1e3:.2f} ms"
        if seconds < 1
        else f"{seconds:.2f} s"
    )


def _bytes(n: float) -> str:
    for name, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {name}"
    return f"{n:.0f} B"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def _figure(n: int, words: str) -> tuple[str, str]:
    return str(n), words.format(s="" if n == 1 else "s", es="" if n == 1 else "es")


def _shown(file: str) -> str:
    """A path as a reader knows it: below the folder of the program or of the package that it is from."""
    if file.startswith(os.getcwd() + os.sep):
        return os.path.relpath(file)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))) + os.sep
    return file.removeprefix(package).rpartition(f"site-packages{os.sep}")[2]


def _head(r: Any) -> str:
    breaks = sum(e.break_reason is not None for e in r.events)
    figures = [
        (f"{r.plain / r.compiled:.2f}x" if r.plain else "–", "as fast as without compilation"),
        (_ms(r.compiled), f"a call, without compilation {_ms(r.plain)}" if r.plain else "a call"),
        (_ms(r.first), "the first call"),
        _figure(sum(e.graph is not None for e in r.events), "graph{s} captured"),
        _figure(breaks, "graph break{s}"),
        _figure(len(r.recompiles), "recompilation{s}"),
        _figure(sum(len(p.launches) for p in r.programs), "kernel launch{es}"),
    ]
    cards = "".join(f"<div><b>{escape(a)}</b><span class='dim'>{escape(b)}</span></div>" for a, b in figures)
    m = r.machine
    return (
        f"<h1>{escape(r.title)}</h1><p class='dim mono'>{escape(r.file)}</p><section><div class='figures'>{cards}</div>"
        f"<p class='dim'>This machine, measured: {m.bandwidth / 1e9:.1f} GB/s from memory, {m.flops / 1e9:.0f} GFLOP/s in a float32 product, "
        f"{m.threads} threads. Kernels that stay in the caches may exceed the first.</p></section>"
    )


def _advice(r: Any) -> str:
    items = "".join(f"<li>{escape(a)}</li>" for a in r.advice) or "<li>Nothing that this report can see.</li>"
    return f"<section id='advice'><h2>What to change to be faster</h2><ul>{items}</ul></section>"


def _source(r: Any) -> str:
    notes: dict[tuple[str, int], list[str]] = {}
    state: dict[tuple[str, int], str] = {}
    for p in r.programs:
        for number, launch in enumerate(p.launches):
            for line in launch.note.lines:
                at = line.file, line.now() or line.number
                state.setdefault(at, "compiled")
                way = " backward" if p.backward else ""
                notes.setdefault(at, []).append(f"launch {number}{way}: {launch.note.label}")
    broken: dict[tuple[str, int], list[str]] = {}
    for e in r.events:
        reason = e.break_reason
        if reason is not None and reason.user_stack:
            at = reason.user_stack[-1].filename, reason.user_stack[-1].lineno
            state[at] = "broken"
            hint = f" {reason.hint}" if reason.hint else ""
            broken.setdefault(at, []).append(f"graph break: {reason.in_short()}{hint}")
    first = {
        (e.code.co_filename, e.code.co_firstlineno): f"{_count(sum(1 for _ in e.guards), 'guard')}"
        for e in r.events
        if e.guards
    }
    again: dict[tuple[str, int], list[str]] = {}
    for name, where, guard in r.recompiles:
        at = next(
            ((f, n) for f, n in first if where.startswith(f)),
            (r.file, min((n for f, n in first if f == r.file), default=1)),
        )
        again.setdefault(at, []).append(f"{name} compiled again: {guard}")
    wanted: dict[str, set[int]] = {}
    for file, number in (*state, *first, *again):
        wanted.setdefault(file, set()).add(number)
    out = []
    for file, numbers in sorted(wanted.items(), key=lambda x: x[0] != r.file):
        lines = linecache.getlines(file)
        if not lines:
            continue
        rows, last = [], 0
        near = sorted({n + d for n in numbers for d in (-2, -1, 0, 1, 2) if 1 <= n + d <= len(lines)})
        for n in near:
            if last and n > last + 1:
                rows.append("<div class='dim'><span>⋮</span><span></span></div>")
            last = n
            at = file, n
            rows.append(
                f"<div class='{state.get(at, '')}'><span>{n}</span><span>{escape(lines[n - 1].rstrip()) or ' '}</span></div>"
            )
            rows += [
                f"<p class='bad'>{escape(t)}</p>" for t in dict.fromkeys((*broken.get(at, ()), *again.get(at, ())))
            ]
            if at in first:
                rows.append(f"<p class='dim'>{escape(first[at])}, listed below</p>")
            here = list(dict.fromkeys(notes.get(at, ())))
            if here:
                more = f" and {len(here) - 4} more" if len(here) > 4 else ""
                rows.append(f"<p class='dim'>{escape('; '.join(here[:4]) + more)}</p>")
        shown = _shown(file)
        body = f"<h3 class='mono'>{escape(shown)}</h3><div class='source mono'>{''.join(rows)}</div>"
        out.append(
            body
            if file == r.file or len(wanted) == 1
            else f"<details><summary class='mono'>{escape(shown)}</summary>{body}</details>"
        )
    return f"<section id='source'><h2>Source</h2><p class='dim'>Green: compiled. Orange: a graph ends.</p>{''.join(out)}</section>"


def _program(r: Any, p: Any, index: int) -> str:
    total = sum(x.seconds for x in p.launches) or 1.0
    title = f"{p.name}{', backward pass' if p.backward else ''}"
    kernels = {o.node: i for i, launch in enumerate(p.launches) for o in launch.note.origins}
    graph = (
        f"<h3>Graph</h3><p><input placeholder='search nodes' aria-label='search nodes'> <span class='dim'>drag to pan, wheel to zoom; "
        f"nodes of one colour share "
        f"a launch</span></p><div class='graphbox'>{diagram(p.gm, kernels)}</div>"
    )
    launches = f"{len(p.launches)} launch{'' if len(p.launches) == 1 else 'es'}"
    return (
        f"<section class='program' id='program{index}'><h2>{escape(title)}: {_count(len(kernels), 'operator')} in {launches}, {_ms(total)}</h2>"
        f"{_timeline(p)}{_groups(r, p, total)}{graph}{_memory(p)}</section>"
    )


def _timeline(p: Any) -> str:
    known = [x for x in p.launches if x.seconds]
    if not known:
        return ""
    begin, end = min(x.begin for x in known), max(x.begin + x.seconds for x in known)
    span = (end - begin) or 1.0
    bars = "".join(
        f"<i style='--hue:{(i * 67) % 360};left:{100 * (x.begin - begin) / span:.2f}%;width:{100 * x.seconds / span:.2f}%' "
        f"title='{escape(f'{i}: {x.note.label}, {_ms(x.seconds)}', quote=True)}'></i>"
        for i, x in enumerate(p.launches)
        if x.seconds
    )
    return f"<h3>Timeline</h3><div class='track'>{bars}</div><p class='dim'>{_ms(span)} from the first launch to the last, one run</p>"


def _groups(r: Any, p: Any, total: float) -> str:
    rows = []
    for i, x in enumerate(p.launches):
        note = x.note
        bandwidth = f"{x.bandwidth / 1e9:.1f} GB/s ({x.bandwidth / r.machine.bandwidth:.0%})" if x.seconds else "–"
        rate = f"{x.rate / 1e9:.1f} GFLOP/s ({x.rate / r.machine.flops:.0%})" if x.seconds and note.flops else "–"
        lines = (
            ", ".join(f"{os.path.basename(line.file)}:{line.now() or line.number}" for line in note.lines[:3]) or "–"
        )
        operators = " + ".join(note.operators) or note.label
        head = (
            f"<b>{i}</b> <span class='dim'>{escape(note.kind)}</span> <span class='mono'>{escape(operators)}</span> "
            f"<span class='bar' style='width:{max(2, 120 * x.seconds / total):.0f}px'></span> {_ms(x.seconds)}"
        )
        table = (
            f"<div class='wide'><table><tr><th>moves</th><th>bandwidth (of the machine's)</th><th>operations</th><th>rate (of the machine's)</th>"
            f"<th>lines</th></tr><tr><td>{_bytes(note.bytes)}</td><td>{bandwidth}</td><td>{note.flops:,}</td><td>{rate}</td><td>{escape(lines)}</td></tr>"
            f"</table></div>"
        )
        io = f"<p class='dim'>reads {escape(', '.join(x.reads) or 'nothing')}; writes {escape(', '.join(x.writes) or 'nothing')}</p>"
        loops = "".join(f"<pre>{escape(text)}</pre>" for text in x.loops)
        body = "".join(
            f"<tr><td class='mono'>{escape(o.node)}</td><td>{escape(o.line.text if o.line else '')}</td></tr>"
            for o in note.origins
        )
        origins = (
            f"<details><summary>{_count(len(note.origins), 'operator')} of the graph</summary>"
            f"<div class='wide'><table>{body}</table></div></details>"
        )
        rows.append(
            f"<details class='launch'{' open' if i == 0 else ''}><summary>{head}</summary>{table}{io}{loops}{origins}</details>"
        )
    return f"<h3>Launches: what was fused</h3>{''.join(rows)}"


def _memory(p: Any) -> str:
    n = max(len(p.launches), 1)
    rows = "".join(
        f"<tr><td class='mono'>{escape(name)}</td><td class='n'>{_bytes(size)}</td><td style='width:55%'>"
        f"<span class='bar' style='margin-left:{100 * a / n:.1f}%;"
        f"width:{max(100 * (b - a + 1) / n, 1):.1f}%'></span></td></tr>"
        for name, (size, a, b) in p.buffers.items()
    )
    remarks = "".join(f"<li class='mono'>{escape(t)}</li>" for t in p.remarks)
    table = f"<div class='wide'><table><tr><th>buffer</th><th class='n'>size</th><th>from its first launch to its last</th></tr>{rows}</table></div>"
    return f"<h3>Memory plan</h3><ul>{remarks}</ul>" + (
        f"<details><summary>{_count(len(p.buffers), 'buffer')}</summary>{table}</details>" if rows else ""
    )


def _guards(r: Any) -> str:
    out = []
    for e in r.events:
        if not e.guards:
            continue
        rows = "".join(f"<li class='mono'>{escape(str(g))}</li>" for g in e.guards)
        out.append(
            f"<details><summary>{escape(e.code.co_name)}: {_count(len(e.guards), 'guard')}</summary><ul>{rows}</ul></details>"
        )
    return (
        f"<section id='guards'><h2>Guards: what compiled code depends on</h2>{''.join(out) or '<p>none</p>'}</section>"
    )
