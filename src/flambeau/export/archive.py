"""``save`` and ``load``: an exported program as a zip file of JSON and weights.

Members, stored without compression: ``archive_format`` and ``version``; ``model.json`` (graph, signature, structures, constraints);
``weights.safetensors``; ``extra/NAME``. What is read is checked and built from tables: no pickle, no code, no import. Running the program
calls the operators that the graph names, and nothing else."""

from __future__ import annotations

import io
import json
import keyword
import os
import re
import zipfile
from typing import Any

from .. import _C, nn
from ..base.expr import INF
from ..fx import Graph, Node
from ..proxy.encoding import Decoder, Encoder, NotEncodable, dtype
from . import graph_signature as sig
from .constraints import Checks, ValueRanges
from .exported_program import CallSpec, ExportedProgram
from .module_calls import ModuleCallEntry, ModuleCallSignature
from .structure import Structure
from .weights import read_weights, write_weights

__all__ = [
    "load",
    "read_checks",
    "read_program",
    "read_signature",
    "read_zip",
    "save",
    "write_checks",
    "write_program",
    "write_signature",
    "write_zip",
]

FORMAT, VERSION = "flambeau exported program", 2


def save(
    ep: ExportedProgram,
    f: Any,
    *,
    extra_files: dict[str, Any] | None = None,
    opset_version: dict[str, int] | None = None,
    pickle_protocol: int = 2,
) -> None:
    """Write ``ep`` to a path or binary file; ``extra_files``: names and contents (text or bytes) that travel with it. TypeError for what a
    file can't hold (functions, tensors without data, containers with odd keys)."""
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    members = write_program(ep)
    for name, content in (extra_files or {}).items():
        members[f"extra/{name}"] = content.encode() if isinstance(content, str) else bytes(content)
    write_zip(f, {"archive_format": FORMAT.encode(), "version": str(VERSION).encode(), **members})


def load(
    f: Any, *, extra_files: dict[str, Any] | None = None, expected_opset_version: dict[str, int] | None = None
) -> ExportedProgram:
    """The program that :func:`save` wrote. ``extra_files``: its keys get the contents of that name. RuntimeError for what is no such file, is
    damaged, of another version, or names an operator that isn't known here."""
    members = read_zip(f, FORMAT, VERSION)
    for name in extra_files or ():
        if f"extra/{name}" not in members:
            raise RuntimeError(f"the file holds no extra file {name!r}")
        extra_files[name] = members[f"extra/{name}"].decode()
    return read_program(members)


def write_zip(f: Any, members: dict[str, bytes]) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        for name, data in members.items():
            z.writestr(zipfile.ZipInfo(name), data)
    if hasattr(f, "write"):
        f.write(out.getvalue())
        return
    path = os.fspath(f)
    made = f"{path}.part{os.getpid()}"
    try:
        with open(made, "wb") as file:
            file.write(out.getvalue())
        os.replace(made, path)
    finally:
        if os.path.exists(made):
            os.unlink(made)


def read_zip(f: Any, kind: str, version: int) -> dict[str, bytes]:
    """The members of a file of this kind. RuntimeError when it isn't one, or is damaged."""
    name = getattr(f, "name", f)
    try:
        with zipfile.ZipFile(f) as z:
            if any(i.compress_type != zipfile.ZIP_STORED for i in z.infolist()):
                raise RuntimeError(f"{name} is no {kind}: its members are compressed")
            members = {i.filename: z.read(i) for i in z.infolist()}
    except FileNotFoundError:
        raise
    except (zipfile.BadZipFile, EOFError, NotImplementedError, ValueError, OSError) as e:
        raise RuntimeError(f"{name} is no {kind}, or is damaged: {e}") from e
    if members.get("archive_format") != kind.encode():
        raise RuntimeError(f"{name} is no {kind}")
    found = members.get("version", b"").decode(errors="replace")
    if found != str(version):
        raise RuntimeError(f"{name} has version {found} of the format ({kind}), this program reads version {version}")
    return members


# -- programs as members ---------------------------------------------------------------------------------------------


