"""Module: a tree of named parameters, buffers and submodules with a ``forward``.

Invariant: a name lives in exactly one of ``_parameters``, ``_buffers``, ``_modules`` and the instance ``__dict__``; assignment moves it.
``_state.py`` holds saving and loading, ``_hooks.py`` the global hooks and the handles.
"""

from __future__ import annotations

import sys
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from flambeau.base.device import META
from flambeau.base.public import public_in
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules import hooks as _hooks
from flambeau.modules.hooks import (
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from flambeau.modules.parameter import Buffer, Parameter
from flambeau.modules.state import EXTRA as _EXTRA_STATE_KEY_SUFFIX  # noqa: F401  (libraries read it here)
from flambeau.modules.state import StateDict, _IncompatibleKeys  # noqa: F401
from flambeau.modules.swapping import exchange, is_wrapper, overwrites, swaps

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_buffer_registration_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

empty_like = function("empty_like")

_REGISTRIES = ("_parameters", "_buffers", "_modules")


def _indent(text: str, spaces: int = 2) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first] + [" " * spaces + line for line in rest])


def _without_module(call: Callable) -> Callable:
    def compiled(_module, *args, **kwargs):
        return call(*args, **kwargs)

    return compiled


@public_in("nn.modules.module")
class Module(StateDict):
    """Base class of all neural network modules. Subclasses call ``super().__init__()`` and define ``forward``."""

    training: bool
    call_super_init = False
    dump_patches = False
    T_destination = dict
    _version = 1
    _compiled_call: Callable | None = None

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            extra = (
                f"unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else f"{len(args)} positional arguments"
            )
            raise TypeError(f"{type(self).__name__}.__init__() got {extra}")
        put = super().__setattr__  # plain attributes: the checks of our own __setattr__ need what is being made here
        put("training", True)
        for name in _REGISTRIES:
            put(name, {})
        put("_non_persistent_buffers_set", set())
        for name in _hooks.PER_MODULE:
            put(name, OrderedDict())
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # Calling

    def __call__(self, *args, **kwargs) -> Any:
        if self._compiled_call is not None:
            return self._compiled_call(self, *args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _wrapped_call_impl(self, *args, **kwargs):
        return self.__call__(*args, **kwargs)

    def _slow_forward(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def _call_impl(self, *args, **kwargs):
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _hooks.any_global
        ):
            return _hooks.call(self, args, kwargs)
        return self.forward(*args, **kwargs)

    def compile(self, *args, **kwargs):
        """Compile this module's call in place (its state_dict keys stay as they are)."""
        # The top-level namespace owns ``compile``; naming it here would tie every module to the compiler's packages.
        compile = sys.modules["flambeau"].compile
        self._compiled_call_impl = compile(self._call_impl, *args, **kwargs)

    @property
    def _compiled_call_impl(self) -> Callable | None:
        """The compiled call; None when there is none. It is kept without the module, which would be in a cycle with it."""
        call = self._compiled_call
        return None if call is None else types.MethodType(call, self)

    @_compiled_call_impl.setter
    def _compiled_call_impl(self, call: Callable | None) -> None:
        if isinstance(call, types.MethodType) and call.__self__ is self:
            call = call.__func__
        elif call is not None:
            call = _without_module(call)
        self.__dict__["_compiled_call"] = call

    # Registration

    def _check_name(self, kind: str, name: str, *, taken: bool) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if taken:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, taken=hasattr(self, name) and name not in self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To express "
                    f"'{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = _hooks.registered("parameter", self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, taken=hasattr(self, name) and name not in self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{_typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _hooks.registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{_typename(module)} is not a Module subclass")
        self._check_name("module", name, taken=hasattr(self, name) and name not in self._modules)
        self._modules[name] = _hooks.registered("module", self, name, module)

    register_module = add_module

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in d:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in d:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            self._modules[name] = _hooks.registered("module", self, name, value)
        elif "_parameters" in d and name in d["_parameters"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif "_modules" in d and name in d["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            d["_modules"][name] = None
        elif "_buffers" in d and (name in d["_buffers"] or isinstance(value, Buffer)):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{_typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
                )
            if isinstance(value, Buffer):
                self._forget(name, "_buffers")
                persistent = value.persistent
            else:
                persistent = name not in self._non_persistent_buffers_set
            self.register_buffer(name, value, persistent)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, keep: str) -> None:
        """Drop ``name`` from every place but the registry ``keep``, before it is put there."""
        d = self.__dict__
        d.pop(name, None)
        for registry in _REGISTRIES:
            if registry != keep and registry in d:
                d[registry].pop(name, None)
        if keep != "_buffers" and "_non_persistent_buffers_set" in d:
            d["_non_persistent_buffers_set"].discard(name)

    def __getattr__(self, name: str):
        d = self.__dict__
        if "_parameters" in d and name in d["_parameters"]:
            return d["_parameters"][name]
        if "_modules" in d and name in d["_modules"]:
            return d["_modules"][name]
        if "_buffers" in d and name in d["_buffers"]:
            return d["_buffers"][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for registry in _REGISTRIES:
            if name in self.__dict__.get(registry, ()):
                del self.__dict__[registry][name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        keys = [*super().__dir__(), *self._parameters, *self._modules, *self._buffers]
        return sorted(k for k in set(keys) if k and not k[0].isdigit())

    # Look-up by path

    def get_submodule(self, target: str) -> Module:
        module = self
        for atom in target.split(".") if target else ():
            if not hasattr(module, atom):
                raise AttributeError(f"{type(module).__name__} has no attribute `{atom}`")
            module = getattr(module, atom)
            if not isinstance(module, Module):
                raise AttributeError(f"`{atom}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module) -> None:
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        *path, name = target.split(".")
        setattr(self.get_submodule(".".join(path)), name, module)

    def get_parameter(self, target: str) -> Parameter:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._parameters:
            kind = "is not an nn.Parameter" if hasattr(module, name) else None
            raise AttributeError(f"`{name}` {kind}" if kind else f"{type(module).__name__} has no attribute `{name}`")
        found = module._parameters[name]
        if found is None:
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if name not in module._buffers:
            kind = "is not a buffer" if hasattr(module, name) else None
            raise AttributeError(f"`{name}` {kind}" if kind else f"{type(module).__name__} has no attribute `{name}`")
        found = module._buffers[name]
        if found is None:
            raise AttributeError(f"`{name}` is not a buffer")
        return found

    # Traversal

    def named_modules(
        self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        for _, module in self.named_children():
            yield module

    def _named_members(
        self, get_members_fn: Callable, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{module_prefix}.{name}" if module_prefix else name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # Changing everything below

    def apply(self, fn: Callable[[Module], None]):
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True):
        """Replace the data of every parameter (and its gradient) and every buffer by ``fn`` of it. Parameters keep their identity, unless they get
        memory or lose it (the meta device)."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is None:
                continue
            grad, made = param.grad, fn(param.data)
            if swaps() or (is_wrapper(made) and type(made) is type(param)):
                param.grad = None
                exchange(param, made)
            elif (
                overwrites()
                or (made._device == META) != (param._device == META)
                or is_wrapper(made) != is_wrapper(param)
            ):
                # another object must stand for it
                self._parameters[name] = param = Parameter(made, param.requires_grad)
            else:
                param.data = made
            if grad is not None:
                param.grad = fn(grad.detach()).requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """``to(device)``, ``to(dtype)``, ``to(tensor)``: only floating and complex tensors are cast. ``to(memory_format=...)``: parameters and
        buffers of 4 dimensions (of 5, for ``channels_last_3d``) are laid out so."""
        dtype, device, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(t):
            cast = dtype if dtype is not None and (t.is_floating_point() or t.is_complex()) else t.dtype
            to = t.device if device is None else device
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(to, cast, non_blocking, memory_format=memory_format)
            return t.to(to, cast, non_blocking)

        return self._apply(convert)

    def float(self):
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def type(self, dst_type):
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self):
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None):
        raise RuntimeError("Module.xpu(): flambeau is not built with XPU; only the cpu and meta devices exist")

    def ipu(self, device=None):
        raise RuntimeError("Module.ipu(): flambeau is not built with IPU; only the cpu and meta devices exist")

    def mtia(self, device=None):
        raise RuntimeError("Module.mtia(): flambeau is not built with MTIA; only the cpu and meta devices exist")

    def to_empty(self, *, device, recurse: bool = True):
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def train(self, mode: bool = True):
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True):
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.parameters():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                p.grad = p.grad.detach() if p.grad.grad_fn is not None else p.grad.requires_grad_(False)
                p.grad.zero_()

    def share_memory(self):
        """Move parameters and buffers to memory that other processes can map, in place. Returns the module."""
        for t in (*self.parameters(), *self.buffers()):
            t.share_memory_()
            if t.grad is not None:
                t.grad.share_memory_()
        return self

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        for name in _REGISTRIES:
            replica.__dict__[name] = replica.__dict__[name].copy()
        return replica

    # Hooks

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False):
        """``hook(module, args)`` (or ``hook(module, args, kwargs)``) runs before forward and may return new arguments."""
        return _hooks.add(self._forward_pre_hooks, hook, prepend, [self._forward_pre_hooks_with_kwargs] * with_kwargs)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ):
        """``hook(module, args, output)`` (or ``hook(module, args, kwargs, output)``) runs after forward and may return a new output.
        With ``always_call`` also when forward or a hook raises; what it returns then doesn't count."""
        flagged = [self._forward_hooks_with_kwargs] * with_kwargs + [self._forward_hooks_always_called] * always_call
        return _hooks.add(self._forward_hooks, hook, prepend, flagged)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False):
        """``hook(module, grad_input, grad_output)`` runs when the gradients of the inputs are known and may replace them. RuntimeError beside a
        hook of :meth:`register_backward_hook`."""
        self._use_backward_hooks(True)
        return _hooks.add(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook: Callable):
        """``hook(module, grad_input, grad_output)`` at the node that made the (first) output: ``grad_input`` is that node's, which are the module's
        where forward is one operation; else a FutureWarning. RuntimeError beside hooks of :meth:`register_full_backward_hook`."""
        self._use_backward_hooks(False)
        return _hooks.add(self._backward_hooks, hook, False)

    _is_full_backward_hook: bool | None = None  # by which name hooks were registered

    def _use_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False):
        """``hook(module, grad_output)`` runs before the module's backward and may replace the gradients of its outputs."""
        return _hooks.add(self._backward_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable):
        """``hook(module, state_dict, prefix, local_metadata)`` after ``state_dict()``: changes it in place and returns None."""
        return _hooks.add(self._state_dict_hooks, _hooks.InPlace(hook))

    def _register_state_dict_hook(self, hook: Callable):
        """As :meth:`register_state_dict_post_hook`; what the hook returns takes the place of the dict."""
        return _hooks.add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable):
        return _hooks.add(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable):
        return _hooks.add(self._load_state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False):
        """As :meth:`register_load_state_dict_pre_hook`; without ``with_module`` the hook isn't given the module."""
        return self.register_load_state_dict_pre_hook(hook if with_module else _hooks.WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook: Callable):
        return _hooks.add(self._load_state_dict_post_hooks, hook)

    # Printing

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indent(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            body = lines[0]
        elif lines or children:
            body = "\n  " + "\n  ".join(lines + children) + "\n"
        else:
            body = ""
        return f"{self._get_name()}({body})"

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call", None)  # compiled code isn't pickled; it is made again on the first call
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _hooks.PER_MODULE:
            self.__dict__.setdefault(name, OrderedDict())


def _typename(value) -> str:
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def _parse_to(args, kwargs):
    """(dtype, device, non_blocking, memory_format) from the spellings of ``to``."""
    from flambeau.base.dtypes import DType
    from flambeau.core.bindings import as_dtype

    kwargs = dict(kwargs)
    dtype, device = kwargs.pop("dtype", None), kwargs.pop("device", None)
    non_blocking = kwargs.pop("non_blocking", False)
    memory_format = kwargs.pop("memory_format", None)
    if "tensor" in kwargs:
        args = (kwargs.pop("tensor"), *args)
    if kwargs:
        raise TypeError(f"to() got an unexpected keyword argument '{next(iter(kwargs))}'")
    for position, arg in enumerate(args):
        if isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, DType):
            if dtype is not None:
                raise TypeError(f"to() received an invalid combination of arguments - got ({dtype}, {arg})")
            dtype = arg
        elif isinstance(arg, bool):
            non_blocking = arg
        elif position == 0 or device is None:
            device = arg
        else:
            raise TypeError(f"to() received an invalid argument {arg!r}")
    if dtype is not None and not isinstance(dtype, DType):
        dtype = as_dtype(dtype)
    return dtype, device, non_blocking, memory_format


class _NamesRegistries(types.ModuleType):
    """Assigning one of PyTorch's names of a global registry replaces its entries."""

    def __setattr__(self, name, value):
        if name in _hooks.GLOBAL_NAMES:
            _hooks.replace_global(name, value)
        else:
            super().__setattr__(name, value)


globals().update(_hooks.GLOBAL_NAMES)
sys.modules[__name__].__class__ = _NamesRegistries
