"""In which order the loops of a node run: as those of the reduction that it shares a kernel with.

A pointwise node's loops come in the order of its buffer's memory. Sums over all but the channels of images (N, C, H, W) run over C outside and
N, H, W inside; what is made of them (a normalised image, its gradient) joins their kernel when it runs in that order too: a channel then stays in
the cache from the sums to the result.
"""

from __future__ import annotations

from ...base.expr import coefficient
from ..ir.nodes import Pointwise, Reduction
from ..ir.values import walk

__all__ = ["transposed", "transposed_group"]


def _spans(index, loops, hint) -> list[tuple[int, int]] | None:
    """(step, reach) of each loop in an index; None unless all of them move it."""
    out = []
    for v in loops:
        if v.extent == 1:
            continue
        step = coefficient(index, v)
        if step is None or (type(step) is int and step <= 0):
            return None
        out.append((hint(step), hint(step * v.extent)))
    return out


def _patterns(group, hint) -> dict[str, list]:
    """Buffer -> how the group's reductions walk through it, or the loops that fill it."""
    out: dict[str, list] = {}
    for node, level in zip(group.nodes, group.levels):
        if isinstance(node, Reduction):
            out = {**_walked(node, hint), **out}
        elif level == "full" and node.buffer not in out and (spans := _spans(node.index, node.loops, hint)):
            out[node.buffer] = spans
    return out


def _walked(node: Reduction, hint) -> dict[str, list]:
    out: dict[str, list] = {}
    for v in walk(node.value):
        if v.op == "load" and v.args[0] not in out:
            spans = _spans(v.args[1], (*node.loops, *node.reduced), hint)
            if spans:
                out[v.args[0]] = spans
    return out


def _reordered(node: Pointwise, patterns, hint) -> Pointwise | None:
    """The node with its loops in the order of a pattern; None where they are, or where another would be the last one, which is along the lanes."""
    if len(node.loops) < 2 or node.combine is not None:
        return None
    places = [(node.buffer, node.index), *(v.args for v in walk(node.value) if v.op == "load")]
    for name, index in places:
        spans = _spans(index, node.loops, hint) if name in patterns else None
        if spans is None:
            continue
        loops = [v for v in node.loops if v.extent != 1]

        def position(k, spans=spans, pattern=patterns[name]):
            step = spans[k][0]
            return next((i for i, (s, reach) in enumerate(pattern) if s <= step < reach), len(pattern)), -step

        order = sorted(range(len(loops)), key=position)
        if order == list(range(len(loops))) or order[-1] != len(loops) - 1:
            return None
        rest = [v for v in node.loops if v.extent == 1]
        return Pointwise(node.buffer, (*(loops[k] for k in order), *rest), node.value, node.index, None, node.after)
    return None


def transposed(group, node, hint) -> Pointwise | None:
    """A pointwise node in the order of the group's reduction, None where that is its own."""
    if group.kind != "loops" or group.closed or group.inner is None or not isinstance(node, Pointwise):
        return None
    return _reordered(node, _patterns(group, hint), hint)


def transposed_group(group, node, hint) -> list | None:
    """The nodes of a group without a reduction in the order of ``node``, which is one; None where some can't be."""
    if group.kind != "loops" or group.closed or group.inner is not None or not isinstance(node, Reduction):
        return None
    patterns = _walked(node, hint)
    made = [_reordered(n, patterns, hint) for n in group.nodes]
    return made if all(n is not None for n in made) else None
