"""Layers, losses and initialisers. Expected numbers were computed with PyTorch 2.13 from the same seeds."""

import warnings

import numpy as np
import pytest

import flambeau as torch

nn, F = torch.nn, torch.nn.functional

LINEAR = [-0.00374341011, 0.268221796, -0.411522567, -0.367969513, -0.192577183, 0.134078681] + [
    -0.00990658998,
    0.396444738,
    -0.0443720222,
    0.132306278,
    -0.151106536,
    -0.0982826948,
]
INIT = {
    "xavier_uniform_": [-0.00693144882, 0.496650279, -0.761991739, -0.681347132, -0.356583655],
    "xavier_normal_": [0.82369709, -0.156844348, -1.16461194, 0.303839296, -0.579701602],
    "kaiming_uniform_": [-0.00916944537, 0.657006562, -1.0080204, -0.901337564, -0.471715838],
    "kaiming_normal_": [1.08964884, -0.207485572, -1.54063678, 0.401941597, -0.766873121],
    "trunc_normal_": [1.54099607, -0.293428898, -1.07118738, 0.568431258, -1.08452237],
}


def close(t, expected, rtol=1e-6, atol=1e-7):
    np.testing.assert_allclose(t.detach().numpy().ravel()[: len(expected)], expected, rtol=rtol, atol=atol)


def test_linear_draws_pytorch_weights():
    torch.manual_seed(0)
    m = nn.Linear(4, 3)
    close(m.weight, LINEAR)
    close(m.bias, [-0.477674246, -0.331141055, -0.20611155])


def test_a_negative_index_is_an_error():
    m, index = nn.Embedding(5, 4), torch.tensor([0, -1])
    for call in (m, torch.compile(m)):
        with pytest.raises(IndexError, match="index -1 is out of bounds for dimension with size 5"):
            call(index)
    with pytest.raises(IndexError, match="gather: index -2 is out of bounds"):
        torch.zeros(3).gather(0, torch.tensor([-2]))


@pytest.mark.parametrize("weight", [None, torch.ones(3)])
def test_a_label_out_of_range_is_named(weight):
    for label in (7, -7):
        with pytest.raises(IndexError, match=f"^Target {label} is out of bounds"):
            nn.CrossEntropyLoss(weight)(torch.zeros(2, 3), torch.tensor([0, label]))


@pytest.mark.parametrize("spatial", [(), (2,), (2, 2)], ids=str)
def test_a_label_out_of_range_is_an_error_where_only_the_gradient_is_asked_for(spatial):
    target = torch.zeros(2, *spatial, dtype=torch.int64)
    target.view(-1)[-1] = 3

    def gradient(x):
        return torch.autograd.grad(nn.functional.cross_entropy(x, target), x)

    for run in (gradient, torch.compile(gradient)):
        with pytest.raises(IndexError, match="out of bounds"):
            run(torch.zeros(2, 3, *spatial, requires_grad=True))


@pytest.mark.parametrize("shape, groups", [((1, 2, 1), 2), ((1, 4), 4)], ids=str)
def test_groups_of_one_value_are_refused(shape, groups):
    for call in (nn.functional.group_norm, torch.compile(nn.functional.group_norm)):
        with pytest.raises(ValueError, match="more than 1 value per channel"):
            call(torch.ones(shape), groups)
        assert call(torch.ones(2, *shape[1:]), groups).count_nonzero() == 0


def test_embedding_draws_pytorch_weights():
    torch.manual_seed(0)
    m = nn.Embedding(5, 4)
    close(
        m.weight,
        [-1.12583983, -1.1523602, -0.250578582, -0.433878809, 0.598839462, -1.55509508, -0.34136039, 1.85300612],
    )
    out = m(torch.tensor([[1, 1], [0, 4]]))
    assert out.shape == (2, 2, 4) and torch.equal(out[0, 0], m.weight[1])
    padded = nn.Embedding(5, 4, padding_idx=-1)
    padded(torch.tensor([4, 1])).sum().backward()
    assert float(padded.weight[4].abs().sum()) == 0 and float(padded.weight.grad[4].abs().sum()) == 0


@pytest.mark.parametrize("name", INIT)
def test_init(name):
    torch.manual_seed(0)
    close(getattr(nn.init, name)(torch.empty(3, 4)), INIT[name])


def test_init_constants_and_errors():
    assert nn.init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert nn.init.constant_(torch.empty(2), 3).tolist() == [3, 3]
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        nn.init.kaiming_uniform_(torch.empty(3))
    with pytest.raises(ValueError, match="Unsupported nonlinearity foo"):
        nn.init.calculate_gain("foo")


