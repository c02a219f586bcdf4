"""Products of rows that are looked up in a small table, made for each row of the table instead of each place.

``embedding(table, places) @ W`` has as many different rows as the table. Where places are at least twice as many (a language model over characters
or bytes), the product is made of the table and its rows are looked up. The gradients have the same form: those of equal rows are added up first,
and the two products of the backward are of the sums.

| | becomes |
| --- | --- |
| ``lookup(table) @ W``, ``addmm(bias, lookup(table), W)`` | ``lookup(table @ W)``, ``lookup(addmm(bias, table, W))`` |
| ``G.T @ lookup(table)``, a weight's gradient | ``sums(G).T @ table`` |
| the sums of rows of ``G @ W``, the table's gradient | ``sums(G) @ W`` |

Rows that no place names have sums of zero. They are left out of both products, since zero times an infinity or nan is nan.
"""

from __future__ import annotations

from .. import _C
from ..autograd import no_grad
from ..base.dtypes import float32, float64
from ..core import modes
from ..core.operator import namespace
from ..fx import Graph, Node
from .recompute import Recorder

__all__ = ["products_of_lookups"]

aten = namespace("aten")

OFTEN = 2  # places to a row of the table that are worth it
TERMS = 64  # of a product: fewer aren't worth another pass over its rows
_RESHAPES = (aten.view.default, aten._unsafe_view.default, aten.reshape.default)
_SAME = (aten.clone.default,)
_TRANSPOSES = (aten.t.default, aten.transpose.int)


def products_of_lookups(graph: Graph) -> bool:
    """Changes ``graph``, which has no writes, where sizes are plain integers. Whether there was anything to change."""
    found = [n for n in graph.nodes if n.op == "call_function" and n.target in _RULES]
    if not any(n.target in _LOOKUPS for n in graph.nodes):
        return False
    changes = _Changes(graph)
    for n in found:
        _RULES[n.target](changes, n)
    if changes.made:
        graph.eliminate_dead_code()
    return changes.made


class _Changes:
    """Rewrites products; sums of rows and places that several share are made once, by the first."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.made = False
        self.known: dict[tuple, Node] = {}

    def put(self, n: Node, make, *operands: Node) -> None:
        """``make(*tensors)``, of the operands' tensors, in the place of n."""
        n.replace_all_uses_with(self.before(n, make, *operands))
        self.made = True

    def before(self, n: Node, make, *operands: Node) -> Node:
        with self.graph.inserting_before(n), modes.disabled("dispatch"):
            values = [o.meta["val"] for o in operands]
            with values[0].fake_mode, Recorder(self.graph, n) as record, no_grad():
                for value, node in zip(values, operands):
                    record.know(value, node)
                return record.nodes[id(make(*values))]

    def once(self, key: tuple, n: Node, make, *operands: Node) -> Node:
        if key not in self.known:
            self.known[key] = self.before(n, make, *operands)
        return self.known[key]

    def places(self, n: Node, indices: Node, steps: list) -> Node:
        """The places of rows, through the same views as the rows."""
        for step in steps:
            if step == _SAME:
                continue
            indices = self.once((indices, step), n, lambda x, step=step: step[0](x, *step[1:]), indices)
        return indices

    def sums(self, n: Node, rows: Node, places: Node, height: int) -> Node:
        """(height, width): for each row of the table the sum of the rows at its places."""

        def make(x, at):
            return aten.embedding_dense_backward.default(x, at, height, -1, False)

        return self.once(("sums", rows, places, height), n, make, rows, places)

    def named(self, n: Node, rows: Node, places: Node, height: int) -> Node:
        """(height, 1): whether a place names the row."""

        def make(x, at):
            ones = aten.new_ones.default(x, [x.shape[0], 1])
            return aten.gt.Scalar(aten.embedding_dense_backward.default(ones, at, height, -1, False), 0)

        return self.once(("named", places, height), n, make, rows, places)

    # ---- rules ----
    def product(self, n: Node) -> None:
        if n.kwargs or len(n.args) != 2:
            return
        if (found := _lookup_of(n.args[0])) is not None and _fits(found, n.args[1]):
            table, indices, steps = found
            places = self.places(n, indices, steps)
            self.put(n, lambda e, w, at: aten.embedding.default(aten.mm.default(e, w), at), table, n.args[1], places)
        elif _is_transposed(n.args[0]) and (found := _lookup_of(n.args[1])) is not None:
            table, indices, steps = found
            rows = n.args[0].args[0]
            if not _fits(found, rows):
                return
            height = table.meta["val"].shape[0]
            places = self.places(n, indices, steps)
            sums, named = self.sums(n, rows, places, height), self.named(n, rows, places, height)

            def make(g, e, there):
                return aten.mm.default(aten.t.default(g), aten.where.ScalarOther(there, e, 0))

            self.put(n, make, sums, table, named)

    def sum_of_product(self, n: Node) -> None:
        bias, rows, weight = n.args
        found = _lookup_of(rows)
        if n.kwargs or found is None or not _fits(found, weight) or bias.meta["val"].ndim != 1:
            return
        table, indices, steps = found
        places = self.places(n, indices, steps)

        def make(b, e, w, at):
            return aten.embedding.default(aten.addmm.default(b, e, w), at)

        self.put(n, make, bias, table, weight, places)

    def gradient(self, n: Node) -> None:
        x, indices, height, padding, by_frequency = n.args
        if by_frequency or type(height) is not int:
            return
        steps = []
        while (step := _step(x)) is not None:
            steps.append(_undone(step, x))
            x = x.args[0]
        if not (isinstance(x, Node) and x.target is aten.mm.default and len(x.users) == 1):
            return
        rows, weight = x.args
        if not _is_worth(height, rows, weight):
            return
        places = self.places(n, indices, steps)
        sums, named = self.sums(n, rows, places, height), self.named(n, rows, places, height)

        def make(g, w, there):
            of_table = aten.where.ScalarOther(there, aten.mm.default(g, w), 0)
            if padding < 0:
                return of_table
            others = aten.ne.Scalar(aten.arange.default(height, device=g.device), padding)
            return aten.where.ScalarOther(aten.unsqueeze.default(others, 1), of_table, 0)

        self.put(n, make, sums, weight, named)


