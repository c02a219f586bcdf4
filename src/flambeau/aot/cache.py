"""Traced and partitioned graphs on disk, so that a second process neither traces nor cuts.

An entry belongs to a captured graph (its printed code), the metadata of its inputs, the settings and the state of the process that
tracing reads (base/process_state.py) and the very sources of flambeau. Graphs that refer to anything else (functions of the user,
constant tensors, operators of other libraries) are not kept. Where sizes are symbols, the entry has the guards that tracing made: it
is taken when they hold for the example of this process, which then has them too. Entries are marshalled rows of plain values
(proxy/encoding.py) behind a checksum: reading one runs no code, and one that is damaged is made again.
"""

from __future__ import annotations

import hashlib
import logging
import marshal
import os
import sys
import types
from typing import Any

from .. import _C
from ..base import disk, process_state
from ..base import relations as R
from ..base.records import astuple
from ..base.relations import FloatSymbol
from ..base.shape_env import Guard
from ..base.sources import fingerprint
from ..base.symint import NUMBERS
from ..base.user_line import UserLine
from ..core.bindings import Binder
from ..core.operator import OpOverload, redefined
from ..fake import FakeTensorMode
from ..fx import GraphModule
from ..proxy import find_fake_mode
from ..proxy.encoding import Decoder, Encoder, NotEncodable
from ..proxy.tape import OffTape
from .compiled_function import Ways
from .facts import Computed, Constant, InputAlias, InputView, Number, OutputView, Traced
from .settings import config
from .versions import Kept

__all__ = ["enabled", "key_of", "read", "write"]

log = logging.getLogger("flambeau.aot")

_PLAIN = (type(None), bool, int, float, complex, str)
_MODULES = ("flambeau", "operator", "_operator", "builtins", "math")


class Key:
    """Name of an entry, and the symbols of the inputs in the order in which the entry numbers them."""

    def __init__(self, name: str, encoder: Encoder, mode: FakeTensorMode | None):
        self.name, self.encoder, self.mode = name, encoder, mode
        self.env = encoder.env
        self.symbols = list(encoder.symbols)
        self.guards = len(self.env.guards) if self.env is not None else 0
        self.asserts = len(self.env.asserts) if self.env is not None else 0


def enabled() -> bool:
    if not config.enable_autograd_cache:
        return False
    return os.environ.get("TORCHINDUCTOR_FORCE_DISABLE_CACHES") != "1" and os.environ.get("FLAMBEAU_AOT_CACHE") != "0"


# -- keys -----------------------------------------------------------------------------------------------------------


def key_of(gm: Any, positions: list[int], inputs: list[Any], partition: Any) -> Key | None:
    """The entry for this graph and inputs like these, None when it can't have one. ``positions``: which of ``inputs`` each argument of the graph
    is."""
    if not isinstance(gm, GraphModule) or not enabled() or _C.tls("saved_hooks"):
        return None
    code = gm.graph.python_code()
    rows: list[Any] = []
    for name, value in code.globals.items():
        told = _meaning(value)
        if told is None:
            return None
        rows.append((name, told))
    if any(n.op in ("get_attr", "call_module") for n in gm.graph.nodes):
        return None
    enc = Encoder(("aten",))
    storages: dict[int, int] = {}
    for t in inputs:
        if isinstance(t, _C.TensorBase):
            rows.append((enc.value(t), t.requires_grad, storages.setdefault(id(t._storage), len(storages))))
        elif isinstance(t, NUMBERS):
            rows.append(enc.number(t))
        elif isinstance(t, _PLAIN):
            rows.append(repr(t))
        else:
            return None
    rows.append(_known(enc))
    settings = (
        process_state.key(),
        partition.__module__,
        partition.__qualname__,
        config.key(),
        redefined(),
        positions,
    )
    text = repr((fingerprint(), code.src, rows, settings))
    name = "a" + hashlib.sha256(text.encode()).hexdigest()[:40]
    return Key(name, enc, find_fake_mode(inputs) if enc.env is not None else None)


def _meaning(value: Any) -> tuple | None:
    """A global of printed code, in words that mean the same in another process. None where there are no such words."""
    if isinstance(value, _C.Function) and isinstance(value.impl, Binder) and value.impl.ns == "aten":
        return ("function", value.impl.name)
    if isinstance(value, OpOverload):
        return ("operator", str(value)) if value.namespace == "aten" else None
    if type(value) in _PLAIN:
        return ("value", repr(value))
    if isinstance(value, types.ModuleType):
        return ("module", value.__name__) if value.__name__.partition(".")[0] in _MODULES else None
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module.partition(".")[0] not in _MODULES:
        return None
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return ("from", module, name) if found is value else None


def _known(enc: Encoder) -> list:
    """What is known of the symbols before tracing: without their names and examples."""
    env = enc.env
    if env is None:
        return []
    facts = [enc.expr(r) for r in (*(g.relation for g in env.guards), *(a.relation for a in env.asserts))]
    ranges = [
        "float" if isinstance(s, FloatSymbol) else (s.lo, s.hi, s.divisor, s in env.hints, s in env.size_like)
        for s in enc.symbols
    ]
    return [facts, ranges]


# -- entries --------------------------------------------------------------------------------------------------------


