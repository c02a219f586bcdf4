"""Composable function transforms: ``torch.func`` (level 7).

``vmap`` is batching's; ``grad``, ``vjp`` and what is made of them run on the one autograd tape. A transform's input
is a fresh node of the tape, so that nested transforms never mix their derivatives up; inside vmap the tape records
whole batches, and an input of ``grad`` gets a batch dimension for every vmap that is running, which makes its
derivative one per example.
"""

from ..functionalize import functionalize
from .derivatives import grad, grad_and_value, jvp, linearize, vjp
from .jacobian import hessian, jacfwd, jacrev
from .mapping import vmap
from .modules import functional_call, stack_module_state

__all__ = [
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
