"""States of optimizers by the names of their parameters, nested or flat."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ... import _C
from ...autograd.grad_mode import no_grad
from ...core.bindings import function
from ...optim import Optimizer
from ._names import like

__all__ = ["fill", "flattened", "named_state", "state_to_load", "unflattened"]

zeros_like = function("zeros_like")


def fill(optimizer: Optimizer) -> None:
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


def named_state(optimizer: Optimizer, names: dict[int, str], give_out: Callable, state: Mapping | None = None) -> dict:
    """{"state": {name: state of the parameter}, "param_groups": groups with names} of the parameters that have names. ``state``: another state dict
    of the optimizer than its own, which knows parameters by number."""
    out: dict = {"state": {}, "param_groups": []}
    groups = optimizer.param_groups if state is None else state["param_groups"]
    number = 0
    for own, group in zip(optimizer.param_groups, groups, strict=True):
        members = []
        for p in own["params"]:
            held = optimizer.state.get(p) if state is None else state["state"].get(number)
            number += 1
            if id(p) not in names:
                continue
            members.append(names[id(p)])
            if held:
                out["state"][members[-1]] = {k: give_out(v) for k, v in held.items()}
        if members:
            out["param_groups"].append({**{k: v for k, v in group.items() if k != "params"}, "params": members})
    return out


def state_to_load(optimizer: Optimizer, names: dict[int, str], given: Mapping) -> dict:
    """The argument of ``optimizer.load_state_dict``, made from the result of ``named_state``. RuntimeError when a group or state is missing."""
    by_name = {name: g for g in given["param_groups"] for name in g["params"]}
    state, groups, number = {}, [], 0
    for group in optimizer.param_groups:
        members = [names[id(p)] for p in group["params"]]
        missing = [n for n in members if n not in by_name]
        if missing:
            raise RuntimeError(f"the optimizer's state dict has no group with {', '.join(missing)}")
        saved = by_name[members[0]] if members else group
        rest = {k: v for k, v in saved.items() if k != "params"}
        groups.append({**rest, "params": list(range(number, number + len(members)))})
        for k, (name, p) in enumerate(zip(members, group["params"]), number):
            if name in given["state"]:
                state[k] = {key: _placed(v, p) for key, v in given["state"][name].items()}
            elif p in optimizer.state:
                raise RuntimeError(f"Missing optimizer state for parameter {name}")
        number += len(members)
    return {"state": state, "param_groups": groups}


def _placed(value, p):
    """A value of a parameter's state, cut as the parameter is where it has its shape."""
    if isinstance(value, _C.TensorBase) and value.shape == p.shape:
        return like(value, p)
    return value


def flattened(state: Mapping) -> dict:
    """{"state.NAME.KEY": value, "param_groups.NAME.KEY": value}. NotImplementedError for values of a state that
    are no tensors, numbers, dictionaries."""
    out: dict = {}

    def visit(name: str, value) -> None:
        if isinstance(value, Mapping):
            for key, part in value.items():
                visit(f"{name}.{key}", part)
        elif isinstance(value, _C.TensorBase | int | float):
            out[name] = value
        else:
            raise NotImplementedError(
                f"Flattening optimizer state_dict only supports tensor, int, float, dict states now. Type is {type(value)}."
            )

    visit("state", state["state"])
    for group in state["param_groups"]:
        for name in group["params"]:
            out.update({f"param_groups.{name}.{k}": v for k, v in group.items() if k != "params"})
    return out


def unflattened(optimizer: Optimizer, names: dict[int, str], given: Mapping) -> dict:
    """What ``flattened`` was given, for the parameters of one optimizer. RuntimeError when parameters of a group have different options."""
    out: dict = {"state": {}, "param_groups": []}
    for group in optimizer.param_groups:
        made: dict = {"params": [names[id(p)] for p in group["params"]]}
        for p, name in zip(group["params"], made["params"]):
            held = {k: _nested(given, f"state.{name}.{k}") for k in optimizer.state.get(p, ())}
            if held:
                out["state"][name] = held
            for k in group.keys() - {"params"}:
                value = given[f"param_groups.{name}.{k}"]
                if made.setdefault(k, value) != value:
                    raise RuntimeError(
                        "All the parameters in the same parameter group should have the same saved param_group value. "
                        f"But {name}.{k} is {value} while other(s) is {made[k]}."
                    )
        out["param_groups"].append(made)
    return out


def _nested(given: Mapping, name: str):
    """The value under a name, a dictionary when names go on below it."""
    if name in given:
        return given[name]
    out: dict = {}
    for key, value in given.items():
        if key.startswith(f"{name}."):
            *path, last = key[len(name) + 1 :].split(".")
            at = out
            for step in path:
                at = at.setdefault(step, {})
            at[last] = value
    if not out:
        raise RuntimeError(f"Missing optimizer state {name}")
    return out
