"""Every native kernel and kind of compiled one once: what calls it, on operands of awkward sizes, and how far from float64 its results may be.

`case(n)` gives (function of tensors, its operands as float32 arrays); a function that takes gradients returns them with its result. Bounds are in
units of float32's epsilon: of the same function of the operands' magnitudes, element by element (``TERMS``: sums of products, whose bound grows with what
is summed), or of the greatest result (``LARGEST``); ``EXACT`` results are those of float64 rounded once."""

import numpy as np

import flambeau as torch
from flambeau.nn.attention.flex_attention import flex_attention

F = torch.nn.functional
EXACT, TERMS, LARGEST = "exact", "terms", "largest"
TABLE = {}


def kernel(name, how=LARGEST, bound=lambda n: 32, sizes=None):
    """``bound(n)``: in epsilons; ``sizes``: only these n."""

    def register(make):
        TABLE[name] = (make, how, bound, sizes)
        return make

    return register


def draws(seed=0):
    rng = np.random.default_rng(seed)
    return lambda *shape: rng.standard_normal(shape).astype(np.float32)


def odd(n, factor):
    """Another size of 1 to 71 that goes with n."""
    return n * factor % 71 + 1


def graded(fn, wanted=None):
    """The result of ``fn`` and the gradients of its weighted sum by the operands (the first ``wanted``)."""

    def run(*args):
        args = [
            a.detach().requires_grad_(a.is_floating_point() and (wanted is None or i < wanted))
            for i, a in enumerate(args)
        ]
        out = fn(*args)
        weights = torch.arange(out.numel(), dtype=out.dtype).reshape(out.shape) % 7 + 1
        return out.detach(), *torch.autograd.grad(out, [a for a in args if a.requires_grad], weights)

    return run


def _simple(name, fn, *shapes, how=LARGEST, bound=lambda n: 32, grad=False, sizes=None):
    """A case whose operands' shapes follow from n."""

    def make(n):
        d = draws(n)
        return (graded(fn) if grad else fn), [d(*shape(n)) for shape in shapes]

    TABLE[name] = (make, how, bound, sizes)


def sq(n):
    return n, odd(n, 37)


# Products
_simple(
    "product", torch.mm, lambda n: (n, odd(n, 37)), lambda n: (odd(n, 37), odd(n, 53)), how=TERMS, bound=lambda n: 80
)
_simple(
    "product, transposed",
    lambda a, b: a.t() @ b.t(),
    lambda n: (odd(n, 37), n),
    lambda n: (odd(n, 53), odd(n, 37)),
    how=TERMS,
    bound=lambda n: 80,
)
_simple(
    "products",
    torch.bmm,
    lambda n: (3, n, odd(n, 37)),
    lambda n: (3, odd(n, 37), odd(n, 53)),
    how=TERMS,
    bound=lambda n: 80,
)
_simple(
    "larger product", F.linear, lambda n: (96 + n, 300 + n), lambda n: (64 + n, 300 + n), how=TERMS, bound=lambda n: 380
)
_simple(
    "few rows",
    lambda x, w, v: (F.linear(x, w), x @ v),
    lambda n: (odd(n, 53) % 64 + 2, 800 + n),
    lambda n: (1200 + n, 800 + n),
    lambda n: (800 + n, 1200 + n),
    how=TERMS,
    bound=lambda n: 880,
)
_simple(
    "matrix and vector",
    lambda a, x, y: (a @ x, y @ a),
    lambda n: (n, odd(n, 37)),
    lambda n: (odd(n, 37),),
    lambda n: (n,),
    how=TERMS,
    bound=lambda n: 80,
)
_simple(
    "large matrix and vector",
    lambda a, x, y: (a @ x, y @ a),
    lambda n: (300 + n, 257 + n),
    lambda n: (257 + n,),
    lambda n: (300 + n,),
    how=TERMS,
    bound=lambda n: 380,
)
_simple(
    "product, gelu, layer norm",
    lambda x, w, b: F.layer_norm(F.gelu(F.linear(x, w, b)), b.shape),
    lambda n: (96 + n, odd(n, 37)),
    lambda n: (odd(n, 53) + 8, odd(n, 37)),
    lambda n: (odd(n, 53) + 8,),
    bound=lambda n: 64,
    grad=True,
)


_simple(
    "product on all threads",
    torch.mm,
    lambda n: (64 + n, 1025),
    lambda n: (1025, 950 + 2 * n),
    how=TERMS,
    bound=lambda n: 1100,
    sizes=(1, 33, 37, 70),
)


