"""Which outputs may lie in the memory of an input whose new contents they are, so that what isn't written is not copied.

One kernel makes the output whole, element by element. Or the output begins as a copy of the input into which other kernels write parts: the copy
is left out where no kernel finds an element that was written before. Several writes one after the other are such copies of copies."""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

from ...base.enums import Out
from ...base.records import slotted
from ..ir.index_ranges import apart, once_each
from ..ir.nodes import BufferKind, ExternCall, dense_strides, loads, stores
from ..ir.values import loaded_atoms, walk
from .effects import effects
from .failing import errors_come_before, may_fail

__all__ = ["Overwritten", "overwrite"]


@slotted
class Overwritten:
    """What :func:`overwrite` came to."""

    positions: set[int]
    """Of the outputs that overwrite an input."""
    placed: dict[str, str]
    """Buffer -> the input in whose memory it lies."""
    in_order: bool = False
    """Whether the steps have to be made in their order: one may fail that a writing one doesn't wait for."""


def overwrite(lowering, steps: list, output_aliases: dict[int, int]) -> Overwritten:
    """Places outputs over inputs. Copies that are left out are taken out of ``steps``; reads and what may fail may move forward.
    ``output_aliases``: see compile_graph."""
    if not output_aliases:
        return Overwritten(set(), {})
    found = _Overwriting(lowering, steps)
    done = {position for position, k in output_aliases.items() if found.place(position, k)}
    for position in done:
        lowering.outputs[position] = (Out.CONSTANT, None)
    for name in found.over:
        if lowering.buffers[name].kind == BufferKind.TEMP:
            lowering.buffers[name].kind = BufferKind.OUTPUT  # it has no memory of its own
    steps[:] = [s for s in found.steps if not any(s is c for c in found.left_out)]
    return Overwritten(done, found.over, found.in_order)


@slotted
class _State:
    """Contents that an input's memory has for a while: a buffer that begins as a copy of the contents before, or is made of them element by
    element."""

    buffer: str
    begun_at: int
    copied: bool
    """Whether the step that makes it only copies, so that it can be left out."""


@slotted
class _Written:
    """Elements that a step has stored into a state."""

    level: int
    """Which state of the input that is, from 1 on."""
    index: Any
    """None: somewhere."""


