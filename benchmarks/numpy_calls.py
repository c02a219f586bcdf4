"""What one small call of NumPy's costs in a compiled function: ``python benchmarks/numpy_calls.py [--only REGEX] [--above 1.3]``.

Each row is a function of one or two lines on 8 x 8 arrays, run plainly and compiled in turn, best of several rounds of processor time. Rows
whose ratio to NumPy is above ``--above`` are listed. Arrays that a row writes to are the same at each call.
"""

from __future__ import annotations

import argparse
import linecache
import math
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np  # noqa: E402
import report  # noqa: E402

import flambeau as torch  # noqa: E402

READS = """
a[m] | a[1] | a[-1] | a[1:3] | a[:, 1] | a[1, 2] | a[::2] | a[::-1] | a[..., 0] | a[None] | a[:, None] | v[i] | a[i] | a[i, i] | a[m][0]
a[0][1] | v[0] | v[-1] | v[:3]
a[1:3, 2:5] | v[::-1] | a[::-1, ::-1] | a[[0, 2]] | a[:, [0, 2]] | a[v > 0.5] | a.item(3) | a.tolist() | v.item(2) | float(v[0]) | k[0, 1]
int(k[0, 1])
m[0] | m[1, 1] | c[1, 2] | r[1] | r[1, 2] | r[::2] | r.T | k[1] | k.T | k32[1] | k32.T | f32[1] | f32.T | f32[1, 2] | m.T | u8[1] | u8.T | c.T
c.real | c.imag
a.T | a.ravel() | a.flatten() | a.reshape(4, 16) | a.reshape(-1) | a.transpose(1, 0) | a.copy() | a.squeeze() | a.view() | a.astype(np.float32)
a.astype(int) | a.swapaxes(0, 1) | a.diagonal()
a.flat[3] | a.shape | a.ndim | a.size | a.dtype | len(a) | a.nbytes | a.strides | a.itemsize | a.shape[0] | a.flags.writeable
a.dtype == np.float64 | a.ndim == 2 | a.shape == b.shape
np.shape(a) | np.ndim(a) | np.size(a) | isinstance(a, np.ndarray) | np.asarray(a) | np.ascontiguousarray(a) | np.atleast_2d(v) | np.atleast_1d(v)
np.expand_dims(v, 0) | np.squeeze(a)
np.transpose(a) | np.reshape(a, (4, 16)) | np.ravel(a) | np.swapaxes(a, 0, 1) | np.moveaxis(a, 0, 1) | np.flip(a) | np.flipud(a) | np.fliplr(a)
np.rot90(a) | np.diag(a) | np.diagonal(a)
np.broadcast_to(v, (8, 8)) | np.split(a, 2) | np.array_split(a, 3) | np.hsplit(a, 2) | np.copy(a) | np.array(a) | np.real(c) | np.imag(c)
np.take(a, 3) | a.take(i, 0) | np.take(a, i, axis=0)
"""
COMPUTES = """
a + b | a - b | a * b | a / b | a @ b | a ** 2 | a > b | a == b | -a | a + 1 | 2 * a | a % 2 | a // 2 | m & m2 | ~m | k & 3 | k << 1
abs(a) | a @ v | v @ w | a + v | a + v[:, None]
np.sin(a) | np.exp(a) | np.sqrt(a) | np.abs(a) | np.square(a) | np.maximum(a, b) | np.add(a, b) | np.clip(a, 0, 1) | a.clip(0, 1)
np.where(m, a, b) | np.where(m, a, 0.0) | np.where(m) | np.nonzero(m) | m.nonzero()
a.sum() | a.sum(0) | a.mean() | a.mean(1) | a.std() | a.var() | a.max() | a.min(0) | a.argmax() | a.argmin(0) | a.prod() | a.any() | m.any()
m.all() | np.sum(a) | np.mean(a, axis=0) | np.max(a) | np.argmax(a)
np.all(m) | np.any(m) | a.cumsum() | np.cumsum(a, 0) | np.cumprod(v) | a.dot(b) | np.dot(a, b) | np.dot(v, w) | np.outer(v, w) | np.inner(v, w)
np.matmul(a, b) | np.einsum('ij,jk->ik', a, b) | np.trace(a) | a.trace()
np.linalg.norm(a) | np.linalg.norm(v) | np.linalg.inv(a) | np.linalg.det(a) | np.linalg.solve(a, v) | np.linalg.eigh(s) | np.linalg.svd(a)
np.linalg.qr(a) | np.linalg.cholesky(s) | np.kron(v, w) | np.cross(t, t2)
np.sort(v) | np.sort(a, axis=0) | np.argsort(v) | v.argsort() | np.unique(k) | np.searchsorted(w, v) | np.digitize(v, w) | np.bincount(i)
np.histogram(v, 4) | np.median(v) | np.percentile(v, 50) | np.quantile(v, 0.5)
np.concatenate([a, b]) | np.concatenate((v, w)) | np.stack([a, b]) | np.vstack([a, b]) | np.hstack([a, b]) | np.column_stack([v, w])
np.append(v, 1.0) | np.tile(v, 2) | np.repeat(v, 2) | np.roll(v, 1) | np.roll(a, 1, 0)
np.zeros(8) | np.ones((8, 8)) | np.empty(8) | np.full((8, 8), 2.0) | np.arange(8) | np.linspace(0, 1, 8) | np.eye(8) | np.zeros_like(a)
np.ones_like(a) | np.empty_like(a) | np.full_like(a, 2.0) | np.array([1.0, 2.0])
np.array([v[0], v[1]]) | np.meshgrid(v, w) | np.diff(v) | np.gradient(v) | np.interp(v, w, w) | np.convolve(v, w) | np.trapezoid(v)
np.pad(a, 1) | np.tril(a) | np.triu(a) | np.isnan(a) | np.isfinite(a) | np.isnan(a).any()
np.allclose(a, b) | np.array_equal(a, b) | np.isclose(a, b) | np.isin(k, i) | np.round(a, 2) | a.round(2) | np.floor(a) | np.sign(a)
np.hypot(a, b) | np.arctan2(a, b) | np.minimum(a, 0.5) | np.fft.fft(v) | np.fft.rfft(v)
np.take_along_axis(a, k, 1) | np.add.reduce(a) | np.add.outer(v, w) | np.maximum.reduce(a) | np.count_nonzero(m) | np.ptp(a) | np.nanmean(a)
np.nansum(a) | np.average(v, weights=w) | np.polyval(w, v) | np.logical_and(m, m2)
a.sum() / a.size | a - a.mean(0) | (a - a.mean()) / a.std() | np.sqrt((a ** 2).sum(1)) | np.exp(a) / np.exp(a).sum() | ((a - b) ** 2).mean()
a * 2 + b | np.sin(a) * np.cos(b) | v / np.linalg.norm(v) | (a * b).sum()
a[1:] - a[:-1] | np.abs(a - b).max() | np.maximum(a @ b, 0) | a[m].sum() | a[a > 0.5].mean() | np.where(a > 0.5, a, 0) | a.T @ b | a[1] + a[2]
v[0] + v[1] | math.sqrt(v[0]) | v[0] * 2.0 | np.sqrt(v[0]) | np.int64(3) + k[0, 0]
sum(v) | max(v) | min(v) | list(v) | [x * 2 for x in v] | sorted(v) | a.max() - a.min() | divmod(k, 3) | len(v) * 2 | (a.shape[0], a.shape[1])
a.shape[0] * a.shape[1]
"""
WRITES = """
a[1, 2] = 0.5 | a[1] = 0.5 | a[1] = v | a[:] = b | a[:, 1] = v | a[m] = 0.5 | a[i] = b | a[i] = 0.5 | a[1:3] = 0.0 | a[...] = 0.0 | v[0] = v[1]
v[0] = 0.5 | v[0] += 1e-9 | v[n] = x | v[n] += x | a[n, n] = x | a[n, n] += x | a[n] = x
a[0], a[1] = a[1], a[0] | v[0], v[1] = v[1], v[0] | a[[0, 1]] = a[[1, 0]] | a[0], a[1] = a[1].copy(), a[0].copy() | k[0, 1] = 3 | m[0] = True
m[n, n] = True | k[n, n] += 1 | f32[1] = 0.5 | f32[n, n] = x | a += 0.0 | a *= 1.0 | a -= 0.0 * b | a[1] += 0.0
a[1:3] *= 1.0 | a[m] += 0.0 | a[i] += 0.0 | a[:, 1] += 0.0 | v.sort() | a.sort() | a.sort(axis=0) | v[:] = v[::-1] | a.fill(0.5) | v.fill(0.5)
np.add.at(v, i, 0.0) | np.add.at(a, i, 0.0) | np.add.at(v, i, w) | np.put(v, i, 0.5) | v.put(i, 0.5)
np.place(a, m, 0.5) | np.put_along_axis(a, k, 0.5, 1) | np.copyto(a, b) | np.putmask(a, m, 0.5) | v.partition(3) | np.fill_diagonal(a, 0.5)
np.add(a, b, out=c8) | np.multiply(a, 1.0, out=a) | np.sqrt(a, out=a) | np.exp(a, out=c8) | np.clip(a, 0, 1, out=a)
np.dot(a, b, out=c8) | a.T[1] = 0.5 | a[1][2] = 0.5 | a.flat[3] = 0.5 | a.real[1] = 0.5 | a.ravel()[3] = 0.5 | a[1, :] = v | a[:, 0] = a[:, 1]
np.subtract.at(v, i, 0.0) | np.maximum.at(v, i, w)
"""


