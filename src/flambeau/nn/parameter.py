"""Parameter and Buffer: tensors that a Module registers when they are assigned to an attribute."""

from __future__ import annotations

from flambeau import _C
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor

__all__ = ["Buffer", "Parameter"]

empty = function("empty")


class _ParameterMeta(type(Tensor)):
    """``isinstance(t, Parameter)`` also holds for a subclass tensor marked ``_is_param`` (a wrapper that stands for a parameter)."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A leaf tensor that a Module lists among its ``parameters()``.

    ``Parameter(data, requires_grad=True)`` shares memory with ``data`` and drops its history. ``data`` of a Tensor subclass keeps its
    class and is marked instead.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = empty(0)
        if type(data) is Tensor or type(data) is cls:
            return Tensor._make_subclass(cls, data, requires_grad)
        if not isinstance(data, Tensor):
            raise TypeError(f"Parameter(): argument 'data' must be Tensor, not {type(data).__name__}")
        wrapped = data.detach().requires_grad_(requires_grad)
        if type(wrapped) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an instance "
                f"of the same type, but return type {type(wrapped).__name__} was found instead. To use the type as a Parameter, "
                "please correct the detach() semantics defined by its __torch_dispatch__() implementation."
            )
        wrapped._is_param = True
        return wrapped

    # Operators on a parameter see a plain Tensor and return one.
    __torch_function__ = _C._disabled_torch_function_impl

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        copied = memo[id(self)] = type(self)(self.data.clone(), self.requires_grad)
        return copied

    def __reduce_ex__(self, protocol):
        return _rebuild_parameter, (type(self), self.data, self.requires_grad)


def _rebuild_parameter(cls, data, requires_grad):
    return cls(data, requires_grad)


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return type.__instancecheck__(cls, instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """``Buffer(data, persistent=True)`` marks a plain tensor: assigning it to a module attribute registers it as a buffer."""

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t._is_buffer = True
        t.persistent = persistent
        return t


_C.configure(parameter=Parameter)  # the native core takes it for a plain tensor, without looking at its class
