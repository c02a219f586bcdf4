"""A graph: a ring of nodes in execution order, with the editing operations of torch.fx.

Invariants (checked by :meth:`Graph.lint`): names are unique, arguments stand before their users, ``users`` mirrors
the arguments, there is at most one output and it comes last, placeholders come first."""

from __future__ import annotations

import builtins
import copy
import functools
import inspect
import keyword
import re
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from ..core.operator import namespace
from .codegen import CodeGen, PythonCode, python_code
from .node import Argument, Node, Target, map_arg, nodes_in, target_str, type_name
from .targets import packet_of

__all__ = ["Graph", "Namespace"]

_ILLEGAL = re.compile(r"[^0-9a-zA-Z_]+")
_SUFFIX = re.compile(r"(.*)_(\d+)$")
_CAMEL1 = re.compile(r"([a-z0-9])([A-Z])")
_CAMEL2 = re.compile(r"([A-Z]+)([A-Z][a-z])")
# Names that generated code gives a meaning.
_RESERVED = {"self", "torch", "device", "inf", "nan", "operator", "builtins", "NoneType", *dir(builtins)}


@functools.lru_cache(maxsize=4096)
def snake_case(s: str) -> str:
    return _CAMEL2.sub(r"\1_\2", _CAMEL1.sub(r"\1_\2", s)).lower()


@functools.lru_cache(maxsize=4096)
def _identifier(candidate: str) -> tuple[str, str, int | None]:
    """(an identifier, what it is without its number, the number)."""
    if not candidate.isidentifier():
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
    if candidate[0].isdigit():
        candidate = f"_{candidate}"
    m = _SUFFIX.match(candidate)
    if m is not None:
        return candidate, m.group(1), int(m.group(2))
    if candidate in _RESERVED or keyword.iskeyword(candidate):
        return f"{candidate}_1", candidate, 1
    return candidate, candidate, None


class Namespace:
    """Gives out unique identifiers: ``sin``, ``sin_1``, ``sin_2`` ..."""

    def __init__(self):
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any = None) -> str:
        candidate, base, num = _identifier(candidate)
        if candidate in self._used:
            num = max(num or 0, self._next.get(base, 0))
        while candidate in self._used:
            num = (num or 0) + 1
            candidate = f"{base}_{num}"
        self._used.add(candidate)
        self._next[base] = num or 0
        return candidate

    def reserve(self, name: str) -> None:
        self._used.add(name)


class NodeList:
    """``graph.nodes``: iterates in order; nodes may be inserted or erased while iterating."""

    def __init__(self, graph: Graph, direction: str = "_next"):
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        forward = self.direction == "_next"
        cur = root._next if forward else root._prev
        while cur is not root:
            # An erased node keeps its links, so that a loop standing on it finds its way back.
            if not cur._erased:
                yield cur
            cur = cur._next if forward else cur._prev

    def __reversed__(self):
        return NodeList(self.graph, "_prev" if self.direction == "_next" else "_next")

    def __contains__(self, node) -> bool:
        return isinstance(node, Node) and node.graph is self.graph and not node._erased

    def __repr__(self) -> str:
        return f"[{', '.join(n.name for n in self)}]"


