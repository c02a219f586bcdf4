"""Optimizers and schedules. Expected numbers were computed with PyTorch 2.13."""

import copy

import numpy as np
import pytest

import flambeau as torch

optim = torch.optim

# Three steps on sum(p^3) from [1, -2, 0.5]
TRAJECTORIES = [
    ("SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01), [-0.189005956, -160.754456, 0.107455626]),
    ("Adam", dict(lr=0.1, amsgrad=True, weight_decay=0.1), [0.704048276, -2.30049419, 0.212524205]),
    ("AdamW", dict(lr=0.1), [0.701519668, -2.29419804, 0.212125927]),
    ("AdamW", dict(lr=0.1, capturable=True), [0.701519668, -2.29419804, 0.212125927]),
    ("RMSprop", dict(momentum=0.9, centered=True), [0.566074491, -2.48142481, 0.102266759]),
    ("Adagrad", dict(lr=0.1), [0.789239824, -2.23624635, 0.308671623]),
]


def steps(optimizer, p, n=3):
    for _ in range(n):
        optimizer.zero_grad()
        (p**3).sum().backward()
        optimizer.step()


def start():
    return torch.tensor([1.0, -2.0, 0.5], requires_grad=True)


@pytest.mark.parametrize("name, options, expected", TRAJECTORIES, ids=lambda v: v if isinstance(v, str) else "")
def test_trajectory(name, options, expected):
    p = start()
    steps(getattr(optim, name)([p], **options), p)
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=2e-6)


@pytest.mark.parametrize("name, options, expected", TRAJECTORIES, ids=lambda v: v if isinstance(v, str) else "")
def test_state_dict_resumes(name, options, expected):
    p = start()
    first = getattr(optim, name)([p], **options)
    steps(first, p, 2)
    q = p.detach().clone().requires_grad_()
    second = getattr(optim, name)([q], **{**options, "lr": 55.0})
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    steps(second, q, 1)
    np.testing.assert_allclose(q.detach().numpy(), expected, rtol=2e-6)


@pytest.mark.parametrize("name, options, expected", TRAJECTORIES, ids=lambda v: v if isinstance(v, str) else "")
def test_compiled_step(name, options, expected):
    """The whole update is one graph, used again at the third step (the first one may still make state)."""
    graphs = []

    def backend(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    p = start()
    optimizer = getattr(optim, name)([p], **options)
    compiled = torch.compile(optimizer.step, backend=backend)
    counts = []
    for _ in range(3):
        optimizer.zero_grad()
        (p**3).sum().backward()
        compiled()
        counts.append(len(graphs))
    assert 1 <= counts[0] and counts[1] == counts[2] <= 2
    np.testing.assert_allclose(p.detach().numpy(), expected, rtol=2e-6)


def test_maximize_and_closure():
    p = start()
    optimizer = optim.SGD([p], lr=0.1, maximize=True)

    def closure():
        optimizer.zero_grad()
        loss = p.sum()
        loss.backward()
        return loss

    assert float(optimizer.step(closure)) == pytest.approx(-0.5)
    np.testing.assert_allclose(p.detach().numpy(), [1.1, -1.9, 0.6], rtol=1e-6)


def test_groups():
    a, b = (torch.zeros(1, requires_grad=True) for _ in range(2))
    optimizer = optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1)
    (a + b).sum().backward()
    optimizer.step()
    assert float(a) == pytest.approx(-0.1) and float(b) == pytest.approx(-0.5)
    with pytest.raises(ValueError, match="some parameters appear in more than one parameter group"):
        optimizer.add_param_group({"params": [a]})
    assert "Parameter Group 1" in repr(optimizer)


ERRORS = [
    (lambda: optim.SGD([]), ValueError, "optimizer got an empty parameter list"),
    (lambda: optim.AdamW([torch.zeros(1)], lr=-1), ValueError, "Invalid learning rate: -1"),
    (lambda: optim.AdamW([torch.zeros(1)], betas=(0.9, 1.0)), ValueError, "Invalid beta parameter at index 1: 1.0"),
    (lambda: optim.AdamW([3]), TypeError, "optimizer can only optimize Tensors, but one of the params is int"),
    (lambda: optim.SGD([torch.zeros(1)], lr=1, nesterov=True), ValueError, "Nesterov momentum requires a momentum"),
    (lambda: optim.SGD(torch.zeros(1)), TypeError, "should be an iterable of Tensors or dicts"),
    (lambda: optim.lr_scheduler.StepLR(3, 2), TypeError, "int is not an Optimizer"),
]


