"""``vmap``: a function of one example made a function of a batch of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from ..base import pytree
from ..batching import level, wrap
from ..batching.by_name import batches_itself, level_of, remove_batch_dim
from ..batching.levels import movedim, value_at
from ..core.bindings import function
from ..core.generator import default_generator
from ..core.operator import namespace
from .ndarrays import holds_arrays, on_arrays, tensor_form

__all__ = ["chunk_vmap", "maybe_remove_batch_dim", "restore_vmap", "vmap"]

aten = namespace("aten")
_cat = function("cat")


def _flatten(tree):
    """Leaves and structure; a container that carries mapping out itself is a leaf."""
    return pytree.tree_flatten(tree, is_leaf=batches_itself)


def _name(func) -> str:
    return getattr(func, "__name__", None) or repr(func)


def broadcast_prefix(prefix, tree) -> list | None:
    """``prefix`` (a leaf, or a structure whose leaves stand for whole parts of ``tree``) as one leaf for each leaf of
    ``tree``; None when it doesn't fit."""
    leaves, _ = _flatten(tree)
    if not isinstance(prefix, (tuple, list, dict)):
        return [prefix] * len(leaves)
    if _is_leaf(tree):
        return None
    if isinstance(prefix, dict):
        if not isinstance(tree, dict) or set(prefix) != set(tree):
            return None
        out = []
        keys = pytree.tree_leaves({k: k for k in tree})  # in the order in which leaves come
        for k in keys:
            part = broadcast_prefix(prefix[k], tree[k])
            if part is None:
                return None
            out.extend(part)
        return out
    if (
        not isinstance(tree, (tuple, list))
        or isinstance(prefix, tuple) != isinstance(tree, tuple)
        or len(prefix) != len(tree)
    ):
        return None
    out = []
    for p, t in zip(prefix, tree):
        part = broadcast_prefix(p, t)
        if part is None:
            return None
        out.extend(part)
    return out


def _is_leaf(tree) -> bool:
    leaves, _ = _flatten(tree)
    return len(leaves) == 1 and leaves[0] is tree


def _is_int(d) -> bool:
    return isinstance(d, int) and not isinstance(d, bool)


def _mapped_shape(x):
    """The dimensions that can be mapped: all of a tensor's, those of the batch of a container."""
    return x.batch_size if batches_itself(x) else x._shape


def _map_over(x, d: int, lvl):
    return x._add_batch_dim(in_dim=d, vmap_level=lvl) if batches_itself(x) else wrap(movedim(x, d, 0), lvl)


def _check_inputs(func, in_dims, args):
    """(batch size, flat arguments, their dimensions, spec). ValueError in PyTorch's words."""
    name = _name(func)
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if not _is_int(in_dims) and not isinstance(in_dims, tuple):
        raise ValueError(
            where
            + "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
            "a function with no "
            "inputs. The latter is unsupported."
        )
    flat, spec = _flatten(args)
    dims = broadcast_prefix(in_dims, args)
    if dims is None:
        raise ValueError(
            where + "in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{pytree.tree_structure(in_dims)} but inputs has structure {spec}."
        )
    for i, (x, d) in enumerate(zip(flat, dims)):
        if not _is_int(d) and d is not None:
            raise ValueError(
                where + f"Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
            )
        if d is None:
            continue
        if not isinstance(x, _C.TensorBase) and not batches_itself(x):
            raise ValueError(
                where
                + f"Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
                "arguments, "
                "please use None as the respective in_dim"
            )
        rank = len(_mapped_shape(x))
        if not -rank <= d < rank:
            raise ValueError(
                where + f"Got in_dim={d} for some input, but that input is a Tensor of dimensionality {rank} so "
                f"expected in_dim to satisfy -{rank} <= in_dim < {rank}."
            )
        dims[i] = d % rank
    sizes = [_mapped_shape(x)[d] for x, d in zip(flat, dims) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(s != sizes[0] for s in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], flat, dims, spec


def _check_out_dims(func, out_dims):
    if _is_int(out_dims) or out_dims is None:
        return
    if all(_is_int(d) or d is None for d in pytree.tree_leaves(out_dims)):
        return
    raise ValueError(
        f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of "
        "ints representing where "
        "in the outputs the vmapped dimension should appear."
    )


def _take_out(func, out, out_dims, lvl):
    """The results with the batch at ``out_dims``."""
    flat, spec = _flatten(out)
    if (isinstance(out, _C.TensorBase) or batches_itself(out)) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = broadcast_prefix(out_dims, out)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            "of `outputs`. "
            f"out_dims has structure {pytree.tree_structure(out_dims)} but outputs has structure {spec}."
        )
    name = _name(func)
    results = []
    for x, d in zip(flat, dims):
        value, mapped = value_at(x, lvl)
        if d is None:
            if mapped:
                raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
            results.append(x)
            continue
        if batches_itself(x):
            results.append(x._maybe_remove_batch_dim(funcname=name, vmap_level=lvl, batch_size=lvl.size, out_dim=d))
            continue
        if not isinstance(x, _C.TensorBase):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set "
                "out_dims= to None for "
                "output?"
            )
        rank = x._ndim + 1
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}], but got {d})")
        if not mapped:
            value = aten.expand.default(aten.unsqueeze.default(value, 0), [lvl.size, *value._shape])
        results.append((value, d % rank))
    return results, spec


