"""torch.save and torch.load: views, refusals, broken and malicious files; both ways with PyTorch where it is installed."""

import collections
import io
import os
import pickle
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import flambeau as torch
from flambeau import nn, serialization


def saved(obj, **kw) -> io.BytesIO:
    f = io.BytesIO()
    torch.save(obj, f, **kw)
    f.seek(0)
    return f


def rewritten(data: io.BytesIO, **records) -> io.BytesIO:
    """The archive with some records replaced (None: left out), by name below "archive"."""
    out = io.BytesIO()
    with zipfile.ZipFile(data) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            short = name.split("/", 1)[1]
            if short not in records:
                target.writestr(name, source.read(name))
        for short, value in records.items():
            if value is not None:
                target.writestr(f"archive/{short}", value)
    out.seek(0)
    return out


def test_everything_comes_back():
    base = torch.arange(12.0).reshape(3, 4)
    obj = {
        "base": base,
        "view": base.t()[1:],
        "parameter": nn.Parameter(torch.ones(2)),
        "dtype": torch.float16,
        "size": torch.Size([1, 2]),
        "device": torch.device("cpu"),
        "list": [1, 2.5, "x", None, True, (1,), b"bytes", 1 << 70],
        "counter": collections.OrderedDict(a=1),
        "empty": torch.empty(0, 3),
        "scalar": torch.tensor(3),
        "grad": torch.ones(2, requires_grad=True),
        **{
            str(d): torch.ones(3).to(d)
            for d in (torch.bfloat16, torch.uint16, torch.bool, torch.complex64, torch.int8, torch.float64)
        },
    }
    for kw in ({}, {"weights_only": False}):
        out = torch.load(saved(obj), **kw)
        assert (
            list(out) == list(obj)
            and out["list"] == obj["list"]
            and out["size"] == (1, 2)
            and out["dtype"] is torch.float16
        )
        for k, v in obj.items():
            if isinstance(v, torch.Tensor):
                assert out[k].dtype is v.dtype and out[k].shape == v.shape and torch.equal(out[k], v), k
                assert out[k].stride() == v.stride() and out[k].requires_grad == v.requires_grad
        assert type(out["parameter"]) is nn.Parameter
        out["base"][0, 1] = 100.0
        assert out["view"][0, 0] == 100.0, "views share memory"


def test_a_file_and_mmap(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({"a": torch.arange(1000.0)}, path)
    mapped = torch.load(path, mmap=True)["a"]
    mapped[0] = 5.0
    assert mapped[1] == 1 and torch.load(str(path))["a"][0] == 0, "a private mapping"
    assert torch.load(path, map_location="meta")["a"].device.type == "meta"
    with pytest.raises(ValueError, match="string filename in order to use mmap"):
        torch.load(saved(1), mmap=True)


CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "where", ["cpu", CPU, torch.device("cpu", 0), {"cpu": "cpu"}, lambda storage, place: storage, None]
)
def test_map_location(where):
    assert torch.load(saved({"a": torch.ones(2), "d": CPU}), map_location=where)["a"].tolist() == [1, 1]


def test_a_dtype_of_numpys_that_the_user_allows():
    scalar = {"x": np.float64(2.5)}
    with torch.serialization.safe_globals([np._core.multiarray.scalar, np.dtype, type(np.dtype("f8"))]):
        assert torch.load(saved(scalar)) == scalar


