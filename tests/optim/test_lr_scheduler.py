"""The namespace of the schedules; rates that are tensors, and resuming."""

import gc
import weakref

import pytest

import flambeau as torch


def test_the_namespace_holds_every_schedule():
    """Programs such as pyro take the schedules from the module's ``__dict__``."""
    held = {
        name
        for name, v in vars(torch.optim.lr_scheduler).items()
        if isinstance(v, type) and issubclass(v, torch.optim.lr_scheduler.LRScheduler)
    }
    assert held - {"_LRScheduler"} == set(torch.optim.lr_scheduler.__all__)


@pytest.mark.parametrize("make", [
    lambda s, o: s.CyclicLR(o, 0.1, 0.5, 5), lambda s, o: s.OneCycleLR(o, 0.5, 9), lambda s, o: s.ReduceLROnPlateau(o, patience=0),
    lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1), s.ExponentialLR(o, 0.9)], [2]),
], ids="CyclicLR OneCycleLR ReduceLROnPlateau SequentialLR".split())  # fmt: skip
def test_a_rate_that_is_a_tensor_stays_that_tensor(make):
    """A compiled step has it as its input."""
    rate = torch.tensor(0.5)
    o = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=rate, momentum=0.9)
    s = make(torch.optim.lr_scheduler, o)
    for _ in range(3):
        o.step()
        s.step(*([1.0] if isinstance(s, torch.optim.lr_scheduler.ReduceLROnPlateau) else []))
    assert o.param_groups[0]["lr"] is rate and rate.item() != 0.5


@pytest.mark.parametrize(
    "name, options",
    [("ExponentialLR", dict(gamma=0.5)), ("LinearLR", {}), ("PolynomialLR", {}), ("CosineAnnealingLR", dict(T_max=9))],
)
def test_resuming_begins_with_the_rate_that_is_there(name, options):
    o = torch.optim.SGD([{"params": [torch.nn.Parameter(torch.ones(2))], "initial_lr": 0.8}], lr=0.3)
    getattr(torch.optim.lr_scheduler, name)(o, **options, last_epoch=3)
    assert o.param_groups[0]["lr"] == 0.3


def with_schedule(o):
    torch.optim.lr_scheduler.StepLR(o, 1)


def with_hooks(o):
    o.register_step_pre_hook(lambda o, args, kwargs: None)


@pytest.mark.parametrize("wraps", [[with_schedule], [with_hooks], [with_schedule, with_hooks, with_schedule]])
def test_an_optimizer_with_a_schedule_or_hooks_goes_with_its_last_reference(wraps):
    p = torch.nn.Parameter(torch.ones(2))
    o = torch.optim.Adam([p])
    for wrap in wraps:
        wrap(o)
    p.sum().backward()
    o.step()
    assert o.step.__name__ == "step" and o.step.__doc__ == torch.optim.Adam.step.__doc__
    assert o._opt_called if with_schedule in wraps else True
    gone = weakref.ref(o)
    gc.disable()
    try:
        del o
        assert gone() is None
    finally:
        gc.enable()


def test_hooks_run_for_an_optimizer_that_nothing_holds():
    p, seen = torch.nn.Parameter(torch.ones(2)), []
    p.grad = torch.ones(2)
    handle = torch.optim.optimizer.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append(args[0] is o))
    try:
        torch.optim.SGD([p], lr=0.5).step()
        torch.optim.Rprop([p]).step()
    finally:
        handle.remove()
    torch.optim.SGD([p], lr=0.5).step()
    assert seen == [True, True]


def test_hooks_that_come_after_a_schedule_or_a_compiled_step_run():
    p, seen = torch.nn.Parameter(torch.ones(2)), []
    p.grad = torch.ones(2)
    o = torch.optim.SGD([p], lr=0.5)
    s = torch.optim.lr_scheduler.StepLR(o, 1)
    step = torch.compile(lambda: o.step())
    step()
    with o.register_step_pre_hook(lambda o, args, kwargs: seen.append("one")):
        o.step()
        step()
    o.step()
    step()
    assert seen == ["one", "one"] and p.tolist() == [-1.5, -1.5]
    s.step()


def test_a_step_whose_optimizer_is_gone_says_so():
    o = torch.optim.SGD([torch.nn.Parameter(torch.ones(2))], lr=0.5)
    torch.optim.lr_scheduler.StepLR(o, 1)
    step = o.step
    del o
    with pytest.raises(ReferenceError, match="optimizer that is gone"):
        step()
