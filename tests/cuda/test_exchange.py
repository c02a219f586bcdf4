"""Device tensors handed to other libraries and taken from them: DLPack, __cuda_array_interface__."""

import gc

import numpy as np
import pytest

import flambeau as torch

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int64,
    torch.bool,
    torch.complex64,
]


def numbers(dtype=torch.float32):
    return torch.arange(6).reshape(2, 3).to(dtype).cuda()


class Foreign:
    """Another library's array, over a tensor's memory."""

    def __init__(self, t):
        self.t, self.__cuda_array_interface__ = t, t.__cuda_array_interface__


class Exporter:
    """Another library's array that knows DLPack, and what it was asked for."""

    def __init__(self, t):
        self.t, self.asked = t, []

    def __dlpack__(self, **given):
        self.asked.append(given)
        return self.t.__dlpack__(**given)

    def __dlpack_device__(self):
        return self.t.__dlpack_device__()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x.t(), lambda x: x[1:, ::2], lambda x: x[1, 1], lambda x: x[:0]]
)
def test_there_and_back_shares_memory(dtype, view):
    x = view(numbers(dtype))
    y = torch.from_dlpack(x)
    assert y.is_cuda and y.dtype is dtype and y.shape == x.shape and y.stride() == x.stride()
    assert torch.equal(x, y) and (not x.numel() or y.data_ptr() == x.data_ptr())
    if x.numel():
        y.zero_()
        assert not x.any().item()


def test_capsules():
    x = numbers()
    capsule = torch.utils.dlpack.to_dlpack(x)
    y = torch.utils.dlpack.from_dlpack(capsule)
    assert y.data_ptr() == x.data_ptr() and "used_dltensor" in repr(capsule)
    with pytest.raises(ValueError, match="dltensor"):
        torch.utils.dlpack.from_dlpack(capsule)


def test_memory_lasts_as_long_as_it_is_used():
    gc.collect()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    x = numbers()
    y = torch.from_dlpack(x)
    unused = x.__dlpack__()
    del x
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]] and torch.cuda.memory_allocated() > before
    del y, unused
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() == before


def test_another_librarys_array():
    given = Exporter(numbers())
    y = torch.from_dlpack(given)
    assert given.asked == [{"stream": 1}] and y.sum().item() == 15
    z = torch.from_dlpack(given, device="cpu")
    assert z.device.type == "cpu" and z.sum().item() == 15
    own = torch.from_dlpack(given, copy=True)
    own.zero_()
    assert given.t.sum().item() == 15
    with pytest.raises(BufferError, match="can't be shared"):
        torch.from_dlpack(given, device="cpu", copy=False)
    assert torch.from_dlpack(np.arange(3.0)).device.type == "cpu"  # beside the device
    np.testing.assert_array_equal(np.from_dlpack(numbers().cpu()), [[0, 1, 2], [3, 4, 5]])


def test_on_the_second_device():
    x = torch.ones(3, device="cuda:1")
    assert x.__dlpack_device__() == (2, 1) and str(torch.from_dlpack(x).device) == "cuda:1"


def test_to_the_host():
    x = numbers()
    host = torch.from_dlpack(x.__dlpack__(dl_device=(1, 0)))
    assert host.device.type == "cpu" and host.tolist() == x.tolist()


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x.t(), lambda x: x[1:, ::2], lambda x: x[:0]])
def test_array_interface(view):
    x = view(numbers(torch.int32))
    y = torch.as_tensor(Foreign(x))
    assert y.is_cuda and y.shape == x.shape and torch.equal(x, y)
    assert not x.numel() or y.data_ptr() == x.data_ptr()
    assert torch.as_tensor(Foreign(x), device="cpu").tolist() == x.tolist()
    assert torch.asarray(Foreign(x)).data_ptr() == y.data_ptr()


REFUSED = [
    (lambda: numbers().requires_grad_().__dlpack__(), BufferError, "require gradient"),
    (lambda: numbers(torch.complex64).conj().__dlpack__(), BufferError, "conjugate bit"),
    (lambda: torch.ones(2, device="meta").__dlpack__(), BufferError, "Cannot pack tensors on meta"),
    (lambda: torch.ones(2).to_sparse().__dlpack__(), BufferError, "torch.strided"),
    (lambda: numbers().requires_grad_().__cuda_array_interface__, RuntimeError, "requires grad"),
    (lambda: np.from_dlpack(numbers()), (BufferError, RuntimeError), "device"),
]


@pytest.mark.parametrize("run, error, words", REFUSED)
def test_errors(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_pinned_memory():
    host = torch.arange(3.0).pin_memory()
    assert host.is_pinned() and not torch.arange(3.0).is_pinned()
    x = host.to("cuda", non_blocking=True)
    host.zero_()  # the device's copy was made when the call returned, as from pageable memory
    assert x.tolist() == [0, 1, 2] and not x.is_pinned()
    back = torch.empty(3).pin_memory()
    back.copy_(x, non_blocking=True)
    torch.cuda.synchronize()
    assert back.tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        x.pin_memory()
