"""The collectives of ``torch.distributed``: tensors in, an operation for the group's queue out.

Tensors may have any strides: one that isn't contiguous goes through a copy. Every rank of the group calls the same collective with tensors
of the same size and dtype, in the same order; ranks that don't agree get a DistBackendError that lists the call of each rank.
"""

from __future__ import annotations

import numpy as np

from .. import _C
from ..autograd.grad_mode import no_grad
from . import packed, world
from .coalescing import gathering
from .elements import TYPES, bytes_of, contiguous, plain
from .engine import Kind, Transfer
from .monitor import waited_for
from .process_group import ProcessGroup
from .queries import supports_complex
from .reduce_op import ReduceOp, native
from .work import Work

__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
]


def outsider(group) -> bool:
    """Whether this rank isn't in the group: PyTorch's collectives then do nothing."""
    return group == world.GroupMember.NON_GROUP_MEMBER


def check_list(tensors, name: str) -> list:
    if not isinstance(tensors, list | tuple):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor] but got {type(tensors)} instead."
        )
    for t in tensors:
        plain(t, name)
    return list(tensors)


def root_of(pg: ProcessGroup, global_rank: int | None, group_rank: int | None, name: str) -> int:
    """The root's rank in the group, from whichever of the two was given."""
    if global_rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both {name} and group_{name}")
    if group_rank is not None:
        if not 0 <= group_rank < pg.size():
            raise ValueError(f"Group rank {group_rank} is not part of group {pg.group_name}")
        return group_rank
    return pg.group_rank(0 if global_rank is None else global_rank)


class Result:
    """A tensor that a collective writes: its contiguous memory, and the way back when that is a copy."""

    def __init__(self, t, name: str, keep: bool = False):
        self.t, self.own = t, plain(t, name)
        if self.own.flags.c_contiguous:
            self.array = self.own
        else:
            self.array = np.ascontiguousarray(self.own) if keep else np.empty(self.own.shape, self.own.dtype)

    def finish(self) -> None:
        if self.array is not self.own:
            self.own[...] = self.array
        self.t._bump_version()


def finishing(results: list[Result], more=None):
    def after():
        if more is not None:
            more()
        for r in results:
            r.finish()

    return after


def _sent(t, name: str) -> np.ndarray:
    return contiguous(plain(t, name))


def _raw(arrays: list[np.ndarray]) -> list[np.ndarray]:
    return [bytes_of(a) for a in arrays]


def _dtype(t, what: str) -> int:
    if t.dtype not in TYPES:
        raise RuntimeError(f"{what}: tensors of {t.dtype} can be moved, not reduced")
    return TYPES[t.dtype]


def _scaled(array: np.ndarray, factor) -> np.ndarray:
    """The input of PREMUL_SUM."""
    return (
        array
        if factor is None
        else np.asarray(array * np.asarray(getattr(factor, "_array", factor), array.dtype), array.dtype)
    )


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op: bool = False) -> Work | None:
    """Make ``tensor`` the reduction of all ranks' tensors, the same bits on all ranks."""
    if outsider(group):
        return None
    pg = world.of(group)
    if packed.is_sparse(tensor):
        return _sparse_all_reduce(pg, tensor, op, async_op)
    out = Result(tensor, "tensor", keep=True)
    reduces(op, tensor.dtype)
    number, factor = native(op, tensor.dtype)
    type_ = _dtype(tensor, "all_reduce")
    if factor is not None:
        out.array[...] = _scaled(out.array, factor)
    transfer = Transfer(Kind.ALL_REDUCE, [out.array], [out.array], type_, number, 0, out.array.size)
    return submit(pg, transfer, async_op, [tensor], finishing([out]))


def reduces(op, dtype) -> None:
    """ValueError for a reduction that complex numbers have none of."""
    kind = ReduceOp(op).op
    if dtype.is_complex and not supports_complex(kind):
        raise ValueError(f"all_reduce does not support ReduceOp.{kind.name} on complex tensors")


