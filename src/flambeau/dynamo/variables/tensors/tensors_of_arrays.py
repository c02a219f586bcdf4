"""Between tensors and NumPy's arrays: in a graph they are the same memory."""

from __future__ import annotations

from flambeau.base.device import current_device

from ...rules.reflect import module_of
from ..containers.dicts import DictVariable
from ..containers.sequences import SequenceVariable
from ..numpy.ndarray import NumpyNdarrayVariable
from ..values.constant import ConstantVariable
from .tensor import TensorVariable
from .torch_functions import special


@special("holds_arrays")
def _(tx, var, args, kwargs):
    """Asked by transforms, which have another form for NumPy's arrays: they are tensors in a graph."""
    if module_of(var.value) != "flambeau.func.ndarrays":
        return None
    leaves = list(args)
    for v in leaves:
        v = tx.realize(v)
        if isinstance(v, NumpyNdarrayVariable):
            return ConstantVariable(True)
        if isinstance(v, SequenceVariable):
            leaves.extend(v.items(tx))
        elif isinstance(v, DictVariable):
            leaves.extend(x for _, x in v.pairs(tx))
    return ConstantVariable(False)


@special("array_of_tensor")
def _(tx, var, args, kwargs):
    out = NumpyNdarrayVariable(args[0].node, args[0].val)
    out.scalar = False
    return out


@special("tensor_of_array")
def _(tx, var, args, kwargs):
    if not isinstance(args[0], TensorVariable):
        return None
    out = TensorVariable(args[0].node, args[0].val, tx.output.recorder.source_of_node(args[0].node))
    device = args[1].as_constant() if len(args) > 1 else None
    device = device or current_device()
    if device.type != "cuda" or out.val.device == device:
        return out
    # An array that the frame was given after a graph break lies on the host.
    return tx.output.call_in_graph(tx, "call_method", "to", [out, ConstantVariable(device)], {})


@special("from_numpy", "as_tensor", "asarray")
def _(tx, var, args, kwargs):
    a = args[0] if args else None
    if isinstance(a, NumpyNdarrayVariable):
        # A new tensor of the same memory: where the array is a tensor's own (x.numpy()), that tensor is another object, maybe of another class.
        out = tx.output.call_in_graph(tx, "call_method", "detach", [TensorVariable(a.node, a.val)], {})
        if kwargs or len(args) > 1:
            return tx.output.call_in_graph(tx, "call_function", var.value, [out, *args[1:]], kwargs)
        return out
    return None
