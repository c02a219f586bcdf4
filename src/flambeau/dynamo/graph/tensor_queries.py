"""What capture needs to know of tensors, in one place: the class, fake tensors, grad mode."""

from __future__ import annotations

import functools
import itertools

from flambeau import _C
from flambeau.base.dtypes import DType
from flambeau.batching import innermost
from flambeau.core.tensor import Tensor
from flambeau.fake import FakeTensor, FakeTensorMode
from flambeau.fake.meta import meta_of

from ..rules.reflect import dict_of, module_of, mro_of

__all__ = [
    "class_of_result",
    "dtype_of_type",
    "is_new_leaf",
    "fake_mode",
    "grad_enabled",
    "is_tensor",
    "restoring_grad_mode",
    "set_grad_enabled",
]


def is_tensor(v) -> bool:
    return issubclass(type(v), _C.TensorBase)  # isinstance() would ask v.__class__


def fake_mode():
    # torch.tensor() of numbers makes a real tensor on its way; inputs of the graph are converted by from_tensor.
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    mode.traces = True
    return mode


def grad_enabled() -> bool:
    return bool(_C.tls("grad_enabled"))


def same_place(fake):
    """Another fake tensor of the same sizes in the same memory."""
    out = FakeTensor(fake.fake_mode, meta_of(fake), fake._counter)
    if fake._requires_grad:
        out.requires_grad_(True)
    return out


def set_grad_enabled(mode: bool) -> None:
    """Target of the graph nodes that switch the grad mode."""
    _C.tls("grad_enabled", int(mode))


def restoring_grad_mode(fn):
    """``fn``, which switches the grad mode, with the mode of before it where it raises."""

    @functools.wraps(fn)
    def run(*args):
        before = grad_enabled()
        try:
            return fn(*args)
        except BaseException:
            set_grad_enabled(before)
            raise

    return run


def inference_enabled() -> bool:
    return bool(_C.tls("inference"))


def set_inference(on: bool) -> None:
    _C.tls("inference", int(on))


def as_inference(t):
    """The memory of a result as a tensor that inference mode made."""
    before = inference_enabled()
    set_inference(True)
    try:
        return _C.from_array(t.detach()._array)
    finally:
        set_inference(before)


set_grad_enabled.is_grad_mode_switch = True  # backends that get the graph look for it


def is_new_leaf(value) -> bool:
    """Whether the tensor asks for a gradient and nothing made it, as far as autograd knows."""
    value = innermost(value)  # inside vmap the tape records whole batches
    return value.requires_grad and value.grad_fn is None


def class_of_result(value) -> type:

    return Tensor


LIBRARY_EXAMPLES = (
    "flambeau.testing.",
    "flambeau.examples.",
    "flambeau.nested.",
    "flambeau.ops.affine.traced.",
    "flambeau.masked.",
    "flambeau.compat.masked_tensor",
)


def is_user_class(cls: type) -> bool:
    """Whether a class is a program's: not the library's, not the interpreter's."""
    module = module_of(cls) or ""
    if cls is object or module == "flambeau._C":
        return False
    return not (module == "flambeau" or module.startswith("flambeau.")) or module.startswith(LIBRARY_EXAMPLES)


def is_of_program(cls: type, name: str, found) -> bool:
    """Whether what a class of tensors has under a name is a program's: its code, or whatever a class of the program's defines."""
    in_front = itertools.takewhile(is_user_class, mro_of(cls))
    return is_user_code(found) or any(name in dict_of(c) for c in in_front)


def is_subclass(cls: type) -> bool:
    """Whether objects of the class are tensors of a program's own."""
    return issubclass(cls, _C.TensorBase) and is_user_class(cls)


def overrides_function(cls: type) -> bool:
    return getattr(cls, "__torch_function__", None) not in (None, _C._disabled_torch_function_impl)


def overrides_dispatch(cls: type) -> bool:
    return cls.__torch_dispatch__ is not _C._disabled_torch_dispatch_impl


def dtype_of_type(cls: type) -> DType | None:
    """The dtype of the tensors that ``cls``, one of the old types of tensors (``torch.LongTensor``), makes; None for other classes."""
    found = dict_of(cls)
    dtype = found.get("dtype")
    return dtype if type(dtype) is DType and "is_cuda" in found else None


def is_user_code(f) -> bool:
    f = f.fget if isinstance(f, property) else f
    module = module_of(f) or "flambeau."
    return not module.startswith("flambeau.") or module.startswith(LIBRARY_EXAMPLES)
