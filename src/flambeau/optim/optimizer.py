"""Optimizer: parameters in groups with options, and a state for each parameter.

Invariant: ``param_groups`` is a list of dicts, each with ``params`` and a value for every key of ``defaults``; ``state`` maps a parameter
to its dict. In ``state_dict`` parameters are numbered in the order of the groups.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from itertools import chain
from types import MappingProxyType, MethodType
from typing import Any

from flambeau.autograd.grad_mode import enable_grad, no_grad, set_grad_enabled
from flambeau.autograd.handles import RemovableHandle
from flambeau.base.dtypes import float32
from flambeau.base.weak import OwnerReference
from flambeau.core.bindings import function
from flambeau.core.conversion import tensor
from flambeau.core.tensor import Tensor

__all__ = ["Optimizer", "required", "wrap_step"]


class _Required:
    """Marks an option that every group must give."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()
view_as_real = function("view_as_real")
# Parameters, groups of parameters with options, or parameters with names.
ParamsT = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


def _default_to_fused_or_foreach(params, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """(fused, foreach): what an optimizer runs as when it isn't told. There is one way here."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Device types whose steps may be captured by graphs of a GPU."""
    return []


def _use_grad_for_differentiable(step):
    """A step of ``differentiable=True`` is recorded by autograd, any other not."""

    @functools.wraps(step)
    def run(self, *args, **kwargs) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            return step(self, *args, **kwargs)

    return run


def check_option(name: str, value: object, ok: bool) -> None:
    """ValueError in PyTorch's words unless ``ok``."""
    if not ok:
        raise ValueError(f"Invalid {name}: {value}")


def check_at_least(name: str, value: float, least: float) -> None:
    """ValueError in the words of PyTorch's newer optimizers where an option is below ``least``."""
    if not least <= value:
        raise ValueError(f"{name} should be >= {least:g} but is: {value}")


def check_ways(foreach: bool | None, fused: bool | None, differentiable: bool | None) -> None:
    """RuntimeError for ways to run a step that exclude each other. ``foreach`` and ``fused`` change nothing else: there is one way here."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


_FUSED_DEVICES = ["cpu", "cuda"]
_optimizers: weakref.WeakSet = weakref.WeakSet()  # all there are: hooks on every step wrap those made before, too
_global_optimizer_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable] = OrderedDict()


def _register_global(hooks: OrderedDict, hook: Callable):
    for optimizer in list(_optimizers):
        optimizer._wrap_step()
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """``hook(optimizer, args, kwargs)`` before each step of every optimizer. Returns a handle with ``remove()``."""
    return _register_global(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """``hook(optimizer, args, kwargs)`` after each step of every optimizer. Returns a handle with ``remove()``."""
    return _register_global(_global_optimizer_post_hooks, hook)


def wrap_step(optimizer: Optimizer, around: Callable) -> Callable:
    """Let ``optimizer.step(*args, **kwargs)`` be ``around(optimizer, step, args, kwargs)``, where ``step`` is the one so far. Gives the new one.

    It holds the optimizer weakly: tensors go with the last reference to it, not when the collector comes round. The caller has to hold it while
    it steps (ReferenceError).
    """
    before: Any = optimizer.step
    owned = getattr(before, "__self__", None) is optimizer
    if owned:
        before = before.__func__
    owner = OwnerReference(optimizer)

    @functools.wraps(before)
    def step(*args: Any, **kwargs: Any) -> Any:
        held = owner()
        if held is None:
            raise ReferenceError("step() of an optimizer that is gone: nothing held it any more")
        # The class is asked at each call: hooks may have been registered since.
        return around(held, MethodType(type(held).step, held) if owned else before, args, kwargs)

    optimizer.step = step  # type: ignore[method-assign]
    return step


def _with_hooks(step: Callable) -> Callable:
    """What a class has in place of its ``step`` from the first hook on. A class and not an optimizer has it: ``SGD(...).step()`` holds nothing
    but the method while it runs."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        # Hooks see the arguments of the method itself, as in PyTorch: the optimizer is the first.
        args = (self, *args)
        for hook in [*_global_optimizer_pre_hooks.values(), *self._step_pre_hooks.values()]:
            result = hook(self, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{hook} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        out = step(*args, **kwargs)
        for hook in [*self._step_post_hooks.values(), *_global_optimizer_post_hooks.values()]:
            hook(self, args, kwargs)
        return out

    hooked._runs_hooks = True  # type: ignore[attr-defined]
    return hooked


class Optimizer:
    """Base class: ``step`` is defined by the algorithm."""

    # Set by a schedule's note of the first step.
    _opt_called: bool

    def __init__(self, params: ParamsT, defaults: dict) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + type(params).__name__
            )
        self.defaults = defaults
        self.state: defaultdict = defaultdict(dict)
        self.param_groups: list[dict] = []
        self._step_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._saving_hooks: dict[str, OrderedDict[int, Callable]] = {}
        _optimizers.add(self)
        if _global_optimizer_pre_hooks or _global_optimizer_post_hooks:
            self._wrap_step()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            if not isinstance(group, dict):
                raise TypeError("param_group must be a dict, but got " + str(type(group)))
            self.add_param_group(group)

    def add_param_group(self, param_group: dict) -> None:
        """Add parameters with options of their own; what isn't given is taken from the defaults."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets will change "
                "between runs. Please use a list instead."
            )
        params = list(params)
        named = [isinstance(p, tuple) for p in params]
        group = dict(param_group)
        if any(named):
            if not all(named):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError("optimizer can only optimize Tensors, but one of the params is " + type(p).__name__)
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in taken for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with names' if 'param_names' in group else 'without names'} to the optimizer"
            )
        group["params"] = params
        self.param_groups.append(group)

    def step(self, closure: Callable | None = None) -> Tensor | float | None:
        raise NotImplementedError(f"{type(self).__name__}.step() is not defined")

    def _init_state(self, state: dict, p, group: dict) -> None:
        """Fill the empty state of a parameter before its first update. Algorithms without state leave it empty."""

    # What state dicts of older releases don't have: options with what they meant then, and counts that were numbers.
    later_options: Mapping[str, object] = MappingProxyType({})
    counts: tuple[str, ...] = ("step",)

    takes_sparse = False  # whether a step can use sparse gradients
    sparse_refusal: str | None = None  # the error's text, where it says more than that
    takes_complex = True  # whether parameters may be complex
    complex_as_pairs = True  # whether real and imaginary parts are parameters of their own

    def _recording(self):
        """The grad mode of an update: recorded by autograd with ``differentiable=True``, otherwise not."""
        # Guards of the native state, and no call that sets the mode before the block: a failed allocation leaves nothing behind.
        return enable_grad() if self.defaults.get("differentiable") else no_grad()

    def _has_state(self, group: dict) -> bool:
        """Whether parameters of this group get a state: where not, ``state_dict()`` has no entry for them."""
        return True

    def _gather(self) -> list[tuple[dict, list[tuple]]]:
        """Each group, and (parameter, gradient, state) of those of its parameters that have a gradient.

        A step collects first and computes then: the dict keyed by tensors stays outside of what a compiler captures, and the update
        of all parameters is one graph.
        """
        out = []
        for group in self.param_groups:
            rows, has_state, differentiable = [], self._has_state(group), group.get("differentiable")
            for p in group["params"]:
                grad = p.grad
                if grad is not None:
                    if p._dtype.is_complex and not self.takes_complex:
                        raise RuntimeError(f"{type(self).__name__} does not support complex parameters")
                    if group.get("fused") and not p.is_floating_point():
                        raise RuntimeError(
                            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                            f"{_FUSED_DEVICES} but {p.dtype} and {p.device.type}"
                        )
                    if grad.is_sparse and not self.takes_sparse:
                        raise RuntimeError(
                            self.sparse_refusal or f"{type(self).__name__} does not support sparse gradients"
                        )
                    state = self.state[p] if has_state else {}
                    if not state:
                        self._init_state(state, p, group)
                    if differentiable:
                        # What the last step's graph has saved of the state stays as it is.
                        state.update({k: v.clone() for k, v in state.items() if isinstance(v, Tensor)})
                    if p._dtype.is_complex and self.complex_as_pairs and not grad.is_sparse:
                        p, grad = view_as_real(p), view_as_real(grad)
                        state = {k: view_as_real(v) if _is_complex(v) else v for k, v in state.items()}
                    rows.append((p, grad, state))
            out.append((group, rows))
        return out

    def _updated(self, update: Callable, closure: Callable | None):
        """A step of an algorithm that is one function of a group's options and of what was gathered of it."""
        loss = self._loss(closure)
        gathered = self._gather()
        with self._recording():
            for group, rows in gathered:
                update(group, rows)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients (None), or fill them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.grad_fn is not None:
                        p.grad = p.grad.detach()
                    p.grad.zero_()

    @staticmethod
    def _loss(closure: Callable | None):
        """Evaluate the closure that computes the loss again, with gradients on."""
        if closure is None:
            return None
        with enable_grad():
            return closure()

    # Hooks around step. The first one that is registered wraps ``step`` of the class, so that until then a step pays nothing.

    def _wrap_step(self) -> None:
        cls = type(self)
        if not getattr(cls.step, "_runs_hooks", False):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """``hook(optimizer, args, kwargs)`` before each step; may return new ``(args, kwargs)``, in which the optimizer is the first."""
        return self._register(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """``hook(optimizer, args, kwargs)`` after each step. Returns a handle with ``remove()``."""
        return self._register(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer)`` before ``state_dict()``."""
        return self._register_saving("before saving", hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer, state_dict)`` after ``state_dict()``; may return another one."""
        return self._register_saving("after saving", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer, state_dict)`` before loading, on a shallow copy; may return another one."""
        return self._register_saving("before loading", hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """``hook(optimizer)`` after loading."""
        return self._register_saving("after loading", hook, prepend)

    def _register_saving(self, when: str, hook: Callable, prepend: bool):
        hooks = self._saving_hooks.setdefault(when, OrderedDict())
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        if prepend:
            hooks.move_to_end(handle.id, last=False)
        return handle

    def _run_saving(self, when: str, *given):
        """The last thing that a hook returned, or what was given."""
        for hook in list(self._saving_hooks.get(when, {}).values()):
            result = hook(self, *given)
            if result is not None and given:
                given = (result,)
        return given[0] if given else None

    def _register(self, hooks: OrderedDict, hook: Callable):
        self._wrap_step()
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    # Saving

    def state_dict(self) -> dict:
        """``{"state": {index: state}, "param_groups": [options with the indices of their parameters]}``."""
        self._run_saving("before saving")
        index: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for p in group["params"]:
                index.setdefault(id(p), len(index))
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [index[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(index[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        return self._run_saving("after saving", {"state": state, "param_groups": groups})

    def load_state_dict(self, state_dict: dict) -> None:
        """Take the state and the options of ``state_dict``; tensors are copied, and cast to the dtype of their parameter."""
        state_dict = self._run_saving("before loading", state_dict.copy())
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(self.param_groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(self.param_groups, saved_groups)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved_groups),
                chain.from_iterable(g["params"] for g in self.param_groups),
            )
        )
        state: defaultdict = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = {name: _cast(params[key], v, name) for name, v in value.items()}
            else:
                state[key] = value
        for own, saved in zip(self.param_groups, saved_groups):
            saved["params"] = own["params"]
            if "param_names" in own:
                saved.setdefault("param_names", own["param_names"])
        self.__setstate__({"state": state, "param_groups": saved_groups})
        self._run_saving("after loading")

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict) -> None:
        """Take what was pickled or loaded, and add what older releases didn't save."""
        self.__dict__.update(state)
        for name in ("_step_pre_hooks", "_step_post_hooks", "_saving_hooks"):
            self.__dict__.setdefault(name, OrderedDict())
        if self not in _optimizers:
            _optimizers.add(self)
            if _global_optimizer_pre_hooks or _global_optimizer_post_hooks:
                self._wrap_step()
        for group in self.param_groups:
            for name, value in self.later_options.items():
                group.setdefault(name, value)
        for kept in self.state.values() if self.later_options else ():
            for name in self.counts:
                if isinstance(kept, dict) and isinstance(kept.get(name), int | float):
                    kept[name] = tensor(float(kept[name]), dtype=float32)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [""] * (i > 0) + [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _cast(param: Tensor, value, name: str):
    """A copy of a state value. NOTE: ``step`` keeps its own dtype: bfloat16 can't count beyond 256."""
    if isinstance(value, Tensor):
        if name == "step" or not param.is_floating_point():
            return value.clone()
        return value.to(dtype=param.dtype, device=param.device).clone()
    if isinstance(value, dict):
        return {k: _cast(param, v, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_cast(param, v, name) for v in value)  # type: ignore[call-arg]
    return value


def _is_complex(value) -> bool:
    return isinstance(value, Tensor) and value.is_complex()


def check_rate(lr: Tensor | float) -> None:
    """ValueError for a learning rate that is a tensor of more or fewer elements than one."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