def test_layer_norm():
    m = nn.LayerNorm(4)
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    close(m(torch.from_numpy(x)), expected.ravel(), rtol=1e-4, atol=1e-5)


def test_dropout():
    torch.manual_seed(0)
    m = nn.Dropout(0.25)
    x = torch.ones(1000)
    y = m(x)
    assert (
        set(np.unique(y.numpy())) == {np.float32(0), np.float32(1) / np.float32(0.75)}
        and 650 < int((y != 0).sum()) < 850
    )
    assert torch.equal(m.eval()(x), x)


X = np.linspace(-3, 3, 13, dtype=np.float32)
ACTIVATIONS = [
    (nn.ReLU(), np.maximum(X, 0)),
    (nn.SiLU(), X / (1 + np.exp(-X))),
    (nn.Tanh(), np.tanh(X)),
    (nn.Sigmoid(), 1 / (1 + np.exp(-X))),
    (nn.LeakyReLU(0.1), np.where(X > 0, X, 0.1 * X)),
    (nn.Softplus(), np.log1p(np.exp(X))),
    (nn.GELU(approximate="tanh"), 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))),
    (nn.Softmax(dim=0), np.exp(X) / np.exp(X).sum()),
    (nn.LogSoftmax(dim=0), X - np.log(np.exp(X).sum())),
    (nn.ReLU6(), np.clip(X, 0, 6)),
]


@pytest.mark.parametrize("module, expected", ACTIVATIONS, ids=lambda v: type(v).__name__)
def test_activation(module, expected):
    close(module(torch.from_numpy(X)), expected, rtol=1e-5, atol=1e-6)


def test_inplace_activation():
    x = torch.tensor([-1.0, 2.0])
    assert F.relu(x, inplace=True) is x and x.tolist() == [0, 2]


def test_losses():
    logits = torch.tensor([[2.0, 0.5, -1.0], [0.0, 1.0, 0.0]], requires_grad=True)
    target = torch.tensor([0, 2])
    logp = logits.detach().numpy() - np.log(np.exp(logits.detach().numpy()).sum(-1, keepdims=True))
    expected = -(logp[0, 0] + logp[1, 2]) / 2
    loss = nn.CrossEntropyLoss()(logits, target)
    close(loss, [expected], rtol=1e-5)
    close(F.nll_loss(F.log_softmax(logits, -1), target), [expected], rtol=1e-5)
    close(F.cross_entropy(logits, target, reduction="none"), [-logp[0, 0], -logp[1, 2]], rtol=1e-5)
    close(F.cross_entropy(logits, torch.tensor([0, -100])), [-logp[0, 0]], rtol=1e-5)
    loss.backward()
    grad = np.exp(logp)
    grad[0, 0] -= 1
    grad[1, 2] -= 1
    close(logits.grad, (grad / 2).ravel(), rtol=1e-5)
    close(F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0])), [2.5])
    close(F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0]), reduction="sum"), [5.0])
    with pytest.raises(ValueError, match="foo is not a valid value for reduction"):
        F.mse_loss(torch.zeros(1), torch.zeros(1), reduction="foo")
    with pytest.warns(UserWarning, match="different to the input size"):
        F.mse_loss(torch.zeros(2, 1), torch.zeros(2))


def test_attention_is_causal():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 2, 4, 8) for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(out[:, :, 0], v[:, :, 0], atol=1e-6)
    scores = (q @ k.transpose(-2, -1)) / 8**0.5
    assert torch.allclose(out[:, :, -1:], torch.softmax(scores[:, :, -1:], -1) @ v, atol=1e-5)


def test_masked_attention_gradients():
    """Against differences: a mask is an argument of masked_fill like any other."""
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 1, 3, 2, dtype=torch.float64) for _ in range(3))
    q.requires_grad_()

    def loss():
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).square().sum()

    loss().backward()
    expected = np.zeros(6)
    with torch.no_grad():
        flat = q.view(-1)
        for i in range(6):
            for sign in (1, -1):
                flat[i] += sign * 1e-6
                expected[i] += sign * loss().item() / 2e-6
                flat[i] -= sign * 1e-6
    close(q.grad, expected, rtol=1e-5, atol=1e-7)


def test_functional_goes_through_function_modes():
    from flambeau.core.modes import TorchFunctionMode

    class Names(TorchFunctionMode):
        def __init__(self):
            super().__init__()
            self.seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Names() as mode:
        F.cross_entropy(F.relu(torch.zeros(2, 3)), torch.tensor([0, 1]))
    assert [n for n in mode.seen if n not in ("zeros", "tensor")] == ["relu", "cross_entropy"]


