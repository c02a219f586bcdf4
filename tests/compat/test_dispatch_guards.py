"""``torch._C``'s guards on dispatch keys do what their names say."""

import pytest

import flambeau as torch
from flambeau.utils._python_dispatch import TorchDispatchMode

Key, KeySet = torch._C.DispatchKey, torch._C.DispatchKeySet


class Seen(TorchDispatchMode):
    def __init__(self):
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(str(func))
        return func(*args, **(kwargs or {}))


def excluded(name):
    return torch._C._ExcludeDispatchKeyGuard(KeySet(getattr(Key, name)))


# (guard, whether a mode sees the call, whether the result is recorded), as in PyTorch 2.13
GUARDS = {
    "below autograd": (torch._C._AutoDispatchBelowAutograd, True, False),
    "no dispatch": (torch._C._DisableTorchDispatch, False, True),
    "no transforms": (torch._C._DisableFuncTorch, True, True),
    "exclude Python": (lambda: excluded("Python"), False, True),
    "exclude AutogradCPU": (lambda: excluded("AutogradCPU"), True, False),
    "exclude Functionalize": (lambda: excluded("Functionalize"), True, True),
    "exclude ADInplaceOrView": (lambda: excluded("ADInplaceOrView"), True, True),
}


@pytest.mark.parametrize("name", GUARDS)
def test_guards(name):
    guard, seen, recorded = GUARDS[name]
    x = torch.ones(2, requires_grad=True)
    with Seen() as mode:
        with guard():
            y = x * 2
        assert (mode.calls == ["aten.mul.Tensor"], y.requires_grad) == (seen, recorded)
        # The block is left whole.
        assert (x * 2).requires_grad and len(mode.calls) == seen + 1


def test_a_key_without_a_layer_is_refused():
    with pytest.raises(NotImplementedError, match="no layer for the dispatch key AutocastCPU"):
        excluded("AutocastCPU")