def _sparse_all_reduce(pg: ProcessGroup, tensor, op, async_op: bool) -> Work | None:
    """Sums only. It is done on return, and so is its Work."""
    if ReduceOp(op).op is not ReduceOp.SUM:
        raise RuntimeError("sparse allreduce only works with ReduceOp.SUM")
    total = packed.sparse_sum(tensor, lambda out, t: all_gather(out, t, pg), pg.size())
    event = pg.event("sparse_all_reduce", (tensor,))
    with no_grad():
        tensor.copy_(total)
    _C.event_end(event)
    if not async_op:
        return None
    work = Work("all_reduce", [tensor])
    work._finish()
    return work


def submit(
    pg: ProcessGroup, transfer: Transfer | list[Transfer], async_op: bool, result, after, given=None
) -> Work | None:
    """Run it, or keep it for the end of a coalescing block."""
    manager = gathering(pg)
    if manager is not None:
        manager.append(pg.submit(transfer, True, result, after, given=given))
        return None
    return pg.submit(transfer, async_op, result, after, given=given)


def reduce(
    tensor, dst: int | None = None, op=ReduceOp.SUM, group=None, async_op: bool = False, group_dst: int | None = None
):
    """As all_reduce, on rank ``dst`` alone; elsewhere the tensor is left as it is."""
    if outsider(group):
        return None
    pg = world.of(group)
    root = root_of(pg, dst, group_dst, "dst")
    number, factor = native(op, tensor.dtype)
    out = Result(tensor, "tensor", keep=True)
    sent = _scaled(out.array, factor)
    mine = pg.rank() == root
    transfer = Transfer(
        Kind.REDUCE, [sent], [out.array] if mine else [], _dtype(tensor, "reduce"), number, root, sent.size
    )
    return submit(pg, transfer, async_op, [tensor], finishing([out] if mine else []))


def broadcast(tensor, src: int | None = None, group=None, async_op: bool = False, group_src: int | None = None):
    """Make ``tensor`` what it is on rank ``src``."""
    if outsider(group):
        return None
    pg = world.of(group)
    root = root_of(pg, src, group_src, "src")
    mine = pg.rank() == root
    out = Result(tensor, "tensor", keep=mine)
    pieces = _raw([out.array])
    transfer = Transfer(
        Kind.BROADCAST, pieces if mine else [], [] if mine else pieces, root=root, count=out.array.nbytes
    )
    return submit(pg, transfer, async_op, [tensor], finishing([] if mine else [out]))


def _same(tensors, name: str, nbytes: int) -> None:
    for t in tensors:
        if plain(t, name).nbytes != nbytes:
            raise ValueError(f"{name}: a tensor of {plain(t, name).nbytes} bytes, expected {nbytes}")


def _length(tensors, pg: ProcessGroup, name: str) -> None:
    if len(tensors) != pg.size():
        raise ValueError(f"{name} has {len(tensors)} tensors, the group {pg.size()} ranks")


def all_gather(tensor_list, tensor, group=None, async_op: bool = False):
    """``tensor_list[k]`` becomes the tensor of rank k."""
    if outsider(group):
        return None
    pg = world.of(group)
    check_list(tensor_list, "tensor_list")
    _length(tensor_list, pg, "tensor_list")
    sent = _sent(tensor, "tensor")
    if any(t.dtype != tensor.dtype for t in tensor_list):
        raise ValueError("Invalid usage of tensors with different dtypes")
    _same(tensor_list, "tensor_list", sent.nbytes)
    out = [Result(t, "tensor_list") for t in tensor_list]
    transfer = Transfer(Kind.ALL_GATHER, _raw([sent]), _raw([r.array for r in out]), count=sent.nbytes)
    return submit(pg, transfer, async_op, list(tensor_list), finishing(out), (tensor,))


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op: bool = False):
    """``output_tensor``, of as many elements as all inputs: the inputs one after the other (concatenated or stacked)."""
    if outsider(group):
        return None
    pg = world.of(group)
    sent = _sent(input_tensor, "input_tensor")
    out = Result(output_tensor, "output_tensor")
    if output_tensor.dtype != input_tensor.dtype:
        raise TypeError("output tensor must have the same type as input tensor")
    if out.array.nbytes != sent.nbytes * pg.size():
        raise ValueError("output tensor size must be equal to world_size times input tensor size")
    pieces = list(bytes_of(out.array).reshape(pg.size(), sent.nbytes))
    transfer = Transfer(Kind.ALL_GATHER, _raw([sent]), pieces, count=sent.nbytes)
    return submit(pg, transfer, async_op, [output_tensor], finishing([out]), (input_tensor,))


