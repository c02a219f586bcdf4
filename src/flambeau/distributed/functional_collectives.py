"""``torch.distributed._functional_collectives``: collectives that return new tensors, operators with shape rules and derivatives, which capture puts
into the graph. They are done on return, so ``wait_tensor`` has nothing to wait for and no AsyncCollectiveTensor is ever made.

A group is a ProcessGroup, its name, a list of global ranks or a one-dimensional DeviceMesh. The operators have the name of the group as an argument
and effects: compiled code runs them in the order of the program, on all ranks.
"""

from __future__ import annotations

import numpy as np

from ..base.shapes import contiguous_strides
from ..core.declare import extern
from ..core.definition import TensorMeta
from ..core.operator import namespace
from . import world
from .elements import TYPES
from .engine import Kind, Transfer
from .process_group import ProcessGroup
from .reduce_op import RedOpType

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_reduce",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "wait_tensor",
]

_WORDS = {op.name.lower(): op for op in RedOpType if op.name != "UNUSED"}


class AsyncCollectiveTensor:
    """PyTorch's result of a collective that goes on. Here they are done on return."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("AsyncCollectiveTensor: functional collectives are done when they return")


def _op(word: str) -> RedOpType:
    found = _WORDS.get(word.lower())
    if found is None:
        raise ValueError(f"Invalid reduce operation {word}")
    return found


def _run(name: str, transfer: Transfer) -> None:
    world.resolve(name).submit(transfer, False)


def _raw(array):
    return array.reshape(-1).view(np.uint8)


def _rows(input, rows) -> TensorMeta:
    """A result of so many rows, in row-major order."""
    shape = (rows, *input.shape[1:])
    return TensorMeta(shape, contiguous_strides(shape), input.dtype, input.device)


def _same_shape(input, *rest):
    shape = tuple(input.shape)
    return TensorMeta(shape, contiguous_strides(shape), input.dtype, input.device)


def _gathered(input, group_size, group_name):
    return _rows(input, input.shape[0] * group_size)


def _scattered(input, reduce_op, group_size, group_name):
    return _rows(input, input.shape[0] // group_size)


def _exchanged(input, output_split_sizes, input_split_sizes, group_name):
    return _rows(input, sum(output_split_sizes))


_EFFECTS = {"variants": "", "tags": ("has_side_effects", "collective")}


@extern(
    "_c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor", meta=_same_shape, **_EFFECTS
)
def _all_reduce(input, reduce_op, group_name):
    out = np.array(input, order="C")
    transfer = Transfer(Kind.ALL_REDUCE, [out], [out], _type(out), int(_op(reduce_op)), 0, out.size)
    _run(group_name, transfer)
    return out


@extern("_c10d_functional::broadcast(Tensor input, int src, str group_name) -> Tensor", meta=_same_shape, **_EFFECTS)
def _broadcast(input, src, group_name):
    out = np.array(input, order="C")
    mine = world.resolve(group_name).rank() == src
    raw = [_raw(out)]
    _run(group_name, Transfer(Kind.BROADCAST, raw if mine else [], [] if mine else raw, root=src, count=out.nbytes))
    return out


@extern(
    "_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor",
    meta=_gathered,
    **_EFFECTS,
)
def _all_gather(input, group_size, group_name):
    given = np.ascontiguousarray(input)
    out = np.empty((given.shape[0] * group_size, *given.shape[1:]), given.dtype)
    pieces = list(_raw(out).reshape(group_size, given.nbytes))
    _run(group_name, Transfer(Kind.ALL_GATHER, [_raw(given)], pieces, count=given.nbytes))
    return out


@extern(
    "_c10d_functional::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor",
    meta=_scattered,
    **_EFFECTS,
)
def _reduce_scatter(input, reduce_op, group_size, group_name):
    given = np.ascontiguousarray(input)
    if given.shape[0] % group_size:
        raise RuntimeError(f"input dimension 0 ({given.shape[0]}) must be a multiple of group_size {group_size}")
    out = np.empty((given.shape[0] // group_size, *given.shape[1:]), given.dtype)
    pieces = list(given.reshape(group_size, -1))
    _run(group_name, Transfer(Kind.REDUCE_SCATTER, pieces, [out], _type(out), int(_op(reduce_op)), 0, out.size))
    return out


@extern(
    "_c10d_functional::all_to_all_single(Tensor input, int[] output_split_sizes, int[] input_split_sizes, str group_name) -> Tensor",
    meta=_exchanged,
    **_EFFECTS,
)
def _all_to_all(input, output_split_sizes, input_split_sizes, group_name):
    given = np.ascontiguousarray(input)
    out = np.empty((sum(output_split_sizes), *given.shape[1:]), given.dtype)

    def pieces(array, sizes):
        ends = np.cumsum(sizes)
        return [_raw(array[e - s : e]) for s, e in zip(sizes, ends)]

    _run(group_name, Transfer(Kind.ALL_TO_ALL, pieces(given, input_split_sizes), pieces(out, output_split_sizes)))
    return out


def _type(array) -> int:
    """The number of an array's dtype."""
    for dtype, number in TYPES.items():
        if dtype.np == array.dtype:
            return number
    raise RuntimeError(f"elements of {array.dtype} can't be reduced")


