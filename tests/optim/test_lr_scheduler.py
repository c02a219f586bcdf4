"""The namespace of the schedules."""

import flambeau as torch


def test_the_namespace_holds_every_schedule():
    """Programs such as pyro take the schedules from the module's ``__dict__``."""
    held = {
        name
        for name, v in vars(torch.optim.lr_scheduler).items()
        if isinstance(v, type) and issubclass(v, torch.optim.lr_scheduler.LRScheduler)
    }
    assert held - {"_LRScheduler"} == set(torch.optim.lr_scheduler.__all__)
