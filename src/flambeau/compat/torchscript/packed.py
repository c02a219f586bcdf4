"""Objects of the classes of C++ that archives hold: weights packed for quantised layers.

They are read from the states that PyTorch writes, of all its versions, and written in the form of today's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import _C
from ...base import dtypes
from ...base.records import replace
from ...core.quantized import PACKED, PackedWeight, is_quantized, make, parts
from ...ops.affine.embeddings import EmbeddingPackedParams
from ...ops.affine.packed import CellParams, ConvPackedParams, LinearPackedParams
from ..root import public
from .types import BOOL, INT, TENSOR, Type, parse

__all__ = ["CLASSES", "Attribute", "PackedClass", "class_of", "fill", "new"]

_PREFIX = "__torch__.torch.classes."
_LINEAR, _CONV2D, _CONV3D, _EMBEDDING, _CELL = (
    f"{_PREFIX}{name}"
    for name in (
        "quantized.LinearPackedParamsBase",
        "quantized.Conv2dPackedParamsBase",
        "quantized.Conv3dPackedParamsBase",
        "quantized.EmbeddingPackedParamsBase",
        "rnn.CellParamsBase",
    )
)
_WEIGHT_AND_BIAS, _INTS = parse("Tuple[Tensor, Optional[Tensor]]"), parse("List[int]")


class _Unreadable(Exception):
    """The state is none of those that the class writes."""


class Attribute(NamedTuple):
    """A method of the class without arguments: what it gives of a record, and of which type."""

    get: Callable[[Any], Any]
    gives: Type


class PackedClass(NamedTuple):
    """A class of C++: the record that stands for its objects; ``fields(state)`` makes the record's fields, ``state(record)`` what is written, of the
    type ``kind``."""

    python: type[PackedWeight]
    fields: Callable[[Any], tuple]
    state: Callable[[Any], tuple]
    kind: Type
    methods: dict[str, Attribute]


def _check(condition) -> None:
    if not condition:
        raise _Unreadable


def _is_bias(x) -> bool:
    return x is None or isinstance(x, _C.TensorBase) and x._dtype.is_floating_point


def _is_list(x, kind: type) -> bool:
    return type(x) is list and all(type(v) is kind for v in x)


# ---- linear layers -----------------------------------------------------------------------------------------------------------


def _linear_fields(state) -> tuple:
    _check(type(state) is tuple and len(state) == 2 and _is_bias(state[1]))
    weight = state[0]
    _check(isinstance(weight, _C.TensorBase) and weight._ndim == 2)
    _check(weight._dtype in (dtypes.qint8, dtypes.float32))
    return state


# ---- convolutions ------------------------------------------------------------------------------------------------------------


def _conv_parts(state) -> tuple[list[int], Any, Any]:
    """(configuration, weight, bias) of a state of any version. The configuration: the number of dimensions, then by dimension strides, paddings,
    dilations and output paddings, then groups, and whether it is transposed."""
    match state:
        case ("2", [_C.TensorBase() as config, weight], [*bias]) if len(bias) < 2:
            _check(config._dtype is dtypes.int16 and config._ndim == 1)
            return config._array.tolist(), weight, bias[0] if bias else None
        case (3, [*config], [None, weight, bias]) if _is_list(config, int):
            return config, weight, bias
        case (_C.TensorBase() as weight, bias, [*stride], [*padding], [*dilation], groups):
            n = len(stride)
            sizes = [int(t.reshape([-1])[0]) for t in (*stride, *padding, *dilation)]
            return [n, *sizes, *[0] * n, int(groups.reshape([-1])[0]), 0], weight, bias
    raise _Unreadable


def _conv_fields(state) -> tuple:
    config, weight, bias = _conv_parts(state)
    n = config[0] if config else 0
    _check(n in (2, 3) and len(config) == 4 * n + 3 and config[-1] in (0, 1) and config[-2] > 0)
    _check(isinstance(weight, _C.TensorBase) and weight._dtype is dtypes.qint8 and weight._ndim == n + 2)
    _check(_is_bias(bias))
    stride, padding, dilation, output_padding = (config[1 + i * n : 1 + (i + 1) * n] for i in range(4))
    _check(min(*stride, *dilation) > 0 and min(*padding, *output_padding) >= 0)
    return weight, bias, stride, padding, output_padding, dilation, config[-2], bool(config[-1])


def _conv_state(p: ConvPackedParams) -> tuple:
    weight, sizes = p.weight, [p.stride, p.padding, p.dilation, p.output_padding]
    if weight._ndim == 3:
        w = parts(weight)
        weight = make(replace(w, codes=w.codes.unsqueeze(2)))
        sizes = [[first, *v] for first, v in zip((1, 0, 1, 0), sizes)]
    config = [weight._ndim - 2, *(k for v in sizes for k in v), p.groups, int(p.transpose)]
    return "2", [public("tensor")(config, dtype=dtypes.int16), weight], [p.bias]


# ---- embeddings and recurrent layers -----------------------------------------------------------------------------------------


def _embedding_fields(state) -> tuple:
    match state:
        case (1, [_C.TensorBase() as weight], [], [8 | 4 as bits]):
            p = parts(weight) if is_quantized(weight) else None
            _check(p is not None and weight._ndim == 2 and p.axis == 0 and p.zero_point._dtype is dtypes.float32)
            _check(weight._dtype is (PACKED if bits == 4 else dtypes.quint8))
            return (weight,)
    raise _Unreadable


def _bits(p: EmbeddingPackedParams) -> int:
    return 4 if p.weight._dtype is PACKED else 8


def _cell_fields(state) -> tuple:
    match state:
        case ("quantized_dynamic", [_, _] as biases, [], [0 | 1 as reduced], [_, _] as weights):
            _check(all(map(_is_bias, biases)))
        case ("quantized_fp16", [] as biases, [], [], [_, _] as weights):
            reduced = 0
        case (str() as name, *_):
            raise NotImplementedError(f"torch.jit.load: {_CELL}: cells of the kind {name!r} aren't built")
        case _:
            raise _Unreadable
    _check(_is_list(weights, LinearPackedParams))
    return *weights, tuple(biases), bool(reduced)


def _cell_state(p: CellParams) -> tuple:
    weights = [p.input, p.hidden]
    if is_quantized(p.input.weight):
        return "quantized_dynamic", list(p.biases), [], [int(p.reduce_range)], weights
    return "quantized_fp16", [], [], [], weights


# ---- the table ---------------------------------------------------------------------------------------------------------------

_UNPACK = Attribute(lambda p: (p.weight, p.bias), _WEIGHT_AND_BIAS)
_BIAS = Attribute(lambda p: p.bias, parse("Optional[Tensor]"))


def _convolution() -> PackedClass:
    sizes = {
        name: Attribute(lambda p, _name=name: list(getattr(p, _name)), _INTS)
        for name in ("stride", "padding", "output_padding", "dilation")
    }
    methods = {
        "unpack": _UNPACK,
        "weight": Attribute(lambda p: p.weight, TENSOR),
        "bias": _BIAS,
        "groups": Attribute(lambda p: p.groups, INT),
        "transpose": Attribute(lambda p: p.transpose, BOOL),
        **sizes,
    }
    kind = parse("Tuple[str, List[Tensor], List[Optional[Tensor]]]")
    return PackedClass(ConvPackedParams, _conv_fields, _conv_state, kind, methods)


CLASSES: dict[str, PackedClass] = {
    _LINEAR: PackedClass(
        LinearPackedParams,
        _linear_fields,
        lambda p: (p.weight, p.bias),
        _WEIGHT_AND_BIAS,
        {"unpack": _UNPACK, "bias": _BIAS},
    ),
    _CONV2D: _convolution(),
    _CONV3D: _convolution(),
    _EMBEDDING: PackedClass(
        EmbeddingPackedParams,
        _embedding_fields,
        lambda p: (1, [p.weight], [], [_bits(p)]),
        parse("Tuple[int, List[Tensor], List[float], List[int]]"),
        {
            "unpack": Attribute(lambda p: p.weight, TENSOR),
            "bit_rate": Attribute(_bits, INT),
            "version": Attribute(lambda p: 1, INT),
        },
    ),
    _CELL: PackedClass(
        CellParams,
        _cell_fields,
        _cell_state,
        parse(f"Tuple[str, List[Tensor], List[float], List[int], List[{_LINEAR}]]"),
        {},
    ),
}


def class_of(record: PackedWeight) -> str:
    """The qualified name of the class whose object a record stands for."""
    if isinstance(record, ConvPackedParams):
        return _CONV3D if record.weight._ndim == 5 else _CONV2D
    return next(name for name, held in CLASSES.items() if held.python is type(record))


def new(held: PackedClass) -> PackedWeight:
    """A record without fields."""
    return held.python.__new__(held.python)


def fill(qualified: str, record: PackedWeight, state) -> None:
    """Give a record of the class the fields that a state says. RuntimeError for a state that isn't the class's."""
    try:
        fields = CLASSES[qualified].fields(state)
    except (_Unreadable, AttributeError, TypeError, IndexError):
        raise RuntimeError(
            f"torch.jit.load: the state of an object of {qualified} is none that PyTorch writes"
        ) from None
    type(record).__init__(record, *fields)
