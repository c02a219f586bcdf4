"""hsplit, vsplit and dsplit."""

from __future__ import annotations

from ...core.declare import composite
from ...core.operator import namespace

aten = namespace("aten")


def _splits(name, least, pick):
    def check(self):
        if self.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension{'s' * (least > 1)}, but got a tensor with {self.ndim} dimensions!"
            )
        return pick(self)

    def into(self, sections):
        d = check(self)
        if sections <= 0 or self.shape[d] % sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {d}, but the size of the dimension {self.shape[d]} is not divisible by the split_size {sections}!"
            )
        return aten.tensor_split.sections(self, sections, d)

    composite(f"{name}.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]")(into)
    composite(f"{name}.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]")(
        lambda self, indices: aten.tensor_split.indices(self, indices, check(self))
    )


_splits("hsplit", 1, lambda t: 0 if t.ndim == 1 else 1)


_splits("vsplit", 2, lambda t: 0)


_splits("dsplit", 3, lambda t: 2)