def gather(
    tensor, gather_list=None, dst: int | None = None, group=None, async_op: bool = False, group_dst: int | None = None
):
    """On rank ``dst`` ``gather_list[k]`` becomes the tensor of rank k."""
    if outsider(group):
        return None
    pg = world.of(group)
    root = root_of(pg, dst, group_dst, "dst")
    sent = _sent(tensor, "tensor")
    mine = pg.rank() == root
    out = []
    if mine:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _length(gather_list, pg, "gather_list")
        _same(check_list(gather_list, "gather_list"), "gather_list", sent.nbytes)
        out = [Result(t, "gather_list") for t in gather_list]
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    transfer = Transfer(Kind.GATHER, _raw([sent]), _raw([r.array for r in out]), root=root, count=sent.nbytes)
    return submit(pg, transfer, async_op, list(gather_list or []), finishing(out), (tensor,))


def scatter(
    tensor, scatter_list=None, src: int | None = None, group=None, async_op: bool = False, group_src: int | None = None
):
    """``tensor`` becomes ``scatter_list[rank]`` of rank ``src``."""
    if outsider(group):
        return None
    pg = world.of(group)
    root = root_of(pg, src, group_src, "src")
    out = Result(tensor, "tensor")
    sends = []
    if pg.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _length(scatter_list, pg, "scatter_list")
        _same(check_list(scatter_list, "scatter_list"), "scatter_list", out.array.nbytes)
        sends = [_sent(t, "scatter_list") for t in scatter_list]
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    transfer = Transfer(Kind.SCATTER, _raw(sends), _raw([out.array]), root=root, count=out.array.nbytes)
    return submit(pg, transfer, async_op, [tensor], finishing([out]))


