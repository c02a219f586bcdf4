"""States of optimizers of sharded models: FullyShardedDataParallel's names over ``distributed.checkpoint``'s."""

from __future__ import annotations

from enum import Enum, auto

from ... import _C
from ...modules.module import Module
from ...optim import Optimizer
from .. import objects, world
from ..checkpoint._names import parameter_names
from ..checkpoint._optimizer_states import named_state, state_to_load
from ..tensor import DTensor

__all__ = [
    "OptimStateKeyType",
    "full_optim_state_dict",
    "optim_state_dict",
    "optim_state_dict_to_load",
    "rekey_optim_state_dict",
    "scatter_full_optim_state_dict",
    "shard_full_optim_state_dict",
    "sharded_optim_state_dict",
]


class OptimStateKeyType(Enum):
    """What a state dict of an optimizer calls parameters."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


def _whole(value):
    return value.detach().full_tensor() if isinstance(value, DTensor) else _copied(value)


def _copied(value):
    return value.detach().clone() if isinstance(value, _C.TensorBase) else value


def optim_state_dict(model: Module, optim: Optimizer, optim_state_dict: dict | None = None, group=None) -> dict:
    """The state of ``optim`` (or ``optim_state_dict``, which its ``state_dict()`` gave) by the parameters' names: whole tensors, or DTensors where
    ``state_dict_type`` says SHARDED_STATE_DICT. All ranks call it; with ``rank0_only`` the others get an empty dictionary."""
    from .fully_sharded_data_parallel import FullyShardedDataParallel

    wrappers = FullyShardedDataParallel.fsdp_modules(model, root_only=True)
    sharded = bool(wrappers) and not wrappers[0].gives_whole_states()
    if sharded:
        return sharded_optim_state_dict(model, optim, group, optim_state_dict)
    only = bool(wrappers) and wrappers[0].optimizer_states_on_first_rank_only()
    return full_optim_state_dict(model, optim, rank0_only=only, group=group, state=optim_state_dict)


def full_optim_state_dict(
    model: Module, optim: Optimizer, optim_input=None, rank0_only: bool = True, group=None, *, state: dict | None = None
) -> dict:
    """Whole tensors by the parameters' names, on rank 0 alone unless ``rank0_only=False``. All ranks call it."""
    found = named_state(optim, parameter_names(model), _whole, state)
    return found if not rank0_only or world.of(group).rank() == 0 else {}


def sharded_optim_state_dict(model: Module, optim: Optimizer, group=None, state: dict | None = None) -> dict:
    """DTensors by the parameters' names."""
    return named_state(optim, parameter_names(model), _copied, state)


def optim_state_dict_to_load(
    model: Module,
    optim: Optimizer,
    optim_state_dict: dict,
    is_named_optimizer: bool = False,
    load_directly: bool = False,
    group=None,
) -> dict:
    """What ``optim.load_state_dict`` takes, out of what ``optim_state_dict`` gave; whole tensors are cut as parameters are.

    ``load_directly``: load it, too. Where only rank 0 had the state (``rank0_only``), ranks with none get it from there. NotImplementedError for
    ``is_named_optimizer``."""
    if is_named_optimizer:
        raise NotImplementedError("optim_state_dict_to_load: is_named_optimizer isn't built")
    from .fully_sharded_data_parallel import FullyShardedDataParallel

    wrappers = FullyShardedDataParallel.fsdp_modules(model, root_only=True)
    if wrappers and wrappers[0].optimizer_states_on_first_rank_only():
        return scatter_full_optim_state_dict(optim_state_dict, model, optim=optim, group=group)
    found = state_to_load(optim, parameter_names(model), optim_state_dict)
    if load_directly:
        optim.load_state_dict(found)
    return found


def _needed(optim: Optimizer | None) -> Optimizer:
    if optim is None:
        raise NotImplementedError("states of optimizers need `optim`; `optim_input` alone isn't built")
    return optim


def shard_full_optim_state_dict(
    full_optim_state_dict: dict, model: Module, optim_input=None, optim: Optimizer | None = None
) -> dict:
    """What ``optim.load_state_dict`` takes, out of a state dict by names that every rank has."""
    return state_to_load(_needed(optim), parameter_names(model), full_optim_state_dict)


def scatter_full_optim_state_dict(
    full_optim_state_dict: dict | None, model: Module, optim_input=None, optim: Optimizer | None = None, group=None
) -> dict:
    """As ``shard_full_optim_state_dict``, of a state dict that rank 0 alone has. All ranks call it."""
    held = [full_optim_state_dict if world.of(group).rank() == 0 else None]
    objects.broadcast_object_list(held, group=group, group_src=0)
    return shard_full_optim_state_dict(held[0], model, optim_input, optim)


def rekey_optim_state_dict(
    optim_state_dict: dict,
    optim_state_key_type: OptimStateKeyType,
    model: Module,
    optim_input=None,
    optim: Optimizer | None = None,
) -> dict:
    """A state dict with parameters called by name, or by their number in the optimizer. ValueError for a parameter without a name there."""
    names = parameter_names(model)
    order = [names[id(p)] for g in _needed(optim).param_groups for p in g["params"]]
    number = {name: i for i, name in enumerate(order)}

    def key(k):
        if (optim_state_key_type is OptimStateKeyType.PARAM_NAME) == isinstance(k, str):
            return k
        if isinstance(k, str) and k not in number:
            raise ValueError(f"the optimizer has no parameter {k}")
        return number[k] if isinstance(k, str) else order[k]

    groups = [{**g, "params": sorted(map(key, g["params"]))} for g in optim_state_dict["param_groups"]]
    return {"state": {key(k): v for k, v in optim_state_dict["state"].items()}, "param_groups": groups}
