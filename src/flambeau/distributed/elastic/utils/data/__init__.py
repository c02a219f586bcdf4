"""Data for programs that go on in the middle of an epoch."""

from .cycling_iterator import CyclingIterator
from .elastic_distributed_sampler import ElasticDistributedSampler

__all__ = ["CyclingIterator", "ElasticDistributedSampler"]