def _linear(reduce_op: str) -> None:
    if _op(reduce_op) not in (RedOpType.SUM, RedOpType.AVG):
        raise NotImplementedError(f"the derivative of a reduction by {reduce_op} isn't built; sum and avg have one")


def _of_all_reduce(ct, reduce_op, group_name):
    _linear(reduce_op)
    return _all_reduce(ct, reduce_op, group_name)


def _of_reduce_scatter(ct, reduce_op, group_size, group_name):
    _linear(reduce_op)
    out = _all_gather(ct, group_size, group_name)
    return out / group_size if _op(reduce_op) is RedOpType.AVG else out


_all_reduce.derivative(input=_of_all_reduce)
_all_gather.derivative(input=lambda ct, group_size, group_name: _reduce_scatter(ct, "sum", group_size, group_name))
_reduce_scatter.derivative(input=_of_reduce_scatter)
_all_to_all.derivative(
    input=lambda ct, output_split_sizes, input_split_sizes, group_name: _all_to_all(
        ct, input_split_sizes, output_split_sizes, group_name
    )
)


def _unbatched(op):
    def refuse(call, *values):
        raise RuntimeError(
            f"vmap: {op} is a collective, which has no batching rule: examples would be moved one by one. Call it outside of vmap"
        )

    op.override("batch", refuse)


for _collective in (_all_reduce, _broadcast, _all_gather, _reduce_scatter, _all_to_all):
    _unbatched(_collective)


# ---- public ------------------------------------------------------------------------------------------------


def _named(group) -> tuple[str, int]:
    """(name, ranks) of whatever tells a group."""
    if isinstance(group, ProcessGroup):
        return group.group_name, group.group_size
    return _looked_up(group)


def _looked_up(group) -> tuple[str, int]:
    if isinstance(group, str):
        return group, world.resolve(group).size()
    if isinstance(group, list):
        wanted = tuple(group)
        for name, pg in world.current().groups.items():
            if pg._ranks == wanted:
                return name, len(wanted)
        raise ValueError(f"there is no process group of the ranks {group}: make it with new_group")
    if hasattr(group, "get_group"):
        group = group.get_group()
    pg = world.of(group)
    return pg.group_name, pg.size()


_looked_up._dynamo_marked_constant = True  # of names and lists of ranks, which are guarded


def all_reduce(self, reduceOp: str, group, tag: str = ""):  # noqa: N803
    """The reduction ("sum", "avg", "product", "min", "max", ...) of all ranks' tensors."""
    return _all_reduce(self, reduceOp.lower(), _named(group)[0])


def broadcast(self, src: int, group, tag: str = ""):
    """The tensor of rank ``src`` of the group."""
    return _broadcast(self, src, _named(group)[0])


def all_gather_tensor(self, gather_dim: int, group, tag: str = ""):
    """All ranks' tensors, one after the other along ``gather_dim``."""
    name, size = _named(group)
    out = _all_gather(self.contiguous(), size, name)
    return out if gather_dim == 0 else namespace("aten").cat(out.chunk(size, 0), gather_dim)


def reduce_scatter_tensor(self, reduceOp: str, scatter_dim: int, group, tag: str = ""):  # noqa: N803
    """This rank's part along ``scatter_dim`` of the reduction of all ranks' tensors."""
    name, size = _named(group)
    if self.shape[scatter_dim] % size:
        raise ValueError(
            f"input dimension {scatter_dim} ({self.shape[scatter_dim]}) must be a multiple of group_size {size}"
        )
    if scatter_dim:
        self = namespace("aten").cat(self.chunk(size, scatter_dim))
    return _reduce_scatter(self.contiguous(), reduceOp.lower(), size, name)


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag: str = ""):
    """Parts of the first dimension to all ranks; equal parts unless sizes are given."""
    name, size = _named(group)
    equal = [self.shape[0] // size] * size
    return _all_to_all(self.contiguous(), list(output_split_sizes or equal), list(input_split_sizes or equal), name)


def permute_tensor(self, src_dst: list[int], group, tag: str = ""):
    """The tensor of the rank k with ``src_dst[k] == rank``."""
    name, size = _named(group)
    rank = world.resolve(name).rank()
    flat = self.contiguous().view(-1)
    n = flat.numel()
    sends = [n if d == src_dst[rank] else 0 for d in range(size)]
    receives = [n if src_dst[s] == rank else 0 for s in range(size)]
    return _all_to_all(flat, receives, sends, name).view(self.shape)


def wait_tensor(tensor):
    """The tensor: collectives are done when they return."""
    return tensor


all_gather_tensor_autograd, reduce_scatter_tensor_autograd = all_gather_tensor, reduce_scatter_tensor
all_to_all_single_autograd = all_to_all_single