@kernel("product of bfloat16", bound=lambda n: 1 << 17)
def _(n):
    d = draws(n)
    half = lambda t: t.to(torch.bfloat16 if t.dtype is torch.float32 else t.dtype)  # noqa: E731
    return (lambda a, b: (half(a) @ half(b)).to(a.dtype)), [d(64 + n, 64 + odd(n, 37)), d(64 + odd(n, 37), odd(n, 53))]


@kernel("product of bfloat16 with an addend", bound=lambda n: 1 << 17)
def _(n):
    d, m, k = draws(n), 64 + n, 64 + odd(n, 37)
    half = lambda t: t.to(torch.bfloat16 if t.dtype is torch.float32 else t.dtype)  # noqa: E731

    def run(a, b, row, column, every):
        a, b, row, column, every = map(half, (a, b, row, column, every))
        made = (
            torch.addmm(row, a, b),
            torch.addmm(column, a, b, beta=0.3, alpha=-1.7),
            torch.addmm(every.t(), a, b, alpha=0.5),
            torch.baddbmm(every, b.t()[None], a.t()[None], beta=2),
        )
        return tuple(t.float() if t.dtype is torch.bfloat16 else t for t in made)

    w = odd(n, 53)
    return run, [d(m, k), d(k, w), d(w), d(m, 1), d(w, m)]


@kernel("weights of few bits", how=TERMS, bound=lambda n: 512)
def _(n):
    d, k, rows = draws(n), 32 * odd(n, 37) % 400 + 1, odd(n, 53)
    few = torch.from_numpy(np.random.default_rng(n).integers(-128, 128, (rows, k)).astype(np.int8))

    def run(x, scales):
        if x.dtype is torch.float64:
            return x @ ((few.to(x.dtype).abs() if bool((x >= 0).all()) else few.to(x.dtype)) * scales[:, None]).t()
        return torch.ops.aten._weight_int8pack_mm(x, few, scales)

    return run, [d(n % 19 + 1, k), np.abs(d(rows))]