@pytest.mark.parametrize("call, error, text", ERRORS, ids=lambda v: v if isinstance(v, str) else "")
def test_errors(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def test_step_hooks():
    p, log = start(), []
    optimizer = optim.SGD([p], lr=0.1)
    before = optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post"))
    steps(optimizer, p, 1)
    before.remove()
    steps(optimizer, p, 1)
    assert log == ["pre", "post", "post"]


def test_step_hooks_see_the_optimizer_among_the_arguments():
    p, log = start(), []
    optimizer = optim.SGD([p], lr=0.1)
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append((args, kwargs)) or (args, kwargs))
    assert isinstance(handle, torch.utils.hooks.RemovableHandle)
    optimizer.register_step_post_hook(lambda o, args, kwargs: log.append((args, kwargs)))

    def closure():
        return p.sum()

    optimizer.step(closure)
    optimizer.step(closure=closure)
    assert log == [((optimizer, closure), {})] * 2 + [((optimizer,), {"closure": closure})] * 2


def test_rates_that_are_tensors_are_copied():
    optimizer = optim.Adam([start()], lr=torch.tensor(0.5))
    for make in (
        lambda: optim.lr_scheduler.ExponentialLR(optimizer, 0.5),
        lambda: optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0),
    ):
        schedule = make()
        rates = schedule.get_last_lr()
        optimizer.param_groups[0]["lr"].mul_(3)
        assert rates[0] != optimizer.param_groups[0]["lr"]


def test_get_lr_warns_outside_a_step():
    for make in (
        lambda o: optim.lr_scheduler.StepLR(o, 2),
        lambda o: optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 2),
        lambda o: optim.swa_utils.SWALR(o, 0.1),
    ):
        schedule = make(optim.SGD([start()], lr=0.1))
        with pytest.warns(UserWarning, match="please use `get_last_lr"):
            schedule.get_lr()


SCHEDULES = [
    ("StepLR", dict(step_size=2), [0.1, 0.1, 0.01, 0.01, 0.001]),
    ("MultiStepLR", dict(milestones=[2, 3]), [0.1, 0.1, 0.01, 0.001, 0.001]),
    ("LinearLR", {}, [0.1 / 3, 0.14 / 3, 0.06, 0.22 / 3, 0.26 / 3]),
    ("ConstantLR", dict(total_iters=3), [0.1 / 3, 0.1 / 3, 0.1 / 3, 0.1, 0.1]),
    ("ExponentialLR", dict(gamma=0.9), [0.1, 0.09, 0.081, 0.0729, 0.06561]),
    ("CosineAnnealingLR", dict(T_max=3, eta_min=0.01), [0.1, 0.0775, 0.0325, 0.01, 0.0325]),
    ("LambdaLR", dict(lr_lambda=lambda epoch: 1 / (1 + epoch)), [0.1, 0.05, 0.1 / 3, 0.025, 0.02]),
    ("MultiplicativeLR", dict(lr_lambda=lambda epoch: 0.5), [0.1, 0.05, 0.025, 0.0125, 0.00625]),
]


@pytest.mark.parametrize("name, options, expected", SCHEDULES, ids=lambda v: v if isinstance(v, str) else "")
def test_schedule(name, options, expected):
    p = torch.zeros(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1)
    schedule = getattr(optim.lr_scheduler, name)(optimizer, **options)
    rates = []
    for _ in expected:
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    np.testing.assert_allclose(rates, expected, rtol=1e-12)


def test_schedule_warns_about_the_order():
    schedule = optim.lr_scheduler.StepLR(optim.SGD([torch.zeros(1)], lr=1.0), 1)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()


def test_parameters_named_and_given_twice():
    a, b = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    with pytest.warns(UserWarning, match="a parameter group with duplicate parameters"):
        torch.optim.SGD([a, a], 0.1)
    with pytest.raises(ValueError, match="with/without names. Some param names are missing"):
        torch.optim.SGD([("a", a), b], 0.1)
    named = torch.optim.SGD([("a", a)], 0.1)
    with pytest.raises(ValueError, match="cannot add param group without names to the optimizer"):
        named.add_param_group({"params": [b]})
    named.load_state_dict(torch.optim.SGD([a], 0.5).state_dict())
    assert named.param_groups[0]["param_names"] == ["a"] and named.param_groups[0]["lr"] == 0.5


