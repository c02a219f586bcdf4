"""The random generator: MT19937, whose raw 32-bit words are those of PyTorch's CPU generator for the same seed.

From the words, PyTorch's CPU conventions (checked against it): float32 ``uniform`` is the low 24 bits over 2^24, float64 the low 53 of two
words over 2^53; ``normal`` of 16 values and more is Box-Muller over blocks of 16 float32 uniforms; smaller ones are drawn one by one
in double precision, with the second of each pair kept for the next call.
"""

from __future__ import annotations

import contextlib
import math

import numpy as np

from .. import _C, _runtime
from ..base import kernels
from ..base.device import CPU, as_device
from ..base.dtypes import uint8
from ..base.kernels import Distribution, Draw
from ..base.public import public_in

__all__ = [
    "Generator",
    "default_generator",
    "drawing_on",
    "engine_of",
    "generator_on",
    "is_engine",
    "manual_seed",
    "seed",
    "source_of_draws",
]

# PyTorch's CPU generator in memory: the first part is that of its oldest releases, with a 64-bit word for each of the engine's 32 bits.
_STATE = np.dtype(
    [("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8"), ("words", "<u8", 624), ("normal_x", "<f8"), ("normal", "<f8"),
     ("normal_rho", "<f8"), ("has_normal", "<i8"), ("float_normal", "<f4"), ("has_float_normal", "<i4")]
)  # fmt: skip


# The state that csrc/kernels/random.c works on.
_ENGINE = np.dtype([("words", "<u4", 624), ("used", "<i4"), ("has_normal", "<i4"), ("normal", "<f8")])

LONG = 2**28  # from so many integers on each is made of two words


