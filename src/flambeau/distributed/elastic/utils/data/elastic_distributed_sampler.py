"""A sampler that begins in the middle of an epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .....core.bindings import function
from .....core.generator import Generator
from .....utils.data import Dataset
from .....utils.data.distributed import DistributedSampler

__all__ = ["ElasticDistributedSampler"]

randperm = function("randperm")


class ElasticDistributedSampler(DistributedSampler):
    """Each rank's part of the indices from ``start_index`` on, in an order that the epoch draws. All parts have the same length: the first
    indices of the order are taken again. A program that was started again with another number of ranks passes the number of samples that were used.

    ``num_replicas`` and ``rank`` are those of the default group. ValueError for a start that isn't below the number of samples."""

    def __init__(
        self, dataset: Dataset, num_replicas: int | None = None, rank: int | None = None, start_index: int = 0
    ):
        super().__init__(dataset, num_replicas, rank)
        if start_index >= len(dataset):
            raise ValueError(f"Start index {start_index} should be less than dataset size {len(dataset)}")
        self.start_index = start_index
        self.num_samples = math.ceil((len(dataset) - start_index) / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas

    def __iter__(self) -> Iterator[int]:
        left = len(self.dataset) - self.start_index
        drawn = randperm(left, generator=Generator().manual_seed(self.epoch)).tolist()
        order = [self.start_index + k for k in drawn]
        while len(order) < self.total_size:
            order += order[: self.total_size - len(order)]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples
