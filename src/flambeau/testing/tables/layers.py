"""Samples: pooling, resampling, losses, recurrent networks and the other operators of layers."""

import numpy as np

from ..samples import apart, call, f, fixed, i, pos, row, unit

_p = dict(grad=(0,), second=False)


def _inside(i, j, kernel, stride, padding):
    """The elements of the last two dimensions that lie in a window."""
    spans = [(n * s - p, k) for n, s, p, k in zip((i, j), stride, padding, kernel)]
    return (..., *(slice(max(a, 0), a + k) for a, k in spans))


def _sums(x, kernel, stride, padding, counts):
    out = np.zeros((*x.shape[:-2], *counts))
    for at in np.ndindex(*counts):
        out[(..., *at)] = x[_inside(*at, kernel, stride, padding)].sum((-2, -1))
    return out


def _sums_back(g, kernel, stride, padding, sizes):
    out = np.zeros((*g.shape[:-2], *sizes))
    for at in np.ndindex(*g.shape[-2:]):
        out[_inside(*at, kernel, stride, padding)] += g[(..., *at)][..., None, None]
    return out


# ---- pooling ---------------------------------------------------------------------------------------------------------------
row("max_pool1d_with_indices", [call(apart(2, 3, 6), [2]), call(apart(2, 3, 7), [3], [2], [1], [1], True)], None, **_p)
row("max_pool3d_with_indices", [call(apart(1, 2, 4, 4, 4), [2]), call(apart(1, 1, 5, 5, 5), [3], [2], [1])], None, **_p)
row("max_pool3d", [call(apart(1, 2, 4, 4, 4), [2])], None, **_p)
row("max_pool2d_with_indices_backward", [call(f(1, 2, 2, 2), apart(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], [1, 1], False, np.array([[[[0, 2], [8, 10]], [[5, 7], [13, 15]]]]))], None, **_p)
row("max_pool3d_with_indices_backward", [call(f(1, 1, 1, 1, 2), apart(1, 1, 2, 2, 4), [2], [2], [0], [1], False, np.array([[[[[5, 7]]]]]))], None, **_p)
row("avg_pool3d", [call(f(1, 2, 4, 4, 4), [2]), call(f(1, 1, 5, 5, 5), [3], [2], [1], True, False), call(f(1, 1, 4, 4, 4), [2], [2], [0], False, True, 3)], None)
row("_window_sums", [call(f(1, 2, 4, 4), [2, 2], [2, 2], [0, 0], [2, 2]), call(f(2, 5, 6), [3, 2], [2, 1], [1, 0], [3, 5]), call(f(1, 1, 4, 5), [3, 3], [2, 2], [0, 1], [2, 3])], _sums, torch=None)
row("_window_sums_backward", [call(f(1, 2, 2, 2), [2, 2], [2, 2], [0, 0], [4, 4]), call(f(2, 3, 5), [3, 2], [2, 1], [1, 0], [5, 6]), call(f(1, 1, 2, 3), [3, 3], [2, 2], [0, 1], [4, 5])], _sums_back, torch=None)
row("adaptive_avg_pool3d", [call(f(1, 2, 4, 5, 3), [2, 3, 1])], None)
row("adaptive_max_pool1d", [call(apart(2, 3, 7), [3])], None, **_p)
row("adaptive_max_pool2d", [call(apart(1, 2, 5, 7), [2, 3])], None, **_p)
row("adaptive_max_pool3d", [call(apart(1, 1, 4, 5, 3), [2, 3, 2])], None, **_p)
row("max_unpool2d", [call(f(1, 1, 2, 2), np.array([[[[0, 2], [9, 15]]]]), [4, 4])], None, **_p)
row("max_unpool3d", [call(f(1, 1, 1, 1, 2), np.array([[[[[1, 7]]]]]), [2, 2, 2], [2], [0])], None, torch=None, **_p)
row("fractional_max_pool2d", [call(apart(1, 2, 5, 6), [2, 2], [2, 3], unit(1, 2, 2) / 2 + 0.5)], None, **_p)
row("fractional_max_pool3d", [call(apart(1, 1, 4, 5, 6), [2, 2, 2], [2, 2, 3], unit(1, 1, 3) / 2 + 0.5)], None, **_p)

