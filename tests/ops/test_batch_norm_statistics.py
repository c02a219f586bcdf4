"""The statistics among batch norm's results: float32 beside a 16-bit input where a parameter or a running statistic is, else of the input's dtype."""

import pytest

import flambeau as torch

aten = torch.ops.aten
CALLS = {
    "_native_batch_norm_legit": lambda x, w, b, m, v, t: aten._native_batch_norm_legit.default(
        x, w, b, m, v, t, 0.1, 1e-5
    ),
    "native_batch_norm": lambda x, w, b, m, v, t: aten.native_batch_norm.default(x, w, b, m, v, t, 0.1, 1e-5),
    "half of the running ones": lambda x, w, b, m, v, t: aten.native_batch_norm.default(
        x, w, b, m, None, True, 0.1, 1e-5
    ),
    "functional": lambda x, w, b, m, v, t: aten._native_batch_norm_legit_functional.default(
        x, w, b, m, v, t, 0.1, 1e-5
    )[:3],
    "no parameters": lambda x, w, b, m, v, t: aten.native_batch_norm.default(x, None, None, m, v, t, 0.1, 1e-5),
    "no training": lambda x, w, b, m, v, t: aten._native_batch_norm_legit_no_training.default(x, w, b, m, v, 0.1, 1e-5),
    "no running ones": lambda x, w, b, m, v, t: aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5),
    "update": lambda x, w, b, m, v, t: aten._batch_norm_with_update.default(x, w, b, m, v, 0.1, 1e-5)[:3],
    "no update": lambda x, w, b, m, v, t: aten._batch_norm_no_update.default(x, w, b, m, v, 0.1, 1e-5)[:3],
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    "kinds", [("bfloat16", "bfloat16"), ("bfloat16", "float32"), ("float16", "float32"), ("float64", "float64")]
)
def test_dtypes(kinds, name, training):
    dtype, beside = (getattr(torch, k) for k in kinds)
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4).to(dtype)
    one, zero = torch.ones(3, dtype=beside), torch.zeros(3, dtype=beside)
    made = CALLS[name](x, one, zero, zero.clone(), one.clone(), training)
    assert [t.dtype for t in made] == [dtype, beside, beside]
    compiled = torch.compile(CALLS[name], backend="aot_eager")(x, one, zero, zero.clone(), one.clone(), training)
    torch.testing.assert_close(compiled, made)


def test_gradients_dont_suffer_from_rounded_statistics():
    """In 16 bits the mean would be off by a quarter of a deviation."""
    torch.manual_seed(0)
    x = (torch.randn(64, 3) + 100.3).bfloat16()
    g = torch.randn(64, 3).bfloat16()

    def gradients(x, dtype):
        x = x.to(dtype).requires_grad_()
        w, b = torch.ones(3, dtype=dtype, requires_grad=True), torch.zeros(3, dtype=dtype, requires_grad=True)
        return torch.autograd.grad(
            aten.native_batch_norm.default(x, w, b, None, None, True, 0.1, 1e-5)[0], (x, w, b), g.to(dtype)
        )

    for narrow, wide in zip(gradients(x, torch.bfloat16), gradients(x, torch.float64)):
        torch.testing.assert_close(narrow.double(), wide, rtol=1e-2, atol=1e-2 * float(wide.abs().max()))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (1, 2, 1, 1)])
@pytest.mark.parametrize("backend", ["plain", "aot_eager", "inductor"])
def test_weights_of_any_shape(backend, shape, training):
    """One number a channel, in any shape; the running statistics have one dimension."""
    x = torch.arange(24.0).reshape(3, 2, 4).sin()

    def run(norm, w, b):
        w, b = w.requires_grad_(), b.requires_grad_()
        mean, var = torch.tensor([0.5, -0.5]), torch.tensor([2.0, 3.0])
        out = norm(x, mean, var, w, b, training)
        (out * x).sum().backward()
        return out, w.grad.reshape(-1), b.grad.reshape(-1), mean, var

    norm = torch.nn.functional.batch_norm
    compiled = norm if backend == "plain" else torch.compile(lambda *args: norm(*args), backend=backend)
    want = run(norm, torch.tensor([2.0, 3.0]), torch.tensor([4.0, 5.0]))
    got = run(compiled, torch.tensor([2.0, 3.0]).reshape(shape), torch.tensor([4.0, 5.0]).reshape(shape))
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b)
    for k, name in ((1, "running_mean"), (2, "running_var")):
        given = [x, torch.zeros(2), torch.ones(2)]
        given[k] = given[k].reshape(1, 2)
        with pytest.raises(RuntimeError, match=f"{name} should have one dimension, but has 2"):
            norm(*given, training=training)
