"""The random generator: MT19937, whose raw 32-bit words are those of PyTorch's CPU generator for the same seed.

From the words, PyTorch's CPU conventions (checked against it): float32 ``uniform`` is the low 24 bits over 2^24, float64 the low 53 of two
words over 2^53; ``normal`` of 16 values and more is Box-Muller over blocks of 16 float32 uniforms; smaller ones are drawn one by one
in double precision, with the second of each pair kept for the next call.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from .. import _C, _runtime
from ..base.device import as_device
from ..base.dtypes import uint8

__all__ = ["Generator", "default_generator", "manual_seed", "seed"]

# PyTorch's CPU generator in memory: the first part is that of its oldest releases, with a 64-bit word for each of the engine's 32 bits.
_STATE = np.dtype(
    [("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("words", "<u8", 624), ("normal_x", "<f8"), ("normal", "<f8"),
     ("normal_rho", "<f8"), ("has_normal", "<i8"), ("float_normal", "<f4"), ("has_float_normal", "<i4")]
)  # fmt: skip


# The state that csrc/random.c works on.
_ENGINE = np.dtype([("words", "<u4", 624), ("used", "<i4"), ("has_normal", "<i4"), ("normal", "<f8")])

# What is drawn, the numbers of csrc/random.c.
UNIFORM, NORMAL, SEQUENCE, BERNOULLI, INTEGERS, PERMUTATION, SEED, RAW, TRUTH_BITS = range(9)
GAMMA, POISSON, BINOMIAL = range(3)  # of "sample"


class Generator:
    """A stream of random words. ``manual_seed(seed)`` restarts it; ``get_state``/``set_state`` save it."""

    def __init__(self, device="cpu"):
        self.device = as_device(device)
        self._engine = np.zeros(_ENGINE.itemsize, np.uint8)
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        self._seed = int(seed)
        # Legacy seeding by a 32-bit word, as the C++ engine.
        self.draw(np.empty(0), SEED, 0, self._seed & 0xFFFFFFFF)
        return self

    def draw(self, out: np.ndarray, what: int, kind: int = 0, a=0, b=0) -> np.ndarray:
        """``out`` (contiguous), filled as csrc/random.c says."""
        numbers = (what, kind, _bits(a), _bits(b))
        if self._engine is _DEFAULT:
            _runtime.native("draw", (out,), numbers)
        else:
            _runtime.native("draw_from", (self._engine, out), numbers)
        return out

    def sample(self, what: int, *parameters: np.ndarray) -> np.ndarray:
        """float64 numbers of a distribution (GAMMA, POISSON, BINOMIAL), one for each element of the parameters, which are float64 of one
        shape; drawn one after another. A rate of POISSON isn't negative (checked by the caller)."""
        arrays = [np.ascontiguousarray(p).reshape(p.shape) for p in parameters]
        out = np.empty(arrays[0].shape)
        if self._engine is _DEFAULT:
            _runtime.native("sample", (*arrays, out), (what, 0))
        else:
            _runtime.native("sample_from", (self._engine, *arrays, out), (what, 0))
        return out

    def initial_seed(self) -> int:
        return self._seed

    def seed(self) -> int:
        """Seed from the operating system's entropy; returns the seed."""
        s = int(np.random.SeedSequence().entropy) & (2**63 - 1)
        self.manual_seed(s)
        return s

    def get_state(self):
        """The state as a uint8 tensor, byte by byte as PyTorch's CPU generator keeps it: states move between the two."""
        engine = self._engine.view(_ENGINE)[0]
        record = np.zeros((), _STATE)
        record["seed"], record["seeded"], record["words"] = self._seed & (2**64 - 1), 1, engine["words"]
        record["next"], record["left"] = engine["used"], 625 - engine["used"]
        record["normal"], record["has_normal"] = engine["normal"] if engine["has_normal"] else 0.0, engine["has_normal"]
        return _C.from_array(np.frombuffer(record.tobytes(), np.uint8).copy())

    def set_state(self, state) -> Generator:
        """Go on from a state. TypeError unless it is a uint8 tensor, RuntimeError for one of another size."""
        if not isinstance(state, _C.TensorBase):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state._dtype is not uint8:
            raise TypeError(f"expected a torch.ByteTensor, but got a torch.{state._dtype.scalar_type}Tensor")
        if state._array.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} but found the input RNG state size to be {state._array.size}"
            )
        record = np.frombuffer(np.ascontiguousarray(state._array).tobytes(), _STATE)[0]
        engine = np.zeros(1, _ENGINE)
        # With one word left the block is used up, whatever the place says: a fresh PyTorch generator has 0 there.
        engine["words"], engine["used"] = record["words"], 625 - int(record["left"])
        engine["normal"], engine["has_normal"] = record["normal"], bool(record["has_normal"])
        self._engine[:] = engine.view(np.uint8)
        self._seed = int(record["seed"])
        return self

    def clone_state(self) -> Generator:
        """Another generator that goes on from the same place."""
        return Generator(self.device).set_state(self.get_state())

    def uniform(self, shape, dtype: np.dtype, low=0.0, high=1.0) -> np.ndarray:
        """Uniform in [low, high), complex numbers in both parts."""
        if dtype.kind == "c":
            return self.uniform((*shape, 2), _part(dtype), low, high).view(dtype).reshape(shape)
        # 16-bit floats are drawn as float32 and rounded.
        out = np.empty(shape, np.float64 if dtype == np.float64 else np.float32)
        return self.draw(out, UNIFORM, out.itemsize == 8, float(low), float(high - low)).astype(dtype, copy=False)

    def normal(self, shape, dtype: np.dtype, mean=0.0, std=1.0) -> np.ndarray:
        """Normal(mean, std). Of a complex number each part has half of the variance, and both have the mean."""
        if dtype.kind == "c":
            return self.normal((*shape, 2), _part(dtype), mean, std / math.sqrt(2)).view(dtype).reshape(shape)
        out = np.empty(shape, np.float64 if dtype == np.float64 else np.float32)
        kind = 1 if out.itemsize == 8 else 2 if dtype.itemsize == 2 else 0
        return self.draw(out, NORMAL, kind, float(mean), float(std)).astype(dtype, copy=False)

    def bernoulli(self, shape, p) -> np.ndarray:
        """Truth values, each true with probability ``p``: a number (compared with doubles) or an array of ``shape`` (with draws of its precision)."""
        if not isinstance(p, np.ndarray):
            return self.draw(np.empty(shape, np.bool_), BERNOULLI, 0, float(p))
        return self.uniform(shape, np.dtype(np.float64 if p.dtype == np.float64 else np.float32)) < p

    def truth_bits(self, shape, p: float) -> np.ndarray:
        """The truth values of ``bernoulli`` as bits, uint8: eight of the last dimension to a byte, the first one lowest."""
        *rows, n = shape
        return self.draw(np.empty((*rows, (n + 7) // 8), np.uint8), TRUTH_BITS, n, float(p))

    def normal_sequence(self, shape) -> np.ndarray:
        """Standard normal doubles drawn one by one whatever their number, as ``log_normal`` wants them."""
        return self.draw(np.empty(shape), SEQUENCE)

    def integers(self, shape, low: int, high: int) -> np.ndarray:
        """Integers in [low, high) as int64: a word, or two for a long range, modulo the range."""
        span = high - low
        return self.draw(np.empty(shape, np.int64), INTEGERS, span >= 2**32, low, span)

    def permutation(self, n: int) -> np.ndarray:
        """The numbers below ``n`` in random order, int64."""
        return self.draw(np.empty(n, np.int64), PERMUTATION)


def _part(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex number."""
    return np.dtype(np.float32 if dtype == np.complex64 else np.float64)


def _bits(x) -> int:
    """A number as 64 bits with a sign: those of a double, or an integer modulo 2 ** 64."""
    if isinstance(x, float):
        return struct.unpack("q", struct.pack("d", x))[0]
    return (int(x) + 2**63) % 2**64 - 2**63


_DEFAULT = _runtime.default_engine()
default_generator = Generator()
default_generator._engine = _DEFAULT
default_generator.manual_seed(default_generator.initial_seed())


def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    return default_generator.seed()