def _run(func, size, flat, dims, spec, out_dims, randomness, kwargs):
    with level(size, randomness) as lvl:
        inputs = [x if d is None else _map_over(x, d, lvl) for x, d in zip(flat, dims)]
        out = func(*pytree.tree_unflatten(inputs, spec), **kwargs)
        results, out_spec = _take_out(func, out, out_dims, lvl)
    for x, d in zip(flat, dims):
        # A locked container keeps what it gave for this level, which nobody asks for again.
        if d is not None and batches_itself(x) and getattr(x, "is_locked", False):
            x._erase_cache()
    given = {id(x) for x in flat}
    made = [movedim(x[0], 0, x[1]) if isinstance(x, tuple) else x for x in results]
    # An input that comes out again is a new tensor over the same memory.
    made = [aten.alias.default(x) if isinstance(y, tuple) and id(x) in given else x for x, y in zip(made, results)]
    return pytree.tree_unflatten(made, out_spec)


def _piece(x, d: int, start: int, end: int):
    return x[(slice(None),) * d + (slice(start, end),)] if batches_itself(x) else aten.slice.Tensor(x, d, start, end)


def _chunked(func, size, flat, dims, spec, out_dims, randomness, kwargs, chunk_size):
    parts, out_spec = [], None
    # Under "same" the examples of all chunks see the same draws.
    drawn = default_generator.get_state() if randomness == "same" else None
    for start in range(0, size, chunk_size):
        if drawn is not None:
            default_generator.set_state(drawn)
        n = min(chunk_size, size - start)
        piece = [x if d is None else _piece(x, d, start, start + n) for x, d in zip(flat, dims)]
        out = _run(func, n, piece, dims, spec, out_dims, randomness, kwargs)
        leaves, out_spec = _flatten(out)
        parts.append(leaves)
        whole = out
    at = broadcast_prefix(
        out_dims[0] if isinstance(out_dims, tuple) and len(out_dims) == 1 and _is_leaf(whole) else out_dims, whole
    )
    joined = [xs[0] if d is None else _cat(list(xs), d) for xs, d in zip(zip(*parts), at)]
    return pytree.tree_unflatten(joined, out_spec)


def maybe_remove_batch_dim(name: str, x, level, batch_size: int, out_dim: int | None):
    """What ``vmap`` of the function ``name`` returns for its result ``x``: the batch at ``out_dim``, None for what is the same for all examples.
    ValueError for a mapped result without ``out_dim`` and for what is no tensor."""
    if out_dim is not None and isinstance(x, _C.TensorBase):
        return remove_batch_dim(x, level, batch_size, out_dim)
    if out_dim is None and not (isinstance(x, _C.TensorBase) and value_at(x, level_of(level))[1]):
        return x
    if out_dim is None:
        raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
    raise ValueError(
        f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(x)}. Did you mean to set out_dims= to None for output?"
    )


def vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable:
    """A function that runs ``func`` on every example of a batch at once.

    ``in_dims``: which dimension of each input holds the examples (an int, or a structure of ints and None that
    matches the inputs; None: the same for all). ``out_dims``: where the batch goes in each output. ``randomness``:
    "error", "same" or "different" draws for the examples. ``chunk_size``: at most so many examples at a time. Keyword
    arguments are not mapped over.
    """
    _check_randomness(randomness)
    if chunk_size is not None and not (chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, assigned=[a for a in functools.WRAPPER_ASSIGNMENTS if hasattr(func, a)])
    def wrapped(*args, **kwargs):
        if holds_arrays(args, kwargs):
            return on_arrays(again, func, args, kwargs)
        _check_out_dims(func, out_dims)
        size, flat, dims, spec = _check_inputs(func, in_dims, args)
        if chunk_size is not None and chunk_size < size:
            return _chunked(func, size, flat, dims, spec, out_dims, randomness, kwargs, chunk_size)
        return _run(func, size, flat, dims, spec, out_dims, randomness, kwargs)

    again = functools.partial(vmap, in_dims=in_dims, out_dims=out_dims, randomness=randomness, chunk_size=chunk_size)
    wrapped.tensor_form = lambda: again(tensor_form(func))
    return wrapped


def chunk_vmap(
    func: Callable, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", chunks: int = 2
) -> Callable:
    """:func:`vmap` over the batch in ``chunks`` parts, one after the other. ValueError for a number below 1."""
    _check_randomness(randomness)
    if chunks < 1:
        raise ValueError(f"chunk_vmap: chunks should be greater than 0. (got {chunks})")
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func, assigned=[a for a in functools.WRAPPER_ASSIGNMENTS if hasattr(func, a)])
    def wrapped(*args, **kwargs):
        size = _check_inputs(func, in_dims, args)[0]
        # The parts of tensor.chunk: all of one size but the last.
        part = max(1, -(-size // chunks))
        return vmap(func, in_dims, out_dims, randomness, chunk_size=part)(*args, **kwargs)

    return wrapped


def restore_vmap(func: Callable, in_dims: Any, batch_size: int, randomness: str) -> Callable:
    """As :func:`vmap`, for authors of batching rules: the batch size is given, no input has to be mapped, and ``(out, out_dims)`` comes back.

    The batch of a result is where ``out_dims`` says, None for results that are the same for all examples.
    """

    def wrapped(*args, **kwargs):
        flat, spec = pytree.tree_flatten(args)
        dims = broadcast_prefix(in_dims, args)
        if dims is None:
            raise ValueError(f"restore_vmap: in_dims={in_dims} doesn't fit the structure of the inputs")
        dims = [d % x._ndim if d is not None else None for x, d in zip(flat, dims)]
        with level(batch_size, randomness) as lvl:
            inputs = [x if d is None else wrap(movedim(x, d, 0), lvl) for x, d in zip(flat, dims)]
            out, out_spec = pytree.tree_flatten(func(*pytree.tree_unflatten(inputs, spec), **kwargs))
            pairs = [value_at(x, lvl) for x in out]
        # An input that comes out again has its batch where it was.
        given = {id(i): (x, d) for i, x, d in zip(inputs, flat, dims) if d is not None}
        found = [given.get(id(o), (value, 0 if mapped else None)) for o, (value, mapped) in zip(out, pairs)]
        values, where = zip(*found) if found else ((), ())
        return pytree.tree_unflatten(list(values), out_spec), pytree.tree_unflatten(list(where), out_spec)

    return wrapped


def _check_randomness(randomness):
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
