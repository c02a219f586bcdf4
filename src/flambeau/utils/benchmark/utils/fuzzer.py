"""Random sizes and tensors to measure on, from one seed (NumPy's RandomState, as in PyTorch)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from ....base import dtypes
from ....base.public import public_in
from ....core.generator import default_generator
from ....core.operator import namespace

__all__ = ["FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

aten = namespace("aten")


class ParameterAlias:
    """The value of another parameter."""

    def __init__(self, alias_to: str):
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number between ``minval`` and ``maxval`` ("uniform" or "loguniform"), or one of a distribution {value: probability}. ``strict``: one draw
    is kept when the Fuzzer rejects the other parameters and tries again."""

    def __init__(self, name: str, minval=None, maxval=None, distribution=None, strict: bool = False):
        if isinstance(distribution, str):
            if distribution not in ("uniform", "loguniform"):
                raise AssertionError(f"Unknown distribution: {distribution}")
            if minval is None or maxval is None:
                raise ValueError(f"{distribution} needs minval and maxval")
        elif not isinstance(distribution, dict):
            raise AssertionError("Invalid distribution")
        elif any(p < 0 for p in distribution.values()):
            raise AssertionError("Probabilities cannot be negative")
        elif minval is not None or maxval is not None:
            raise AssertionError("When passing a custom distribution, minval and maxval must be None")
        self._name, self.minval, self.maxval, self.distribution, self.strict = (
            name,
            minval,
            maxval,
            distribution,
            strict,
        )

    @property
    def name(self) -> str:
        return self._name

    def sample(self, state: np.random.RandomState):
        if isinstance(self.distribution, dict):
            chances = np.array(list(self.distribution.values()), dtype=float)
            return list(self.distribution)[state.choice(np.arange(len(chances)), p=chances / chances.sum())]
        if self.distribution == "loguniform":
            found = int(2 ** state.uniform(low=math.log2(self.minval), high=math.log2(self.maxval)))
            return min(max(found, self.minval), self.maxval)
        if isinstance(self.minval, int) and isinstance(self.maxval, int):
            return int(state.randint(low=self.minval, high=self.maxval + 1))
        return state.uniform(low=self.minval, high=self.maxval)


class FuzzedTensor:
    """A tensor whose ``size`` and ``steps`` name parameters (or are numbers), within the limits given; not contiguous now and then."""

    def __init__(
        self,
        name: str,
        size: tuple,
        steps: tuple | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype=dtypes.float32,
        cuda: bool = False,
        tensor_constructor: Callable | None = None,
    ):
        if cuda:
            raise RuntimeError("FuzzedTensor(cuda=True): flambeau is not built with CUDA")
        self._name, self._size, self._steps, self._dtype = name, size, steps or (), dtype
        self._contiguous, self._dim = probability_contiguous, dim_parameter
        self._least, self._most, self._most_bytes = min_elements, max_elements, max_allocation_bytes
        self._make = tensor_constructor or self.default_tensor_constructor

    @property
    def name(self) -> str:
        return self._name

    @staticmethod
    def default_tensor_constructor(size, dtype, **kwargs):
        if dtype.is_floating_point or dtype.is_complex:
            return aten.rand(list(size), dtype=dtype)
        return aten.randint(1, 127, list(size), dtype=dtype)

    def _sizes(self, params: dict) -> tuple[tuple, tuple, tuple]:
        """(sizes, steps, sizes of the memory) for these parameters."""
        dim = params[self._dim] if self._dim is not None else len(self._size)

        def known(values):
            values = tuple(params.get(v, v) for v in values)[:dim]
            return values + (1,) * (dim - len(values))

        size, steps = known(self._size), known(self._steps)
        return size, steps, tuple(a * b for a, b in zip(size, steps))

    def satisfies_constraints(self, params: dict) -> bool:
        size, _, memory = self._sizes(params)
        elements, allocated = math.prod(size), math.prod(memory) * self._dtype.itemsize
        return (
            (self._most is None or elements <= self._most)
            and (self._least is None or elements >= self._least)
            and (self._most_bytes is None or allocated <= self._most_bytes)
        )

    def _make_tensor(self, params: dict, state: np.random.RandomState):
        size, steps, memory = self._sizes(params)
        raw = self._make(size=memory, dtype=self._dtype, **params)
        straight = order = np.arange(len(size))
        if state.rand() > self._contiguous:
            while len(size) > 1 and np.array_equal(order, straight):
                order = state.permutation(len(size))
            raw = raw.permute(order.tolist()).contiguous().permute(np.argsort(order).tolist())
        tensor = raw[tuple(slice(0, n * step, step) for n, step in zip(size, steps))]
        facts = {
            "numel": tensor.numel(),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }
        return tensor, facts


