"""``torch.jit.save`` of what came from an archive: its code as it was, its data as it is, in the format that PyTorch reads."""

from __future__ import annotations

import enum
import io
import pickle
import struct
import sys
from collections.abc import Callable

from ... import _C
from ...base.device import Device
from ...core.quantized import PackedWeight, described, parts
from ...core.rebuild import codes_of
from ...modules.module import Module
from ...serialization.archive import ArchiveWriter
from ...serialization.writer import Pickler
from . import packed
from .types import Type

__all__ = ["save"]

_LISTS = {"int": "build_intlist", "Tensor": "build_tensorlist", "float": "build_doublelist", "bool": "build_boollist"}


class Writer(Pickler):
    """The opcodes that PyTorch's own unpickler knows; containers carry their types."""

    write: Callable
    get: Callable
    memoize: Callable
    memo: dict

    def __init__(self, file, program):
        super().__init__(file, 2)
        self.program = program

    def typed(self, value, kind: Type) -> None:
        """Write a value of this type."""
        name, args = kind
        if name == "Optional":
            kind = args[0]
            return self.save(None) if value is None else self.typed(value, kind)
        if name in ("Any", "Union", "number"):
            kind = self.program.type_of(value)
            name, args = kind
        if isinstance(value, _C.TensorBase):
            return self.tensor(value)
        known = self.memo.get(id(value))
        if known is not None and not isinstance(value, int | float | bool | None.__class__):
            return self.write(self.get(known[0]))
        if isinstance(value, Module) or getattr(type(value), "_archived", None) is not None:
            return self.object(value)
        if isinstance(value, PackedWeight):
            return self.packed(value)
        if isinstance(value, enum.Enum):
            self.named(name.removeprefix("enum "))
            self.save(value.value)
            return self.write(pickle.REDUCE)
        if isinstance(value, list | dict):
            return self.container(value, kind)
        if isinstance(value, tuple):
            kinds = args if name == "Tuple" else self.program.elements(None, kind)
            self.write(pickle.MARK)
            for x, k in zip(value, kinds):
                self.typed(x, k)
            self.write(pickle.TUPLE)
            return self.memoize(value)
        if type(value) is int and not -(1 << 31) <= value < 1 << 31:
            return self.write(pickle.LONG1 + b"\x08" + struct.pack("<q", value))
        if value is None or type(value) in (bool, int, float, str, complex, Device):
            return self.save(value)
        raise RuntimeError(f"torch.jit.save: a {type(value).__name__} can't be written into a TorchScript archive")

    def named(self, path: str) -> None:
        module, _, name = path.rpartition(".")
        self.write(pickle.GLOBAL + module.encode() + b"\n" + name.encode() + b"\n")

    def tensor(self, t) -> None:
        """A tensor, a Parameter too, as a plain one that knows whether it wants a gradient."""
        if t.is_quantized:
            return self.quantized(t)
        if t.layout.__repr__() != "torch.strided":
            raise RuntimeError("torch.jit.save: sparse tensors in a TorchScript archive aren't built")
        self.named("torch._utils._rebuild_tensor_v2")
        self.write(pickle.MARK)
        self.save(t.detach().storage())
        for part in (t.storage_offset(), tuple(t.size()), tuple(t.stride()), bool(t.requires_grad)):
            self.save(part)
        self.named("collections.OrderedDict")
        self.write(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)

    def quantized(self, t) -> None:
        """A quantised tensor: the storage of its codes, the place in it, and how they are read."""
        self.named("torch._utils._rebuild_qtensor")
        self.write(pickle.MARK)
        for part in codes_of(t):
            self.save(part)
        record = parts(t)
        self.write(pickle.MARK)
        self.save(record.scheme)
        for part in described(record)[1:]:
            self.tensor(part) if isinstance(part, _C.TensorBase) else self.save(part)
        self.write(pickle.TUPLE)
        self.save(False)
        self.named("collections.OrderedDict")
        self.write(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)

    def packed(self, value: PackedWeight) -> None:
        """An object of a class of C++."""
        name = packed.class_of(value)
        held = packed.CLASSES[name]
        self.named(name)
        self.write(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
        self.memoize(value)
        self.typed(held.state(value), held.kind)
        self.write(pickle.BUILD)

    def container(self, value, kind: Type) -> None:
        name, args = kind
        simple = _LISTS.get(args[0].name) if name == "List" else None
        self.named(f"torch.jit._pickle.{simple or 'restore_type_tag'}")
        self.write(pickle.MARK)
        if isinstance(value, list):
            self.write(pickle.EMPTY_LIST + pickle.MARK)
            for x in value:
                self.typed(x, args[0])
            self.write(pickle.APPENDS)
        else:
            self.write(pickle.EMPTY_DICT + pickle.MARK)
            for k, x in value.items():
                self.typed(k, args[0])
                self.typed(x, args[1])
            self.write(pickle.SETITEMS)
        if not simple:
            self.save(str(kind).replace("enum ", ""))
        self.write(pickle.TUPLE + pickle.REDUCE)
        self.memoize(value)

    def object(self, value) -> None:
        """A module or an object of a class of the archive. RuntimeError where it has become something that its class doesn't declare."""
        cls = getattr(type(value), "_archived", None)
        if cls is None or self.program.classes.get(cls.qualified) is not cls:
            raise RuntimeError(
                f"torch.jit.save: a {type(value).__name__} that isn't of this archive can't be written into it"
            )
        self.named(cls.qualified)
        self.write(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
        self.memoize(value)
        if "__getstate__" in cls.methods:
            self.typed(getattr(value, self.program.raw("__getstate__"))(), cls.methods["__getstate__"].gives)
            return self.write(pickle.BUILD)
        if isinstance(value, Module):
            for kind in ("_parameters", "_buffers", "_modules"):
                more = [n for n in getattr(value, kind) if n not in cls.attributes]
                if more:
                    raise RuntimeError(
                        f"torch.jit.save: {cls.qualified} doesn't declare {more[0]!r}, which was added to the module"
                    )
        self.write(pickle.EMPTY_DICT + pickle.MARK)
        for name, kind in cls.attributes.items():
            if not hasattr(value, name):
                raise RuntimeError(
                    f"torch.jit.save: the module has no {name!r} any more, which {cls.qualified} declares"
                )
            self.save(name)
            self.typed(getattr(value, name), kind)
        return self.write(pickle.SETITEMS + pickle.BUILD)


def _pickled(program, value, kind: Type | None, out: ArchiveWriter, name: str) -> None:
    data = io.BytesIO()
    writer = Writer(data, program)
    writer.write(pickle.PROTO + b"\x02")
    writer.typed(value, kind if kind is not None else program.type_of(value))
    writer.write(pickle.STOP)
    for key, held, _ in writer.contents():
        out.record(f"{name}/{key}", held)
    out.record(f"{name}.pkl", data.getbuffer())


def save(module, f, extra_files: dict | None = None) -> None:
    """Write the archive to a path or binary file; ``extra_files``: {name: text or bytes}."""
    program = module._program
    out = ArchiveWriter(f)
    try:
        for name, content in (extra_files or {}).items():
            out.record(f"extra/{name}", content.encode() if isinstance(content, str) else content)
        _pickled(program, module, Type(module._archived.qualified), out, "data")
        for path, text in program.kept.items():
            out.record(path, text)
        _pickled(program, tuple(program.constants), None, out, "constants")
        out.record("byteorder", sys.byteorder.encode())
        out.close(program.version)
    except BaseException:
        out.abandon()
        raise
