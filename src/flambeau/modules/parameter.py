"""Parameter and Buffer: tensors that a Module registers when they are assigned to an attribute."""

from __future__ import annotations

import collections

from flambeau import _C
from flambeau.base.public import public_in
from flambeau.core.bindings import function
from flambeau.core.rebuild import _rebuild_from_type_v2, set_state
from flambeau.core.tensor import Tensor

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]

empty = function("empty")


class _ParameterMeta(type(Tensor)):
    """``isinstance(t, Parameter)`` also holds for a subclass tensor marked ``_is_param`` (a wrapper that stands for a parameter)."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


@public_in("nn.parameter")
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
        hooks: collections.OrderedDict = collections.OrderedDict()
        args, state = (self.data, self.requires_grad, hooks), self.__getstate__()
        if type(self) is not Parameter:
            return _rebuild_from_type_v2, (_rebuild_parameter, type(self), args, state or {})
        if state:
            return _rebuild_parameter_with_state, (*args, state)
        return _rebuild_parameter, args


def _rebuild_parameter(data, requires_grad, backward_hooks):
    out = Parameter(data, requires_grad)
    if backward_hooks:
        out._backward_hooks = backward_hooks
    return out


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    out = _rebuild_parameter(data, requires_grad, backward_hooks)
    set_state(out, state)
    return out


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        if cls is Buffer:
            return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        return type.__instancecheck__(cls, instance)


@public_in("nn.parameter")
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


_PASSES = frozenset(
    "__hash__ __deepcopy__ __reduce_ex__ reduced size copy_ is_complex is_floating_point half float double bfloat16 char short int long cuda cpu to "
    "get_device detach requires_grad_ share_memory_ type".split()
)


@public_in("nn.parameter")
class UninitializedTensorMixin:
    """A parameter or buffer without a shape yet; ``materialize(shape)`` makes it an ordinary one."""

    cls_to_become: type

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Give it memory of this shape, in place: every reference sees the new memory. The class becomes ``cls_to_become``."""
        sizes = (shape,) if isinstance(shape, int) else tuple(shape)
        made = empty(sizes, device=device or self.device, dtype=dtype or self.dtype)
        self._array, self._storage = made._array, made._storage
        self.__class__ = self.cls_to_become

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """ValueError for what needs elements: moves, casts and questions about dtype and device pass."""
        name = getattr(func, "__name__", "")
        if name in _PASSES or name in ("__get__", "__set__", "__delete__"):
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or explicitly "
            f"manipulating `torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with a dummy batch to initialize "
            "the parameters before calling torch functions"
        )

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when trying to load an "
            "uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"


def is_lazy(param) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


@public_in("nn.parameter")
class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape the first input will tell."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad, self.device, self.dtype)


@public_in("nn.parameter")
class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape the first input will tell."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        out = Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)
        out.persistent, out._is_buffer = persistent, True
        return out
