"""From samples to a batch."""

from __future__ import annotations

import collections.abc
import copy
import re

import numpy as np

from ...core.bindings import function
from ...core.conversion import as_tensor, tensor
from ...core.tensor import Tensor

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

stack = function("stack")
_TEXT = re.compile(r"[SaUO]")
_MESSAGE = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def default_convert(data):
    """NumPy arrays to tensors, inside containers too; all else as it is."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, np.ndarray | np.generic):
        return data if isinstance(data, np.ndarray) and _TEXT.search(data.dtype.str) else as_tensor(data)
    if isinstance(data, collections.abc.Mapping):
        return _like(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, str | bytes):
        return _like(data, [default_convert(v) for v in data])
    return data


def _like(original, values):
    try:
        if isinstance(original, collections.abc.MutableMapping):
            out = copy.copy(original)
            out.update(values)
            return out
        if isinstance(original, collections.abc.MutableSequence):
            out = copy.copy(original)
            out[:] = values
            return out
        return type(original)(values)
    except TypeError:  # a container that can't be made from its values
        return values


def collate(batch, *, collate_fn_map=None):
    """One value from a list of samples, by the type of the first: ``collate_fn_map`` gives functions, containers are gone into."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, fn in collate_fn_map.items():
            if isinstance(first, known):
                return fn(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        return _like(first, {key: collate([d[key] for d in batch], collate_fn_map=collate_fn_map) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(values, collate_fn_map=collate_fn_map) for values in zip(*batch)))
    if isinstance(first, collections.abc.Sequence) and not isinstance(first, str | bytes):
        if not all(len(d) == len(first) for d in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(values, collate_fn_map=collate_fn_map) for values in zip(*batch)]
        return columns if isinstance(first, tuple) else _like(first, columns)
    raise TypeError(_MESSAGE.format(kind))


def _tensors(batch, *, collate_fn_map=None):
    return stack(list(batch), 0)


def _arrays(batch, *, collate_fn_map=None):
    if _TEXT.search(batch[0].dtype.str):
        raise TypeError(_MESSAGE.format(batch[0].dtype))
    return stack([as_tensor(a) for a in batch], 0)


def _scalars(batch, *, collate_fn_map=None):
    return as_tensor(np.asarray(batch))


def _floats(batch, *, collate_fn_map=None):
    return tensor(list(batch), dtype=_float64)


def _ints(batch, *, collate_fn_map=None):
    return tensor(list(batch))


def _strings(batch, *, collate_fn_map=None):
    return batch


_float64 = as_tensor(np.zeros(1)).dtype
default_collate_fn_map = {
    Tensor: _tensors,
    np.ndarray: _arrays,
    (np.bool_, np.number, np.object_): _scalars,
    float: _floats,
    int: _ints,
    str: _strings,
    bytes: _strings,
}


def _kind(x) -> str:
    return f"tensor of shape {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__


def _apart(batch, path: str = "") -> str | None:
    """Where the samples of a batch are not alike: the first such place. None when they are."""
    first = batch[0]
    for i, other in enumerate(batch):
        alike = isinstance(other, type(first)) or isinstance(first, type(other))
        if not alike or isinstance(first, Tensor) and first.shape != other.shape:
            return f"sample[0]{path} is a {_kind(first)}, sample[{i}]{path} a {_kind(other)}"
        if (
            isinstance(first, collections.abc.Mapping)
            and (gone := next((k for k in first if k not in other), None)) is not None
        ):
            return f"sample[0]{path} has the key {gone!r}, sample[{i}]{path} hasn't"
        if isinstance(first, tuple | list) and len(first) != len(other):
            return f"sample[0]{path} has {len(first)} elements, sample[{i}]{path} has {len(other)}"
    places: collections.abc.Iterable = ()
    if isinstance(first, collections.abc.Mapping):
        places = first
    elif isinstance(first, tuple | list):
        places = range(len(first))
    return next(filter(None, (_apart([d[k] for d in batch], f"{path}[{k!r}]") for k in places)), None)


def default_collate(batch):
    """Stack tensors and arrays, make tensors of numbers, go into containers. TypeError for what has no batch form; a note says which samples
    don't fit together."""
    try:
        return collate(batch, collate_fn_map=default_collate_fn_map)
    except (TypeError, ValueError, RuntimeError, KeyError) as error:
        where = _apart(batch)
        if where is not None:
            error.add_note(f"The samples make no batch: {where}. Make them alike, or give DataLoader a collate_fn.")
        raise
