"""Array views, element-wise expressions, and what stores them: small loops inside the loop.

A view is elements in memory (:mod:`.views`), a subscript of one another (:mod:`.subscripts`). An expression is evaluated where it is used up, element
by element (:mod:`.elementwise`), by an assignment (:mod:`.stores`) or in an array of the loop's own (:mod:`.new_arrays`).
"""

from .elementwise import OnElements, as_dtype, as_expression, broadcast, elementwise, filled, indices_of, part, where
from .new_arrays import given_sizes, materialise, temporary
from .stores import assign, assign_numbers, assign_where, fill, may_hold, store_element
from .subscripts import checked_index, subscript
from .views import address, count, dense_strides, described, load, operand, same_place, size

__all__ = [
    "OnElements", "address", "as_dtype", "as_expression", "assign", "assign_numbers", "assign_where", "broadcast", "checked_index", "count",
    "dense_strides", "described", "elementwise", "fill", "filled", "given_sizes", "indices_of", "load", "materialise", "may_hold", "operand", "part",
    "same_place", "size", "store_element", "subscript", "temporary", "where",
]  # fmt: skip