def test_modules_and_optimizers_resume():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)), torch.randn(16, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    def step():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    step()
    file = saved({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    expected = [step(), step()]
    state = torch.load(file)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    assert [step(), step()] == expected
    whole = torch.load(saved(model), weights_only=False)
    assert torch.equal(whole(x), model(x))


class _Runs:
    def __reduce__(self):
        return os.system, (f"touch {os.environ['FLAMBEAU_TEST_MARK']}",)


class _Harmless:
    def __init__(self, x=0):
        self.x = x


@pytest.fixture
def mark(tmp_path, monkeypatch):
    path = tmp_path / "ran"
    monkeypatch.setenv("FLAMBEAU_TEST_MARK", str(path))
    yield path
    assert not path.exists(), "the checkpoint ran code"


def test_code_is_refused_by_name(mark):
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL posix.system was not an allowed global"):
        torch.load(saved({"a": torch.ones(2), "b": _Runs()}))
    assert serialization.get_unsafe_globals_in_checkpoint(saved(_Runs())) == ["posix.system"]


ATTACKS = {
    "eval": b"\x80\x02cbuiltins\neval\nX\x04\x00\x00\x001+1q\x85R.",
    "getattr": b"\x80\x02cbuiltins\ngetattr\n.",
    "subprocess": b"\x80\x02csubprocess\nPopen\n.",
    "stack global": b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
    "inst": b"\x80\x02(ios\nsystem\n.",
    "obj": b"\x80\x02(cos\nsystem\no.",
    "reduce on an instance": b"\x80\x02X\x01\x00\x00\x00x)R.",
    "build on a class": b"\x80\x02ccollections\nOrderedDict\n}X\x01\x00\x00\x00aK\x01sb.",
    "build on a tensor class": b"\x80\x02ctorch\nSize\n}X\x01\x00\x00\x00aK\x01sb.",
    "extension": b"\x80\x02\x82\x01.",
    "newobj of a function": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)\x81.",
    "unknown torch name": b"\x80\x02ctorch.hub\nload\n.",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_are_refused(name, mark):
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(rewritten(saved(1), **{"data.pkl": ATTACKS[name]}))


def test_names_can_be_allowed():
    file = saved({"h": _Harmless(3)})
    with pytest.raises(pickle.UnpicklingError, match="_Harmless"):
        torch.load(file)
    file.seek(0)
    with serialization.safe_globals([_Harmless]):
        assert torch.load(file)["h"].x == 3
    assert serialization.get_safe_globals() == []


def test_functions_are_named_as_in_pytorch():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8)
    layer.others = [torch.nn.functional.gelu, torch.sin, torch.linalg.norm, torch.special.expit, torch.nn.init.zeros_]
    file = saved(layer)
    with zipfile.ZipFile(file) as archive:
        pickled = archive.read("archive/data.pkl")
    assert b"flambeau" not in pickled and b"ctorch.nn.functional\nrelu\n" in pickled
    file.seek(0)
    again = torch.load(file, weights_only=False)
    assert again.others == layer.others and again.linear1.weight.equal(layer.linear1.weight)


@pytest.mark.parametrize("zipped", [True, False])
def test_damage_anywhere_is_an_error(zipped):
    """A bit turned, or the end cut off, at places all over the file: the same object or an error that says what is wrong. Streams have no sums."""
    file = io.BytesIO()
    torch.save({"a": torch.arange(6.0), "b": [1.5, 7, "x", (None, True)]}, file, _use_new_zipfile_serialization=zipped)
    data = file.getvalue()
    want = repr(torch.load(io.BytesIO(data)))
    for at in range(0, len(data), 1 + len(data) // 400):
        turned = bytearray(data)
        turned[at] ^= 1 << at % 8
        for damaged in (bytes(turned), data[:at]):
            try:
                found = repr(torch.load(io.BytesIO(damaged)))
            except (RuntimeError, EOFError, ValueError, pickle.UnpicklingError):
                continue
            assert found == want or not zipped, at


def test_broken_files():
    good = saved({"a": torch.arange(100.0)})
    data = good.getvalue()
    for cut in (10, len(data) // 2, len(data) - 10):
        with pytest.raises(RuntimeError, match="PytorchStreamReader failed"):
            torch.load(io.BytesIO(data[:cut]))
    flipped = bytearray(data)
    at = data.index(np.arange(100, dtype=np.float32).tobytes()) + 40
    flipped[at] ^= 0xFF
    with pytest.raises(RuntimeError, match="data/0.*CRC"):
        torch.load(io.BytesIO(bytes(flipped)))
    with pytest.raises(RuntimeError, match="file not found: archive/data/0"):
        torch.load(rewritten(good, **{"data/0": None}))
    with pytest.raises(RuntimeError, match="storage has wrong byte size: expected 400 got 8"):
        torch.load(rewritten(good, **{"data/0": b"12345678"}))
    with pytest.raises(RuntimeError, match="leaves the archive's folder"):
        torch.load(rewritten(good, **{"../../evil": b"x"}))
    with pytest.raises(ValueError, match="Unknown endianness type: middle"):
        torch.load(rewritten(good, byteorder=b"middle"))
    with pytest.raises(EOFError):
        torch.load(io.BytesIO(b""))
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        torch.load(io.BytesIO(b"not a checkpoint at all"))


def test_big_endian_files_are_turned():
    values = np.arange(5, dtype=np.float32)
    out = torch.load(rewritten(saved(torch.zeros(5)), byteorder=b"big", **{"data/0": values.astype(">f4").tobytes()}))
    assert out.tolist() == values.tolist()


def _rebuilt(size, stride, offset=0, numel=4):
    """A checkpoint whose tensor claims this size over a storage of ``numel`` floats."""
    real = saved(torch.zeros(numel))
    stream = io.BytesIO()

    class Claims(pickle._Pickler):
        def persistent_id(self, obj):
            return obj.pid if isinstance(obj, _Pid) else None

        def save_global(self, obj, name=None):
            names = {_rebuild_stand_in: "torch._utils\n_rebuild_tensor_v2", _FloatStorage: "torch\nFloatStorage"}
            if obj in names:
                return self.write(b"c" + names[obj].encode() + b"\n")
            return super().save_global(obj, name)

    class Reduced:
        def __reduce__(self):
            return _rebuild_stand_in, (_Pid(numel), offset, size, stride, False, collections.OrderedDict())

    Claims(stream, 2).dump(Reduced())
    return rewritten(real, **{"data.pkl": stream.getvalue()})


class _FloatStorage: ...


class _Pid:
    def __init__(self, numel):
        self.pid = ("storage", _FloatStorage, "0", "cpu", numel)


class _rebuild_stand_in: ...  # noqa: N801


def test_a_tensor_stays_inside_its_storage():
    assert torch.load(_rebuilt((2, 2), (2, 1))).shape == (2, 2)
    for size, stride, offset in [
        ((1000,), (1,), 0),
        ((2, 2), (2, 1), 1),
        ((1 << 62, 1 << 62), (1, 1), 0),
        ((2,), (-1,), 0),
        ((2,), (1,), -1),
    ]:
        with pytest.raises(RuntimeError, match="out of bounds for storage|invalid checkpoint"):
            torch.load(_rebuilt(size, stride, offset))


def test_old_formats_are_named(tmp_path):
    import tarfile

    path = tmp_path / "old.tar"
    with tarfile.open(path, "w") as tar:
        info = tarfile.TarInfo("sys_info")
        tar.addfile(info, io.BytesIO(b""))
    with pytest.raises(RuntimeError, match="legacy tar format"):
        torch.load(path)
    with pytest.raises(RuntimeError, match="TorchScript archives.*torch.jit.load"):
        torch.load(rewritten(saved(1), **{"constants.pkl": b""}))


BESIDE = """
import io, sys
import flambeau, torch, torch.nn as nn
torch.manual_seed(0)
base = torch.arange(12.0).reshape(3, 4)
model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Conv1d(1, 2, 2))
obj = {"base": base, "view": base.t(), "part": base[1:, 2:], "half": torch.ones(3).half(), "u16": torch.ones(2).to(torch.uint16),
       "p": nn.Parameter(torch.ones(2)), "sd": model.state_dict(), "bf": torch.ones(3).bfloat16(), "n": [1, "x", None]}
def save(lib, obj, **kw):
    f = io.BytesIO(); lib.save(obj, f, **kw); f.seek(0); return f
for kw in ({}, {"_use_new_zipfile_serialization": False}):
    here = flambeau.load(save(torch, obj, **kw))
    assert here["view"].tolist() == base.t().tolist() and here["view"]._storage is here["base"]._storage
    assert here["part"].tolist() == base[1:, 2:].tolist() and here["bf"].dtype is flambeau.bfloat16 and here["n"] == [1, "x", None]
    assert {k: v.tolist() for k, v in here["sd"].items()} == {k: v.tolist() for k, v in obj["sd"].items()}
back = torch.load(save(flambeau, here))
assert back["view"].untyped_storage().data_ptr() == back["base"].untyped_storage().data_ptr() and torch.equal(back["part"], obj["part"])
assert {k: v.tolist() for k, v in back["sd"].items()} == {k: v.tolist() for k, v in obj["sd"].items()} and type(back["p"]) is nn.Parameter
assert back["u16"].dtype is torch.uint16 and back["bf"].dtype is torch.bfloat16
whole = flambeau.load(save(torch, model), weights_only=False)
x = torch.randn(2, 4)
assert torch.allclose(torch.tensor(whole[0](flambeau.tensor(x.tolist())).tolist()), model[0](x), atol=1e-6)
again = torch.load(save(flambeau, flambeau.nn.Linear(2, 3)), weights_only=False)
assert again(torch.ones(1, 2)).shape == (1, 3)
print("ok")
"""


@pytest.mark.parity
def test_both_ways_with_pytorch():
    pytest.importorskip("torch")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run([sys.executable, "-c", BESIDE], env=env, capture_output=True, text=True, timeout=100)
    assert done.stdout == "ok\n", done.stderr


def test_two_objects_in_one_stream_are_refused():
    stream = io.BytesIO()
    torch.save(torch.ones(2), stream)
    torch.save(torch.zeros(2), stream)
    stream.seek(0)
    with pytest.raises(RuntimeError, match="several archives"):
        torch.load(stream)