@pytest.mark.parametrize(
    "name", ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "SparseAdam", "NAdam", "Rprop", "Adadelta", "Muon"]
)
def test_a_learning_rate_has_one_element(name):
    with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
        getattr(torch.optim, name)([torch.nn.Parameter(torch.ones(2, 2))], lr=torch.tensor([0.1, 0.2]))


def test_nadam_keeps_its_state_in_order():
    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    o = torch.optim.NAdam([p])
    o.step()
    assert list(o.state_dict()["state"][0]) == ["step", "mu_product", "exp_avg", "exp_avg_sq"]


def test_options_stand_in_the_order_in_which_they_are_saved():
    p = [torch.nn.Parameter(torch.ones(2))]
    flags = {n: list(getattr(torch.optim, n)(p).param_groups[0])[5:] for n in ("Adadelta", "RAdam")}
    assert flags["Adadelta"] == ["maximize", "capturable", "foreach", "differentiable"]
    assert flags["RAdam"] == ["maximize", "foreach", "capturable", "decoupled_weight_decay", "differentiable"]


def test_rprop_has_no_decay_whatever_a_group_says():
    p, q = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    p.grad, q.grad = torch.full((2,), -0.01), torch.full((2,), -0.01)
    torch.optim.Rprop([{"params": [p], "weight_decay": 0.1}]).step(), torch.optim.Rprop([q]).step()
    assert torch.equal(p, q)


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_searches_complex_numbers_as_pairs(search):
    p, q = torch.nn.Parameter(torch.tensor([1 + 1j, 2.0 - 0.5j])), torch.nn.Parameter(torch.tensor([0.5]))
    optimizer = optim.LBFGS([p, q], lr=0.3, max_iter=3, line_search_fn=search)

    def loss():
        optimizer.zero_grad()
        value = (p - 3).abs().pow(4).sum() + (p.real.sum() * q - 1).pow(2).sum()
        value.backward()
        return value

    for _ in range(2):
        optimizer.step(loss)
    np.testing.assert_allclose(p.tolist(), [1.63426745 + 0.67716134j, 2.16809916 - 0.40782833j], rtol=1e-5)
    np.testing.assert_allclose(q.tolist(), [0.32332295], rtol=1e-5)


def test_complex_accumulators_start_in_both_parts():
    # Each part of a complex number is a parameter: so are its sums.
    p, q = torch.nn.Parameter(torch.tensor([1 + 2j])), torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    for x, g in ((p, torch.tensor([0.5 - 1j])), (q, torch.tensor([0.5, -1.0]))):
        x.grad = g
        torch.optim.Adagrad([x], lr=0.1, initial_accumulator_value=0.3).step()
    assert torch.equal(torch.view_as_real(p.detach())[0], q.detach())


@pytest.mark.parametrize("name", ["SGD", "Adagrad"])
def test_fused_steps_refuse_sparse_gradients(name):
    p = torch.nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3).to_sparse()
    with pytest.raises(RuntimeError, match="support sparse grad"):
        getattr(torch.optim, name)([p], fused=True).step()


def test_complex_parameters_take_sparse_gradients():
    dense, sparse = (torch.nn.Parameter(torch.tensor([1 + 2j, 3 - 1j])) for _ in range(2))
    g = torch.tensor([2 + 0j, 1 + 0j])
    dense.grad, sparse.grad = g, g.to_sparse()
    for p in (dense, sparse):
        torch.optim.Adagrad([p], lr=0.1).step()
    assert torch.allclose(dense.detach(), sparse.detach())


def test_a_mean_of_integers_is_refused():
    """get_swa_multi_avg_fn, as PyTorch's, which divides in place; nothing is written."""
    update = optim.swa_utils.get_swa_multi_avg_fn()
    floats, integers = torch.zeros(2), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="Integer division with addcdiv is no longer supported"):
        update([floats, integers], [torch.ones(2), torch.ones(2, dtype=torch.int64)], torch.tensor(1))
    assert floats.tolist() == [0, 0]
