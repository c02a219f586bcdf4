"""Statistics and learning."""

import numpy as np

from . import program


@program(lambda rng, n: (rng.random((20 * n, n)),), 5, 100)
def covariance_by_columns(data):
    m = data.shape[1]
    centred = data - np.mean(data, axis=0)
    cov = np.zeros((m, m))
    for i in range(m):
        cov[i, i:m] = centred[:, i] @ centred[:, i:m] / (data.shape[0] - 1.0)
        cov[i:m, i] = cov[i, i:m]
    return cov


@program(lambda rng, n: (rng.random((n, 4)), rng.random((8, 4)), 8), 20, 20_000)
def k_means(points, centres, steps):
    centres = centres.copy()
    for _ in range(steps):
        distance = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        label = np.argmin(distance, axis=1)
        for k in range(centres.shape[0]):
            mine = label == k
            count = mine.sum()
            total = (points * mine[:, None]).sum(axis=0)
            centres[k] = np.where(count > 0, total / np.maximum(count, 1), centres[k])
    return centres


@program(lambda rng, n: (rng.random((n, 16, 64, 64)).astype(np.float32),), 1, 8, functional=True)
def softmax(x):
    top = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - top)
    return e / np.sum(e, axis=-1, keepdims=True)


def _network(rng, n):
    sizes = (n, 300, 100, 10)
    weights = [
        w for a, b in zip(sizes, sizes[1:]) for w in (rng.random((a, b), np.float32) - 0.5, rng.random(b, np.float32))
    ]
    return (rng.random((64, n), np.float32), *weights)


@program(_network, 20, 784, functional=True)
def multilayer_perceptron(x, w1, b1, w2, b2, w3, b3):
    h = np.maximum(x @ w1 + b1, 0)
    h = np.maximum(h @ w2 + b2, 0)
    y = h @ w3 + b3
    e = np.exp(y - np.max(y, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@program(lambda rng, n: tuple(rng.random((4, n))), 16, 1_000_000, functional=True)
def arc_distance(theta1, phi1, theta2, phi2):
    a = np.sin((theta2 - theta1) / 2) ** 2 + np.cos(theta1) * np.cos(theta2) * np.sin((phi2 - phi1) / 2) ** 2
    return 2 * np.arctan2(np.sqrt(a), np.sqrt(1 - a))


@program(lambda rng, n: (rng.random((n, 32)), rng.random((n, 32))), 10, 700, functional=True)
def pairwise_distances(x, y):
    return np.sqrt(np.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1))


@program(lambda rng, n: (rng.random((n, 20)), (rng.random(n) < 0.5).astype(float), 20), 20, 20_000, functional=True)
def logistic_regression(x, y, steps):
    w = np.zeros(x.shape[1])
    for _ in range(steps):
        p = 1.0 / (1.0 + np.exp(-(x @ w)))
        w = w - 0.1 * (x.T @ (p - y)) / x.shape[0]
    return w


@program(lambda rng, n: (rng.random(n), 50), 100, 200_000)
def moving_average(x, width):
    out = np.empty(len(x) - width + 1)
    total = 0.0
    for i in range(width):
        total += x[i]
    out[0] = total / width
    for i in range(width, len(x)):
        total += x[i] - x[i - width]
        out[i - width + 1] = total / width
    return out