_RULES = {
    aten.mm.default: _Changes.product,
    aten.addmm.default: _Changes.sum_of_product,
    aten.embedding_dense_backward.default: _Changes.gradient,
}
_LOOKUPS = (aten.embedding.default, aten.embedding_dense_backward.default)


def _shape(n) -> tuple | None:
    """The shape of a node's dense floating-point tensor, None where a size is symbolic or there is another value."""
    val = n.meta.get("val") if isinstance(n, Node) else None
    if not isinstance(val, _C.TensorBase) or not all(type(s) is int for s in val.shape):
        return None
    return tuple(val.shape)


def _step(n) -> tuple | None:
    """(operator, arguments) by which n lays out anew the rows of another tensor, None where it does anything else. The last dimension stays."""
    shape = _shape(n)
    if shape is None or n.op != "call_function" or not n.args or _shape(n.args[0]) is None:
        return None
    before = _shape(n.args[0])
    if n.target is aten.clone.default:
        return _SAME
    if n.target in _RESHAPES and shape[-1:] == before[-1:] and shape[-1]:
        return aten.reshape.default, shape[:-1]
    if n.target is aten.transpose.int:
        d, e = (k % len(before) for k in n.args[1:])
        return (aten.transpose.int, d, e) if max(d, e) < len(before) - 1 else None
    return None


def _undone(step: tuple, n: Node) -> tuple:
    """The step on the places of n's rows that gives the places of those it was made of."""
    return (aten.reshape.default, _shape(n.args[0])[:-1]) if step[0] is aten.reshape.default else step


def _lookup_of(n) -> tuple | None:
    """(table, indices, steps on the indices) where the rows of a matrix are looked up in a table."""
    steps = []
    while (step := _step(n)) is not None:
        steps.append(step)
        n = n.args[0]
    if not isinstance(n, Node) or n.target is not aten.embedding.default:
        return None
    return (*n.args[:2], steps[::-1])


def _is_transposed(n) -> bool:
    shape = _shape(n)
    return shape is not None and n.target in _TRANSPOSES and len(shape) == 2 and _shape(n.args[0]) == shape[::-1]


def _fits(found: tuple, other) -> bool:
    """Whether a product of the looked up rows and another matrix is worth making of the table."""
    table, indices, _ = found
    shape, at = _shape(table), indices.meta["val"].shape
    if shape is None or not all(type(s) is int for s in at):
        return False
    count = 1
    for s in at:
        count *= s
    return _is_worth(shape[0], None, table, count) and _dtype(other) is _dtype(table)


def _is_worth(height: int, rows, weight, count: int | None = None) -> bool:
    parts = [p for p in (rows, weight) if p is not None]
    if any(_shape(p) is None or _dtype(p) not in (float32, float64) for p in parts):
        return False
    count = _shape(rows)[0] if count is None else count
    return 0 < height * OFTEN <= count and min(_shape(weight)) > 0 and _shape(weight)[1] >= TERMS


def _dtype(n):
    return n.meta["val"].dtype
