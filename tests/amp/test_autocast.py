"""autocast: what is cast to what, natively and through Python, and what is left behind. The dtypes are PyTorch's on the CPU."""

import sys
from pathlib import Path

import pytest

import flambeau as torch
from flambeau import _C
from flambeau.overrides import TorchFunctionMode

F, bf16, f32, f64 = torch.nn.functional, torch.bfloat16, torch.float32, torch.float64
X, W, B = torch.arange(12.0).reshape(3, 4) / 7, torch.arange(20.0).reshape(5, 4) / 9, torch.ones(5)
LSTM, LINEAR = torch.nn.LSTM(4, 5), torch.nn.Linear(4, 5)
CASES = {
    "linear": (lambda: F.linear(X, W, B), bf16),
    "a module": (lambda: LINEAR(X), bf16),
    "by keyword": (lambda: F.linear(X, weight=W, bias=B), bf16),
    "@": (lambda: X @ W.t(), bf16),
    "mm": (lambda: torch.mm(X, W.t()), bf16),
    "method": (lambda: X.mm(W.t()), bf16),
    "add": (lambda: X + X, f32),
    "add of 16-bit": (lambda: X.bfloat16() + X, f32),
    "16-bit alone": (lambda: X.bfloat16().exp(), bf16),
    "einsum": (lambda: torch.einsum("ij,kj->ik", X, W), bf16),
    "a list": (lambda: torch.linalg.multi_dot([X, W.t(), W]), bf16),
    "attention": (lambda: F.scaled_dot_product_attention(X[None], X[None], X[None]), bf16),
    "softmax": (lambda: F.softmax(X.bfloat16(), -1), bf16),
    "mse_loss": (lambda: F.mse_loss(X.bfloat16(), X.bfloat16()), f32),
    "cross_entropy": (lambda: F.cross_entropy(X.bfloat16(), torch.tensor([0, 1, 2])), f32),
    "cat": (lambda: torch.cat([X, X.bfloat16()]), f32),
    "stack": (lambda: torch.stack([X.bfloat16(), X.bfloat16()]), bf16),
    "float64 stays": (lambda: torch.mm(X.double(), W.t().double()), f64),
    "integers stay": (
        lambda: torch.mm(torch.ones(2, 2, dtype=torch.int64), torch.ones(2, 2, dtype=torch.int64)),
        torch.int64,
    ),
    "lstm": (lambda: LSTM(X)[0], bf16),
}


@pytest.mark.parametrize("name", CASES)
def test_results_have_the_dtypes_of_the_lists(name):
    fn, dtype = CASES[name]
    plain = fn()
    for _ in range(3):
        with torch.autocast("cpu", dtype=bf16):
            got = fn()
            with torch.autocast("cpu", enabled=False):
                off = fn()
        assert got.dtype is dtype
        assert off.dtype is plain.dtype and torch.equal(off, plain)
        torch.testing.assert_close(got.to(plain.dtype), plain, rtol=0.02, atol=0.02)
    assert fn().dtype is plain.dtype


def test_operands_of_two_dtypes_meet():
    for _ in range(3):
        with torch.autocast("cpu"):
            assert torch.mm(X.bfloat16(), W.t()).dtype is torch.mm(X, W.t().half()).dtype is bf16


def test_gradients_come_in_the_dtype_of_the_parameters():
    for _ in range(3):
        w, b = W.clone().requires_grad_(), B.clone().requires_grad_()
        with torch.autocast("cpu"):
            y = F.linear(X, w, b)
            loss = F.mse_loss(y, torch.zeros(3, 5))
        assert y.dtype is bf16 and loss.dtype is f32
        loss.backward()
        assert w.grad.dtype is f32 and b.grad.dtype is f32 and w.grad.abs().sum() > 0


def test_the_innermost_block_counts():
    def seen():
        return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), torch.mm(X, W.t()).dtype

    plain = seen()
    for _ in range(3):
        with torch.autocast("cpu", dtype=bf16):
            with torch.autocast("cpu", dtype=torch.float16):
                assert seen() == (True, torch.float16, torch.float16)
                assert torch.linalg.multi_dot([X, W.t()]).dtype is torch.float16
                with Seen(), torch.autocast("cpu", dtype=bf16):
                    assert seen() == (True, bf16, bf16)
                with Seen() as mode, torch.autocast("cpu", enabled=False):
                    assert seen()[0::2] == (False, f32)
                assert ("mm", [f32, f32]) in mode.calls
            assert seen() == (True, bf16, bf16)
            again = torch.autocast("cpu", enabled=False)
            with again, again:
                assert seen()[0::2] == (False, f32)
        assert seen() == plain and plain[0::2] == (False, f32)


def test_an_error_restores_the_mode():
    for _ in range(3):
        with torch.autocast("cpu"):
            with pytest.raises(RuntimeError, match="mat1 and mat2 shapes"):
                torch.mm(X, W)
            with pytest.raises(TypeError):
                torch.mm(X)
            assert len(_C.stack("function_modes")) == 1 and torch.mm(X, W.t()).dtype is bf16
        assert not _C.stack("function_modes") and torch.mm(X, W.t()).dtype is f32


class Seen(TorchFunctionMode):
    def __init__(self):
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func.__name__, [a.dtype for a in args if isinstance(a, torch.Tensor)]))
        return func(*args, **(kwargs or {}))


def test_other_modes_and_classes_see_what_they_should():
    class Sub(torch.Tensor):
        pass

    with Seen() as outer, torch.autocast("cpu"):
        torch.mm(X, W.t())
        assert type(torch.mm(X.as_subclass(Sub), W.t())) is Sub
    assert ("mm", [bf16, bf16]) in outer.calls
    with torch.autocast("cpu"), Seen() as inner:
        assert torch.mm(X, W.t()).dtype is bf16
    assert ("mm", [f32, f32]) in inner.calls
    with torch.autocast("cpu"):
        meta = torch.empty(3, 4, device="meta")
        assert torch.mm(meta, meta.t()).dtype is bf16


def test_calls_of_plain_tensors_run_no_python():
    w = W.t()
    with torch.autocast("cpu"):
        for _ in range(3):
            torch.mm(X, w) + B
        runs = []
        for _ in range(3):
            seen = set()
            sys.setprofile(lambda frame, event, arg: seen.add(frame.f_code.co_filename))  # noqa: B023
            try:
                torch.mm(X, w) + B
            finally:
                sys.setprofile(None)
            runs.append(seen)
    package = str(Path(torch.__file__).parent)
    # One of them may be the call from which on this signature is compiled: tests before may have called it.
    assert any(not [name for name in seen if name.startswith(package)] for seen in runs)


@pytest.mark.parametrize("args", [(), (int,), (3, len), (TorchFunctionMode, 3)])
def test_what_native_code_is_given_is_checked(args):
    with pytest.raises(TypeError):
        _C.set_autocast(*args)


def test_packets_are_cast():
    """``torch.ops.aten.NAME`` by the lists of the public functions; an overload of it is called as it is (docs/reference/differences.md)."""
    aten = torch.ops.aten
    with torch.autocast("cpu"):
        assert aten.mm(X, W.t()).dtype is bf16 and aten.linear(X.bfloat16(), W).dtype is bf16
        assert aten.mse_loss(X.bfloat16(), X).dtype is f32 and aten.add(X, X).dtype is f32
        assert aten.mm.default(X, W.t()).dtype is f32
        with torch.autocast("cpu", enabled=False):
            assert aten.mm(X, W.t()).dtype is f32
    assert aten.mm(X, W.t()).dtype is f32
