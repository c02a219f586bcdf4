"""Communication hooks of DistributedDataParallel: how one bucket of gradients is reduced.

A hook is ``hook(state, bucket) -> Future`` whose value is the reduced buffer.
"""

from __future__ import annotations

import enum

from ..base.dtypes import bfloat16, float16
from . import collectives, world
from .futures import Future

__all__ = [
    "BuiltinCommHookType",
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "builtin",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
    "noop_hook",
]


class BuiltinCommHookType(enum.Enum):
    ALLREDUCE = 0
    FP16_COMPRESS = 1


def _reduced(group, tensor):
    """A future of the mean of ``tensor`` over the ranks."""
    pg = world.of(group)
    work = collectives.all_reduce(tensor, collectives.ReduceOp.AVG, pg, async_op=True)
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group, bucket) -> Future:
    """The mean, as without a hook."""
    return _reduced(process_group, bucket.buffer())


def _compressed(group, bucket, dtype) -> Future:
    """The mean of the gradients in ``dtype``."""
    wide = bucket.buffer()

    def widen(future):
        wide._array[...] = future.value()._array
        return wide

    return _reduced(group, wide.to(dtype)).then(widen)


def fp16_compress_hook(process_group, bucket) -> Future:
    """Gradients travel as float16: half the bytes."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group, bucket) -> Future:
    """Gradients travel as bfloat16."""
    return _compressed(process_group, bucket, bfloat16)


def _wrapper(hook, dtype):
    def wrapped(state, bucket) -> Future:
        wide = bucket.buffer()
        bucket.set_buffer(wide.to(dtype))

        def widen(future):
            value = future.value()
            wide._array[...] = (value[0] if isinstance(value, list) else value)._array
            bucket.set_buffer(wide)
            return wide

        return hook(state, bucket).then(widen)

    return wrapped


def fp16_compress_wrapper(hook):
    """``hook`` on buckets in float16."""
    return _wrapper(hook, float16)


def bf16_compress_wrapper(hook):
    """``hook`` on buckets in bfloat16."""
    return _wrapper(hook, bfloat16)


def noop_hook(_, bucket) -> Future:
    """No reduction: to measure what it costs."""
    out = Future()
    out.set_result(bucket.buffer())
    return out


def builtin(kind):
    """The hook of a BuiltinCommHookType."""
    return {BuiltinCommHookType.ALLREDUCE: allreduce_hook, BuiltinCommHookType.FP16_COMPRESS: fp16_compress_hook}[kind]
