"""Graphs as rows of plain values (lists, strings, numbers): for files. Reading them runs nothing and finds functions by name in fixed tables.

Plain values stand for themselves; everything else is a list that begins with a letter, and a list itself one that begins with "l" or "t".
Symbols are numbered in an :class:`Encoder`, whose :meth:`~Encoder.symbol_rows` belong to the file."""

from __future__ import annotations

import functools
import keyword
import operator
import re
from typing import Any

from .. import _C
from ..autograd.grad_mode import _set_grad_enabled
from ..base import dtypes, symint
from ..base import expr as E
from ..base import relations as R
from ..base.device import Device
from ..base.expr import INF, Expr, Symbol
from ..base.memory_format import BY_NAME as FORMATS
from ..base.memory_format import MemoryFormat
from ..base.relations import FloatSymbol
from ..base.shape_env import Origin, ShapeEnv
from ..base.symint import NUMBERS, wrap
from ..core import higher_order
from ..core.definition import TensorMeta
from ..core.operator import OpOverload, namespace
from ..fake import FakeTensor, FakeTensorMode
from ..fake.meta import meta_of
from ..fx import Graph, GraphModule, Node
from .sizes import FUNCTIONS as ARITHMETIC

__all__ = ["Decoder", "Encoder", "NotEncodable"]

_PLAIN = (type(None), bool, int, float, str)
FUNCTIONS = {
    **ARITHMETIC,
    "le": operator.le,
    "getitem": operator.getitem,
    "getattr": getattr,
    "sym_int": symint.sym_int,
    "sym_not": symint.sym_not,
    "set_grad_enabled": _set_grad_enabled,
}
_NAMES = {id(f): n for n, f in FUNCTIONS.items()}
_FLAGS = ("overwritten", "copy_of_overwritten")


class NotEncodable(TypeError):
    """The graph refers to something that a file can't hold."""


class Encoder:
    """``operators``: namespaces whose operators may occur, None for all. ``with_lines``: keep the user's lines."""

    def __init__(self, operators: tuple[str, ...] | None = None, with_lines: bool = False):
        self.operators, self.with_lines = operators, with_lines
        self.symbols: dict[Any, int] = {}
        self.env: ShapeEnv | None = None

    # -- expressions -----------------------------------------------------------------------------------------------------
    def expr(self, e: Any) -> Any:
        """An integer expression, truth value or floating-point expression."""
        if isinstance(e, _PLAIN):
            return e
        if isinstance(e, (Symbol, FloatSymbol)):
            return ["s", self.symbols.setdefault(e, len(self.symbols))]
        if type(e) is Expr:
            return ["+", e.const, [[self.expr(a), c] for a, c in e.terms]]
        if isinstance(e, (E.Apply, R.Rel, R.Junction, R.Not, R.Float)):
            return [type(e).__name__, *map(self.expr, e.args)]
        if isinstance(e, (E.Prod, E.Div, E.Mod, E.Min, E.Max)):
            return [type(e).__name__, *map(self.expr, e.args)]
        raise NotEncodable(f"an expression with {e!r}")

    def number(self, n: Any) -> Any:
        """A number, symbolic or not."""
        if not isinstance(n, NUMBERS):
            return n
        self.env = n.env
        return ["N", self.expr(n.env.simplify(n.expr))]

    def symbol_rows(self) -> list:
        """Name, range, divisor and example of each symbol met so far."""
        rows = []
        for s in self.symbols:
            hint = self.env.hints.get(s) if self.env is not None else None
            if isinstance(s, FloatSymbol):
                rows.append(["f", s.name, hint])
            else:
                lo, hi = (None if x in (-INF, INF) else x for x in (s.lo, s.hi))
                size = self.env is not None and s in self.env.size_like
                rows.append(["i", s.name, lo, hi, s.divisor, hint, size])
        return rows

    # -- arguments, values -------------------------------------------------------------------------------------------------
    def argument(self, a: Any, number: dict[Node, int]) -> Any:
        """An argument of a node; ``number`` gives the row of a node."""
        if isinstance(a, Node):
            return ["n", number[a]]
        if type(a) in _PLAIN:
            return a
        if isinstance(a, complex):
            return ["c", a.real, a.imag]
        if isinstance(a, (tuple, list)):
            return ["t" if isinstance(a, tuple) else "l", [self.argument(x, number) for x in a]]
        if isinstance(a, slice):
            return ["slice", [self.argument(x, number) for x in (a.start, a.stop, a.step)]]
        if isinstance(a, dict) and all(type(k) is str for k in a):
            return ["dict", [[k, self.argument(v, number)] for k, v in a.items()]]
        if isinstance(a, dtypes.DType):
            return ["d", a.name]
        if isinstance(a, MemoryFormat):
            return ["m", a.name]
        if isinstance(a, Device):
            return ["v", a.type, a.index]
        if isinstance(a, NUMBERS):
            return self.number(a)
        raise NotEncodable(f"an argument of type {type(a).__name__}")

    def value(self, v: Any) -> Any:
        """What ``meta["val"]`` holds."""
        if isinstance(v, _C.TensorBase):
            m = meta_of(v)
            sizes = ([self.number(n) for n in p] for p in (m.shape, m.strides))
            return ["T", *sizes, m.dtype.name, m.device.type, m.device.index, self.number(m.offset)]
        if isinstance(v, (list, tuple)):
            return ["t" if isinstance(v, tuple) else "l", [self.value(x) for x in v]]
        if type(v) in _PLAIN:
            return v
        if isinstance(v, (complex, *NUMBERS)):
            return self.argument(v, {})
        raise NotEncodable(f"a value of type {type(v).__name__}")

    def target(self, target: Any) -> Any:
        """What a node calls."""
        if isinstance(target, str):
            return target
        if isinstance(target, OpOverload):
            if self.operators is not None and target.namespace not in self.operators:
                raise NotEncodable(f"the operator {target} of another library")
            return ["op", target.namespace, target._opname, target._overloadname]
        if isinstance(target, higher_order.HigherOrderOperator) and higher_order.NAMED.get(target.__name__) is target:
            return ["higher", target.__name__]
        name = _NAMES.get(id(target))
        if name is None:
            raise NotEncodable(f"a call of {target}")
        return ["fn", name]

    def graph(self, gm: GraphModule) -> dict:
        """Rows of the nodes, and the bodies of operators."""
        number: dict[Node, int] = {}
        rows, bodies = [], {}
        for n in gm.graph.nodes:
            if n.op == "call_module":
                raise NotEncodable(f"the graph holds {n.target}")
            if n.op == "get_attr" and n.target not in bodies:
                body = getattr(gm, n.target)
                if not isinstance(body, GraphModule):
                    raise NotEncodable(f"the graph holds {n.target}")
                bodies[n.target] = self.graph(body)
            number[n] = len(number)
            kwargs = [[k, self.argument(v, number)] for k, v in n.kwargs.items()]
            flags = [k for k in _FLAGS if k in n.meta]
            val = self.value(n.meta.get("val")) if n.op not in ("output", "get_attr") else None
            line = n.meta.get("stack") if self.with_lines else None
            args = [self.argument(a, number) for a in n.args]
            rows.append(
                [n.op, self.target(n.target), args, kwargs, n.name, val, flags, None if line is None else str(line)]
            )
        return {"nodes": rows, "bodies": bodies}