# Convolutions
def _conv(name, channels, outputs, taps, dims=2, least=1, transposed=False, last=False, **how):
    """``last``: image and weight with their channels innermost."""

    def make(n):
        d, c, o = draws(n), channels(n), outputs(n)
        groups = how.get("groups", 1)
        groups = c if groups == "all" else groups
        sides = tuple(least + x for x in (n % 23, odd(n, 37) % 19, odd(n, 53) % 5)[:dims])
        fn = getattr(F, f"conv{'_transpose' if transposed else ''}{dims}d")
        rest = {**how, "groups": groups}
        w = (c, o // groups) if transposed else (o, c // groups)
        if last:
            first = lambda t: t.permute(0, -1, *range(1, dims + 1))  # noqa: E731
            arrays = [d(2, *sides, c), d(w[0], *[taps] * dims, w[1]), d(o)]
            return graded(lambda x, w, b: fn(first(x), first(w), b, **rest)), arrays
        return graded(lambda x, w, b: fn(x, w, b, **rest)), [d(2, c, *sides), d(*w, *[taps] * dims), d(o)]

    TABLE[name] = (make, LARGEST, lambda n: 64, None)


_conv("convolution 3x3", lambda n: 3, lambda n: odd(n, 5) % 20 + 1, 3, padding=1)
_conv("convolution of 16 channels (Winograd)", lambda n: 16, lambda n: 32, 3, padding=1)
_conv("convolution of one dimension (Winograd)", lambda n: 32, lambda n: 16, 3, dims=1, padding=1)
_conv("convolution of three dimensions (Winograd)", lambda n: 16, lambda n: 32, 3, dims=3, padding=1)
_conv("convolution 4x4, stride 2 (Winograd)", lambda n: 16, lambda n: 32, 4, least=2, padding=1, stride=2)
_conv("convolution 7x7, stride 2", lambda n: 3, lambda n: n % 9 + 1, 7, padding=3, stride=2)
_conv("convolution, dilated", lambda n: n % 5 + 1, lambda n: 4, 3, least=5, padding=2, dilation=2)
_conv("convolution 1x1", lambda n: n, lambda n: odd(n, 37), 1)
_conv("convolution of two groups", lambda n: 4, lambda n: 6, 3, least=3, groups=2)
_conv("convolution, depthwise", lambda n: n, lambda n: n, 3, padding=1, groups="all")
_conv("convolution, depthwise 5x5, stride 2", lambda n: n, lambda n: n, 5, padding=2, stride=2, groups="all")
_conv("convolution of one dimension", lambda n: odd(n, 37), lambda n: odd(n, 53), 3, dims=1, padding=1)
_conv("convolution of three dimensions", lambda n: n % 4 + 1, lambda n: 3, 3, dims=3, padding=1)
_conv("convolution, transposed", lambda n: n % 9 + 1, lambda n: 5, 3, transposed=True, stride=2, padding=1)
_conv(
    "convolution of one dimension, transposed", lambda n: n % 9 + 1, lambda n: 5, 4, dims=1, transposed=True, stride=3
)
_conv("convolution 3x3, channels last", lambda n: 3, lambda n: odd(n, 5) % 20 + 1, 3, last=True, padding=1)
_conv("convolution of 16 channels, channels last", lambda n: 32, lambda n: 16 + 16 * (n % 3), 3, last=True, padding=1)
_conv("convolution 1x1, channels last", lambda n: n, lambda n: odd(n, 37), 1, last=True)
_conv("convolution 1x1 of large planes", lambda n: n, lambda n: odd(n, 37), 1, least=9)
_conv("convolution 1x1 of large planes, channels last", lambda n: odd(n, 53), lambda n: n, 1, least=9, last=True)
_conv("convolution, depthwise, channels last", lambda n: n, lambda n: n, 3, last=True, padding=1, groups="all")
_conv(
    "convolution, depthwise, stride 2, channels last",
    lambda n: n,
    lambda n: n,
    5,
    last=True,
    stride=2,
    padding=2,
    groups="all",
)
_conv(
    "convolution of three dimensions, channels last", lambda n: n % 4 + 1, lambda n: 3, 3, dims=3, last=True, padding=1
)
_conv(
    "convolution, transposed, channels last", lambda n: n % 9 + 1, lambda n: 5, 3, transposed=True, last=True, stride=2
)


# Attention
def _attention(name, queries, **how):
    def make(n):
        d, t, s, e = draws(n), queries(n), n, odd(n, 37) % 64 + 1
        h, k = (4, 2) if how.get("enable_gqa") else (2, 2)

        def run(q, keys, v, *mask):
            return F.scaled_dot_product_attention(q, keys, v, *mask, **how)

        operands = [d(1, h, t, e), d(1, k, s, e), d(1, k, s, e)]
        return graded(run), [*operands, d(t, s)] if name.endswith("mask") else operands

    TABLE[name] = (make, LARGEST, lambda n: 256, None)


_attention("attention", lambda n: odd(n, 53))
_attention("attention, causal", lambda n: n, is_causal=True)
_attention("attention, a mask", lambda n: odd(n, 53))
_attention("attention, shared keys", lambda n: odd(n, 53), enable_gqa=True)
_attention("attention of one more token", lambda n: 1)


@kernel("attention, dropout")
def _(n):
    d = draws(n)

    def run(q, k, v):
        torch.manual_seed(n)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.3)

    return graded(run), [d(1, 2, m, 8) for m in (odd(n, 53), n, n)]


TABLE["attention, dropout"] = (
    TABLE["attention, dropout"][0],
    None,
    None,
    None,
)  # float64 has other products, and the same bytes


_simple(
    "attention of one's own scores",
    lambda q, k, v: flex_attention(q, k, v, lambda score, b, h, i, j: score - 0.1 * (i - j)),
    *[lambda n: (1, 2, n, 16)] * 3,
    grad=True,
    bound=lambda n: 256,
)


# Recurrences
for _name, _cell in (("lstm", "LSTM"), ("gru", "GRU"), ("rnn", "RNN")):

    def _make(n, cell=_cell):
        d = draws(n)
        torch.manual_seed(n)
        net = getattr(torch.nn, cell)(n % 13 + 1, odd(n, 37) % 40 + 1, batch_first=True)
        twice = getattr(torch.nn, cell)(net.input_size, net.hidden_size, batch_first=True, dtype=torch.float64)
        twice.load_state_dict(net.state_dict())

        def run(x):
            of = net if x.dtype is torch.float32 else twice
            x = x.detach().requires_grad_()
            out = of(x)[0]
            return out.detach(), *torch.autograd.grad(out.sum(), [x, *of.parameters()])

        return run, [d(n % 5 + 1, n % 9 + 1, n % 13 + 1)]

    TABLE[_name] = (_make, LARGEST, lambda n: 64, None)

