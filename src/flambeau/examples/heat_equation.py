"""The heat equation in NumPy: a rod is warmed at one place, and the place is found again from the temperatures at the end.

The simulation is plain NumPy. ``torch.func.grad`` differentiates it, ``torch.compile`` compiles both.
"""

import numpy as np

import flambeau as torch

CELLS, STEPS = 64, 40
X = np.linspace(0, 1, CELLS)


def simulate(place):
    """Temperatures after some time, of a rod that was warm around ``place``; its ends are kept cold."""
    u = np.exp(-((X - place) ** 2) / 0.01)
    for _ in range(STEPS):
        flow = u[:-2] - 2 * u[1:-1] + u[2:]
        u = np.concatenate([np.zeros(1), u[1:-1] + 0.4 * flow, np.zeros(1)])
    return u


MEASURED = simulate(0.7)


def distance(place):
    return np.sum((simulate(place) - MEASURED) ** 2)


if __name__ == "__main__":
    slope = torch.compile(torch.func.grad(distance))
    place = np.array(0.5)
    for step in range(41):
        place = place - 0.002 * slope(place)
        if step % 10 == 0:
            print(f"step {step:2d}  place {float(place):.4f}  distance {float(distance(place)):.2e}")
    difference = (distance(place + 1e-6) - distance(place - 1e-6)) / 2e-6
    print(f"slope {float(slope(place)):.6f}, by differences {float(difference):.6f}")
