"""Traced and partitioned graphs on disk, so that a second process neither traces nor cuts.

An entry belongs to a captured graph (its printed code), the metadata of its inputs, the settings that tracing reads and the very
sources of flambeau. Graphs that refer to anything else (functions of the user, constant tensors, operators of other libraries)
are not kept. Entries are marshalled rows of plain values behind a checksum: reading one runs no code, and one that is
damaged is made again.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import operator
import os
import sys
import types
from typing import Any

from .. import _C
from .. import autograd as _autograd
from ..base import disk, dtypes
from ..base.device import Device
from ..base.symint import NUMBERS, is_symbolic
from ..core.definition import TensorMeta
from ..core.operator import OpOverload, namespace
from ..fake import FakeTensor, FakeTensorMode
from ..fake.meta import meta_of
from ..fx import Graph, GraphModule, Node
from .facts import Computed, Constant, InputAlias, InputView, OutputView, Traced

__all__ = ["enabled", "key_of", "read", "write"]

log = logging.getLogger("flambeau.aot")

_PLAIN = (type(None), bool, int, float, complex, str)
_MODULES = ("flambeau", "operator", "builtins", "math")


class NotCacheable(Exception):
    """The graph refers to something that an entry can't hold."""


def enabled() -> bool:
    return os.environ.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES") != "1" and os.environ.get("FLAMBEAU_AOT_CACHE") != "0"


# -- keys -----------------------------------------------------------------------------------------------------------


_sources: str | None = None


def _fingerprint() -> str:
    """Names, sizes and dates of flambeau's files: an entry made by other sources is never read."""
    global _sources
    if _sources is None:
        root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        rows = [sys.version]
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(f for f in folders if f != "__pycache__")
            for name in sorted(files):
                if name.endswith((".py", ".so")):
                    found = os.stat(os.path.join(folder, name))
                    rows.append(f"{folder}/{name} {found.st_size} {found.st_mtime_ns}")
        _sources = hashlib.sha256("\n".join(rows).encode()).hexdigest()
    return _sources


def key_of(gm: Any, inputs: list[Any], partition: Any) -> str | None:
    """Name of the entry for this graph and inputs like these, None when it can't have one."""
    if not isinstance(gm, GraphModule) or not enabled() or _C.tls("saved_hooks"):
        return None
    code = gm.graph.python_code()
    for value in code.globals.values():
        ours = isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] in _MODULES
        if not ours and not (isinstance(value, OpOverload) and value.namespace == "aten"):
            return None
    if any(n.op in ("get_attr", "call_module") for n in gm.graph.nodes):
        return None
    if any(
        isinstance(t, NUMBERS) or (isinstance(t, _C.TensorBase) and is_symbolic((*t._shape, *t._strides)))
        for t in inputs
    ):
        return None
    rows: list[Any] = []
    storages: dict[int, int] = {}
    for t in inputs:
        if isinstance(t, _C.TensorBase):
            rows.append((_encode_value(t), t.requires_grad, storages.setdefault(id(t._storage), len(storages))))
        elif isinstance(t, _PLAIN):
            rows.append(repr(t))
        else:
            return None
    redefined = sorted(
        (o.name(), o.version) for p in namespace("aten")._packets.values() for o in p._overloads.values() if o.version
    )
    settings = (
        _autograd.is_grad_enabled(),
        str(dtypes.get_default_dtype()),
        partition.__module__,
        partition.__qualname__,
        redefined,
    )
    text = repr((_fingerprint(), code.src, rows, settings))
    return "a" + hashlib.sha256(text.encode()).hexdigest()[:40]


# -- entries --------------------------------------------------------------------------------------------------------


def write(key: str, traced: Traced, graphs: list[GraphModule]) -> None:
    """Keep a traced function and the graphs it was cut into (the graph itself first)."""
    try:
        entry = {
            "graphs": [_encode_graph(gm.graph) for gm in graphs],
            "inputs": [_encode_value(t) for t in traced.fake_inputs],
            "outputs": [_encode_fact(o) for o in traced.outputs],
            "reshaped": [(i, _encode_fact(v)) for i, v in traced.reshaped],
            "tangents": [_encode_value(t) for t in traced.fake_tangents],
            "plain": (
                traced.mutated,
                traced.num_forward,
                traced.joint,
                traced.tangent_of,
                sorted(traced.mutated_with_grad),
                traced.random,
            ),
        }
    except NotCacheable as e:
        log.info("not kept on disk: %s", e)
        return
    body = marshal.dumps(entry)
    disk.write_entry(_path(key), body)


def read(key: str) -> tuple[Traced, list] | None:
    """(facts, for each graph a function that makes it), or None. ``traced.gm`` is left for the caller to fill."""
    body = disk.read_entry(_path(key))
    if body is None:
        return None
    entry = marshal.loads(body)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    mutated, num_forward, joint, tangent_of, with_grad, random = entry["plain"]
    traced = Traced(
        None,
        [_decode_value(v, mode) for v in entry["inputs"]],
        [_decode_fact(o) for o in entry["outputs"]],
        mutated,
        num_forward,
        joint,
        tangent_of,
        [_decode_value(v, mode) for v in entry["tangents"]],
        frozenset(with_grad),
        [(i, _decode_fact(v)) for i, v in entry["reshaped"]],
        random,
    )
    return traced, [lambda rows=rows: GraphModule({}, _decode_graph(rows, mode)) for rows in entry["graphs"]]