# Orders, scans and what looks for elements: places and elements are exact
_exact = {
    "sort": lambda x: x.sort(-1),
    "sort of columns": lambda x: x.sort(0, descending=True),
    "sort of short columns": lambda x: (*x[:9].sort(0), *x[-16:].topk(min(5, len(x)), 0)),
    "topk": lambda x: x.topk((x.shape[1] + 1) // 2),
    "element by rank": lambda x: (*x.median(-1), *x.kthvalue((x.shape[1] + 1) // 2, -1)),
    "running extremes": lambda x: (*x.cummax(-1), *x.cummin(0)),
    "nonzero": lambda x: ((x > 0).nonzero(), x[x > 0.5]),
    "search": lambda x: (torch.searchsorted(x.sort(-1)[0], x), torch.bucketize(x, torch.linspace(-2, 2, 9, dtype=x.dtype))),
    "counts": lambda x: (torch.bincount((x.abs() * 9).long().flatten()), torch.histc(x, 7, -3, 3), torch.unique((x * 3).round())),
    "extremes": lambda x: (x.amax(1), x.amin(0), x.argmax(1), x.argmin(0), x.max()),
    "largest of windows": lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1))[None], 3, 2, 1, return_indices=True),
    "largest of windows, channels last": lambda x: F.max_pool2d(
        F.pad(x, (1, 1, 1, 1)).t()[None, :, None].expand(-1, -1, 3, -1).contiguous(memory_format=torch.channels_last), 3, 2, 1, return_indices=True
    ),
    "moves": lambda x: (x.t().contiguous(), torch.cat([x, x], 1), F.pad(x, (1, 2, 3, 0)), x.roll(1, 1), x.flip(1), x[:, 1:] > 0),
    "rows by index": lambda x: (x[torch.arange(x.shape[0] - 1, -1, -1)], x.gather(1, (x > 0).long() % x.shape[1])),
}  # fmt: skip
for _name, _fn in _exact.items():
    _simple(_name, _fn, sq, how=EXACT)
_simple("running sums", lambda x: (x.cumsum(-1), x.cumsum(0)), sq, how=TERMS, bound=lambda n: 80)
_simple("running products", lambda x: (x.cumprod(-1),), sq, how=TERMS, bound=lambda n: 80)
_simple("running logarithms of sums", lambda x: x.logcumsumexp(-1), sq, bound=lambda n: 8)


# Scatters
@kernel("scatters", how=TERMS, bound=lambda n: 80)
def _(n):
    d, rng = draws(n), np.random.default_rng(n)
    rows, places = (torch.from_numpy(rng.integers(0, 5, s)) for s in (n, (n, odd(n, 37))))

    def run(x, y):
        added = (x.index_add(0, rows, y), x.scatter_add(0, places, y), x.index_put((rows,), y, accumulate=True))
        return *added, F.embedding(rows, x) + y, *graded(lambda x: F.embedding(rows, x))(x)[1:]

    return run, [d(5, odd(n, 37)), d(n, odd(n, 37))]


@kernel("scattered extremes", how=EXACT)
def _(n):
    d, places = draws(n), torch.from_numpy(np.random.default_rng(n).integers(0, 5, (n, odd(n, 37))))
    return (lambda x, y: (x.scatter_reduce(0, places, y, "amax"), x.scatter(0, places[:1], y[:1]))), [
        d(5, odd(n, 37)),
        d(n, odd(n, 37)),
    ]


# Transforms and linear algebra
_simple("fft", lambda x: torch.view_as_real(torch.fft.fft(x)), sq, bound=lambda n: 16)
_simple(
    "fft of columns, real",
    lambda x: (torch.view_as_real(torch.fft.rfft(x, dim=0)), torch.fft.irfft(torch.fft.rfft(x), x.shape[1])),
    sq,
    bound=lambda n: 16,
)
_simple("fft of two dimensions", lambda x: torch.view_as_real(torch.fft.fft2(x)), sq, bound=lambda n: 16)
_simple(
    "triangular systems",
    lambda a, b: torch.linalg.solve_triangular(
        a.tril() * 0.1 + 2 * torch.eye(a.shape[0], dtype=a.dtype), b, upper=False
    ),
    lambda n: (n, n),
    sq,
    bound=lambda n: 32,
)
_simple(
    "systems",
    lambda a, b: torch.linalg.solve(a * 0.1 + 3 * torch.eye(a.shape[0], dtype=a.dtype), b),
    lambda n: (n, n),
    sq,
    bound=lambda n: 64,
)
_simple(
    "Cholesky",
    lambda a: torch.linalg.cholesky(a @ a.t() + 9 * torch.eye(a.shape[0], dtype=a.dtype)),
    lambda n: (n, n),
    bound=lambda n: 32,
)

