"""Collectives that can be differentiated, ``torch.distributed.nn.functional``: each backward is the transposed collective, so gradients are those of
the sum of all ranks' losses. All ranks must run the backward."""

from __future__ import annotations

from ..autograd.function import Function
from ..core.bindings import function
from . import collectives, world
from .reduce_op import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]

empty_like, zeros_like, stack = function("empty_like"), function("zeros_like"), function("stack")


def _summed(t, group):
    out = t.detach().clone().contiguous()
    collectives.all_reduce(out, ReduceOp.SUM, group)
    return out


def _exchanged(parts, group, like=None):
    """What the other ranks have for this one."""
    out = [empty_like(p).contiguous() for p in (like or parts)]
    collectives.all_to_all(out, [p.detach().contiguous() for p in parts], group)
    return out


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        if op not in (ReduceOp.SUM, ReduceOp.AVG):
            raise NotImplementedError(f"the derivative of all_reduce by {op} isn't built; SUM and AVG have one")
        ctx.op, ctx.group = op, group
        out = tensor.detach().clone().contiguous()
        collectives.all_reduce(out, op, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        out = [empty_like(tensor).contiguous() for _ in range(world.get_world_size(group))]
        collectives.all_gather(out, tensor.detach().contiguous(), group)
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        parts = _exchanged(list(grads), ctx.group)
        return None, stack(parts).sum(0)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        out = tensor.detach().clone().contiguous()
        collectives.broadcast(out, src, group)
        return out

    @staticmethod
    def backward(ctx, grad):
        total = _summed(grad, ctx.group)
        mine = world.get_rank(ctx.group) == world.of(ctx.group).group_rank(ctx.src)
        return None, None, total if mine else zeros_like(total)


class _AllToAll(Function):
    @staticmethod
    def forward(ctx, group, sizes, *tensors):
        ctx.group, ctx.shapes = group, [t.shape for t in tensors]
        out = [tensors[0].new_empty(s) for s in sizes]
        collectives.all_to_all(out, [t.detach().contiguous() for t in tensors], group)
        return tuple(out)

    @staticmethod
    def backward(ctx, *grads):
        return None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *(g.contiguous() for g in grads))


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The reduction of all ranks' tensors, a new tensor."""
    return _AllReduce.apply(op, world.of(group), tensor)


def all_gather(tensor, group=None) -> tuple:
    """The tensors of all ranks."""
    return _AllGather.apply(world.of(group), tensor)


def broadcast(tensor, src: int, group=None):
    """Rank ``src``'s tensor."""
    return _Broadcast.apply(src, world.of(group), tensor)


def all_to_all(output_tensor_list, input_tensor_list, group=None) -> tuple:
    """Tensor k of rank r becomes tensor r of rank k; ``output_tensor_list`` tells the sizes."""
    return _AllToAll.apply(world.of(group), [t.shape for t in output_tensor_list], *input_tensor_list)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """As all_to_all, of parts along the first dimension."""
    n = world.get_world_size(group)
    parts = input.split(input_split_sizes or input.shape[0] // n)
    rows = output_split_sizes or [output.shape[0] // n] * n
    return function("cat")(_AllToAll.apply(world.of(group), [(r, *output.shape[1:]) for r in rows], *parts))


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """The reduction of what all ranks have for this one."""
    if op != ReduceOp.SUM:
        raise NotImplementedError("the derivative of reduce_scatter is built for SUM only")
    return stack(all_to_all([output] * len(input_list), input_list, group)).sum(0)


def reduce(tensor, dst: int, op=ReduceOp.SUM, group=None):
    """The reduction on rank ``dst``; elsewhere the tensor as it is."""
    total = all_reduce(tensor, op, group)
    return total if world.get_rank(group) == world.of(group).group_rank(dst) else tensor + 0 * total


def gather(tensor, dst: int = 0, group=None) -> tuple:
    """The tensors of all ranks on rank ``dst``, zeros elsewhere."""
    parts = all_gather(tensor, group)
    return parts if world.get_rank(group) == world.of(group).group_rank(dst) else tuple(p * 0 for p in parts)


def scatter(tensors, src: int = 0, group=None):
    """Rank ``src``'s tensor for this rank."""
    own = world.get_rank(group)
    return broadcast(stack(list(tensors)), src, group)[own]
