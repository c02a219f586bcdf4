"""``export``: a module or function, traced on fake tensors into one functional graph of operators."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from .. import _C, nn
from ..aot.api import swapped
from ..aot.tracing import trace
from ..base.compiling import exporting
from ..base.errors import DataDependentOutputException
from ..base.shape_env import ShapeEnv
from ..base.symint import NUMBERS
from ..compiler.wrap import compiler_for, wrap_callable
from ..core.quantized import is_quantized
from ..dynamo.attempts import compiling
from ..dynamo.exc import BackendCompilerFailed, UserErrorType
from ..dynamo.guards.dynamic import mark_dynamic, mark_static, maybe_mark_dynamic
from ..fake import FakeTensor, FakeTensorMode
from ..fx import GraphModule
from .codes import CodesApart, named_tensors, refuse_codes, refuse_codes_out
from .constraints import Checks, Symbols
from .decompositions import outputs, spread
from .dynamic_shapes import Dim, leaf_specs, user_error
from .exported_program import CallSpec, ExportedProgram
from .graph_signature import (
    ExportGraphSignature,
    InputKind,
    InputSpec,
    TensorArgument,
)
from .module_calls import ModuleCalls, argument
from .stand_ins import StandIns
from .structure import Structure

__all__ = ["draft_export", "export", "parameter_names"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def export(
    mod: Callable,
    args: tuple,
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    preserve_module_call_signature: tuple[str, ...] = (),
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """The program that ``mod(*args, **kwargs)`` runs, as one graph of the ATen operators it calls, for any input that the constraints allow.
    Composites (``aten.linear``) and writes in place stay as they are; ``run_decompositions()`` gives the program without them.

    ``mod``: an ``nn.Module``, or a function. ``args``, ``kwargs``: examples, tensors in nested tuples, lists, dicts; everything else is a
    constant of the program. ``dynamic_shapes``: by parameter name or position, in the structure of the inputs, for each tensor a dict or
    sequence of ``Dim``, ``Dim.AUTO``, ``Dim.DYNAMIC``, ints, None; for an int ``Dim.DYNAMIC``. Whatever isn't named there is static.
    ``strict``: the program is captured by frame evaluation first, so that what can't be captured whole is an error; otherwise the Python code
    runs once, and what isn't tensors is taken as it was. ``preserve_module_call_signature``: names of submodules that ``unflatten`` is to call as
    the program does.

    Raises UserError (``torch._dynamo.exc``) for arguments that don't fit the specification and where the program needs less than it
    promises, with the dimension, the value and the line; ConstraintViolationError for examples outside of their range; Unsupported for graph
    breaks under ``strict``; GuardOnDataDependentSymNode for a decision that depends on data."""
    if not isinstance(args, tuple):
        raise user_error(
            UserErrorType.INVALID_INPUT,
            f"Expecting `args` to be a tuple of example positional inputs, got {type(args)}",
        )
    if not callable(mod):
        raise ValueError(f"Expected `mod` to be an instance of `torch.nn.Module` or a function, got {type(mod)}.")
    if prefer_deferred_runtime_asserts_over_guards:
        raise NotImplementedError("torch.export.export: prefer_deferred_runtime_asserts_over_guards is not built")
    stand_ins = StandIns()
    with stand_ins.within(mod):
        program = _export(
            mod,
            stand_ins.given(args),
            stand_ins.given(dict(kwargs or {})),
            dynamic_shapes,
            strict,
            preserve_module_call_signature,
        )
    program._exchange(stand_ins.back)
    return program


def _export(
    mod, args: tuple, kwargs: dict, dynamic_shapes, strict: bool, preserved: tuple[str, ...]
) -> ExportedProgram:
    named = parameter_names(mod, args, kwargs)
    rows = leaf_specs(named, dynamic_shapes)
    leaves, in_spec = Structure.flatten((args, kwargs))
    refuse_codes(leaves, [path for path, _, _ in rows])
    # The specification is by parameter, the inputs are positional ones and keywords: the leaves are in the same order.
    if len(rows) != len(leaves):
        raise user_error(UserErrorType.INVALID_INPUT, "the arguments hold a container twice in different ways")
    with exporting():
        if strict:
            _capture(mod, args, kwargs, rows)
        return _trace(mod, in_spec, leaves, rows, preserved)


def draft_export(mod: Callable, args: tuple, kwargs=None, **options):
    """Not built: PyTorch's exports what it can and reports the rest. ``export`` names the first problem and its line."""
    raise NotImplementedError("torch.export.draft_export is not built; torch.export.export names the first problem")


