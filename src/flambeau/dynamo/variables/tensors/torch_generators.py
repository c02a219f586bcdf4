"""``torch.Generator``: in the graph its state as a tensor, from which operators draw, so that one graph serves all generators of a device."""

from __future__ import annotations

from flambeau.core.generator import Generator, engine_of

from ...guards.source import CallSource, GetAttrSource
from ...tracing.current_frame import current
from ...tracing.wrapping import exactly, pin
from .torch_functions import TorchObjectVariable

__all__ = ["TorchGeneratorVariable"]


class TorchGeneratorVariable(TorchObjectVariable):
    """A generator that existed before the call. Which one it is, is guarded where more than draws is asked of it."""

    engine = None  # its input of the graph, once there are draws
    stays = False  # whether the graph holds the object

    def stay(self, tx):
        """From now on the graph holds the object itself: a function of the program's may do anything with it."""
        pin(tx, self.source, "ID_MATCH", self.value)
        self.stays = True

    def as_proxy(self):
        if self.stays:
            return self.value
        if self.engine is None:
            source = CallSource(self.source, engine_of, "engine")
            self.engine = current().output.add_input(engine_of(self.value), source, ndarray=False)
        return self.engine.as_proxy()

    def truth(self, tx):
        return True

    def getattr(self, tx, name):
        if name != "device":
            pin(tx, self.source, "ID_MATCH", self.value)
        return super().getattr(tx, name)


@exactly(Generator)
def _(tx, value, source):
    if value.device.type != "cpu":
        return None
    pin(tx, source, "TYPE_MATCH", Generator)
    tx.output.guard(GetAttrSource(source, "device"), "EQUALS_MATCH", value.device)
    return TorchGeneratorVariable(value, source)
