"""Operators that give a tensor's sizes as numbers, and checks on numbers: what a graph with symbolic sizes is written with."""

from __future__ import annotations

import math

from ...base.memory_format import contiguous_format, has_format
from ...base.shape_checks import check
from ...base.shapes import is_contiguous
from ...core.declare import explicit
from ...core.definition import TensorMeta
from ...core.tensor import strided


def _reads(schema, read, of_array):
    @explicit(schema, meta=read, eager=of_array, has_out=False)
    def fn(self, *rest):
        return read(self, *rest)

    def of_an_example(call, self, *rest):
        return read(self, *rest)

    of_an_example.on_examples = True
    fn.override("batch", of_an_example)
    return fn


_reads("sym_size.int(Tensor self, int dim) -> SymInt", lambda t, d: t.shape[d], lambda a, d: a.shape[d])
_reads(
    "sym_stride.int(Tensor self, int dim) -> SymInt",
    lambda t, d: t.stride()[d],
    lambda a, d: a.strides[d] // a.itemsize,
)
_reads("sym_numel(Tensor self) -> SymInt", lambda t: math.prod(t.shape), lambda a: a.size)
# What a subclass that answers for its own metadata is handed (core/own_metadata.py).
_reads("sym_size(Tensor self) -> SymInt[]", lambda t: list(t.shape), lambda a: list(a.shape))
_reads(
    "sym_stride(Tensor self) -> SymInt[]",
    lambda t: list(t.stride()),
    lambda a: [s // a.itemsize for s in a.strides],
)
_reads("dim(Tensor self) -> int", lambda t: t.ndim, lambda a: a.ndim)
_reads("numel(Tensor self) -> int", lambda t: math.prod(t.shape), lambda a: a.size)


def _contiguous(t, memory_format=contiguous_format):
    strides = t.strides if isinstance(t, TensorMeta) else t.stride()
    if memory_format.rank is None:
        return is_contiguous(t.shape, strides)
    return has_format(t.shape, strides, memory_format)


for _arguments in ("(Tensor self)", ".memory_format(Tensor self, MemoryFormat memory_format)"):
    explicit(f"is_contiguous{_arguments} -> bool", meta=_contiguous, has_out=False)(_contiguous)
explicit("prim::device(Tensor a) -> Device", meta=lambda t: t.device, has_out=False)(lambda t: t.device)
explicit("prim::layout(Tensor a) -> Layout", meta=lambda t: strided, has_out=False)(lambda t: t.layout)


@explicit("_assert_scalar(Scalar self, str assert_msg) -> ()", has_out=False, tags=("has_side_effects",))
def assert_scalar(self, assert_msg):
    """RuntimeError with the message when the number is 0 or false. What is symbolic is true from here on."""
    check(self, assert_msg)


assert_scalar.override("lower", lambda lowering, val, self, assert_msg: lowering.assertion(val, self, assert_msg))
