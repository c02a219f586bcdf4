"""Weights that a hook makes anew before each call: the older ``weight_norm`` and ``spectral_norm``, whose parameters checkpoints know as
``weight_g``, ``weight_v``, ``weight_orig`` and ``weight_u``. What makes them at each access is parametrizations.py.
"""

from __future__ import annotations

import warnings

from flambeau.autograd.grad_mode import no_grad
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.modules.module import Module
from flambeau.modules.parameter import Parameter, is_lazy
from flambeau.nn import functional as F
from flambeau.nn.utils.parametrizations import norm_except

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "WeightNorm",
    "remove_spectral_norm",
    "remove_weight_norm",
    "spectral_norm",
    "weight_norm",
]

mv, dot = map(function, ("mv", "dot"))


def _check_free(module: Module, kind: type[WeightNorm | SpectralNorm], name: str, what: str) -> None:
    """RuntimeError for a parameter that has such a hook, ValueError for one without a shape."""
    if any(isinstance(hook, kind) and hook.name == name for hook in module._forward_pre_hooks.values()):
        raise RuntimeError(f"Cannot register two {what} hooks on the same parameter {name}")
    if is_lazy(getattr(module, name)):
        raise ValueError(
            f"The module passed to `{kind.__name__}` can't have uninitialized parameters. Make sure to run the dummy forward before applying it"
        )


def _remove(module: Module, kind: type[WeightNorm | SpectralNorm], name: str, what: str) -> None:
    """Take the hook away and make its weight a parameter. ValueError where there is none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return
    raise ValueError(f"{what} of '{name}' not found in {module}")


class WeightNorm:
    """The hook: ``name`` is length (``name_g``) times direction (``name_v``), the length being over all dimensions but ``dim`` (-1: over all)."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return v * (g / norm_except(v, self.dim))

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Replace the parameter ``name`` and register the hook."""
        warnings.warn(
            "`torch.nn.utils.weight_norm` is deprecated in favor of `torch.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
            stacklevel=3,
        )
        _check_free(module, WeightNorm, name, "weight_norm")
        hook, weight = WeightNorm(name, dim), getattr(module, name)
        del module._parameters[name]
        module.register_parameter(f"{name}_g", Parameter(norm_except(weight, hook.dim).data))
        module.register_parameter(f"{name}_v", Parameter(weight.data))
        hook(module, ())
        module.register_forward_pre_hook(hook)
        return hook

    def remove(self, module: Module) -> None:
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"], module._parameters[f"{self.name}_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Make the parameter ``name`` its length (``name_g``) times its direction (``name_v``), computed before each call (Salimans & Kingma 2016). The
    length is over all dimensions but ``dim``, None: over all. Returns the module. RuntimeError when it is done already. Warns: newer is
    ``nn.utils.parametrizations.weight_norm``, which reads checkpoints of this one."""
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Make ``name`` an ordinary parameter again. ValueError where it isn't normalised."""
    _remove(module, WeightNorm, name, "weight_norm")
    return module


class SpectralNorm:
    """The hook: ``name`` is ``name_orig`` divided by its largest singular value, which power iterations on the buffers ``name_u`` and ``name_v``
    follow, in training only (Miyato et al. 2018)."""

    _version = 1  # of what the state holds: 1 has name_v

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix whose rows are along ``dim``."""
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        weight, u, v = (getattr(module, f"{self.name}_{part}") for part in ("orig", "u", "v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(mv(matrix, v), dim=0, eps=self.eps))
            # The next call writes to the buffers, and the backward pass of this one reads them.
            u, v = u.clone(), v.clone()
        return weight / dot(u, mv(matrix, v))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Replace the parameter ``name`` and register the hooks."""
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        _check_free(module, SpectralNorm, name, "spectral_norm")
        rows, columns = hook.reshape_weight_to_matrix(weight.detach()).size()
        u, v = (F.normalize(weight.detach().new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in (rows, columns))
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook

    def remove(self, module: Module) -> None:
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for attribute in (self.name, f"{self.name}_u", f"{self.name}_v", f"{self.name}_orig"):
            delattr(module, attribute)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


class SpectralNormStateDictHook:
    """Notes in the metadata of a state which version it is of."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata) -> None:
        versions, key = local_metadata.setdefault("spectral_norm", {}), f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Makes a state of version 0, which holds the normalised weight and no ``name_v``, one of version 1."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs) -> None:
        key = prefix + self.fn.name
        version = local_metadata.get("spectral_norm", {}).get(f"{self.fn.name}.version")
        if version is not None and version >= 1:
            return
        if version is None and key not in state_dict and all(f"{key}_{p}" in state_dict for p in ("orig", "u", "v")):
            return  # a new state without metadata
        missing = [k for k in (f"{key}_orig", key, f"{key}_u") if k not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with no_grad():
            original, weight, u = state_dict[f"{key}_orig"], state_dict.pop(key), state_dict[f"{key}_u"]
            matrix, sigma = self.fn.reshape_weight_to_matrix(original), (original / weight).mean()
            v = (matrix.t().mm(matrix).pinverse() @ matrix.t() @ u.unsqueeze(1)).squeeze(1)  # u is along matrix @ v
            state_dict[f"{key}_v"] = v.mul_(sigma / dot(u, mv(matrix, v)))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divide the parameter ``name`` by its largest singular value, computed before each call. ``dim``: of the outputs, 0 but for transposed
    convolutions (1). Returns the module. RuntimeError when it is done already."""
    if dim is None:
        dim = int(any(c.__name__ in _TRANSPOSED for c in type(module).__mro__))
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


_TRANSPOSED = ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Make ``name`` an ordinary parameter again. ValueError where it isn't normalised."""
    _remove(module, SpectralNorm, name, "spectral_norm")
    for hooks, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        for key, hook in list(hooks.items()):
            inner = getattr(hook, "hook", hook)
            if isinstance(inner, kind) and inner.fn.name == name:
                del hooks[key]
    return module
