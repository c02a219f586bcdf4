"""k-means in NumPy: Lloyd's algorithm, compiled, and the same clusters by gradients of the distances."""

import numpy as np

import flambeau as torch


def squares(points, centres):
    """Squared distances of (n, d) points from (k, d) centres: (n, k)."""
    return ((points[:, None, :] - centres[None, :, :]) ** 2).sum(-1)


def members(points, centres):
    """1 where a centre is the nearest of a point, else 0: (n, k)."""
    nearest = squares(points, centres).argmin(1)
    return (nearest[:, None] == np.arange(centres.shape[0])[None, :]).astype(points.dtype)


def lloyd(points, centres, rounds):
    """Each point goes to its nearest centre, each centre to the mean of its points."""
    for _ in range(rounds):
        member = members(points, centres)
        centres = (member.T @ points) / np.maximum(member.sum(0), 1)[:, None]
    return centres


def cost(centres, points, member):
    """Mean squared distance of the points from the centres that they belong to."""
    return (squares(points, centres) * member).sum() / points.shape[0]


if __name__ == "__main__":
    draw = np.random.default_rng(0)
    truth = np.array([[0.0, 0.0], [3.0, 0.5], [1.0, 3.0]])
    points = truth[draw.integers(0, 3, 600)] + 0.4 * draw.standard_normal((600, 2))
    start = points[:3].copy()

    compiled = torch.compile(lloyd)
    centres = compiled(points, start, 10)
    print(
        f"Lloyd: cost {cost(centres, points, members(points, centres)):.4f}, as NumPy {np.allclose(centres, lloyd(points, start, 10))}"
    )

    slope = torch.compile(torch.func.grad(cost))
    moved = start
    for _ in range(200):
        moved = moved - 0.5 * np.asarray(slope(moved, points, members(points, moved)))
    print(f"by gradients: cost {cost(moved, points, members(points, moved)):.4f}")
