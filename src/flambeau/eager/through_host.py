"""The backend for tensors of the second device: which device an operator runs on, and how one runs that has no kernel there.

Views only say where in the memory they are. Everything else goes through the host: the memory that the arguments look at is copied, once for
each storage, the CPU's kernel runs on tensors over the copies, and what it wrote and made is copied back. Whatever shares memory on the device
shares it on the host, so kernels and their checks see the same overlaps. No operator is known here by its name.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base.device import CPU, Device, as_device
from ..base.logs import artifact
from ..core import device_memory
from ..core import keys as K
from ..core.generator import Generator, drawing_on
from ..core.lazy import resolved
from ..core.operator import OpOverload
from ..core.promotion import DIFFERENT_DEVICES
from . import on_device

__all__ = ["among", "device_of", "made_on", "observers", "refuse", "run"]

_ABOVE = K.PYTHON | K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM
_HINTS = artifact("perf_hints", "fallbacks and other things that cost time")
observers: list = []  # functions of the operator that goes through the host


def _tensors(values):
    for x in values:
        if isinstance(x, _C.TensorBase):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from (y for y in x if isinstance(y, _C.TensorBase))


def among(values) -> bool:
    """Whether an argument lies on the device, or a list has one that does."""
    return any(device_memory.on_device(t) for t in _tensors(values))


def device_of(op: OpOverload, full) -> Device:
    """The device that a call runs on, some of whose arguments are on one. RuntimeError for arguments on different devices, unless the operator
    carries elements from one to the other; a tensor without dimensions, and the indices of an operator, may be on the CPU."""
    if any(t._device.type == "meta" for t in _tensors(full)):
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    found, other = None, None
    indices = {
        k for k, a in enumerate(op._schema.arguments) if a.type == "Tensor" and a.is_list and a.elements_optional
    }
    for k, value in enumerate(full):
        for t in _tensors((value,)):
            if t._device.type != "cpu":
                if found is not None and t._device != found:
                    other = t._device
                found = found or t._device
            elif t._ndim and k not in indices:
                other = other or CPU
    functional = getattr(op.definition, "functional", op)
    if indices and all(t._device.type == "cpu" for k, v in enumerate(full) if k not in indices for t in _tensors((v,))):
        raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
    if other is not None and "crosses_devices" not in functional.tags:
        raise RuntimeError(DIFFERENT_DEVICES.format(found, other))
    return found


def refuse(kind: str, given) -> None:
    """NotImplementedError where tensors of a kind that only the CPU has meet the device: a tensor there, or the device asked for."""
    values = list(given)
    found = next((x for x in values if isinstance(x, Device) and x.type == "cuda"), None)
    found = found or next((t._device for t in _tensors(values) if device_memory.on_device(t)), None)
    if found is not None:
        raise NotImplementedError(f"{kind} tensors live on the CPU in flambeau; device '{found}' was asked for")


def _check_kind(op: OpOverload, full) -> None:
    """An operator that makes such tensors of dense ones has the same kernel for both."""
    for kind in ("sparse", "quantized"):
        own = op.overrides.get(kind)
        if own is not None and own is getattr(op.definition, "fn", None):
            refuse(kind, full)


def _check_generator(op: OpOverload, full, device: Device) -> None:
    """RuntimeError for a generator of another device."""
    for x in full if "draws" in op.effects else ():
        if isinstance(x, Generator) and x.device.type != device.type:
            raise RuntimeError(f"Expected a '{device.type}' device type for generator but found '{x.device.type}'")


def run(op: OpOverload, args, kwargs):
    """A call with tensors of a device among its arguments."""
    full = op.full(*args, **kwargs)
    _check_kind(op, full)
    with _C.Guard(exclude=_ABOVE, push="devices", value=CPU):
        if op._schema.is_view and not op._schema.is_mutable:
            # A kernel that is the rule for lazy views, too, looks at no elements.
            own = op.overrides.get("lazy")
            return own(*full) if own is not None and own is op.overrides.get("eager") else _view(op, full)
        device = device_of(op, full)
        wanted = next((as_device(x) for x in full if isinstance(x, Device)), None)
        _check_generator(op, full, wanted or device)
        if op.kind == "factory" and op.definition.body is None and (wanted or device).type == "cuda":
            return _undefined(op, full, wanted or device)
        if wanted is None and _in_memory(op, full):
            return full[0]
        made = on_device.run(op, full, device) if wanted in (None, device) else NotImplemented
        return _through_host(op, full, device, wanted) if made is NotImplemented else made


def _in_memory(op: OpOverload, full) -> bool:
    """Whether the operator, in place, was work of the driver's alone: the override "in_memory" of its functional form."""
    rule = op.definition.functional.overrides.get("in_memory") if op.kind == "inplace" else None
    if rule is None or not rule(*full):
        return False
    full[0]._bump_version()
    return True


def made_on(op: OpOverload, device: Device, full):
    """A call on tensors of the CPU, or none, that asks for a result on ``device``."""
    device = as_device(device)
    if op.kind == "factory" and op.definition.body is None:
        return _undefined(op, full, device)
    _check_generator(op, full, device)
    with _C.Guard(exclude=_ABOVE, push="devices", value=CPU):
        made = on_device.run(op, full, device) if not any(True for _ in _tensors(full)) else NotImplemented
        return _through_host(op, full, device, device) if made is NotImplemented else made


def _undefined(op: OpOverload, full, device: Device):
    meta = op.facet("meta")(*full)
    return device_memory.allocate(meta.shape, meta.strides, meta.dtype, device)