def test_training_follows_pytorch():
    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3))
    x, t = torch.linspace(-1, 1, 20).view(5, 4), torch.tensor([0, 1, 2, 1, 0])
    optimizer = torch.optim.AdamW(m.parameters(), lr=0.01)
    losses = []
    for _ in range(4):
        loss = F.cross_entropy(m(x), t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(
        losses, [1.3237969875335693, 1.2646244764328003, 1.2129608392715454, 1.1689058542251587], rtol=2e-6
    )


def test_clip_grad_norm():
    p = nn.Parameter(torch.tensor([3.0, 4.0]))
    p.grad = torch.tensor([3.0, 4.0])
    assert float(nn.utils.clip_grad_norm_([p], 1.0)) == pytest.approx(5.0)
    close(p.grad, [0.6, 0.8], rtol=1e-5)
    v = nn.utils.parameters_to_vector([p, p])
    assert v.tolist() == [3, 4, 3, 4]


def test_activations_may_write_over_their_input():
    import flambeau as torch

    for name in ("Hardsigmoid", "Hardswish", "Mish"):
        layer, plain = getattr(torch.nn, name)(inplace=True), getattr(torch.nn, name)()
        x = torch.linspace(-4, 4, 9).requires_grad_()
        y = x * 1
        out = layer(y)
        assert out is y and torch.equal(out, plain(x)) and "inplace=True" in repr(layer)
        (grad,) = torch.autograd.grad(out.sum(), x)
        assert torch.equal(grad, torch.autograd.grad(plain(x).sum(), x)[0])


def test_dropout_in_place():
    import flambeau as torch

    x = torch.ones(50, requires_grad=True)
    assert torch.nn.Dropout(0.5, inplace=True).eval()(x) is not None
    y = x * 1
    torch.manual_seed(0)
    out = torch.nn.Dropout(0.5, inplace=True)(y)
    assert out is y and set(out.tolist()) == {0.0, 2.0}
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


PADDED = {
    "right": [[False, True, True], [False, False, False], [True, True, True]],
    "between": [[False, True, False], [False, False, False], [False, False, True]],
}


@pytest.mark.parametrize("where", PADDED)
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_an_encoder_leaves_padding_out_where_pytorch_does(where, kind):
    """In eval mode without gradients, sequences are taken at their lengths when padding stands only behind them."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x, padding = torch.randn(3, 3, 8), torch.tensor(PADDED[where])
    mask = padding if kind == "bool" else torch.zeros(3, 3).masked_fill(padding, float("-inf"))
    with torch.no_grad():
        out = encoder(x, src_key_padding_mask=mask)
        compiled = torch.compile(encoder, fullgraph=True)(x, src_key_padding_mask=mask)
        kept = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()(x, src_key_padding_mask=mask)
    torch.testing.assert_close(out, compiled, equal_nan=True)
    assert bool((out[padding] == 0).all()) == (where == "right")
    assert not (kept[0] == 0).any(), "padding is computed where nobody asked to leave it out"
    traced = encoder(x, src_key_padding_mask=mask)
    assert not (traced[0] == 0).any(), "parameters want gradients: padding is computed"
    assert (
        encoder.use_nested_tensor and not nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2), 1).use_nested_tensor
    )


# Parameters, and PyTorch's first four draws behind seed 1: bounds far from the mean, or narrow for the spread.
TRUNCATED = [
    ((9.0, 1.0, -2.0, 2.0), torch.float32, [1.96244, 1.83781, 1.99333, 1.76345]),
    ((9.0, 1.0, -2.0, 2.0), torch.float64, [1.80573, 1.88409, 1.99899, 1.93679]),
    ((9.0, 1.0, -2.0, 2.0), torch.bfloat16, [1.96094, 1.83594, 1.99219, 1.76562]),
    ((-5.0, 1.0, -2.0, 2.0), torch.float32, [-1.64274, -1.82228, -1.90162, -1.95889]),
    ((1.0, 3.0, 0.0, 2.0), torch.float32, [1.51526, 0.55862, 0.80614, 1.46937]),
]


@pytest.mark.parametrize(("parameters", "dtype", "draws"), TRUNCATED)
def test_a_normal_cut_far_from_its_mean(parameters, dtype, draws):
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        close(nn.init.trunc_normal_(torch.empty(4, dtype=dtype), *parameters).double(), draws, 1e-5, 1e-5)