# ---- resampling ------------------------------------------------------------------------------------------------------------
row("upsample_nearest3d _upsample_nearest_exact3d", [call(f(1, 1, 2, 3, 2), [4, 5, 3])], None)
row("_upsample_nearest_exact1d", [call(f(1, 2, 3), [5])], None)
row("_upsample_nearest_exact2d", [call(f(1, 2, 2, 3), [3, 5])], None)
row("upsample_linear1d", [call(f(1, 2, 3), [5], False), call(f(1, 2, 3), [4], True)], None)
row("upsample_trilinear3d", [call(f(1, 1, 2, 3, 2), [3, 4, 3], False)], None)
row("upsample_bicubic2d", [call(f(1, 2, 3, 4), [5, 6], False), call(f(1, 1, 3, 4), [5, 6], True)], None)
row("_upsample_bilinear2d_aa _upsample_bicubic2d_aa", [call(f(1, 1, 6, 7), [3, 4], False)], None, rtol=1e-5)
row("grid_sampler_2d", [call(f(1, 2, 3, 4), unit(1, 2, 3, 2) * 0.7, m, p, a) for m, p, a in ((0, 0, False), (0, 1, True), (1, 0, False), (2, 2, False))], None, second=False, grad=(0,))
row("grid_sampler_3d", [call(f(1, 1, 2, 3, 4), unit(1, 2, 2, 2, 3) * 0.7, 0, 0, False)], None, second=False, grad=(0,))
row("_grid_sample", [call(f(1, 2, 3, 4), unit(1, 2, 3, 2) * 0.7, m, p, a) for m, p, a in ((0, 0, False), (0, 1, True), (1, 1, False), (0, 2, False))], None, torch=None, second=False, grad=(0,))
row("grid_sampler", [call(f(1, 2, 3, 4), unit(1, 2, 3, 2) * 0.7, 0, 0, True)], None, second=False, grad=(0,))
row("affine_grid_generator", [call(f(1, 2, 3), [1, 1, 2, 3], a) for a in (True, False)], None, rtol=1e-5)

# ---- losses ----------------------------------------------------------------------------------------------------------------
row("nll_loss_nd", [call(f(2, 3, 2), i(2, 2, high=3)), call(f(2, 3), i(2, high=3), pos(3), 0)], None, **_p)
row("multi_margin_loss", [call(apart(3, 4), i(3, high=4)), call(apart(3, 4), i(3, high=4), 2, 1, pos(4), 0)], None, **_p)
_labels = np.array([[1, 3, -1, 0], [0, -1, 2, 1]])
row("multilabel_margin_loss", [call(apart(2, 4), _labels)], None, **_p)
row("_label_margins", [call(apart(2, 4), _labels)], None, grad=(0,), second=False)
row("_label_margins_backward", [call(f(2), apart(2, 4), _labels)], None, grad=(0,), second=False)
_logp = np.log(np.array([[[0.2, 0.5, 0.3], [0.1, 0.6, 0.3]], [[0.3, 0.3, 0.4], [0.2, 0.2, 0.6]], [[0.6, 0.2, 0.2], [0.1, 0.8, 0.1]]]))
_ctc = (_logp, np.array([[1, 2], [2, 1]]), np.array([3, 2]), np.array([2, 1]))
row("_ctc_each", [call(*_ctc, 0, False)], None, grad=(0,), second=False)
row("_ctc_each_backward", [call(f(2), *_ctc, 0)], None, grad=(0,), second=False)
row("ctc_loss.IntList", [call(_logp, np.array([[1, 2], [2, 1]]), [3, 3], [2, 1])], None, grad=(0,), second=False)
row("ctc_loss.Tensor", [call(_logp, np.array([[1, 2], [2, 1]]), np.array([3, 2]), np.array([2, 1]), 0, 2)], None, grad=(0,), second=False)
row("pdist", [call(f(4, 3))], None, **_p)
row("_pdist_forward", [call(f(4, 3), p) for p in (1.0, 2.0, 3.0)], lambda a, p: (np.abs(a[:, None] - a[None]) ** p).sum(-1)[np.triu_indices(len(a), 1)] ** (1 / p), rtol=1e-8, second=False)

