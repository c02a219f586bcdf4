"""What training programs use on the simulated device: autocast, scaled gradients, checks of values, gradcheck, pinned memory."""

import numpy as np
import pytest

import flambeau as torch
from flambeau.examples.gpt import GPT, GPTConfig


def test_autocast_casts_tensors_of_its_device():
    x, host = torch.randn(2, 4, device="cuda"), torch.randn(2, 2)
    layer = torch.nn.Linear(4, 4).cuda()
    with torch.autocast("cuda"):
        assert torch.is_autocast_enabled("cuda") and not torch.is_autocast_enabled("cpu")
        y = layer(x)
        assert y.dtype is torch.float16 and (host @ host).dtype is torch.float32
        assert (
            y.softmax(-1).dtype is torch.float32 and y.sum().dtype is torch.float32 and y.relu().dtype is torch.float16
        )
        assert torch.cat([y, x]).dtype is torch.float32
        with torch.autocast("cuda", enabled=False):
            assert (x @ x.t()).dtype is torch.float32
    with torch.autocast("cpu"), torch.autocast("cuda"):
        assert (host @ host).dtype is torch.bfloat16 and (x @ x.t()).dtype is torch.float16

    @torch.compile
    def compiled(a):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return a @ a.t()

    assert compiled(x).dtype is torch.bfloat16


def test_scaled_steps():
    model = torch.nn.Linear(4, 1).cuda()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cuda", init_scale=4.0)
    assert scaler.is_enabled()
    before = model.weight.detach().clone()
    with torch.autocast("cuda"):
        loss = model(torch.ones(2, 4, device="cuda")).sum()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert torch.allclose(model.weight, before - 0.1 * 2) and scaler.get_scale() == 4
    model.weight.grad.fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2


REFUSED = [
    (lambda: torch.nn.functional.one_hot(torch.tensor([1, -1], device="cuda")), "non-negative"),
    (lambda: torch.nn.functional.one_hot(torch.tensor([3], device="cuda"), 2), "smaller than num_classes"),
    (lambda: torch.quantile(torch.ones(3, device="cuda"), torch.tensor([2.0], device="cuda")), "range"),
    (
        lambda: torch.nn.functional.binary_cross_entropy(
            torch.full((1,), 2.0, device="cuda"), torch.ones(1, device="cuda")
        ),
        "between 0 and 1",
    ),
    (lambda: torch.cov(torch.ones(2, device="cuda"), aweights=torch.tensor([-1.0, 1.0], device="cuda")), "negative"),
]


@pytest.mark.parametrize("run, words", REFUSED)
def test_values_are_looked_at(run, words):
    with pytest.raises(RuntimeError, match=words):
        run()


def test_values_that_a_derivative_looks_at():
    def second(device):
        z = torch.tensor([2.0, 0.0, 3.0], device=device, requires_grad=True)
        (g,) = torch.autograd.grad(z.cumprod(0).sum(), z, create_graph=True)
        return torch.autograd.grad(g.sum(), z)[0].cpu()

    assert torch.equal(second("cuda"), second("cpu"))
    x = torch.ones(3, device="cuda")
    assert x[torch.tensor(True, device="cuda")].shape == (1, 3) and x[torch.tensor(1, device="cuda")].shape == ()


def test_gradcheck():
    x = torch.randn(3, dtype=torch.double, device="cuda", requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x.sin() * x, (x,)) and torch.autograd.gradgradcheck(torch.exp, (x,))


def test_anomalies_are_found():
    x = torch.zeros(1, device="cuda", requires_grad=True)
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning),
        pytest.raises(RuntimeError, match="nan values"),
    ):
        (x.sqrt() * 0).sum().backward()


def test_the_accelerator():
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator() == torch.device("cuda")
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == 1
    torch.accelerator.synchronize()
    assert torch.accelerator.device_count() == 2


def test_pinned_memory():
    x = torch.arange(3.0)
    p = x.pin_memory()
    assert p.is_pinned() and not x.is_pinned() and p.pin_memory() is p and p[1:].is_pinned()
    assert p.to("cuda", non_blocking=True).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="cannot pin"):
        p.cuda().pin_memory()


def test_arrays_after_a_graph_break():
    @torch.compile
    @torch.compiler.wrap_numpy
    def f(x):
        y = x * 2
        torch._dynamo.graph_break()
        return np.sum(y)

    x = torch.ones(3, device="cuda", requires_grad=True)
    y = f(x)
    assert y.item() == 6
    y.backward()
    assert x.grad.is_cuda and x.grad.tolist() == [2, 2, 2]


@pytest.mark.slow
@pytest.mark.parametrize("compiled", [False, True])
def test_a_gpt_trains_to_the_cpus_curve(compiled):
    def train(device):
        torch.manual_seed(0)
        model = GPT(GPTConfig(block_size=16, vocab_size=20, n_layer=2, n_head=2, n_embd=16)).to(device)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        tokens = torch.randint(0, 20, (4, 17), generator=torch.Generator().manual_seed(1)).to(device)
        run = torch.compile(model) if compiled else model
        losses = []
        for _ in range(5):
            optimizer.zero_grad()
            loss = run(tokens[:, :-1], tokens[:, 1:].contiguous())[1]
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    found, expected = train("cuda"), train("cpu")
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert found[-1] < found[0]