class Graph:
    """See the module's docstring. New nodes go in before the insert point, which is the end unless ``inserting_*``
    says otherwise.
    """

    def __init__(self, owning_module=None, tracer_cls=None, tracer_extras=None):
        self._root = Node(self, "", "root", "")
        self._insert = self._root.prepend
        self._len = 0
        self._namespace = Namespace()
        self._numbered = False
        # What a caller passes and gets back when that isn't flat: (spec of the arguments, spec of the result), either
        # None.
        self.specs: tuple[Any, Any] | None = None
        self._codegen = CodeGen()
        self._owner: weakref.ref | None = None
        self.traced_from = ""  # the function, as file:line in name
        if owning_module is not None:
            self.owning_module = owning_module
        self.meta: dict[str, Any] = {}
        self._tracer_cls: type | None = tracer_cls

    @property
    def owning_module(self):
        """The module whose graph this is, while it lives: it owns the graph, not the other way round."""
        return None if self._owner is None else self._owner()

    @owning_module.setter
    def owning_module(self, module) -> None:
        self._owner = None if module is None else weakref.ref(module)

    def release(self) -> None:
        """Undo all references between the nodes and the graph, so that they are freed now rather than by the collector. It is of no use then."""
        nodes = list(self.nodes)
        for n in nodes:
            n._args, n._kwargs, n._inputs, n._prev, n._next = (), {}, {}, None, None
            n.users.clear()
            n.meta.clear()
        self._root.graph = self._root._prev = self._root._next = self._insert = None
        self._len = 0

    @property
    def nodes(self) -> NodeList:
        return NodeList(self)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """Nodes with this ``op`` and, if given, ``target``."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    def output_node(self) -> Node:
        last = self._root._prev
        if last.op != "output":
            raise AssertionError("the graph has no output node")
        return last

    def _moved(self) -> None:
        self._numbered = False

    def _number(self) -> None:
        if not self._numbered:
            for i, n in enumerate(self.nodes):
                n._order = i
            self._numbered = True

    # -- making nodes ---------------------------------------------------------------------------------------------

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Make a node and insert it at the insert point."""
        candidate = name if name is not None else self._target_to_str(target)
        node = Node(self, self._namespace.create_name(candidate), op, target, args or (), kwargs or {}, type_expr)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Target) -> str:
        packet = packet_of(target)
        if packet is not None:
            text = type_name(packet)
        elif isinstance(target, str):
            text = target[2:-2] if target.startswith("__") and target.endswith("__") else target
            text = text.replace(".", "_")
        else:
            text = type_name(target)
        return snake_case(text)

    def placeholder(self, name: str, type_expr=None, default_value=inspect.Signature.empty) -> Node:
        """A parameter of the graph's function. The node's name is ``name`` in lower case."""
        args = () if default_value is inspect.Signature.empty or default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr=None) -> Node:
        self._warn_if_absent("get_attr", qualified_name)
        name = qualified_name.replace(".", "_")
        return self.create_node("get_attr", qualified_name, name=name, type_expr=type_expr)

    def call_function(self, the_function: Callable, args=None, kwargs=None, type_expr=None, name=None) -> Node:
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def call_method(self, method_name: str, args=None, kwargs=None, type_expr=None) -> Node:
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def _warn_if_absent(self, op: str, path: str) -> None:
        obj = self.owning_module
        for part in path.split(".") if obj is not None else ():
            obj = getattr(obj, part, None)
            if obj is None:
                warnings.warn(
                    f"Attempted to insert a {op} Node with no underlying reference in the owning GraphModule: {path!r}. "
                    "Call GraphModule.add_submodule, or set the attribute, before",
                    stacklevel=3,
                )
                return

    def call_module(self, module_name: str, args=None, kwargs=None, type_expr=None) -> Node:
        self._warn_if_absent("call_module", module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr=None) -> Node:
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """Copy a node of another graph into this one, its node arguments replaced by ``arg_transform`` of them."""
        args = map_arg(node.args, arg_transform)
        kwargs = map_arg(node.kwargs, arg_transform)
        new = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        new.meta = dict(node.meta)
        return new

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False):
        """Append copies of all nodes of ``g``; returns what ``g`` outputs, in terms of the copies."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                out = map_arg(node.args[0], val_map.__getitem__)
                return (out, node) if return_output_node else out
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def adopt(self, node: Node) -> None:
        """Move a node of another graph, whose arguments are nodes of this one, to the insert point."""
        for a in node._inputs:
            if a.graph is not self:
                raise RuntimeError(f"Argument {a.name!r} of node {node.name!r} belongs to a different graph")
        node._unlink()
        node.graph._len -= 1
        node._prev = node._next = node
        node.graph = self
        node.name = self._namespace.create_name(node.name)
        self._insert(node)
        self._len += 1

    # -- editing --------------------------------------------------------------------------------------------------

    def erase_node(self, node: Node) -> None:
        """Remove a node that nothing uses."""
        if node.users:
            raise RuntimeError(
                f"Tried to erase Node {node} but it still had {len(node.users)} users in the graph: {list(node.users)}!"
            )
        if node.graph is not self:
            raise RuntimeError(f"Attempting to remove {node} from wrong graph!")
        if node._erased:
            return
        node._set((), {})
        node._unlink()
        node._erased = True
        self._len -= 1

    @contextmanager
    def _inserting(self, insert):
        before, self._insert = self._insert, insert
        try:
            yield
        finally:
            self._insert = before

    def inserting_before(self, n: Node | None = None):
        """Insert new nodes before ``n`` within the ``with`` block (None: at the beginning of the graph)."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return self._inserting(n.prepend)

    def inserting_after(self, n: Node | None = None):
        """Insert new nodes after ``n``, in the order in which they are made (None: at the end of the graph)."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        cursor = [n]

        def insert(x):
            cursor[0].append(x)
            cursor[0] = x

        return self._inserting(insert)

    def set_insert_before(self, n: Node) -> None:
        self._insert = n.prepend

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes that nothing uses, except impure ones. Returns whether anything was erased."""
        impure = is_impure_node or Node.is_impure
        changed = False
        for node in reversed(self.nodes):
            if not node.users and node.op not in ("placeholder", "output") and not impure(node):
                self.erase_node(node)
                changed = True
        return changed

    def lint(self) -> None:
        """Raise RuntimeError, naming the node, where an invariant of the graph doesn't hold."""
        names: set[str] = set()
        seen: set[Node] = set()
        root = self.owning_module
        ended = placed = False
        count = 0
        for node in self.nodes:
            count += 1
            if node.graph is not self or node._erased:
                raise RuntimeError(f"Node '{node.name}' does not belong to this Graph!")
            if ended:
                raise RuntimeError(f"Node '{node.name}' stands after the output")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            if node.op == "placeholder":
                if placed:
                    raise RuntimeError(f"placeholder '{node.name}' stands after other nodes")
            else:
                placed = True
            inputs = dict.fromkeys(nodes_in((node.args, dict(node.kwargs))))
            for a in inputs:
                if a.graph is not self or a._erased:
                    raise RuntimeError(f"Argument '{a}' of Node '{node.name}' does not belong to this Graph!")
                if a not in seen:
                    raise RuntimeError(f"Argument '{a}' of Node '{node.name}' was used before it has been defined!")
                if node not in a.users:
                    raise RuntimeError(f"Node '{node.name}' reads '{a}' but is not among its users")
            if list(inputs) and set(inputs) != set(node._inputs):
                raise RuntimeError(f"Node '{node.name}': recorded inputs differ from its arguments")
            for u in node.users:
                if u._erased or node not in u._inputs:
                    raise RuntimeError(f"Node '{node.name}' lists '{u}' as a user, which doesn't read it")
            if root is not None and node.op in ("get_attr", "call_module"):
                _resolve(root, node)
            names.add(node.name)
            seen.add(node)
            ended = node.op == "output"
        if count != self._len:
            raise RuntimeError(f"the graph counts {self._len} nodes and holds {count}")

    # -- output ---------------------------------------------------------------------------------------------------

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let ``codegen`` say how the graph is printed and called."""
        self._codegen = codegen

    def process_inputs(self, *args):
        """What the placeholders are given for the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out):
        """What a call returns for what the graph returns."""
        return self._codegen.process_outputs(out)

    def on_generate_code(self, make_transformer):
        """From now on the lines of the body go through ``make_transformer(former)``, ``former`` being the transformer until now or None. The
        result is a context manager: at its end ``former`` is back."""
        former = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(former)
        end = ExitStack()
        end.callback(setattr, self._codegen, "_body_transformer", former)
        return end

    def python_code(self, root_module: str = "self", *, verbose: bool = False, **_ignored) -> PythonCode:
        """The graph as source of a ``forward`` function, with the globals that the source needs."""
        return python_code(self, root_module, verbose=verbose)

    def __str__(self) -> str:
        lines = [n.format_node() for n in self.nodes]
        return "\n    ".join(["graph():", *lines])

    def print_tabular(self) -> None:
        """Print one row per node: op, name, target, args, kwargs."""
        rows = [("opcode", "name", "target", "args", "kwargs")]
        for n in self.nodes:
            rows.append((n.op, n.name, target_str(n.target), str(n.args), str(dict(n.kwargs))))
        width = [max(len(r[i]) for r in rows) for i in range(5)]
        rows.insert(1, tuple("-" * w for w in width))
        for r in rows:
            print("  ".join(c.ljust(w) for c, w in zip(r, width)).rstrip())

    def __deepcopy__(self, memo=None) -> Graph:
        memo = {} if memo is None else memo
        g = Graph()
        memo[id(self)] = g
        val_map: dict[Node, Node] = {}
        for node in self.nodes:
            new = g.create_node(
                node.op,
                node.target,
                map_arg(node.args, val_map.__getitem__),
                map_arg(node.kwargs, val_map.__getitem__),
                node.name,
                node.type,
            )
            new.meta = dict(node.meta)
            val_map[node] = new
        g.specs = self.specs
        g._codegen = copy.deepcopy(self._codegen)
        g.meta = copy.copy(self.meta)
        g._tracer_cls, g.traced_from = self._tracer_cls, self.traced_from
        return g

    def __reduce__(self):
        index = {n: i for i, n in enumerate(self.nodes)}

        def ref(n):
            return NodeRef(index[n])

        rows = [
            (
                n.op,
                pack_target(n.target),
                map_arg(n.args, ref),
                map_arg(n.kwargs, ref),
                n.name,
                n.meta.get("stack_trace"),
            )
            for n in self.nodes
        ]
        return _rebuild, (rows, self.specs, self._codegen)


