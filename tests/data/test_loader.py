"""DataLoader: order, seeds, workers, errors; beside PyTorch where it is installed."""

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flambeau as torch
from flambeau.utils import data

SOURCE = Path(torch.__file__).parents[1]


class Rows(data.Dataset):
    def __init__(self, n=10):
        self.x = torch.arange(n * 3.0).reshape(n, 3)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "i": i, "name": f"row {i}"}


class Wide(data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return {
            "x": torch.full((30000,), float(i)),
            "small": i,
            "parts": [torch.full((20000,), 7.0)] * 300 if i < 2 else [0],
        }


class Stream(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(info.id if info else 0, 11, info.num_workers if info else 1))


class Bad(Rows):
    def __getitem__(self, i):
        if i == 3:
            raise KeyError("three")
        return i


class Dies(Rows):
    def __getitem__(self, i):
        if i == 3:
            os._exit(5)
        return i


class Slow(Rows):
    def __getitem__(self, i):
        import time

        time.sleep(30)


def _init_fails(worker):
    raise ValueError("init")


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_keep_their_order(workers):
    loader = data.DataLoader(Rows(), batch_size=4, num_workers=workers)
    batches = list(loader)
    assert len(loader) == 3 and [b["i"].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert batches[1]["x"].tolist() == Rows().x[4:8].tolist() and batches[2]["name"] == ["row 8", "row 9"]
    assert [b["i"].tolist() for b in data.DataLoader(Rows(), 4, drop_last=True, num_workers=workers)][-1] == [
        4,
        5,
        6,
        7,
    ]


def test_order_does_not_depend_on_the_workers():
    def order(workers, **kw):
        torch.manual_seed(3)
        return [b["i"].tolist() for b in data.DataLoader(Rows(50), 8, shuffle=True, num_workers=workers, **kw)]

    assert order(0) == order(1) == order(2, prefetch_factor=5) == order(2, persistent_workers=True)


def test_streams_are_split_by_worker_info():
    assert [b.tolist() for b in data.DataLoader(Stream(), 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]]
    assert sorted(sum((b.tolist() for b in data.DataLoader(Stream(), 4, num_workers=2)), [])) == list(range(11))
    assert data.get_worker_info() is None


def test_persistent_workers_serve_several_epochs():
    loader = data.DataLoader(Rows(), 5, num_workers=2, persistent_workers=True)
    pids = []
    for _ in range(3):
        assert [b["i"].tolist() for b in loader] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
        pids.append([w[0].pid for w in loader._iterator._workers])
    assert pids[0] == pids[1] == pids[2]
    loader._iterator.close()


def test_an_error_in_a_worker_is_raised_with_its_traceback():
    with pytest.raises(KeyError, match="(?s)Caught KeyError in DataLoader worker process 1.*in __getitem__"):
        list(data.DataLoader(Bad(), 2, num_workers=2))
    with pytest.raises(ValueError, match="init"):
        list(data.DataLoader(Rows(), 2, num_workers=1, worker_init_fn=_init_fails))


def test_a_dead_worker_is_reported():
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid \d+\) exited unexpectedly with exit code 5"):
        list(data.DataLoader(Dies(), 2, num_workers=2))


def test_timeout():
    with pytest.raises(RuntimeError, match="timed out after 0.2 seconds"):
        list(data.DataLoader(Slow(), 2, num_workers=1, timeout=0.2))


def test_nothing_stays_in_shared_memory():
    gc.collect()
    before = set(os.listdir("/dev/shm")), len(os.listdir("/proc/self/fd"))
    iterator = iter(data.DataLoader(Wide(), 2, num_workers=2))
    next(iterator)
    del iterator
    assert (set(os.listdir("/dev/shm")), len(os.listdir("/proc/self/fd"))) == before


def test_large_batches_come_through_shared_memory():
    batches = list(data.DataLoader(Wide(), 2, num_workers=2))
    assert [b["x"][0, 0].item() for b in batches] == [0, 2, 4, 6]
    assert all(b["x"].is_shared() and not b["small"].is_shared() for b in batches)
    batches[0]["x"].zero_()
    assert batches[1]["x"][0, 0] == 2
    assert len(batches[0]["parts"]) == 300 and all(p[0, 0] == 7 for p in batches[0]["parts"]), (
        "more than a message takes"
    )


def test_refused_arguments():
    for kw, text in [
        (dict(num_workers=-1), "num_workers option should be non-negative"),
        (dict(prefetch_factor=2), "prefetch_factor option could only"),
        (dict(sampler=[1], shuffle=True), "sampler option is mutually exclusive with shuffle"),
        (dict(batch_sampler=[[1]], shuffle=True), "batch_sampler option is mutually exclusive"),
        (dict(persistent_workers=True), "persistent_workers option needs num_workers > 0"),
    ]:
        with pytest.raises(ValueError, match=text):
            data.DataLoader(Rows(), **kw)
    loader = data.DataLoader(Rows())
    with pytest.raises(ValueError, match="batch_size attribute should not be set after DataLoader is initialized"):
        loader.batch_size = 3
    with pytest.raises(TypeError, match="batch must contain tensors"):
        data.default_collate([object()])


BESIDE = """
import importlib, random, sys
import numpy as np
torch, data = importlib.import_module(sys.argv[1]), importlib.import_module(sys.argv[1] + ".utils.data")

class Draws(data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, i): return torch.rand(()).item(), random.random(), float(np.random.rand())

class Pairs(data.Dataset):
    def __len__(self): return 300
    def __getitem__(self, i): return i

torch.manual_seed(0)
print([[v.tolist() for v in b] for b in data.DataLoader(Draws(), 2, num_workers=2)])
loader = data.DataLoader(Pairs(), 64, shuffle=True, num_workers=2, persistent_workers=True)
print([[b[:4].tolist() for b in loader] for _ in range(2)])
print([list(s.indices) for s in data.random_split(range(10), [0.3, 0.7])])
print(list(data.WeightedRandomSampler([1.0, 2, 3], 5)), list(data.SubsetRandomSampler([3, 4, 5])))
print(list(data.RandomSampler(range(5), replacement=True, num_samples=40)), list(data.RandomSampler(range(5), num_samples=12)))
print(data.default_collate([{"a": 1, "b": (2.5, "x")}, {"a": 2, "b": (3.5, "y")}]), data.default_collate([np.float32(1), np.float32(2)]))
"""


@pytest.mark.parity
def test_seeds_and_order_are_pytorchs():
    pytest.importorskip("torch")
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    out = [
        subprocess.run(
            [sys.executable, "-c", BESIDE, name], env=env, capture_output=True, text=True, timeout=100, check=True
        ).stdout
        for name in ("torch", "flambeau")
    ]
    assert out[0] == out[1]


APART = [
    (
        [torch.ones(2), torch.ones(3)],
        RuntimeError,
        r"sample\[0\] is a tensor of shape \[2\], sample\[1\] a tensor of shape \[3\]",
    ),
    (
        [(1, torch.ones(2)), (1, "text")],
        TypeError,
        r"sample\[0\]\[1\] is a tensor of shape \[2\], sample\[1\]\[1\] a str",
    ),
    ([{"a": 1}, {"b": 1}], KeyError, r"sample\[0\] has the key 'a', sample\[1\] hasn't"),
    ([{"a": [1, 2]}, {"a": [1]}], RuntimeError, r"sample\[0\]\['a'\] has 2 elements, sample\[1\]\['a'\] has 1"),
    ([1, "a"], TypeError, r"sample\[0\] is a int, sample\[1\] a str"),
]


@pytest.mark.parametrize("samples, kind, text", APART, ids=[row[2][:30] for row in APART])
def test_samples_that_make_no_batch_are_named(samples, kind, text):
    with pytest.raises(kind) as caught:
        next(iter(data.DataLoader(samples, batch_size=2)))
    (note,) = caught.value.__notes__
    assert re.search(text, note) and "collate_fn" in note


@pytest.mark.parametrize("make", [data.RandomSampler, lambda d: data.DataLoader(d, shuffle=True)])
def test_nothing_has_no_random_order(make):
    with pytest.raises(ValueError, match="num_samples should be a positive integer value, but got num_samples=0"):
        make([])


class _Reported(data.IterableDataset):
    def __iter__(self):
        return iter(range(9))

    def __len__(self):
        return 3


def test_a_stream_is_warned_of_by_the_length_of_its_dataset():
    loader = data.DataLoader(_Reported(), 2)
    assert len(loader) == 2
    with pytest.warns(UserWarning, match="was reported to be 3.* but [45] samples") as caught:
        assert len(list(loader)) == 5
    assert len(caught) == 2
