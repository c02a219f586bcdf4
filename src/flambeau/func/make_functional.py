"""functorch's older way to modules as functions: ``make_functional`` and what belongs to it. :func:`functional_call` is the newer way.

Source: the documentation of functorch 0.2. A functional module is ``fmodel(params, *args, **kwargs)``, with buffers
``fmodel(params, buffers, *args, **kwargs)``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from ..core.operator import namespace
from ..modules.module import Module
from .modules import functional_call

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functional_init",
    "functional_init_with_buffers",
    "make_functional",
    "make_functional_with_buffers",
]

aten = namespace("aten")


class FunctionalModule(Module):
    """``fmodel(params, *args, **kwargs)`` runs the module with these parameters, in the order of ``param_names``."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]):
        super().__init__()
        # No submodule: its own parameters stand for nothing.
        object.__setattr__(self, "stateless_model", stateless_model)
        self.param_names = param_names

    def forward(self, params: Sequence, *args, **kwargs):
        return _called(self.stateless_model, self.param_names, params, args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """``fmodel(params, buffers, *args, **kwargs)`` runs the module with these parameters and buffers."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]):
        super().__init__()
        object.__setattr__(self, "stateless_model", stateless_model)
        self.param_names, self.buffer_names = param_names, buffer_names

    def forward(self, params: Sequence, buffers: Sequence, *args, **kwargs):
        return _called(self.stateless_model, (*self.param_names, *self.buffer_names), (*params, *buffers), args, kwargs)


def _called(model, names, values, args, kwargs):
    if len(names) != len(values):
        raise RuntimeError(f"the functional module takes {len(names)} tensors, got {len(values)}")
    return functional_call(model, dict(zip(names, values)), args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple]:
    """``(fmodel, params)`` of a module without buffers. RuntimeError for one that has some.

    ``disable_autograd_tracking``: the parameters that are returned don't require gradients.
    """
    if len(list(model.buffers())) > 0:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    fmodel, params, _ = make_functional_with_buffers(model, disable_autograd_tracking)
    return FunctionalModule(fmodel.stateless_model, fmodel.param_names), params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple, tuple]:
    """``(fmodel, params, buffers)``: the module as a function of its parameters and buffers."""
    names, params = _split(model.named_parameters(remove_duplicate=False))
    buffer_names, buffers = _split(model.named_buffers(remove_duplicate=False))
    if disable_autograd_tracking:
        params = tuple(p.detach() for p in params)
    return FunctionalModuleWithBuffers(copy.deepcopy(model), names, buffer_names), params, buffers


def _split(named):
    pairs = list(named)
    return tuple(name for name, _ in pairs), tuple(value for _, value in pairs)


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[FunctionalModuleWithBuffers, tuple, tuple]:
    """One function for several modules of a class, and their parameters and buffers stacked in a new dimension 0.

    RuntimeError when there is no module, when they are not all in training (or evaluation), or of different classes.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or all(not m.training for m in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if not all(type(m) is type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, params, buffers = zip(*[make_functional_with_buffers(m) for m in models])
    return functions[0], _stacked(params), _stacked(buffers)


def _stacked(rows) -> tuple:
    return tuple(aten.stack.default(list(column), 0) for column in zip(*rows))


def functional_init(model_class: type, ensemble_shape: Sequence[int] = (), device="cpu") -> Callable:
    """A function that makes modules of ``model_class`` from their arguments: ``(weights, fn, names)``.

    ``ensemble_shape`` of one number: so many modules, their weights stacked and detached. ValueError for more numbers.
    """

    def wrapped(*args, **kwargs):
        weights, buffers, fn, names, _ = functional_init_with_buffers(model_class, ensemble_shape, device)(
            *args, **kwargs
        )
        if buffers:
            raise RuntimeError("functional_init: the module has buffers; use functional_init_with_buffers")
        return weights, lambda weights, inputs: fn(weights, (), inputs), names

    return wrapped


def functional_init_with_buffers(model_class: type, ensemble_shape: Sequence[int] = (), device="cpu") -> Callable:
    """As :func:`functional_init`, for modules with buffers: ``(weights, buffers, fn, weight_names, buffer_names)``.
    The function is called ``fn(weights, buffers, inputs)``."""

    def wrapped(*args, **kwargs):
        if len(ensemble_shape) >= 2:
            raise ValueError("NYI: ensemble_shape with more than 1 element")
        if ensemble_shape and ensemble_shape[0] <= 0:
            raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
        made = [
            make_functional_with_buffers(model_class(*args, **kwargs).to(device))
            for _ in range(ensemble_shape[0] if ensemble_shape else 1)
        ]
        fmodel, weights, buffers = made[0]
        if ensemble_shape:
            weights = tuple(w.detach() for w in _stacked([m[1] for m in made]))
            buffers = tuple(b.detach() for b in _stacked([m[2] for m in made]))

        def fn(weights, buffers, inputs):
            return fmodel(weights, buffers, *inputs)

        return weights, buffers, fn, fmodel.param_names, fmodel.buffer_names

    return wrapped
