"""The native dispatch state: guards restore what they change, on any exit, and stacks have one owner."""

import gc
import sys
import threading
import weakref

import numpy as np
import pytest

import flambeau as torch
from flambeau import _C
from flambeau.batching import levels
from flambeau.core import keys as K
from flambeau.core import modes
from flambeau.core.dispatch import excluding
from flambeau.utils._python_dispatch import TorchDispatchMode

FIELDS = (
    "grad_enabled",
    "excluded",
    "included",
    "dispatch_modes",
    "function_modes",
    "transforms",
    "inference",
    "function_disabled",
)


def state():
    return {n: _C.tls(n) for n in FIELDS}


class Pass(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class FunctionPass(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


GUARDS = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "excluding": lambda: excluding(K.AUTOGRAD | K.PYTHON),
    "readmit": lambda: _C.Guard(readmit=K.AUTOGRAD),
    "dispatch mode": Pass,
    "function mode": FunctionPass,
    "level": lambda: levels.level(3),
    "modes off": modes.disabled,
    "function disabled": torch._C.DisableTorchFunction
    if hasattr(torch._C, "DisableTorchFunction")
    else lambda: _C.Guard(function_disabled=2),
    "everything": lambda: _C.Guard(everything=True),
}


@pytest.mark.parametrize("name", GUARDS)
def test_a_guard_restores_on_every_exit(name):
    make, before = GUARDS[name], state()
    with make():
        inside = state()
    assert state() == before
    with pytest.raises(KeyboardInterrupt), make():
        assert state() == inside
        raise KeyboardInterrupt
    assert state() == before
    g = make()
    with g, g:
        pass
    assert state() == before


def test_a_guard_restores_only_what_it_changes():
    with excluding(K.PYTHON):
        torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    before = state()
    with _C.Guard(everything=True):
        torch.set_grad_enabled(False)
        Pass().__enter__()
        FunctionPass().__enter__()
        _C.exclude(K.AUTOGRAD)
    assert state() == before


def test_leaving_a_mode_takes_off_what_was_left_above_it():
    before = state()
    with Pass():
        Pass().__enter__()
    assert state() == before


def test_set_grad_enabled_restores_what_it_found_when_made():
    switch = torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    with switch:
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_stacks_show_their_values_and_can_be_cut():
    a, b = Pass(), Pass()
    with a, b:
        assert _C.stack("dispatch_modes") == (a, b) and _C.innermost("dispatch_modes") is b
        with modes.popped("dispatch") as m:
            assert m is b and _C.stack("dispatch_modes") == (a,)
        with modes.disabled() as off:
            assert off == [a, b] and _C.stack("dispatch_modes") == ()
        assert _C.tls("dispatch_modes", 1) == 2 and _C.stack("dispatch_modes") == (a,)
        with pytest.raises(ValueError):
            _C.tls("dispatch_modes", 5)
    assert _C.stack("dispatch_modes") == ()


def test_errors_of_a_guard():
    with pytest.raises(IndexError):
        modes.popped("dispatch").__enter__()
    with pytest.raises(ValueError, match="no stack"):
        _C.Guard(push="nothing")
    with pytest.raises(TypeError):
        _C.Guard(push="devices", pop="devices")
    with pytest.raises(RuntimeError):
        _C.Guard().__exit__(None, None, None)


def test_a_thread_has_its_own_state_and_releases_it():
    gone = []

    def work():
        assert _C.stack("dispatch_modes") == ()
        mode = Pass()
        mode.__enter__()  # never left
        gone.append(weakref.ref(mode))

    with Pass():
        t = threading.Thread(target=work)
        t.start()
        t.join()
    gc.collect()
    assert gone[0]() is None


FLOATING_POINT = np.geterr()


def interrupted(job, k):
    """Runs job with KeyboardInterrupt arriving as its k-th call of a C function returns. False: there is no such call."""
    left = [k]

    def profile(frame, event, arg):
        if event == "c_return":
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

    try:
        sys.setprofile(profile)
        job()
    except BaseException:
        pass
    finally:
        sys.setprofile(None)
        # NumPy's own np.errstate stays on when its __enter__ is interrupted behind the place where it sets it.
        np.seterr(**FLOATING_POINT)
    return left[0] <= 0


def _under_modes():
    with Pass(), FunctionPass(), torch.no_grad():
        torch.ones(2).sum()


def _under_levels():
    torch.func.vmap(lambda x: (x * x).sum())(torch.ones(3, 3))


@pytest.mark.parametrize("job", [_under_modes, _under_levels], ids=["modes", "levels"])
def test_an_interrupt_anywhere_leaves_the_state(job):
    job()
    before, k = state(), 1
    while interrupted(job, k):
        assert state() == before, f"after C call {k}"
        k += 1
    assert k > 3


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        (("cuda:9999999999",), RuntimeError, "Could not parse device index"),
        (("cuda:01",), RuntimeError, "Invalid device string"),
        (("cuda:",), RuntimeError, "Invalid device string"),
        (("",), RuntimeError, "must not be empty"),
        (("cuda:1", 1), RuntimeError, "must not include an index"),
        (("cuda", -1), RuntimeError, "must not be negative"),
        (("cuda", 2**31), RuntimeError, "too large"),
        (("cuda", 1.5), TypeError, "must be int, not float"),
        (("cuda", True), TypeError, "must be int, not bool"),
        ((-1,), RuntimeError, "must not be negative"),
    ],
)
def test_numbers_of_devices(arguments, error, text):
    with pytest.raises(error, match=text):
        torch.device(*arguments)
    assert torch.device("cuda:0").index == 0 and torch.device("cuda", np.int64(3)).index == 3
