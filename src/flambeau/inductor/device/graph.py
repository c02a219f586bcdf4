"""A compiled graph of the second device: its launches in order, and how a call binds sizes and memory to them."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np

from ... import _C
from ...base import accelerator
from ...base.device import Device
from ...base.enums import Out
from ...base.expr_walks import evaluate
from ...base.records import slotted
from ...base.relations import as_symbol
from ...core import device_memory
from ...core.generator import key_words
from .draws import KEY
from .launches import STATUS, Launches, LaunchStep

__all__ = ["CallStep", "DeviceGraph", "DeviceInfo", "InputPlan", "OutputPlan", "Place"]


@slotted
class Place:
    """Memory that a call takes. ``nbytes``: an expression of sizes."""

    nbytes: Any


@slotted
class InputPlan:
    """A tensor as the kernels know it: sizes and strides are numbers or expressions."""

    shape: tuple
    strides: tuple
    name: str


@slotted
class CallStep:
    """An operator that is called on tensors over the memory. ``views``: (buffer, shape, strides, offset, dtype) of each; ``outs``: the buffers of
    its results, and the symbols that are integers among them."""

    call: Any
    views: tuple
    outs: tuple
    symbols: tuple
    numbers: tuple
    last: tuple[str, ...] = ()
    name: str = ""


@slotted
class OutputPlan:
    """One result of a call. ``kind``: a member of Out; ``what``: a buffer's name, an expression or a value."""

    kind: Any
    what: Any
    shape: tuple = ()
    strides: tuple = ()
    offset: Any = 0
    dtype: Any = None
    shares: int | None = None  # the input whose memory it is


@slotted
class DeviceInfo:
    """``called``: the names of operators that a graph calls from Python; ``reasons``: why some of them are; ``source``: its steps and kernels."""

    called: tuple[str, ...]
    reasons: tuple[str, ...]
    source: str


STATUS_BYTES = 24
KEPT = 64  # sizes whose numbers a graph keeps


@slotted
class _Bound:
    """A graph's expressions for some sizes: (sizes, strides) of inputs, numbers of its launches, (sizes, strides, offset) of outputs."""

    inputs: tuple
    launches: tuple
    outputs: tuple


class DeviceGraph:
    """Called with the graph's inputs; returns the list of its outputs. ``told``: what the inputs tell, (sizes, strides) of a tensor or a number.
    ``constants``: buffers whose memory lasts as long as the graph."""

    def __init__(self, device: Device, inputs, told, temporary, steps, outputs, messages, constants, info: DeviceInfo):
        self.device, self.inputs, self.temporary = device, inputs, temporary
        self.bound: dict = {}  # symbol -> function of a call's inputs
        self.bind(told)
        self.steps, self.outputs, self.messages, self.info = steps, outputs, messages, info
        self.constants = constants
        self.draws = any(isinstance(s, LaunchStep) and KEY in s.buffers for s in steps)
        self.fails = any(isinstance(s, LaunchStep) and s.fails for s in steps)
        # NOTE: sizes that a call of Python finds out are known behind it.
        self.late = any(symbol is not None for s in steps if isinstance(s, CallStep) for symbol in s.symbols)
        self.parts = [
            self._part(is_call, list(own)) for is_call, own in groupby(steps, lambda s: isinstance(s, CallStep))
        ]
        self._bounds: dict[tuple, _Bound] = {}

    def _part(self, is_call: bool, steps: list):
        """Calls of Python, or launches that C gives to the device."""
        if is_call:
            return steps
        return Launches(self.device, steps, {n: p.nbytes for n, p in self.temporary.items()}, self.fails)

    def bound_to(self, env: dict) -> _Bound:
        """The expressions that a call with these sizes begins with."""
        key = tuple(env.values())
        found = self._bounds.get(key)
        if found is None:
            numbers = lambda es: tuple(evaluate(e, env) for e in es)  # noqa: E731
            inputs = tuple(p and (numbers(p.shape), numbers(p.strides)) for p in self.inputs)
            early = not self.late
            launches = tuple(p.numbers(env) if early and isinstance(p, Launches) else None for p in self.parts)
            outputs = tuple(
                (numbers(p.shape), numbers(p.strides), evaluate(p.offset, env)) for p in self.outputs if early
            )
            if len(self._bounds) >= KEPT:
                self._bounds.clear()
            found = self._bounds[key] = _Bound(inputs, launches, outputs)
        return found

    def bind(self, told) -> None:
        """Know the symbols that inputs tell: a size, a stride, or a number itself."""
        for k, what in enumerate(told):
            if not isinstance(what, tuple):
                self._bind(what, lambda given, k=k: int(given[k]))
                continue
            for d, (n, s) in enumerate(zip(*what)):
                self._bind(n, lambda given, k=k, d=d: given[k]._shape[d])
                self._bind(s, lambda given, k=k, d=d: given[k]._strides[d])

    def _bind(self, e, look) -> None:
        symbol = as_symbol(e)
        if symbol is not None:
            self.bound.setdefault(symbol, look)

    def __call__(self, *given):
        env = {symbol: look(given) for symbol, look in self.bound.items()}
        return _Call(self, env, given).run()