class _Overwriting:
    def __init__(self, lowering, steps):
        self.lowering = lowering
        self.over: dict[str, str] = {}
        self.left_out: list = []
        self.in_order = False
        self.wanted = Counter(o[1].buffer for o in lowering.outputs if o[0] == Out.SLOT)
        self._take(steps)

    def _take(self, steps) -> None:
        self.steps = steps = list(steps)
        self.using: dict[str, list[int]] = {}
        """buffer -> steps that have it among their arguments or store it"""
        self.reading: dict[str, int] = {}
        """buffer -> the last step that may read it"""
        for i, s in enumerate(steps):
            extern = isinstance(s, ExternCall)
            for name in dict.fromkeys(stores(s) if extern else s.args):
                self.using.setdefault(name, []).append(i)
            for name in loads(s) if extern else s.args:
                self.reading[name] = i
        self.last_replay = max((i for i, s in enumerate(steps) if isinstance(s, ExternCall) and s.replays), default=-1)
        self.accesses = functools.cache(lambda i: _accesses(steps[i]))

    def place(self, position: int, k: int) -> bool:
        """Whether this output lies over input ``k`` from now on."""
        buffers, what = self.lowering.buffers, self.lowering.outputs[position]
        a = buffers.get(what[1].buffer) if what[0] == Out.SLOT else None
        b = buffers.get(self.lowering.inputs[k])
        if a is None or b is None or a.kind != BufferKind.OUTPUT or not _alike(a, b):
            return False
        if not _covers(what[1], b):
            return False
        if b.name in self.over.values() or self.wanted[a.name] + self.wanted[b.name] != 1:
            return False
        at = self.using.get(a.name, ())
        if not at or not _in_one_pass(self.steps[at[0]]):
            return False
        before = self.steps
        if self._place_states(a, b):
            return True
        self._take(before)
        return len(at) == 1 and self._place_alone(a, b, at[0])

    def _place_alone(self, a, b, at: int) -> bool:
        """The same for an output that one step makes whole, of other contents than the input's."""
        if self.last_replay >= at or self.reading.get(b.name, -1) > at:
            return False
        if not _writes_in_place(self.steps[at], self.accesses(at), a.name, b.name):
            return False
        if not self._errors_come_before([at]):
            return False
        self.over[a.name] = b.name
        return True

    def _place_states(self, a, b) -> bool:
        """The same for an output that is the last of several states of the input. Where it isn't placed, steps may have moved all the same."""
        states = self._states(a, b)
        if not states or self.last_replay >= states[0].begun_at:
            return False
        if not self._finds_nothing_written(states, b.name):
            self._take(self._reads_forward(states[0].begun_at, b.name))
            states = self._states(a, b)
            if not states or not self._finds_nothing_written(states, b.name):
                return False
        if not self._errors_come_before(self._writing(states), self._copies(states)):
            forward = self._failing_forward(states)
            if forward is None:
                return False
            self._take(forward)
            states = self._states(a, b)
            if not states or not self._finds_nothing_written(states, b.name):
                return False
            self.in_order = True
        for state in states:
            self.over[state.buffer] = b.name
            if state.copied:
                self.left_out.append(self.steps[state.begun_at])
        return True

    def _copies(self, states: list[_State]) -> set[int]:
        return {s.begun_at for s in states if s.copied}

    def _writing(self, states: list[_State]) -> set[int]:
        """The steps that write into the input, if it has these states."""
        writing = {i for s in states for i in self.using[s.buffer] if s.buffer in self._stores(i)}
        return writing - self._copies(states)

    def _errors_come_before(self, writing, copies=()) -> bool:
        """Whether nothing can fail any more when the first of these steps writes an input, where that matters."""
        lowering = self.lowering
        return not lowering.checks_first or errors_come_before(self.steps, writing, copies, lowering.inside)

    def _failing_forward(self, states: list[_State]) -> list | None:
        """The steps with those that may fail, and what these wait for, before the first that writes into the input; None where one of these waits for
        what is written, or calls of other code are overtaken."""
        writing, copies = self._writing(states), self._copies(states)
        start = min(writing)
        moved: set[int] = set()
        read, written = set(), set()
        for i in range(len(self.steps) - 1, start - 1, -1):
            step = self.steps[i]
            if i in copies:
                continue
            reads, writes = effects(step)
            if may_fail(step, self.lowering.inside) or writes & (read | written) or reads & written:
                moved.add(i)
                read |= reads
                written |= writes
            if moved and isinstance(step, ExternCall) and (step.effect or step.what not in ("gemm", "native")):
                return None
        if moved & writing:
            return None
        order = [*range(start), *sorted(moved), *(i for i in range(start, len(self.steps)) if i not in moved)]
        return [self.steps[i] for i in order]

    def _reads_forward(self, start: int, source: str) -> list:
        """The steps with those that read an input before step ``start``, where they wait for nothing that is made behind it."""
        held_reads, held_writes = set(), set()
        free = []
        for i in range(start, len(self.steps)):
            reads, writes = effects(self.steps[i])
            if isinstance(self.steps[i], ExternCall) and (
                self.steps[i].effect or self.steps[i].what not in ("gemm", "native")
            ):
                break
            if i > start and not reads & held_writes and not writes & (held_reads | held_writes):
                free.append(i)
                continue
            held_reads |= reads
            held_writes |= writes
        moved: set[int] = set()
        read, written = set(), set()
        for i in reversed(free):
            reads, writes = effects(self.steps[i])
            if source in reads or writes & (read | written) or reads & written:
                moved.add(i)
                read |= reads
                written |= writes
        order = [*range(start), *sorted(moved), *(i for i in range(start, len(self.steps)) if i not in moved)]
        return [self.steps[i] for i in order]

    def _states(self, a, b) -> list[_State]:
        """The states of ``b``'s contents, the last of which is ``a``; empty where one doesn't begin as these, or is written after the next has
        begun."""
        out: list[_State] = []
        now = a
        while now is not b:
            using = self.using.get(now.name, ())
            if not using or not _in_one_pass(self.steps[using[0]]):
                return []
            if out and any(i > out[-1].begun_at and now.name in self._stores(i) for i in using):
                return []
            source = _copied(self.steps[using[0]], now.name)
            out.append(_State(now.name, using[0], source is not None))
            source = source or self._changed(using[0], now, b)
            if source is None:
                return []
            before = b if source == b.name else self.lowering.buffers.get(source)
            if before is None or not _alike(before, b):
                return []
            if before is not b and (before.kind != BufferKind.TEMP or self.wanted[source]):
                return []
            now = before
        return out[::-1]

    def _changed(self, i: int, target, whole) -> str | None:
        """The buffer whose elements a kernel makes those of ``target`` of, each of the one at its place: the input ``whole``, or a state of it."""
        indices = self.accesses(i)[1]
        for name in sorted(indices, key=lambda name: name != whole.name):
            source = self.lowering.buffers.get(name)
            of_input = source is whole or (
                source is not None and source.kind == BufferKind.TEMP and not self.wanted[name]
            )
            if (
                of_input
                and _alike(source, target)
                and _writes_in_place(self.steps[i], self.accesses(i), target.name, name)
            ):
                return name
        return None

    def _stores(self, i: int) -> set[str]:
        step = self.steps[i]
        return set(stores(step)) if isinstance(step, ExternCall) else set(self.accesses(i)[0])

    def _finds_nothing_written(self, states: list[_State], source: str) -> bool:
        """Whether each read of a state finds elements that nothing has written into a later one by then; its own step may do that right behind."""
        level = {source: 0, **{s.buffer: k for k, s in enumerate(states, 1)}}
        copies = self._copies(states)
        written: list[_Written] = []
        for i in range(states[0].begun_at, len(self.steps)):
            step = self.steps[i]
            if i in copies:
                continue
            if isinstance(step, ExternCall):
                read = [level[name] for name in loads(step) if name in level]
                if any(w.level > least for least in read for w in written):
                    return False
                written += [_Written(level[name], None) for name in stores(step) if name in level]
                continue
            nodes, indices = self.accesses(i)
            stored = [_Written(level[n.buffer], n.index) for name in level for n in nodes.get(name, ())]
            for name in level.keys() & set(step.args):
                later = [n for other in level if level[other] > level[name] for n in nodes.get(other, ())]
                before = [w.index for w in written if w.level > level[name]]
                if name not in nodes and name not in indices:
                    return False
                for index in indices.get(name, ()):
                    if not all(apart(index, other) for other in before):
                        return False
                    if not all(apart(index, n.index) for n in later) and not self._reads_first(
                        step, name, index, later
                    ):
                        return False
            written += stored
        return True

    def _reads_first(self, step, name: str, index, stored: list) -> bool:
        """Whether a kernel reads each element of a state before it stores that very element into a later one."""
        if (
            len(stored) != 1
            or stored[0].index != index
            or not _in_one_pass(step)
            or self.lowering.buffers[name].width != 1
        ):
            return False
        if any(n.reduction for n in step.nodes) or not once_each((*step.outer, *step.inner), index):
            return False
        return not _read_behind(step, stored[0], name)


