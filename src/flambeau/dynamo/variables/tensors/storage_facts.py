"""What programs ask of tensors' storages: where a tensor begins in it, and whether other processes can map it.

Tensors of a graph begin where its inputs do at this call: that is guarded, or a symbol where it varies."""

from __future__ import annotations

import operator

from ...graph import tensor_queries
from ...graph.inputs import number_input
from ...guards.source import CallSource
from ...numpy import numpy_bridge
from ..base import Variable
from ..values.constant import ConstantVariable
from ..values.symbolic import arithmetic, wrap_number

__all__ = ["guard_asked", "is_shared", "storage_offset"]


def storage_offset(tx, tensor) -> Variable:
    """``tensor.storage_offset()``."""
    owner = input_in(tx.output, tensor.val._storage)
    if owner is None:
        return wrap_number(tensor.val._offset)
    further = tensor.val._offset - owner.node.meta["val"]._offset
    return arithmetic(tx, operator.add, [beginning(tx.output, owner), wrap_number(further)])


def is_shared(tx, tensor) -> Variable:
    """``tensor.is_shared()``: that of the input in whose memory it lies. What a graph makes lies in this process's own."""
    owner = input_in(tx.output, tensor.val._storage)
    if owner is None:
        return ConstantVariable(False)
    source = asked_of(owner, tensor_queries.Tensor.is_shared)
    shared = owner.example.is_shared()
    tx.output.guard(source, "EQUALS_MATCH", shared)
    return ConstantVariable(shared, source)


def input_in(output, storage):
    """The first input of the graph that lies in this (fake) storage; None for one that the graph makes."""
    return next((i for i in output.recorder.inputs if not i.number and i.node.meta["val"]._storage is storage), None)


def asked_of(owner, method) -> CallSource:
    """What a method of the input's tensor says; an array's tensor is made for it."""
    tensor = CallSource(owner.source, numpy_bridge.tensor_of, "tensor_of") if owner.ndarray else owner.source
    return CallSource(tensor, method, method.__name__)


def beginning(output, owner) -> Variable:
    """The offset that an input has at this call."""
    offset = owner.example._offset
    source = asked_of(owner, tensor_queries.Tensor.storage_offset)
    number = number_input(output, offset, source)
    if number is not None:
        return number
    output.guard(source, "EQUALS_MATCH", offset)
    return ConstantVariable(offset, source)


def guard_asked(output, storages) -> None:
    """An operation that was tried depends on where the tensors in these storages begin: this variant is for these offsets."""
    for storage in storages:
        owner = input_in(output, storage)
        if owner is not None:
            beginning(output, owner).as_constant()