def _path(key: str) -> str:
    return os.path.join("aot", key[1:3], key)


# -- rows of plain values ---------------------------------------------------------------------------------------------
# Plain values stand for themselves; everything else is a tuple that begins with a letter.


def _encode(a: Any, number: dict[Node, int]) -> Any:
    if isinstance(a, Node):
        return ("n", number[a])
    if type(a) in _PLAIN:
        return a
    if isinstance(a, (tuple, list)):
        return ("t" if isinstance(a, tuple) else "l", [_encode(x, number) for x in a])
    if isinstance(a, slice):
        return ("s", [_encode(x, number) for x in (a.start, a.stop, a.step)])
    if isinstance(a, dtypes.DType):
        return ("d", a.name)
    if isinstance(a, Device):
        return ("v", a.type, a.index)
    raise NotCacheable(f"an argument of type {type(a).__name__}")


def _decode(a: Any, nodes: list[Node]) -> Any:
    if type(a) is not tuple:
        return a
    tag = a[0]
    if tag == "n":
        return nodes[a[1]]
    if tag == "d":
        return _dtype(a[1])
    if tag == "v":
        return Device(a[1], a[2])
    items = [_decode(x, nodes) for x in a[1]]
    return tuple(items) if tag == "t" else items if tag == "l" else slice(*items)


def _dtype(name: str):
    return next(d for d in dtypes.BY_NUMPY.values() if d.name == name)


def _encode_value(v: Any) -> Any:
    if isinstance(v, _C.TensorBase):
        m = meta_of(v)
        if is_symbolic((*m.shape, *m.strides, m.offset)):
            raise NotCacheable("a tensor with symbolic sizes")
        return ("T", tuple(m.shape), tuple(m.strides), m.dtype.name, m.device.type, m.device.index, m.offset)
    if isinstance(v, (list, tuple)):
        return ("t" if isinstance(v, tuple) else "l", [_encode_value(x) for x in v])
    if type(v) in _PLAIN:
        return v
    raise NotCacheable(f"a value of type {type(v).__name__}")


def _decode_value(v: Any, mode: FakeTensorMode) -> Any:
    if type(v) is not tuple:
        return v
    if v[0] == "T":
        _, shape, strides, dtype, device, index, offset = v
        return FakeTensor(mode, TensorMeta(shape, strides, _dtype(dtype), Device(device, index), offset))
    items = [_decode_value(x, mode) for x in v[1]]
    return tuple(items) if v[0] == "t" else items


def _encode_target(target: Any) -> Any:
    if isinstance(target, str):
        return target
    if target is operator.getitem:
        return ("getitem",)
    if isinstance(target, OpOverload) and target.namespace == "aten":
        return ("op", target._opname, target._overloadname)
    raise NotCacheable(f"a call of {target}")


def _decode_target(target: Any) -> Any:
    if type(target) is not tuple:
        return target
    return operator.getitem if target[0] == "getitem" else getattr(getattr(namespace("aten"), target[1]), target[2])


def _encode_graph(graph: Graph) -> list:
    number: dict[Node, int] = {}
    rows = []
    for n in graph.nodes:
        if n.op in ("get_attr", "call_module"):
            raise NotCacheable(f"the graph holds {n.target}")
        number[n] = len(number)
        kwargs = [(k, _encode(v, number)) for k, v in n.kwargs.items()]
        flags = [k for k in ("overwritten", "copy_of_overwritten") if k in n.meta]
        value = _encode_value(n.meta.get("val")) if n.op != "output" else None
        args = [_encode(a, number) for a in n.args]
        rows.append((n.op, _encode_target(n.target), args, kwargs, n.name, value, flags))
    return rows


def _decode_graph(rows: list, mode: FakeTensorMode) -> Graph:
    graph = Graph()
    nodes: list[Node] = []
    for op, target, args, kwargs, name, value, flags in rows:
        node = graph.create_node(
            op,
            _decode_target(target),
            tuple(_decode(a, nodes) for a in args),
            {k: _decode(v, nodes) for k, v in kwargs},
            name,
        )
        if op != "output":
            node.meta["val"] = _decode_value(value, mode)
        for f in flags:
            node.meta[f] = True
        nodes.append(node)
    return graph


def _encode_fact(o: Any) -> tuple:
    if isinstance(o, Computed):
        return ("computed", o.index, o.requires_grad)
    if isinstance(o, InputAlias):
        return ("alias", o.index)
    if isinstance(o, InputView | OutputView):
        chain = []
        for op, rest, kwargs, which in o.chain:
            named = [(k, _encode(v, {})) for k, v in kwargs.items()]
            chain.append((_encode_target(op), [_encode(a, {}) for a in rest], named, which))
        return ("view" if isinstance(o, InputView) else "output view", o.index, chain)
    if type(o.value) not in _PLAIN:
        raise NotCacheable(f"an output of type {type(o.value).__name__}")
    return ("constant", o.value)


def _decode_fact(o: tuple) -> Any:
    if o[0] == "computed":
        return Computed(o[1], o[2])
    if o[0] == "alias":
        return InputAlias(o[1])
    if o[0] == "constant":
        return Constant(o[1])
    chain = []
    for op, rest, kwargs, which in o[2]:
        named = {k: _decode(v, []) for k, v in kwargs}
        chain.append((_decode_target(op), tuple(_decode(a, []) for a in rest), named, which))
    return (InputView if o[0] == "view" else OutputView)(o[1], tuple(chain))
