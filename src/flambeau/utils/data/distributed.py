"""DistributedSampler: the part of the indices that one of several processes takes."""

from __future__ import annotations

import math

from ...core.bindings import function
from ...core.generator import Generator
from ...distributed import world as worlds
from .sampler import Sampler

__all__ = ["DistributedSampler"]

randperm = function("randperm")


class DistributedSampler(Sampler):
    """Every ``num_replicas``-th index from ``rank`` on, of an order shuffled by ``seed + epoch`` that all processes agree on.
    How many there are and which this is are the default process group's unless given."""

    def __init__(
        self, dataset, num_replicas=None, rank=None, shuffle: bool = True, seed: int = 0, drop_last: bool = False
    ):
        if num_replicas is None or rank is None:
            if not worlds.is_initialized():
                raise ValueError(
                    "Default process group has not been initialized, please make sure to call init_process_group, or give num_replicas and rank."
                )
            num_replicas = worlds.get_world_size() if num_replicas is None else num_replicas
            rank = worlds.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.shuffle, self.seed, self.drop_last = 0, shuffle, seed, drop_last
        n = len(dataset)
        self.num_samples = (
            math.ceil((n - num_replicas) / num_replicas)
            if drop_last and n % num_replicas
            else math.ceil(n / num_replicas)
        )
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = randperm(len(self.dataset), generator=generator).tolist()
        else:
            indices = list(range(len(self.dataset)))
        if self.drop_last:
            indices = indices[: self.total_size]
        else:
            more = self.total_size - len(indices)
            indices += (indices * math.ceil(more / len(indices)))[:more] if indices else []
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch
