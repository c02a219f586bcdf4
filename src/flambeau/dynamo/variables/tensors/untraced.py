"""What of tensors isn't captured, and why: attributes and methods that tell of the tensor of one call, or of its elements.

Where data-dependent numbers or sizes may be captured the methods that give them are, as numbers that vary (``shapes.data_symbols``)."""

from __future__ import annotations

from ....base.records import slotted

__all__ = ["GIVES_NUMBERS", "GIVES_SIZES", "NOT_TRACED_ATTRS", "NOT_TRACED_METHODS", "Untraced"]

# What gives symbols where data-dependent numbers, or sizes, may be captured.
GIVES_NUMBERS = frozenset({"item", "tolist", "__int__", "__float__", "__index__"})
GIVES_SIZES = frozenset({"nonzero", "unique", "masked_select"})

# Attributes that depend on more than metadata, or whose use changes autograd state: the graph breaks.
NOT_TRACED_ATTRS = frozenset(
    {
        "__dict__",
        "grad_fn",
        "_version",
        "_cdata",
        # What this package keeps in a tensor: a fake one has other contents.
        *(
            "_array",
            "_flags",
            "_grad",
            "_has_data",
            "_is_leaf",
            "_is_python_dispatch",
            "_keys",
            "_offset",
            "_payload",
            "_writes",
        ),
        "_backward_hooks",
        "data_ptr",
        "_storage",
        "is_leaf",
        "_autograd",
        "_grad_fn",
        "_base",
        "retains_grad",
        # Which result of its node it is, and its part of a dual number.
        "output_nr",
        "_output_nr",
        "_forward",
    }
)


@slotted
class Untraced:
    """Why a method isn't captured."""

    why: str
    of_elements: bool = False
    """Whether it is the elements that the method asks for."""


VALUE, SHAPE, TEXT = (
    Untraced(f"The {what} depends on tensor data.", True) for what in ("value", "shape of the result", "text")
)
RESIZED = Untraced("It changes the size of this very tensor.")
NOT_TRACED_METHODS = {
    "register_hook": Untraced("Hooks belong to the tensor of one call."),
    "register_post_accumulate_grad_hook": Untraced("Hooks belong to the tensor of one call."),
    "retain_grad": Untraced("It changes how autograd treats this very tensor."),
    "_is_view": Untraced("It is a fact about the tensor of one call."),
    "item": VALUE,
    "tolist": VALUE,
    "__bool__": VALUE,
    "__int__": VALUE,
    "__float__": VALUE,
    "data_ptr": Untraced("The address depends on the call."),
    "storage": Untraced("The storage belongs to the tensor of one call."),
    "untyped_storage": Untraced("The storage belongs to the tensor of one call."),
    "__deepcopy__": Untraced("A copy of this very tensor, with its attributes."),
    "share_memory_": Untraced("It changes where the memory lives."),
    "resize_": RESIZED,
    "resize_as_": RESIZED,
    "set_": Untraced("It gives this very tensor other memory."),
    "nonzero": SHAPE,
    "unique": SHAPE,
    "masked_select": SHAPE,
    "__format__": TEXT,
    "__repr__": TEXT,
    "__str__": TEXT,
    "to_sparse": Untraced("Sparse tensors are not captured."),
}
