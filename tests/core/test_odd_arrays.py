"""NumPy arrays that tensors can't be laid over as they are: fields of structures, foreign byte order, unaligned, read-only, self-overlapping, reversed,
of objects and of other types. Each way in refuses them or copies them; none misreads them."""

import gc
import operator

import numpy as np
import pytest
from flambeau.utils.dlpack import from_dlpack, to_dlpack

import flambeau as torch


class Doubled(np.ndarray):
    """Computes otherwise than its memory says."""

    def __array_finalize__(self, obj):
        pass

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [np.asarray(x) * 2 for x in inputs]
        kwargs.pop("out", None)
        return getattr(ufunc, method)(*plain, **kwargs)


def arrays() -> dict:
    record = np.zeros(6, [("a", "f4"), ("b", "i1"), ("c", "f8"), ("s", "i4", (2,))])
    record["a"], record["c"], record["s"] = np.arange(6), np.arange(6) * 2, np.arange(12).reshape(6, 2)
    aligned = np.zeros(6, np.dtype([("a", "f4"), ("c", "f8")], align=True))
    aligned["a"], aligned["c"] = np.arange(6), np.arange(6) * 2
    raw = np.zeros(65, np.uint8)
    unaligned = raw[1:33].view(np.float32)
    unaligned[:] = np.arange(8)
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    strided = np.lib.stride_tricks.as_strided
    return {
        "field": record["a"],
        "double field": record["c"],
        "array field": record["s"],
        "aligned field": aligned["a"],
        "aligned double field": aligned["c"],
        "part of complex": np.arange(6).astype(np.complex128).imag,
        "big-endian float": np.arange(6, dtype=">f4"),
        "big-endian int": np.arange(6, dtype=">i8"),
        "big-endian complex": np.arange(3, dtype=">c16"),
        "big-endian half": np.arange(3, dtype=">f2"),
        "big-endian without dimension": np.array(3.0, ">f8"),
        "unaligned": unaligned,
        "unaligned matrix": unaligned.reshape(2, 4),
        "unaligned, strided": unaligned[::2],
        "half strides": strided(np.arange(8, dtype=np.float32), (3,), (6,)),
        "read-only": frozen,
        "broadcast": np.broadcast_to(np.float32(3), (2, 3)),
        "repeated": strided(np.arange(3.0), (2, 3), (0, 8)),
        "windows": np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3),
        "reversed": np.arange(6.0)[::-1],
        "partly reversed": np.arange(6.0).reshape(2, 3)[:, ::-1],
        "empty reversed": np.arange(6.0)[::-1][:0],
        "empty field": record["a"][:0],
        "column-major": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "huge stride of one": strided(np.arange(3.0), (1, 3), (2**40, 8)),
        "objects": np.array([1, 2.5, None], object),
        "numbers as objects": np.array([1, 2], object),
        "strings": np.array(["a", "b"]),
        "structures": record,
        "dates": np.array(["2020"], "M8[D]"),
        "durations": np.array([1], "m8[s]"),
        "long double": np.arange(3, dtype=np.longdouble),
        "long complex": np.arange(3, dtype=np.clongdouble),
        "uint16": np.arange(3, dtype=np.uint16),
        "uint64": np.array([0, 2**63 + 5], np.uint64),
        "truth": np.array([True, False]),
        "masked": np.ma.array([1.0, 2, 3], mask=[0, 1, 0]),
        "subclass": np.arange(4.0).view(Doubled),
        "record array": np.rec.array([(1.0, 2.0)], dtype=[("a", "f8"), ("b", "f8")]).a,
    }


