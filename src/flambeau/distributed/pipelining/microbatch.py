"""A batch as microbatches, and their results as one."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ... import _C
from ...base import pytree
from ...core.bindings import function

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks", "sum_reducer"]

cat, tensor_split, zeros = function("cat"), function("tensor_split"), function("zeros")


class TensorChunkSpec:
    """The dimension along which a tensor is cut into microbatches."""

    def __init__(self, split_dim: int):
        self.split_dim = split_dim

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]) -> tuple[TensorChunkSpec, ...]:
        """One for each positional argument."""
        return tuple(TensorChunkSpec(d) for d in chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]) -> dict[str, TensorChunkSpec]:
        """One for each keyword argument."""
        return {name: TensorChunkSpec(d) for name, d in chunk_dims.items()}

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"


class _Replicate:
    """In the place of a TensorChunkSpec: every microbatch gets the whole value."""


class _CustomReducer:
    """In the place of a TensorChunkSpec of an output: microbatches are put together by ``reduce_fn``, which starts with ``init_value``."""

    def __init__(self, init_value: Any, reduce_fn: Callable[[Any, Any], Any]):
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    pass


sum_reducer = _LossReducer(zeros(()), operator.add)
_BATCH_FIRST = TensorChunkSpec(0)
_WHOLE = _Replicate()


def _is_spec(x: Any) -> bool:
    return isinstance(x, (TensorChunkSpec, _Replicate, _CustomReducer))


def _is_mask(x: Any) -> bool:
    return hasattr(x, "kv_num_blocks")


def _specs_of(value: Any, spec: Any, name: str) -> list:
    """A specification for each leaf of one argument, which may have one for all of them."""
    leaves = pytree.tree_leaves(value)
    if spec is None:
        return [_BATCH_FIRST if isinstance(x, _C.TensorBase) else _WHOLE for x in leaves]
    if _is_spec(spec):
        return [spec if isinstance(x, _C.TensorBase) else _WHOLE for x in leaves]
    specs = pytree.tree_leaves(spec, is_leaf=_is_spec)
    if len(specs) != len(leaves):
        raise ValueError(f"{name} has {len(leaves)} values, but its chunk spec {spec} has {len(specs)}")
    return specs


def split_tensor(t, dim: int, chunks: int, name: str) -> tuple:
    """``chunks`` parts of a tensor."""
    if t.size(dim) < chunks:
        raise AssertionError(
            f"Tensor size {t.size(dim)} is smaller than num_chunks: {name} can't be cut into {chunks} microbatches along dimension {dim}"
        )
    return tensor_split(t, chunks, dim)


def _split_value(value: Any, spec: Any, chunks: int, name: str) -> list:
    """One argument for each microbatch."""
    if any(map(_is_mask, pytree.tree_leaves(value, is_leaf=_is_mask))):
        raise NotImplementedError(
            f"pipelining: {name} holds a BlockMask, which isn't cut into microbatches; make it in the stage"
        )
    leaves, structure = pytree.tree_flatten(value)
    parts: list[tuple] = []
    for x, s in zip(leaves, _specs_of(value, spec, name)):
        if isinstance(s, TensorChunkSpec) and isinstance(x, _C.TensorBase):
            parts.append(split_tensor(x, s.split_dim, chunks, name))
        elif isinstance(s, _Replicate) or not isinstance(x, _C.TensorBase):
            parts.append((x,) * chunks)
        else:
            raise ValueError(f"Unsupported chunk spec: {s} and value: {x} combination.")
    return [pytree.tree_unflatten([p[k] for p in parts], structure) for k in range(chunks)]


def split_args_kwargs_into_chunks(
    args: tuple,
    kwargs: dict[str, Any] | None,
    chunks: int,
    args_chunk_spec: tuple | None = None,
    kwargs_chunk_spec: dict[str, Any] | None = None,
) -> tuple[list[tuple], list[dict[str, Any]]]:
    """Arguments of ``chunks`` microbatches: a tuple and a dict for each.

    Tensors are cut along their first dimension unless their TensorChunkSpec names another; all else goes to each microbatch as it is.
    AssertionError for a tensor with fewer rows than microbatches, ValueError where specifications don't fit the arguments."""
    kwargs = kwargs or {}
    if args_chunk_spec is not None and len(args_chunk_spec) != len(args):
        raise ValueError(f"args_chunk_spec has {len(args_chunk_spec)} entries for {len(args)} arguments")
    if kwargs_chunk_spec is not None and set(kwargs_chunk_spec) != set(kwargs):
        raise ValueError(
            f"kwargs_chunk_spec names {sorted(kwargs_chunk_spec)}, the keyword arguments are {sorted(kwargs)}"
        )
    specs = args_chunk_spec or (None,) * len(args)
    positional = [_split_value(v, s, chunks, f"argument {k}") for k, (v, s) in enumerate(zip(args, specs))]
    named = {n: _split_value(v, (kwargs_chunk_spec or {}).get(n), chunks, f"argument {n!r}") for n, v in kwargs.items()}
    return (
        [tuple(p[k] for p in positional) for k in range(chunks)],
        [{n: parts[k] for n, parts in named.items()} for k in range(chunks)],
    )


def _merged(values: list, spec: Any) -> Any:
    if isinstance(spec, TensorChunkSpec):
        return cat(values, spec.split_dim)
    if isinstance(spec, _CustomReducer):
        out = spec.init_value
        for v in values:
            out = spec.reduce_fn(out, v)
        return out
    for v in values[1:]:
        if v is not values[0] and (isinstance(v, _C.TensorBase) or v != values[0]):
            raise AssertionError(f"Expected {values[0]}, got {v}: microbatches disagree about an output that isn't cut")
    return values[0]


def merge_chunks(chunks: list, chunk_spec: Any) -> Any:
    """Results of microbatches as one: tensors are joined along the dimension that ``chunk_spec`` names for them (the first), reducers applied."""
    if not chunks:
        return []
    leaves, structure = pytree.tree_flatten(chunks[0])
    if chunk_spec is None:
        specs: list = [_BATCH_FIRST if isinstance(x, _C.TensorBase) else _WHOLE for x in leaves]
    else:
        specs = [chunk_spec] if _is_spec(chunk_spec) else pytree.tree_leaves(chunk_spec, is_leaf=_is_spec)
        specs = specs * len(leaves) if _is_spec(chunk_spec) else specs
    rows = []
    for chunk in chunks:
        row, other = pytree.tree_flatten(chunk)
        if other != structure or len(specs) != len(row):
            raise ValueError(f"Chunk {chunk} did not match chunk spec {chunk_spec}")
        rows.append(row)
    return pytree.tree_unflatten([_merged(list(column), s) for column, s in zip(zip(*rows), specs)], structure)
