"""NumPy's numbers among the inputs of a graph: where one varies it is an array without dimensions."""

from __future__ import annotations

import numpy as np

from ..config import config
from ..guards.source import Source
from ..numpy import numpy_bridge
from ..variables.base import Variable
from ..variables.numpy.ndarray import NumpyNdarrayVariable
from .inputs import GraphInput

__all__ = ["numpy_number_input"]


def numpy_number_input(output, value: np.number, source: Source) -> Variable | None:
    """A NumPy number that varies, as an array without dimensions; None when it is a constant. Integers are constants where they are sizes or places
    of slices, or decide which way the code goes: a trace that breaks is made again with them known (:class:`Seen`). Narrower ones than int64 are
    not asked for: their arithmetic overflows often, of which NumPy warns and a graph doesn't."""
    path = output.objects.path(source)
    if path in output.shapes.seen.known_integers:
        return None
    known: Variable | None = output.shapes.numbers.get(path)
    if known is not None:
        return known
    if not output.shapes.seen.number(path, value) or output.shapes.dynamic is False or not config.trace_numpy:
        return None
    try:
        tensor = numpy_bridge.from_ndarray(np.asarray(value))
    except TypeError:  # a dtype that tensors don't have
        return None
    if isinstance(value, np.int64):
        output.shapes.numpy_integers.add(path)
    output.guard_numpy_errors()
    output.guard(source, "TYPE_MATCH", type(value))
    fake = output.fake_mode.from_tensor(tensor, static_shapes=True)
    node = output.recorder.placeholder(source)
    node.meta["val"] = node.meta["example_value"] = fake
    output.recorder.inputs.append(GraphInput(node, source, tensor, True, numpy_number=True))
    output.recorder.examples[node] = tensor
    out = output.shapes.numbers[path] = NumpyNdarrayVariable(node, fake)
    out.source = source
    return out
