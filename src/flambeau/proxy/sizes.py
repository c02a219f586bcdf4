"""Nodes for symbolic numbers: made when one is first used, from the size of an input, a number among the inputs, or what an operator gave."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..base import expr as E
from ..base import expr_walks, symint
from ..base import relations as R
from ..base.errors import InternalError
from ..base.expr import Expr
from ..base.symint import SymInt, wrap
from ..core.operator import namespace
from ..fx import Graph, Node

__all__ = ["FUNCTIONS", "SizeNodes"]

aten = namespace("aten")

FUNCTIONS = {
    **E.FUNCTIONS,
    "float": symint.sym_float,
    "abs": operator.abs,
    "min": symint.sym_min,
    "max": symint.sym_max,
    **{n: getattr(operator, n) for n in ("add sub mul truediv floordiv mod pow neg lt le gt ge eq ne").split()},
    **{n.removeprefix("sym_"): f for n, f in symint.FUNCTIONS.items()},
    "sqrt": symint.sym_sqrt,
}
_SIGNS = {"==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le}


class SizeNodes:
    """The numbers of one graph. ``env`` (a ShapeEnv) is that of the symbols met. ``place(args)``, where the graph has subgraphs: the graph that a
    node of these arguments belongs to, and the arguments as they are there."""

    def __init__(self, graph: Graph, place: Callable[[tuple], tuple[Graph, tuple]] | None = None):
        self.graph = graph
        self.place = place
        self.env: Any = None
        self._origin: dict[
            Any, Callable[[SizeNodes], Node]
        ] = {}  # symbol -> makes its node; holds no cycle with this object
        self._made: dict[Any, Any] = {}  # expression -> node

    # -- where symbols come from ----------------------------------------------------------------------------------------
    def bind_tensor(self, tensor: Any, node: Node, unbacked_only: bool = False) -> None:
        """Sizes (then strides) of ``tensor`` that are symbols not met before are read from ``node``."""
        self._bind_sizes(tensor, lambda sizes: node, unbacked_only)

    def _bind_sizes(self, tensor: Any, node: Callable[[SizeNodes], Node], unbacked_only: bool) -> None:
        for op, numbers in ((aten.sym_size.int, tensor.shape), (aten.sym_stride.int, tensor.stride())):
            for d, n in enumerate(numbers):
                if type(n) is SymInt and not (unbacked_only and not self._is_new(n)):
                    self._bind(n, lambda sizes, n=n, op=op, d=d: sizes._call(op, (node(sizes), d), n))

    def _is_new(self, n: SymInt) -> bool:
        return any(s not in self._origin and s not in n.env.hints for s in n.expr.symbols())

    def bind_number(self, number: Any, node: Node) -> None:
        """``node`` is the symbolic number itself."""
        if number.__sym__ == "bool":
            truth = self._call(symint.sym_int, (node,), number)
            (s,) = R.symbols(number.expr)
            self._origin.setdefault(s, lambda sizes: truth)
            self._made.setdefault(number.expr, node)
            self.env = number.env
        else:
            self._bind(number, lambda sizes: node)

    def bind_lazily(self, number: Any, make: Callable[[], Node]) -> None:
        """``make`` gives the node of the number when it is first used."""
        self._bind(number, lambda sizes: make())

    def bind_item(self, tensor: Any, node: Node, index: int) -> None:
        """Sizes of the ``index``-th tensor that ``node`` gives, as far as they depend on data."""
        made: list[Node] = []

        def item(sizes: SizeNodes) -> Node:
            if not made:
                made.append(sizes._call(operator.getitem, (node, index), tensor))
            return made[0]

        self._bind_sizes(tensor, item, unbacked_only=True)

    def has(self, s: Any) -> bool:
        """Whether the symbol's origin is known."""
        return s in self._origin

    def _bind(self, number, make: Callable[[SizeNodes], Node]) -> None:
        self.env = number.env
        e = number.expr
        if type(e) is not Expr:
            self._origin.setdefault(e, make)
            return
        s = R.as_symbol(e)
        if s is not None:
            self._origin.setdefault(s, make)
            return
        # c * s + k gives s as well, where nothing gives it directly.
        if (found := E.in_one_symbol(e)) is not None:
            s, c, offset = found

            def solve(sizes):
                node = make(sizes)
                if offset:
                    node = sizes._call(operator.sub, (node, offset), wrap(e - offset, number.env))
                return sizes._call(operator.floordiv, (node, c), wrap(E.of(s), number.env)) if c != 1 else node

            self._origin.setdefault(s, solve)

    # -- nodes ----------------------------------------------------------------------------------------------------------
    def _call(self, target, args: tuple, value: Any) -> Node:
        # As make_fx of PyTorch names them: sym_size_int.
        name = (
            str(target).partition(".")[2].replace(".", "_")
            if target in (aten.sym_size.int, aten.sym_stride.int)
            else None
        )
        graph, args = (self.graph, args) if self.place is None else self.place(args)
        node = graph.create_node("call_function", target, args, name=name)
        node.meta["val"] = value
        return node

    def node_of(self, number: Any) -> Any:
        """The node of a symbolic number (the number itself where it turned out to be known)."""
        self.env = number.env
        return self._node(number.env.simplify(number.expr))

    def condition(self, relation: Any, env: Any) -> Any:
        """The node of a truth value as it stands, though it may be known by now."""
        self.env = env
        return self._node(relation)

    def _node(self, e: Any) -> Any:
        if isinstance(e, (int, float)):
            return e
        found = self._made.get(e)
        if found is None:
            found = self._made[e] = self._make(e)
        return found

    def _make(self, e: Any) -> Any:
        if type(e) is Expr:
            return expr_walks.emit(e, self)[0] if R.as_symbol(e) is None else self._symbol(R.as_symbol(e))
        value = wrap(e, self.env)
        if isinstance(e, R.FloatSymbol):
            return self._symbol(e)
        if type(e) is R.Float:
            name, *args = e.args
            return self._call(FUNCTIONS[name], tuple(map(self._node, args)), value)
        if type(e) is R.Rel:
            left, sign, right = e.sides()
            return self._call(_SIGNS[sign], (self._node(left), self._node(right)), value)
        if type(e) is R.Not:
            return self._call(symint.sym_not, (self._node(e.args[0]),), value)
        word, *parts = e.args
        out = self._node(parts[0])
        for p in parts[1:]:
            out = self._call(FUNCTIONS[word], (out, self._node(p)), value)
        return out

    def _symbol(self, s) -> Node:
        make = self._origin.get(s)
        if make is None:
            raise InternalError(f"the trace uses {s}, which is neither the size of an input nor a result of the graph")
        node = make(self)
        self._origin[s] = lambda sizes: node
        return node

    # -- the emitter: pairs (node or int, expression) -----------------------------------------------------------------------
    def constant(self, k: int):
        return k, k

    def leaf(self, atom):
        return self._node(E.of(atom)), E.of(atom)

    def _pair(self, target, a, b, e):
        found = self._made.get(e)
        if found is None:
            found = self._call(target, (a[0], b[0]), wrap(e, self.env))
            self._made[e] = found
        return found, e

    def add(self, a, b):
        if isinstance(b[1], int) and b[1] < 0:
            return self._pair(operator.sub, a, (-b[0], -b[1]), a[1] + b[1])
        return self._pair(operator.add, a, b, a[1] + b[1])

    def mul(self, a, b):
        if isinstance(b[1], int):
            return self._pair(operator.mul, b, a, a[1] * b[1])
        return self._pair(operator.mul, a, b, a[1] * b[1])

    def floordiv(self, a, b):
        return self._pair(operator.floordiv, a, b, E.floordiv(a[1], b[1]))

    def mod(self, a, b):
        return self._pair(operator.mod, a, b, E.mod(a[1], b[1]))

    def minimum(self, a, b):
        return self._pair(symint.sym_min, a, b, E.minimum(a[1], b[1]))

    def maximum(self, a, b):
        return self._pair(symint.sym_max, a, b, E.maximum(a[1], b[1]))

    def apply(self, name, operands):
        if name == "int_of":
            e = operands[0].to_int()
            return self._call(symint.sym_int, (self._node(operands[0]),), wrap(e, self.env)), e
        a, b = operands
        return self._pair(FUNCTIONS[name], a, b, E.apply(name, a[1], b[1]))