@public_in("utils.benchmark.utils.sparse_fuzzer")
class FuzzedSparseTensor(FuzzedTensor):
    """A sparse COO tensor with ``nnz`` random entries over the first ``sparse_dim`` dimensions (names of parameters, or numbers)."""

    def __init__(
        self, name, size, min_elements=None, max_elements=None, dim_parameter=None, sparse_dim=None, nnz=None, density=None,
        coalesced=None, dtype=dtypes.float32, cuda=False,
    ):  # fmt: skip
        super().__init__(name, size, None, 1.0, min_elements, max_elements, None, dim_parameter, dtype=dtype, cuda=cuda)
        self._sparse, self._nnz, self._density, self._coalesced = sparse_dim, nnz, density, coalesced

    def _make_tensor(self, params: dict, state: np.random.RandomState):
        size, _, _ = self._sizes(params)
        dims = params.get(self._sparse, self._sparse) or len(size)
        dims = min(dims, len(size))
        nnz = params.get(self._nnz, self._nnz)
        if nnz is None:
            density = params.get(self._density, self._density)
            nnz = math.ceil((1.0 if density is None else density) * math.prod(size[:dims]))
        places = [aten.randint(0, n, [nnz]) for n in size[:dims]]
        values = self.default_tensor_constructor([nnz, *size[dims:]], self._dtype)
        tensor = aten.sparse_coo_tensor(aten.stack(places), values, list(size))
        if params.get(self._coalesced, self._coalesced):
            tensor = tensor.coalesce()
        facts = {
            "numel": math.prod(size),
            "shape": tensor.size(),
            "is_coalesced": tensor.is_coalesced(),
            "density": nnz / max(math.prod(size[:dims]), 1),
            "sparse_dim": dims,
            "dense_dim": len(size) - dims,
            "is_hybrid": dims < len(size),
            "dtype": str(self._dtype),
        }
        return tensor, facts


class Fuzzer:
    """``take(n)`` yields n times ({name: tensor}, {name: its properties}, {name: parameter}), the same for the same ``seed``. Parameters are drawn
    again while a constraint (``f(params) -> bool``) or a tensor refuses them; ValueError after a thousand times."""

    def __init__(
        self, parameters: list, tensors: list, constraints: list[Callable] | None = None, seed: int | None = None
    ):
        self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        self._parameters: list[FuzzedParameter] = _flat(parameters, FuzzedParameter)
        self._tensors: list[FuzzedTensor] = _flat(tensors, FuzzedTensor)
        self._constraints = constraints or []
        both = {p.name for p in self._parameters} & {t.name for t in self._tensors}
        if both:
            raise ValueError(f"Duplicate names in parameters and tensors: {both}")
        self._rejected = self._made = 0

    @property
    def rejection_rate(self) -> float:
        return self._rejected / self._made if self._made else 0.0

    def take(self, n: int) -> Iterator[tuple[dict, dict, dict]]:
        state = np.random.RandomState(self._seed)
        default_generator.manual_seed(int(state.randint(low=0, high=2**63, dtype=np.int64)))
        for _ in range(n):
            params = self._draw(state)
            made = {t.name: t._make_tensor(params, state) for t in self._tensors}
            yield {k: v[0] for k, v in made.items()}, {k: v[1] for k, v in made.items()}, params

    def _draw(self, state: np.random.RandomState) -> dict:
        kept: dict = {}
        for _ in range(1000):
            found = {}
            for p in self._parameters:
                value = kept[p.name] if p.name in kept else p.sample(state)
                if p.strict:
                    kept[p.name] = value
                found[p.name] = value
            found = {name: _resolve(name, found) for name in found}
            self._made += 1
            if all(f(found) for f in self._constraints) and all(t.satisfies_constraints(found) for t in self._tensors):
                return found
            self._rejected += 1
        raise ValueError("Failed to generate a set of valid parameters.")


def _flat(values: list, cls: type) -> list:
    return list(itertools.chain.from_iterable([v] if isinstance(v, cls) else v for v in values))


def _resolve(name: str, params: dict):
    seen = {name}
    value = params[name]
    while isinstance(value, ParameterAlias):
        if value.alias_to in seen:
            raise ValueError(f"ParameterAlias cycle detected\n{params}")
        seen.add(value.alias_to)
        value = params[value.alias_to]
    return value
