"""``torch.masked.MaskedTensor``: data and a mask that says which elements count.

As with nested tensors (flambeau/nested) the data carry the autograd history, and functions compute with them: elementwise ones pass the mask on,
views are taken of both, reductions are those of ``torch.masked`` (masked.py).
"""

from __future__ import annotations

from collections.abc import Callable

from .. import _C
from ..base import dtypes
from ..base.public import public_in
from ..compiler.controls import assume_constant_result
from ..core.function_kinds import FunctionRules, is_elementwise, is_view, name_of
from ..core.operator import namespace
from ..core.tensor import Tensor
from . import masked

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

aten = namespace("aten")
NOT_SUPPORTED = (dtypes.complex64, dtypes.complex128)
# ``func`` of a rule works on plain tensors.
RULES = FunctionRules()
rule = RULES.rule


def _of_data(name: str, doc: str) -> property:
    return property(lambda self: getattr(self._masked_data, name), doc=doc)


@public_in("masked.maskedtensor.core")
class MaskedTensor(Tensor):
    """``data`` of which the elements count where ``mask``, bool of the same shape, is True.
    TypeError and ValueError where the two don't fit."""

    _masked_data: Tensor
    _masked_mask: Tensor

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        _check(data, mask)
        return Tensor._make_wrapper_subclass(
            cls, data.shape, strides=data.stride(), dtype=data.dtype, device=data.device
        )

    def __init__(self, data, mask, requires_grad=False):
        self._masked_data, self._masked_mask = data, mask
        if requires_grad:
            data.requires_grad_(True)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """What ``func`` does with masked tensors. TypeError where there is no rule."""
        return call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Operators called directly. TypeError where there is no rule, or where a gradient would be lost."""
        if _C.tls("grad_enabled") and any(isinstance(x, _C.TensorBase) and x.requires_grad for x in args):
            raise TypeError(f"{func} of masked tensors that require grad: call the public function instead")
        return call(func, args, kwargs or {})

    def get_data(self):
        """The data, those that the mask hides as well."""
        return self._masked_data

    def get_mask(self):
        """The mask, True where an element counts."""
        return self._masked_mask

    def to_tensor(self, value):
        """A plain tensor with ``value`` where the mask is False."""
        return self._masked_data.masked_fill(~self._masked_mask, value)

    is_leaf = _of_data("is_leaf", "Whether the data are a leaf of the autograd graph.")
    grad_fn = _of_data("grad_fn", "The function that made the data.")
    _version = _of_data("_version", "How often the data were written.")

    @property
    def requires_grad(self) -> bool:
        """Whether the data ask for a gradient."""
        return self._masked_data.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._masked_data.requires_grad = value

    @property
    def grad(self):
        """The gradient, with the same mask, or None."""
        found = self._masked_data.grad
        return None if found is None else MaskedTensor(found, self._masked_mask)

    @grad.setter
    def grad(self, value) -> None:
        self._masked_data.grad = None if value is None else value._masked_data

    @property
    def data(self):
        """The same elements without history."""
        return MaskedTensor(self._masked_data.data, self._masked_mask)

    def __repr__(self, *, tensor_contents=None):
        return text(self)

    def __format__(self, spec):
        return format(text(self), spec)

    def __len__(self):
        return len(self._masked_data)

    def __iter__(self):
        return iter(self.unbind())

    def __hash__(self):
        return id(self)

    def __bool__(self):
        return bool(self._masked_data)

    def __float__(self):
        return float(self._masked_data)

    def __int__(self):
        return int(self._masked_data)

    def __deepcopy__(self, memo):
        found = memo.get(id(self))
        if found is None:
            data, mask = self._masked_data.__deepcopy__(memo), self._masked_mask.__deepcopy__(memo)
            found = memo[id(self)] = MaskedTensor(data, mask)
        return found

    def __reduce_ex__(self, protocol):
        return MaskedTensor, (self._masked_data.detach(), self._masked_mask, self.requires_grad)


def _check(data, mask) -> None:
    for name, x in (("data", data), ("mask", mask)):
        if not isinstance(x, _C.TensorBase) or isinstance(x, MaskedTensor):
            raise TypeError(f"{name} must be a Tensor")
    if mask.dtype is not dtypes.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dtype in NOT_SUPPORTED or data.dtype.category == 3:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    if data.layout is not mask.layout:
        raise TypeError(f"data and mask must have the same layout, got {data.layout} and {mask.layout}")


def masked_tensor(data, mask, requires_grad=False):
    """A masked tensor of copies of ``data`` and ``mask`` (bool, True where an element counts), without their history: a leaf.
    TypeError and ValueError where the two don't fit."""
    _check(data, mask)
    return MaskedTensor(data.detach().clone(), mask.detach().clone(), requires_grad)


