"""Hooks of modules: the registries, their removable handles, and the slow path of a module call that runs them.

A registry is an OrderedDict from handle id to hook, so that hooks run in the order of registration and a handle removes its own.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict
from collections.abc import Callable

from flambeau import _C
from flambeau.autograd.grad_mode import is_grad_enabled
from flambeau.autograd.handles import RemovableHandle
from flambeau.autograd.hook_results import check_result
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

global_forward: OrderedDict[int, Callable] = OrderedDict()
global_forward_pre: OrderedDict[int, Callable] = OrderedDict()
global_backward: OrderedDict[int, Callable] = OrderedDict()
global_backward_pre: OrderedDict[int, Callable] = OrderedDict()
global_forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
global_forward_always_called: OrderedDict[int, bool] = OrderedDict()
any_global = False  # True while there is a global hook: Module.__call__ reads this one name

# PyTorch's names of the global registries, attributes of ``torch.nn.modules.module``.
GLOBAL_NAMES = {
    "_global_backward_hooks": global_backward,
    "_global_backward_pre_hooks": global_backward_pre,
    "_global_forward_hooks": global_forward,
    "_global_forward_hooks_always_called": global_forward_always_called,
    "_global_forward_hooks_with_kwargs": global_forward_with_kwargs,
    "_global_forward_pre_hooks": global_forward_pre,
}


def replace_global(name: str, hooks) -> None:
    """The entries of a global registry become those of ``hooks``."""
    registry = GLOBAL_NAMES[name]
    entries = dict(hooks)
    registry.clear()
    registry.update(entries)
    _refresh_global()


class WithoutModule:
    """A hook that isn't given the module."""

    def __init__(self, hook: Callable):
        self.hook = hook

    def __call__(self, module, *args):
        return self.hook(*args)


class InPlace:
    """A hook for a state dict that returns nothing."""

    def __init__(self, hook: Callable):
        self.hook = hook

    def __call__(self, module, *args):
        if self.hook(module, *args) is not None:
            raise RuntimeError("state_dict post-hook must return None")


def add(hooks: OrderedDict, hook: Callable, prepend: bool = False, flagged=()) -> RemovableHandle:
    """Register ``hook``; the registries ``flagged`` note its id too."""
    handle = RemovableHandle(hooks, *flagged)
    for registry in flagged:
        registry[handle.id] = True
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    _refresh_global()
    return handle


def _refresh_global() -> None:
    global any_global
    any_global = bool(global_forward or global_forward_pre or global_backward or global_backward_pre)


RemovableHandle.removed.append(_refresh_global)

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


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """``hook(module, args, output)`` (or ``hook(module, args, kwargs, output)``) after the forward of every module. With ``always_call`` also when
    forward or a hook raises; what it returns then doesn't count."""
    flagged = [global_forward_with_kwargs] * with_kwargs + [global_forward_always_called] * always_call
    return add(global_forward, hook, flagged=flagged)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, args)`` before the forward of every module."""
    return add(global_forward_pre, hook)


class AroundForward:
    """Hooks before and after the forward of every module, for the duration of a block. They come and go in native code: no interrupt leaves one
    of them behind. Arguments are those of :func:`register_module_forward_pre_hook` and :func:`register_module_forward_hook`."""

    def __init__(self, before: Callable, after: Callable, *, with_kwargs: bool = False, always_call: bool = False):
        self._first, last = RemovableHandle(global_forward_pre).id, RemovableHandle(global_forward).id
        flagged = [global_forward_with_kwargs] * with_kwargs + [global_forward_always_called] * always_call
        rows = [(registry, last, True) for registry in flagged]
        self._hooks = _C.Replaced([*rows, (global_forward_pre, self._first, before), (global_forward, last, after)])

    def __enter__(self) -> None:
        self._hooks.__enter__()
        _refresh_global()

    def __exit__(self, *exc) -> None:
        """Does nothing where an interrupt came before they were registered."""
        if self._first in global_forward_pre:
            self._hooks.__exit__(*exc)
        _refresh_global()


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, grad_input, grad_output)`` in the backward of every module. RuntimeError beside one of :func:`register_module_backward_hook`."""
    _use_global_backward(True)
    return add(global_backward, hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """``hook(module, grad_input, grad_output)`` at the node that made the output of every module: ``grad_input`` is that node's. RuntimeError
    beside one of :func:`register_module_full_backward_hook`."""
    _use_global_backward(False)
    return add(global_backward, hook)


_global_is_full: bool | None = None  # by which name global backward hooks were registered


def _use_global_backward(full: bool) -> None:
    global _global_is_full
    if global_backward and _global_is_full is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them."
        )
    _global_is_full = full


