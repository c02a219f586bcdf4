"""Functions of the library that change the program's state, or capture itself: modes are followed, for the others the graph breaks."""

from __future__ import annotations

from ...exc import unsupported
from ...guards.dynamic import mark_static
from ...rules import trace_rules
from ...rules.reflect import module_of
from ..values.constant import ConstantVariable
from ..values.symbolic import specialized, wrap_number
from .tensor import TensorVariable
from .torch_functions import TorchFunctionVariable, special


@special("_set_grad_enabled")
def _(tx, var, args, kwargs):
    tx.output.set_grad_mode(tx, bool(args[0].as_constant()))
    return ConstantVariable(None)


@special("mark_static")
def _(tx, var, args, kwargs):
    """Said of a tensor while it is traced: its sizes are constants of what is captured."""
    given = dict(zip(("t", "index"), args)) | kwargs
    t = tx.realize(given["t"])
    if var.value is not mark_static or type(t) is not TensorVariable:
        return None
    index = given["index"].as_constant() if "index" in given else None
    for d in range(t.val.ndim) if index is None else index if isinstance(index, list | tuple) else [index]:
        specialized(tx, wrap_number(t.val.shape[d]))
    return ConstantVariable(None)


@special("graph_break")
def _(tx, var, args, kwargs):
    text = (args[0] if args else kwargs["msg"]).as_constant() if args or kwargs else ""
    unsupported(
        "graph-break-call",
        f"graph_break() {text}".rstrip(),
        "torch._dynamo.graph_break() was called.",
        "Remove the call.",
    )


@special(
    "manual_seed",
    "seed",
    "get_rng_state",
    "set_rng_state",
    "initial_seed",
    "set_num_threads",
    "set_default_dtype",
    "save",
    "load",
    "compile",
    "set_printoptions",
    "backward",
    "grad_and_value_",
)
def _(tx, var, args, kwargs):
    unsupported(
        "library-call",
        f"call to {module_of(var.value)}.{var.value.__name__}",
        "It changes the state of the program, not a tensor.",
    )


@special("reset", "disable", "allow_in_graph", "disallow_in_graph", "explain")
def _(tx, var, args, kwargs):
    if var.value is trace_rules.allow_in_graph and isinstance(args[0], TorchFunctionVariable):
        return args[0]  # a library function, or one made by a transform: it is one node already
    if ".dynamo" in module_of(var.value) or ".compiler" in (module_of(var.value) or ""):
        unsupported(
            "library-call", f"call to torch._dynamo.{var.value.__name__} while tracing", "It configures capture itself."
        )
    return None