def rows() -> dict[str, str]:
    """name -> source of a function f of these names."""
    found = {}
    split = lambda text: [e.strip() for line in text.strip().splitlines() for e in line.split(" | ")]  # noqa: E731
    for e in split(READS) + split(COMPUTES):
        found[e] = f"return {e}"
    for e in split(WRITES):
        found[e] = e
    return found


def arrays() -> dict:
    g = np.random.default_rng(0)
    a = g.random((8, 8)) * 0.8 + 0.1
    r = g.random((8, 8))
    r.flags.writeable = False
    return dict(
        a=a, b=g.random((8, 8)) + 0.1, c=a + 1j, c8=np.empty((8, 8)), v=g.random(8), w=np.sort(g.random(8)), m=a > 0.5, m2=a < 0.7,
        i=g.permutation(8),
        k=g.integers(0, 8, (8, 8)), k32=g.integers(0, 8, (8, 8)).astype(np.int32), f32=a.astype(np.float32),
        u8=g.integers(0, 8, (8, 8)).astype(np.uint8),
        r=r, s=a @ a.T + 8 * np.eye(8), t=g.random(3), t2=g.random(3), n=2, x=0.25,
    )  # fmt: skip


def function_of(source: str, names: list[str]):
    text = f"def f({', '.join(names)}):\n    {source}\n"
    place = f"<{source}>"
    linecache.cache[place] = (len(text), None, text.splitlines(True), place)
    scope = {"np": np, "math": math}
    exec(compile(text, place, "exec"), scope)
    return scope["f"]


