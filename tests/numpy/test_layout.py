"""Memory order, identity and refusals: what NumPy's results are beside their numbers. Found by test_signatures.py."""

import numpy as np
import pytest
from agree import difference

M = np.arange(9.0).reshape(3, 3)
X = np.arange(24.0).reshape(2, 3, 4)
T = X.transpose(2, 0, 1)
I = np.arange(-4, 5).reshape(3, 3)  # noqa: E741
Z = M * (1 + 2j)

PROGRAMS = {
    # the order of C wins where operands disagree
    "sum of transposed and not": (lambda a: a.T + a, M),
    "maximum of transposed and not": (lambda a: np.maximum(a.T, a), M),
    "where of transposed and not": (lambda a: np.where(a > 2, a.T, a), M),
    "clip by transposed": (lambda a: np.clip(a, a.T, 5.0), M),
    "broadcast operand of another order": (lambda a: a.T + a[0], M),
    "three axes": (lambda a: a.transpose(2, 0, 1) - a.transpose(2, 0, 1)[0], X),
    "copies nothing": (lambda a: (a.T + a).reshape(-1).base is None, M),
    "written through a copy": (lambda a: [y := a.T + a.T, y.reshape(-1).fill(1.0), y][2], M),
    # orders by name
    "order of a ufunc": (lambda a: (np.sin(a.T, order="C"), np.add(a, 1, order="F"), np.sqrt(a.T, order="A")), M),
    "zeros": (lambda a: (np.zeros((2, 3), order="F"), np.ones((2, 3, 4), np.int8, "F") + a[0, 0], np.full((2, 3), 1.5, order="F")), M),
    "like": (lambda a: (np.zeros_like(a.T), np.full_like(a.T, 2), np.ones_like(a.T, order="C"), np.empty_like(a, order="F") * 0), M),
    "like three axes": (lambda a: (np.zeros_like(a), np.zeros_like(a, shape=(2, 2, 2)), np.zeros_like(a, shape=(2, 2))), T),
    "eye": (lambda a: np.eye(3, 4, 1, order="F") + a[0, 0], M),
    "copy": (lambda a: (np.copy(a, "F"), a.T.copy(), a.T.copy("K"), a.copy("A"), np.array(a, order="F"), np.asarray(a, order="F")), M),
    "astype": (lambda a: (a.astype("f", order="F"), a.T.astype("f"), a.T.astype(float, order="C"), a.astype(float, "A", copy=False)), M),
    "ravel": (lambda a: tuple(b.ravel(o) for b in (a, a.T, a.transpose(1, 2, 0)) for o in "CFAK"), X),
    "flatten": (lambda a: tuple(b.flatten(o) for b in (a, a.T, a.transpose(1, 2, 0)) for o in "CFAK"), X),
    "reshape": (lambda a: (a.reshape(6, -1, order="F"), a.T.reshape((4, 6), order="A"), np.reshape(a, -1, "F")), X),
    "write into a reshaped view": (lambda a: a.reshape((4, 6), order="F").__setitem__(0, 7.0), np.asfortranarray(X)),
    "Fortran's": (lambda a: (np.asfortranarray(a), np.asfortranarray(a.T), np.asfortranarray(a[0, 0]), np.asfortranarray(a.T, "f")), M),
    # results of reductions and running sums go by the order of what is reduced
    "reductions": (lambda a: tuple(f(a, 1) for f in (np.sum, np.mean, np.max, np.min, np.prod, np.var, np.std, np.any, np.all, np.ptp)), T),
    "reductions that keep dimensions": (lambda a: tuple(f(a, axis=0, keepdims=True) for f in (np.sum, np.mean, np.max, np.var)), T),
    "running sums": (lambda a: (np.cumsum(a, 1), np.cumprod(a, 0), a.cumsum()), T),
    "joined": (lambda a: (np.stack([a.T, a.T]), np.concatenate([a.T, a.T], 1), np.hstack([a.T, a]), np.vstack([a.T, a.T])), M),
    "sorted and rolled": (lambda a: (np.sort(a.T, 0), np.sort(a.T), np.roll(a.T, 1, 0), np.tril(a.T), np.triu(a.T)), M),
    "every other element": (lambda a: (a[::2].ravel(), a[::2].ravel("K"), a.ravel("F"), a[::2].reshape(-1)), np.arange(10.0)),
    "written through ravel": (lambda a: a[:, ::2].ravel().fill(1.0), M),
    # the array itself
    "conjugate of real numbers": (lambda a: (a.conj(), a.conjugate(), np.conj(a)), M),
    "written into its conjugate": (lambda a: a.conj().fill(3.0), M),
    "conjugate of complex numbers": (lambda a: (a.conj(), np.conj(a)), Z),
    "conjugates without dimensions": (lambda a: (a[..., 0, 0].conj(), a.real[..., 0, 0].conj(), a[0, 0].conj()), Z),
    "nothing to squeeze": (lambda a: (a.squeeze(), np.squeeze(a)), M),
    "nothing to broadcast": (lambda a: np.broadcast_arrays(a, a[0])[0], M),
    "first power": (lambda a: np.linalg.matrix_power(a, 1), I),
    "no difference": (lambda a: np.diff(a, 0), M),
    # what is refused
    "correction for a method": (lambda a: a.std(0, correction=1), M),
    "two corrections": (lambda a: np.var(a, ddof=1, correction=1), M),
    "two kinds of sort": (lambda a: np.sort(a, kind="stable", stable=True), M),
    "two kinds of sort in place": (lambda a: a.sort(kind="stable", stable=True), M),
    "two axes of a running sum": (lambda a: a.cumsum((0, 1)), M),
    "negative repeats": (lambda a: a.repeat(-1), M),
    "no copy": (lambda a: np.array([a[0, 0]], copy=False), M),
    "no copy of an array": (lambda a: np.array(a, copy=False), M),
    "rolled axis of a list": (lambda a: np.rollaxis([4, 3], -1), M),
    "booleans without bounds": (lambda a: (a > 1).clip(), M),
    "number and exact casting": (lambda a: np.power(a, 2, casting="equiv"), Z),
    "no order": (lambda a: a.copy("Q"), M),
    # scalars
    "transform of a number": (lambda a: np.fft.fftn(12), M),
    "single precision of scalars": (lambda a: np.linspace(np.float32(0.5), np.int8(3), 4), M),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_numpy(name, backend):
    f, a = PROGRAMS[name]
    assert not difference(f, (a,), backend)


def test_derivative_through_an_order():
    import flambeau as torch

    got = torch.func.grad(lambda a: np.sum((a.T + a).ravel("F") * np.arange(9.0)))(M)
    weights = np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(got, weights + weights.T)
