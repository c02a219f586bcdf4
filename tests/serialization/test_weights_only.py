"""Files that mean harm, as tables: each is refused by name, quickly, and without memory that it claims but doesn't hold."""

import collections
import io
import os
import pickle
import struct
import subprocess
import sys
import zipfile

import pytest

import flambeau as torch


def text(x):
    return b"X" + struct.pack("<I", len(x.encode())) + x.encode()


def number(n):
    return b"J" + struct.pack("<i", n)


def name(path):
    module, _, last = path.rpartition(".")
    return b"c" + module.encode() + b"\n" + last.encode() + b"\n"


def call(path, *args):
    return name(path) + b"(" + b"".join(args) + b"tR"


def archive(body, records=(), prefix="a"):
    """An archive whose pickle is ``body`` (protocol and end are added)."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr(f"{prefix}/data.pkl", b"\x80\x02" + body + b".")
        for key, data in {"data/0": bytes(16), "version": "3\n", **dict(records)}.items():
            z.writestr(f"{prefix}/{key}", data)
    file.seek(0)
    return file


STORAGE = b"(" + text("storage") + name("torch.FloatStorage") + text("0") + text("cpu") + number(4) + b"tQ"
HOOKS = call("collections.OrderedDict")
PLACE = STORAGE + number(0) + b"(" + number(4) + b"t(" + number(1) + b"t\x89" + HOOKS
TENSOR = name("torch._utils._rebuild_tensor_v2") + b"(" + PLACE + b"tR"


def state(key, value=b"K\x01"):
    """A pair of no attributes and one slot."""
    return b"(N}" + text(key) + value + b"stb"


def attribute(key, value=b"K\x01"):
    return b"}" + text(key) + value + b"sb"


REBUILD, PLAIN = name("torch._utils._rebuild_tensor_v2"), name("torch.Tensor")


def typed(function=REBUILD, cls=PLAIN, args=b"(" + PLACE + b"t", own=b"}"):
    return name("torch._tensor._rebuild_from_type_v2") + b"(" + function + cls + args + own + b"tR"


NESTED = b")" + b"\x85" * 100_000
WIDE = b")" + b"q\x00h\x00\x86" * 60  # (x, x) sixty times: 2 ** 60 elements to hash

INTERNALS = "_array _flags _keys _grad _grad_fn _autograd _forward _payload _storage grad requires_grad grad_fn data shape dtype".split()
METHODS = "sum backward detach __class__ __reduce_ex__ item to is_contiguous _plain layout".split()

PICKLES = {
    "tensor is sound": None,
    **{f"slot {n}": TENSOR + state(n) for n in INTERNALS + METHODS},
    **{f"attribute {n}": TENSOR + attribute(n) for n in INTERNALS + METHODS},
    **{f"typed with {n}": typed(own=b"}" + text(n) + b"K\x01s") for n in INTERNALS + METHODS},
    **{f"typed with slot {n}": typed(own=b"N}" + text(n) + b"K\x01s\x86") for n in INTERNALS + METHODS},
    **{
        f"parameter with {n}": name("torch._utils._rebuild_parameter_with_state")
        + b"("
        + TENSOR
        + b"\x88"
        + HOOKS
        + b"}"
        + text(n)
        + b"K\x01stR"
        for n in INTERNALS + METHODS
    },
    "state that is a list": TENSOR + b"]b",
    "state with a number for a name": TENSOR + b"}K\x01K\x01sb",
    "state of a dict": b"}}b",
    "state of a dtype": name("torch.float32") + attribute("name"),
    "state of a device": call("torch.device", text("cpu")) + attribute("type"),
    "state of a size": call("torch.Size", b"(K\x01t") + attribute("x"),
    "state of a function": name("torch._utils._rebuild_tensor_v2") + attribute("x"),
    "state of a class": name("torch.nn.parameter.Parameter") + attribute("x"),
    "typed by a class": typed(function=name("collections.OrderedDict"), args=b")"),
    "typed by a string": typed(function=text("x")),
    "typed by itself": typed(function=name("torch._tensor._rebuild_from_type_v2"), args=b")"),
    "typed as no tensor": typed(cls=name("collections.OrderedDict")),
    "typed as a string": typed(cls=text("x")),
    "typed with too few": name("torch._tensor._rebuild_from_type_v2") + b")R",
    "Tensor called": call("torch.Tensor", number(1 << 30)),
    "Tensor made": name("torch.Tensor") + b"(" + number(1 << 20) + b"t\x81",
    "Parameter called": call("torch.nn.parameter.Parameter", TENSOR),
    "Parameter made": name("torch.nn.parameter.Parameter") + b")\x81",
    "dtype called": name("torch.float32") + b")R",
    "storage class called": name("torch.FloatStorage") + b")R",
    "number called": b"K\x01)R",
    "bytearray of a number": call("builtins.bytearray", b"\x8a\x05\x00\x00\x00\x00\x10"),
    "bytearray of a list": call("builtins.bytearray", b"](K\x01e"),
    "text encoded otherwise": call("_codecs.encode", text("x"), text("rot13")),
    "deep key": b"}" + NESTED + b"K\x01s",
    "deep key among several": b"}(" + NESTED + b"K\x01u",
    "deep key of an ordered dict": HOOKS + NESTED + b"K\x01s",
    "deep key in a call": call("collections.OrderedDict", b"](](" + NESTED + b"K\x01ee"),
    "deep element of a set": call("builtins.set", b"](" + NESTED + b"e"),
    "deep element of an empty set": b"\x8f(" + NESTED + b"\x90",
    "deep element of a frozen set": b"(" + NESTED + b"\x91",
    "deep key of a counter": call("collections.Counter", b"](" + NESTED + b"e"),
    "deep key of dict by mark": b"(" + NESTED + b"K\x01d",
    "wide key": b"}" + WIDE + b"K\x01s",
    "wide element": call("builtins.set", b"](" + WIDE + b"e"),
    "wide frozen set": b"(" + WIDE + b"\x91",
    "key that can't be hashed": b"}]K\x01s",
    "defaultdict with contents": call("collections.defaultdict", b"N", b"}"),
    "item of a tensor": TENSOR + b"K\x00K\x05s",
    "items of a tensor": TENSOR + b"(K\x00K\x05u",
    "items by halves": b"}(K\x01u",
    "append to a tensor": TENSOR + b"K\x05a",
    "append to a dict": b"}K\x05a",
    "appends to a byte array": call("builtins.bytearray") + b"(K\x05e",
    "add to a list": b"](K\x05\x90",
    "bytes that aren't there": b"\x96" + struct.pack("<Q", 1 << 62),
    "bytes that aren't there either": b"\x8e" + struct.pack("<Q", 1 << 61),
    "text that isn't there": b"\x8d" + struct.pack("<Q", 1 << 60),
    "a long that isn't there": b"\x8b" + struct.pack("<i", (1 << 31) - 1),
    "a long of negative length": b"\x8b" + struct.pack("<i", -5),
    "a number of many digits": b"I" + b"9" * 100_000 + b"\n",
    "a memo that isn't there": b"h\x09",
    "an empty stack": b"0",
    "arguments that aren't a tuple": name("collections.OrderedDict") + b"]R",
    "a storage's id of deep tuples": NESTED + b"Q",
    "a storage's id of wide tuples": WIDE + b"Q",
    "a storage's id of another kind": b"(" + text("module") + b"K\x01K\x01K\x01K\x01tQ",
    "a storage of a huge number": b"("
    + text("storage")
    + name("torch.FloatStorage")
    + text("0")
    + text("cpu")
    + b"\x8a\x09"
    + b"\xff" * 8
    + b"\x00tQ",
    "a storage's key of another kind": b"("
    + text("storage")
    + name("torch.FloatStorage")
    + b"]"
    + text("cpu")
    + number(4)
    + b"tQ",
    "a storage outside of the archive": b"("
    + text("storage")
    + name("torch.FloatStorage")
    + text("../../etc/passwd")
    + text("cpu")
    + number(4)
    + b"tQ",
    "sizes of wide tuples": call(
        "torch._utils._rebuild_tensor_v2", STORAGE, number(0), WIDE, b"(K\x01t", b"\x89", HOOKS
    ),
    "sizes beyond the storage": call(
        "torch._utils._rebuild_tensor_v2", STORAGE, number(0), b"(" + number(5) + b"t", b"(K\x01t", b"\x89", HOOKS
    ),
    "strides beyond the storage": call(
        "torch._utils._rebuild_tensor_v2", STORAGE, number(0), b"(K\x02t", b"(K\x04t", b"\x89", HOOKS
    ),
    "offset beyond the storage": call(
        "torch._utils._rebuild_tensor_v2", STORAGE, number(4), b"(K\x01t", b"(K\x01t", b"\x89", HOOKS
    ),
    "negative offset": call(
        "torch._utils._rebuild_tensor_v2", STORAGE, number(-1), b"(K\x01t", b"(K\x01t", b"\x89", HOOKS
    ),
    "negative size": call(
        "torch._utils._rebuild_tensor_v2", STORAGE, number(0), b"(" + number(-1) + b"t", b"(K\x01t", b"\x89", HOOKS
    ),
    "size that is a bool": call(
        "torch._utils._rebuild_tensor_v2", STORAGE, number(0), b"(\x88t", b"(K\x01t", b"\x89", HOOKS
    ),
    "fewer strides": call(
        "torch._utils._rebuild_tensor_v2", STORAGE, number(0), b"(K\x02K\x02t", b"(K\x01t", b"\x89", HOOKS
    ),
    "storage that is a list": call(
        "torch._utils._rebuild_tensor_v2", b"]", number(0), b"(K\x01t", b"(K\x01t", b"\x89", HOOKS
    ),
    "dtype that is a list": call(
        "torch._utils._rebuild_tensor_v3", STORAGE, number(0), b"(K\x01t", b"(K\x01t", b"\x89", HOOKS, b"]"
    ),
    "wider dtype": call(
        "torch._utils._rebuild_tensor_v3",
        STORAGE,
        number(0),
        b"(K\x04t",
        b"(K\x01t",
        b"\x89",
        HOOKS,
        name("torch.float64"),
    ),
    "conjugated floats": call(
        "torch._utils._rebuild_tensor_v2",
        STORAGE,
        number(0),
        b"(K\x01t",
        b"(K\x01t",
        b"\x89",
        HOOKS,
        b"}" + text("conj") + b"\x88s",
    ),
    "unknown metadata": call(
        "torch._utils._rebuild_tensor_v2",
        STORAGE,
        number(0),
        b"(K\x01t",
        b"(K\x01t",
        b"\x89",
        HOOKS,
        b"}" + text("_flags") + b"\x88s",
    ),
    "gradient of integers": call(
        "torch._utils._rebuild_tensor_v2",
        STORAGE.replace(b"FloatStorage", b"IntStorage"),
        number(0),
        b"(K\x01t",
        b"(K\x01t",
        b"\x88",
        HOOKS,
    ),
    "meta tensor of odd sizes": call(
        "torch._utils._rebuild_meta_tensor_no_storage", name("torch.float32"), WIDE, b"(K\x01t", b"\x89"
    ),
    "meta tensor of negative sizes": call(
        "torch._utils._rebuild_meta_tensor_no_storage",
        name("torch.float32"),
        b"(J\xfe\xff\xff\xfft",
        b"(K\x01t",
        b"\x89",
    ),
    "meta tensor that no memory holds": call(
        "torch._utils._rebuild_meta_tensor_no_storage",
        name("torch.float32"),
        b"(" + 2 * (b"\x8a\x08" + (1 << 62).to_bytes(8, "little")) + b"t",
        b"(K\x01K\x01t",
        b"\x89",
    ),
    "meta tensor without a dtype": call(
        "torch._utils._rebuild_meta_tensor_no_storage", text("float32"), b"(K\x01t", b"(K\x01t", b"\x89"
    ),
    "sparse with indices outside": call(
        "torch._utils._rebuild_sparse_tensor",
        call("torch.serialization._get_layout", text("torch.sparse_coo")),
        b"("
        + call(
            "torch._utils._rebuild_tensor_v2",
            STORAGE.replace(b"FloatStorage", b"LongStorage")
            .replace(text("0"), text("1"))
            .replace(number(4), number(2)),
            number(0),
            b"(K\x01K\x02t",
            b"(K\x02K\x01t",
            b"\x89",
            HOOKS,
        )
        + call("torch._utils._rebuild_tensor_v2", STORAGE, number(0), b"(K\x02t", b"(K\x01t", b"\x89", HOOKS)
        + b"(K\x03tt",
    ),
    "a layout that isn't": call("torch.serialization._get_layout", text("torch._mkldnn")),
    "layout that is a list": call("torch.serialization._get_layout", b"]"),
    "a device that isn't": call("torch.device", text("x" * 100)),
    "tensor of an array": call(
        "torch._utils._rebuild_device_tensor_from_numpy", WIDE, name("torch.float32"), text("cpu"), b"\x89"
    ),
    "function of another module": name("torch.hub.load"),
    "function of the library": name("torch.load"),
    "function of this library": name("flambeau.load"),
    "class of the interpreter": name("builtins.type"),
    "printing": name("builtins.print"),
    "opening": name("builtins.open"),
    "dotted name": b"\x8c\x05torch\x8c\x0bhub.os.path\x93",
    "copyreg": name("copyreg._reconstructor"),
    "numpy": name("numpy.core.multiarray._reconstruct"),
    "functools": name("functools.partial"),
    "operator": name("operator.attrgetter"),
    "instance by mark": b"(icollections\nOrderedDict\n",
    "object by mark": b"(" + name("collections.OrderedDict") + b"o",
    "extension": b"\x82\x01",
    "persistent id as text": b"Pstorage\n",
    "next buffer": b"\x97",
    "keyword call": name("collections.OrderedDict") + b")}\x92",
}


def test_the_table_starts_from_a_sound_tensor():
    assert torch.load(archive(TENSOR)).tolist() == [0, 0, 0, 0]
    assert torch.load(archive(typed(own=b"}" + text("note") + b"K\x01s"))).note == 1
    assert len(PICKLES) > 170


@pytest.mark.parametrize("row", [n for n in PICKLES if PICKLES[n] is not None])
def test_pickles_are_refused(row):
    with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError)):
        torch.load(archive(PICKLES[row], {"data/1": struct.pack("<qq", 0, 7)}))


def test_a_key_too_deep_for_the_stack_is_no_crash():
    """Before the check this ended the process, so it is run in one of its own; a pickle of the old format too."""
    code = (
        "import io, sys\nsys.path[:0] = sys.argv[1:]\nimport flambeau as torch, test_weights_only as t\n"
        "body = b'})' + b'\\x85' * 500_000 + b'K\\x01s'\n"
        "for file in (t.archive(body), io.BytesIO(b'\\x80\\x02' + body + b'.')):\n"
        "    try: torch.load(file)\n    except Exception as e: print(type(e).__name__)\n"
    )
    here = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", code, here, *sys.path], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and done.stdout.split() == ["UnpicklingError"] * 2, done.stderr[-500:]


def _packed(size, count=1, kind=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as z:
        z.writestr("a/data.pkl", b"\x80\x02N.")
        for k in range(count):
            z.writestr(f"a/data/{k}", bytes(size))
    file.seek(0)
    return file


GROWING = [(100 << 20, 1), (10 << 20, 10), (1 << 20, 100)]
PACKED = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


# Each size in one way of packing, each way with one size: what is read of an archive are the sizes that it tells.
@pytest.mark.parametrize(
    "size, count, kind",
    [
        pytest.param(*row, kind, marks=[] if k == 0 or (k, n) in ((1, 1), (2, 2)) else pytest.mark.slow)
        for k, kind in enumerate(PACKED)
        for n, row in enumerate(GROWING)
    ],
)
def test_archives_that_grow_are_refused(size, count, kind):
    with pytest.raises(RuntimeError, match="grow from"):
        torch.load(_packed(size, count, kind))


def test_packed_archives_that_hold_what_they_say_are_read():
    stored = io.BytesIO()
    torch.save({"a": torch.arange(1000.0)}, stored)
    packed = io.BytesIO()
    with zipfile.ZipFile(stored) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target:
        for n in source.namelist():
            target.writestr(n, source.read(n))
    packed.seek(0)
    assert torch.load(packed)["a"][999] == 999


def _overlapping():
    """Two names for one place: a central directory that says so."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("a/data.pkl", b"\x80\x02N.")
        z.writestr("a/data/0", bytes(1000))
        again = zipfile.ZipInfo("a/data/1")
        first = z.getinfo("a/data/0")
        again.header_offset, again.CRC = first.header_offset, first.CRC
        again.file_size = again.compress_size = first.file_size
        z.filelist.append(again)
        z.NameToInfo["a/data/1"] = again
    file.seek(0)
    return file