WAYS = {
    "from_numpy": torch.from_numpy,
    "as_tensor": torch.as_tensor,
    "asarray": torch.asarray,
    "tensor": torch.tensor,
    "Tensor": torch.Tensor,
    "from_dlpack": torch.from_dlpack,
    "list": lambda a: torch.tensor([a, a])[0],
    "to float64": lambda a: torch.as_tensor(a, dtype=torch.float64),
    "item assignment": lambda a: torch.zeros(a.shape, dtype=torch.float64).index_put_((), torch.as_tensor(a).double()),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", list(arrays()))
def test_refused_or_read_right(name, way):
    a = arrays()[name]
    try:
        t = WAYS[way](a)
    except (TypeError, ValueError, RuntimeError, BufferError):
        return
    assert tuple(t.shape) == a.shape
    want = np.asarray(a).astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    for _ in range(3):  # through a view, an operator, its later calls
        np.testing.assert_array_equal(np.array(t.tolist(), want.dtype).reshape(a.shape), want)
        np.testing.assert_array_equal(
            (t + 0).to(torch.complex128 if want.dtype.kind == "c" else torch.float64).numpy(), want
        )
        if t.ndim and t.shape[0] > 1:
            np.testing.assert_array_equal(np.array(t[1:].tolist()), want[1:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(arrays()))
def test_writes_reach_the_array_or_are_refused(name):
    a = arrays()[name]
    try:
        t = torch.from_numpy(a)
    except (TypeError, ValueError):
        return
    before = np.asarray(a).copy()
    if before.dtype.kind == "b":
        t = t.to(torch.float64)  # truth values have no product with 2
    for _ in range(3):
        try:
            t.mul_(2)
            before = before * 2
        except RuntimeError as e:
            assert "read-only" in str(e) or "single memory location" in str(e), e
    np.testing.assert_array_equal(np.asarray(a).copy() if a.dtype.kind != "b" else t.numpy(), before)


def test_foreign_byte_order_is_named():
    with pytest.raises(ValueError, match="byte order"):
        torch.from_numpy(np.arange(3, dtype=">f4"))
    with pytest.raises(ValueError, match="byte order"):
        torch.tensor(np.arange(3, dtype=">i8"))


ARITHMETIC = "add sub mul floordiv mod pow lshift rshift and_ or_ xor matmul"


@pytest.mark.parametrize("name", ARITHMETIC.split())
def test_arithmetic_with_an_array_is_numpys(name):
    """A tensor and an ndarray: NumPy's dtypes. The other order is a TypeError, for NumPy leaves it to the tensor."""
    op = getattr(operator, name)
    t, a = torch.tensor([1, 2], dtype=torch.int16), np.array([1, 2], np.int32)
    want = op(t.numpy(), a)
    got = op(t, a)
    assert (
        type(got) is torch.Tensor
        and got.dtype is torch.from_numpy(np.asarray(want)).dtype
        and got.tolist() == want.tolist()
    )
    with pytest.raises(TypeError):
        op(a, t)


def test_other_operators_with_an_array():
    t, a = torch.tensor([1.0, 2.0]), np.array([2.0, 2.0])
    assert (a / t).dtype is torch.float64 and (a / t).tolist() == [2.0, 1.0]
    assert (t == a).tolist() == [False, True] and (np.int64(2) ** t).tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        t.requires_grad_() + a


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.tensor(1e40),
        lambda: torch.tensor([1e40], dtype=torch.float16),
        lambda: torch.tensor([1e300]).bfloat16(),
        lambda: torch.as_tensor(1e40),
        lambda: torch.ones(1).new_tensor(1e40),
        lambda: torch.tensor(np.float64(1e40), dtype=torch.float32),
        lambda: torch.tensor(np.array([1e40]), dtype=torch.float32),
        lambda: torch.Tensor([1e40]),
        lambda: torch.arange(1e40, 3e40, 1e40)[:1],
        lambda: 1e40 ** torch.ones(1),
        lambda: torch.nan_to_num(torch.tensor([float("nan")]), nan=1e40),
    ],
)
def test_numbers_beyond_the_dtype_are_infinite_without_a_warning(make):
    for _ in range(3):
        assert torch.isinf(make()).all()


@pytest.mark.parametrize("value", [3, True, 2.5, np.float32(2), np.int64(4)])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
@pytest.mark.parametrize("backend", [None, "eager", "inductor"])
def test_a_number_is_copied_to_all_elements(shape, value, backend):
    def f(x):
        return x.copy_(value)

    fn = f if backend is None else torch.compile(f, backend=backend)
    x = torch.zeros(shape)
    assert fn(x) is x and torch.equal(x, torch.full(shape, float(value)))


@pytest.mark.parametrize(("kind", "dtype"), [(float, torch.float64), (complex, torch.complex128)])
def test_to_takes_pythons_types_by_keyword(kind, dtype):
    assert torch.ones(2).to(dtype=kind).dtype is dtype
    assert torch.compile(lambda x: x.to(dtype=kind), backend="eager")(torch.ones(2)).dtype is dtype
    assert torch.nn.Linear(2, 2).to(dtype=kind).weight.dtype is dtype


def test_capsules_are_written_to():
    """A capsule without a version can't say whether its memory is read-only; NumPy then takes it for that."""
    x = torch.arange(6.0).view(2, 3)
    y = from_dlpack(to_dlpack(x.t()))
    y.mul_(2)
    assert y.stride() == (1, 3) and x.tolist() == [[0, 2, 4], [6, 8, 10]]
    x.add_(1)
    del x
    gc.collect()
    assert y.tolist() == [[1, 7], [3, 9], [5, 11]] and from_dlpack(to_dlpack(torch.ones(0, 2))).shape == (0, 2)