class NodeRef:
    """Stands for the i-th node in a pickled graph."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index

    def __reduce__(self):
        return NodeRef, (self.index,)


def pack_target(target: Target):
    """Operators are pickled by name: ``("op", "aten.sin.default")``."""
    return ("op", str(target)) if hasattr(target, "_schema") else ("py", target)


def unpack_target(packed):
    kind, value = packed
    if kind == "py":
        return value
    ns, name, overload = value.split(".")
    return getattr(getattr(namespace(ns), name), overload)


def _rebuild(rows, specs=None, codegen=None) -> Graph:
    from .node import map_aggregate

    g = Graph()
    g.specs = specs
    g.set_codegen(codegen or CodeGen())
    nodes: list[Node] = []

    def deref(x):
        return nodes[x.index] if isinstance(x, NodeRef) else x

    for op, target, args, kwargs, name, stack in rows:
        node = g.create_node(op, unpack_target(target), map_aggregate(args, deref), map_aggregate(kwargs, deref), name)
        if stack is not None:
            node.meta["stack_trace"] = stack
        nodes.append(node)
    return g


def _resolve(root, node: Node):
    obj = root
    for part in node.target.split("."):
        if not hasattr(obj, part):
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {part} of {type(obj).__name__}"
            )
        obj = getattr(obj, part)
    return obj
