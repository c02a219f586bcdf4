"""vmap of every operator that has samples, against a loop over the examples: all tensor arguments mapped, and each alone."""

import logging

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.base import pytree
from flambeau.func import vmap
from flambeau.testing.samples import load, to_tensors

SIZE = 3


def _known(row):
    try:
        return row.op
    except AttributeError:
        return None  # samples may be ahead of the operators


ROWS = [
    pytest.param(row, id=name)
    for name, row in load().items()
    if (op := _known(row)) is not None and not op._schema.is_mutable and all(r.is_tensor for r in op._schema.returns)
]


# All their samples give the examples of a batch results of different shapes.
RAGGED = {"masked_select", "unique_consecutive", "unique_dim"}
# What vmap says when a shape or a decision depends on the data.
DEPENDS = ("another shape for each example", "calling .item() on a Tensor")


# In another order the elements of a factor are those of a singular one, which is an error.
SINGULAR = {"cholesky_inverse"}


def examples(t):
    """A batch of tensors like ``t``: its elements in different orders."""
    a = t.numpy(force=True)
    flat = a.reshape(-1)
    shifted = [np.roll(flat, k).reshape(a.shape) for k in range(SIZE)]
    return torch.from_numpy(np.stack(shifted))


def same(name, got, want, values):
    got, want = pytree.tree_leaves(got), pytree.tree_leaves(want)
    assert len(got) == len(want), name
    for g, w in zip(got, want):
        assert g.shape == w.shape and g.dtype is w.dtype, (name, g.shape, w.shape, g.dtype, w.dtype)
        if values:
            np.testing.assert_allclose(g.numpy(force=True), w.numpy(force=True), rtol=1e-9, atol=1e-9, err_msg=name)


def loop(fn, tensors, dims):
    rows = [fn(*(t if d is None else t[k].clone() for t, d in zip(tensors, dims))) for k in range(SIZE)]
    spec = pytree.tree_structure(rows[0])
    return pytree.tree_unflatten([torch.stack(list(r)) for r in zip(*map(pytree.tree_leaves, rows))], spec)


@pytest.mark.parametrize("row", ROWS)
def test_against_loop(row, caplog):
    caplog.set_level(logging.ERROR, "flambeau.batching")
    checked, depends = 0, False
    for sample in row.calls:
        leaves, spec = pytree.tree_flatten((list(to_tensors(sample.args)), to_tensors(sample.kwargs)))
        at = [i for i, x in enumerate(leaves) if isinstance(x, _C.TensorBase)]
        if not at:
            continue

        def fn(*tensors, leaves=leaves, spec=spec, at=at):
            full = list(leaves)
            for i, t in zip(at, tensors):
                full[i] = t
            args, kwargs = pytree.tree_unflatten(full, spec)
            return row.op(*args, **kwargs)

        plain = [leaves[i] for i in at]
        masks = [[0] * len(at)]
        if len(at) > 1:
            masks += [[0 if k == j else None for k in range(len(at))] for j in range(len(at))]
        for dims in masks:
            given = [examples(t) if d == 0 else t for t, d in zip(plain, dims)]
            try:
                want = loop(fn, given, dims)
            except Exception:  # noqa: S112 - results of different shapes, or an order of elements that isn't valid
                continue
            checked += 1
            try:
                got = vmap(fn, tuple(dims), randomness="different")(*given)
            except RuntimeError as e:
                if row.op.kind not in ("composite", "extern") or not any(d in str(e) for d in DEPENDS):
                    raise
                depends = True
                continue
            same(f"{row.name}{sample} {dims}", got, want, row.values)
    mappable = any(
        isinstance(x, _C.TensorBase) for s in row.calls for x in pytree.tree_leaves(to_tensors(list(s.args)))
    )
    assert checked or depends or not mappable or row.name in RAGGED | SINGULAR, row.name


def test_inverses_by_factors():
    factors = torch.randn(SIZE, 3, 3, dtype=torch.float64).tril() + 3 * torch.eye(3, dtype=torch.float64)
    for upper in (False, True):
        given = factors.mT if upper else factors
        want = torch.stack([torch.cholesky_inverse(a, upper) for a in given])
        assert torch.allclose(vmap(lambda a: torch.cholesky_inverse(a, upper))(given), want)
