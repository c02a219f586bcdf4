"""Draws on the device: Philox by seed, the same whatever the order of threads, with the distributions that they are named after."""

import pytest

import flambeau as torch
from flambeau.base import accelerator

N = 4000


DRAWS = {
    "rand": (lambda: torch.rand(N, device="cuda"), 0.5, 1 / 12),
    "rand of doubles": (lambda: torch.rand(N, device="cuda", dtype=torch.float64), 0.5, 1 / 12),
    "rand of halves": (lambda: torch.rand(N, device="cuda", dtype=torch.bfloat16).float(), 0.5, 1 / 12),
    "randn": (lambda: torch.randn(N, device="cuda"), 0, 1),
    "randn of doubles": (lambda: torch.randn(N, device="cuda", dtype=torch.float64), 0, 1),
    "normal_": (lambda: torch.empty(N, device="cuda").normal_(3, 2), 3, 4),
    "uniform_": (lambda: torch.empty(N, device="cuda").uniform_(-1, 3), 1, 16 / 12),
    "bernoulli": (lambda: torch.bernoulli(torch.full((N,), 0.25, device="cuda")), 0.25, 3 / 16),
    "exponential_": (lambda: torch.empty(N, device="cuda").exponential_(2), 0.5, 0.25),
    "randint": (lambda: torch.randint(-3, 5, (N,), device="cuda").float(), 0.5, 63 / 12),
    "randint far": (lambda: torch.randint(0, 1 << 40, (N,), device="cuda").double() / (1 << 40), 0.5, 1 / 12),
    "dropout": (lambda: torch.nn.functional.dropout(torch.ones(N, device="cuda"), 0.5), 1, 1),
    "multinomial": (
        lambda: torch.multinomial(torch.tensor([1.0, 0, 3], device="cuda"), N, replacement=True).float(),
        1.5,
        0.75,
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_distribution(name):
    draw, mean, variance = DRAWS[name]
    torch.manual_seed(5)
    a, b = draw(), draw()
    assert a.is_cuda and not torch.equal(a, b)
    assert abs(a.mean().item() - mean) < 5 * (variance / N) ** 0.5
    assert abs(a.var().item() - variance) < 0.15 * variance
    torch.manual_seed(5)
    try:
        accelerator.driver().order(3)
        assert torch.equal(draw(), a) and torch.equal(draw(), b)
    finally:
        accelerator.driver().order(0)


def test_a_permutation():
    found = torch.randperm(50, device="cuda")
    assert found.is_cuda and torch.equal(found.sort()[0].cpu(), torch.arange(50))
    assert not torch.equal(found, torch.randperm(50, device="cuda"))


def test_states_are_gone_back_to():
    state = torch.cuda.get_rng_state()
    a = torch.rand(4, device="cuda")
    host = torch.random.get_rng_state()
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(4, device="cuda"), a)
    assert torch.equal(torch.random.get_rng_state(), host)  # the CPU's own stream doesn't move


def test_what_is_no_probability():
    with pytest.raises(RuntimeError, match="invalid multinomial distribution"):
        torch.multinomial(torch.tensor([1.0, -1], device="cuda"), 3, replacement=True)
    with pytest.raises(RuntimeError, match="element < 0"):
        torch.multinomial(torch.tensor([1.0, -1], device="cuda"), 1)
