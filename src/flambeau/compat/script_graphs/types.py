"""Types of the values of a graph: TorchScript's static types, and tensors of which dtype, sizes, strides and device may be known."""

from __future__ import annotations

import dataclasses

from ...base.device import Device
from ...base.dtypes import DType
from ...core.tensor import Tensor
from ..torchscript.types import Type, schema_text

__all__ = ["TENSOR", "ScriptType", "TensorType", "of_type", "of_value"]

# c10's names of dtypes.
_SCALAR_TYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int", "int16": "Short",
    "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble", "complex32": "ComplexHalf",
    "uint16": "UInt16", "uint32": "UInt32", "uint64": "UInt64", "qint8": "QInt8", "quint8": "QUInt8", "qint32": "QInt32",
    "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2", "float8_e4m3fnuz": "Float8_e4m3fnuz", "float8_e5m2fnuz": "Float8_e5m2fnuz",
}  # fmt: skip
_KINDS = {
    "Tensor": "TensorType", "int": "IntType", "float": "FloatType", "bool": "BoolType", "str": "StringType", "complex": "ComplexType",
    "number": "NumberType", "NoneType": "NoneType", "Device": "DeviceObjType", "Any": "AnyType", "List": "ListType", "Tuple": "TupleType",
    "Dict": "DictType", "Optional": "OptionalType", "Union": "UnionType", "Future": "FutureType", "Function": "FunctionType",
    "Generator": "GeneratorType", "Stream": "StreamObjType",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ScriptType:
    """``List[int]`` is ``ScriptType("List", (ScriptType("int"),))``; of a class the name is the qualified one, which begins with ``__torch__``."""

    base: str
    args: tuple[ScriptType, ...] = ()

    def kind(self) -> str:
        """The name of PyTorch's class of such types: ``"IntType"``, ``"ClassType"``."""
        return "EnumType" if self.base.startswith("enum ") else _KINDS.get(self.base, "ClassType")

    def name(self) -> str:
        """The name of a class without its modules; of other types their own."""
        return self.base.rpartition(".")[2]

    def qualified_name(self) -> str:
        """The name with its modules."""
        return self.base

    @property
    def annotation_str(self) -> str:
        """The type as an annotation: ``List[int]``."""
        return str(self)

    def containedTypes(self) -> list[ScriptType]:
        """The types that this one is made of."""
        return list(self.args)

    def elements(self) -> list[ScriptType]:
        """The types of a tuple's elements."""
        return list(self._of("Tuple"))

    def getElementType(self) -> ScriptType:
        """The type of the elements of a list, or of what is optional."""
        return self._of("List", "Optional", "Future")[0]

    def getKeyType(self) -> ScriptType:
        """The type of a dict's keys."""
        return self._of("Dict")[0]

    def getValueType(self) -> ScriptType:
        """The type of a dict's values."""
        return self._of("Dict")[1]

    def _of(self, *bases: str) -> tuple[ScriptType, ...]:
        if self.base not in bases:
            raise RuntimeError(f"{self} is no {' and no '.join(bases)}")
        return self.args

    def isSubtypeOf(self, other: ScriptType) -> bool:
        """Whether a value of this type may stand where ``other`` is wanted."""
        if self == other or other.base == "Any":
            return True
        if other.base == "Optional":
            return self.base == "NoneType" or self.isSubtypeOf(other.args[0])
        return self.base == other.base == "Tensor" and not isinstance(other, TensorType)

    def text(self) -> str:
        """The type as the text of graphs has it: ``int[]``."""
        return schema_text(self._plain(True))

    def _plain(self, whole: bool) -> Type:
        return Type(self.base, tuple(a._plain(whole) for a in self.args))

    def __str__(self) -> str:
        return str(self._plain(False))

    def _known(self, what: str):
        if self.base != "Tensor":
            raise RuntimeError(f"{what} is asked of a {self}, which is no tensor's type")

    def sizes(self) -> list[int] | None:
        """The sizes of a tensor, None where they aren't known. RuntimeError for other types."""
        return self._known("sizes()")

    def strides(self) -> list[int] | None:
        """The strides of a tensor, None where they aren't known."""
        return self._known("strides()")

    def dim(self) -> int | None:
        """The count of a tensor's dimensions, None where it isn't known."""
        return self._known("dim()")

    def dtype(self) -> DType | None:
        """The dtype of a tensor, None where it isn't known."""
        return self._known("dtype()")

    def scalarType(self) -> str | None:
        """The dtype by c10's name ("Float"), None where it isn't known."""
        return self._known("scalarType()")

    def device(self) -> Device | None:
        """The device of a tensor, None where it isn't known."""
        return self._known("device()")

    def requires_grad(self) -> bool:
        """Whether a tensor may have a gradient: True where it isn't known."""
        self._known("requires_grad()")
        return True


TENSOR = ScriptType("Tensor")


@dataclasses.dataclass(frozen=True)
class TensorType(ScriptType):
    """A tensor of which dtype, sizes, strides and device are known; ``needs_grad``: True, False, or None for unknown."""

    base: str = "Tensor"
    of: DType | None = None
    shape: tuple = ()
    step: tuple = ()
    on: Device | None = None
    needs_grad: bool | None = None

    def sizes(self):
        return list(self.shape)

    varyingSizes = sizes

    def strides(self):
        return list(self.step)

    def dim(self):
        return len(self.shape)

    def dtype(self):
        return self.of

    def scalarType(self):
        return _SCALAR_TYPES.get(self.of.name, self.of.name)

    def device(self):
        return self.on

    def requires_grad(self):
        return self.needs_grad is not False

    def _plain(self, whole: bool) -> Type:
        if not whole:
            return Type("Tensor")
        parts = [str(n) for n in self.shape]
        if self.shape:
            parts.append(f"strides=[{', '.join(map(str, self.step))}]")
        if self.needs_grad is not None:
            parts.append(f"requires_grad={int(self.needs_grad)}")
        return Type(f"{self.scalarType()}({', '.join([*parts, f'device={self.on}'])})")


def of_type(t: Type) -> ScriptType:
    """The type of a value that TorchScript's code has with this static type."""
    return ScriptType(t.name, tuple(map(of_type, t.args)))


def of_value(value, needs_grad: bool | None = None) -> ScriptType:
    """The type of a value: of a tensor with all that is known of it."""
    if isinstance(value, Tensor):
        if value.is_sparse or value.is_nested or value.is_quantized:
            return TENSOR
        return TensorType(
            of=value.dtype, shape=tuple(value.shape), step=tuple(value.stride()), on=value.device, needs_grad=needs_grad
        )
    if isinstance(value, (list, tuple)):
        parts = tuple(map(of_value, value))
        if isinstance(value, tuple):
            return ScriptType("Tuple", parts)
        kinds = {p if p.base != "Tensor" else TENSOR for p in parts}
        return ScriptType("List", (kinds.pop() if len(kinds) == 1 else ScriptType("Any") if kinds else TENSOR,))
    if isinstance(value, dict):
        items = of_value(list(value.keys())).args + of_value(list(value.values())).args
        return ScriptType("Dict", items)
    names = {type(None): "NoneType", bool: "bool", int: "int", float: "float", complex: "complex", str: "str"}
    return ScriptType("Device" if isinstance(value, Device) else names.get(type(value), "Any"))