def write_program(ep: ExportedProgram) -> dict[str, bytes]:
    """``model.json`` and ``weights.safetensors``."""
    enc = Encoder(with_lines=True)
    tensors: dict[str, Any] = {}
    keys: dict[int, str] = {}

    def keep(name: str, t) -> dict:
        key = keys.setdefault(id(t), name)
        tensors.setdefault(key, t)
        return {"key": key, "parameter": isinstance(t, nn.Parameter), "requires_grad": bool(t.requires_grad)}

    try:
        rows = {
            "graph": enc.graph(ep.graph_module),
            "signature": write_signature(ep.graph_signature, enc),
            "state": {n: keep(n, t) for n, t in ep.state_dict.items()},
            "constants": {n: keep(n, t) for n, t in ep.constants.items()},
            "ranges": [[enc.expr(e), *_ends(r)] for e, r in ep.range_constraints.items()],
            "checks": write_checks(ep._checks, enc),
            "in_spec": ep.call_spec.in_spec.to_rows(),
            "out_spec": ep.call_spec.out_spec.to_rows(),
            "examples": _write_examples(ep, enc, keep),
            "modules": [_write_entry(m, enc) for m in ep._modules],
            "calls": {n.name: _write_calls(n) for n in ep.graph.nodes if "nn_module_stack" in n.meta},
        }
    except NotEncodable as e:
        raise TypeError(f"this exported program can't be saved: {e}") from e
    rows["symbols"] = enc.symbol_rows()
    return {"model.json": json.dumps(rows).encode(), "weights.safetensors": write_weights(tensors)}


def _write_examples(ep: ExportedProgram, enc: Encoder, keep) -> list | None:
    if ep.example_inputs is None:
        return None
    leaves, _ = Structure.flatten(ep.example_inputs)
    return [
        ["tensor", keep(f"example.{k}", v)] if isinstance(v, _C.TensorBase) else enc.argument(v, {})
        for k, v in enumerate(leaves)
    ]


def _write_entry(m: ModuleCallEntry, enc: Encoder) -> list:
    s = m.signature
    if s is None:
        return [m.fqn, m.same_as, None]
    inputs, outputs = ([_argument(a, enc) for a in part] for part in (s.inputs, s.outputs))
    return [m.fqn, m.same_as, [inputs, outputs, s.in_spec.to_rows(), s.out_spec.to_rows(), s.forward_arg_names]]


def _read_entry(row: list, dec: Decoder) -> ModuleCallEntry:
    fqn, same_as, rows = row
    if not _is_path(fqn) or (same_as is not None and not _is_path(same_as)):
        raise ValueError(f"a submodule may not be called {fqn!r}")
    if rows is None:
        return ModuleCallEntry(fqn, None, same_as)
    inputs, outputs, in_spec, out_spec, names = rows
    if names is not None and not all(map(_is_name, names)):
        raise ValueError(f"arguments may not be called {names}")
    inputs, outputs = ([_read_argument(a, dec) for a in part] for part in (inputs, outputs))
    specs = Structure.from_rows(in_spec), Structure.from_rows(out_spec)
    return ModuleCallEntry(fqn, ModuleCallSignature(inputs, outputs, *specs, names), same_as)


def _write_calls(n: Node) -> list:
    return [[key, name, cls] for key, (name, cls) in n.meta["nn_module_stack"].items()]


def _read_calls(rows: dict, graph: Graph) -> None:
    """Give the nodes the calls of modules that they belong to."""
    named = {n.name: n for n in graph.nodes}
    for name, calls in rows.items():
        bad = next((c for _, c, _ in calls if c and not _is_path(c)), None)
        if bad is not None:
            raise ValueError(f"a submodule may not be called {bad!r}")
        named[name].meta["nn_module_stack"] = {key: (c, cls) for key, c, cls in calls}


def _is_path(name: Any) -> bool:
    """Whether a name can be that of a submodule: parts without quotes, for they stand in generated code."""
    return type(name) is str and re.fullmatch(r"[\w@-]+(\.[\w@-]+)*", name) is not None


def _is_name(name: Any) -> bool:
    return type(name) is str and name.isidentifier() and not keyword.iskeyword(name)


def _ends(r: ValueRanges) -> tuple:
    return tuple(None if n in (-INF, INF) else n for n in (r.lower, r.upper))


def _argument(a: Any, enc: Encoder) -> list:
    return [type(a).__name__, a.name, enc.argument(a.value, {}) if isinstance(a, sig.ConstantArgument) else None]


def write_signature(s: sig.ExportGraphSignature, enc: Encoder) -> dict:
    inputs = [[i.kind.name, _argument(i.arg, enc), i.target, i.persistent] for i in s.input_specs]
    return {"inputs": inputs, "outputs": [[o.kind.name, _argument(o.arg, enc), o.target] for o in s.output_specs]}


