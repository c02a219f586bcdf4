"""What runs around a compiled graph: writing mutated inputs, making views of inputs, dropping saved values.

The wrapper is generated for each graph and contains only what that graph needs; a graph without anything special is
called directly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import _C, _frame, _runtime
from ..autograd.node import set_history
from ..base.relations import as_symbol, evaluate
from ..base.symint import NUMBERS
from ..fx.graph_module import compile_source
from ..ops.shapes.inplace_views import become
from .compiled_function import CompiledFunctionBackward
from .facts import Computed, Constant, InputAlias, InputView, Number, OutputView, Traced, sizes_in

__all__ = ["consuming_callable", "plain_callable", "wrap"]


def _is_boxed(compiled: Callable) -> bool:
    """Whether it takes a list of inputs, which it may empty."""
    return getattr(compiled, "_boxed_call", False)


def plain_callable(compiled: Callable) -> Callable:
    """A compiled graph as ``f(*inputs)``, whichever of the two conventions its compiler follows."""
    if _is_boxed(compiled):
        return lambda *args: compiled(list(args))
    return compiled


def consuming_callable(compiled: Callable) -> Callable:
    """A compiled graph as ``f(list of inputs)`` that may empty the list, so that inputs go after their last use."""
    if _is_boxed(compiled):
        return compiled
    return getattr(compiled, "consume", None) or (lambda args: compiled(*args))


def _symbol_values(traced: Traced, names: list[str], scope: dict[str, Any]) -> str:
    """Source of a dict from the symbols to their values, read off the inputs."""
    found: dict[Any, str] = {}
    for name, t in zip(names, traced.fake_inputs):
        if isinstance(t, NUMBERS):
            found.setdefault(as_symbol(t.expr) or t.expr, name)
        elif isinstance(t, _C.TensorBase):
            for what, numbers in (("shape", t.shape), ("stride()", t.stride())):
                for d, n in enumerate(numbers):
                    s = as_symbol(n.expr) if isinstance(n, NUMBERS) else None
                    if s is not None:
                        found.setdefault(s, f"{name}.{what}[{d}]")
    for i, s in enumerate(found):
        scope[f"symbol_{i}"] = s
    return "{" + ", ".join(f"symbol_{i}: {text}" for i, text in enumerate(found.values())) + "}"


def _with_history(view: Any, computed: Any) -> Any:
    """The memory of ``view`` with the history of ``computed``, which has the same elements."""
    if not computed.requires_grad:
        return view
    view = view.detach()
    set_history(view, computed._grad_fn, computed._output_nr)
    return view


def _node_of(k: int, outs: tuple) -> CompiledFunctionBackward | None:
    """The node of a call, when it records one."""
    node = outs[k]._grad_fn
    return node if isinstance(node, CompiledFunctionBackward) else None


def _copy(tensor: Any, value: Any) -> None:
    with _C.Guard(grad_enabled=0):
        tensor.copy_(value)


def _written_natively(traced: Traced, run: Callable, lifted: list[Any]) -> Callable | None:
    """The call of a native graph that does nothing beside but write inputs (csrc/runtime/writing.c), or None."""
    special = traced.reshaped or traced.mutated_with_grad or traced.uncounted or traced.kept or lifted
    plain = all(isinstance(o, (Computed, InputAlias)) for o in traced.outputs)
    if special or not plain or not traced.mutated or not isinstance(run, _runtime.Graph):
        return None
    outputs = tuple(o.index if isinstance(o, Computed) else -1 - o.index for o in traced.outputs)
    asked = tuple(sorted(traced.mutated_under_grad))
    return _runtime.Writing(run, tuple(traced.mutated), asked, outputs, _frame.tell_floating_errors, _copy)


def _write_back(traced: Traced, names: list[str], scope: dict[str, Any]) -> list[str]:
    """Source that gives the inputs that the function writes to their new elements."""
    lines: list[str] = []
    # An output that is None lies in the input's memory already.
    written = [(k, i) for k, i in enumerate(traced.mutated) if i not in traced.mutated_with_grad]
    if traced.mutated:
        scope["tell_floating_errors"] = _frame.tell_floating_errors
        lines.append("    tell_floating_errors()")
    for k, i in enumerate(traced.mutated):
        if i in traced.mutated_with_grad:
            lines.append(f"    {names[i]}.copy_(outs[{k}])")
    for k, i in written:
        lines += [f"    if outs[{k}] is not None:", "        with Guard(grad_enabled=0):"]
        lines.append(f"            {names[i]}{'.data' * (i in traced.uncounted)}.copy_(outs[{k}])")
        lines += ["    else:", f"        {names[i]}{'.data' * (i in traced.uncounted)}._bump_version()"]
    if traced.mutated and traced.tangent_of:
        scope["node_of"] = partial(_node_of, traced.tangent_of[0])
        lines += ["    node = node_of(outs)", "    if node is not None:", "        node.inputs_written()"]
    return lines


def _results(traced: Traced, names: list[str], env: str, scope: dict[str, Any]) -> list[str]:
    """Source of each of the function's outputs; ``env``: the argument with the values of symbols."""
    parts: list[str] = []
    for k, o in enumerate(traced.outputs):
        if isinstance(o, Computed):
            parts.append(f"outs[{o.index}]")
        elif isinstance(o, InputAlias):
            parts.append(names[o.index])
        elif isinstance(o, (InputView, OutputView)):
            base = names[o.index] if isinstance(o, InputView) else f"outs[{o.index}]"
            scope[f"view_{k}"] = o.replay
            part = f"view_{k}({base}{env})"
            if o.history is not None:
                scope["with_history"] = _with_history
                part = f"with_history({part}, outs[{o.history}])"
            parts.append(part)
        elif isinstance(o, Number):
            scope["evaluate"], scope[f"number_{k}"] = evaluate, o.expr
            parts.append(f"evaluate(number_{k}, sizes)")
        elif isinstance(o, Constant):
            scope[f"constant_{k}"] = o.value
            parts.append(f"constant_{k}")
    return parts