_ATOMS = {
    "Div": E.floordiv,
    "Mod": E.mod,
    "Min": E.minimum,
    "Max": E.maximum,
}


class Decoder:
    """Makes graphs of rows. ``symbols``: the symbol rows; with ``mode``, whose fake tensors are made, the symbols themselves."""

    def __init__(self, symbols: list, mode: FakeTensorMode | None = None):
        if mode is not None:
            self.env, self.mode, self.symbols = mode.shape_env, mode, symbols
            return
        self.env = ShapeEnv(duck_shape=False, specialize_zero_one=False) if symbols else None
        self.mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self.env, static_shapes=True)
        self.symbols = [self._symbol(row) for row in symbols]

    def _symbol(self, row: list):
        if not re.fullmatch(r"[a-z]+[0-9]+", row[1]):
            raise ValueError(f"a symbol may not be called {row[1]!r}")
        if row[0] == "f":
            s, hint = FloatSymbol(row[1]), row[2]
        else:
            _, name, lo, hi, divisor, hint, size = row
            if any(type(n) is not int for n in (lo, hi, divisor) if n is not None):
                raise ValueError(f"the range of {name} is no range of integers")
            s = Symbol(name, -INF if lo is None else lo, INF if hi is None else hi, divisor)
            if size:
                self.env.size_like.add(s)
        if hint is not None:
            self.env.hints[s] = hint
            self.env.origins[s] = Origin()
        self.env.reserve(s.name)
        return s

    def expr(self, e: Any) -> Any:
        if not isinstance(e, list):
            if type(e) not in (int, float, bool):
                raise ValueError(f"{e!r} is no number")
            return e
        kind, *args = e
        if kind == "s":
            return self.symbols[args[0]]
        if kind == "+":
            out: Any = self.expr(args[0])
            for a, c in args[1]:
                self.expr(c)
                atom = self.expr(a)
                out = out + (E.of(atom) if isinstance(atom, E.Atom) else atom) * c
            return out
        if kind == "Prod":
            out = 1
            for a in args:
                atom = self.expr(a)
                out = out * (E.of(atom) if isinstance(atom, E.Atom) else atom)
            return out
        if kind in _ATOMS:
            return _ATOMS[kind](*map(self._integer, args))
        if kind == "Apply":
            name, *rest = args
            if name != "int_of":
                _one_of(E.FUNCTIONS, name)
            return self.expr(rest[0]).to_int() if name == "int_of" else E.apply(name, *map(self._integer, rest))
        if kind == "Rel":
            return R.Rel(_one_of(("==", "!=", ">="), args[0]), self._integer(args[1]))
        if kind == "Junction":
            return R.Junction(_one_of(("and", "or"), args[0]), *map(self.expr, args[1:]))
        if kind == "Not":
            return R.Not(self.expr(args[0]))
        if kind == "Float":
            return R.Float(_one_of(R.FLOAT, args[0]), *(self._integer(a) for a in args[1:]))
        raise ValueError(f"an expression of kind {kind!r} is unknown")

    def _integer(self, e: Any) -> Any:
        out = self.expr(e)
        return E.of(out) if isinstance(out, E.Atom) else out

    def number(self, n: Any) -> Any:
        if not isinstance(n, list):
            return n
        e = self._integer(n[1])
        return wrap(e, self.env)

    def argument(self, a: Any, nodes: list[Node]) -> Any:
        if not isinstance(a, list):
            return a
        tag = a[0]
        if tag == "n":
            return nodes[a[1]]
        if tag == "d":
            return dtype(a[1])
        if tag == "m":
            return FORMATS[a[1]]
        if tag == "v":
            return Device(a[1], a[2])
        if tag == "c":
            return complex(a[1], a[2])
        if tag == "N":
            return self.number(a)
        if tag == "dict":
            return {k: self.argument(v, nodes) for k, v in a[1]}
        items = [self.argument(x, nodes) for x in a[1]]
        if tag not in ("t", "l", "slice"):
            raise ValueError(f"an argument of kind {tag!r} is unknown")
        return tuple(items) if tag == "t" else items if tag == "l" else slice(*items)

    def value(self, v: Any) -> Any:
        if not isinstance(v, list):
            return v
        if v[0] == "T":
            _, shape, strides, name, device, index, offset = v
            shape, strides = (tuple(self.number(n) for n in p) for p in (shape, strides))
            meta = TensorMeta(shape, strides, dtype(name), Device(device, index), self.number(offset))
            return FakeTensor(self.mode, meta)
        if v[0] in ("t", "l"):
            items = [self.value(x) for x in v[1]]
            return tuple(items) if v[0] == "t" else items
        return self.argument(v, [])

    def target(self, target: Any) -> Any:
        if not isinstance(target, list):
            return target
        kind, *names = target
        if kind == "op":
            library, name, overload = names
            found = getattr(getattr(namespace(library), name), overload, None)
            if not isinstance(found, OpOverload):
                raise ValueError(f"the operator {library}::{name}.{overload} is unknown here")
            return found
        table = higher_order.NAMED if kind == "higher" else FUNCTIONS
        if names[0] not in table:
            raise ValueError(f"the function {names[0]!r} is unknown here")
        return table[names[0]]

    def graph(self, rows: dict) -> GraphModule:
        graph = Graph()
        nodes: list[Node] = []
        for op, target, args, kwargs, name, value, flags, line in rows["nodes"]:
            # The graph is printed as Python and run: nothing but names may stand where names do.
            _one_of(("placeholder", "get_attr", "call_function", "output"), op)
            if (
                not name.isidentifier()
                or keyword.iskeyword(name)
                or (op == "placeholder" and not target.isidentifier())
            ):
                raise ValueError(f"a node may not be called {name!r} ({target!r})")
            if (op == "get_attr" and target not in rows["bodies"]) or (op == "call_function") is isinstance(
                target, str
            ):
                raise ValueError(f"the target {target!r} of {name} is unknown")
            node = graph.create_node(
                op,
                self.target(target),
                tuple(self.argument(a, nodes) for a in args),
                {k: self.argument(v, nodes) for k, v in kwargs},
                name,
            )
            if op != "output":
                node.meta["val"] = self.value(value)
            for f in flags:
                node.meta[f] = True
            if line is not None:
                node.meta["stack"] = line
            nodes.append(node)
        return GraphModule({name: self.graph(body) for name, body in rows["bodies"].items()}, graph)


def _one_of(words, word):
    if word not in words:
        raise ValueError(f"{word!r} is unknown")
    return word


@functools.cache
def dtype(name: str):
    """A dtype by name; ValueError when there is none."""
    found = next((d for d in dtypes.ALL if d.name == name), None)
    if found is None:
        raise ValueError(f"the dtype {name!r} is unknown")
    return found
