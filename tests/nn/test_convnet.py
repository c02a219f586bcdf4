"""Convolution, batch normalisation, pooling and the losses beside cross-entropy. Numbers without a formula are PyTorch 2.13's."""

import numpy as np
import pytest

import flambeau as torch

nn, F = torch.nn, torch.nn.functional
X = np.random.default_rng(0).standard_normal((2, 6, 4)).astype(np.float32)
P, Q = 1 / (1 + np.exp(-X[0])), 1 / (1 + np.exp(-X[1]))
D = np.abs(X[0] - X[1])


def softplus(x):
    return np.log1p(np.exp(x))


CASES = {
    "elu": (lambda: F.elu(t(X), 0.5), np.where(X > 0, X, 0.5 * np.expm1(X))),
    "logsigmoid": (lambda: F.logsigmoid(t(X)), -softplus(-X)),
    "hardtanh": (lambda: F.hardtanh(t(X)), np.clip(X, -1, 1)),
    "hardswish": (lambda: F.hardswish(t(X)), X * np.clip(X + 3, 0, 6) / 6),
    "mish": (lambda: F.mish(t(X)), X * np.tanh(softplus(X))),
    "rms_norm": (lambda: F.rms_norm(t(X), (4,), eps=1e-6), X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-6)),
    "smooth_l1": (lambda: F.smooth_l1_loss(t(X[0]), t(X[1]), beta=0.5), np.where(D < 0.5, D**2, D - 0.25).mean()),
    "huber": (lambda: F.huber_loss(t(X[0]), t(X[1]), delta=0.7), np.where(D <= 0.7, D**2 / 2, 0.7 * (D - 0.35)).mean()),
    "bce": (lambda: F.binary_cross_entropy(t(P), t(Q)), -(Q * np.log(P) + (1 - Q) * np.log(1 - P)).mean()),
    "bce_logits": (
        lambda: F.binary_cross_entropy_with_logits(t(X[0]), t(Q), pos_weight=torch.tensor(2.0)),
        (2 * Q * softplus(-X[0]) + (1 - Q) * softplus(X[0])).mean(),
    ),
    "cosine_similarity": (
        lambda: F.cosine_similarity(t(X[0]), t(X[1])),
        (X[0] * X[1]).sum(1) / np.linalg.norm(X[0], axis=1) / np.linalg.norm(X[1], axis=1),
    ),
    "max_pool2d": (lambda: F.max_pool2d(t(X), 2), X.reshape(2, 3, 2, 2, 2).max((2, 4))),
    "avg_pool2d": (lambda: F.avg_pool2d(t(X), 2), X.reshape(2, 3, 2, 2, 2).mean((2, 4))),
}


def t(a):
    return torch.from_numpy(np.ascontiguousarray(a, dtype=np.float32))


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    call, expected = CASES[name]
    np.testing.assert_allclose(call().numpy(), expected, rtol=2e-5, atol=2e-6)


def test_batch_norm_keeps_running_statistics():
    m = nn.BatchNorm1d(6)
    y = m(t(X))
    np.testing.assert_allclose(y.detach().numpy().mean((0, 2)), np.zeros(6), atol=1e-6)
    np.testing.assert_allclose(m.running_mean.numpy(), 0.1 * X.mean((0, 2)), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(m.running_var.numpy(), 0.9 + 0.1 * X.var((0, 2), ddof=1), rtol=1e-5)
    assert int(m.num_batches_tracked) == 1
    m.eval()
    np.testing.assert_allclose(
        m(t(X)).detach().numpy(),
        (X - m.running_mean.numpy()[:, None]) / np.sqrt(m.running_var.numpy()[:, None] + 1e-5),
        rtol=1e-4,
        atol=1e-6,
    )
    with pytest.raises(ValueError, match="expected 2D or 3D input \\(got 1D input\\)"):
        m(torch.zeros(3))


@pytest.mark.parametrize("compiled", [False, True])
def test_convnet_trains_as_in_pytorch(compiled):
    torch.manual_seed(0)
    m = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3))
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1)
    x = torch.linspace(-1, 1, 320).view(5, 1, 8, 8).sin() * torch.arange(320).view(5, 1, 8, 8).float().cos()
    step, losses = torch.compile(m) if compiled else m, []
    for _ in range(4):
        loss = F.cross_entropy(step(x), torch.tensor([0, 1, 2, 1, 0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    np.testing.assert_allclose(losses, LOSSES, rtol=1e-5)


LOSSES = [1.0528802871704102, 0.8348017930984497, 0.7948409914970398, 0.7680947184562683]
