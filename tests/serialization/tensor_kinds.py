"""Tensors of every kind, by name, made by flambeau or by PyTorch (the module is the argument): what pickles, copies and files must keep.

``KINDS[name](torch)`` gives one object; ``facts(x)`` says all that has to be equal of it afterwards, in plain Python values.
"""

import collections
import itertools
import math

DTYPES = (
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 "
    "float8_e4m3fn float8_e5m2"
).split()

LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.transpose(0, 1),
    "row": lambda t: t[1],
    "part": lambda t: t[1:, 1:3],
    "every second": lambda t: t[:, ::2],
    "expanded": lambda t: t[:1].expand(4, 4),
    "no dimensions": lambda t: t[1, 2],
    "empty": lambda t: t[:0],
    "empty inside": lambda t: t[1:1, 2:],
    "one column": lambda t: t[:, 3:4],
    "unsqueezed": lambda t: t.unsqueeze(0),
    "diagonal": lambda t: t.diagonal(),
}


def _base(torch, dtype):
    values = torch.arange(12)
    return (values % 2 if dtype == "bool" else values).to(getattr(torch, dtype)).reshape(3, 4)


def _strided(layout, dtype):
    return lambda torch: LAYOUTS[layout](_base(torch, dtype))


KINDS = {f"{layout}, {dtype}": _strided(layout, dtype) for layout, dtype in itertools.product(LAYOUTS, DTYPES)}


def _leaf(t, **attributes):
    t = t.detach().requires_grad_(True)
    for name, value in attributes.items():
        setattr(t, name, value)
    return t


def _with_gradient(torch):
    t = torch.ones(3, requires_grad=True)
    (t * 2).sum().backward()
    return t


def _shared(torch):
    base = torch.arange(24.0)
    return [base, base.view(4, 6), base.view(4, 6).t(), base[3:9], base.as_strided((2, 2), (5, 3), 1)]


def _tied(torch):
    weight = torch.nn.Parameter(torch.ones(2, 3))
    return collections.OrderedDict(a=weight, b=weight, view=weight.detach()[1:])


def _channels_last(torch):
    return torch.arange(120.0).reshape(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)


KINDS |= {
    "gradient asked for": lambda torch: _leaf(torch.ones(2, 3)),
    "gradient asked for, strided": lambda torch: _leaf(torch.ones(2, 3).t()),
    "gradient there": _with_gradient,
    "history": lambda torch: torch.ones(3, requires_grad=True) * 2,
    "attribute": lambda torch: _leaf(torch.ones(2), note="kept"),
    "parameter": lambda torch: torch.nn.Parameter(torch.ones(2, 3)),
    "parameter without gradient": lambda torch: torch.nn.Parameter(torch.ones(2, 3), False),
    "parameter, strided": lambda torch: torch.nn.Parameter(torch.arange(6.0).reshape(2, 3).t()),
    "parameter, no dimensions": lambda torch: torch.nn.Parameter(torch.tensor(2.0)),
    "parameter of a part": lambda torch: torch.nn.Parameter(torch.arange(6.0)[2:4]),
    "parameter with attribute": lambda torch: _noted(torch.nn.Parameter(torch.ones(2))),
    "parameter, integer": lambda torch: torch.nn.Parameter(torch.arange(3), False),
    "buffer": lambda torch: torch.nn.Buffer(torch.ones(3)),
    "shared storage": _shared,
    "tied": _tied,
    "channels last": _channels_last,
    "channels last 3d": lambda torch: torch.ones(2, 3, 4, 5, 6).contiguous(memory_format=torch.channels_last_3d),
    "conj": lambda torch: torch.tensor([1 + 2j, 3 - 4j]).conj(),
    "conj, double": lambda torch: torch.tensor([1 + 2j, 3 - 4j], dtype=torch.complex128).conj(),
    "conj, transposed": lambda torch: torch.tensor([[1 + 2j, 3 - 4j], [5j, 6]]).mH,
    "conj, gradient asked for": lambda torch: torch.tensor([1 + 2j]).conj().requires_grad_(True),
    "conj and its base": lambda torch: [z := torch.tensor([1 + 2j, 3j]), z.conj(), z.conj()[1:]],
    "negative": lambda torch: torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    "parameter, complex": lambda torch: torch.nn.Parameter(torch.tensor([1j, 2])),
    "meta": lambda torch: torch.ones(2, 3, device="meta"),
    "meta, strided": lambda torch: torch.empty(2, 3, device="meta").t(),
    "sparse coo": lambda torch: torch.tensor([[0.0, 2], [3, 0]]).to_sparse(),
    "sparse coo, uncoalesced": lambda torch: torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2)),
    "sparse coo, hybrid": lambda torch: torch.sparse_coo_tensor([[0, 2]], [[1.0, 2], [3, 4]], (3, 2)).coalesce(),
    "sparse coo, empty": lambda torch: torch.sparse_coo_tensor((2, 3)),
    "sparse csr": lambda torch: torch.tensor([[0.0, 2], [3, 0]]).to_sparse_csr(),
    "sparse csc": lambda torch: torch.tensor([[0.0, 2], [3, 0]]).to_sparse_csc(),
    "sparse bsr": lambda torch: torch.eye(4).to_sparse_bsr((2, 2)),
    "sparse bsc": lambda torch: torch.eye(4).to_sparse_bsc((2, 2)),
    "sparse, integers": lambda torch: torch.tensor([[0, 2], [3, 0]]).to_sparse(),
    "nan and infinities": lambda torch: torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0]),
    "many dimensions": lambda torch: torch.arange(64.0).reshape([2] * 6).permute(5, 3, 1, 0, 2, 4),
    "containers": lambda torch: {
        "a": [torch.ones(1), (torch.zeros(2), None)],
        3: {"b": torch.tensor(True)},
        (1, "x"): 2.5,
    },
    "values": lambda torch: [
        torch.float16,
        torch.Size([1, 2]),
        torch.device("cpu"),
        torch.sparse_coo,
        1 << 80,
        b"b",
        "ä",
        2j,
        -1.5,
    ],
    "sets": lambda torch: [{1, 2}, bytearray(b"xy"), collections.Counter("aab"), collections.OrderedDict(b=1, a=2)],
}


