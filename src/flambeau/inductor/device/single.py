"""Eager calls on the device: each is a graph of one operator."""

from __future__ import annotations

import logging
from typing import Any

from ... import _C
from ...base.device import Device
from ...core import keys, modes
from ...core.dispatch import excluding
from ..passes.decompose import OpProgram, _Recording, _without_data, tensor_meta
from .compile import compile_copy, compile_on_device

__all__ = ["copy", "run"]

log = logging.getLogger("flambeau.inductor")

LIMIT = 4096  # descriptions kept; then the table starts afresh
_ABOVE = keys.AUTOGRAD | keys.FUNCTIONALIZE | keys.TRANSFORM
_REFUSED = object()
_table: dict[Any, Any] = {}


def _describe(x):
    if isinstance(x, _C.TensorBase):
        return x._shape, x._strides, x._dtype, x._device.type
    if isinstance(x, (list, tuple)):
        return tuple(map(_describe, x))
    # NOTE: 0.0 and -0.0 are equal as keys and differ as operands.
    return (float, x.hex()) if type(x) is float else (type(x), x)


def _tensors(args):
    for x in args:
        if isinstance(x, _C.TensorBase):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from _tensors(x)


def run(op, full, device: Device):
    """The result of a functional operator on all of its arguments, or NotImplemented where the device has no kernel for it."""
    try:
        key = (op, device, *map(_describe, full))
        found = _table.get(key)
    except TypeError:  # an argument that can't be hashed
        return NotImplemented
    if found is None:
        if len(_table) >= LIMIT:
            _table.clear()
        found = _table[key] = _compile(op, full, device)
    if found is _REFUSED:
        return NotImplemented
    graph, many = found
    results = graph(*_tensors(full))
    return tuple(results) if many else results[0]


def copy(target, source):
    """Give the elements of ``target`` the values of ``source``, which spreads to its shape. NotImplemented where there is no kernel."""
    device = target._device
    key = (copy, device, _describe(target), _describe(source))
    found = _table.get(key)
    if found is None:
        try:
            found = compile_copy(tensor_meta(target), tensor_meta(source), device)
        except NotImplementedError as e:
            log.info("copies have no kernel on device '%s': %s", device, e)
            found = _REFUSED
        _table[key] = found
    if found is _REFUSED:
        return NotImplemented
    found(target, source)
    return target


def _compile(op, full, device: Device):
    """(graph, are there several results), or _REFUSED."""
    program = OpProgram()
    recording = _Recording(program)

    def enter(x):
        if isinstance(x, _C.TensorBase):
            duplicate = _without_data(tensor_meta(x))
            return recording.know(duplicate, program.add("input", "tensor", (), {}, duplicate))
        return type(x)(map(enter, x)) if isinstance(x, (list, tuple)) else x

    try:
        # The program is written down by a mode of its own; the backend's caller has left modes behind.
        with modes.disabled("dispatch"), _C.Guard(readmit=keys.PYTHON), excluding(_ABOVE):
            out = recording.__torch_dispatch__(op, (), [enter(x) for x in full], {}, positional=True)
        outputs = out if isinstance(out, (tuple, list)) else [out]
        if any(not isinstance(x, _C.TensorBase) or x.device.type != device.type for x in outputs):
            return _REFUSED
        program.outputs = [recording.reference(x) for x in outputs]
        program.count()
        graph = compile_on_device(program, device)
    except Exception as e:
        # The host's kernel gives the result or the error; a failure here only costs speed, and is told to who asks.
        log.info("%s has no kernel on device '%s': %s: %s", op, device, type(e).__name__, e)
        return _REFUSED
    if graph.info.called:
        log.info(
            "%s has no kernel on device '%s': it calls %s",
            op,
            device,
            ", ".join(graph.info.reasons or graph.info.called),
        )
        return _REFUSED
    return graph, isinstance(out, (tuple, list))