def _view(op: OpOverload, full):
    base = full[0]
    metas = op.facet("meta")(*full)

    def view(meta, which=None):
        out = device_memory.make(meta.shape, meta.strides, meta.dtype, base._device, meta.offset, base._counter)
        if op.tracks_views:
            _C.note_view(out, base, op, tuple(full[1:]), which)
        return out

    return [view(m, k) for k, m in enumerate(metas)] if isinstance(metas, (list, tuple)) else view(metas)


class _Image:
    """The host's copy of the part of a device's storage that some tensors look at. ``low``: its first byte in the storage."""

    def __init__(self, tensors):
        spans = []
        for t in tensors:
            n, item = device_memory.extent(t._shape, t._strides), t._dtype.itemsize
            spans.append((t._offset * item, (t._offset + n) * item))
        filled = [s for s in spans if s[0] < s[1]]
        # A multiple of every element's size, so that elements are aligned in the copy too.
        self.low = min((s[0] for s in filled), default=0) // 16 * 16
        self.bytes = np.empty(max(max((s[1] for s in filled), default=0) - self.low, 0), np.uint8)
        self.memory = tensors[0]._storage.device_memory
        event = _C.event_begin(device_memory.EVENT, "copy to the host")
        self.memory.read(self.low, self.bytes)
        _C.event_end(event)
        self.storage = _C.from_array(self.bytes)._storage

    def tensor(self, t):
        """What stands for a tensor of the device."""
        item = t._dtype.itemsize
        n = device_memory.extent(t._shape, t._strides)
        at = t._offset * item - self.low if n else 0
        strides = tuple(s * item for s in t._strides)
        out = _C.from_array(np.ndarray(tuple(t._shape), t._dtype.np, self.bytes, at, strides))
        out._storage = self.storage
        return out

    def write_back(self, t) -> None:
        item = t._dtype.itemsize
        begin = t._offset * item
        end = begin + device_memory.extent(t._shape, t._strides) * item
        if begin < end:
            event = _C.event_begin(device_memory.EVENT, "copy to the device")
            self.memory.write(begin, self.bytes[begin - self.low : end - self.low])
            _C.event_end(event)


class _Host:
    """A call's arguments on the host."""

    def __init__(self, full):
        groups: dict[int, list] = {}
        for t in _tensors(full):
            if device_memory.on_device(t):
                groups.setdefault(id(t._storage), []).append(t)
        self.images = {key: _Image(group) for key, group in groups.items()}
        self.stands: dict[int, tuple] = {}  # id of a tensor -> it, and what stands for it
        for group in groups.values():
            for t in group:
                if id(t) not in self.stands:
                    self.stands[id(t)] = t, self.images[id(t._storage)].tensor(t)
        self.meant = {id(stand): t for t, stand in self.stands.values()}

    def argument(self, x):
        if isinstance(x, _C.TensorBase):
            return self.stands[id(x)][1] if id(x) in self.stands else x
        if isinstance(x, (list, tuple)):
            return type(x)(map(self.argument, x)) if any(isinstance(y, _C.TensorBase) for y in x) else x
        if isinstance(x, Device):
            return CPU
        return x

    def carry_back(self, op: OpOverload, full) -> None:
        """What the kernel wrote goes to the device; a tensor that it gave another size or memory follows."""
        for argument, value in zip(op._schema.arguments, full):
            if argument.is_write:
                for t in _tensors((value,)):
                    if id(t) in self.stands:
                        self._written(t, self.stands[id(t)][1])

    def _written(self, t, stand) -> None:
        image = self.images[id(t._storage)]
        if stand._storage is not image.storage:
            _C.take_place(t, device_memory.upload(stand, t._device))
        else:
            if stand._shape != t._shape or stand._strides != t._strides:
                offset = (stand._offset * t._dtype.itemsize + image.low) // t._dtype.itemsize
                _C.become(t, device_memory.make(stand._shape, stand._strides, t._dtype, t._device, offset, t._counter))
            image.write_back(t)
        t._bump_version()

    def result(self, x, device: Device):
        """A result of the kernel as the caller gets it."""
        if isinstance(x, (list, tuple)):
            made = [self.result(y, device) for y in x]
            return type(x)(*made) if hasattr(x, "_fields") else type(x)(made)
        if not isinstance(x, _C.TensorBase):
            return x
        if id(x) in self.meant:
            return self.meant[id(x)]
        x = resolved(x)
        if device.type == "cpu":
            return x
        if not x._has_data:
            raise NotImplementedError(f"a {x.layout} tensor on device '{device}': only strided tensors live there")
        for t, _ in self.stands.values():
            image = self.images[id(t._storage)]
            if image.storage is x._storage:
                item = x._dtype.itemsize
                return device_memory.make(
                    x._shape, x._strides, x._dtype, device, (x._offset * item + image.low) // item, t._counter
                )
        return device_memory.upload(x, device)


def _carries(full, device: Device, wanted: Device | None) -> bool:
    """Whether a call carries elements from one device to another, which is no detour."""
    if wanted is not None and wanted != device:
        return True
    given = list(_tensors(full))
    return bool(given) and not any(map(device_memory.on_device, given))


def _through_host(op: OpOverload, full, device: Device, wanted: Device | None):
    if wanted is not None and wanted.type not in ("cpu", "cuda"):
        raise RuntimeError(f"tensors of device '{device}' can't go to device '{wanted}'")
    host = _Host(full)
    given = [host.argument(x) for x in full]
    if any(r.is_tensor for r in op._schema.returns) and not _carries(full, device, wanted):
        _HINTS("%s has no kernel on device '%s': it goes through the host", op, device)
        for observer in observers:
            observer(op)
    positional, named = op.split(given)
    if "draws" in op.effects:
        with drawing_on(wanted or device):
            made = op(*positional, **named)
    else:
        made = op(*positional, **named)
    host.carry_back(op, full)
    return host.result(made, wanted or device)
