"""State dicts of models and optimizers by the parameters' own names, whatever wraps the model, as shards or as whole tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ... import _C
from ...autograd.grad_mode import no_grad
from ...core.bindings import function
from ...modules.module import Module
from ...optim import Optimizer
from .. import objects, world
from ..tensor import DTensor, distribute_tensor

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

zeros_like = function("zeros_like")

# What wrappers put into names.
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module")


@dataclass
class StateDictOptions:
    """``full_state_dict``: whole tensors, with ``cpu_offload`` on rank 0 only; ``ignore_frozen_params``; ``strict`` of loading;
    ``broadcast_from_rank0``: only rank 0 has the (whole) state dict to be loaded."""

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
    if out.flatten_optimizer_state_dict:
        raise NotImplementedError("StateDictOptions: flatten_optimizer_state_dict isn't built")
    if out.broadcast_from_rank0 and not out.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return out


def _named(model: Module) -> dict[str, tuple[object, bool]]:
    """{own name: (tensor, whether it is a parameter)} of parameters and persistent buffers, also those that share a tensor."""
    found: dict = {}

    def visit(m: Module, prefix: str) -> None:
        for name, p in m._parameters.items():
            if p is not None:
                found[prefix + name] = p, True
        for name, b in m._buffers.items():
            if b is not None and name not in m._non_persistent_buffers_set:
                found[prefix + name] = b, False
        for name, child in m._modules.items():
            if child is not None:
                wraps = name in _WRAPPERS or _is_parallel(m)
                visit(child, prefix if wraps else f"{prefix}{name}.")

    visit(model, "")
    return found


def _is_parallel(m: Module) -> bool:
    return type(m).__name__ in ("DistributedDataParallel", "DataParallel") and list(m._modules) == ["module"]


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
    named = _named(model)
    if submodules is not None:
        inside = {id(t) for m in submodules for t, _ in _named(m).values()}
        named = {name: row for name, row in named.items() if id(row[0]) in inside}
    out = {
        name: _given_out(t, options)
        for name, (t, is_parameter) in named.items()
        if not (options.ignore_frozen_params and is_parameter and not t.requires_grad)
    }
    return out if _kept_here(options) else {}


def set_model_state_dict(
    model: Module, model_state_dict: dict, *, options: StateDictOptions | None = None
) -> _Incompatible:
    """Copy a state dict into the model, whole tensors being cut where the model has shards. The names missing and unexpected; RuntimeError for any
    with ``strict``, and for sizes that differ, before anything is written."""
    options = _options(options)
    named = {
        name: t
        for name, (t, is_parameter) in _named(model).items()
        if not (options.ignore_frozen_params and is_parameter and not t.requires_grad)
    }
    given = _from_first(model_state_dict) if options.broadcast_from_rank0 else model_state_dict
    missing, unexpected = [n for n in named if n not in given], [n for n in given if n not in named]
    errors = [f"Missing key(s) in state_dict: {', '.join(missing)}."] if missing and options.strict else []
    errors += [f"Unexpected key(s) in state_dict: {', '.join(unexpected)}."] if unexpected and options.strict else []
    errors += [
        f"size mismatch for {n}: copying a param with shape {tuple(given[n].shape)} from checkpoint, the shape in current model is {tuple(t.shape)}."
        for n, t in named.items()
        if n in given and tuple(given[n].shape) != tuple(t.shape)
    ]
    if errors:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(model).__name__}:\n\t" + "\n\t".join(errors))
    with no_grad():
        for name, t in named.items():
            if name in given:
                t.copy_(_like(given[name], t))
    return _Incompatible(missing, unexpected)


def _like(value, t):
    """A whole tensor cut as ``t`` is."""
    if isinstance(t, DTensor) and not isinstance(value, DTensor):
        return distribute_tensor(value.detach(), t.device_mesh, t.placements, src_data_rank=None)
    return value.full_tensor() if isinstance(value, DTensor) and not isinstance(t, DTensor) else value


def _from_first(state: dict) -> dict:
    """Rank 0's state dict on all ranks."""
    held = [{k: v for k, v in state.items()} if world.get_rank() == 0 else None]
    objects.broadcast_object_list(held, 0)
    return held[0]


