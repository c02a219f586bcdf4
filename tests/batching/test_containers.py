"""vmap over containers that carry it out themselves, as tensordict's do, and functorch's functions that these use."""

import pytest
from flambeau._C._functorch import _add_batch_dim, _remove_batch_dim, get_unwrapped, is_batchedtensor
from flambeau._functorch.vmap import _maybe_remove_batch_dim

import flambeau as torch


class Pair:
    """Two tensors with common leading dimensions."""

    def __init__(self, a, b, batch_size):
        self.a, self.b, self.batch_size, self.is_locked, self.erased = a, b, torch.Size(batch_size), True, 0

    def _all(self, f, batch_size):
        return Pair(f(self.a), f(self.b), batch_size)

    def _add_batch_dim(self, *, in_dim, vmap_level):
        rest = self.batch_size[:in_dim] + self.batch_size[in_dim + 1 :]
        return self._all(lambda x: _add_batch_dim(x, in_dim, vmap_level), rest)

    def _maybe_remove_batch_dim(self, funcname, vmap_level, batch_size, out_dim):
        whole = [*self.batch_size]
        whole.insert(out_dim, batch_size)
        return self._all(lambda x: _maybe_remove_batch_dim(funcname, x, vmap_level, batch_size, out_dim), whole)

    def _erase_cache(self):
        self.erased += 1

    def __getitem__(self, index):
        return self._all(lambda x: x[index], self.a[index].shape[: len(self.batch_size)])


def pair(*shape):
    n = len(shape)
    a = torch.arange(float(torch.Size(shape).numel())).reshape(shape)
    return Pair(a, torch.ones(*shape, 3), shape[:n])


def test_a_container_goes_in_and_comes_out():
    p = pair(4)
    seen = []

    def f(x, y):
        seen.append((tuple(x.a.shape), tuple(x.b.shape), is_batchedtensor(x.a), tuple(get_unwrapped(x.b).shape)))
        return x._all(lambda t: t * 2 + y, x.batch_size), x.a + 1

    out, tensor = torch.vmap(f, in_dims=(0, None))(p, 1)
    assert seen == [((), (3,), True, (4, 3))] and p.erased == 1
    assert (
        out.batch_size == (4,)
        and out.a.tolist() == [1, 3, 5, 7]
        and out.b.shape == (4, 3)
        and tensor.tolist() == [1, 2, 3, 4]
    )


@pytest.mark.parametrize("in_dim, out_dim", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_dimensions(in_dim, out_dim):
    p = pair(2, 5)
    out = torch.vmap(lambda x: x._all(lambda t: t + 1, x.batch_size), in_dim, out_dim)(p)
    assert torch.equal(out.a, (p.a + 1).movedim(in_dim, out_dim))
    twice = torch.vmap(torch.vmap(lambda x: x.a + 1))(p)
    assert torch.equal(twice, p.a + 1)


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="dimensionality 1"):
        torch.vmap(lambda x: x.a, in_dims=1)(pair(4))
    with pytest.raises(ValueError, match="same size in the mapped dimension"):
        torch.vmap(lambda x, y: x.a + y)(pair(4), torch.ones(3))
    with pytest.raises(RuntimeError, match="no vmap of level 1 is running"):
        _add_batch_dim(torch.ones(2), 0, 1)


def test_functorchs_functions_by_number():
    def f(x):
        inner = _add_batch_dim(torch.ones(3, 5), 1, 1)
        both = x + inner
        assert both.shape == (3,) and is_batchedtensor(both) and not is_batchedtensor(torch.ones(1))
        return _remove_batch_dim(both, 1, 5, 0).sum(), both

    total, both = torch.vmap(f, out_dims=(None, 0))(torch.zeros(5))
    assert total == 15 and both.shape == (5, 3)
    with pytest.raises(ValueError, match="can not return a BatchedTensor"):
        torch.vmap(lambda x: _maybe_remove_batch_dim("f", x, 1, 5, None))(torch.zeros(5))
