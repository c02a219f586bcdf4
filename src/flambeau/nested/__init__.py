"""``torch.nested``: tensors of sequences that differ in length, in the layouts ``torch.jagged`` and ``torch.strided``. See docs/guide/nested.md."""

from . import products as products
from . import reductions as reductions
from . import shapes as shapes
from .construct import (
    as_nested_tensor,
    masked_select,
    narrow,
    nested_tensor,
    nested_tensor_from_jagged,
    to_padded_tensor,
)

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
