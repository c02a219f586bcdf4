"""The pickles of an archive: the restricted unpickler, which also makes objects of the archive's own classes and lists with a type."""

from __future__ import annotations

import pickle
from typing import Any

from ... import _C
from ...core.quantized import PackedWeight
from ...core.rebuild import _rebuild_tensor_v2
from ...modules.module import Module
from ...modules.parameter import Parameter
from ...serialization.unpickler import Restricted
from . import modules, packed
from .types import Type

__all__ = ["Reader"]


class _Named:
    """A global of the pickle: a class of the archive, a class of C++, or a maker of typed lists."""

    def __init__(self, name: str, cls=None, of_packed: packed.PackedClass | None = None):
        self.name, self.cls, self.of_packed = name, cls, of_packed


_LISTS = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")


class Reader(Restricted):
    """``program`` has the classes; afterwards ``tie()`` makes one object of tensors that are one parameter."""

    dispatch = Restricted.dispatch.copy()
    program: Any = None

    def load(self):
        """The object. UnpicklingError, too, for packed weights without a state."""
        self.stateless: dict[int, tuple[PackedWeight, str]] = {}
        made = super().load()
        for _, name in self.stateless.values():
            raise pickle.UnpicklingError(f"an object of {name} has no state")
        return made

    def find_class(self, module, name):
        full = f"{module}.{name}"
        if module == "torch.jit._pickle":
            if name in (*_LISTS, "restore_type_tag"):
                return _Named(name)
        elif module == "__torch__" or module.startswith("__torch__."):
            if full in packed.CLASSES:
                return _Named(full, of_packed=packed.CLASSES[full])
            if full.startswith("__torch__.torch.classes."):
                raise NotImplementedError(
                    f"torch.jit.load: the archive holds an object of {full}, a class of C++ that flambeau doesn't have"
                )
            cls = self.program.find(full)
            if cls is None:
                raise RuntimeError(f"torch.jit.load: the archive has no class {full}, which its data names")
            return _Named(full, cls)
        return super().find_class(module, name)

    def load_reduce(self):
        fn = self.stack[-2]
        if isinstance(fn, _Named):
            args = self.stack.pop()
            self.stack[-1] = self._made(fn, args)
            return
        args = self.stack[-1]
        super().load_reduce()
        if fn is _rebuild_tensor_v2:
            self.stack[-1] = self._tied(args, self.stack[-1])

    def _made(self, fn: _Named, args):
        if fn.name == "restore_type_tag" and type(args) is tuple and len(args) == 2:
            return args[0]
        if fn.name in _LISTS and type(args) is tuple and len(args) == 1 and type(args[0]) is list:
            return args[0]
        if fn.cls is not None and fn.cls.base == "Enum":
            try:
                return fn.cls.python(args)
            except ValueError as error:
                raise RuntimeError(f"torch.jit.load: {error}") from None
        raise pickle.UnpicklingError(f"a call of {fn.name} that TorchScript doesn't write")

    def _tied(self, args, made):
        """One tensor for one place of one storage: a list of weights holds what the parameters are."""
        seen = self.__dict__.setdefault("_seen", {})
        storage, offset, size, stride, grad = args[:5]
        key = id(made.untyped_storage()), made.dtype, offset, tuple(size), tuple(stride), grad
        return seen.setdefault(key, (made, storage))[0]

    def load_newobj(self):
        cls = self.stack[-2]
        if not isinstance(cls, _Named):
            return super().load_newobj()
        args = self.stack.pop()
        if cls.of_packed is not None and args == ():
            self.stack[-1] = made = packed.new(cls.of_packed)
            self.stateless[id(made)] = made, cls.name
            return None
        if cls.cls is None or cls.cls.base not in (None, "Module") or args != ():
            raise pickle.UnpicklingError(f"a new {cls.name} that TorchScript doesn't write")
        self.stack[-1] = modules.new(cls.cls)
        return None

    def load_build(self):
        made = self.stack[-2]
        if isinstance(made, PackedWeight):
            if id(made) not in self.stateless:
                raise pickle.UnpicklingError("a packed weight gets a state twice")
            _, name = self.stateless.pop(id(made))
            return packed.fill(name, made, self.stack.pop())
        cls = getattr(type(made), "_archived", None)
        if cls is None:
            return super().load_build()
        state = self.stack.pop()
        if "__setstate__" in cls.methods:
            self.program.compile()
            getattr(made, self.program.raw("__setstate__"))(state)
            if isinstance(made, Module):
                modules.fill(cls, made, {k: made.__dict__.pop(k) for k in cls.attributes if k in made.__dict__})
            return None
        if type(state) is not dict or not all(type(k) is str for k in state):
            raise pickle.UnpicklingError(f"the state of a {cls.qualified} is no dict of names")
        unknown = [k for k in state if k not in cls.attributes]
        if unknown:
            raise RuntimeError(
                f"torch.jit.load: {cls.where()} doesn't declare the attribute {unknown[0]}, which its data has"
            )
        missing = [k for k in cls.attributes if k not in state and cls.attributes[k].name != "NoneType"]
        if missing:
            raise RuntimeError(
                f"torch.jit.load: {cls.where()} declares the attribute {missing[0]}, which its data doesn't have"
            )
        modules.fill(
            cls, made, {k: self._typed(v, cls.attributes[k], f"{cls.qualified}.{k}") for k, v in state.items()}
        )
        return None

    def _typed(self, value, kind: Type, where: str):
        """The value as the declared type has it: named tuples are plain ones in the pickle. RuntimeError for one of another type."""
        name, args = kind
        if name == "Optional":
            return None if value is None else self._typed(value, args[0], where)
        if name == "List" and type(value) is list:
            for i, x in enumerate(value):
                value[i] = self._typed(x, args[0], where)
            return value
        if name == "Dict" and type(value) is dict:
            for k, x in value.items():
                value[k] = self._typed(x, args[1], where)
            return value
        if name == "Tuple" and type(value) is tuple and len(value) == len(args):
            return tuple(self._typed(x, a, where) for x, a in zip(value, args))
        if name == "Tensor" and isinstance(value, _C.TensorBase):
            return value
        if name in ("int", "float", "bool", "str", "complex") and type(value).__name__ == name:
            return value
        if name == "float" and type(value) is int:
            return float(value)
        if name == "NoneType" and value is None:
            return None
        if name in ("Any", "Union", "number", "Device", "Layout", "Generator", "Function"):
            return value
        if name in packed.CLASSES and isinstance(value, packed.CLASSES[name].python):
            return value
        cls = self.program.find(name.removeprefix("enum ")) if "__torch__" in name else None
        if cls is not None and cls.base == "NamedTuple" and type(value) is tuple and len(value) == len(cls.attributes):
            return cls.python(*(self._typed(x, a, where) for x, a in zip(value, cls.attributes.values())))
        if cls is not None and (cls.python is None or isinstance(value, cls.python)):
            return self._implementing(value, cls, where)
        raise RuntimeError(
            f"torch.jit.load: {where} is declared {str(kind).replace('enum ', '')}, and its data is a {type(value).__name__}"
        )

    def _implementing(self, value, cls, where: str):
        """An object in the place of an interface: it must have the methods, with the same types."""
        if cls.base in ("ModuleInterface", "Interface"):
            own = getattr(type(value), "_archived", None)
            for name, method in cls.methods.items():
                found = own.methods.get(name) if own is not None else None
                if (
                    found is None
                    or [k for _, k in found.takes] != [k for _, k in method.takes]
                    or found.gives != method.gives
                ):
                    raise RuntimeError(
                        f"torch.jit.load: {where} doesn't have the method {name} of the interface {cls.qualified}"
                    )
        return value


