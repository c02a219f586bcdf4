"""The iterators over a loader that isn't ours: fastai hands them one with PyTorch's private names only."""

import itertools

import pytest
from flambeau.utils.data.dataloader import _DatasetKind, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter

import flambeau as torch
from flambeau.utils.data import DataLoader


def same(x):
    return x


class Foreign:
    _IterableDataset_len_called, _auto_collation, drop_last, collate_fn = None, False, False, staticmethod(same)
    _index_sampler, generator, prefetch_factor, in_order, pin_memory = itertools.count(), None, 2, True, False
    _dataset_kind = _DatasetKind.Iterable
    timeout, persistent_workers, worker_init_fn, multiprocessing_context = 0, False, None, None

    def __init__(self, num_workers):
        self.num_workers = num_workers

    @property
    def dataset(self):
        return [torch.full((2,), float(i)) for i in range(3)]


@pytest.mark.parametrize("make, workers", [(_SingleProcessDataLoaderIter, 0), (_MultiProcessingDataLoaderIter, 1)])
def test_foreign(make, workers):
    assert [x.tolist() for x in make(Foreign(workers))] == [[0, 0], [1, 1], [2, 2]]


def test_a_subclass_with_an_iterator_of_its_own():
    class Doubling(DataLoader):
        def _get_iterator(self):
            return (2 * x for x in super()._get_iterator())

    loader = Doubling([1.0, 2.0], batch_size=2)
    assert [x.tolist() for x in loader] == [[2, 4]] and loader._dataset_kind == _DatasetKind.Map
