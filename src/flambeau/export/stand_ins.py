"""Export of fake tensors: while the program is traced, tensors with memory that nobody touches stand for those without any.

The operating system gives such memory on the first write, so a model that is too large for the machine is exported from fake parameters.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _C, nn
from ..base import pytree
from ..base.symint import is_symbolic
from ..core import modes
from ..fake import FakeTensor, FakeTensorMode
from ..nn import Parameter

__all__ = ["StandIns"]


class StandIns:
    """The tensors that stand for fake ones: one for each, a Parameter for a parameter."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._fakes: dict[int, Any] = {}

    def of(self, x: Any) -> Any:
        """What stands for ``x``; itself, where it isn't a fake tensor of known sizes on the CPU or without a device."""
        if not isinstance(x, FakeTensor) or x.device.type not in ("cpu", "meta"):
            return x
        if is_symbolic((*x.shape, *x.stride(), x.storage_offset())):
            return x
        if id(x) not in self._made:
            made = _of_form(x)
            made = (
                Parameter(made, x.requires_grad) if isinstance(x, Parameter) else made.requires_grad_(x.requires_grad)
            )
            self._made[id(x)], self._fakes[id(made)] = made, x
        return self._made[id(x)]

    def back(self, x: Any) -> Any:
        """The fake tensor that ``x`` stands for, or ``x``."""
        return self._fakes.get(id(x), x)

    @contextlib.contextmanager
    def within(self, mod: Any) -> Iterator[None]:
        """In the block they are the parameters and buffers of ``mod``, and fake modes are off."""
        with modes.without(FakeTensorMode):
            replaced = []
            for m in mod.modules() if isinstance(mod, nn.Module) else ():
                for table in (m._parameters, m._buffers):
                    for name, t in table.items():
                        if (made := self.of(t)) is not t:
                            replaced.append((table, name, t))
                            table[name] = made
            try:
                yield
            finally:
                for table, name, t in replaced:
                    table[name] = t

    def put_back(self, gm: nn.Module) -> None:
        """``gm`` holds the fake tensors again."""
        for m in gm.modules():
            for table in (m._parameters, m._buffers, vars(m)):
                for name, t in list(table.items()):
                    if (fake := self.back(t)) is not t:
                        table[name] = fake

    def given(self, tree: Any) -> Any:
        """A container of inputs with what stands for them; the container itself, which the program may write to, where nothing does."""
        if all(self.of(x) is x for x in pytree.tree_leaves(tree)):
            return tree
        return pytree.tree_map(self.of, tree)


def _of_form(x: FakeTensor) -> Any:
    reach = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride())) if x.numel() else 0
    memory = _C.from_array(np.empty(x.storage_offset() + reach, x.dtype.np))
    made = memory.as_strided(tuple(x.shape), tuple(x.stride()), x.storage_offset())
    return (made if x.device.type == "cpu" else made.to("meta")).detach()
