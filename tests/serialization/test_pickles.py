"""Tensors of every kind through pickle, copy and files: what comes back is laid out, shared and marked as what went."""

import collections
import copy
import io
import pickle

import pytest
from tensor_kinds import KINDS, facts, leaf_facts

import flambeau as torch
from flambeau import nn


def through_file(zipped, weights_only):
    def run(x):
        file = io.BytesIO()
        torch.save(x, file, _use_new_zipfile_serialization=zipped)
        file.seek(0)
        return torch.load(file, weights_only=weights_only)

    return run


WAYS = {
    **{f"pickle {p}": lambda x, p=p: pickle.loads(pickle.dumps(x, p)) for p in range(2, 6)},
    "file": through_file(True, True),
    "trusted file": through_file(True, False),
    "old file": through_file(False, True),
    "old trusted file": through_file(False, False),
}


@pytest.mark.parametrize("way", WAYS)
def test_all_kinds_come_back(way):
    for name, make in KINDS.items():
        x = make(torch)
        assert facts(WAYS[way](x), torch) == leaf_facts(facts(x, torch)), name


def test_copies_share_memory():
    for name, make in KINDS.items():
        x = make(torch)
        y = copy.copy(x)
        assert facts(y, torch) == leaf_facts(facts(x, torch)), name
        if isinstance(x, torch.Tensor) and x.layout is torch.strided:
            assert y is not x and y._storage is x._storage or x.is_meta, name


def test_deep_copies_of_tensors_keep_all():
    checked = 0
    for name, make in KINDS.items():
        x = make(torch)
        if type(x) is torch.Tensor and x.is_leaf and not x.is_conj() and not x.is_neg():
            assert facts(copy.deepcopy(x), torch) == facts(x, torch), name
            checked += 1
    assert checked > 200
    assert facts(copy.deepcopy(KINDS["shared storage"](torch)), torch) == facts(KINDS["shared storage"](torch), torch)


def test_a_copy_counts_the_writes_of_its_original():
    x = torch.ones(3)
    y = copy.copy(x)
    y.add_(1)
    assert x._version == 1 and x.tolist() == [2, 2, 2]


def test_modules_and_optimizers_keep_counters_of_no_dimensions():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    model2, optimizer2 = pickle.loads(pickle.dumps((model, optimizer)))
    assert model2[1].num_batches_tracked.shape == () == next(iter(optimizer2.state.values()))["step"].shape
    assert optimizer2.param_groups[0]["params"][0] is model2[0].weight


def test_storages_are_pickled_and_copied():
    for s in (torch.arange(3.0).untyped_storage(), torch.UntypedStorage([1, 2, 255]), torch.UntypedStorage(0)):
        for way in (*WAYS.values(), copy.copy, copy.deepcopy):
            t = way(s)
            assert type(t) is torch.UntypedStorage and t.tolist() == s.tolist()
            assert t is not s and (not s.nbytes() or t.data_ptr() != s.data_ptr())
    typed = torch.arange(3.0).storage()
    for way in WAYS.values():
        again = way([typed, torch.ones(1)])[0]
        assert again.tolist() == [0, 1, 2] and again.dtype is torch.float32


MADE = [
    ((), 0, None),
    ((4,), 4, None),
    (([1, 2, 300],), 3, [1, 2, 44]),
    (((7,),), 1, [7]),
]
REFUSED = [
    ((-1,), RuntimeError, "negative"),
    ((1 << 61,), RuntimeError, "can't allocate memory"),
    ((1 << 70,), RuntimeError, "can't allocate memory"),
    (("x",), RuntimeError, "one of the items was of type str instead of int"),
    (([1, "a"],), RuntimeError, r"sequence \(list\), but one of the items was of type str"),
    ((1.5,), (TypeError, RuntimeError), "Expected a sequence type, but got float"),
    ((1, 2), TypeError, "invalid combination of arguments"),
]


@pytest.mark.parametrize("args, size, values", MADE)
def test_untyped_storages_are_made(args, size, values):
    made = torch.UntypedStorage(*args)
    assert made.size() == size == len(made) and made.device.type == "cpu"
    assert values is None or made.tolist() == values


@pytest.mark.parametrize("args, error, text", REFUSED)
def test_untyped_storages_are_refused(args, error, text):
    with pytest.raises(error, match=text):
        torch.UntypedStorage(*args)


def test_memory_of_strided_arrays_is_whole():
    import numpy as np

    fortran = torch.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3)))
    fortran.untyped_storage().fill_(0)
    assert fortran.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert torch.UntypedStorage(4, device="meta").device.type == "meta"


def test_one_memory_seen_as_two_dtypes_is_refused():
    x = torch.ones(4)
    for pair in ([x, x.view(torch.int32)], [x, x.view(torch.uint16)], [x, x.untyped_storage()]):
        with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data"):
            torch.save(pair, io.BytesIO())


class Marked(torch.Tensor):
    pass


class Stateful(torch.Tensor):
    def __setstate__(self, state):
        self.restored = state


class Slotted(torch.Tensor):
    __slots__ = ("extra",)


def test_subclasses_keep_class_and_state():
    marked = torch.arange(4.0).reshape(2, 2).t().as_subclass(Marked)
    marked.note = [1]
    slotted = torch.ones(2).as_subclass(Slotted)
    slotted.extra = 5
    stateful = torch.ones(2).as_subclass(Stateful)
    stateful.note = 2
    for way in [*(f for n, f in WAYS.items() if "pickle" in n or "trusted" in n), copy.copy]:
        again = way(marked)
        assert type(again) is Marked and again.note == [1] and again.stride() == (1, 2)
        assert way(slotted).extra == 5
        assert way(stateful).restored == {"note": 2}
    with torch.serialization.safe_globals([Marked, Slotted, Stateful]):
        for way in ("file", "old file"):
            assert WAYS[way](marked).note == [1] and WAYS[way](slotted).extra == 5
            assert WAYS[way](stateful).restored == {"note": 2}


def test_hooks_and_gradients_stay_behind():
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: g)
    (x * 2).sum().backward()
    for way in WAYS.values():
        assert way(x).grad is None
    assert isinstance(WAYS["file"](collections.OrderedDict(a=x)), collections.OrderedDict)