def _noted(t):
    t.note = {"rank": 3}
    return t


def _elements(x):
    """Values of a tensor as text that tells nan and the sign of zero."""
    if str(x.device) == "meta":
        return None
    if not str(x.layout).endswith("strided"):
        x = x.to_dense()
    dtype = str(x.dtype).removeprefix("torch.")
    if dtype.startswith(("float8", "bfloat16", "float16")):
        x = x.float()
    values = x.detach().resolve_conj().resolve_neg().reshape(-1).tolist()
    return [repr(v if not isinstance(v, float) or not math.isnan(v) else math.nan) for v in values]


def facts(x, torch, seen=None):
    """All that must be kept of ``x``, as plain values; storages are numbered in the order in which they are met."""
    seen = {} if seen is None else seen
    if isinstance(x, torch.Tensor):
        strided = str(x.layout).endswith("strided")
        return {
            "class": type(x).__name__,
            "parameter": isinstance(x, torch.nn.Parameter),
            "dtype": str(x.dtype),
            "shape": tuple(x.shape),
            "layout": str(x.layout),
            "device": str(x.device),
            "stride": tuple(x.stride()) if strided else None,
            "offset": x.storage_offset() if strided and x.numel() else 0,
            "storage": seen.setdefault(x.untyped_storage().data_ptr(), len(seen)) if strided and x.numel() else None,
            "bytes": x.untyped_storage().nbytes() if strided and x.numel() else 0,
            "requires_grad": x.requires_grad,
            "leaf": x.is_leaf,
            "conj": x.is_conj(),
            "neg": x.is_neg(),
            "coalesced": x.is_coalesced() if str(x.layout).endswith("coo") else None,
            "attributes": {k: v for k, v in x.__dict__.items() if k == "note"},
            "values": _elements(x),
        }
    if isinstance(x, dict):
        return type(x).__name__, [(facts(k, torch, seen), facts(v, torch, seen)) for k, v in x.items()]
    if isinstance(x, (list, tuple)) and type(x).__name__ != "Size":
        return type(x).__name__, [facts(v, torch, seen) for v in x]
    return str(x) if type(x).__module__.split(".")[0] in ("torch", "flambeau") else x


def leaf_facts(found):
    """What a pickle gives: everything is a leaf."""
    return {**found, "leaf": True} if isinstance(found, dict) and "leaf" in found else found
