"""State dicts of models and optimizers by the parameters' own names, whatever wraps the model, as shards or as whole tensors."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

from ... import _C
from ...autograd.grad_mode import no_grad
from ...modules.module import Module
from ...optim import Optimizer
from .. import objects, world
from ..tensor import DTensor
from ._names import like, named, parameter_names
from ._optimizer_states import fill, flattened, named_state, state_to_load, unflattened

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """``full_state_dict``: whole tensors, with ``cpu_offload`` on rank 0 only; ``ignore_frozen_params``; ``strict`` of loading;
    ``broadcast_from_rank0``: only rank 0 has the (whole) state dict to be loaded; ``keep_submodule_prefixes=False``: names begin in the submodule
    that was asked for; ``flatten_optimizer_state_dict``: the optimizer's state as one dictionary of names."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


class _Incompatible(NamedTuple):
    missing_keys: list
    unexpected_keys: list


def _options(options: StateDictOptions | None) -> StateDictOptions:
    out = options or StateDictOptions()
    if out.broadcast_from_rank0 and not out.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return out


def _given_out(value, options: StateDictOptions):
    """A value as the state dict has it."""
    if not isinstance(value, _C.TensorBase):
        return value
    value = value.detach()
    return value.full_tensor() if options.full_state_dict and isinstance(value, DTensor) else value


def _kept_here(options: StateDictOptions) -> bool:
    """Whether this rank has the whole state dict."""
    first = not world.is_initialized() or world.get_rank() == 0
    return not (options.full_state_dict and options.cpu_offload) or first


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict:
    """Parameters and buffers by name. All ranks call it."""
    options = _options(options)
    found = named(model)
    if submodules is not None:
        inside = {id(t): name for m in submodules for name, (t, _) in named(m).items()}
        kept = {name: row for name, row in found.items() if id(row[0]) in inside}
        short = not options.keep_submodule_prefixes
        found = {inside[id(row[0])] if short else name: row for name, row in kept.items()}
    out = {
        name: _given_out(t, options)
        for name, (t, is_parameter) in found.items()
        if not (options.ignore_frozen_params and is_parameter and not t.requires_grad)
    }
    return out if _kept_here(options) else {}


def set_model_state_dict(
    model: Module, model_state_dict: dict, *, options: StateDictOptions | None = None
) -> _Incompatible:
    """Copy a state dict into the model, whole tensors being cut where the model has shards. The names missing and unexpected; RuntimeError for any
    with ``strict``, and for sizes that differ, before anything is written."""
    options = _options(options)
    own = {
        name: t
        for name, (t, is_parameter) in named(model).items()
        if not (options.ignore_frozen_params and is_parameter and not t.requires_grad)
    }
    given = _from_first(model_state_dict) if options.broadcast_from_rank0 else model_state_dict
    missing, unexpected = [n for n in own if n not in given], [n for n in given if n not in own]
    errors = [f"Missing key(s) in state_dict: {', '.join(missing)}."] if missing and options.strict else []
    errors += [f"Unexpected key(s) in state_dict: {', '.join(unexpected)}."] if unexpected and options.strict else []
    errors += [
        f"size mismatch for {n}: copying a param with shape {tuple(given[n].shape)} from checkpoint, the shape in current model is {tuple(t.shape)}."
        for n, t in own.items()
        if n in given and tuple(given[n].shape) != tuple(t.shape)
    ]
    if errors:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(model).__name__}:\n\t" + "\n\t".join(errors))
    with no_grad():
        for name, t in own.items():
            if name in given:
                t.copy_(like(given[name], t))
    return _Incompatible(missing, unexpected)


def _from_first(state: dict) -> dict:
    """Rank 0's state dict on all ranks."""
    held = [{k: v for k, v in state.items()} if world.get_rank() == 0 else None]
    objects.broadcast_object_list(held, 0)
    return held[0]


# ---- optimizers ----------------------------------------------------------------------------------------------------------


def _optimizers(optimizers) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def get_optimizer_state_dict(
    model: Module, optimizers, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict:
    """{"state": {name: state of the parameter}, "param_groups": groups with names}, of the parameters in ``submodules`` only when they are given.

    An optimizer that has taken no step gets its state made. ``flatten_optimizer_state_dict``: {"state.NAME.KEY": value,
    "param_groups.NAME.KEY": value}."""
    options, names = _options(options), parameter_names(model)
    if submodules is not None:
        inside = {id(p) for m in submodules for p in m.parameters()}
        names = {key: name for key, name in names.items() if key in inside}
    out: dict = {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        fill(optimizer)
        found = named_state(optimizer, names, functools.partial(_given_out, options=options))
        out["state"].update(found["state"])
        out["param_groups"] += found["param_groups"]
    if not _kept_here(options):
        return {}
    return flattened(out) if options.flatten_optimizer_state_dict else out


def set_optimizer_state_dict(
    model: Module, optimizers, optim_state_dict: dict, *, options: StateDictOptions | None = None
) -> None:
    """Load what ``get_optimizer_state_dict`` gave. RuntimeError for a parameter whose state is missing."""
    options, names = _options(options), parameter_names(model)
    given = _from_first(optim_state_dict) if options.broadcast_from_rank0 else optim_state_dict
    for optimizer in _optimizers(optimizers):
        fill(optimizer)
        nested = given if "param_groups" in given else unflattened(optimizer, names, given)
        optimizer.load_state_dict(state_to_load(optimizer, names, nested))


def get_state_dict(
    model: Module, optimizers, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> tuple[dict, dict]:
    """The state dicts of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers,
    *,
    model_state_dict: dict,
    optim_state_dict: dict,
    options: StateDictOptions | None = None,
) -> _Incompatible:
    """Load both."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found
