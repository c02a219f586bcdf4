"""Samples: views and operators that rearrange."""

import numpy as np

from ...base.memory_format import channels_last
from ..samples import T, call, f, i, row

row("view _unsafe_view", [call(f(2, 3), [3, 2]), call(f(2, 3), [-1]), call(f(2, 3), [2, 1, 3]), call(f(), [1]), call(f(1), []), call(f(0, 3), [3, 0])],
    lambda x, s: x.reshape(s))
row("reshape", [call(f(2, 3), [3, 2]), call(T(f(3, 2)), [3, 2]), call(f(2, 3), [-1]), call(f(2, 3), [2, 3]), call(f(), []), call(f(0, 3), [0])], lambda x, s: x.reshape(s))
row("t", [call(f(2, 3)), call(f(3)), call(f())], np.transpose)
row("transpose.int", [call(f(2, 3), 0, 1), call(f(2, 3, 4), -1, 0), call(f(), 0, -1)], lambda x, a, b: np.swapaxes(x, a, b) if x.ndim else x)
row("permute", [call(f(2, 3, 4), [2, 0, 1]), call(f(2, 3), [-1, 0]), call(f(), [])], np.transpose)
row("expand", [call(f(3), [2, 3]), call(f(2, 1), [2, 3]), call(f(1, 3), [4, -1, 3]), call(f(), [2, 2]), call(f(1), [0])],
    lambda x, s: np.broadcast_to(x, [x.shape[k - (len(s) - x.ndim)] if n == -1 else n for k, n in enumerate(s)]))
row("unsqueeze", [call(f(2, 3), d) for d in (0, 1, 2, -1, -3)] + [call(f(), 0), call(T(f(3, 2)), 1)], np.expand_dims)
row("squeeze", [call(f(1, 2, 1)), call(f(2, 3)), call(f(1))], np.squeeze)
row("squeeze.dim", [call(f(1, 2, 1), 0), call(f(1, 2, 1), -1), call(f(2, 3), 0), call(f(), 0)], lambda x, d: np.squeeze(x, d) if x.ndim and x.shape[d] == 1 else x)
row("squeeze.dims", [call(f(1, 2, 1), [0, 2]), call(f(1, 2, 1), [1, 2])], lambda x, d: np.squeeze(x, tuple(e for e in d if x.shape[e] == 1)))
row("select.int", [call(f(2, 3), 0, 1), call(f(2, 3), -1, -2), call(T(f(3, 2)), 1, 0)], lambda x, d, k: np.take(x, k, d))


def _slice(x, dim=0, start=None, end=None, step=1):
    key = [slice(None)] * x.ndim
    key[dim] = slice(start, end, step)
    return x[tuple(key)]


row("slice.Tensor", [call(f(5, 2)), call(f(5, 2), 0, 1, 4), call(f(5, 2), 0, -3), call(f(2, 6), 1, 1, 9223372036854775807, 2), call(f(3), 0, 2, 1), call(f(3), -1, 0, 2),
                     call(T(f(3, 4)), 0, 1)], _slice)
row("slice_copy.Tensor", [call(f(5, 2), 0, 1, 4)], _slice)
row("diagonal", [call(f(3, 3)), call(f(3, 4), 1), call(f(3, 4), -1), call(f(2, 3, 4), 0, -2, -1), call(f(3, 3), 5)], np.diagonal)
row("unfold", [call(f(6), 0, 3, 1), call(f(2, 7), 1, 3, 2), call(f(), 0, 1, 1)],
    lambda x, d, n, s: np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, n, d), -1, -1)[(slice(None),) * d + (slice(None, None, s),)] if x.ndim else x.reshape(1))
