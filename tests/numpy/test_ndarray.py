"""``import flambeau._numpy as np``: NumPy code run eagerly on tensors."""

import flambeau._numpy as np
import numpy
import pytest

import flambeau as torch


def test_arrays_hold_tensors():
    a = np.arange(6).reshape(2, 3)
    assert type(a).__name__ == "ndarray" and isinstance(a, np.ndarray) and isinstance(a.tensor, torch.Tensor)
    assert (
        a.dtype == np.int64
        and a.shape == (2, 3)
        and a.ndim == 2
        and a.size == 6
        and a.nbytes == 48
        and a.strides == (24, 8)
    )
    assert (
        np.ones(2).dtype == np.float64
        and np.mean(a).dtype == np.float64
        and np.float32 is numpy.float32
        and np.pi == numpy.pi
    )
    assert np.array([1, 2.5]).tolist() == [1.0, 2.5] and len(a) == 2 and [int(r.sum()) for r in a] == [3, 12]
    t = torch.randn(3)
    assert np.asarray(t).tensor is t and numpy.array_equal(numpy.asarray(np.asarray(t)), t.numpy())
    assert float(np.where(a > 2, a, 0).sum()) == 12 and int(np.argmax(a)) == 5 and bool((a == a).all())
    assert repr(np.ones(2)) == "array_w([1., 1.])" and [10, 20][np.array(1)] == 20


def test_operators_and_writes():
    a = np.arange(4.0)
    assert (2**a).tolist() == [1, 2, 4, 8] and (1 - a).tolist() == [1, 0, -1, -2] and (-a).tolist() == [0, -1, -2, -3]
    assert (
        (a @ a).item() == 14
        and (a[1:] / 2).dtype == np.float64
        and (a // 2).tolist() == [0, 0, 1, 1]
        and (a.T * a).shape == (4,)
    )
    b = a
    b += 1
    b[0] = 9
    b[2:] = np.array([5, 6])
    assert a.tolist() == [9, 2, 5, 6] and a.tensor is b.tensor
    with pytest.raises(TypeError, match="Cannot cast ufunc output"):
        c = np.arange(3)
        c += 0.5
    assert a[::-1].tolist() == [6, 5, 2, 9] and a[a > 5].tolist() == [9, 6] and a[None, ..., 1].tolist() == [2]
    assert (numpy.ones(4) + a).tolist() == [10, 3, 6, 7] and isinstance(numpy.ones(4) + a, np.ndarray)


def test_what_has_no_tensor_function_is_numpys():
    a = np.eye(3) * 2
    assert np.linalg.inv(a).tolist() == (numpy.eye(3) / 2).tolist() and np.fft.fft(a).dtype == np.complex128
    np.random.seed(0)
    numpy.random.seed(0)
    got = np.random.rand(2)
    numpy.random.seed(0)
    assert got.tolist() == numpy.random.rand(2).tolist()
    assert np.unique(np.array([3, 1, 3])).tolist() == [1, 3] and np.argsort(np.array([3, 1, 2])).tolist() == [1, 2, 0]
    assert np.flip(np.arange(3)).tolist() == [2, 1, 0] and np.floor_divide(
        np.arange(4), np.array([1, 2, 2, 3])
    ).tolist() == [0, 0, 1, 1]
    assert np.arange(3).nonzero()[0].tolist() == [1, 2]
    with pytest.raises(AttributeError):
        np.no_such_function  # noqa: B018


def test_gradients_pass_or_are_refused():
    t = torch.randn(3, requires_grad=True)
    x = np.asarray(t)
    y = np.sum(np.sin(x) * x[None] + x.mean())
    (g,) = torch.autograd.grad(y.tensor, t)
    assert torch.allclose(g, (t.cos() * t + t.sin() + 1).detach())
    with pytest.raises(RuntimeError, match="has no derivative"):
        np.interp(x, x, x)


def _outs():
    return np.array([1.0, -2.0]), np.empty(2), np.empty(2)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, o, _: np.add(a, a, out=o),
        lambda a, o, _: np.add(a, a, o),
        lambda a, o, _: np.add(a, a, out=(o,)),
        lambda a, o, _: np.concatenate((a[:1], a[1:]), out=o),
        lambda a, o, _: np.cumsum(a, out=o),
        lambda a, o, _: a.clip(0, 1, out=o),
        lambda a, o, _: np.fabs(a, out=o),  # NumPy's own, on the memory
    ],
)
def test_an_array_given_as_out_is_the_result(call):
    a, o, _ = _outs()
    assert call(a, o, _) is o
    plain = call(*(numpy.asarray(x.tensor) for x in (a, np.empty(2), _)))
    assert numpy.array_equal(numpy.asarray(o), plain)


def test_several_outs_are_the_results():
    a, q, r = _outs()
    found = np.divmod(a, np.array([2.0, 3.0]), out=(q, r))
    assert found[0] is q and found[1] is r
    one = np.modf(a, out=(None, r))
    assert one[1] is r and one[0] is not q


def test_concatenate_takes_out_or_dtype():
    a, o, _ = _outs()
    with pytest.raises(TypeError, match="only takes `out` or `dtype`"):
        np.concatenate((a, a), out=o, dtype="f4")
    with pytest.raises(ValueError, match="need at least one array"):
        np.stack([])


def test_modules_below_an_alias_are_loaded_once():
    import flambeau._numpy._ufuncs as a

    import flambeau.numpy._ufuncs as b

    assert a is b and "sin" in a._unary and "add" in a._binary and "modf" not in a._unary
    assert np.sometrue is not None and np.float_ is numpy.float64


def test_real_and_imag_are_written():
    a = np.array([1 + 1j, 2.0])
    a.real = 5
    a.imag = [7, 8]
    assert a.tolist() == [5 + 7j, 5 + 8j]
    b = np.arange(2)
    b.real = 3
    assert b.tolist() == [3, 3]
    with pytest.raises(TypeError, match="imaginary part"):
        b.imag = 1


CALLS = [
    (lambda: 2 in np.arange(3), True),
    (lambda: 7 in np.arange(4).reshape(2, 2), False),
    (lambda: np.isscalar(np.isclose(1, 1)), True),
    (lambda: np.isscalar(np.arange(2)), False),
    (lambda: np.abs(np.array([True, False])).tolist(), [True, False]),
    (
        lambda: np.nan_to_num(np.array([numpy.nan, numpy.inf, -numpy.inf]), nan=numpy.inf, posinf=9, neginf=1).tolist(),
        [numpy.inf, 9, 1],
    ),
    (lambda: np.arange(3).__dlpack_device__(), (1, 0)),
    (lambda: torch.from_dlpack(np.arange(3)).tolist(), [0, 1, 2]),
    (lambda: np.array(4)[numpy.bool_(True)].tolist(), [4]),
]


@pytest.mark.parametrize("k", range(len(CALLS)))
def test_calls(k):
    call, want = CALLS[k]
    assert call() == want


REFUSED = [
    (lambda: np.expand_dims(np.zeros(3), (1, 1)), ValueError, "repeated axis"),
    (lambda: np.rollaxis(np.zeros((1, 2)), 0, -5), numpy.exceptions.AxisError, "out of bounds"),
    (lambda: np.divmod(1, 2, np.zeros(1), np.zeros(1), out=(np.zeros(1), np.zeros(1))), TypeError, "'out' as both"),
    (lambda: np.empty(3, like="x"), NotImplementedError, "like="),
]


@pytest.mark.parametrize("k", range(len(REFUSED)))
def test_what_is_refused(k):
    call, error, message = REFUSED[k]
    with pytest.raises(error, match=message):
        call()