def _reduce_scatter(pg, result: Result, sends: list[np.ndarray], op, async_op: bool):
    number, factor = native(op, result.t.dtype)
    sends = [_scaled(a, factor) for a in sends]
    out = result.array
    # A reduction may begin to write before it has read: not over what it reads.
    target = out if not any(np.shares_memory(out, a) for a in sends) else np.empty_like(out)

    def copy():
        if target is not out:
            out[...] = target

    transfer = Transfer(
        Kind.REDUCE_SCATTER, sends, [target], _dtype(result.t, "reduce_scatter"), number, 0, target.size
    )
    return submit(pg, transfer, async_op, [result.t], finishing([result], copy))


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """``output`` becomes the reduction of all ranks' ``input_list[rank]``."""
    if outsider(group):
        return None
    pg = world.of(group)
    check_list(input_list, "input_list")
    _length(input_list, pg, "input_list")
    result = Result(output, "output")
    _same(input_list, "input_list", result.array.nbytes)
    if any(t.dtype != output.dtype for t in input_list):
        raise ValueError("Invalid usage of tensors with different dtypes")
    return _reduce_scatter(pg, result, [_sent(t, "input_list") for t in input_list], op, async_op)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """``output`` becomes the reduction of all ranks' ``input``, of which it takes the part of this rank."""
    if outsider(group):
        return None
    pg = world.of(group)
    result = Result(output, "output")
    sent = _sent(input, "input")
    if output.dtype != input.dtype:
        raise TypeError("input tensor must be the same type as the output tensor.")
    if sent.size != result.array.size * pg.size():
        raise ValueError("input tensor must be the same size as output size times world size")
    return _reduce_scatter(pg, result, list(sent.reshape(pg.size(), result.array.size)), op, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op: bool = False):
    """``output_tensor_list[k]`` becomes ``input_tensor_list[rank]`` of rank k; sizes may differ."""
    if outsider(group):
        return None
    pg = world.of(group)
    check_list(output_tensor_list, "output_tensor_list")
    check_list(input_tensor_list, "input_tensor_list")
    _length(output_tensor_list, pg, "output_tensor_list")
    _length(input_tensor_list, pg, "input_tensor_list")
    sends = [_sent(t, "input_tensor_list") for t in input_tensor_list]
    out = [Result(t, "output_tensor_list") for t in output_tensor_list]
    transfer = Transfer(Kind.ALL_TO_ALL, _raw(sends), _raw([r.array for r in out]))
    return submit(pg, transfer, async_op, list(output_tensor_list), finishing(out))


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op: bool = False
):
    """As all_to_all, of parts of two tensors along their first dimension: equal parts unless split sizes are given."""
    if outsider(group):
        return None
    pg = world.of(group)
    sent, result = _sent(input, "input"), Result(output, "output")

    def parts(array, sizes):
        n = array.shape[0] if array.ndim else 0
        if not sizes:
            if n % pg.size():
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [n // pg.size()] * pg.size()
        if len(sizes) != pg.size():
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != n:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        ends = np.cumsum(sizes)
        return [array[e - s : e] for s, e in zip(sizes, ends)]

    sends, receives = parts(sent, input_split_sizes), parts(result.array, output_split_sizes)
    transfer = Transfer(Kind.ALL_TO_ALL, _raw(sends), _raw(receives))
    return submit(pg, transfer, async_op, [output], finishing([result]))


def barrier(group=None, async_op: bool = False, device_ids=None):
    """Return when all ranks have come here."""
    if outsider(group):
        return None
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError(f"Invalid function argument: device_ids type should be List[int], but got {type(device_ids)}")
    return world.of(group).submit(Transfer(Kind.BARRIER), async_op, [])


def monitored_barrier(group=None, timeout=None, wait_all_ranks: bool = False) -> None:
    """A barrier whose error names the ranks that did not come within ``timeout`` (all of them with ``wait_all_ranks``)."""
    if outsider(group):
        return
    pg = world.of(group)
    limit = pg.timeout if timeout is None else timeout
    store, number = pg.get_group_store(), pg.next_number("monitored")
    key = f"monitored_barrier/{number}"
    store.set(f"{key}/{pg.rank()}", b"")
    waited_for(store, pg, key, limit, wait_all_ranks)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op: bool = False):
    """all_reduce of each tensor, as one operation on their elements."""
    if outsider(group):
        return None
    pg, tensors = world.of(group), check_list(tensors, "tensors")
    parts = [[t for t in tensors if t.dtype is dtype] for dtype in dict.fromkeys(t.dtype for t in tensors)]
    together, transfers = [], []
    for part in parts:
        reduces(op, part[0].dtype)
        elements = packed.flat(part)
        number, factor = native(op, elements.dtype)
        array = elements._array
        if factor is not None:
            array[...] = _scaled(array, factor)
        together.append(elements)
        type_ = _dtype(elements, "all_reduce")
        transfers.append(Transfer(Kind.ALL_REDUCE, [array], [array], type_, number, 0, array.size))

    def give_back():
        for elements, part in zip(together, parts):
            packed.give_back(elements, part)

    return submit(pg, transfers, async_op, tensors, give_back)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op: bool = False):
    """``output_tensor_lists[k]`` become the tensors of rank k, all by one operation. ValueError for lists of other lengths or sizes."""
    if outsider(group):
        return None
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    pg, given = world.of(group), check_list(input_tensor_list, "input_tensor_list")
    _length(output_tensor_lists, pg, "output_tensor_lists")
    for outputs in output_tensor_lists:
        if [t.shape for t in check_list(outputs, "output_tensor_lists")] != [t.shape for t in given]:
            raise ValueError("output_tensor_lists: each rank's tensors must have the shapes of input_tensor_list")
    sent = packed.flat(given)
    taken = sent.new_empty((pg.size(), sent.numel()))

    def give_back():
        for row, outputs in zip(taken, output_tensor_lists):
            packed.give_back(row, outputs)

    transfer = Transfer(
        Kind.ALL_GATHER, _raw([sent._array]), list(bytes_of(taken._array).reshape(pg.size(), -1)), count=sent.nbytes
    )
    results = [t for outputs in output_tensor_lists for t in outputs]
    return submit(pg, transfer, async_op, results, give_back, tuple(given))