for _code, _name in ((pickle.REDUCE, "reduce"), (pickle.NEWOBJ, "newobj"), (pickle.BUILD, "build")):
    Reader.dispatch[_code[0]] = getattr(Reader, f"load_{_name}")


def tie(root) -> None:
    """Tensors that modules declare as parameters become Parameters, wherever they stand."""
    made: dict[int, Parameter] = {}
    if not isinstance(root, Module):
        return
    for module in root.modules():
        for name, value in module._parameters.items():
            if value is not None and not isinstance(value, Parameter):
                made.setdefault(id(value), Parameter(value.detach(), value.requires_grad))
                module._parameters[name] = made[id(value)]
    if made:
        done: set[int] = set()
        for module in root.modules():
            for name, value in module.__dict__.items():
                if name not in ("_parameters", "_buffers", "_modules"):
                    module.__dict__[name] = _with(value, made, done)


def _with(value, made: dict[int, Parameter], done: set[int]):
    """The value, with Parameters for the tensors that they were made of."""
    if id(value) in made and isinstance(value, _C.TensorBase):
        return made[id(value)]
    if type(value) is tuple:
        return tuple(_with(x, made, done) for x in value)
    if type(value) in (list, dict) and id(value) not in done:
        done.add(id(value))
        for k, x in enumerate(value) if type(value) is list else value.items():
            value[k] = _with(x, made, done)
    return value
