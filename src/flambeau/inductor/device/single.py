"""Eager calls on the device: each is a graph of one operator, with symbols for sizes where that can be."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from ... import _C
from ...base import accelerator
from ...base.device import Device
from ...base.dtypes import get_default_dtype
from ...base.logs import artifact
from ...base.records import slotted
from ...base.shape_checks import shape_rules
from ...core import keys, modes
from ...core.dispatch import excluding
from ..passes.decompose import OpProgram, _Recording, _without_data, tensor_meta
from . import symbolic
from .compile import compile_copy, compile_on_device
from .graph import DeviceGraph

__all__ = ["copy", "run"]

log = logging.getLogger("flambeau.inductor")
_HINTS = artifact("perf_hints", "fallbacks and other things that cost time")
strict = False  # whether a graph that fails to compile, which is a fault of the compiler's, is an error of the call

LIMIT = 4096  # descriptions kept; then the tables start afresh
FORMS = 8  # graphs with symbols that are kept of one operator and ranks; further shapes get graphs of their own
_ABOVE = keys.AUTOGRAD | keys.FUNCTIONALIZE | keys.TRANSFORM


@slotted
class _Kernel:
    """``made``: list or tuple where there are several results. ``sizes``: None where sizes are numbers."""

    graph: DeviceGraph
    made: type | None = None
    sizes: symbolic.Sizes | None = None


_REFUSED = object()
_exact: dict[Any, Any] = {}  # by sizes and strides
_general: dict[Any, list[_Kernel]] = {}


def _describe(x, tensor):
    if isinstance(x, _C.TensorBase):
        return tensor(x)
    if isinstance(x, (list, tuple)):
        return tuple([_describe(y, tensor) for y in x])
    # NOTE: 0.0 and -0.0 are equal as keys and differ as operands.
    return (float, x.hex()) if type(x) is float else (type(x), x)


def _layout(t):
    return t._shape, t._strides, t._dtype, t._device.type


def _tensors(args):
    for x in args:
        if isinstance(x, _C.TensorBase):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from _tensors(x)


def run(op, full, device: Device):
    """The result of a functional operator on all of its arguments, or NotImplemented where the device has no kernel for it."""
    if (device.index or 0) >= accelerator.count():
        return NotImplemented  # a use of its memory gets the driver's error
    tensors = list(_tensors(full))
    what = op, device, get_default_dtype()  # which bodies and shape rules ask for
    try:
        hash(tuple([_describe(x, _layout) for x in full]))
    except TypeError:  # an argument that can't be hashed
        return NotImplemented
    found = _find(what, full, tensors, lambda metas: _compile(op, full, metas, device))
    if found is _REFUSED:
        return NotImplemented
    results = found.graph(*tensors)
    return results[0] if found.made is None else found.made(results)


def copy(target, source):
    """Give the elements of ``target`` the values of ``source``, which spreads to its shape. NotImplemented where there is no kernel."""
    device, full = target._device, (target, source)
    found = _find((copy, device), full, full, lambda metas: _Kernel(compile_copy(*metas, device)))
    if found is _REFUSED:
        return NotImplemented
    found.graph(target, source)
    return target


def _find(what: tuple, full, tensors, make):
    """The kernel for a call. ``make(metas)`` compiles one for tensors without data."""
    key = (*what, *[_describe(x, _layout) for x in full])
    found = _exact.get(key)
    if found is None:
        if len(_exact) >= LIMIT:
            _exact.clear()
            _general.clear()
        found = _exact[key] = _met(what, full, tensors, make)
    return found


def _met(what: tuple, full, tensors, make):
    """The kernel for sizes and strides that are met for the first time."""
    known = _general.setdefault((*what, *[_describe(x, symbolic.form) for x in full]), [])
    found = next((k for k in known if k.sizes.fit(tensors)), None)
    if found is None and len(known) < FORMS:
        found = _with_symbols(what[0], tensors, make)
        if found is not None:
            known.append(found)
    return _tried(what[0], make, [tensor_meta(t) for t in tensors]) if found is None else found


def _with_symbols(op, tensors, make) -> _Kernel | None:
    """A kernel for more than these sizes; None where they have to be numbers."""
    env, metas, written = symbolic.symbolic_metas(tensors)
    if not env.hints:
        return None
    found = _tried(op, lambda given: _frozen_later(env, given, make), metas)
    if found is _REFUSED:
        return None
    found.graph.bind(written)
    sizes = symbolic.taken(env, written)
    return _Kernel(found.graph, found.made, sizes) if sizes.fit(tensors) else None


def _frozen_later(env, metas, make):
    with shape_rules(env), contextlib.ExitStack() as stack:
        stack.callback(setattr, env, "frozen", True)
        return make(metas)


class KernelFault(RuntimeError):
    """A graph of one operator didn't compile, for another reason than that something isn't built."""


def _tried(op, make, metas):
    try:
        return make(metas)
    except KernelFault:
        if strict:
            raise
        return _REFUSED
    except Exception as e:
        # The host's kernel gives the result or the error; a failure here only costs speed, and is logged.
        log.info("%s has no kernel on the device: %s: %s", op, type(e).__name__, str(e))
        return _REFUSED


def _compiled(op, program: OpProgram, device: Device) -> DeviceGraph:
    try:
        return compile_on_device(program, device)
    except NotImplementedError:
        raise
    except Exception as e:
        _HINTS("%s: its kernel for device '%s' failed to compile: %s: %s", op, device, type(e).__name__, str(e))
        raise KernelFault(f"{op}: its kernel for device '{device}' failed to compile") from e


def _compile(op, full, metas, device: Device):
    """The kernel of an operator on tensors without data, or _REFUSED."""
    program = OpProgram()
    recording = _Recording(program)
    given = iter(metas)

    def enter(x):
        if isinstance(x, _C.TensorBase):
            duplicate = _without_data(next(given))
            return recording.know(duplicate, program.add("input", "tensor", (), {}, duplicate))
        return type(x)(map(enter, x)) if isinstance(x, (list, tuple)) else x

    # The program is written down by a mode of its own; the backend's caller has left modes behind.
    with modes.disabled("dispatch"), _C.Guard(readmit=keys.PYTHON), excluding(_ABOVE):
        out = recording.__torch_dispatch__(op, (), [enter(x) for x in full], {}, positional=True)
    outputs = out if isinstance(out, (tuple, list)) else [out]
    if any(not isinstance(x, _C.TensorBase) or x.device.type != device.type for x in outputs):
        return _REFUSED
    program.outputs = [recording.reference(x) for x in outputs]
    program.count()
    graph = _compiled(op, program, device)
    if graph.info.called:
        log.info("%s has no kernel on the device: it calls %s", op, ", ".join(graph.info.reasons or graph.info.called))
        return _REFUSED
    listed = op._schema.returns[0].is_list
    return _Kernel(graph, None if isinstance(out, _C.TensorBase) else list if listed else tuple)
