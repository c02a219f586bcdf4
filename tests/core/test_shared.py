"""Tensors in shared memory: moved in place for all that look at them, sent through queues and pipes, gone with the processes."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys

import pytest

import flambeau as torch
from flambeau import nn

LOOKS = {
    "view": lambda x: x.view(-1),
    "transposed": lambda x: x.t(),
    "part": lambda x: x[1:, ::2],
    "detached": lambda x: x.detach(),
    "data": lambda x: x.data,
    "data of a view": lambda x: x[0].data,
    "parameter": lambda x: nn.Parameter(x),
    "other dtype": lambda x: x.view(torch.int32),
    "set_": lambda x: torch.empty(0).set_(x),
}


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("mover", ["original", "look"])
def test_all_tensors_over_a_memory_move(look, mover):
    x = torch.arange(12.0).reshape(3, 4)
    y = LOOKS[look](x)
    strides, offset, before = y.stride(), y.storage_offset(), y.tolist()
    (x if mover == "original" else y).share_memory_()
    assert x.is_shared() and y.is_shared()
    assert (y.stride(), y.storage_offset(), y.tolist()) == (strides, offset, before)
    with torch.no_grad():
        x.copy_(-x)
    assert y.tolist() == LOOKS[look](x).tolist() != before


KINDS = {
    "empty": lambda: torch.empty(0),
    "no dimensions": lambda: torch.tensor(3),
    "bfloat16": lambda: torch.ones(3).bfloat16(),
    "complex": lambda: torch.ones(3, dtype=torch.complex64),
    "strided": lambda: torch.arange(6.0).reshape(2, 3).t(),
    "expanded": lambda: torch.ones(1).expand(5),
    "gradient asked for": lambda: torch.ones(3, requires_grad=True),
    "parameter": lambda: nn.Parameter(torch.ones(2)),
    "conj": lambda: torch.tensor([1 + 2j]).conj(),
    "from NumPy": lambda: torch.from_numpy(__import__("numpy").ones((2, 3), order="F")),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_move(kind):
    x = KINDS[kind]()
    before = x.tolist()
    assert x.share_memory_() is x and x.is_shared() and x.tolist() == before
    assert x.untyped_storage().is_shared() and x.share_memory_() is x


def test_refusals():
    with pytest.raises(RuntimeError, match="only available on CPU"):
        torch.ones(2, device="meta").share_memory_()
    with pytest.raises(NotImplementedError, match="Cannot access storage of SparseTensorImpl"):
        torch.ones(2).to_sparse().share_memory_()
    with pytest.raises(RuntimeError, match="uninitialized"):
        nn.LazyLinear(2).share_memory()


def test_versions_history_and_modules_go_on():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    x.share_memory_()
    y.backward()
    assert x.grad.tolist() == [2, 2, 2] and x._version == 0
    z = torch.ones(2, requires_grad=True)
    product = z * z
    z.share_memory_()
    with torch.no_grad():
        z.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.sum().backward()
    model = nn.Linear(2, 2).share_memory()
    assert all(p.is_shared() for p in model.parameters())
    step = torch.compile(lambda x: x * 2)
    shared = torch.ones(4).share_memory_()
    assert step(shared).tolist() == [2, 2, 2, 2]


def test_descriptors_are_closed():
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    kept = [torch.ones(10).share_memory_() for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) == before + 20
    del kept
    assert len(os.listdir("/proc/self/fd")) == before


def _put(queue, done, makes):
    for make in makes:
        queue.put(make())
    done.wait(30)


def _temporary():
    return torch.arange(3)


def _shared_twice():
    x = torch.arange(4.0)
    return [x, x.view(2, 2), x[1:]]


def _conj():
    return torch.tensor([1 + 2j]).conj()


def _sparse():
    return torch.eye(2).to_sparse()


def _whole_module():
    return nn.BatchNorm1d(2)


def _noted():
    p = nn.Parameter(torch.ones(2))
    p.note = 5
    return p


def _meta():
    return torch.ones(2, device="meta")


def _storage():
    return torch.UntypedStorage([1, 2])


SENT = {
    "temporary": (_temporary, lambda x: x.tolist() == [0, 1, 2] and x.is_shared()),
    "shared twice": (_shared_twice, lambda x: x[0]._storage is x[1]._storage is x[2]._storage and x[1].shape == (2, 2)),
    "conj": (_conj, lambda x: x.is_conj() and x.tolist() == [1 - 2j]),
    "sparse": (_sparse, lambda x: x.to_dense().tolist() == [[1, 0], [0, 1]]),
    "module": (_whole_module, lambda x: x.num_batches_tracked.shape == () and x.weight.tolist() == [1, 1]),
    "parameter with attribute": (_noted, lambda x: type(x) is nn.Parameter and x.note == 5 and x.requires_grad),
    "meta": (_meta, lambda x: x.is_meta and x.shape == (2,)),
    "storage": (_storage, lambda x: x.tolist() == [1, 2] and x.is_shared()),
}


def _received(method, names):
    """What a process of its own sends through a queue."""
    context = torch.multiprocessing.get_context(method)
    queue, done = context.Queue(), context.Event()
    process = context.Process(target=_put, args=(queue, done, [SENT[name][0] for name in names]))
    process.start()
    received = [queue.get(timeout=60) for _ in names]
    done.set()
    process.join(60)
    assert process.exitcode == 0
    return received


@pytest.mark.parametrize("name", SENT)
def test_queues(name):
    (received,) = _received("fork", [name])
    assert SENT[name][1](received)


def test_queues_of_a_process_that_imports_anew():
    """One for all: it starts for a second."""
    for name, received in zip(SENT, _received("spawn", SENT), strict=True):
        assert SENT[name][1](received), name


def _fill(tensor):
    tensor.fill_(7)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
@pytest.mark.parametrize("plain", [False, True], ids=["torch.multiprocessing", "multiprocessing"])
def test_arguments_are_shared(method, plain):
    context = (multiprocessing if plain else torch.multiprocessing).get_context(method)
    tensor = torch.zeros(3).share_memory_()
    process = context.Process(target=_fill, args=(tensor,))
    process.start()
    process.join(60)
    assert tensor.tolist() == [7, 7, 7]


def test_a_tensor_that_comes_back_is_the_same():
    from flambeau.core import sending

    here, there = multiprocessing.Pipe(duplex=True)
    x = torch.zeros(3).share_memory_()
    y = torch.zeros(1 << 15)
    sending.send(here, *sending.dumps([x, y, y[5:], torch.ones(2)]))
    a, b, c, d = sending.receive(there)
    assert a._storage is x._storage and b._storage is y._storage is c._storage and c.storage_offset() == 5
    assert y.is_shared() and not d.is_shared()


def test_history_stays_here():
    queue = torch.multiprocessing.SimpleQueue()
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        queue.put(torch.ones(2, requires_grad=True) * 2)


KILLED = """
import os, signal
import flambeau as torch
queue = torch.multiprocessing.get_context("fork").Queue()
kept = [torch.ones(100000).share_memory_() for _ in range(3)]
queue.put(torch.ones(1000))
print("ready", flush=True)
signal.pause()
"""


def test_killed_processes_leave_nothing():
    before = set(os.listdir("/dev/shm"))
    process = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    left = set(os.listdir("/dev/shm")) - before
    assert not [n for n in left if "flambeau" in n or "torch" in n]


def test_pickles_hold_the_bytes():
    x = torch.ones(3).share_memory_()
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == [1, 1, 1] and not y.is_shared()


def test_storages_are_cast_filled_and_copied():
    typed = torch.arange(3.0).storage()
    assert typed.float() is typed and typed.int().tolist() == [0, 1, 2] and typed.int().dtype is torch.int32
    assert torch.UntypedStorage([1, 0, 255]).float().tolist() == [1.0, 0.0, 255.0]
    assert torch.UntypedStorage([1, 0, 255]).bool().tolist() == [True, False, True]
    x = torch.zeros(2)
    x.storage().fill_(3)
    assert x.tolist() == [3, 3] and x.storage().type() == "torch.FloatStorage"
    with pytest.raises(
        NotImplementedError, match=r"TypedStorage.type\(torch.int32\) is not built: .float\(\), .int\(\)"
    ):
        x.storage().type(torch.int32)
    x.storage().copy_(torch.tensor([7.0, 8.0]).storage())
    assert x.tolist() == [7, 8] and x.storage().cpu().data_ptr() == x.data_ptr()


def test_storages_are_not_resized_under_their_tensors():
    x = torch.arange(4.0)
    storage = x.untyped_storage()
    storage.resize_(16)
    for size in (0, 32):
        with pytest.raises(RuntimeError, match="not resizable"):
            storage.resize_(size)
    assert not storage.resizable() and x.tolist() == [0, 1, 2, 3]