def _view_with_hooks(tensor: Any) -> bool:
    """Whether hooks of a view stand on its node. A write leaves them behind: they see what was read before it, and nothing else. The node of a
    graph stands for both."""
    node = tensor._grad_fn
    return tensor._base is not None and node is not None and bool(node.pre_hooks.get(tensor._output_nr))


def wrap(traced: Traced, run: Callable, lifted: list[Any], num_args: int, plainly: Callable) -> Callable:
    """``call(*args)`` giving the function's outputs as a tuple. ``run(*lifted, *args)`` gives the forward outputs, or
    more; ``plainly(*args)`` is the function, as it is.

    ``lifted`` are tensors passed before the caller's arguments (parameters that the captured module holds).
    """
    direct = (
        not traced.mutated
        and not traced.reshaped
        and not lifted
        and len(traced.outputs) == traced.num_forward
        and all(isinstance(o, Computed) and o.index == i for i, o in enumerate(traced.outputs))
    )
    if direct:
        return run
    written = _written_natively(traced, run, lifted)
    if written is not None:
        return written
    scope: dict[str, Any] = {"run": run, "Guard": _C.Guard}
    n = len(lifted)
    for i, t in enumerate(lifted):
        scope[f"lifted_{i}"] = t
    args = [f"arg_{i}" for i in range(num_args)]
    names = [f"lifted_{i}" for i in range(n)] + args
    lines = [f"def call({', '.join(args)}):"]
    lines += [f"    {names[i]}._check_written()" for i in sorted(traced.mutated_under_grad)]
    if traced.mutated_with_grad:
        scope.update(view_with_hooks=_view_with_hooks, plainly=plainly)
        hooked = " or ".join(f"view_with_hooks({names[i]})" for i in sorted(traced.mutated_with_grad))
        lines += [f"    if {hooked}:", f"        return plainly({', '.join(args)})"]
    # Kernels store straight into what they are handed.
    lines += [f"    {names[i]}._check_writable()" for i in traced.mutated]
    if traced.num_forward or traced.random or traced.fallible:
        lines.append(f"    outs = run({', '.join(names)})")
    lines += _write_back(traced, names, scope)
    made_again = [o for o in traced.outputs if isinstance(o, (InputView, OutputView))]
    views = any(sizes_in(o.chain) for o in [*made_again, *(view for _, view in traced.reshaped)])
    env = ""
    if views or any(isinstance(o, Number) for o in traced.outputs):
        lines.append(f"    sizes = {_symbol_values(traced, names, scope)}")
        env = ", sizes"
    parts = _results(traced, names, env, scope)
    if traced.reshaped:  # what is returned are views of the inputs as they were
        lines += [f"    part_{k} = {part}" for k, part in enumerate(parts)]
        parts = [f"part_{k}" for k in range(len(parts))]
        for i, view in traced.reshaped:
            scope["become"], scope[f"reshape_{i}"] = become, view.replay
            lines.append(f"    become({names[i]}, reshape_{i}({names[i]}{env}))")
    lines.append(f"    return ({', '.join(parts)}{',' if len(parts) == 1 else ''})")
    call, _ = compile_source("\n".join(lines) + "\n", scope, "call")
    return call
