"""``torch.quasirandom``: Sobol sequences (Joe and Kuo's direction numbers), scrambled by Owen's method in Matousek's form as PyTorch does it."""

from __future__ import annotations

import numpy as np

from .. import _C
from ..base import dtypes
from ..core.generator import Generator
from ..core.operator import namespace

__all__ = ["SobolEngine"]

aten = namespace("aten")


def _direction_numbers(dimension: int) -> np.ndarray:
    from scipy.stats import qmc

    return qmc.Sobol(dimension, scramble=False, bits=SobolEngine.MAXBIT)._sv.astype(np.int64)


class SobolEngine:
    """Points in the unit cube of ``dimension`` (at most 21201) that fill it evenly. ``scramble`` with ``seed`` draws another such sequence."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._numbers = _direction_numbers(dimension)
        self._shift = np.zeros(dimension, np.int64)
        if scramble:
            self._scramble()
        self.num_generated = 0
        self._at = self._shift.copy()

    def _scramble(self) -> None:
        bits, generator = self.MAXBIT, None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        powers = 1 << np.arange(bits, dtype=np.int64)
        shift = aten.randint(2, [self.dimension, bits], generator=generator).numpy()
        self._shift = (shift * powers).sum(1)
        triangles = np.tril(aten.randint(2, [self.dimension, bits, bits], generator=generator).numpy())
        triangles[:, np.arange(bits), np.arange(bits)] = 1
        columns = (self._numbers[:, :, None] >> np.arange(bits)[::-1]) & 1  # bits of each number, highest first
        mixed = np.einsum("dpk,djk->djp", triangles, columns) % 2
        self._numbers = (mixed * powers[::-1]).sum(2)

    def _next(self, n: int) -> np.ndarray:
        """The next ``n`` points as integers, (n, dimension)."""
        out = np.empty((n, self.dimension), np.int64)
        for i in range(n):
            if self.num_generated:  # the first of all is where it starts
                zero = (
                    self.num_generated & -self.num_generated
                ).bit_length() - 1  # lowest bit of the count before that is 0
                self._at = self._at ^ self._numbers[:, zero]
            out[i] = self._at
            self.num_generated += 1
        return out

    def draw(self, n: int = 1, out=None, dtype=None):
        """The next ``n`` points, (n, dimension). The first of all is the origin (unscrambled)."""
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        found = _C.from_array((self._next(n) / 2.0**self.MAXBIT).astype(dtype.np))
        return found if out is None else out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out=None, dtype=None):
        """The next ``2**m`` points. ValueError unless a power of two have then been drawn, which is when they are balanced."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been previously generated, "
                f"then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Back to the first point."""
        self._at, self.num_generated = self._shift.copy(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Pass over ``n`` points."""
        self._next(n)
        return self

    def __repr__(self) -> str:
        parts = [f"dimension={self.dimension}", *(["scramble=True"] if self.scramble else [])]
        return f"SobolEngine({', '.join(parts + ([f'seed={self.seed}'] if self.seed is not None else []))})"
