"""Images and signals."""

import numpy as np

from . import program


@program(lambda rng, n: (-2.0, 0.5, -1.25, 1.25, n, n, 50), 6, 150)
def mandelbrot(x0, x1, y0, y1, nx, ny, limit):
    out = np.zeros((ny, nx), np.int64)
    for i in range(ny):
        for j in range(nx):
            cr, ci = x0 + (x1 - x0) * j / nx, y0 + (y1 - y0) * i / ny
            zr, zi, k = 0.0, 0.0, 0
            while k < limit and zr * zr + zi * zi <= 4.0:
                zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
                k += 1
            out[i, j] = k
    return out


@program(lambda rng, n: (rng.random((n, n)), 2.0), 16, 1000)
def gaussian_blur(image, sigma):
    r = 6
    taps = np.exp(-0.5 * (np.arange(-r, r + 1) / sigma) ** 2)
    taps = taps / taps.sum()
    padded = np.pad(image, r, mode="edge")
    rows = np.zeros((image.shape[0], padded.shape[1]))
    for k in range(2 * r + 1):
        rows += taps[k] * padded[k : k + image.shape[0]]
    out = np.zeros_like(image)
    for k in range(2 * r + 1):
        out += taps[k] * rows[:, k : k + image.shape[1]]
    return out


@program(lambda rng, n: (rng.random((n, n)),), 10, 1500, functional=True)
def sobel(image):
    a = image
    gx = (a[:-2, 2:] + 2 * a[1:-1, 2:] + a[2:, 2:]) - (a[:-2, :-2] + 2 * a[1:-1, :-2] + a[2:, :-2])
    gy = (a[2:, :-2] + 2 * a[2:, 1:-1] + a[2:, 2:]) - (a[:-2, :-2] + 2 * a[:-2, 1:-1] + a[:-2, 2:])
    edges = np.sqrt(gx * gx + gy * gy)
    return edges / np.max(edges)


@program(lambda rng, n: (rng.random((2, n, n, 3)), rng.random((3, 3, 3, 8)), rng.random(8)), 8, 64)
def convolution_with_bias(x, weights, bias):
    k = weights.shape[0]
    h, w = x.shape[1] - k + 1, x.shape[2] - k + 1
    out = np.empty((x.shape[0], h, w, weights.shape[3]))
    for i in range(h):
        for j in range(w):
            window = x[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(window * weights[np.newaxis, :, :, :], axis=(1, 2, 3))
    return out + bias


@program(lambda rng, n: (rng.random(n), rng.random(32)), 100, 300_000)
def fir_filter(signal, taps):
    n = len(signal) - len(taps) + 1
    out = np.zeros(n)
    for k in range(len(taps)):
        out += taps[k] * signal[k : k + n]
    return out


@program(lambda rng, n: (rng.random(n),), 20, 200_000)
def iir_filter(signal):
    """A biquad, sample by sample."""
    out = np.empty_like(signal)
    x1 = x2 = y1 = y2 = 0.0
    for i in range(len(signal)):
        x = signal[i]
        y = 0.2 * x + 0.4 * x1 + 0.2 * x2 + 0.5 * y1 - 0.3 * y2
        x2, x1, y2, y1 = x1, x, y1, y
        out[i] = y
    return out


@program(lambda rng, n: (rng.integers(0, 256, (n, n)).astype(np.uint8),), 12, 500)
def histogram_equalisation(image):
    counts = np.zeros(256, np.int64)
    flat = image.reshape(-1)
    for i in range(len(flat)):
        counts[flat[i]] += 1
    cdf = np.cumsum(counts)
    table = (255.0 * cdf / cdf[-1]).astype(np.uint8)
    return table[image]


@program(lambda rng, n: (rng.random(2**n) + 1j * rng.random(2**n), n), 4, 16)
def fft_by_butterflies(x, stages):
    """Radix 2, decimation in time, on complex numbers."""
    n = x.shape[0]
    y = x.reshape((1, n))
    for _ in range(stages):
        half = y.shape[1] // 2
        even, odd = y[:, :half], y[:, half:]
        m = y.shape[0]
        twiddle = np.exp(-1j * np.pi * np.arange(m) / m)[:, None]
        y = np.vstack([even + twiddle * odd, even - twiddle * odd])
    return y.reshape(-1)
