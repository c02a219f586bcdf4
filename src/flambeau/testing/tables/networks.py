"""Samples: normalisation, losses, attention, pooling."""

import numpy as np
import scipy.special as special

from ..samples import T, apart, call, f, i, pos, row, unit


def _layer_norm(x, shape, w, b_, eps=1e-5):
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    rstd = 1 / np.sqrt(var + eps)
    out = (x - mean) * rstd
    return (out if w is None else out * w) + (0 if b_ is None else b_), mean, rstd


_norms = [call(f(2, 3), [3], f(3), f(3), 1e-5), call(f(2, 3), [3], None, None, 1e-5), call(f(2, 3, 2), [3, 2], f(3, 2), None, 1e-3), call(T(f(4, 2)), [4], f(4), f(4), 1e-5),
          call(f(2, 1, 3), [3], None, f(3), 1e-5)]
row("native_layer_norm", _norms, _layer_norm, rtol=1e-9, strides=False)
row("layer_norm", [call(*s.args[:4]) for s in _norms[:4] if s.args[4] == 1e-5], lambda *a: _layer_norm(*a)[0], rtol=1e-9, strides=False)


def _norm_backward(mask):
    x = f(4, 3)
    _, mean, rstd = _layer_norm(x, [3], None, None)
    return call(f(4, 3), x, [3], mean, rstd, f(3), f(3), mask)


row("native_layer_norm_backward", [_norm_backward([True, True, True]), _norm_backward([True, False, False])], None, grad=())
_y = special.softmax(f(2, 3), 1)


def _dtype64():
    from ...base import dtypes

    return dtypes.float64


row("_softmax_backward_data", [call(f(2, 3), _y, 1, _dtype64())], lambda g, y, d, _: y * (g - (g * y).sum(d, keepdims=True)), torch=None)
row("_log_softmax_backward_data", [call(f(2, 3), np.log(_y), 1, _dtype64())], lambda g, y, d, _: g - np.exp(y) * g.sum(d, keepdims=True), torch=None)
row("native_dropout", [call(f(2, 3), 0.0, True), call(f(2, 3), 0.5, False), call(f(2, 3), 1.0, True)], None, grad=())
row("dropout", [call(f(2, 3), 0.5, False), call(f(2, 3), 0.0, True)], lambda x, p, t: x)
row("native_group_norm", [call(f(2, 4, 3), f(4), f(4), 2, 4, 3, 2, 1e-5)], None)
row("group_norm", [call(f(2, 4, 3), 2, f(4), f(4)), call(f(2, 4, 2, 2), 4)], None)
row("native_batch_norm", [call(f(3, 2, 2), f(2), f(2), f(2), pos(2), False, 0.1, 1e-5)], None, grad=(0, 1, 2))
row("batch_norm", [call(f(3, 2, 2), f(2), f(2), f(2), pos(2), False, 0.1, 1e-5, True), call(f(3, 2), f(2), f(2), None, None, True, 0.1, 1e-5, True)], None, grad=(0, 1, 2))
row("instance_norm", [call(f(2, 3, 4), f(3), f(3), None, None, True, 0.1, 1e-5, True)], None)
row("rms_norm", [call(f(2, 3), [3]), call(f(2, 3), [3], f(3), 1e-3)],
    lambda x, s, w=1.0, eps=np.finfo(np.float64).eps: x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w)


def _attend(q, k, v, mask=None, p=0.0, causal=False, *, scale=None):
    s = (q @ np.swapaxes(k, -1, -2)) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    if causal:
        s = np.where(np.tril(np.ones(s.shape[-2:], bool)), s, -np.inf)
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    return special.softmax(s, -1) @ v


_qkv = lambda: (f(2, 3, 4), f(2, 3, 4), f(2, 3, 2))  # noqa: E731
row("scaled_dot_product_attention", [call(*_qkv()), call(*_qkv(), None, 0.0, True), call(*_qkv(), np.tril(np.ones((3, 3), bool))), call(*_qkv(), f(3, 3)), call(*_qkv(), scale=0.3)],
    _attend, rtol=1e-9, second=False)

_heads = lambda: (f(1, 2, 3, 4), f(1, 1, 5, 4), f(1, 1, 5, 4))  # noqa: E731
row("_scaled_dot_product_flash_attention_for_cpu", [call(*_heads()), call(*_heads(), 0.0, True), call(*_heads(), attn_mask=f(3, 5), scale=0.3)], None, grad=())
row("_streamed_attention", [call(*_heads(), f(2, 1, 5), np.full((1, 2, 3, 1), 22, np.uint8), 0.5, False, 0.3), call(*_heads(), None, None, 0.0, True, None)], None, grad=())
row("_streamed_attention_backward", [call(f(1, 2, 3, 4), *_heads(), f(3, 5), None, f(1, 2, 3, 4), f(1, 2, 3), 0.0, False, None, True)], None, grad=())
row("_scaled_dot_product_flash_attention_for_cpu_backward", [call(f(1, 2, 3, 4), *_heads(), f(1, 2, 3, 4), f(1, 2, 3), 0.0, True)], None, grad=())

