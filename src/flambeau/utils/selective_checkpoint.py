"""Selective checkpoints: chosen operators' results are kept from the first run and given back in the second, all others are computed again.

Two dispatch modes over one storage, {operator: [result or _AGAIN, in the order of calls]}: the first runs in the forward and asks the policy, the
second in the recomputation. Invariant: both runs make the same calls of each operator in the same order.
"""

from __future__ import annotations

import collections
import enum

from ..base.public import public_in
from ..base.pytree import tree_map
from ..core.higher_order import HigherOrderOperator
from ..core.operator import OpOverload, Packet, namespace
from ..core.tensor import Tensor
from ._python_dispatch import TorchDispatchMode

__all__ = ["SAC_IGNORED_OPS", "CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]

# Saving a value for the backward detaches it, which the two runs don't do equally often.
SAC_IGNORED_OPS = {namespace("aten").detach.default}


@public_in("utils.checkpoint")
class CheckpointPolicy(enum.Enum):
    """What happens to an operator's result. ``MUST`` and ``PREFER`` are the same here, and nothing is moved to another device."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_KEPT = frozenset(
    {
        CheckpointPolicy.MUST_SAVE,
        CheckpointPolicy.PREFER_SAVE,
        CheckpointPolicy.MUST_CPU_OFFLOAD,  # the results are on the CPU already
        CheckpointPolicy.PREFER_CPU_OFFLOAD,
    }
)
_AGAIN, _GIVEN = object(), object()


@public_in("utils.checkpoint")
class SelectiveCheckpointContext:
    """What a policy is told besides the operator and its arguments: ``op_output``, and ``is_recompute``, which is always False (policies are asked in
    the forward only)."""

    def __init__(self, *, is_recompute: bool, op_output=None):
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Kept:
    """A result and the version it had."""

    def __init__(self, value):
        tensor = isinstance(value, Tensor)
        self.value = value.detach() if tensor else value
        self.version = value._writes if tensor else None

    def get(self, may_have_changed: bool):
        if self.version is not None and self.value._writes != self.version and not may_have_changed:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated. Pass allow_cache_entry_mutation=True to "
                "create_selective_checkpoint_contexts when that is meant."
            )
        return self.value


class _Caching(TorchDispatchMode):
    sees_parts = True

    def __init__(self, policy, storage):
        super().__init__()
        self.policy, self.storage = policy, storage

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func in SAC_IGNORED_OPS:
            return out
        choice = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), func, *args, **kwargs)
        keep = choice if isinstance(choice, bool) else choice in _KEPT
        self.storage[func].append(tree_map(_Kept, out) if keep else _AGAIN)
        return out


class _Cached(TorchDispatchMode):
    sees_parts = True

    def __init__(self, storage, may_have_changed: bool):
        super().__init__()
        self.storage, self.may_have_changed = storage, may_have_changed
        self.calls: collections.Counter = collections.Counter()

    def __enter__(self):
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        index = self.calls[func]
        self.calls[func] += 1
        entries = self.storage.get(func, ())
        if index >= len(entries):
            raise RuntimeError(
                f"{func} (call {index}) encountered during backward but not found in storage. This can happen if the operations in the "
                "checkpointed region are nondeterministic or depend on global state that changed between forward and backward."
            )
        entry = entries[index]
        if entry is _AGAIN:
            return func(*args, **(kwargs or {}))
        if entry is _GIVEN:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective "
                "activation checkpoint."
            )
        entries[index] = _GIVEN
        return tree_map(lambda kept: kept.get(self.may_have_changed), entry)


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation: bool = False):
    """The two contexts for ``checkpoint(..., use_reentrant=False, context_fn=partial(create_selective_checkpoint_contexts, policy))``.

    ``policy_fn_or_list``: ``policy(ctx, op, *args, **kwargs)``, which returns a :class:`CheckpointPolicy` (or whether to keep the result), or a list
    of operators whose results are kept. A kept tensor that was written to since is a RuntimeError unless ``allow_cache_entry_mutation``.
    Raises ValueError for a list of other things, TypeError for neither. In compiled code the partitioner decides what is kept.
    """
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, OpOverload | HigherOrderOperator):
                hint = " Please update the OpOverloadPacket to a specific OpOverload, e.g. torch.ops.aten.mm.default."
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}."
                    + (hint if isinstance(op, Packet) else "")
                )
        kept = list(policy_fn_or_list)

        def policy(ctx, op, *args, **kwargs):
            return op in kept

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict = collections.defaultdict(list)
    return _Caching(policy, storage), _Cached(storage, allow_cache_entry_mutation)