def as_masked_tensor(data, mask):
    """A masked tensor of ``data``, with their history and memory, and ``mask``. TypeError and ValueError where the two don't fit."""
    return MaskedTensor(data, mask)


def is_masked_tensor(obj) -> bool:
    """Whether it is a :class:`MaskedTensor`."""
    return isinstance(obj, MaskedTensor)


# -- text ------------------------------------------------------------------------------------------------------------------
def text(t) -> str:
    """PyTorch's text: four digits, ``--`` for what is masked."""
    data, mask = t._masked_data.detach(), t._masked_mask
    floating = data.dtype.category == 2
    shown = [f"{x:8.4f}" if floating else str(x) for x in data.reshape(-1).tolist()]
    width = max([8, *map(len, shown)])
    items = [s if kept else "--".rjust(width) for s, kept in zip(shown, mask.reshape(-1).tolist())]
    if not data.dim():
        return f"MaskedTensor({items[0].strip() if not mask else items[0]}, {bool(mask)})"
    lines = "\n".join(f"  {line}" for line in _rows(items, list(data.shape)).splitlines())
    return f"MaskedTensor(\n{lines}\n)"


def _rows(items: list[str], shape: list[int]) -> str:
    if len(shape) == 1:
        return f"[{', '.join(items)}]"
    step = len(items) // shape[0] if shape[0] else 0
    parts = [_rows(items[k * step : (k + 1) * step], shape[1:]) for k in range(shape[0])]
    inside = ",\n".join("\n".join(f"  {line}" for line in part.splitlines()) for part in parts)
    return f"[\n{inside}\n]"


# -- functions -------------------------------------------------------------------------------------------------------------
def call(func, args, kwargs):
    found = rule_of(func)
    if found is None:
        name = getattr(func, "__name__", str(func))
        raise TypeError(
            f"no implementation found for '{name}' on types that implement __torch_function__: [MaskedTensor]"
        )
    return found(func, *args, **kwargs)


@assume_constant_result
def rule_of(func) -> Callable | None:
    """The rule of a public function, a method or an operator; None without one."""
    return with_mask if getattr(masked, name_of(func) or "", None) is func else RULES.of(func)


def with_mask(func, input, *args, mask=None, **kwargs):
    """A function of ``torch.masked``: the mask is the tensor's own."""
    if mask is not None:
        raise ValueError("a masked tensor has its mask: mask= can't be given as well")
    return func(input._masked_data, *args, mask=input._masked_mask, **kwargs)


def _data(x):
    return x._masked_data if isinstance(x, MaskedTensor) else x


def _masks_match(a, b) -> bool:
    return a is b or (a.shape == b.shape and bool((a == b).all()))


@RULES.rule_of_kind(is_elementwise)
def elementwise(func, *args, **kwargs):
    """A function of one element of each argument. ValueError where masks differ."""
    given = [x for x in (*args, *kwargs.values()) if isinstance(x, MaskedTensor)]
    mask = given[0]._masked_mask
    for other in given[1:]:
        if not _masks_match(mask, other._masked_mask):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    out = func(*map(_data, args), **{k: _data(v) for k, v in kwargs.items()})
    for x in given:
        if out is x._masked_data:  # written in place
            return x
    return MaskedTensor(out, mask if mask.shape == out.shape else mask.expand(out.shape))


@rule("type")
def type_(func, x, *args, **kwargs):
    return elementwise(func, x, *args, **kwargs) if args or kwargs else func(x._masked_data)


@RULES.rule_of_kind(is_view)
def of_both(func, x, *args, **kwargs):
    """Elements that only move: data and mask alike."""
    args = tuple(_data(a) for a in args)
    data, mask = func(x._masked_data, *args, **kwargs), func(x._masked_mask, *args, **kwargs)
    if isinstance(data, (tuple, list)):
        return type(data)([MaskedTensor(d, m) for d, m in zip(data, mask)])
    return MaskedTensor(data, mask)


rule(
    "__getitem__", "reshape", "flatten", "chunk", "split", "unfold", "contiguous", "clone", "view", "index_select", "flip", "roll", "repeat",
    "tensor_split", "gather", "take_along_dim", "expand_as", "view_as", "reshape_as", "unflatten", "t", "unbind", "permute", "squeeze",
)(of_both)  # fmt: skip


@rule("cat", "concat", "concatenate", "stack", "hstack", "vstack")
def joined(func, tensors, *args, **kwargs):
    if not all(isinstance(x, MaskedTensor) for x in tensors):
        raise TypeError(f"{func.__name__}: expected masked tensors, all of them")
    data = func([x._masked_data for x in tensors], *args, **kwargs)
    return MaskedTensor(data, func([x._masked_mask for x in tensors], *args, **kwargs))