def _covers(region, buffer) -> bool:
    """Whether a region lies as the whole buffer does."""
    same = all(n == 1 or s == t for n, s, t in zip(buffer.shape, region.strides, buffer.strides))
    return region.shape == buffer.shape and same and type(region.offset) is int and region.offset == 0


def _alike(a, b) -> bool:
    """Whether the elements of two buffers lie in the same way, as far as that can be told."""
    dense = (a.size, a.strides, b.strides) == (b.size, dense_strides(a.shape), dense_strides(b.shape))
    return (a.dtype, a.width) == (b.dtype, b.width) and (dense or (a.shape, a.strides) == (b.shape, b.strides))


def _in_one_pass(step) -> bool:
    return not isinstance(step, ExternCall) and len(step.items) == 1


def _copied(kernel, target: str) -> str | None:
    """The buffer of the same layout that a kernel copies into another, where it does nothing else."""
    (node, *others) = kernel.nodes
    value = node.value
    if (
        others
        or kernel.serial
        or node.reduction
        or node.buffer != target
        or value.op != "load"
        or value.args[1] != node.index
    ):
        return None
    return kernel.renamed.get(value.args[0], value.args[0])


def _read_behind(kernel, store, name: str) -> bool:
    """Whether the first node of the loop that reads the buffer stands behind ``store``, and would find the stored element. An element that was read
    before stays in a register."""
    read = stored = False
    for node in kernel.nodes:
        reads = any(v.op == "load" and kernel.renamed.get(v.args[0], v.args[0]) == name for v in walk(node.value))
        if reads and stored and not read:
            return True
        read |= reads
        stored |= node is store
    return False


def _accesses(kernel) -> tuple[dict, dict]:
    """(buffer -> the nodes of a kernel that store it, buffer -> indices at which it is loaded)"""
    nodes, indices, renamed = {}, {}, kernel.renamed
    for n in kernel.nodes:
        nodes.setdefault(n.buffer, []).append(n)
        for v in walk(n.value, *loaded_atoms(n.index)):
            if v.op == "load":
                indices.setdefault(renamed.get(v.args[0], v.args[0]), []).append(v.args[1])
    return nodes, indices


def _writes_in_place(kernel, accesses: tuple[dict, dict], target: str, source: str) -> bool:
    """Whether ``target`` may lie over ``source``: each element is read, if at all, before it is written at that very place."""
    nodes, indices = accesses
    if kernel.serial or len(nodes[target]) != 1:
        return False  # complex numbers: half an element may be read after the other half was written
    (store,) = nodes[target]
    if any(ix != store.index for ix in indices.get(source, ())) or any(n.reduction for n in kernel.nodes):
        return False
    return not _read_behind(kernel, store, source)
