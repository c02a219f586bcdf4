"""Samples: convolutions and sorting."""

import numpy as np

from ..samples import T, apart, call, f, i, row

_none = (None, [1], [0], [1], False, [0], 1)
row("convolution", [call(f(2, 3, 6), f(4, 3, 3), *_none), call(f(1, 4, 5, 5), f(4, 2, 3, 3), f(4), [2, 2], [1, 1], [1, 1], False, [0, 0], 2)], None, second=False)
row("convolution_backward", [call(f(2, 4, 4), f(2, 3, 6), f(4, 3, 3), [4], [1], [0], [1], False, [0], 1, [True, True, True])], None, grad=())
row("conv1d", [call(f(2, 3, 6), f(4, 3, 3)), call(f(2, 4, 7), f(4, 2, 3), f(4), [2], [1], [1], 2)], None, second=False)
row("conv2d", [call(f(1, 3, 5, 5), f(2, 3, 3, 3)), call(f(1, 2, 5, 6), f(2, 2, 3, 3), f(2), [2, 1], [1, 0], [1, 2])], None, second=False)
row("conv3d", [call(f(1, 1, 3, 3, 3), f(1, 1, 2, 2, 2))], None, second=False)
row("conv1d.padding", [call(f(2, 3, 6), f(4, 3, 3), None, [1], "same")], None, second=False)
row("conv2d.padding", [call(f(1, 2, 4, 4), f(2, 2, 3, 3), None, [1, 1], "same")], None, second=False)
row("conv3d.padding", [call(f(1, 1, 3, 3, 3), f(1, 1, 2, 2, 2), None, [1, 1, 1], "valid")], None, second=False)
row("conv_transpose1d", [call(f(2, 3, 4), f(3, 2, 3)), call(f(2, 3, 4), f(3, 2, 3), f(2), [2], [1], [1])], None, second=False)
row("conv_transpose2d.input", [call(f(1, 2, 3, 3), f(2, 2, 2, 2))], None, second=False)
row("conv_transpose3d.input", [call(f(1, 1, 2, 2, 2), f(1, 1, 2, 2, 2))], None, second=False)


def _sorted(x, dim=-1, descending=False):
    order = np.argsort(-x if descending else x, dim, kind="stable")
    return np.take_along_axis(x, order, dim), order


row("sort", [call(apart(2, 3)), call(apart(3, 2), 0, True), call(T(apart(2, 3)), 1), call(i(6))], _sorted, strides=False)
row("sort.stable", [call(i(6, high=3), stable=True), call(i(2, 6, high=3), stable=True, dim=1, descending=True)], lambda x, stable, dim=-1, descending=False: _sorted(x, dim, descending))
row("argsort msort", [call(apart(2, 3))], [lambda x: np.argsort(x, -1), lambda x: np.sort(x, 0)])
row("argsort.stable", [call(i(6, high=3), stable=True)], lambda x, stable: np.argsort(x, kind="stable"))
row("topk", [call(apart(2, 5), 3), call(apart(5, 2), 2, 0, False)],
    lambda x, k, dim=-1, largest=True: tuple(np.take(a, range(k), dim) for a in _sorted(x, dim, largest)))
row("kthvalue", [call(apart(2, 5), 2), call(apart(5, 2), 3, 0, True)], None, strides=False)
