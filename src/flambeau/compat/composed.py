"""Functions of the root namespace over other operators, without an operator of their own."""

from __future__ import annotations

import itertools
import math

import numpy as np

from .. import _C
from ..autograd.grad_mode import no_grad
from ..base import dtypes, shapes
from ..base.symint import SymInt
from ..core.bindings import function
from ..core.conversion import as_tensor, tensor
from ..core.operator import namespace
from ..core.overrides import checked_input, wrap_function, wrap_native
from ..core.promotion import refused
from ..core.tensor import Tensor
from .dlpack import from_dlpack, to_dlpack

__all__ = [
    "block_diag",
    "broadcast_shapes",
    "cartesian_prod",
    "chain_matmul",
    "combinations",
    "from_dlpack",
    "from_file",
    "frombuffer",
]
__all__ += ["range_", "tensordot", "to_dlpack", "vander"]

aten = namespace("aten")
arange = function("arange")


def broadcast_shapes(*shapes_):
    """The shape that all of these broadcast to. RuntimeError when they don't."""
    out: tuple = ()
    for s in shapes_:
        if not isinstance(s, (int, SymInt, tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {s}")
        shape = (s,) if isinstance(s, (int, SymInt)) else tuple(s)
        if any(n < 0 for n in shape):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        out = shapes.broadcast_shapes(out, shape)
    return shapes.Size(out)


def tensordot(a, b, dims=2, out=None):
    """Sum of products over the last ``dims`` dimensions of ``a`` and the first of ``b``, or over two lists of dimensions."""
    checked_input("tensordot", a)
    if isinstance(dims, _C.TensorBase):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims >= 0 and at most the dimensions of both, but got dims={dims}")
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        if not isinstance(dims, (tuple, list)):
            raise RuntimeError(
                "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, but got "
                f"dims={dims}"
            )
        left, right = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    if out is not None:
        return aten.tensordot.out(a, b, left, right, out=out)
    return aten.tensordot.default(a, b, left, right)


def _all_tensors(name: str, given) -> None:
    """TypeError unless each of the arguments is a tensor."""
    for k, x in enumerate(given):
        if not isinstance(x, _C.TensorBase):
            raise TypeError(f"{name}(): expected Tensor as element {k} in argument 0, but got {type(x).__name__}")


def block_diag(*tensors):
    """A matrix with the given ones on its diagonal."""
    _all_tensors("block_diag", tensors)
    return aten.block_diag.default(list(tensors))


def cartesian_prod(*tensors):
    """All combinations of one element of each: (product of lengths, number of tensors)."""
    _all_tensors("cartesian_prod", tensors)
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    grid = aten.meshgrid.indexing(list(tensors), indexing="ij")
    return aten.stack.default([g.reshape(-1) for g in grid], 1)


def combinations(input, r: int = 2, with_replacement: bool = False):
    """All combinations of ``r`` elements of a vector, in order."""
    checked_input("combinations", input)
    if not isinstance(with_replacement, bool):
        raise TypeError(
            f"combinations(): argument 'with_replacement' (position 3) must be bool, not {type(with_replacement).__name__}"
        )
    if isinstance(r, float):
        raise TypeError("combinations(): argument 'r' (position 2) must be int, not float")
    if r == 0:
        return input.new_empty(0)
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    n = input.numel()
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    count = math.comb(n + r - 1, r) if with_replacement and n else math.comb(n, r)
    # The memory first: what doesn't fit is an error at once.
    index = aten.empty.memory_format([count, r], dtype=dtypes.int64)
    index.numpy().reshape(-1)[:] = np.fromiter(itertools.chain.from_iterable(pick(range(n), r)), np.int64, count * r)
    return input[index]


def chain_matmul(*matrices, out=None):
    """Product of several matrices in the order that needs the fewest operations."""
    if out is not None:
        return aten.chain_matmul.out(list(matrices), out=out)
    return aten.chain_matmul.default(list(matrices))


def range_(start=0, end=None, step=1, *, dtype=None, device=None, requires_grad=False, out=None, layout=None):
    """As ``arange``, but with ``end`` in it (deprecated in PyTorch)."""
    if end is None:
        start, end = 0, start
    kind = dtype or (dtypes.get_default_dtype() if out is None else out.dtype)
    if kind.category in (0, 3):
        refused("range", kind)
    bounds = [b.item() if isinstance(b, (np.generic, Tensor)) else b for b in (start, end, step)]
    for b in bounds:
        if b.__class__ is complex:
            dtypes.check_number(b, dtypes.float64)
    if not all(map(math.isfinite, bounds[:2])):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    start, end, step = map(math.trunc, bounds) if kind.category == 1 else bounds
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    wide = dtypes.int64 if kind.category == 1 else dtypes.float64
    result = (arange(0, count, dtype=wide) * step + start).to(device=device, dtype=kind)
    if out is not None:
        result = aten.copy_.default(out.resize_(result.shape), result)
    return result.requires_grad_(requires_grad)


def vander(x, N=None, increasing: bool = False):  # noqa: N803
    """Powers of ``x``, one column each: from N - 1 down to 0, or up with ``increasing``."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.shape[-1] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    powers = arange(n, device=x.device) if increasing else arange(n - 1, -1, -1, device=x.device)
    return (x if n > 1 else x.detach()).unsqueeze(-1) ** powers  # ones alone carry no gradient


def frombuffer(buffer, *, dtype, count: int = -1, offset: int = 0, requires_grad: bool = False):
    """A one-dimensional tensor on the memory of an object with the buffer protocol. ValueError when it has none or doesn't hold ``count`` elements,
    RuntimeError when its bytes don't lie one after the other."""
    if not isinstance(dtype, dtypes.DType):
        raise TypeError(f"frombuffer(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not view.c_contiguous:
        raise RuntimeError("could not retrieve buffer from object: it isn't contiguous")
    nbytes, item = view.nbytes, dtype.itemsize
    if nbytes == 0 or count == 0:
        raise ValueError(f"both buffer length ({nbytes}) and count ({count}) must not be 0")
    if offset < 0 or offset >= nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({nbytes} bytes) minus 1"
        )
    if count < 0:
        if (nbytes - offset) % item:
            raise ValueError(
                f"buffer length ({nbytes - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({item})"
            )
        count = (nbytes - offset) // item
    if offset + count * item > nbytes:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must not be greater than actual buffer length "
            f"({nbytes} bytes)"
        )
    out = as_tensor(np.frombuffer(view, np.uint8, count * item, offset).view(dtype.np))
    return out.requires_grad_(requires_grad)


def from_file(
    filename,
    shared: bool = False,
    size: int = 0,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory: bool = False,
    requires_grad=False,
):
    """A tensor on a file's memory; with ``shared`` writes go into the file, which is made if it isn't there."""
    dtype = dtype or dtypes.get_default_dtype()
    if shared:
        with open(filename, "ab") as file:
            file.truncate(max(file.tell(), size * dtype.itemsize))
    mapped = np.memmap(filename, np.uint8, "r+" if shared else "c", 0, (size * dtype.itemsize,))
    return _C.from_array(mapped.view(np.ndarray).view(dtype.np)).requires_grad_(requires_grad)


tensordot, block_diag, cartesian_prod, chain_matmul = map(
    wrap_function, (tensordot, block_diag, cartesian_prod, chain_matmul)
)
combinations, vander = wrap_native(combinations), wrap_native(vander)


def _shape_as_tensor(input):
    """The sizes of a tensor, an int64 vector."""
    return tensor(list(input.shape), dtype=dtypes.int64)


def _no_grad_uniform_(tensor, a, b, generator=None):
    """Fill with draws between ``a`` and ``b``, unseen by autograd."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    """Fill with normal draws, unseen by autograd."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def replace_all_batch_norm_modules_(root):
    """Make every BatchNorm below ``root`` use the batch's statistics and keep none, as function transforms need. Returns ``root``."""
    from ..nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def location_tag(storage) -> str:
    """The device of a storage, as files name it."""
    return "cpu"


def default_restore_location(storage, location):
    """The storage on the device that a file names. RuntimeError for devices that aren't here."""
    if str(location) not in ("cpu", "meta"):
        raise RuntimeError(
            f"Attempting to deserialize object on {location}, which flambeau does not have; use torch.load with map_location=torch.device('cpu')"
        )
    return storage


def normalize_storage_type(storage_type):
    """``storage_type`` itself: classes of storages need no translation here."""
    return storage_type