# ---- losses ----------------------------------------------------------------------------------------------------------------
_red = lambda x, r: x if r == 0 else x.mean() if r == 1 else x.sum()  # noqa: E731
_logp = lambda *s: special.log_softmax(f(*s), 1)  # noqa: E731


def _nll(x, t, w=None, reduction=1, ignore=-100):
    w = np.ones(x.shape[1]) if w is None else w
    keep = t != ignore
    safe = np.where(keep, t, 0)
    weight = np.where(keep, w[safe], 0)
    loss = -np.take_along_axis(x, safe[:, None], 1)[:, 0] * weight
    return loss if reduction == 0 else loss.sum() / weight.sum() if reduction == 1 else loss.sum()


row("nll_loss_forward", [call(_logp(4, 3), i(4, high=3), None, 1, -100), call(_logp(4, 3), np.array([0, 2, 1, -100]), pos(3), 2, -100)], None, grad=(0,))
row("nll_loss_backward", [call(f(), _logp(4, 3), i(4, high=3), None, 1, -100, np.asarray(4.0)), call(f(4), _logp(4, 3), i(4, high=3), pos(3), 0, -100, np.asarray(0.0))], None, grad=(0,))
_plane = lambda: (special.log_softmax(f(2, 3, 4, 2), 1), i(2, 4, 2, high=3))  # noqa: E731
row("nll_loss2d_forward", [call(*_plane(), None, 1, -100), call(*_plane(), pos(3), 2, 1)], None, grad=(0,))
row("nll_loss2d_backward", [call(f(), *_plane(), None, 1, -100, np.asarray(16.0)), call(f(2, 4, 2), *_plane(), pos(3), 0, 1, np.asarray(0.0))], None, grad=(0,))
row("nll_loss2d", [call(*_plane()), call(*_plane(), pos(3), 0)], None, grad=(0,))
_nlls = [call(_logp(4, 3), i(4, high=3)), call(_logp(4, 3), np.array([0, 2, 1, -100]), pos(3)), call(_logp(4, 3), i(4, high=3), None, 0), call(_logp(4, 3), np.array([0, 1, 1, 2]), pos(3), 2, 1)]
row("nll_loss", _nlls, _nll, grad=(0,))
row("cross_entropy_loss", _nlls + [call(f(4, 3), i(4, high=3), None, 1, -100, 0.1), call(f(4, 3), special.softmax(f(4, 3), 1))], None, grad=(0,))
for _name, _fn in (("mse_loss", lambda a, t: (a - t) ** 2), ("l1_loss", lambda a, t: np.abs(a - t))):
    row(_name, [call(apart(2, 3), unit(2, 3) / 50), call(f(2, 3), f(2, 3), 0), call(f(2, 3), f(2, 3), 2)], lambda a, t, r=1, fn=_fn: _red(fn(a, t), r))
row("smooth_l1_loss huber_loss", [call(f(2, 3), f(2, 3)), call(f(2, 3) * 3, f(2, 3), 0), call(f(2, 3) * 3, f(2, 3), 2, 0.7)],
    [lambda a, t, r=1, beta=1.0: _red(np.where(np.abs(a - t) < beta, 0.5 * (a - t) ** 2 / beta, np.abs(a - t) - 0.5 * beta), r),
     lambda a, t, r=1, d=1.0: _red(np.where(np.abs(a - t) <= d, 0.5 * (a - t) ** 2, d * (np.abs(a - t) - 0.5 * d)), r)], second=False)
_prob = lambda *s: unit(*s) / 2 + 0.5  # noqa: E731
_bce = lambda p, t, w=1.0, r=1: _red(-(t * np.log(p) + (1 - t) * np.log(1 - p)) * (1.0 if w is None else w), r)  # noqa: E731
row("binary_cross_entropy", [call(_prob(2, 3), _prob(2, 3)), call(_prob(2, 3), _prob(2, 3), pos(3), 2)], _bce, grad=(0,))
row("binary_cross_entropy_with_logits", [call(f(2, 3), _prob(2, 3)), call(f(2, 3), _prob(2, 3), pos(3), None, 2), call(f(2, 3), _prob(2, 3), None, pos(3), 0)],
    lambda x, t, w=None, pw=None, r=1: _red(-((1 if pw is None else pw) * t * special.log_expit(x) + (1 - t) * special.log_expit(-x)) * (1.0 if w is None else w), r), grad=(0,))
row("kl_div", [call(f(2, 3), _prob(2, 3)), call(f(2, 3), f(2, 3), 2, log_target=True)], lambda x, t, r=1, *, log_target=False:
    _red(np.exp(t) * (t - x) if log_target else special.xlogy(t, t) - t * x, r), grad=(0,))