def parameter_names(fn: Callable, args: tuple, kwargs: dict) -> dict[str, Any]:
    """The arguments by parameter; those of ``*args`` are one tuple, keyword arguments stand under their own names. TypeError when they don't
    fit the signature."""
    target = fn.forward if isinstance(fn, nn.Module) else fn
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return {**{f"arg{i}": a for i, a in enumerate(args)}, **kwargs}
    bound = signature.bind(*args, **kwargs)
    out: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if name not in kwargs:
            out[name] = value
    return {**out, **kwargs}


# -- strict ------------------------------------------------------------------------------------------------------------


class _Captured(Exception):
    """The whole program became one graph."""


def _capture(mod, args: tuple, kwargs: dict, rows: list) -> None:
    """Errors of capture for ``mod(*args, **kwargs)``; nothing of the program is run."""

    def stop(gm, examples):
        raise _Captured

    marked = {}
    for _, value, spec in rows:
        if not isinstance(value, _C.TensorBase) or id(value) in marked:
            continue
        marked[id(value)] = value, dict(value.__dict__)
        mark_static(value)
        for d, s in (spec or {}).items():
            value.__dict__["_dynamo_static_indices"].discard(d)
            if isinstance(s, int) or value.shape[d] in (0, 1):
                mark_static(value, d)
            else:
                (maybe_mark_dynamic if s is Dim.AUTO else mark_dynamic)(value, d)
    try:
        wrap_callable(mod, compiler_for(stop, fullgraph=True))(*args, **kwargs)
    except BackendCompilerFailed as e:
        if not isinstance(e.inner_exception, _Captured):
            raise
    finally:
        for value, before in marked.values():
            value.__dict__.clear()
            value.__dict__.update(before)


# -- tracing -----------------------------------------------------------------------------------------------------------


def _trace(mod, in_spec: Structure, leaves: list, rows: list, preserved: tuple[str, ...]) -> ExportedProgram:
    env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
    symbols = Symbols(env)
    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=env, static_shapes=True)
    fakes = _fake_inputs(mode, symbols, leaves, rows)
    owner = mod if isinstance(mod, nn.Module) else getattr(mod, "__self__", None)
    calls = ModuleCalls(owner, preserved) if isinstance(owner, nn.Module) else None
    held = _held(owner) if calls is not None else []
    names = _names([path for path, _, _ in rows], held)
    inputs = [*(mode.from_tensor(h.tensor, static_shapes=True) for h in held), *fakes]
    out_spec: list[Any] = []

    def flat(*given):
        tensors = {name: t for h, t in zip(held, given) for name in h.names}
        with swapped(owner, tensors), CodesApart():
            args, kwargs = in_spec.unflatten(given[len(held) :])
            out, spec = Structure.flatten(mod(*args, **kwargs))
        out_spec[:] = [spec]
        bad = next((o for o in out if not isinstance(o, (_C.TensorBase, *NUMBERS, *_PLAIN))), None)
        if bad is not None:
            raise user_error(
                UserErrorType.INVALID_OUTPUT,
                f"an exported program returns tensors, numbers and containers of them, not {type(bad).__name__}",
            )
        refuse_codes_out(out)
        return out

    try:
        with compiling(), contextlib.nullcontext() if calls is None else calls.followed():
            traced = trace(
                flat, inputs, joint=False, names=names, fake_mode=mode, whole=True, record_stack=True, as_written=True
            )
    except DataDependentOutputException as e:
        raise user_error(UserErrorType.DYNAMIC_CONTROL_FLOW, f"{e}") from e
    symbols.check()
    ranges = symbols.ranges()
    spread(traced)
    gm, constants, specs = _lift(traced.gm, owner, held, leaves, fakes)
    signature = ExportGraphSignature(specs, outputs(gm, []))
    state = {name: h.tensor for h in held if h.persistent is not False for name in h.names}
    paths = [path for path, _, _ in rows]
    return ExportedProgram(
        gm,
        signature,
        state,
        constants,
        ranges,
        Checks.of(leaves, fakes, paths, env, ranges),
        CallSpec(in_spec, out_spec[0]),
        in_spec.unflatten(leaves),
        [] if calls is None else calls.entries(),
    )