# ---- optimizers ----------------------------------------------------------------------------------------------------------


def _optimizers(optimizers) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _names_of(model: Module) -> dict[int, str]:
    return {id(t): name for name, (t, is_parameter) in reversed(_named(model).items()) if is_parameter}


def _fill(optimizer: Optimizer) -> None:
    """Make the state of an optimizer that has taken no step: one with gradients and a rate of zero."""
    if optimizer.state:
        return
    params = [p for g in optimizer.param_groups for p in g["params"] if p.requires_grad]
    if any(p.grad is not None for p in params):
        raise RuntimeError(
            "the optimizer has no state yet and there are gradients: take the state dict before the first backward, or after step()"
        )
    rates = [g.get("lr") for g in optimizer.param_groups]
    values = [p.detach().clone() for p in params]
    for p in params:
        p.grad = zeros_like(p)
    for g in optimizer.param_groups:
        if "lr" in g:
            g["lr"] = zeros_like(g["lr"]) if isinstance(g["lr"], _C.TensorBase) else 0.0
    optimizer.step()
    for g, lr in zip(optimizer.param_groups, rates):
        if "lr" in g:
            g["lr"] = lr
    with no_grad():
        for p, value in zip(params, values):
            p.grad = None
            p.copy_(value)
    for state in optimizer.state.values():
        if isinstance(state.get("step"), _C.TensorBase):
            state["step"].zero_()


def get_optimizer_state_dict(
    model: Module, optimizers, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict:
    """{"state": {name: state of the parameter}, "param_groups": groups with names}. An optimizer that has taken no step gets its state made."""
    if submodules is not None:
        raise NotImplementedError("get_optimizer_state_dict: submodules isn't built")
    options, names = _options(options), _names_of(model)
    out: dict = {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        _fill(optimizer)
        for group in optimizer.param_groups:
            members = [names[id(p)] for p in group["params"]]
            out["param_groups"].append({**{k: v for k, v in group.items() if k != "params"}, "params": members})
            for name, p in zip(members, group["params"]):
                if p in optimizer.state:
                    out["state"][name] = {k: _given_out(v, options) for k, v in optimizer.state[p].items()}
    return out if _kept_here(options) else {}


def set_optimizer_state_dict(
    model: Module, optimizers, optim_state_dict: dict, *, options: StateDictOptions | None = None
) -> None:
    """Load what ``get_optimizer_state_dict`` gave. RuntimeError for a parameter whose state is missing."""
    options, names = _options(options), _names_of(model)
    given = _from_first(optim_state_dict) if options.broadcast_from_rank0 else optim_state_dict
    by_name = {name: g for g in given["param_groups"] for name in g["params"]}
    for optimizer in _optimizers(optimizers):
        _fill(optimizer)
        state, groups, number = {}, [], 0
        for group in optimizer.param_groups:
            members = [names[id(p)] for p in group["params"]]
            missing = [n for n in members if n not in by_name]
            if missing:
                raise RuntimeError(f"the optimizer's state dict has no group with {', '.join(missing)}")
            saved = by_name[members[0]] if members else group
            options_ = {k: v for k, v in saved.items() if k != "params"}
            groups.append({**options_, "params": list(range(number, number + len(members)))})
            for k, (name, p) in enumerate(zip(members, group["params"]), number):
                if name in given["state"]:
                    state[k] = {key: _placed(v, p) for key, v in given["state"][name].items()}
                elif p in optimizer.state:
                    raise RuntimeError(f"Missing optimizer state for parameter {name}")
            number += len(members)
        optimizer.load_state_dict({"state": state, "param_groups": groups})


def _placed(value, p):
    """A value of a parameter's state, cut as the parameter is where it has its shape."""
    if isinstance(value, _C.TensorBase) and value.shape == p.shape:
        return _like(value, p)
    return value


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
