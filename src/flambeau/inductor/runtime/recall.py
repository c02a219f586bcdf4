"""Whole compiled graphs on disk: a second process neither lowers a graph nor generates code for it.

An entry has the plan of a graph (plan.py), the object code of its kernels and their text, which dumps show. Its name comes from the name
that ahead-of-time autograd gave the graph, which tells graph, inputs, settings and sources (aot/cache.py), and here from the compiler's own
settings and the machine. Entries are marshalled rows of plain values behind a checksum; what is damaged is made again."""

from __future__ import annotations

import functools
import hashlib
import logging
import marshal
import os
import zlib
from typing import Any

import numpy as np

from ...base import disk, dtypes
from ...base.threads import get_num_threads
from ...proxy.encoding import Decoder, Encoder, NotEncodable
from .. import metrics
from ..ir.notes import Note, read_notes, write_notes
from ..machine import cache
from ..settings import config
from .plan import LaunchPlan
from .plan_rows import dtype_name, read_plan, write_plan

__all__ = ["recall", "remember"]

log = logging.getLogger("flambeau.inductor")


class RecalledInfo:
    """What is kept with a graph from disk, as with one that was compiled: see compile.CompiledInfo."""

    def __init__(self, plan: LaunchPlan, rows: dict[str, Any], arena_size: int):
        self.plan, self.names, self._texts, self._head = plan, rows["names"], rows["texts"], rows["head"]
        self.fallbacks, self.orders, self.arena_size = rows["fallbacks"], dict(rows["orders"]), arena_size
        self.steps, self.times, self.backward = plan.steps, {}, rows["backward"]
        self._notes = rows["notes"]

    @functools.cached_property
    def notes(self) -> list[Note]:
        return read_notes(self._notes)

    @functools.cached_property
    def kernels(self) -> dict[str, str]:
        return dict(zip(self.names, marshal.loads(zlib.decompress(self._texts))))

    @property
    def source(self) -> str:
        return "\n".join([self._head, "", *(self.kernels[n] for n in self.names)])


def _path(entry: str, output_aliases: dict[int, int]) -> str:
    settings = sorted(config.changed().items())
    threads = get_num_threads() if config.max_autotune else None  # choices were measured with so many
    text = repr((entry, sorted(output_aliases.items()), settings, cache.machine(), threads))
    name = "g" + hashlib.sha256(text.encode()).hexdigest()[:40]
    return os.path.join("graphs", name[1:3], name)


def _usable() -> bool:
    """Whether nobody wants to see the passes, and none is to do something else."""
    return not (config.force_disable_caches or config.trace.enabled or config.cpp.inject_relu_bug_TESTING_ONLY)


def recall(entry: str, output_aliases: dict[int, int]) -> Any:
    """The native graph of an entry of the ahead-of-time cache, None when it isn't on disk. ``output_aliases``: see compile_graph."""
    if not _usable():
        return None
    body = disk.read_entry(_path(entry, output_aliases))
    if body is None:
        return None
    rows = marshal.loads(body)
    objects = {n: code for names, code in rows["objects"] for n in names}
    addresses = cache.load(objects)
    constants = [np.frombuffer(data, _numpy(name)).reshape(shape).copy() for name, shape, data in rows["constants"]]
    dec = Decoder(rows["symbols"])
    plan = read_plan(rows["plan"], dec, constants, addresses)
    info = RecalledInfo(plan, rows, dec.expr(rows["arena"]))
    graph = plan.bind(addresses, info)
    metrics.cache_hits += len(objects)
    metrics.ir_nodes_pre_fusion += rows["nodes"]
    metrics.generated_kernel_count += rows["launches"]
    return graph


def remember(entry: str, output_aliases: dict[int, int], graph: Any, nodes: int, launches: int) -> None:
    """Keep a graph that was compiled under the entry. What a file can't hold is not kept."""
    if not _usable():
        return
    info = graph.info
    kernels: dict[str, str] = {}
    _collect(graph, kernels)
    objects = {n: cache.made(n) for n in kernels}
    constants: list[np.ndarray] = []
    enc = Encoder(("aten",))
    try:
        if not all(objects.values()):
            raise NotEncodable("a kernel's object code is not on disk")
        plan = write_plan(info.plan, enc, constants)
        if any(c.dtype.hasobject for c in constants):
            raise NotEncodable("a constant that holds objects")
        body = marshal.dumps(
            {
                "plan": plan,
                "objects": _grouped(objects),
                "constants": [(dtype_name(c.dtype), c.shape, np.ascontiguousarray(c).tobytes()) for c in constants],
                "names": list(info.kernels),
                "texts": zlib.compress(marshal.dumps(list(info.kernels.values())), 1),
                "head": info.source.partition("\n\n")[0],
                "fallbacks": info.fallbacks,
                "notes": write_notes(info.notes),
                "backward": info.backward,
                "orders": list(info.orders.items()),
                "arena": enc.expr(info.arena_size),
                "nodes": nodes,
                "launches": launches,
                "symbols": enc.symbol_rows(),  # last: all that is met above
            }
        )
    except (NotEncodable, ValueError) as e:
        # The text: a log that keeps its records would keep the graph with the frames of the exception.
        log.info("a compiled graph is not kept on disk: %s", str(e))
        return
    disk.write_entry(_path(entry, output_aliases), body)


def _grouped(objects: dict[str, bytes]) -> list[tuple[list[str], bytes]]:
    """Object code once, with the names of all of its kernels that are wanted."""
    names: dict[bytes, list[str]] = {}
    for n, code in objects.items():
        names.setdefault(code, []).append(n)
    return [(n, code) for code, n in names.items()]


def _collect(graph: Any, kernels: dict[str, str]) -> None:
    kernels.update(graph.info.kernels)
    for body in graph.info.plan.body_graphs():
        _collect(body, kernels)


@functools.cache
def _dtypes() -> dict[str, Any]:
    return {d.np.name: d.np for d in dtypes.ALL}


def _numpy(name: str) -> Any:
    return _dtypes()[name]
