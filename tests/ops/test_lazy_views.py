"""conj() and the imaginary parts of it are views: what is written through them reaches the memory, what is read is right, compiled too."""

import copy
import io
import pickle

import pytest

import flambeau as torch


def numbers():
    return torch.tensor([[1 + 2j, 3 - 1j], [2j, -1 + 0.5j]])


def through_conj(x):
    y = x.conj()
    y.mul_(1j)
    return y, x * 1


def through_a_chain(x):
    x.mH[0].add_(2 - 1j)
    x.conj()[1] = 5 + 1j
    return x.conj().t().sum(0)


def through_imag(x):
    x.conj().imag.add_(1)
    return x.imag * 1


def through_real(x):
    x.real.mul_(2)
    torch.view_as_real(x)[..., 1].sub_(3)
    return x + 1


def resolved(x):
    y = x.conj().resolve_conj()
    y.mul_(2)
    return y, x * 1


def assigned(x):
    x.conj().copy_(x)
    return x * 1


def not_written(x):
    return x.conj() @ x, x.conj().abs(), x.conj().conj() + 1, torch.stack([x.conj(), x]), x.conj().imag - 1


def of_a_result(x):
    y = x * 2
    y.conj().mul_(1j)
    y.imag.copy_(y.real)
    return y


FUNCTIONS = [through_conj, through_a_chain, through_imag, through_real, resolved, assigned, not_written, of_a_result]


def plainly(f, x):
    """By computing the conjugates, and writing back what was written: NumPy."""
    a = x.numpy()
    if f is through_conj:
        a[:] = (a.conj() * 1j).conj()
        return a.conj(), a * 1
    if f is through_a_chain:
        a[:, 0] = (a[:, 0].conj() + (2 - 1j)).conj()
        a[1] = (5 + 1j).conjugate()
        return a.conj().T.sum(0)
    if f is through_imag:
        a.imag = -(-a.imag + 1)
        return a.imag * 1
    if f is through_real:
        a.real *= 2
        a.imag -= 3
        return a + 1
    if f is resolved:
        return a.conj() * 2, a * 1
    if f is assigned:
        a[:] = a.conj()
        return a * 1
    if f is not_written:
        return a.conj() @ a, abs(a.conj()), a + 1, [a.conj(), a], a.conj().imag - 1
    y = a * 2
    y = (y.conj() * 1j).conj()
    return y.real + 1j * y.real


def close(got, want):
    got, want = (x if isinstance(x, tuple) else (x,) for x in (got, want))
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g.resolve_conj().resolve_neg(), torch.tensor(w, dtype=g.dtype))


@pytest.mark.parametrize("f", FUNCTIONS)
@pytest.mark.parametrize("compiled", [False, True])
def test_writes_and_reads(f, compiled):
    x, a = numbers(), numbers()
    close((torch.compile(f) if compiled else f)(x), plainly(f, a))
    close(x, a.numpy())


@pytest.mark.parametrize("compiled", [False, True])
def test_a_conjugated_argument(compiled):
    f = torch.compile(not_written) if compiled else not_written
    f(numbers())  # a graph for plain memory must not be taken
    close(f(numbers().conj()), plainly(not_written, numbers().conj().resolve_conj()))


def test_flags():
    x = numbers()
    y = x.conj()
    assert y.is_conj() and not y.is_neg() and y._is_view() and y.data_ptr() == x.data_ptr()
    assert not y.conj().is_conj() and y.imag.is_neg() and not y.imag.is_conj()
    assert all(v.is_conj() for v in (y[0], y.t(), y.view(-1), y.detach(), y.contiguous(), *y.unbind(0), x.mH, x.H))
    assert not any(v.is_conj() for v in (y.clone(), y + 0, y.resolve_conj(), y.to(torch.complex128)))
    r = torch.tensor([1.0])
    assert r.conj() is r and r.resolve_conj() is r and r.resolve_neg() is r
    assert torch.compile(lambda x: x.conj().is_conj())(x)
    assert torch.compile(lambda x: x.conj())(x).is_conj()


def test_out_and_versions():
    x = torch.zeros(2, 2, dtype=torch.complex64)
    torch.add(numbers(), numbers(), out=x.conj())
    close(x, numbers().numpy().conj() * 2)
    before = x._version
    x.conj().mul_(2)
    assert x._version > before
    with pytest.raises(RuntimeError, match="can't be resized"):
        torch.add(numbers(), numbers(), out=torch.zeros(0, dtype=torch.complex64).conj())


def test_to_numpy_and_text():
    y = numbers().conj()
    with pytest.raises(RuntimeError, match=r"conjugate bit set. Use tensor.resolve_conj\(\)"):
        y.numpy()
    with pytest.raises(RuntimeError, match=r"negative bit set. Use tensor.resolve_neg\(\)"):
        y.imag.numpy()
    assert y.tolist() == y.numpy(force=True).tolist() == numbers().numpy().conj().tolist()
    assert y[0, 0].item() == 1 - 2j
    assert str(y) == str(y.resolve_conj())
    with pytest.raises(RuntimeError, match="unresolved conjugated tensors"):
        torch.view_as_real(y)
    with pytest.raises(RuntimeError, match="conjugate view tensors"):
        y.view(torch.float32)


def test_copies_of_the_object():
    y = numbers().conj()
    kept = pickle.loads(pickle.dumps(y))
    assert kept.is_conj() and torch.equal(kept, y)
    assert torch.equal(copy.deepcopy(y), y)
    file = io.BytesIO()
    torch.save({"y": y}, file)
    file.seek(0)
    assert torch.equal(torch.load(file)["y"], y)


def test_gradients():
    def f(x):
        v = x * 2
        v.imag.mul_(3)
        c = v.conj()
        c.mul_(1 + 1j)
        return torch.view_as_real(c.resolve_conj() * v).square().sum()

    x = numbers().to(torch.complex128).requires_grad_()
    assert torch.autograd.gradcheck(f, x)
    assert torch.autograd.gradcheck(lambda x: (x.conj() * x.mH, x.conj().imag), x)
    (want,) = torch.autograd.grad(f(x), x)
    (got,) = torch.autograd.grad(torch.compile(f)(x), x)
    torch.testing.assert_close(got, want)


def test_vmap():
    x = numbers()
    got = torch.func.vmap(lambda a: (a.conj(), a.conj().imag))(x)
    assert torch.equal(got[0], x.conj()) and torch.equal(got[1], -x.imag)


@pytest.mark.parametrize("compiled", [False, True])
def test_writes_through_other_dtypes(compiled):
    def f(x):
        torch.view_as_complex(x).mul_(1j)
        x.view(torch.int32).bitwise_xor_(-(2**31))  # changes the signs
        return x * 1

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    got = (torch.compile(f) if compiled else f)(x)
    assert got.tolist() == x.tolist() == [[2.0, -1.0], [4.0, -3.0]]


def test_neg_view_is_a_view():
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = x._neg_view()
    assert y.is_neg() and y._base is x and y.tolist() == [-1.0, 2.0]
    (y * 3).sum().backward()
    assert x.grad.tolist() == [-3.0, -3.0]