@public_in("_C")
class Generator:
    """A stream of random words. ``manual_seed(seed)`` restarts it; ``get_state``/``set_state`` save it."""

    def __init__(self, device="cpu"):
        self.device = as_device(device)
        self._engine = np.zeros(_ENGINE.itemsize, np.uint8)
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream. RuntimeError for a seed that isn't an int, ValueError beyond [-2**63, 2**64); negative ones are taken modulo 2**64."""
        if type(seed) is not int and not isinstance(seed, np.integer):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(2**63) <= seed < 2**64:
            raise ValueError("Overflow when unpacking long long")
        self._seed = int(seed) % 2**64
        # Legacy seeding by a 32-bit word, as the C++ engine.
        kernels.seed_engine([self._engine], [], seed=self._seed & 0xFFFFFFFF)
        return self

    def _fill(self, kernel, out: np.ndarray, **numbers) -> np.ndarray:
        """``out`` (contiguous), filled by a kernel of csrc/kernels/random.c."""
        kernel([self._engine], [out], **numbers)
        return out

    def _draw(self, what: Draw, out: np.ndarray, first=0.0, second=1.0, narrow=False) -> np.ndarray:
        kernels.draw(
            (self._engine,), (out,), what=what, f64=out.itemsize == 8, narrow=narrow, first=first, second=second
        )
        return out

    def words(self, n: int) -> np.ndarray:
        """The next words of the stream, uint32."""
        return self._fill(kernels.draw_words, np.empty(n, np.uint32))

    def sample(self, distribution: Distribution, *parameters: np.ndarray) -> np.ndarray:
        """float64 numbers of a distribution, one for each element of the parameters, which are float64 of one shape; drawn one after
        another. A rate of POISSON isn't negative (checked by the caller)."""
        arrays = [np.ascontiguousarray(p).reshape(p.shape) for p in parameters]
        out = np.empty(arrays[0].shape)
        kernels.sample([self._engine, *arrays], [out], distribution=distribution)
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

    def place(self) -> tuple:
        """Where the stream is, for :meth:`go_back`: cheaper than ``get_state``, and of this process only."""
        return self._seed, self._engine.copy()

    def go_back(self, place: tuple) -> None:
        self._seed, self._engine[:] = place

    def clone_state(self) -> Generator:
        """Another generator that goes on from the same place."""
        return Generator(self.device).set_state(self.get_state())

    def uniform(self, shape, dtype: np.dtype, low=0.0, high=1.0) -> np.ndarray:
        """Uniform in [low, high), complex numbers in both parts."""
        if dtype.kind == "c":
            return self.uniform((*shape, 2), _part(dtype), low, high).view(dtype).reshape(shape)
        out = np.empty(shape, np.float64 if dtype == np.float64 else np.float32)
        self._draw(Draw.UNIFORM, out, float(low), float(high))
        if dtype.itemsize != 2:
            return out
        # 16-bit floats are drawn as float32 and rounded; what becomes `high` is `low`.
        out = out.astype(dtype)
        out[out == dtype.type(high)] = low
        return out

    def normal(self, shape, dtype: np.dtype, mean=0.0, std=1.0, blocks=True) -> np.ndarray:
        """Normal(mean, std). Of a complex number each part has half of the variance, and both have the mean. ``blocks``: False for memory with
        gaps or in another order than the row-major one, for which PyTorch draws one by one."""
        if dtype.kind == "c":
            parts = self.normal((*shape, 2), _part(dtype), mean, std / math.sqrt(2), blocks)
            return parts.view(dtype).reshape(shape)
        if not blocks:
            wide = np.float64 if dtype == np.float64 else np.float32
            return (self.normal_sequence(shape) * std + mean).astype(wide, copy=False).astype(dtype, copy=False)
        out = np.empty(shape, np.float64 if dtype == np.float64 else np.float32)
        narrow = dtype.itemsize == 2
        return self._draw(Draw.NORMAL, out, float(mean), float(std), narrow).astype(dtype, copy=False)

    def bernoulli(self, shape, p) -> np.ndarray:
        """Truth values, each true with probability ``p``: a number (compared with doubles) or an array of ``shape`` (with draws of its precision)."""
        if not isinstance(p, np.ndarray):
            return self._draw(Draw.BERNOULLI, np.empty(shape, np.bool_), float(p))
        return self.uniform(shape, np.dtype(np.float64 if p.dtype == np.float64 else np.float32)) < p

    def truth_bits(self, shape, p: float) -> np.ndarray:
        """The truth values of ``bernoulli`` as bits, uint8: eight of the last dimension to a byte, the first one lowest."""
        *rows, n = shape
        return self._fill(kernels.draw_bits, np.empty((*rows, (n + 7) // 8), np.uint8), columns=n, p=float(p))

    def normal_sequence(self, shape) -> np.ndarray:
        """Standard normal doubles drawn one by one whatever their number, as ``log_normal`` wants them."""
        return self._draw(Draw.SEQUENCE, np.empty(shape))

    def integers(self, shape, low: int, high: int, long: int = LONG) -> np.ndarray:
        """Integers in [low, high) as int64: a word, or two for a range from ``long`` on, modulo the range."""
        span = high - low
        numbers = {"wide": span >= long, "low": signed(low), "span": signed(span)}
        return self._fill(kernels.draw_integers, np.empty(shape, np.int64), **numbers)

    def permutation(self, n: int) -> np.ndarray:
        """The numbers below ``n`` in random order, int64."""
        return self._fill(kernels.draw_permutation, np.empty(n, np.int64))


def engine_of(generator: Generator):
    """A generator's state as a tensor over the same memory: in a graph it is what draws are from. Operators take it for the generator."""
    return _C.from_array(generator._engine)


def is_engine(x) -> bool:
    """Whether ``x`` is, by its dtype and size, a tensor of :func:`engine_of`."""
    return isinstance(x, _C.TensorBase) and x._dtype is uint8 and tuple(x.shape) == (_ENGINE.itemsize,)


def source_of_draws(given) -> Generator:
    """The generator that an operator draws from, by its argument: a Generator, the tensor of one, or None, which is the default one."""
    if not isinstance(given, _C.TensorBase):
        return default_generator if given is None else given
    made = Generator.__new__(Generator)
    made.device, made._engine = CPU, given._array
    return made


def _part(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex number."""
    return np.dtype(np.float32 if dtype == np.complex64 else np.float64)


def signed(x: int) -> int:
    """An integer modulo 2 ** 64 as 64 bits with a sign."""
    return (x + 2**63) % 2**64 - 2**63


default_generator = Generator()
default_generator._engine = _runtime.default_engine()
default_generator.manual_seed(default_generator.initial_seed())


_on_devices: dict[int, Generator] = {}  # the default generators of the second device, made when they are asked for
_seed_of_all = default_generator.initial_seed()


def generator_on(device) -> Generator:
    """The default generator of a device."""
    if device.type == "cpu":
        return default_generator
    found = _on_devices.get(device.index)
    if found is None:
        found = _on_devices[device.index] = Generator(device).manual_seed(_seed_of_all)
    return found


def key_words(device) -> np.ndarray:
    """Two words of a device's generator, as the bytes that its kernels read."""
    return generator_on(device).words(2).astype(np.int64).view(np.uint8)


@contextlib.contextmanager
def drawing_on(device):
    """Draws of the host's default generator are those of ``device`` in the block."""
    if device.type == "cpu":
        yield
        return
    own, host = generator_on(device), default_generator.place()
    default_generator.go_back(own.place())
    try:
        yield
    finally:
        own.go_back(default_generator.place())
        default_generator.go_back(host)


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices with ``int(seed)``."""
    global _seed_of_all
    made = default_generator.manual_seed(int(seed))
    _seed_of_all = int(seed)
    for own in _on_devices.values():
        own.manual_seed(int(seed))
    return made


def seed() -> int:
    """Seed the default generators of all devices from the operating system's entropy; returns the seed."""
    made = default_generator.seed()
    manual_seed(made)
    return made
