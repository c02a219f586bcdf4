"""Gradients through captured code agree with plain ones, on all backends; what PyTorch captures whole is captured whole."""

import pytest
from gradient_programs import PROGRAMS, L
from programs import BACKENDS

import flambeau as torch
from flambeau import _frame

# These break the graph, in PyTorch too, or where PyTorch gives another gradient than the plain program: a Function's own vmap,
# set_materialize_grads.
BREAKS = {
    "across_break", "tensor_hook_in", "tensor_hook_input_inside", "module_full_backward", "module_full_backward_replace",
    "module_full_backward_pre", "retain_grad_in", "grad_inside_detached", "fn_materialize", "fn_vmap", "fn_vmap_grad", "fn_gradients_miscounted",
    "grad_after_in_place",
}  # fmt: skip


def outcome(program, C):
    torch.compiler.reset()
    torch.manual_seed(0)
    return L(program(C))


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    program = PROGRAMS[name]
    want = outcome(program, lambda f: f)
    old = _frame.set_strict_guards(True)
    try:
        for backend in BACKENDS:
            whole = name not in BREAKS
            got = outcome(program, lambda f, b=backend, w=whole: torch.compile(f, backend=b, fullgraph=w))
            assert got == want, backend
    finally:
        _frame.set_strict_guards(old)
