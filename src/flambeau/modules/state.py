"""Saving and loading: ``state_dict`` flattens a module tree to names, ``load_state_dict`` copies values back and lists what didn't fit.

Format (PyTorch's): an OrderedDict from dotted name to tensor, with the versions of the modules in its ``_metadata`` attribute.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Mapping
from typing import Any

from flambeau.core.tensor import Tensor
from flambeau.modules.parameter import Parameter, is_lazy
from flambeau.modules.swapping import exchange, swaps

EXTRA = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    __slots__ = ()

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def _load(module, state_dict, prefix: str, load: Callable, keys) -> None:
    """``load`` for a module and those in it, each with the entries below it and followed by its hooks. (A closure that called itself would hold
    what was loaded in a cycle.)"""
    load(module, state_dict, prefix)
    for name, child in module._modules.items():
        if child is not None:
            start = prefix + name + "."
            _load(child, {k: v for k, v in state_dict.items() if k.startswith(start)}, start, load, keys)
    for hook in list(module._load_state_dict_post_hooks.values()):
        if hook(module, keys) is not None:
            raise RuntimeError(
                "Hooks registered with ``register_load_state_dict_post_hook`` must modify the keys in place."
            )


def _take(module: StateDict, name: str, value: Tensor, given: Tensor, assign: bool) -> None:
    """Put ``given`` in the place of the parameter or buffer ``value``: swapped, copied into it, or assigned."""
    from flambeau.autograd.grad_mode import no_grad

    with no_grad():
        if swaps():
            made = value.module_load(given, assign=assign)
            if made is value or made is given:
                raise RuntimeError(
                    "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
                    "module_load"
                )
            exchange(value, made)
        elif not assign:
            value.copy_(given)
        elif name in module._parameters and not (type(given) is type(value) and isinstance(given, Parameter)):
            # A wrapper that stands for a parameter is no class of parameters.
            made = type(value) if Parameter in type(value).__mro__ else Parameter
            setattr(module, name, made(given, requires_grad=value.requires_grad))
        else:
            setattr(module, name, given)


def _unexpected(module: StateDict, state_dict: Mapping[str, Any], prefix: str, own: Mapping[str, Tensor]) -> list[str]:
    """The keys below ``prefix`` that name neither an entry of this module nor a child."""
    found = []
    for key in state_dict:
        if not key.startswith(prefix) or key == prefix + EXTRA:
            continue
        name, _, rest = key[len(prefix) :].partition(".")
        if name not in (module._modules if rest else own):
            found.append(key)
    return found


class StateDict:
    """The part of Module that saves and loads."""

    def get_extra_state(self) -> Any:
        raise RuntimeError("Reached a code path in Module.get_extra_state() that should never be called.")

    def set_extra_state(self, state: Any) -> None:
        raise RuntimeError("Reached a code path in Module.set_extra_state() that should never be called.")

    def _save_to_state_dict(self, destination, prefix: str, keep_vars: bool) -> None:
        for name, value in self._parameters.items():
            if value is not None:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        for name, value in self._buffers.items():
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if keep_vars or is_lazy(value) else value.detach()
        if type(self).get_extra_state is not StateDict.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def state_dict(self, *, destination=None, prefix: str = "", keep_vars: bool = False):
        """An OrderedDict from name to tensor (sharing memory with the module) of parameters and persistent buffers."""
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            result = hook(self, destination, prefix, metadata)
            if result is not None:
                destination = result
        return destination

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Copy this module's own entries; what is missing, extra or wrong is appended to the three lists."""
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        persistent = {k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set}
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = {k: v for k, v in {**self._parameters, **persistent}.items() if v is not None}
        for name, value in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            given = state_dict[key]
            if not isinstance(given, Tensor):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                    f"received {type(given)}"
                )
                continue
            if is_lazy(value) and is_lazy(given):
                continue  # neither has a shape yet
            if tuple(given.shape) == (1,) and tuple(value.shape) == () and not assign:
                given = given[0]
            if tuple(given.shape) != tuple(value.shape):
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current model is {value.shape}."
                )
                continue
            if value.is_meta and not given.is_meta and not assign:
                warnings.warn(
                    f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, which is a no-op. "
                    "(Did you mean to pass `assign=True` to assign items in the state dictionary to their corresponding key in the module instead "
                    "of copying them in place?)",
                    stacklevel=2,
                )
            try:
                _take(self, name, value, given, assign)
            except Exception as error:
                doing = "swapping" if swaps() else "copying"
                error_msgs.append(
                    f'While {doing} the parameter named "{key}", whose dimensions in the model are {value.size()} and whose dimensions '
                    f"in the checkpoint are {given.size()}, an exception occurred : {error.args}."
                )
        if type(self).set_extra_state is not StateDict.set_extra_state:
            if prefix + EXTRA in state_dict:
                self.set_extra_state(state_dict[prefix + EXTRA])
            elif strict:
                missing_keys.append(prefix + EXTRA)
        if strict:
            unexpected_keys += _unexpected(self, state_dict, prefix, own)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False):
        """Copy parameters and buffers from ``state_dict``. Returns ``(missing_keys, unexpected_keys)``.

        Raises RuntimeError listing every mismatched shape and, if ``strict``, every missing and unexpected name.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)

        def load(module, state_dict, prefix: str) -> None:
            local = {} if metadata is None else dict(metadata.get(prefix[:-1], {}))
            if assign:
                local["assign_to_params_buffers"] = True
            module._load_from_state_dict(state_dict, prefix, local, True, missing, unexpected, errors)

        _load(self, state_dict, "", load, _IncompatibleKeys(missing, unexpected))
        if strict:
            if unexpected:
                errors.insert(0, "Unexpected key(s) in state_dict: " + ", ".join(f'"{k}"' for k in unexpected) + ". ")
            if missing:
                errors.insert(0, "Missing key(s) in state_dict: " + ", ".join(f'"{k}"' for k in missing) + ". ")
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return _IncompatibleKeys(missing, unexpected)
