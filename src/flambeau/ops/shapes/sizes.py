"""Operators that give a tensor's sizes as numbers, and checks on numbers: what a graph with symbolic sizes is written with."""

from __future__ import annotations

import math

from ...core.declare import explicit


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


@explicit("_assert_scalar(Scalar self, str assert_msg) -> ()", has_out=False, tags=("has_side_effects",))
def assert_scalar(self, assert_msg):
    """RuntimeError with the message when the number is 0 or false."""
    if not self:
        raise RuntimeError(assert_msg)


assert_scalar.override("lower", lambda lowering, val, self, assert_msg: lowering.assertion(val, self, assert_msg))
