"""What stands in dicts and classes for the duration of a block is put back whatever happens in it; an interrupt leaves modules and classes as they were."""

import sys

import pytest
from flambeau.fx.experimental.proxy_tensor import make_fx

import flambeau as torch
from flambeau import _C
from flambeau.autograd import forward_ad
from flambeau.modules import hooks
from flambeau.utils.flop_counter import FlopCounterMode


class Target:
    here = 1


def test_entries_and_attributes_come_back():
    table = {"a": 1}
    with _C.Replaced([(table, 7, 2)]):
        assert table == {"a": 1, 7: 2}
    block = _C.Replaced([(table, "a", 2), (table, "b", 3), (table, "a", 4), (Target, "here", 5), (Target, "there", 6)])
    for _ in range(2):
        with block as entered:
            assert entered is block
            assert (table, Target.here, Target.there) == ({"a": 4, "b": 3}, 5, 6)
            del table["b"]
        assert (table, Target.here, hasattr(Target, "there")) == ({"a": 1}, 1, False)
    with pytest.raises(ZeroDivisionError), block:
        raise ZeroDivisionError
    assert table == {"a": 1} and Target.here == 1


def test_a_row_that_fails_undoes_those_before_it():
    table = {"a": 1}
    with pytest.raises(TypeError, match="immutable type"), _C.Replaced([(table, "a", 2), (int, "here", 3)]):
        raise AssertionError("not reached")
    assert table == {"a": 1}


def test_it_is_entered_once_at_a_time():
    table = {"a": 1}
    block = _C.Replaced([(table, "a", 2)])
    with block, pytest.raises(RuntimeError, match="can't be entered again"):
        block.__enter__()
    with pytest.raises(RuntimeError, match="wasn't entered"):
        block.__exit__(None, None, None)
    assert table == {"a": 1}


@pytest.mark.parametrize("rows", [3, [3], [(Target, 3, 4)], [([], "a", 4)], [({}, "a")]])
def test_rows_are_checked(rows):
    with pytest.raises(TypeError):
        _C.Replaced(rows)


MODEL = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2)).eval()
IMAGE = torch.ones(1, 1, 4, 4)


def _profiled():
    with torch.profiler.profile():
        IMAGE + 1


def _checked():
    with torch.autograd.detect_anomaly():
        IMAGE + 1


def _counted():
    with FlopCounterMode(display=False):
        IMAGE + 1


def _dual():
    with forward_ad.dual_level():
        forward_ad.make_dual(IMAGE, IMAGE)


JOBS = {
    "export": lambda: torch.export.export(MODEL, (IMAGE,)),
    "symbolic_trace": lambda: torch.fx.symbolic_trace(MODEL),
    "make_fx": lambda: make_fx(lambda x: torch.func.functional_call(MODEL, dict(MODEL.named_parameters()), (x,)))(
        IMAGE
    ),
    "functional_call": lambda: torch.func.functional_call(MODEL, dict(MODEL.named_parameters()), (IMAGE,)),
    "profile": _profiled,
    "anomaly": _checked,
    "flops": _counted,
    "dual_level": _dual,
}


def interrupted(job, k: int) -> bool:
    """Runs job with KeyboardInterrupt arriving as its k-th call of a C function returns. False: there is no such call."""
    left = k

    def profile(frame, event, arg):
        nonlocal left
        if event == "c_return":
            left -= 1
            if not left:
                raise KeyboardInterrupt

    try:
        sys.setprofile(profile)
        job()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return left <= 0


def held():
    module = torch.nn.Module
    tensors = [*MODEL.named_parameters(), *MODEL.named_buffers()]
    state = _C.tls("dispatch_modes"), _C.tls("forward_open"), torch.is_anomaly_enabled()
    registered = [len(h) for h in hooks.GLOBAL_NAMES.values()]
    return module.__call__, module.__getattr__, [(n, id(t)) for n, t in tensors], state, registered


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore:Anomaly Detection")
@pytest.mark.parametrize("name", JOBS)
def test_an_interrupt_leaves_nothing_in_place(name):
    job = JOBS[name]
    for _ in range(2):
        job()
    before, k, step = held(), 1, 1
    while interrupted(job, k):
        assert held() == before, f"after C call {k}"
        # Each of the first calls, then about every fortieth.
        step += k > 200
        k += min(step, 41)
    assert k > 3
    job()