def call(module, args: tuple, kwargs: dict):
    """``module(*args, **kwargs)`` with every hook in its place: pre-hooks, forward, hooks; backward hooks wrap inputs and outputs."""
    if not module._forward_hooks_always_called and not global_forward_always_called:
        return _call(module, args, kwargs, set())
    done: set[int] = set()
    try:
        return _call(module, args, kwargs, done)
    except Exception:
        for always, hooks in (
            (global_forward_always_called, global_forward),
            (module._forward_hooks_always_called, module._forward_hooks),
        ):
            for key in [k for k in always if k not in done and k in hooks]:
                try:
                    with_kwargs = key in module._forward_hooks_with_kwargs or key in global_forward_with_kwargs
                    _run_forward_hook(module, hooks[key], with_kwargs, args, kwargs, None)
                except Exception as e:  # the call's own exception is the one to tell
                    kind = "global module forward hook" if hooks is global_forward else "module forward hook"
                    warnings.warn(
                        f"{kind} with ``always_call=True`` raised an exception that was silenced as another error was raised in forward: {e}",
                        stacklevel=2,
                    )
        raise


def _run_forward_hook(module, hook, with_kwargs: bool, args, kwargs, output):
    return hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)


def _snapshot(registries, flags) -> list[tuple[int, Callable, bool]]:
    """(id, hook, whether its id is among ``flags``) of registries now. What is removed later, by a hook or by another thread, still runs, as it was
    registered."""
    # Another thread may add or remove one between these lines: a flag is there before its hook, and goes after it.
    flagged = {key for registry in flags for key in list(registry)}
    hooks = [(key, hook) for registry in registries for key, hook in list(registry.items())]
    flagged.update(key for registry in flags for key in list(registry))
    return [(key, hook, key in flagged) for key, hook in hooks]


def _call(module, args: tuple, kwargs: dict, done: set[int]):
    for hook in list(global_forward_pre.values()):
        result = hook(module, args)
        if result is not None:
            args = result if isinstance(result, tuple) else (result,)
    for _, hook, with_kwargs in _snapshot((module._forward_pre_hooks,), (module._forward_pre_hooks_with_kwargs,)):
        if with_kwargs:
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

    full, regular = _backward_hooks(module)
    pre = [*global_backward_pre.values(), *module._backward_pre_hooks.values()]
    backward = None
    if full or pre:
        backward = _BackwardHooks(module, full, pre)
        args = backward.wrap_inputs(args)

    output = module.forward(*args, **kwargs)

    for key, hook, with_kwargs in _snapshot(
        (global_forward, module._forward_hooks), (global_forward_with_kwargs, module._forward_hooks_with_kwargs)
    ):
        done.add(key)
        result = _run_forward_hook(module, hook, with_kwargs, args, kwargs, output)
        if result is not None:
            output = result
    if backward is not None:
        output = backward.wrap_outputs(output)
    if regular:
        _hook_node(module, regular, args, output)
    return output


def _backward_hooks(module) -> tuple[list, list]:
    """(full hooks, those of the old kind) of a call."""
    full, regular = [], []
    (regular if _global_is_full is False else full).extend(global_backward.values())
    (regular if module._is_full_backward_hook is False else full).extend(module._backward_hooks.values())
    return full, regular


def _hook_node(module, hooks: list, args: tuple, output) -> None:
    """Hooks of the old kind see the gradients of the one node that made the (first) output."""
    first = output
    while not isinstance(first, Tensor):
        if isinstance(first, dict):
            first = next((v for v in first.values() if isinstance(v, Tensor)), None)
        elif isinstance(first, (tuple, list)) and first:
            first = first[0]
        if first is None or not isinstance(first, (Tensor, dict, tuple, list)) or first in ((), []):
            return
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(functools.partial(hook, module))
    _warn_of_old_kind(args, output, node)


def _warn_of_old_kind(args: tuple, output, node) -> None:
    """FutureWarning where the one node doesn't see the module's inputs or outputs."""
    if isinstance(output, Tensor):
        output = (output,)
    if not (isinstance(output, tuple) and all(isinstance(r, Tensor) for r in output)):
        text = "Using non-full backward hooks on a Module that does not return a single Tensor or a tuple of Tensors is deprecated"
    elif not (isinstance(args, tuple) and all(isinstance(i, Tensor) for i in args)):
        text = "Using non-full backward hooks on a Module that does not take as input a single Tensor or a tuple of Tensors is deprecated"
    elif len({r.grad_fn for r in output if r.grad_fn is not None}) > 1:
        text = "Using a non-full backward hook when outputs are generated by different autograd Nodes is deprecated"
    else:
        inputs = {i.grad_fn for i in args if i.grad_fn is not None}
        before = {n for n, _ in node.next_functions}
        if inputs == before:
            return
        text = "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated"
    warnings.warn(
        f"{text} and will be removed in future versions. This hook will be missing some grad_input. Please use "
        "register_full_backward_hook to get the documented behavior.",
        FutureWarning,
        stacklevel=4,
    )