# Loops that are fused
_simple("softmax", lambda x: (x.softmax(-1), x.log_softmax(-1), x.softmax(0)), sq, bound=lambda n: 8)
_simple("softmax, gradients", lambda x: x.softmax(-1), sq, grad=True, bound=lambda n: 32)
_simple(
    "layer norm",
    lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    lambda n: (n, odd(n, 37) + 1),
    lambda n: (odd(n, 37) + 1,),
    lambda n: (odd(n, 37) + 1,),
    grad=True,
    bound=lambda n: 64,
)
_simple("group norm", lambda x: F.group_norm(x, 2), lambda n: (2, 4, n, 3), grad=True, bound=lambda n: 64)
_simple(
    "batch norm",
    lambda x: F.batch_norm(x, None, None, training=True),
    lambda n: (3, odd(n, 37), n),
    grad=True,
    bound=lambda n: 64,
)
_simple("sums", lambda x: (x.sum(), x.sum(0), x.sum(1), x.mean(1)), sq, how=TERMS, bound=lambda n: 24)
_simple("long sums", lambda x: (x.sum(), x.sum(0), x.sum(1)), lambda n: (3, 20000 + n), how=TERMS, bound=lambda n: 32)
_simple("variances", lambda x: (x.var(1, correction=0), x.std(0, correction=0)), sq, bound=lambda n: 16)
_simple(
    "elementary functions",
    lambda x: (F.gelu(x), F.silu(x), x.exp(), x.tanh(), x.sin(), x.abs().log1p(), x.erf()),
    sq,
    bound=lambda n: 8,
)
_simple(
    "averages of windows",
    lambda x: (F.avg_pool2d(F.pad(x, (2, 2, 2, 2))[None], 3, 2), F.adaptive_avg_pool2d(x[None], 3)),
    sq,
    how=TERMS,
    bound=lambda n: 16,
)
_simple(
    "averages of windows with channels last, gradients",
    lambda x: F.avg_pool2d(
        F.pad(x, (1, 1, 1, 1)).t()[None, :, None].expand(-1, -1, 3, -1).contiguous(memory_format=torch.channels_last),
        2,
        1,
    ),
    sq,
    grad=True,
    bound=lambda n: 16,
)
_simple("windows, gradients", lambda x: F.max_pool2d(F.pad(x, (1, 1, 1, 1))[None], 2), sq, grad=True, bound=lambda n: 4)
_simple(
    "windows with channels last, gradients",
    lambda x: F.max_pool2d(
        F.pad(x, (1, 1, 1, 1)).t()[None, :, None].expand(-1, -1, 3, -1).contiguous(memory_format=torch.channels_last), 2
    ),
    sq,
    grad=True,
    bound=lambda n: 8,
)
_simple(
    "interpolation",
    lambda x: torch.cat(
        [F.interpolate(x[None, None], scale_factor=1.7, mode=m).flatten() for m in ("nearest", "bilinear", "bicubic")]
    ),
    sq,
    grad=True,
    bound=lambda n: 200,
)


@kernel("cross-entropy", bound=lambda n: 32)
def _(n):
    target = torch.from_numpy(np.random.default_rng(n).integers(0, odd(n, 37), n))
    return graded(lambda x: F.cross_entropy(x, target)[None]), [draws(n)(n, odd(n, 37))]


@kernel("many tensors at once", bound=lambda n: 16)
def _(n):
    d = draws(n)

    def run(*given):
        leaves = [torch.nn.Parameter(g.clone()) for g in given]
        optimizer = torch.optim.AdamW(leaves, lr=0.1)
        for p, g in zip(leaves, given):
            p.grad = g * 0.5 + 1
        optimizer.step()
        return [p.detach() for p in leaves] + list(
            torch._foreach_mul(torch._foreach_add(list(given), 1.5), list(given))
        )

    return run, [d(n), d(odd(n, 37), 3), d(1), d(2, n)]