def _fake_inputs(mode, symbols: Symbols, leaves: list, rows: list) -> list:
    out: list[Any] = []
    for leaf, (path, _, spec) in zip(leaves, rows):
        if isinstance(leaf, _C.TensorBase):
            if isinstance(leaf, FakeTensor):
                raise user_error(UserErrorType.INVALID_INPUT, f"{path} is a FakeTensor: give an example with data")
            sizes = {
                d: {"given": symbols.size(leaf.shape[d], spec[d], f"{path}.size()[{d}]")} for d in sorted(spec or ())
            }
            dynamic = any(not isinstance(s["given"], int) for s in sizes.values())
            out.append(
                mode.from_tensor(
                    leaf.detach(),  # each input is its own, though the example may be one tensor twice
                    static_shapes=not dynamic,
                    symbolic_context=sizes.get,
                    source=lambda part, path=path: f"{path}.{part[0]}()[{part[1]}]",
                )
            )
        elif spec is not None:
            static = spec.kind == "STATIC" or (leaf in (0, 1) and spec.kind == "AUTO")
            out.append(leaf if static else symbols.number(leaf, spec, path))
        else:
            out.append(leaf)
    return out


class _Held:
    """A parameter or buffer of the module, under one or several names."""

    def __init__(self, kind: InputKind, names: list[str], tensor, persistent: bool | None = None):
        self.kind, self.names, self.tensor, self.persistent = kind, names, tensor, persistent


def _held(mod: nn.Module) -> list[_Held]:
    lasting = set(mod.state_dict(keep_vars=True))
    found: dict[int, _Held] = {}
    for kind, named in (
        (InputKind.PARAMETER, mod.named_parameters(remove_duplicate=False)),
        (InputKind.BUFFER, mod.named_buffers(remove_duplicate=False)),
    ):
        for name, t in named:
            if is_quantized(t):
                continue  # its parts are constants
            persistent = None if kind is InputKind.PARAMETER else name in lasting
            found.setdefault(id(t), _Held(kind, [], t, persistent)).names.append(name)
    return list(found.values())


def _names(paths: list[str], held: list[_Held]) -> list[str]:
    """Names of placeholders: PyTorch's."""
    taken: set[str] = set()
    out = []
    prefixes = {InputKind.PARAMETER: "p_", InputKind.BUFFER: "b_"}
    for text in [*(prefixes[h.kind] + h.names[0] for h in held), *paths]:
        name = "".join(c if c.isalnum() else "_" for c in re.sub(r"\['?([^\]']*)'?\]", r"_\1", text)) or "arg"
        name = f"_{name}" if name[0].isdigit() else name
        base, n = name, 0
        while name in taken:
            n += 1
            name = f"{base}_{n}"
        taken.add(name)
        out.append(name)
    return out


def _lift(gm: GraphModule, owner, held: list[_Held], leaves: list, fakes: list):
    """(graph with its constant tensors as inputs, constants by name, input specs)."""
    graph = gm.graph
    nodes = [n for n in graph.nodes if n.op == "placeholder"]
    constants = {name: h.tensor for h in held if h.persistent is False for name in h.names}
    specs = [InputSpec(h.kind, TensorArgument(n.name), h.names[0], h.persistent) for h, n in zip(held, nodes)]
    attributes = {id(v): n for n, v in _attributes(owner)}
    first = nodes[len(held)] if len(nodes) > len(held) else None
    lifted = 0
    for n in [n for n in graph.nodes if n.op == "get_attr"]:
        tensor = getattr(gm, n.target)
        if not isinstance(tensor, _C.TensorBase):
            continue  # a body of an operator
        target = attributes.get(id(tensor), f"lifted_tensor_{lifted}")
        lifted += target not in attributes.values()
        with graph.inserting_before(first or next(m for m in graph.nodes if m.op != "placeholder")):
            fresh = graph.placeholder(f"c_{target}".replace(".", "_"))
        fresh.meta.update(n.meta)
        n.replace_all_uses_with(fresh)
        graph.erase_node(n)
        constants[target] = tensor
        specs.append(InputSpec(InputKind.CONSTANT_TENSOR, TensorArgument(fresh.name), target))
    for leaf, fake, n in zip(leaves, fakes, nodes[len(held) :]):
        specs.append(InputSpec(InputKind.USER_INPUT, argument(n, fake, leaf), None))
    bodies = {n.target: getattr(gm, n.target) for n in graph.nodes if n.op == "get_attr"}
    return GraphModule(bodies, graph), constants, specs


def _attributes(mod):
    """Tensors that are plain attributes of a module or of those inside, or that quantised ones there are made of."""
    if isinstance(mod, nn.Module):
        for prefix, m in mod.named_modules():
            for n, v in vars(m).items():
                yield from named_tensors(f"{prefix}.{n}" if prefix else n, v)