class _Call:
    """One call of a graph. ``held``: buffer -> its memory, and the byte at which it begins."""

    def __init__(self, graph: DeviceGraph, env: dict, given):
        self.graph, self.env, self.given = graph, env, list(given)
        self.driver, self.index = accelerator.needed(), graph.device.index or 0
        self.held: dict[str, tuple] = dict(graph.constants)
        self.storages: dict[str, Any] = {}
        self.bound = graph.bound_to(env)
        for k, plan in enumerate(graph.inputs):
            if plan is not None:
                self._take(k, plan)
        if graph.draws:
            self.held[KEY] = self._key(), 0

    def _key(self):
        """Two words of the device's generator, in its memory."""
        return device_memory.key_of(self.driver, self.graph.device, key_words)

    def number(self, e) -> int:
        return evaluate(e, self.env)

    def numbers(self, es) -> tuple[int, ...]:
        env = self.env
        return tuple(evaluate(e, env) for e in es)

    def _take(self, k: int, plan: InputPlan) -> None:
        t = self.given[k]
        if not isinstance(t, _C.TensorBase):
            t = _C.from_array(_double(t))
        shape, strides = self.bound.inputs[k]
        if tuple(t._shape) != shape:
            raise ValueError(f"input {k} of a compiled graph has shape {tuple(t._shape)}, expected {shape}")
        if not device_memory.on_device(t):
            t = device_memory.upload(t, self.graph.device)
        if any(n != 1 and s != own for n, s, own in zip(shape, strides, t._strides)) and 0 not in shape:
            t = _laid_out(t, shape, strides)
        self.given[k] = t
        self.held[plan.name] = t._storage.device_memory, t._offset * t._dtype.itemsize

    def run(self) -> list:
        graph = self.graph
        status = None
        if graph.fails:
            # NOTE: while work is recorded nobody can look at it.
            status = self.driver.Memory(self.index, STATUS_BYTES)
            status.fill(0, STATUS_BYTES, 0)
            self.held[STATUS] = status, 0
        for part, numbers in zip(graph.parts, self.bound.launches):
            if isinstance(part, Launches):
                part.run(self.held, part.numbers(self.env) if numbers is None else numbers)
                continue
            for step in part:
                self._call(step)
                for name in step.last:
                    self.held.pop(name, None)
        out = [self._output(k, plan) for k, plan in enumerate(graph.outputs)]
        if status is not None and not self.driver.capturing(self.index):
            self._look(status)
        return out

    def _memory(self, name: str) -> tuple:
        found = self.held.get(name)
        if found is None:
            nbytes = self.number(self.graph.temporary[name].nbytes)
            found = self.held[name] = self.driver.Memory(self.index, nbytes), 0
        return found

    def _call(self, step: CallStep) -> None:
        views = []
        for name, shape, strides, offset, dtype in step.views:
            memory, at = self._memory(name)
            start = at // dtype.itemsize + self.number(offset)
            storage = _C.device_storage(memory, memory.nbytes)
            views.append(
                device_memory.make(self.numbers(shape), self.numbers(strides), dtype, self.graph.device, start, storage)
            )
        made = step.call(*views, *self.numbers(step.numbers))
        for value, name, symbol in zip(made, step.outs, step.symbols):
            if symbol is not None:
                self.env[symbol] = int(value)
            elif isinstance(value, _C.TensorBase):
                if not device_memory.on_device(value):
                    value = device_memory.upload(value, self.graph.device)
                self.held[name] = value._storage.device_memory, value._offset * value._dtype.itemsize
            else:
                self.storages[name] = value

    def _look(self, status) -> None:
        """IndexError, or what a kernel reported else."""
        words = np.empty(STATUS_BYTES, np.uint8)
        status.read(0, words)
        tag, value, size = (int(x) for x in words.view(np.int64))
        if tag:
            raise self.graph.messages[tag - 1].error(value, size)

    def _output(self, k: int, plan: OutputPlan):
        if plan.kind == Out.CONSTANT:
            return plan.what
        if plan.kind == Out.NUMBER:
            return self.number(plan.what)
        if plan.kind == Out.INPUT:
            return self.given[plan.what]
        if plan.kind == Out.VALUE:
            return self.storages[plan.what]
        memory, at = self._memory(plan.what)
        if self.bound.outputs:
            shape, strides, offset = self.bound.outputs[k]
        else:
            shape, strides, offset = self.numbers(plan.shape), self.numbers(plan.strides), self.number(plan.offset)
        start = at // plan.dtype.itemsize + offset
        if plan.shares is not None:
            storage = self.given[plan.shares]._storage
        else:
            storage = self.storages.get(plan.what)
            if storage is None:
                storage = self.storages[plan.what] = _C.device_storage(memory, memory.nbytes)
        return device_memory.make(shape, strides, plan.dtype, self.graph.device, start, storage)


def _double(x):
    return np.array(float(x))


def _laid_out(t, shape, strides):
    """The tensor in memory of these strides."""
    out = device_memory.allocate(shape, strides, t._dtype, t._device)
    out.copy_(t)
    return out