def _long():
    """A record that ends beyond the file."""
    data = bytearray(_packed(1000, kind=zipfile.ZIP_STORED).getvalue())
    at = data.rindex(b"PK\x01\x02")
    data[at + 20 : at + 28] = struct.pack("<II", 1 << 30, 1 << 30)
    return io.BytesIO(bytes(data))


@pytest.mark.parametrize("make", [_overlapping, _long])
def test_records_have_places_of_their_own(make):
    with pytest.raises(RuntimeError, match="overlaps another or ends beyond"):
        torch.load(make())


def _stream(body, keys=(), storages=b""):
    parts = [pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True})]
    return io.BytesIO(b"".join(parts) + b"\x80\x02" + body + b"." + pickle.dumps(list(keys), 2) + storages)


OLD = b"(" + text("storage") + name("torch.FloatStorage") + text("0") + text("cpu") + b"%s" + b"NtQ"
STREAMS = {
    "larger than the file": _stream(OLD % b"\x8a\x05\x00\x00\x00\x00\x10", ["0"]),
    "many that are together": _stream(
        b"(" + b"".join(OLD.replace(text("0"), text(str(k))) % number(100) for k in range(10)) + b"t"
    ),
    "missing bytes": _stream(OLD % number(4), ["0"], struct.pack("<q", 4) + bytes(8)),
    "another count": _stream(OLD % number(4), ["0"], struct.pack("<q", 5) + bytes(20)),
    "unknown key": _stream(OLD % number(1), ["7"], struct.pack("<q", 1) + bytes(4)),
    "a view that leaves its storage": _stream(
        OLD.replace(b"NtQ", b"(" + text("v") + number(3) + number(5) + b"ttQ") % number(4)
    ),
    "a view by text": _stream(OLD.replace(b"NtQ", text("v") + b"tQ") % number(4)),
    "keys that are a number": _stream(OLD % number(1), []).getvalue()[:-2] + b"K\x01.",
    "a wrong protocol": io.BytesIO(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1000, 2)),
    "only the magic number": io.BytesIO(pickle.dumps(0x1950A86A20F9469CFC6C, 2)),
    "no magic number": io.BytesIO(pickle.dumps(5, 2)),
}