@kernel("sparse product", how=TERMS, bound=lambda n: 80)
def _(n):
    def run(x, y):
        kept = x * (x.abs() > 0.8)
        return kept.to_sparse() @ y, kept.to_sparse_csr() @ y, (kept.to_sparse() @ kept.t().to_sparse()).to_dense()

    return run, [np.where(np.abs(a := draws(n)(n, odd(n, 37))) > 0.8, a, 0), draws(n + 1)(odd(n, 37), odd(n, 53))]


@kernel("connectionist temporal classification", bound=lambda n: 8 * n)
def _(n):
    rng = np.random.default_rng(n)
    longest = n // 3
    labels = torch.from_numpy(rng.integers(1, 7, (5, longest)))
    lengths = (
        torch.tensor([n, n - 1, max(n - 2, 1), n, 0]),
        torch.tensor([longest, longest // 2, 0, 1 if longest else 0, 0]),
    )
    line = torch.cat([labels[k, : int(m)] for k, m in enumerate(lengths[1])])

    def run(x):
        rows = x.log_softmax(2)
        return tuple(
            r
            for at in (labels, line)
            for r in graded(lambda t: F.ctc_loss(t, at, *lengths, reduction="none", zero_infinity=True))(rows)
        )

    return run, [draws(n)(n, 5, 7)]


@kernel("segments", how=TERMS, bound=lambda n: n + 8)
def _(n):
    rng = np.random.default_rng(n)
    cuts = np.sort(rng.integers(0, n + 1, (3, 4)))
    offsets = torch.from_numpy(np.concatenate([np.zeros((3, 1), int), cuts, np.full((3, 1), n)], 1))

    def run(x):
        lengths, first = offsets.diff(), x[0]
        return (
            *(torch.segment_reduce(x, r, lengths=lengths, axis=1, initial=0.5) for r in ("sum", "mean", "max")),
            *(torch.segment_reduce(first, r, offsets=offsets[0], initial=0.5) for r in ("sum", "mean")),
            torch.segment_reduce(x[..., 0], "sum", lengths=lengths, axis=1),
            *graded(lambda x: torch.segment_reduce(x, "mean", lengths=lengths, axis=1, initial=0.0))(x),
        )

    return run, [draws(n)(3, n, odd(n, 37))]


@kernel("views by strides", how=TERMS, bound=lambda n: 8)
def _restrided(n):
    m = odd(n, 37)

    def both(grad):
        rows, apart = [n, m], [m + 3, 1]  # rows with a gap, windows that overlap, elements that share memory
        wide = torch.ops.aten._as_strided_scatter(grad, [n * (m + 3)], [1], rows, apart, 0)
        windows = torch.ops.aten._as_strided_gather(wide, [1], [n, m, 2], [m, 1, 1], 1)
        summed = torch.ops.aten._as_strided_scatter(grad, [n + m], [1], rows, [1, 1], 0)
        mean = torch.ops.aten._as_strided_gather(grad, [1, 1], [n + m - 1], [1], 0)
        return wide, windows, summed, mean

    return both, [draws(n)(n, m)]


def _drawn(n):
    def run(x):
        torch.manual_seed(n)
        like = {"dtype": torch.float32}
        return (
            torch.rand(n, **like),
            torch.randn(n * 3, **like),
            torch.randint(0, 9, (n,)),
            torch.randperm(n),
            torch.bernoulli(torch.full((n,), 0.3)),
            F.dropout(torch.ones(n), 0.4),
        )

    return run, [np.zeros(1, np.float32)]


TABLE["draws"] = (_drawn, EXACT, None, None)


@kernel("rows in eager calls", bound=lambda n: 40)
def _rows(n):
    d = draws(n)
    shape = (3, n, odd(n, 37) % 9 + 1)

    def run(x, w, b):
        return (
            torch.softmax(x, 1),
            torch.log_softmax(x, 1),
            torch.softmax(w, 0),
            *torch.native_layer_norm(x, [*shape[1:]], w, b, 1e-5),
        )

    return run, [d(*shape), d(*shape[1:]), d(*shape[1:])]


@kernel("images at the points of a grid", bound=lambda n: 40 + 2 * n)
def _grid(n):
    d = draws(n)
    high, wide = n, odd(n, 37) % 9 + 1

    def run(image, grid):
        return tuple(
            F.grid_sample(x, grid, mode, padding, corners)
            for mode in ("bilinear", "nearest")
            for padding in ("zeros", "border")
            for corners in (False, True)
            for x in (image, image.flip(0))
        )

    return run, [d(2, 3, high, wide), d(2, odd(n, 53) % 70 + 1, 2, 2)]