def seconds(fn, args, count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        fn(*args)
    return (time.process_time() - start) / count


def compared(source: str, rounds: int, budget: float) -> tuple[float, float]:
    """Seconds of a call, compiled and plain: the least of some rounds in turn."""
    values = arrays()
    names = [n for n in values if re.search(rf"(?<![\w.]){n}\b(?!=)", source)]
    f, args = function_of(source, names), [values[n] for n in names]
    compiled = torch.compile(f)
    for _ in range(20):
        compiled(*args), f(*args)
    counts = [max(1, int(budget / max(seconds(fn, args, 20), 1e-8))) for fn in (compiled, f)]
    ours = theirs = math.inf
    for _ in range(rounds):
        ours, theirs = min(ours, seconds(compiled, args, counts[0])), min(theirs, seconds(f, args, counts[1]))
    return ours, theirs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--budget", type=float, default=0.002, help="seconds of a round")
    parser.add_argument("--above", type=float, default=1.3)
    report.add_options(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for name, source in rows().items():
        if re.search(options.only, name):
            found.append((name, *[1e6 * t for t in compared(source, options.rounds, options.budget)]))
    ratios = [ours / theirs for _, ours, theirs in found]
    slow = sorted((f for f in found if f[1] / f[2] > options.above), key=lambda f: -f[1] / f[2])
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    lines = [
        f"{len(found)} functions, one thread. Geometric mean of the ratios to NumPy: {mean:.2f}; {len(slow)} above {options.above}.",
        "",
        "| function | flambeau, µs | NumPy, µs | ratio |",
        "| --- | --- | --- | --- |",
        *(f"| `{name.replace('|', chr(92) + '|')}` | {o:.2f} | {t:.2f} | {o / t:.2f} |" for name, o, t in slow),
    ]
    report.publish("\n".join(lines), options)


if __name__ == "__main__":
    main()
