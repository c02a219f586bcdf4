"""Nested tensors of the strided layout: tensors of any sizes over one buffer. They are a list with the functions of a tensor.

:class:`~.tensor.StridedNestedTensor` holds the buffer, which carries the autograd history, and where each part lies in it. What a function does is
a rule by its name (functions.py, shapes.py, products.py): of the buffer at once where the order of elements doesn't matter, else part by part."""

from . import products as products
from . import shapes as shapes
from .construct import (
    _nested_from_padded,
    _nested_from_padded_and_nested_example,
    _nested_tensor_from_mask,
    _nested_tensor_from_mask_left_aligned,
    as_strided_nested,
    narrow,
    strided_nested,
)
from .tensor import StridedNestedTensor

__all__ = [
    "StridedNestedTensor",
    "_nested_from_padded",
    "_nested_from_padded_and_nested_example",
    "_nested_tensor_from_mask",
    "_nested_tensor_from_mask_left_aligned",
    "as_strided_nested",
    "narrow",
    "strided_nested",
]
