"""Hooks of modules: the registries, their removable handles, and the slow path of a module call that runs them.

A registry is an OrderedDict from handle id to hook, so that hooks run in the order of registration and a handle removes its own.
"""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable

from flambeau.core.tensor import Tensor

PER_MODULE = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)

_ids = itertools.count()
global_forward: OrderedDict[int, Callable] = OrderedDict()
global_forward_pre: OrderedDict[int, Callable] = OrderedDict()
global_backward: OrderedDict[int, Callable] = OrderedDict()
global_backward_pre: OrderedDict[int, Callable] = OrderedDict()
any_global = False  # True while one of the four has an entry: Module.__call__ reads this one name


class RemovableHandle:
    """``remove()`` takes the hook away; also usable in a ``with`` block. Removing twice does nothing."""

    def __init__(self, hooks: OrderedDict, *extra: OrderedDict):
        self.id = next(_ids)
        self._places = [weakref.ref(h) for h in (hooks, *extra)]

    def remove(self) -> None:
        for place in self._places:
            hooks = place()
            if hooks is not None:
                hooks.pop(self.id, None)
        _refresh_global()

    # As in PyTorch's files: the registry, the id, and other registries that note it; None for a registry that is gone.
    def __getstate__(self):
        hooks, *extra = (place() for place in self._places)
        return (hooks, self.id, tuple(extra)) if extra else (hooks, self.id)

    def __setstate__(self, state) -> None:
        global _ids
        hooks, self.id, *extra = state
        registries = (hooks, *(extra[0] if extra and extra[0] else ()))
        self._places = [weakref.ref(OrderedDict() if h is None else h) for h in registries]
        # Hooks to come have other ids than those that were loaded.
        _ids = itertools.count(max(next(_ids), self.id + 1))

    def __enter__(self):
        return self

    def __exit__(self, *exc) -> None:
        self.remove()


class WithoutModule:
    """A hook that isn't given the module."""

    def __init__(self, hook: Callable):
        self.hook = hook

    def __call__(self, module, *args):
        return self.hook(*args)


def add(hooks: OrderedDict, hook: Callable, prepend: bool = False, module=None, marks=()) -> RemovableHandle:
    """Register ``hook``; ``marks`` names registries of ``module`` that note its id too."""
    flagged = [getattr(module, name) for name in marks]
    handle = RemovableHandle(hooks, *flagged)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    for registry in flagged:
        registry[handle.id] = True
    _refresh_global()
    return handle


def _refresh_global() -> None:
    global any_global
    any_global = bool(global_forward or global_forward_pre or global_backward or global_backward_pre)


# Hooks on what modules are given: kind -> registry. ``hook(module, name, value)`` may return another value.
global_registration: dict[str, OrderedDict] = {kind: OrderedDict() for kind in ("buffer", "module", "parameter")}


def registered(kind: str, module, name: str, value):
    """What is registered: ``value``, or what the last hook that returned something made of it."""
    for hook in list(global_registration[kind].values()):
        output = hook(module, name, value)
        if output is not None:
            value = output
    return value


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, name, buffer)`` whenever a module is given a buffer."""
    return add(global_registration["buffer"], hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, name, submodule)`` whenever a module is given a submodule."""
    return add(global_registration["module"], hook)


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, name, param)`` whenever a module is given a parameter."""
    return add(global_registration["parameter"], hook)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, grad_output)`` in the backward of every module, before its gradients are known."""
    return add(global_backward_pre, hook)