@pytest.mark.parametrize("row", STREAMS)
def test_streams_are_refused(row):
    file = STREAMS[row]
    file = io.BytesIO(file) if isinstance(file, bytes) else io.BytesIO(file.getvalue())
    with pytest.raises((pickle.UnpicklingError, RuntimeError, EOFError, TypeError)):
        torch.load(file)


def test_indices_of_old_sparse_files_are_checked_when_they_are_there():
    file = io.BytesIO()
    torch.save(torch.eye(3).to_sparse(), file, _use_new_zipfile_serialization=False)
    data = file.getvalue()
    assert torch.load(io.BytesIO(data)).to_dense().tolist() == torch.eye(3).tolist()
    at = data.index(struct.pack("<qq", 1, 2))
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(data[:at] + struct.pack("<qq", 1, 77) + data[at + 16 :]))


def test_checked_indices_have_no_other_name():
    """Writing to a tensor of a file doesn't change the indices of a sparse one."""
    indices = torch.tensor([[0, 1], [1, 0]])
    sparse = torch.sparse_coo_tensor(indices, torch.ones(2), (2, 2))
    file = io.BytesIO()
    torch.save([sparse, sparse._indices()], file)
    file.seek(0)
    loaded, other = torch.load(file)
    other.fill_(1000)
    assert loaded._indices().max() == 1


class Allowed:
    __slots__ = ("a", "__dict__")

    def __init__(self, a=0):
        self.a = a


class Kept(torch.Tensor):
    __slots__ = ("extra",)


def test_classes_that_are_allowed_get_attributes_and_slots_and_no_more():
    item = Allowed(3)
    item.b = 4
    file = io.BytesIO()
    torch.save(item, file)
    with torch.serialization.safe_globals([Allowed, Kept]):
        file.seek(0)
        again = torch.load(file)
        assert (again.a, again.b) == (3, 4)
        tensor = torch.ones(2).as_subclass(Kept)
        tensor.extra, tensor.note = 1, 2
        file = io.BytesIO()
        torch.save(tensor, file)
        file.seek(0)
        again = torch.load(file)
        assert (type(again), again.extra, again.note) == (Kept, 1, 2)


def test_containers_that_are_sound():
    kept = {(1, ("a", (2, 3))): 1, frozenset((1, 2)): {3, 4}, "c": collections.Counter("aab"), "d": bytearray(b"x")}
    file = io.BytesIO()
    torch.save(kept, file, pickle_protocol=4)
    file.seek(0)
    assert torch.load(file) == kept
