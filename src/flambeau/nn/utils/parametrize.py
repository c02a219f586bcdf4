"""Parametrizations: a tensor of a module computed from other tensors each time it is read."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any, Never

from flambeau.autograd.grad_mode import no_grad
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter
from flambeau.modules.swapping import exchange, is_wrapper, swaps
from flambeau.nn.modules.container import ModuleDict, ModuleList

__all__ = ["ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations"]
__all__ += ["transfer_parametrizations_and_params", "type_before_parametrizations"]

_cache: dict = {}
_caching: list[int] = [0]


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """In the block each parametrized tensor is computed once."""
    _caching[0] += 1
    try:
        yield
    finally:
        _caching[0] -= 1
        if not _caching[0]:
            _cache.clear()


def _set(original: Tensor, value: Any) -> None:
    """Give a tensor the data of another. One that wraps others, or where that is asked for, is exchanged, so that its class may change."""
    if swaps() or (isinstance(original, Tensor) and is_wrapper(original)):
        exchange(original, value)
    else:
        original.data = value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order to ``original`` (or ``original0``, ``original1``, ...)."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        new = original
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        continue
        if not isinstance(new, (Tensor, list, tuple)):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new)}"
            )
        self.is_tensor = not isinstance(new, (list, tuple))
        for k, part in enumerate(() if self.is_tensor else new):
            if not isinstance(part, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {k} of the sequence with type {type(part)}."
                )
        if self.is_tensor and not unsafe and new.dtype is not original.dtype:
            raise ValueError(
                f"When `right_inverse` outputs one tensor, it may not change the dtype.\noriginal.dtype: {original.dtype}\n"
                f"right_inverse(original).dtype: {new.dtype}"
            )
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if new is not original:  # which keeps its identity
                with no_grad():
                    _set(original, new.detach() if hasattr(new, "detach") else new)
            if isinstance(original, Parameter):
                self.original = original
            else:
                self.register_buffer("original", original)
        else:
            for k, part in enumerate(new):
                if isinstance(original, Parameter):
                    self.register_parameter(f"original{k}", Parameter(part.detach(), original.requires_grad))
                else:
                    self.register_buffer(f"original{k}", part)

    def _originals(self) -> tuple:
        return (
            (self.original,) if self.is_tensor else tuple(getattr(self, f"original{k}") for k in range(self.ntensors))
        )

    def right_inverse(self, value: Tensor) -> None:
        """Set the originals so that the tensor becomes ``value``."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            for original, part in zip(self._originals(), (value,) if self.is_tensor else value):
                _set(original, part.detach())

    def forward(self) -> Tensor:
        x = self[0](*self._originals())
        for k in range(1, len(self)):
            x = self[k](x)
        return x


def _property(name: str) -> property:
    def get(self) -> Tensor:
        if not _caching[0]:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    return property(get, put)


def _own_class(module) -> None:
    """Give the module a class of its own, where the properties go."""
    cls = type(module)

    def deepcopied(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        out = self.__new__(type(self))
        memo[id(self)] = out
        out.__dict__ = copy.deepcopy(self.__dict__, memo)
        out.__class__ = type(cls.__name__, type(self).__bases__, dict(vars(type(self))))
        return out

    def getstate(self) -> Never:
        raise RuntimeError("Serialization of parametrized modules is only supported through state_dict().")

    module.__class__ = type(
        f"Parametrized{cls.__name__}",
        (cls,),
        {"__getstate__": getstate, "__deepcopy__": deepcopied, "__module__": cls.__module__},
    )


def _check_kept(made, shape, dtype, what: str) -> None:
    """ValueError for a parametrization's result that isn't a tensor of this shape and dtype."""
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made)}.")
    for kind, was, now in (("dtype", dtype, made.dtype), ("shape", tuple(shape), tuple(made.shape))):
        if was != now:
            raise ValueError(
                f"Registering a parametrization may not change the {kind} of the tensor, unless the `unsafe` flag is enabled.\n"
                f"{what}.{kind}: {was}\nparametrization({what}).{kind}: {now}"
            )


def _check_next(parametrization, value, what: str) -> None:
    """ValueError unless ``parametrization``, and its right inverse, map tensors like ``value`` to such tensors."""
    made = parametrization(value)
    _check_kept(made, value.shape, value.dtype, what)
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(made)
        except NotImplementedError:
            return
        if not isinstance(back, Tensor):
            raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back)}")
        for kind, was, now in (("dtype", value.dtype, back.dtype), ("shape", tuple(value.shape), tuple(back.shape))):
            if was != now:
                raise ValueError(
                    f"The tensor returned by parametrization.right_inverse must have the same {kind} as {what}, unless the `unsafe` flag is "
                    f"enabled.\n{what}.{kind}: {was}\nreturned {kind}: {now}"
                )


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """From now on ``module.tensor_name`` is ``parametrization`` of what it was; returns the module."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            with no_grad():
                _check_next(parametrization, getattr(module, tensor_name), f"module.{tensor_name}")
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    original = getattr(module, tensor_name)
    before, dtype = tuple(original.shape), original.dtype
    made = ParametrizationList([parametrization], original, unsafe=unsafe)
    if not unsafe:
        with no_grad():
            after = made()
        _check_kept(after, before, dtype, f"module.{tensor_name}")
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = made
    setattr(type(module), tensor_name, _property(tensor_name))
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has parametrized tensors, or its ``tensor_name`` is one."""
    parametrizations = module._modules.get("parametrizations") if isinstance(module, Module) else None
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make the tensor an ordinary one again: of its present value, or of the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    made = module.parametrizations[tensor_name]
    if made.is_tensor:
        original = made.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
            _set(original, value.detach())
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value.detach()) if any(isinstance(p, Parameter) for p in made._originals()) else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if isinstance(original, Parameter):
        module.register_parameter(tensor_name, original)
    else:
        module.register_buffer(tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class of a module before parametrizations changed it."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give ``to_module`` the parametrizations of ``from_module`` and the values under them."""
    for name in [tensor_name] if tensor_name is not None else list(from_module.parametrizations):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for p in from_module.parametrizations[name]:
            register_parametrization(to_module, name, p)
        for a, b in zip(to_module.parametrizations[name]._originals(), from_module.parametrizations[name]._originals()):
            _set(a, b.detach().clone())
    return to_module
