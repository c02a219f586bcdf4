"""Lazy layers: sizes that are known with the first input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flambeau.base.device import Device
from flambeau.base.dtypes import DType
from flambeau.core.tensor import Tensor
from flambeau.modules.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Before the first forward, ``initialize_parameters(*inputs)`` gives the uninitialised parameters their shapes; then the class becomes
    ``cls_to_become``. State dicts load before that too, and give the shapes."""

    cls_to_become = None
    # Of the Module beside it.
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _register_load_state_dict_pre_hook: Callable
    register_forward_pre_hook: Callable

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs) -> None:
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        return any(is_lazy(p) for p in (*self._parameters.values(), *self._buffers.values()))

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {type(self).__name__} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Uninitialised parameters take the shapes of what is loaded. The name is PyTorch's: its files hold the method."""
        from flambeau.autograd.grad_mode import no_grad

        for name, param in (*self._parameters.items(), *self._buffers.items()):
            given = state_dict.get(prefix + name)
            if param is not None and given is not None and is_lazy(param) and not is_lazy(given):
                with no_grad():
                    param.materialize(given.shape)


def _lazy_pair(module, shape_names: dict, made) -> None:
    for name, buffer in shape_names.items():
        value = UninitializedBuffer(**made) if buffer else UninitializedParameter(**made)
        if buffer:
            module.register_buffer(name, value)
        else:
            module._parameters[name] = value


class LazyConvMixin(LazyModuleMixin):
    """Convolutions whose input channels are those of the first input."""

    # Of the convolution beside it.
    spatial: int
    groups: int
    _weight_shape: Callable

    def __init__(
        self,
        out_channels: int,
        *args,
        bias: bool = True,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
        **kwargs,
    ) -> None:
        super().__init__(0, 0, *args, bias=False, **kwargs)
        self.out_channels = out_channels
        made = {"device": device, "dtype": dtype}
        self.weight = UninitializedParameter(**made)
        if bias:
            self.bias = UninitializedParameter(**made)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args, **kwargs) -> None:
        if self.has_uninitialized_params():
            if input.dim() not in (self.spatial + 1, self.spatial + 2):
                raise RuntimeError(
                    f"Expected {self.spatial + 1}D (unbatched) or {self.spatial + 2}D (batched) input to {type(self).__name__}, but got input of "
                    f"size: {input.shape}"
                )
            self.in_channels = input.shape[-self.spatial - 1]
            if self.in_channels % self.groups:
                raise ValueError("in_channels must be divisible by groups")
            self.weight.materialize(self._weight_shape())
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class LazyNormMixin(LazyModuleMixin):
    """Normalisations whose features are those of the first input."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device | str | int | None = None,
        dtype: DType | None = None,
    ) -> None:
        made = {"device": device, "dtype": dtype}
        super().__init__(0, eps, momentum, False, False, **made)
        self.affine, self.track_running_stats = affine, track_running_stats
        if affine:
            self.weight, self.bias = UninitializedParameter(**made), UninitializedParameter(**made)
        if track_running_stats:
            from flambeau.core.conversion import as_tensor

            self.running_mean, self.running_var = UninitializedBuffer(**made), UninitializedBuffer(**made)
            self.num_batches_tracked = as_tensor(0)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for value in (self.weight, self.bias, self.running_mean, self.running_var):
                if value is not None:
                    value.materialize((self.num_features,))
            self.reset_parameters()


def lazy_layer(mixin: type, base: type, what: str) -> type:
    """The class ``Lazy...`` of a layer, in the layer's module: ``what`` is that of the first input. It becomes the layer."""
    members = {
        "cls_to_become": base,
        "__module__": base.__module__,
        "__doc__": f"{base.__name__} whose {what} are those of the first input.",
    }
    return type(f"Lazy{base.__name__}", (mixin, base), members)