@rule("where")
def where(func, condition, input, other):
    if isinstance(condition, MaskedTensor) or not (isinstance(input, MaskedTensor) and isinstance(other, MaskedTensor)):
        raise TypeError("where: expected a plain condition and two masked tensors")
    data = func(condition, input._masked_data, other._masked_data)
    return MaskedTensor(data, func(condition, input._masked_mask, other._masked_mask))


@rule(
    "sum",
    "mean",
    "prod",
    "amax",
    "amin",
    "argmax",
    "argmin",
    "std",
    "var",
    "norm",
    "all",
    "any",
    "logsumexp",
    "max",
    "min",
)
def reduced(func, x, *args, **kwargs):
    """A masked tensor; what is made of nothing is masked."""
    name = {"max": "amax", "min": "amin"}.get(func.__name__, func.__name__)
    if name != func.__name__ and (args or kwargs):
        return elementwise(func, x, *args, **kwargs) if isinstance(args[0], _C.TensorBase) else _refuse(func)
    data, mask = x._masked_data, x._masked_mask
    if name in ("all", "any"):
        data = func(data | ~mask if name == "all" else data & mask, *args, **kwargs) if data.dtype is dtypes.bool_ else (
            func((data != 0) | ~mask if name == "all" else (data != 0) & mask, *args, **kwargs)
        )  # fmt: skip
        return MaskedTensor(data, mask.any(*args, **kwargs))
    dims, keepdim = _reduced_dims(name, args, kwargs)
    found = getattr(masked, name)(data, *args, mask=mask, **kwargs)
    return MaskedTensor(
        found, mask.any(keepdim=keepdim, **({} if dims is None else {"dim": dims})) if data.dim() else mask
    )


def _reduced_dims(name: str, args, kwargs):
    """The dimensions that a reduction is over, None for all, and whether they stay."""
    positional = list(args)[1:] if name == "norm" else list(args)
    dims = kwargs.get("dim", positional[0] if positional else None)
    return dims, kwargs.get("keepdim", False)


def _refuse(func):
    raise TypeError(f"{func.__name__} of a masked tensor along a dimension: use amax, amin, argmax or argmin")


@rule("softmax", "log_softmax", "cumsum", "cumprod")
def along(func, x, dim, dtype=None, _stacklevel=3):
    """Over the elements that count; the mask stays."""
    mask = x._masked_mask
    return MaskedTensor(getattr(masked, func.__name__)(x._masked_data, dim, dtype=dtype, mask=mask), mask)


@rule("matmul", "mm", "bmm", "mv", "linear", "__matmul__", "__rmatmul__")
def product(func, a, b, *rest):
    """Masked elements count as 0; what no element went into is masked."""
    zero = lambda x: x.to_tensor(0) if isinstance(x, MaskedTensor) else x  # noqa: E731
    one = lambda x: (x._masked_mask if isinstance(x, MaskedTensor) else aten.ones_like(x, dtype=dtypes.bool_)).float()  # noqa: E731
    return MaskedTensor(func(zero(a), zero(b), *rest), func(one(a), one(b)) > 0)


@rule("backward")
def backward(func, x, gradient=None, **kwargs):
    return x._masked_data.backward(_data(gradient), **kwargs)


@rule("grad")
def grad(func, outputs, inputs, grad_outputs=None, **kwargs):
    def data(xs):
        return _data(xs) if xs is None or isinstance(xs, _C.TensorBase) else tuple(map(_data, xs))

    found = func(data(outputs), data(inputs), data(grad_outputs), **kwargs)
    return tuple(
        MaskedTensor(g, x._masked_mask) if isinstance(x, MaskedTensor) and g is not None else g
        for x, g in zip(inputs, found)
    )


@rule(
    "item",
    "is_floating_point",
    "is_complex",
    "element_size",
    "is_contiguous",
    "retain_grad",
    "register_hook",
    "size",
    "stride",
    "dim",
    "numel",
)
def of_data(func, x, *args, **kwargs):
    return func(x._masked_data, *args, **kwargs)


@rule("__get__")
def attribute(func, x, *owner):
    """An attribute that the class doesn't answer itself is that of the data."""
    out = func(x._masked_data)
    return MaskedTensor(out, func(x._masked_mask)) if isinstance(out, _C.TensorBase) else out


@rule("numpy", "__array__", "tolist")
def refused(func, x, *args, **kwargs):
    if func.__name__ == "tolist":
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got MaskedTensor")
    raise RuntimeError(".numpy() is not supported for tensor subclasses.")