def write(key: Key, traced: Traced, graphs: list[GraphModule], ways: Ways | None) -> str | None:
    """Keep a traced function and the graphs it was cut into (the graph itself first). ``ways``: of a joint graph's parts. Returns the entry's name
    (see :func:`_name`), None when it couldn't be kept."""
    enc, env = key.encoder, key.env
    try:
        if env is not None and len(env.asserts) != key.asserts:
            raise NotEncodable("tracing made checks that a graph has by itself")
        entry = {
            "graphs": [enc.graph(gm) for gm in graphs],
            "gradient": traced.gradient.name
            if isinstance(traced.gradient, OffTape)
            else traced.gradient and enc.graph(traced.gradient),
            "inputs": [enc.value(t) for t in traced.fake_inputs],
            "outputs": [_encode_fact(o, enc) for o in traced.outputs],
            "reshaped": [(i, _encode_fact(v, enc)) for i, v in traced.reshaped],
            "tangents": [enc.value(t) for t in traced.fake_tangents],
            "ways": ways and ways.rows(),
            "guards": [
                (enc.expr(g.relation), g.line and astuple(g.line), g.specializes) for g in env.guards[key.guards :]
            ]
            if env
            else [],
            "plain": (
                traced.mutated,
                traced.num_forward,
                traced.joint,
                traced.tangent_of,
                sorted(traced.mutated_with_grad),
                traced.random,
                traced.fallible,
                sorted(traced.uncounted),
                sorted(traced.mutated_under_grad),
                [(k.inputs, k.outputs) for k in traced.kept],
                [sorted(tangents) for tangents in traced.filled],
            ),
        }
        # One that was found to be a constant isn't among the symbols: then only the numbers' ShapeEnv tells of it.
        if len(enc.symbols) != len(key.symbols) or (env is None and enc.env is not None):
            raise NotEncodable("tracing made symbols")
        body = marshal.dumps(entry)
    except (NotEncodable, ValueError) as e:
        log.info("not kept on disk: %s", str(e))
        return None if env is not None else _name(key, b"")
    disk.write_entry(_path(key), body)
    return _name(key, body)


def _name(key: Key, body: bytes) -> str:
    """A name that tells everything about the graphs of an entry. The guards that tracing makes depend on the examples, so where sizes are symbols
    the key alone doesn't tell them; what the entry holds does."""
    return key.name if key.env is None else f"{key.name} {hashlib.sha256(body).hexdigest()[:40]}"


def read(key: Key) -> tuple[Traced, list, Ways | None, str] | None:
    """(facts, for each graph a function that makes it, what is known of its parts, the entry's name), or None. ``traced.gm`` is left for the
    caller to fill."""
    body = disk.read_entry(_path(key))
    if body is None:
        return None
    entry = marshal.loads(body)
    dec = Decoder(key.symbols, key.mode or FakeTensorMode(allow_non_fake_inputs=True, shape_env=key.env))
    if not _assume(entry["guards"], dec, key.env):
        return None
    mutated, num_forward, joint, tangent_of, with_grad, random, fallible, uncounted, under_grad, kept, filled = entry[
        "plain"
    ]
    traced = Traced(
        None,
        [dec.value(v) for v in entry["inputs"]],
        [_decode_fact(o, dec) for o in entry["outputs"]],
        mutated,
        num_forward,
        joint,
        tangent_of,
        [dec.value(v) for v in entry["tangents"]],
        frozenset(with_grad),
        [(i, _decode_fact(v, dec)) for i, v in entry["reshaped"]],
        random,
        fallible,
        frozenset(uncounted),
        frozenset(under_grad),
        kept=[Kept(*row) for row in kept],
        filled=[set(tangents) for tangents in filled],
    )
    if isinstance(entry["gradient"], str):
        traced.gradient = OffTape[entry["gradient"]]
    elif entry["gradient"]:
        traced.load_gradient = lambda rows=entry["gradient"]: dec.graph(rows)
    ways = entry["ways"] and Ways.read(entry["ways"])
    return traced, [lambda rows=rows: dec.graph(rows) for rows in entry["graphs"]], ways, _name(key, body)


def _assume(rows: list, dec: Decoder, env) -> bool:
    """Whether the guards of an entry hold for the examples of this process; they are guards here from then on."""
    guards = [Guard(dec.expr(r), line and UserLine(*line), specializes) for r, line, specializes in rows]
    if not all(R.evaluate(g.relation, env.hints) for g in guards):
        return False
    for g in guards:
        env.guards.append(g)
        env.learn(g.relation)
    return True


def _path(key: Key) -> str:
    return os.path.join("aot", key.name[1:3], key.name)


# -- facts ------------------------------------------------------------------------------------------------------------


def _encode_fact(o: Any, enc: Encoder) -> tuple:
    if isinstance(o, Computed):
        return ("computed", o.index, o.requires_grad)
    if isinstance(o, InputAlias):
        return ("alias", o.index)
    if isinstance(o, Number):
        return ("number", enc.expr(o.expr))
    if isinstance(o, InputView | OutputView):
        chain = []
        for op, rest, kwargs, which in o.chain:
            named = [(k, enc.argument(v, {})) for k, v in kwargs.items()]
            chain.append((enc.target(op), [enc.argument(a, {}) for a in rest], named, which))
        return ("view" if isinstance(o, InputView) else "output view", o.index, chain, o.history, o.unrecorded)
    if type(o.value) not in _PLAIN:
        raise NotEncodable(f"an output of type {type(o.value).__name__}")
    return ("constant", o.value)


def _decode_fact(o: tuple, dec: Decoder) -> Any:
    if o[0] == "computed":
        return Computed(o[1], o[2])
    if o[0] == "alias":
        return InputAlias(o[1])
    if o[0] == "number":
        return Number(dec.expr(o[1]))
    if o[0] == "constant":
        return Constant(o[1])
    chain = []
    for op, rest, kwargs, which in o[2]:
        named = {k: dec.argument(v, []) for k, v in kwargs}
        chain.append((dec.target(op), tuple(dec.argument(a, []) for a in rest), named, which))
    return (InputView if o[0] == "view" else OutputView)(o[1], tuple(chain), o[3], o[4])
