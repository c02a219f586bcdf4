"""Small calls of nearly every operator, eager, beside PyTorch: what a call costs, three sizes, float32 and float64.

    python benchmarks/small_calls.py --torch-python /path/to/python [--only REGEX] [--rounds 5] [--above 1.5]
        [--out FILE] [--into DOCUMENT]

``CALLS`` has an expression a name, in words that both libraries share, on the inputs that ``inputs`` makes for a size. Both run in workers of
their own, whose rounds alternate; a round is the least of some repetitions. The table has the names whose ratio is above ``--above`` at some size, in
microseconds, the greatest first, and above it the geometric means.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import time
import warnings

import report

SIZES, KINDS = (4, 16, 64), ("float32", "float64")

UNARY = """abs atan ceil cos erfinv exp floor isfinite isnan log log2 logical_not neg round rsqrt sigmoid sign sin sqrt square tan tanh trunc
acos asin asinh atanh conj_physical cosh deg2rad digamma erf erfc exp2 expm1 frac i0 isinf isneginf isposinf isreal lgamma log10 log1p logit
nan_to_num positive rad2deg reciprocal sgn signbit sinc sinh angle frexp amax amin aminmax all any argmax argmin cumprod:0 prod mean sum std var
median nanmean nansum nanmedian logsumexp:0 argsort sort diff nonzero unique trace tril triu t flatten fliplr flipud rot90 argwhere msort
count_nonzero var_mean std_mean clone corrcoef cov diag diagflat diag_embed atleast_1d atleast_3d t_copy alias_copy ravel real
logcumsumexp:0 cumsum:0 cummax:0 cummin:0 log_softmax:0 softmax:0 mode resolve_conj resolve_neg unique_consecutive max min norm""".split()
BINARY = """add atan2 copysign div eq floor_divide fmod ge gt isclose le logical_and logical_or logical_xor lt maximum minimum mul ne pow remainder
sub true_divide float_power fmax fmin heaviside hypot igamma igammac logaddexp logaddexp2 nextafter rsub xlogy allclose equal kron dist""".split()
INTEGER = """bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor gcd lcm""".split()
SPECIAL = "entr erfcx i0e i1 i1e log_ndtr ndtr ndtri".split()
FUNCTIONS = """elu gelu relu silu softplus celu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu softshrink softsign
tanhshrink glu rrelu normalize alpha_dropout""".split()
LOSSES = """kl_div l1_loss mse_loss smooth_l1_loss binary_cross_entropy_with_logits binary_cross_entropy huber_loss poisson_nll_loss
soft_margin_loss""".split()
TRANSFORMS = """fft fft2 fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft irfft2 irfftn rfft rfft2 rfftn""".split()
LINALG = """norm pinv vector_norm cholesky cholesky_ex cond det diagonal eig eigh eigvals eigvalsh inv inv_ex lu lu_factor lu_factor_ex matrix_norm
matrix_rank qr slogdet svd svdvals vander""".split()
METHODS = "bool byte char double float half int long short bfloat16 contiguous conj".split()
OTHERS = """
x[m] | x[1] | x[:, 1:3] | x[i] | x.clone().index_put_((i,), v) | x.index_put((i, i), v) | 1 + x | 2 / x | x @ y | 2 % x | 2 * x | 2 ** x
2 - x | x.clone().zero_() | x.clone().fill_(2.0) | x.clone().uniform_() | x.clone().normal_() | x.clone().exponential_()
x.clone().cauchy_() | x.clone().log_normal_() | x.clone().geometric_(0.5) | x.clone().bernoulli_() | torch.bernoulli(x) | torch.randn(n, n)
torch.rand(n, n) | torch.randint(9, (n, n)) | torch.randn_like(x) | torch.rand_like(x) | torch.randint_like(x, 9) | torch.normal(x, y)
torch.multinomial(x, 2) | assign(x.clone(), m, v[0]) | assign(x.clone(), m, 1.0) | assign(x.clone(), 0, v) | assign(x.clone(), i, x)
torch.tensor(nested) | torch.tensor(flat) | torch.tensor(1.5) | torch.as_tensor(flat) | x.tolist() | x[0, 0].item() | torch.addcdiv(x, y, z)
torch.addcmul(x, y, z) | torch.arange(n) | torch.arange(0.0, n, 0.5) | x.as_strided((2, 2), (1, 1)) | k.bitwise_not() | torch.bmm(b, b)
torch.cat([x, y]) | torch.cat([x, y, z], 1) | x.chunk(2) | x.clamp(0.2, 0.8) | torch.clamp(x, y, z) | x.cumprod(0) | v.dot(w)
torch.einsum('ij,jk->ik', x, y) | torch.einsum('bij,bjk->bik', b, b) | torch.empty(n, n) | torch.empty_like(x) | x[:1].expand(n, n)
x[:1].expand_as(x) | torch.eye(n) | torch.fill(x, 2.0) | x.flip(0) | torch.full((n, n), 2.0) | torch.full_like(x, 2.0)
torch.gather(x, 0, i2) | torch.index_add(x, 0, i, y) | x.index_select(0, i) | torch.lerp(x, y, 0.3) | torch.lerp(x, y, z)
torch.linspace(0, 1, n) | x.masked_fill(m, 0.0) | x.max(0) | x.mean(0) | x.sum(1) | x.std(0) | x.argmax(1) | x.amax(0) | x.var(1)
x.median(0) | torch.meshgrid(v, w, indexing='ij') | torch.mm(x, y) | x.narrow(0, 1, 2) | x.new_empty((n, n)) | x.new_full((n, n), 1.0)
x.new_ones((n, n)) | x.new_zeros((n, n)) | torch.ones(n, n) | torch.ones_like(x) | x.permute(1, 0) | x.pow(2) | x.pow(0.5) | x.repeat(2, 2)
x.repeat_interleave(2, 0) | x.reshape(-1) | x.reshape_as(y) | x.roll(1, 0) | torch.scalar_tensor(2.0) | torch.scatter(x, 0, i2, y)
x.scatter_add(0, i2, y) | x.select(0, 1) | x.scatter_reduce(0, i2, y, 'amax') | x.split(2) | x.unsqueeze(0).squeeze(0) | torch.stack([x, y])
x.tile(2, 2) | x.to(torch.float16) | x.topk(2) | x.transpose(0, 1) | x.unbind(0) | x.unfold(0, 2, 1) | x.unsqueeze(0) | x.view(-1)
x.view_as(y) | torch.view_as_real(cx) | torch.where(m, x, y) | torch.where(m, x, 0.0) | torch.zeros(n, n) | torch.zeros_like(x)
F.adaptive_avg_pool2d(img, 2) | F.adaptive_max_pool2d(img, 2) | F.avg_pool2d(img, 2) | F.batch_norm(img, c4, c4 + 1)
F.batch_norm(img, None, None, training=True) | F.conv2d(img, k2, padding=1) | F.cross_entropy(x, i) | F.dropout(x, 0.5)
F.grid_sample(img, grid, align_corners=False) | F.group_norm(img, 2) | F.interpolate(img, scale_factor=2) | F.layer_norm(x, (n,))
F.linear(x, y, v) | F.interpolate(img, scale_factor=2, mode='bilinear') | F.max_pool2d(img, 2) | F.nll_loss(x, i) | F.one_hot(i)
F.pad(x, (1, 1)) | F.rms_norm(x, (n,)) | F.pad(img, (1, 1, 1, 1), mode='reflect') | F.scaled_dot_product_attention(q, q, q)
F.unfold(img, 3) | x.H | x.T | x.mT | torch.acosh(x + 1) | torch.addbmm(x, b, b) | torch.addmm(x, y, z) | torch.addmv(v, x, w)
torch.addr(x, v, w) | torch.baddbmm(b, b, b) | torch.as_strided_scatter(x, v, (n,), (1,)) | i.bincount() | torch.block_diag(x, y)
torch.broadcast_tensors(x, v) | v.broadcast_to((n, n)) | torch.bucketize(x, s) | torch.cartesian_prod(v[:4], w[:4]) | torch.cdist(x, y)
torch.cholesky(spd) | torch.cholesky_inverse(spd) | torch.cholesky_solve(x, spd) | x.clamp_max(0.5) | x.clamp_min(0.5)
torch.column_stack([v, w]) | torch.combinations(v[:4]) | torch.complex(x, y) | torch.constant_pad_nd(x, (1, 1)) | torch.cross(t3, t3)
x.diagonal() | torch.cumulative_trapezoid(x) | torch.diagonal_scatter(x, v) | b.dsplit(2) | torch.dstack([x, y]) | torch.hsplit(x, 2)
torch.hstack([x, y]) | torch.geqrf(x) | torch.gradient(v) | torch.histc(x, 10) | torch.histogram(x, 10) | cx.imag | x.index_copy(0, i, y)
x.index_fill(0, i, 1.0) | x.index_reduce(0, i, y, 'amax') | torch.inner(x, y) | torch.isin(x, v) | torch.istft(spec, 4, window=win)
torch.stft(line, 4, return_complex=True, window=win) | x.kthvalue(2) | torch.ldexp(x, k) | torch.linalg.cross(t3, t3)
torch.linalg.householder_product(x, v) | torch.linalg.lstsq(spd, x) | torch.linalg.lu_solve(*lu, x) | torch.linalg.matrix_power(x, 3)
torch.linalg.multi_dot([x, y, z]) | torch.linalg.solve(spd, x) | torch.linalg.vecdot(x, y) | torch.linalg.solve_triangular(x, y, upper=True)
torch.logdet(spd) | torch.logspace(0, 1, n) | torch.lu_unpack(*lu) | torch.masked_scatter(x, m, y) | x.masked_select(m)
torch.matrix_exp(x) | x.movedim(0, 1) | torch.mv(x, v) | torch.mvlgamma(x + 2, 2) | x.nanquantile(0.5) | x.quantile(0.5)
torch.narrow_copy(x, 0, 1, 2) | torch.native_layer_norm(x, [n], v, w, 1e-5) | F.adaptive_avg_pool1d(seq, 2) | F.adaptive_avg_pool3d(vol, 2)
F.adaptive_max_pool1d(seq, 2) | F.avg_pool1d(seq, 2) | F.avg_pool3d(vol, 2) | F.bilinear(x, y, b2) | F.channel_shuffle(img, 2)
F.conv1d(seq, k1, padding=1) | F.conv3d(vol, k3, padding=1) | F.conv_transpose1d(seq, k1) | F.conv_transpose2d(img, k2)
F.conv_transpose3d(vol, k3) | F.cosine_similarity(x, y) | F.cosine_embedding_loss(x, y, sg) | F.ctc_loss(lp, tg, il, tl) | F.dropout2d(img)
F.dropout3d(vol) | F.embedding(i, x) | F.embedding_bag(i2, x) | F.feature_alpha_dropout(img) | F.gaussian_nll_loss(x, y, z)
F.hinge_embedding_loss(x, sg2) | F.instance_norm(img) | F.local_response_norm(img, 2) | F.margin_ranking_loss(v, w, sg)
F.max_pool1d(seq, 2) | F.max_pool3d(vol, 2) | F.multi_margin_loss(x, i) | F.multilabel_margin_loss(x, i2)
F.multilabel_soft_margin_loss(x, y) | F.pairwise_distance(x, y) | F.pdist(x) | F.pixel_shuffle(img, 2) | F.pixel_unshuffle(img, 2)
F.prelu(img, c4) | F.softmin(x, 0) | F.softmax(x, 1) | F.log_softmax(x, 1) | F.threshold(x, 0.5, 0.0) | F.triplet_margin_loss(x, y, z)
F.upsample_nearest(img, scale_factor=2) | torch.nonzero_static(m, size=3) | torch.outer(v, w) | torch.permute_copy(x, (1, 0))
torch.pinverse(x) | torch.polar(x, y) | x.polygamma(1) | x.put(i, v) | torch.qr(x) | x.renorm(2, 0, 1.0) | torch.searchsorted(s, x)
torch.select_scatter(x, v, 0, 1) | torch.slice_scatter(x, y[:2], 0, 0, 2) | x.sum_to_size(n) | torch.signal.windows.hann(n)
torch.signal.windows.hamming(n) | torch.special.xlog1py(x, y) | torch.special.zeta(x + 1, y) | x.split_with_sizes([1, n - 1]) | torch.svd(x)
x.take(i) | torch.take_along_dim(x, i2, 0) | x.tensor_split(2) | torch.tensordot(x, y, 1) | torch.trapezoid(x) | torch.tril_indices(n, n)
torch.triu_indices(n, n) | torch.triangular_solve(x, y) | x.unflatten(0, (2, -1)) | torch.unravel_index(i, (n, n)) | v.vdot(w)
torch.view_as_complex(pairs) | torch.vsplit(x, 2) | torch.vstack([x, y]) | x.add_(0.0) | x.mul_(1.0) | x.clone().copy_(y)
torch.add(x, y, out=z.clone()) | torch.sum(x, 0, keepdim=True)
"""


def calls() -> dict[str, str]:
    found = {}
    for name in UNARY:
        word, _, dim = name.partition(":")
        found[word] = f"torch.{word}(x, {dim})" if dim else f"torch.{word}(x)"
    found |= {n: f"torch.{n}(x, y)" for n in BINARY} | {n: f"torch.{n}(k, l)" for n in INTEGER}
    found |= {f"special.{n}": f"torch.special.{n}(x)" for n in SPECIAL} | {f"F.{n}": f"F.{n}(x)" for n in FUNCTIONS}
    found |= {f"F.{n}": f"F.{n}(x, y)" for n in LOSSES} | {f"x.{n}": f"x.{n}()" for n in METHODS}
    found |= {
        f"fft.{n}": f"torch.fft.{n}({'cx' if n in ('hfft', 'hfft2', 'hfftn', 'irfft', 'irfft2', 'irfftn', 'ifft', 'ifft2', 'ifftn') else 'x'})"
        for n in TRANSFORMS
    }
    found |= {f"linalg.{n}": f"torch.linalg.{n}({'spd' if 'chol' in n else 'x'})" for n in LINALG}
    return found | {e.strip(): e.strip() for line in OTHERS.strip().splitlines() for e in line.split(" | ")}


CALLS = calls()


def inputs(torch, n: int, kind: str) -> dict:
    """The names that expressions read, equal in both libraries: seeded draws are the same."""
    torch.manual_seed(0)
    dtype = getattr(torch, kind)
    r = lambda *shape: torch.rand(*shape, dtype=dtype) * 0.8 + 0.1  # noqa: E731

    def assign(t, at, value):
        t[at] = value
        return t

    x, m = r(n, n), torch.rand(n, n) > 0.5
    i, i2 = torch.randperm(n), torch.randint(n, (n, n))
    names = dict(
        torch=torch, F=torch.nn.functional, n=n, x=x, y=r(n, n), z=r(n, n), v=r(n), w=r(n), b=r(2, n, n), b2=r(2, n, n), m=m, i=i, i2=i2,
        k=torch.randint(1, 9, (n, n)), l=torch.randint(1, 9, (n, n)), img=r(1, 4, n, n), seq=r(1, 4, n), vol=r(1, 2, 4, 4, n), k1=r(4, 4, 3),
        k2=r(4, 4, 3, 3), k3=r(2, 2, 3, 3, 3), c4=r(4), q=r(1, 2, n, 8), grid=r(1, n, n, 2) * 2 - 1, cx=torch.complex(r(n, n), r(n, n)),
        t3=r(n, 3), s=r(n).sort()[0],
        lp=r(n, 1, 5).log_softmax(2), tg=torch.tensor([[1, 2]]), il=torch.tensor([n]), tl=torch.tensor([2]), sg=torch.ones(n, dtype=dtype),
        assign=assign, sg2=torch.ones(n, n, dtype=dtype), pairs=r(n, n, 2), win=torch.ones(4, dtype=dtype),
        line=r(4 * n), nested=x.tolist(), flat=x[0].tolist(),
    )  # fmt: skip
    spd = x @ x.t() + torch.eye(n, dtype=dtype)
    return names | dict(
        spd=spd,
        lu=torch.linalg.lu_factor(spd),
        spec=torch.stft(names["line"], 4, window=names["win"], return_complex=True),
    )


def worker(name: str) -> None:
    """Answers [expression, size, dtype] with the seconds of a call, or an error in words."""
    warnings.simplefilter("ignore")
    torch = __import__(name)
    torch.set_num_threads(1)
    made = {(n, kind): inputs(torch, n, kind) for n in SIZES for kind in KINDS}
    for line in sys.stdin:
        expression, n, kind, budget = json.loads(line)
        try:
            run = eval(f"lambda: ({expression})", made[n, kind])
            for _ in range(3):
                run()
            start = time.perf_counter()
            run()
            count = max(1, int(budget / 4 / max(time.perf_counter() - start, 1e-7)))
            best = math.inf
            for _ in range(4):
                start = time.perf_counter()
                for _ in range(count):
                    run()
                best = min(best, (time.perf_counter() - start) / count)
            answer = best
        except Exception as e:  # noqa: BLE001
            answer = f"{type(e).__name__}: {e}"[:120].replace("\n", " ")
        print(json.dumps(answer), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python")
    parser.add_argument("--worker")
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=0.004, help="seconds of a round")
    parser.add_argument("--above", type=float, default=1.5)
    report.add_options(parser)
    options = parser.parse_args()
    if options.worker:
        return worker(options.worker)
    workers = [
        subprocess.Popen([python, __file__, "--worker", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name, python in (("flambeau", sys.executable), ("torch", options.torch_python))
    ]

    def ask(w, *request):
        w.stdin.write(json.dumps(request) + "\n")
        w.stdin.flush()
        return json.loads(w.stdout.readline())

    rows, failed = [], []
    for name, expression in CALLS.items():
        if not re.search(options.only, name):
            continue
        for n in SIZES:
            for kind in KINDS:
                times = [[ask(w, expression, n, kind, options.budget) for w in workers] for _ in range(options.rounds)]
                bad = next((t for pair in times for t in pair if isinstance(t, str)), None)
                if bad:
                    failed.append((name, n, kind, bad))
                    continue
                ours, theirs = (statistics.median(t[k] for t in times) for k in (0, 1))
                rows.append((name, n, kind, ours * 1e6, theirs * 1e6))
    mean = lambda part: math.exp(statistics.fmean(math.log(r[3] / r[4]) for r in part))  # noqa: E731
    lines = [
        f"{len({r[0] for r in rows})} calls, one thread. Geometric mean of the ratios to PyTorch: "
        + ", ".join(
            f"{n} x {n} {mean([r for r in rows if r[1] == n]):.2f}" for n in SIZES if any(r[1] == n for r in rows)
        )
        + ".",
        "",
        "| call | size | dtype | flambeau, µs | PyTorch, µs | ratio |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    slow = sorted((r for r in rows if r[3] / r[4] > options.above), key=lambda r: -r[3] / r[4])
    lines += [f"| `{r[0]}` | {r[1]} | {r[2]} | {r[3]:.1f} | {r[4]:.1f} | {r[3] / r[4]:.2f} |" for r in slow]
    lines += [f"not measured: `{f[0]}` {f[1]} {f[2]}: {f[3]}" for f in failed]
    report.publish("\n".join(lines), options)


if __name__ == "__main__":
    main()