row("soft_margin_loss", [call(f(2, 3), np.sign(f(2, 3)))], lambda x, t, r=1: _red(np.log1p(np.exp(-t * x)), r), grad=(0,))
row("hinge_embedding_loss", [call(apart(2, 3), np.sign(f(2, 3)))], None, grad=(0,))
row("margin_ranking_loss", [call(f(3), f(3), np.sign(f(3)))], None, grad=(0, 1))
row("cosine_embedding_loss", [call(f(2, 3), f(2, 3), np.array([1.0, -1.0]))], None, grad=(0, 1), second=False)
row("triplet_margin_loss", [call(f(2, 3), f(2, 3), f(2, 3))], None, second=False)
row("poisson_nll_loss", [call(f(2, 3), pos(2, 3), True, False, 1e-8, 1)], lambda x, t, *a: (np.exp(x) - t * x).mean(), grad=(0,))
row("cosine_similarity", [call(f(2, 3), f(2, 3)), call(f(2, 3), f(2, 3), 0)], lambda a, c, d=1: (a * c).sum(d) / np.sqrt((a * a).sum(d) * (c * c).sum(d)), second=False)
row("pairwise_distance", [call(f(2, 3), f(2, 3))], None, second=False)

# ---- pooling and sampling --------------------------------------------------------------------------------------------------
row("avg_pool1d", [call(f(2, 3, 6), [2]), call(f(2, 3, 7), [3], [2], [1])], None)
row("avg_pool2d", [call(f(1, 2, 4, 4), [2, 2]), call(f(1, 2, 5, 5), [3, 3], [2, 2], [1, 1])], None)
row("max_pool1d", [call(apart(2, 3, 6), [2])], None)
row("max_pool2d_with_indices", [call(apart(1, 2, 4, 4), [2, 2]), call(apart(1, 2, 5, 5), [3, 3], [2, 2], [1, 1])], None)
row("max_pool2d", [call(apart(1, 2, 4, 4), [2, 2])], None)
row("adaptive_avg_pool2d _adaptive_avg_pool2d", [call(f(1, 2, 4, 4), [2, 2]), call(f(1, 2, 5, 3), [1, 1]), call(f(1, 2, 5, 7), [3, 2])], lambda x, size: np.array([[x[:, :, i * x.shape[2] // size[0]:-(-(i + 1) * x.shape[2] // size[0]), j * x.shape[3] // size[1]:-(-(j + 1) * x.shape[3] // size[1])].mean((2, 3)) for j in range(size[1])] for i in range(size[0])]).transpose(2, 3, 0, 1))
row("adaptive_avg_pool1d", [call(f(2, 3, 6), [2]), call(f(2, 3, 7), [3])], None)
row("upsample_nearest2d", [call(f(1, 2, 2, 3), [4, 6])], lambda x, s: x.repeat(2, 2).repeat(2, 3))
row("upsample_nearest1d", [call(f(1, 2, 3), [6])], lambda x, s: x.repeat(2, 2))
for _name, _n, _aligned in (
    *((f"upsample_nearest{n}d", n, False) for n in (1, 2, 3)), *((f"_upsample_nearest_exact{n}d", n, False) for n in (1, 2, 3)),
    ("upsample_linear1d", 1, True), ("upsample_bilinear2d", 2, True), ("upsample_trilinear3d", 3, True), ("upsample_bicubic2d", 2, True),
    ("_upsample_bilinear2d_aa", 2, True), ("_upsample_bicubic2d_aa", 2, True),
):  # fmt: skip
    _corners = [False] if _aligned else []
    row(
        f"{_name}.vec",
        [call(f(1, 1, *[3] * _n), [5] * _n, *_corners, None), call(f(1, 1, *[3] * _n), None, *_corners, [1.7] * _n)],
        None,
        rtol=1e-5,
    )
row("upsample_bilinear2d", [call(f(1, 2, 2, 3), [4, 6], False), call(f(1, 2, 2, 3), [3, 5], True)], None)
row("im2col", [call(f(1, 2, 4, 4), [2, 2], [1, 1], [0, 0], [1, 1])], None)
row("channel_shuffle", [call(f(1, 4, 2), 2)], None)
row("alpha_dropout", [call(f(2, 3), 0.5, False)], lambda x, *a: x)

_pair = (f(2, 3), f(2, 3))


def _loss_backward(slope):
    def reference(g, x, target, reduction, width):
        return g * slope(x - target, width) / (x.size if reduction == 1 else 1)

    return reference


row("smooth_l1_loss_backward", [call(f(), *_pair, 1, 0.5), call(f(2, 3), *_pair, 0, 1.0), call(f(), *_pair, 2, 0.0)],
    _loss_backward(lambda d, beta: np.clip(d / beta, -1, 1) if beta else np.sign(d)))
row("huber_loss_backward", [call(f(), *_pair, 1, 0.5), call(f(2, 3), *_pair, 0, 1.0)], _loss_backward(lambda d, delta: np.clip(d, -delta, delta)))
row("binary_cross_entropy_backward", [call(f(), pos(2, 3) / 3, pos(2, 3) / 3, None, 1), call(f(2, 3), pos(2, 3) / 3, pos(2, 3) / 3, pos(3), 0)],
    lambda g, p, t, w=None, reduction=1: g * (p - t) / (p * (1 - p)) * (1 if w is None else w) / (p.size if reduction == 1 else 1))