# ---- recurrent -------------------------------------------------------------------------------------------------------------


def _weights(gates, n=2, h=2, directions=1):
    return [w for _ in range(directions) for w in (f(gates * h, n), f(gates * h, h), f(gates * h), f(gates * h))]


_sizes = np.array([2, 2, 1])
row("lstm.input", [call(f(3, 2, 2), [f(1, 2, 2), f(1, 2, 2)], _weights(4), True, 1, 0.0, False, False, False)], None, second=False)
row("lstm.data", [call(f(5, 2), _sizes, [f(2, 2, 2), f(2, 2, 2)], _weights(4, directions=2), True, 1, 0.0, False, True)], None, second=False)
for _name, _gates in (("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)):
    row(f"{_name}.input", [call(f(3, 2, 2), f(1, 2, 2), _weights(_gates), True, 1, 0.0, False, False, False)], None, second=False)
    row(f"{_name}.data", [call(f(5, 2), _sizes, f(2, 2, 2), _weights(_gates, directions=2), True, 1, 0.0, False, True)], None, second=False)
row("lstm_cell", [call(f(2, 3), [f(2, 2), f(2, 2)], f(8, 3), f(8, 2), f(8), f(8))], None, second=False)
row("gru_cell", [call(f(2, 3), f(2, 2), f(6, 3), f(6, 2), f(6), f(6))], None, second=False)
row("rnn_tanh_cell rnn_relu_cell", [call(f(2, 3), f(2, 2), f(2, 3), f(2, 2), f(2), f(2))], None, second=False)

# ---- other layers ----------------------------------------------------------------------------------------------------------
row("rrelu", [call(apart(2, 3))], lambda x: np.where(x > 0, x, x * (1 / 8 + 1 / 3) / 2))
row("feature_dropout feature_alpha_dropout", [call(f(2, 3, 2), 0.5, False), call(f(2, 3, 2), 1.0, True)], lambda x, p, t: x * (0 if t else 1), second=False)
row("col2im", [call(f(1, 8, 4), [3, 3], [2, 2], [1, 1], [0, 0], [1, 1]), call(f(1, 4, 4), [3, 3], [2, 2], [1, 1], [1, 1], [2, 2])], None)
row("pixel_unshuffle", [call(f(1, 2, 4, 2), 2)], None)
row("embedding_bag", [call(f(5, 2), np.array([0, 3, 1, 3]), np.array([0, 3]), False, m) for m in (0, 1)] + [call(f(5, 2), np.array([0, 3, 1, 3]), np.array([0, 3, 4]), False, 0, False, pos(4), True), call(apart(5, 2), np.array([0, 3, 1, 4]), np.array([0, 3]), False, 2)],
    None, torch=None, grad=(0,), second=False)
row("_refuse_nonzero", [call(np.zeros(3, np.int32), "no"), call(np.zeros(0, np.int32), "{value}")], lambda value, message: (), grad=())
row("_embedding_bag_forward_only", [call(f(5, 2), np.array([0, 3, 1, 3]), np.array([0, 3]), False, m, False, None, False, p) for m, p in ((0, -1), (1, 3))] + [call(apart(5, 2), np.array([0, 3, 1, 4]), np.array([0, 3]), False, 2)],
    None, torch=None, grad=(0,), second=False)
row("embedding_bag.padding_idx", [call(f(5, 2), np.array([0, 3, 1, 3]), np.array([0, 3]), False, m, False, None, False, None) for m in (0, 1)] + [fixed(f(5, 2), np.array([0, 3, 1, 3]), np.array([0, 3]), False, 0, False, f(4), False, 3)],
    None, torch=None, grad=(0,), second=False)
