"""The random generator: MT19937, whose raw 32-bit words are those of PyTorch's CPU generator for the same seed.

From the words, PyTorch's CPU conventions (checked against it): float32 ``uniform`` is the low 24 bits over 2^24, float64 the low 53 of two
words over 2^53; ``normal`` of 16 values and more is Box-Muller over blocks of 16 float32 uniforms; smaller ones are drawn one by one
in double precision, with the second of each pair kept for the next call.
"""

from __future__ import annotations

import math

import numpy as np

from .. import _C
from ..base.device import as_device
from ..base.dtypes import uint8

__all__ = ["Generator", "default_generator", "manual_seed", "seed"]

# PyTorch's CPU generator in memory: the first part is that of its oldest releases, with a 64-bit word for each of the engine's 32 bits.
_STATE = np.dtype(
    [("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("words", "<u8", 624), ("normal_x", "<f8"), ("normal", "<f8"),
     ("normal_rho", "<f8"), ("has_normal", "<i8"), ("float_normal", "<f4"), ("has_float_normal", "<i4")]
)  # fmt: skip


class Generator:
    """A stream of random words. ``manual_seed(seed)`` restarts it; ``get_state``/``set_state`` save it."""

    def __init__(self, device="cpu"):
        self.device = as_device(device)
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        self._seed = int(seed)
        self.__dict__.pop("_bits", None)
        self.__dict__.pop("_rng", None)
        self._next_normal = None
        return self

    def __getattr__(self, name):
        """The engine is made when it is first asked: importing numpy.random costs as much as a tenth of the import of flambeau."""
        if name not in ("_bits", "_rng"):
            raise AttributeError(f"'Generator' object has no attribute {name!r}")
        # Legacy seeding by a 32-bit word, as the C++ engine; NumPy's default would hash the seed first.
        self._bits = np.random.MT19937()
        self._bits._legacy_seeding(self._seed & 0xFFFFFFFF)
        self._rng = np.random.Generator(self._bits)
        return self.__dict__[name]

    def initial_seed(self) -> int:
        return self._seed

    def seed(self) -> int:
        """Seed from the operating system's entropy; returns the seed."""
        s = int(np.random.SeedSequence().entropy) & (2**63 - 1)
        self.manual_seed(s)
        return s

    def get_state(self):
        """The state as a uint8 tensor, byte by byte as PyTorch's CPU generator keeps it: states move between the two."""
        engine = self._bits.state["state"]
        record = np.zeros((), _STATE)
        record["seed"], record["seeded"], record["words"] = self._seed & (2**64 - 1), 1, engine["key"]
        record["next"], record["left"] = engine["pos"], 625 - engine["pos"]
        if self._next_normal is not None:
            record["normal"], record["has_normal"] = self._next_normal, 1
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
        engine = self._bits.state
        # With one word left the block is used up, whatever the place says: a fresh PyTorch generator has 0 there.
        engine["state"] = {"key": record["words"].astype(np.uint32), "pos": 625 - int(record["left"])}
        self._bits.state = engine
        self._seed = int(record["seed"])
        self._next_normal = float(record["normal"]) if record["has_normal"] else None
        return self

    def clone_state(self) -> Generator:
        """Another generator that goes on from the same place."""
        return Generator(self.device).set_state(self.get_state())

    def words(self, n: int) -> np.ndarray:
        """The next ``n`` 32-bit words as uint32."""
        return self._rng.integers(0, 2**32, size=n, dtype=np.uint32)

    def words64(self, n: int) -> np.ndarray:
        """The next ``n`` 64-bit words; each is two 32-bit words, the first one high."""
        w = self.words(2 * n).astype(np.uint64)
        return (w[0::2] << np.uint64(32)) | w[1::2]

    def uniform(self, shape, dtype: np.dtype, low=0.0, high=1.0) -> np.ndarray:
        """Uniform in [low, high), complex numbers in both parts."""
        if dtype.kind == "c":
            return self.uniform((*shape, 2), _part(dtype), low, high).view(dtype).reshape(shape)
        n = math.prod(shape)
        if dtype == np.float64:
            u = (self.words64(n) & np.uint64(2**53 - 1)).astype(np.float64) * (1.0 / 2**53)
            out = u * (high - low) + low
        else:
            # 16-bit floats are drawn as float32 and rounded.
            u = (self.words(n) & np.uint32(2**24 - 1)).astype(np.float32) * np.float32(1.0 / 2**24)
            out = (u * np.float32(high - low) + np.float32(low)).astype(dtype)
        return out.reshape(shape)

    def normal(self, shape, dtype: np.dtype, mean=0.0, std=1.0) -> np.ndarray:
        """Normal(mean, std). Of a complex number each part has half of the variance, and both have the mean."""
        if dtype.kind == "c":
            return self.normal((*shape, 2), _part(dtype), mean, std / math.sqrt(2)).view(dtype).reshape(shape)
        n = math.prod(shape)
        kind = np.float64 if dtype == np.float64 else np.float32
        if n >= 16:
            full = n // 16 * 16
            # 16-bit floats draw nothing for the incomplete block before it is drawn anew.
            out = np.empty(n, kind)
            drawn = full if dtype.itemsize == 2 else n
            out[:drawn] = self.uniform((drawn,), np.dtype(kind))
            blocks = out[:full].reshape(-1, 16)
            blocks[...] = _box_muller(blocks, kind)
            if n % 16:  # the last, incomplete block is drawn anew over the final 16 values
                out[n - 16 :] = _box_muller(self.uniform((1, 16), np.dtype(kind)), kind)[0]
            out = out * kind(std) + kind(mean)
        else:
            out = np.array([self._one_normal() * std + mean for _ in range(n)], np.float64)
        return out.astype(dtype).reshape(shape)

    def _one_normal(self) -> float:
        if self._next_normal is not None:
            value, self._next_normal = self._next_normal, None
            return value
        u1, u2 = self.uniform((2,), np.dtype(np.float64))
        r, theta = math.sqrt(-2.0 * math.log1p(-u2)), 2.0 * math.pi * u1
        self._next_normal = r * math.sin(theta)
        return r * math.cos(theta)

    def bernoulli(self, shape, p) -> np.ndarray:
        """Truth values, each true with probability ``p``: a number (compared with doubles) or an array of ``shape`` (with draws of its precision)."""
        double = not isinstance(p, np.ndarray) or p.dtype == np.float64
        return self.uniform(shape, np.dtype(np.float64 if double else np.float32)) < p

    def normal_sequence(self, shape) -> np.ndarray:
        """Standard normal doubles drawn one by one whatever their number, as ``log_normal`` wants them."""
        n = math.prod(shape)
        out = np.empty(n)
        at = 0
        if n and self._next_normal is not None:
            out[0], self._next_normal, at = self._next_normal, None, 1
        pairs = (n - at + 1) // 2
        u = self.uniform((pairs, 2), np.dtype(np.float64))
        r, theta = np.sqrt(-2.0 * np.log1p(-u[:, 1])), 2.0 * math.pi * u[:, 0]
        values = np.stack([r * np.cos(theta), r * np.sin(theta)], 1).reshape(-1)
        out[at:] = values[: n - at]
        if len(values) > n - at:
            self._next_normal = float(values[-1])
        return out.reshape(shape)

    def integers(self, shape, low: int, high: int) -> np.ndarray:
        """Integers in [low, high) as int64: a word modulo the range."""
        n, span = math.prod(shape), high - low
        if span >= 2**32:
            values = (self.words64(n) % np.uint64(span)).astype(np.int64)
        else:
            values = (
                (self.words(n) % np.uint32(span)).astype(np.int64) if span < 2**32 else self.words(n).astype(np.int64)
            )
        return (values + low).reshape(shape)


def _part(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex number."""
    return np.dtype(np.float32 if dtype == np.complex64 else np.float64)


def _box_muller(blocks, kind):
    u1, u2 = 1 - blocks[:, :8], blocks[:, 8:]
    radius = np.sqrt(kind(-2) * np.log(u1))
    theta = kind(2 * math.pi) * u2
    return np.concatenate([radius * np.cos(theta), radius * np.sin(theta)], axis=1)


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    return default_generator.seed()
