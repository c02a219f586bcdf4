"""What nested tensors of both layouts share: a frame around one dense tensor, which has the elements and carries the autograd history.

So derivatives of any order, hooks and compiled code are those of ordinary tensors. A layout says which tensor is inside, and how another one is
framed as its own is."""

from __future__ import annotations

from typing import Any

from flambeau import _C
from flambeau.core.function_kinds import FunctionRules
from flambeau.core.tensor import Tensor

__all__ = ["AroundOne", "add_rules", "inner_of", "wrapped"]


def _of_inner(name: str, doc: str) -> property:
    """An attribute that the tensor inside has."""
    return property(lambda self: getattr(self._inner(), name), doc=doc)


class AroundOne(Tensor):
    """A tensor made of one dense tensor and of where its parts lie in it."""

    # -- what a layout says ----------------------------------------------------------------------------------------------
    def _inner(self) -> Tensor:
        """The tensor inside."""
        raise NotImplementedError(f"{type(self).__name__}._inner has to say what is inside")

    def _around(self, inner) -> Any:
        """``inner`` framed as the tensor inside is."""
        raise NotImplementedError(f"{type(self).__name__}._around has to say how it is framed")

    def _laid_out(self, other) -> Tensor:
        """The tensor inside of ``other``, laid out as the own one. RuntimeError where it isn't a nested tensor with the same sizes."""
        raise NotImplementedError(f"{type(self).__name__}._laid_out has to say how others are laid out")

    def _element(self) -> Tensor:
        """The only element, of one dimension or none."""
        raise NotImplementedError(f"{type(self).__name__}._element has to say what its element is")

    # -- metadata --------------------------------------------------------------------------------------------------------
    @property
    def ndim(self) -> int:
        """The number of dimensions, with that of the batch."""
        return self.dim()

    def ndimension(self) -> int:
        """The number of dimensions, with that of the batch."""
        return self.dim()

    def nelement(self) -> int:
        """The number of elements."""
        return self.numel()

    def item(self):
        """The element, where there is one. RuntimeError for more."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._element().item()

    def __bool__(self):
        if self.numel() > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    is_nested = property(lambda self: True, doc="True.")

    # -- autograd --------------------------------------------------------------------------------------------------------
    is_leaf = _of_inner("is_leaf", "Whether the tensor inside is a leaf of the autograd graph.")
    grad_fn = _of_inner("grad_fn", "The function that made the tensor inside.")
    retains_grad = _of_inner("retains_grad", "Whether the gradient of the tensor inside is kept.")
    _version = _of_inner("_version", "How often the tensor inside was written.")

    @property
    def requires_grad(self) -> bool:
        """Whether the tensor inside asks for a gradient."""
        return self._inner().requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self._inner().requires_grad = value

    @property
    def grad(self):
        """The gradient, a nested tensor with the same parts, or None."""
        found = self._inner().grad
        return None if found is None else self._around(found)

    @grad.setter
    def grad(self, value) -> None:
        self._inner().grad = None if value is None else self._laid_out(value)

    @property
    def data(self):
        """The same memory without history."""
        return self._around(self._inner().data)

    @data.setter
    def data(self, value) -> None:
        self._inner().data = self._laid_out(value)

    @property
    def mT(self):
        """The last two dimensions swapped."""
        return self.transpose(-2, -1)

    # -- text, copies, pickles -------------------------------------------------------------------------------------------
    def __format__(self, spec):
        return format(repr(self), spec) if spec else repr(self)

    def __hash__(self):
        return id(self)

    def __deepcopy__(self, memo):
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = self._around(self._inner().__deepcopy__(memo))
        return found

    def __setstate__(self, state) -> None:
        """Nothing: what it is made of were arguments."""


def wrapped(t, dim: int) -> int:
    """``dim`` counted from the front. IndexError out of range."""
    # Captured code reads this body; base.shapes is not read.
    n = t.dim()
    if not -n <= dim < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")
    return dim % n


# -- rules ---------------------------------------------------------------------------------------------------------------
def inner_of(x):
    """The tensor inside of a nested tensor; ``x`` where it is none."""
    return x._inner() if isinstance(x, AroundOne) else x


def _grad(func, outputs, inputs, grad_outputs=None, **kwargs):
    def all_inner(xs):
        return inner_of(xs) if xs is None or isinstance(xs, _C.TensorBase) else tuple(map(inner_of, xs))

    found = func(all_inner(outputs), all_inner(inputs), all_inner(grad_outputs), **kwargs)
    inputs = (inputs,) if isinstance(inputs, _C.TensorBase) else inputs
    return tuple(x._around(g) if isinstance(x, AroundOne) and g is not None else g for x, g in zip(inputs, found))


def _backward(func, t, gradient=None, **kwargs):
    return t._inner().backward(None if gradient is None else t._laid_out(gradient), **kwargs)


def _register_hook(func, t, hook):
    def on_inner(g):
        out = hook(t._around(g))
        return t._laid_out(out) if isinstance(out, AroundOne) else out

    return func(t._inner(), on_inner)


def _of_inner_tensor(func, t, *args, **kwargs):
    return func(t._inner(), *args, **kwargs)


_RULES = {
    _grad: "grad",
    _backward: "backward",
    _register_hook: "register_hook register_post_accumulate_grad_hook",
    _of_inner_tensor: "retain_grad is_shared is_pinned is_floating_point is_complex element_size get_device is_inference",
}


def add_rules(rules: FunctionRules) -> None:
    """The rules of both layouts: autograd's functions, and questions that the tensor inside answers."""
    for fn, names in _RULES.items():
        rules.rule(*names.split())(fn)