def read_signature(rows: dict, dec: Decoder) -> sig.ExportGraphSignature:
    return sig.ExportGraphSignature(
        [sig.InputSpec(sig.InputKind[k], _read_argument(a, dec), t, p) for k, a, t, p in rows["inputs"]],
        [sig.OutputSpec(sig.OutputKind[k], _read_argument(a, dec), t) for k, a, t in rows["outputs"]],
    )


def write_checks(c: Checks, enc: Encoder) -> dict:
    inputs = []
    for kind, *rest in c.inputs:
        if kind == "tensor":
            inputs.append([kind, rest[0].name, [enc.expr(e) for e in rest[1]]])
        else:
            inputs.append([kind, enc.expr(rest[0]) if kind == "number" else enc.argument(rest[0], {})])
    return {
        "inputs": inputs,
        "names": c.names,
        "guards": [[enc.expr(r), line] for r, line in c.guards],
        "bindings": [[enc.expr(s), list(where)] for s, where in c.bindings.items()],
        "ranges": [[enc.expr(s), *_ends(r)] for s, r in c.ranges.items()],
    }


def read_program(members: dict[str, bytes]) -> ExportedProgram:
    """RuntimeError where the members aren't what :func:`write_program` made."""
    try:
        rows = json.loads(members["model.json"])
        tensors = read_weights(members["weights.safetensors"])
        made: dict[str, Any] = {}

        def tensor(row: dict):
            if row["key"] not in made:
                t = tensors[row["key"]]
                made[row["key"]] = (
                    nn.Parameter(t, row["requires_grad"])
                    if row["parameter"]
                    else t.requires_grad_(row["requires_grad"])
                )
            return made[row["key"]]

        dec = Decoder(rows["symbols"])
        signature = read_signature(rows["signature"], dec)
        in_spec = Structure.from_rows(rows["in_spec"])
        examples = rows["examples"]
        if examples is not None:
            leaves = [
                tensor(x[1]) if isinstance(x, list) and x[0] == "tensor" else dec.argument(x, []) for x in examples
            ]
            examples = in_spec.unflatten(leaves)
        gm = dec.graph(rows["graph"])
        _read_calls(rows["calls"], gm.graph)
        program = ExportedProgram(
            gm,
            signature,
            {n: tensor(t) for n, t in rows["state"].items()},
            {n: tensor(t) for n, t in rows["constants"].items()},
            _read_ranges(rows["ranges"], dec),
            read_checks(rows["checks"], dec),
            CallSpec(in_spec, Structure.from_rows(rows["out_spec"])),
            examples,
            [_read_entry(m, dec) for m in rows["modules"]],
        )
        program.validate()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as e:
        raise RuntimeError(f"the exported program can't be read: {type(e).__name__}: {e}") from e
    return program


def _read_argument(row: list, dec: Decoder) -> Any:
    kind, name, value = row
    if kind not in sig.__all__ or not kind.endswith("Argument"):
        raise ValueError(f"an argument of kind {kind!r} is unknown")
    cls = getattr(sig, kind)
    return cls(name, dec.argument(value, [])) if cls is sig.ConstantArgument else cls(name)


def _read_ranges(rows: list, dec: Decoder) -> dict:
    return {dec.expr(e): ValueRanges(_whole(lo, -INF), _whole(hi, INF)) for e, lo, hi in rows}


def _whole(n: Any, otherwise: Any) -> Any:
    if n is not None and type(n) is not int:
        raise ValueError(f"{n!r} is no integer")
    return otherwise if n is None else n


def _binding(row: list) -> tuple:
    k, what, *numbers = row
    if what not in ("size", "stride", "value") or any(type(n) is not int for n in (k, *numbers)):
        raise ValueError(f"a symbol is bound to {row}")
    return tuple(row)


def read_checks(rows: dict, dec: Decoder) -> Checks:
    inputs: list[tuple] = []
    for kind, *rest in rows["inputs"]:
        if kind == "tensor":
            inputs.append((kind, dtype(rest[0]), tuple(map(dec.expr, rest[1]))))
        else:
            inputs.append((kind, dec.expr(rest[0]) if kind == "number" else dec.argument(rest[0], [])))
    return Checks(
        inputs,
        rows["names"],
        [(dec.expr(r), line) for r, line in rows["guards"]],
        {dec.expr(s): _binding(where) for s, where in rows["bindings"]},
        _read_ranges(rows["ranges"], dec),
    )