class _BackwardHooks:
    """Puts an identity node before the inputs and one after the outputs of a call, and runs the module's hooks when the gradient
    passes them: the output side first (``grad_output``), then the input side (``grad_input``)."""

    def __init__(self, module, hooks: list, pre_hooks: list):
        self.module = module
        self.hooks, self.pre_hooks = hooks, pre_hooks
        self.grad_output = None
        self.n_inputs = self.n_outputs = 0
        self.input_positions: list[int] = []
        self.output_positions: list[int] = []
        self.watches_inputs = False

    def wrap_inputs(self, args: tuple) -> tuple:
        self.n_inputs = len(args)
        wrapped, positions = _wrapped(args, self._on_input_grads)
        if positions:
            self.input_positions, self.watches_inputs = positions, True
        return wrapped

    def wrap_outputs(self, output):
        outputs = output if isinstance(output, tuple) else (output,)
        self.n_outputs = len(outputs)
        wrapped, self.output_positions = _wrapped(outputs, self._on_output_grads)
        return wrapped if isinstance(output, tuple) else wrapped[0]

    def _on_output_grads(self, grads: tuple) -> tuple:
        self.grad_output = _spread(grads, self.output_positions, self.n_outputs)
        for hook in self.pre_hooks:
            result = hook(self.module, self.grad_output)
            if result is not None:
                result = result if isinstance(result, tuple) else (result,)
                if len(result) != self.n_outputs:
                    raise RuntimeError(
                        f"Backward pre hook returned an invalid number of grad_output, got {len(result)}, but expected {self.n_outputs}"
                    )
                _check(hook, self.grad_output, result)
                self.grad_output = result
        passed_on = tuple(self.grad_output[i] for i in self.output_positions)
        if not self.watches_inputs:  # nothing will come back on the input side: the hooks run now, each grad_input None
            for hook in self.hooks:
                result = hook(self.module, (None,) * self.n_inputs, self.grad_output)
                if result is not None and not (isinstance(result, tuple) and all(g is None for g in result)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None for all gradients."
                    )
        return passed_on

    def _on_input_grads(self, grads: tuple) -> tuple:
        # A second derivative passes the inputs alone: what the hooks see is the module's own backward pass.
        if self.grad_output is None:
            return grads
        grad_output, self.grad_output = self.grad_output, None
        full = _spread(grads, self.input_positions, self.n_inputs)
        for hook in self.hooks:
            result = hook(self.module, full, grad_output)
            if result is not None:
                result = result if isinstance(result, tuple) else (result,)
                if len(result) != len(full):
                    raise RuntimeError(
                        f"Backward hook returned an invalid number of grad_input, got {len(result)}, but expected {len(full)}"
                    )
                _check(hook, full, result)
                full = result
        return tuple(full[i] for i in self.input_positions)


def _check(hook: Callable, before: tuple, results: tuple) -> None:
    for old, new in zip(before, results):
        if new is not None and new is not old:
            check_result(hook, old, new)


def _wrapped(values: tuple, on_grads: Callable) -> tuple[tuple, list[int]]:
    """(the values with the tensors behind an identity node, their positions), or the values and no positions where no gradient will pass. A
    named tuple stays one."""
    positions = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
    if not (is_grad_enabled() and any(values[i].requires_grad for i in positions)):
        return values, []
    new = list(values)
    for i, t in zip(positions, _identity()(on_grads, *[values[i] for i in positions])):
        new[i] = t
    return (type(values)(*new) if hasattr(values, "_fields") else tuple(new)), positions


def _spread(grads: tuple, positions: list[int], count: int) -> tuple:
    full = [None] * count
    for i, g in zip(positions, grads):
        full[i] = g
    return tuple(full)


def _identity():
    """An autograd Function that passes tensors on and calls ``on_grads(grads) -> grads`` in the backward pass."""
    from flambeau.autograd.function import Function

    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx, on_grads, *tensors):
            ctx.on_grads = on_grads
            passed = tuple(t.view_as(t) for t in tensors)
            ctx.mark_non_differentiable(*[p for p, t in zip(passed, tensors) if not t.requires_grad])
            return passed

        @staticmethod
        def backward(ctx, *grads):
            return (None, *ctx.on_grads(grads))

    return BackwardHookFunction.apply
