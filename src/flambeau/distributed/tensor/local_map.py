"""Functions on the parts of DTensors."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ... import _C
from ...base import pytree
from ..device_mesh import DeviceMesh
from ._api import DTensor

__all__ = ["local_map"]


def local_map(
    func: Callable | None = None,
    out_placements=None,
    in_placements=None,
    in_grad_placements=None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable:
    """``func`` called with this rank's parts of the DTensors among its arguments; its tensors become DTensors of ``out_placements``, a placement list
    for each (None for what is no tensor).

    ``in_placements``: what the arguments must have, one for each argument; with ``redistribute_inputs`` they are brought there, without it others are
    a ValueError. ``in_grad_placements``: how the gradients of the parts lie. Without DTensors ``func`` is called as it is. Without ``func`` a
    decorator. AssertionError when the numbers of placements and values differ.
    """
    if func is None:
        return functools.partial(
            local_map,
            out_placements=out_placements,
            in_placements=in_placements,
            in_grad_placements=in_grad_placements,
            device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        flat, spec = pytree.tree_flatten(args)
        if in_placements is not None and len(in_placements) != len(flat):
            raise AssertionError(
                f"in_placements length {len(in_placements)} does not match the number of input args {len(flat)}!"
            )
        mesh, parts = device_mesh, []
        for i, x in enumerate(flat):
            if isinstance(x, DTensor):
                mesh = mesh or x.device_mesh
                x = _part(
                    x,
                    in_placements and in_placements[i],
                    in_grad_placements and in_grad_placements[i],
                    redistribute_inputs,
                )
            elif in_placements is not None and not isinstance(x, _C.TensorBase) and in_placements[i] is not None:
                raise AssertionError(f"Non-Tensor input {x} expects None placements but received {in_placements[i]}!")
            parts.append(x)
        out = func(*pytree.tree_unflatten(parts, spec), **kwargs)
        return _whole(out, mesh, out_placements) if any(isinstance(x, DTensor) for x in flat) else out

    return mapped


def _part(x: DTensor, placements, grad_placements, redistributes: bool):
    if placements is not None and x.placements != tuple(placements):
        if not redistributes:
            raise ValueError(
                f"arg {x} in local_map has a mismatched placements: arg placements is {x.placements} but the input placements is "
                f"{tuple(placements)}! If redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
            )
        x = x.redistribute(placements=placements)
    return x.to_local(grad_placements=grad_placements)


def _whole(out, mesh: DeviceMesh, out_placements):
    """The results as DTensors."""
    flat, spec = pytree.tree_flatten(out)
    placed = out_placements if isinstance(out_placements, tuple) else (out_placements,)
    if len(flat) != len(placed):
        raise AssertionError(
            "local_map requires one PlacementType be provided for each output value, "
            f"received {len(placed)} out_placements but {len(flat)} is expected!"
        )
    made = []
    for x, placements in zip(flat, placed):
        if not isinstance(x, _C.TensorBase) and placements is not None:
            raise AssertionError(f"Non-tensor output {x} expects None placements but received {placements}!")
        made.append(DTensor.from_local(x, mesh, placements) if isinstance(x, _C.TensorBase) else x)
    return pytree.tree_unflatten(made, spec)