def register_module_forward_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, args, output)`` after the forward of every module."""
    return add(global_forward, hook)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, args)`` before the forward of every module."""
    return add(global_forward_pre, hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, grad_input, grad_output)`` in the backward of every module."""
    return add(global_backward, hook)


def call(module, args: tuple, kwargs: dict):
    """``module(*args, **kwargs)`` with every hook in its place: pre-hooks, forward, hooks; backward hooks wrap inputs and outputs."""
    if not module._forward_hooks_always_called:
        return _call(module, args, kwargs, set())
    done: set[int] = set()
    try:
        return _call(module, args, kwargs, done)
    except Exception:
        for key in [k for k in module._forward_hooks_always_called if k not in done and k in module._forward_hooks]:
            try:
                _run_forward_hook(module, key, module._forward_hooks[key], args, kwargs, None)
            except Exception as e:  # the call's own exception is the one to tell
                warnings.warn(
                    f"module forward hook with ``always_call=True`` raised an exception that was silenced as another error was raised "
                    f"in forward: {e}",
                    stacklevel=2,
                )
        raise


def _run_forward_hook(module, key, hook, args, kwargs, output):
    if key in module._forward_hooks_with_kwargs:
        return hook(module, args, kwargs, output)
    return hook(module, args, output)


def _call(module, args: tuple, kwargs: dict, done: set[int]):
    for hook in list(global_forward_pre.values()):
        result = hook(module, args)
        if result is not None:
            args = result if isinstance(result, tuple) else (result,)
    for key, hook in list(module._forward_pre_hooks.items()):
        if key in module._forward_pre_hooks_with_kwargs:
            result = hook(module, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        else:
            result = hook(module, args)
            if result is not None:
                args = result if isinstance(result, tuple) else (result,)

    backward = None
    if module._backward_hooks or module._backward_pre_hooks or global_backward or global_backward_pre:
        backward = _BackwardHooks(module)
        args = backward.wrap_inputs(args)

    output = module.forward(*args, **kwargs)

    for hook in list(global_forward.values()):
        result = hook(module, args, output)
        if result is not None:
            output = result
    for key, hook in list(module._forward_hooks.items()):
        done.add(key)
        result = _run_forward_hook(module, key, hook, args, kwargs, output)
        if result is not None:
            output = result
    return output if backward is None else backward.wrap_outputs(output)


class _BackwardHooks:
    """Puts an identity node before the inputs and one after the outputs of a call, and runs the module's hooks when the gradient
    passes them: the output side first (``grad_output``), then the input side (``grad_input``)."""

    def __init__(self, module):
        self.module = module
        self.hooks = [*global_backward.values(), *module._backward_hooks.values()]
        self.pre_hooks = [*global_backward_pre.values(), *module._backward_pre_hooks.values()]
        self.grad_output = None
        self.n_inputs = 0
        self.input_positions: list[int] = []
        self.watches_inputs = False

    def wrap_inputs(self, args: tuple) -> tuple:
        self.n_inputs = len(args)
        positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        if not positions or not any(args[i].requires_grad for i in positions):
            return args
        self.input_positions, self.watches_inputs = positions, True
        wrapped = _identity()(self._on_input_grads, *[args[i] for i in positions])
        args = list(args)
        for i, t in zip(positions, wrapped):
            args[i] = t
        return tuple(args)

    def wrap_outputs(self, output):
        outputs = output if isinstance(output, tuple) else (output,)
        positions = [i for i, o in enumerate(outputs) if isinstance(o, Tensor)]
        if not positions or not any(outputs[i].requires_grad for i in positions):
            return output
        wrapped = _identity()(self._on_output_grads, *[outputs[i] for i in positions])
        outputs = list(outputs)
        for i, t in zip(positions, wrapped):
            outputs[i] = t
        return tuple(outputs) if isinstance(output, tuple) else outputs[0]

    def _on_output_grads(self, grads: tuple) -> tuple:
        for hook in self.pre_hooks:
            result = hook(self.module, grads)
            if result is not None:
                grads = result if isinstance(result, tuple) else (result,)
        self.grad_output = grads
        if not self.watches_inputs:  # nothing will come back on the input side: the hooks run now, each grad_input None
            for hook in self.hooks:
                result = hook(self.module, (None,) * self.n_inputs, grads)
                if result is not None:
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None."
                    )
        return grads

    def _on_input_grads(self, grads: tuple) -> tuple:
        full = [None] * self.n_inputs
        for i, g in zip(self.input_positions, grads):
            full[i] = g
        full = tuple(full)
        for hook in self.hooks:
            result = hook(self.module, full, self.grad_output)
            if result is not None:
                result = result if isinstance(result, tuple) else (result,)
                if len(result) != len(full):
                    raise RuntimeError(
                        f"Backward hook returned an invalid number of grad_input, got {len(result)}, but expected {len(full)}"
                    )
                full = result
        return tuple(full[i] for i in self.input_positions)


def _identity():
    """An autograd Function that passes tensors on and calls ``on_grads(grads) -> grads`` in the backward pass."""
    from flambeau.autograd.function import Function

    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx, on_grads, *tensors):
            ctx.on_grads = on_grads
            ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
            return tuple(t.view_as(t) for t in tensors)

        @staticmethod
        def backward(ctx, *grads):
            return (None, *ctx.on_grads(grads))

    return BackwardHookFunction.apply