_np_split = lambda x, n, d=0: np.split(x, range(n, x.shape[d], n), d)  # noqa: E731
row("split.Tensor", [call(f(5, 2), 2), call(f(2, 6), 3, 1), call(f(4), 4)], _np_split)
row("split_with_sizes split.sizes", [call(f(5, 2), [2, 3]), call(f(2, 6), [1, 2, 3], 1)], lambda x, n, d=0: np.split(x, np.cumsum(n)[:-1], d))
row("unbind.int", [call(f(3, 2)), call(f(2, 3), 1), call(T(f(3, 2)), -1)], lambda x, d=0: [np.take(x, k, d) for k in range(x.shape[d])])
row("chunk", [call(f(5, 2), 2), call(f(2, 6), 3, 1), call(f(2, 6), 4, 1)], lambda x, n, d=0: _np_split(x, -(-x.shape[d] // n), d))
row("tensor_split.sections", [call(f(5, 2), 3), call(f(2, 6), 4, 1)], lambda x, n, d=0: np.array_split(x, n, d))
row("tensor_split.tensor_indices_or_sections", [call(f(5, 2), np.array(2)), call(f(2, 5), np.array([1, 3]), 1)], lambda x, s, d=0: tuple(np.array_split(x, s.tolist(), d)), grad=(0,))
row("tensor_split.indices", [call(f(5, 2), [1, 3]), call(f(2, 6), [2], 1)], lambda x, n, d=0: np.split(x, n, d))
row("narrow", [call(f(5, 2), 0, 1, 3), call(f(2, 5), 1, -2, 2)], lambda x, d, s, n: _slice(x, d, s % x.shape[d], s % x.shape[d] + n))
row("narrow.Tensor", [call(f(5, 2), 0, i(high=2), 3)], lambda x, d, s, n: _slice(x, d, int(s), int(s) + n))
row("flatten.using_ints", [call(f(2, 3, 2)), call(f(2, 3, 2), 1), call(T(f(3, 2))), call(f(), 0, 0), call(f(2, 3, 2), 0, 1)],
    lambda x, s=0, e=-1: x.reshape(x.shape[:s] + (-1,) + x.shape[(e % max(x.ndim, 1)) + 1:]))
row("unflatten.int", [call(f(6, 2), 0, [2, 3]), call(f(2, 6), -1, [-1, 2])], lambda x, d, s: x.reshape(*x.shape[:d % x.ndim], *s, *x.shape[d % x.ndim + 1:]))
row("movedim.int", [call(f(2, 3, 4), 0, 2), call(f(2, 3, 4), -1, 0)], np.moveaxis)
row("movedim.intlist", [call(f(2, 3, 4), [0, 1], [2, 0])], np.moveaxis)
row("expand_as", [call(f(3), f(2, 3))], lambda x, o: np.broadcast_to(x, o.shape), grad=(0,))
row("view_as reshape_as", [call(f(6), f(2, 3))], lambda x, o: x.reshape(o.shape), grad=(0,))
row("sum_to_size", [call(f(2, 3), [3]), call(f(2, 3), [2, 1]), call(f(2, 3), [2, 3])], lambda x, s: x.sum(0) if s == [3] else x.sum(1, keepdims=True) if s == [2, 1] else x)
row("as_strided", [call(f(6), [2, 3], [3, 1]), call(f(6), [2, 2], [1, 2], 1), call(f(2, 3), [3], [1])],
    lambda x, size, stride, o=0: np.lib.stride_tricks.as_strided(x.reshape(-1)[o:], size, [8 * s for s in stride]), rtol=1e-12)
_strided = lambda x, size, stride, o: np.lib.stride_tricks.as_strided(x.reshape(-1)[o:], size, [x.itemsize * s for s in stride])  # noqa: E731
row("_as_strided", [call(f(6), [2, 2], [1, 2], 1, [1]), call(f(2, 3), [3], [1], 0, [3, 1]), call(f(4), [3, 2], [1, 1], 0, [1]), call(f(4), [0], [1], 0, [1])],
    lambda x, size, stride, o, _: _strided(x, size, stride, o))
row("_as_strided_gather", [call(f(6), [1], [2, 2], [1, 2], 1), call(f(2, 3), [3, 1], [3], [1], 0), call(f(4), [1], [3, 2], [1, 1], 0)],
    lambda x, _, size, stride, o: _strided(x, size, stride, o))


def _scatter(g, self_size, _, size, stride, o):
    out = np.zeros(int(np.prod(self_size)), g.dtype)
    np.add.at(out, _strided(np.arange(out.size), size, stride, o), g)
    return out.reshape(self_size)


row("_as_strided_scatter", [call(f(2, 2), [6], [1], [2, 2], [1, 2], 1), call(f(3), [2, 3], [3, 1], [3], [1], 0), call(f(3, 2), [4], [1], [3, 2], [1, 1], 0)], _scatter)
row("flip", [call(f(2, 3), [0]), call(f(2, 3), [0, -1]), call(T(f(3, 2)), [1]), call(f(2, 0), [0])], np.flip, strides=False)
row("fliplr flipud", [call(f(2, 3))], [np.fliplr, np.flipud])
row("roll", [call(f(2, 3), [1], [0]), call(f(2, 3), [2], []), call(f(2, 3), [1, -1], [0, 1]), call(T(f(3, 2)), [4], [1])],
    lambda x, s, d=(): np.roll(x, s, tuple(d)) if len(d) else np.roll(x, s[0]))
row("rot90", [call(f(2, 3)), call(f(2, 3, 2), 3, [1, 2]), call(f(2, 3), 2, [0, 1])], lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims))
row("repeat tile", [call(f(2, 3), [2, 2]), call(f(3), [2, 1, 2]), call(f(), [3])], np.tile)
row("repeat_interleave.self_int", [call(f(2, 3), 2), call(f(2, 3), 2, 1), call(T(f(3, 2)), 3, 0)], np.repeat)
row("repeat_interleave.self_Tensor", [call(f(2, 3), np.array([1, 2]), 0), call(f(3), np.array([0, 1, 3]))], np.repeat)
row("repeat_interleave.Tensor", [call(np.array([1, 2])), call(np.array([0, 1, 3]))], lambda r: np.repeat(np.arange(len(r)), r), grad=())
row("sym_size.int", [call(f(2, 3), 1), call(T(f(2, 3)), 0)], lambda x, d: np.asarray(x).shape[d], grad=())
row("sym_size", [call(f(2, 3)), call(T(f(2, 3)))], lambda x: list(x.shape), grad=())
row("sym_stride", [call(f(2, 3)), call(T(f(2, 3)))], lambda x: [s // x.itemsize for s in x.strides], grad=())
row("dim", [call(f(2, 3)), call(f())], lambda x: x.ndim, grad=())
row("numel", [call(f(2, 3)), call(f())], lambda x: x.size, grad=())
row("is_contiguous", [call(f(2, 3)), call(T(f(2, 3)))], lambda x: x.flags.c_contiguous, grad=())
row(
    "is_contiguous.memory_format",
    [call(f(2, 3, 4, 5), channels_last), call(f(2, 3, 4, 5).transpose(0, 2, 3, 1).copy().transpose(0, 3, 1, 2), channels_last)],
    lambda x, memory_format: x.transpose(0, 2, 3, 1).flags.c_contiguous,
    grad=(),
)
row("sym_stride.int", [call(f(2, 3), 0)], lambda x, d: x.strides[d] // x.itemsize, grad=())
row("sym_numel", [call(f(2, 3))], lambda x: x.size, grad=())
row("_assert_scalar", [call(1, "no"), call(True, "no")], lambda x, message: None, grad=())
row("cat", [call([f(2, 3), f(1, 3)]), call([f(2, 3), T(f(2, 2))], 1), call([f(2, 3), i(2, 3)]), call([f(0), f(2, 3)]), call([f(3)], -1)],
    lambda ts, dim=0: np.concatenate([t for t in ts if t.shape != (0,)], dim))
row("stack", [call([f(2, 3), f(2, 3)]), call([f(2, 3), T(f(3, 2))], 1), call([f(), f()], -1)], np.stack)
row("block_diag", [call([f(2, 3), T(f(1, 2))]), call([f(2), f(), f(0, 2)]), call([f(2, 2), i(1, 2)])], None)
row("hstack vstack dstack column_stack", [call([f(2, 3), f(2, 3)]), call([f(3), f(3)])], [np.hstack, np.vstack, np.dstack, np.column_stack])
row("tril triu", [call(f(3, 3)), call(f(2, 3, 4), 1), call(T(f(3, 4)), -1), call(i(3, 3), 2)], [np.tril, np.triu], dtypes=True)
row("diag diagflat", [call(f(3)), call(f(2), 1), call(f(2), -1)], [np.diag, np.diagflat])
row("diag_embed", [call(f(2, 3)), call(f(2), 1)], None)
row("constant_pad_nd", [call(f(2, 3), [1, 2]), call(f(2, 3), [1, 0, 0, 2], 1.5), call(f(2, 4), [-1, 1])],
    lambda x, pad, v=0.0: np.pad(x[:, 1:] if pad[0] < 0 else x, [(pad[2], pad[3]) if len(pad) > 2 else (0, 0), (max(pad[0], 0), pad[1])], constant_values=v))
row("reflection_pad1d replication_pad1d", [call(f(2, 3, 5), [2, 1]), call(f(2, 4), [1, 1])],
    [lambda x, p, m=m: np.pad(x, [(0, 0)] * (x.ndim - 1) + [(p[0], p[1])], mode=m) for m in ("reflect", "edge")])
row("reflection_pad2d replication_pad2d", [call(f(1, 2, 4, 5), [2, 1, 1, 2])],
    [lambda x, p, m=m: np.pad(x, [(0, 0)] * (x.ndim - 2) + [(p[2], p[3]), (p[0], p[1])], mode=m) for m in ("reflect", "edge")])
row("meshgrid.indexing", [call([f(2), f(3)], indexing="ij"), call([f(2), f(3)], indexing="xy")], lambda ts, indexing: np.meshgrid(*ts, indexing=indexing))
row("broadcast_to", [call(f(3), [2, 3])], np.broadcast_to)
row("ravel", [call(f(2, 3)), call(T(f(2, 3)))], np.ravel)
row("pixel_shuffle", [call(f(1, 4, 2, 3), 2)], lambda x, r: x.reshape(1, 1, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 1, 4, 6))
row("diagonal_backward", [call(f(3), [3, 3], 0, 0, 1), call(f(2), [3, 3], 1, 0, 1)], None)
row("unfold_backward", [call(f(4, 3), [6], 0, 3, 1)], None)
row("select_backward", [call(f(3), [2, 3], 0, 1), call(f(2), [2, 3], -1, -1)], None)
row("slice_backward", [call(f(3, 2), [5, 2], 0, 1, 4, 1), call(f(2, 2), [2, 4], 1, 0, 4, 2)], None)
row("meshgrid", [call([f(2), f(3)])], lambda ts: np.meshgrid(*ts, indexing="ij"))
row("atleast_1d.Sequence atleast_2d.Sequence atleast_3d.Sequence", [call([f(), f(2)])], [lambda ts, fn=fn: [fn(t) for t in ts] for fn in (np.atleast_1d, np.atleast_2d, np.atleast_3d)])
row("atleast_1d atleast_2d atleast_3d", [call(f()), call(f(2)), call(f(2, 3))], [np.atleast_1d, np.atleast_2d, np.atleast_3d])
row("swapaxes swapdims", [call(f(2, 3), 0, 1)], np.swapaxes)
row("moveaxis.int", [call(f(2, 3, 4), 0, 2)], np.moveaxis)
row("moveaxis.intlist", [call(f(2, 3, 4), [0, 1], [2, 0])], np.moveaxis)
row("broadcast_tensors", [call([f(3), f(2, 1)])], lambda ts: [np.broadcast_to(t, (2, 3)) for t in ts])
row("reflection_pad3d replication_pad3d", [call(f(1, 1, 3, 3, 3), [1, 1, 1, 0, 0, 1])], None)
