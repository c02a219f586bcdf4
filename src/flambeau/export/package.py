"""``aoti_compile_and_package``: an exported program compiled for this kind of machine, in one file that another process loads and calls.

The file is a zip of object code, weights, the launch program and the checks of a call; ``manifest.json`` has the machine, the version and a
digest of every member. Loading one runs its machine code when it is called: it is for files that you or your administrator made. A file that
somebody else owns, or that everybody may write to, is refused; so is one for other CPU features, of another version, or damaged. The digests
find damage, not forgery."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import stat
from collections.abc import Callable
from typing import Any

from .. import _C
from ..autograd.grad_mode import no_grad
from ..base import disk
from ..base.symint import NUMBERS
from ..core.tensor import Tensor
from ..fx import Graph, GraphModule, Node
from ..inductor.compile import compile_graph
from ..inductor.machine import cache, llvm
from ..inductor.runtime.plan_rows import read_plan, write_plan
from ..inductor.settings import config
from ..proxy.encoding import Decoder, Encoder, NotEncodable
from ..version import __version__
from .archive import read_checks, read_signature, read_zip, write_checks, write_signature, write_zip
from .decompositions import without_switches
from .exported_module import check_overlap, flat_inputs
from .exported_program import ExportedProgram
from .graph_signature import InputKind, OutputKind
from .structure import Structure
from .weights import read_weights, write_weights

__all__ = ["AOTICompiledModel", "aoti_compile_and_package", "aoti_load_package"]

FORMAT, VERSION = "flambeau compiled package", 1


def aoti_compile_and_package(
    exported_program: ExportedProgram,
    _unused: Any = None,
    _unused_kwargs: Any = None,
    *,
    package_path: Any = None,
    inductor_configs: dict[str, Any] | None = None,
) -> str:
    """Compile ``exported_program`` for CPUs with the features of this one and write it to ``package_path`` (a name that ends in ``.pt2``, or a
    binary file; by default a file in the cache folder). ``inductor_configs``: settings of ``torch._inductor.config`` for it. The path.

    TypeError for what isn't an exported program or can't be written; RuntimeError for another kind of path."""
    if not isinstance(exported_program, ExportedProgram):
        raise TypeError(f"aoti_compile_and_package takes an ExportedProgram, got {type(exported_program).__name__}")
    is_file = hasattr(package_path, "write")
    if package_path is not None and not is_file and not os.fspath(package_path).endswith(".pt2"):
        raise RuntimeError(
            f"Expect package path to be a file ending in .pt2, is None, or is a buffer. Instead got {package_path}"
        )
    with config.patch(inductor_configs or {}):
        members = _compile(exported_program)
    if package_path is None:
        digest = hashlib.sha256(b"".join(members.values())).hexdigest()[:32]
        package_path = os.path.join(disk.root(), "packages", f"{digest}.pt2")
        os.makedirs(os.path.dirname(package_path), mode=0o700, exist_ok=True)
    cpu, features = llvm.host()
    manifest = {
        "version": __version__,
        "machine": platform.machine(),
        "system": platform.system(),
        "cpu": cpu,
        "features": sorted(f[1:] for f in features.split(",") if f.startswith("+")),
        "digests": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    head = {"archive_format": FORMAT.encode(), "version": str(VERSION).encode()}
    write_zip(package_path, {**head, "manifest.json": json.dumps(manifest).encode(), **members})
    return package_path if is_file else os.fspath(package_path)


def _compile(ep: ExportedProgram) -> dict[str, bytes]:
    ep = ep.run_decompositions()
    gm, inputs, outputs = _computing(ep)
    graph = compile_graph(gm, [n.meta["val"] for n in gm.graph.nodes if n.op == "placeholder"])
    enc = Encoder()
    constants: list = []
    texts: dict[str, str] = {}
    _collect_kernels(graph, texts)
    tensors = {}
    for s in ep.graph_signature.input_specs:
        if s.kind is not InputKind.USER_INPUT:
            tensors[f"{s.kind.name} {s.target}"] = ep.tensor_of(s)
    try:
        plan = write_plan(graph.info.plan, enc, constants)
        rows = {
            "plan": plan,
            "inputs": inputs,
            "outputs": [x if x[0] != "constant" else ["constant", enc.argument(x[1], {})] for x in outputs],
            "constants": len(constants),
            "kernels": sorted(texts),
            "signature": write_signature(ep.graph_signature, enc),
            "checks": write_checks(ep._checks, enc),
            "in_spec": ep.call_spec.in_spec.to_rows(),
            "out_spec": ep.call_spec.out_spec.to_rows(),
        }
    except NotEncodable as e:
        raise TypeError(f"this exported program can't be packaged: {e}") from e
    rows["symbols"] = enc.symbol_rows()
    arrays = {f"constant {k}": c for k, c in enumerate(constants)}
    return {
        "program.json": json.dumps(rows).encode(),
        "weights.safetensors": write_weights({**tensors, **arrays}),
        **{f"kernels/{name}": cache.object_code(name, text) for name, text in texts.items()},
    }


def _collect_kernels(graph: Any, texts: dict[str, str]) -> None:
    texts.update(graph.info.kernels)
    for body in graph.info.plan.body_graphs():
        _collect_kernels(body, texts)


def _computing(ep: ExportedProgram) -> tuple[GraphModule, list[int], list[list]]:
    """(the graph of what is computed, which inputs it takes, where each output comes from: the graph, an input, or a constant)."""
    new, env = Graph(), {}
    inputs: list[int] = []
    at = -1
    computed: list[Node] = []
    outputs: list[list] = []
    graph_module = without_switches(ep.graph_module)  # a package records no gradients
    for n in graph_module.graph.nodes:
        if n.op == "placeholder":
            at += 1
            if isinstance(n.meta["val"], (_C.TensorBase, *NUMBERS)):
                inputs.append(at)
                env[n] = new.node_copy(n, env.__getitem__)
        elif n.op != "output":
            env[n] = new.node_copy(n, env.__getitem__)
            continue
        else:
            placeholders = [m for m in graph_module.graph.nodes if m.op == "placeholder"]
            for v in n.args[0]:
                if not isinstance(v, Node):
                    outputs.append(["constant", v])
                elif v.op == "placeholder":
                    outputs.append(["input", placeholders.index(v)])
                else:
                    if v not in computed:
                        computed.append(v)
                    outputs.append(["graph", computed.index(v)])
    new.output(tuple(env[v] for v in computed))
    bodies = {n.target: getattr(graph_module, n.target) for n in new.nodes if n.op == "get_attr"}
    gm = GraphModule(bodies, new)
    gm.graph.eliminate_dead_code()
    return gm, inputs, outputs


# -- loading -----------------------------------------------------------------------------------------------------------


def aoti_load_package(
    path: Any, model_name: str = "model", run_single_threaded: bool = False, **options
) -> AOTICompiledModel:
    """What :func:`aoti_compile_and_package` wrote, as a callable. ``path``: a name or a binary file; naming a file is trusting its code.

    PermissionError for a file that another user owns or that everybody may write to; RuntimeError for one that is damaged, of another version
    or for another machine, naming what differs."""
    if options.get("device_index", -1) not in (-1, None):
        raise NotImplementedError("aoti_load_package: there are no devices to choose from")
    data = _read_trusted(path)
    members = read_zip(io.BytesIO(data), FORMAT, VERSION)
    manifest = _check_manifest(members, path)
    try:
        return AOTICompiledModel(members, manifest)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as e:
        raise RuntimeError(f"the package {path} can't be read: {type(e).__name__}: {e}") from e


def _read_trusted(path: Any) -> bytes:
    """The bytes of a file that nobody else may write to. What is in memory is the caller's to trust."""
    if not hasattr(path, "read"):
        # Not blocking: a pipe of that name would be waited for.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as f:
            return _read_trusted(f)
    try:
        descriptor = path.fileno()
    except (AttributeError, OSError):
        return path.read()
    found = os.fstat(descriptor)
    why = None
    if not stat.S_ISREG(found.st_mode):
        why = "it is no file"
    elif found.st_uid not in (os.geteuid(), 0):
        why = "another user owns it"
    elif found.st_mode & stat.S_IWOTH:
        why = "everybody may write to it"
    if why is not None:
        name = getattr(path, "name", path)
        raise PermissionError(f"the package {name} holds machine code and is not loaded: {why}")
    return path.read()


def _check_manifest(members: dict[str, bytes], path: Any) -> dict:
    try:
        manifest = json.loads(members.pop("manifest.json"))
        digests = manifest["digests"]
        for key in ("version", "machine", "system", "cpu", "features"):
            manifest[key]
    except (KeyError, TypeError, ValueError) as e:
        raise RuntimeError(f"the package {path} is damaged: {type(e).__name__}: {e}") from e
    for key, here in (("version", __version__), ("system", platform.system()), ("machine", platform.machine())):
        if manifest[key] != here:
            raise RuntimeError(f"the package {path} was made for {key} {manifest[key]!r}, this is {here!r}")
    _, features = llvm.host()
    missing = sorted(set(manifest["features"]) - {f[1:] for f in features.split(",") if f.startswith("+")})
    if missing:
        raise RuntimeError(
            f"the package {path} was compiled for the CPU {manifest['cpu']!r}; this one lacks {', '.join(missing)}"
        )
    for name in ("archive_format", "version"):
        members.pop(name)
    if set(digests) != set(members):
        raise RuntimeError(f"the package {path} is damaged: it should hold {sorted(digests)}")
    for name, data in members.items():
        if hashlib.sha256(data).hexdigest() != digests[name]:
            raise RuntimeError(f"the package {path} is damaged: {name} isn't what was written")
    return manifest


class AOTICompiledModel:
    """A loaded package: called as the program was, it runs machine code; nothing is captured or compiled. Results carry no gradient."""

    def __init__(self, members: dict[str, bytes], manifest: dict):
        rows = json.loads(members["program.json"])
        weights = read_weights(members["weights.safetensors"])
        addresses = _load_kernels(members, rows["kernels"])
        dec = Decoder(rows["symbols"])
        constants = [weights[f"constant {k}"]._array for k in range(rows["constants"])]
        plan = read_plan(rows["plan"], dec, constants, addresses)
        self._graph = plan.bind(addresses, manifest)
        self._manifest = manifest
        self._inputs, self._outputs = (
            rows["inputs"],
            [[k, dec.argument(x, []) if k == "constant" else x] for k, x in rows["outputs"]],
        )
        self._signature = read_signature(rows["signature"], dec)
        self._check: Callable = read_checks(rows["checks"], dec).function()
        self._in_spec, self._out_spec = Structure.from_rows(rows["in_spec"]), Structure.from_rows(rows["out_spec"])
        self._tensors = {
            s.target: weights[f"{s.kind.name} {s.target}"]
            for s in self._signature.input_specs
            if s.kind is not InputKind.USER_INPUT
        }
        # For each input of the graph the name of a tensor of the module, or the number of a leaf.
        leaves = iter(range(len(self._signature.input_specs)))
        places = [s.target if s.kind is not InputKind.USER_INPUT else next(leaves) for s in self._signature.input_specs]
        self._places = places
        self._taken = [places[k] for k in self._inputs]
        specs = self._signature.output_specs
        self._writes = [(k, s) for k, s in enumerate(specs) if s.kind is not OutputKind.USER_OUTPUT]

    def __call__(self, *args, **kwargs):
        """The program's result. AssertionError where the call violates a constraint, ValueError where its structure is another."""
        leaves = flat_inputs(self._in_spec, args, kwargs)
        self._check(*leaves)
        given = [self._tensors[p] if isinstance(p, str) else _stored(leaves[p]) for p in self._taken]
        if self._writes:
            named = zip(self._signature.input_specs, self._places)
            by_name = {s.arg.name: self._tensors[p] if isinstance(p, str) else leaves[p] for s, p in named}
            check_overlap(self._signature, by_name)
        with no_grad():
            results = self._graph(*given)
            outs = []
            for kind, x in self._outputs:
                if kind == "graph":
                    outs.append(results[x])
                elif kind == "input":
                    p = self._places[x]
                    outs.append(self._tensors[p] if isinstance(p, str) else leaves[p])
                else:
                    outs.append(x)
            for k, s in self._writes:
                target = by_name[s.target] if s.kind is OutputKind.USER_INPUT_MUTATION else self._tensors[s.target]
                target.copy_(outs[k])
        return self._out_spec.unflatten(outs[len(self._writes) :])

    def get_metadata(self) -> dict[str, str]:
        """The machine and the version that the package was made for."""
        return {k: str(v) for k, v in self._manifest.items() if k != "digests"}

    def get_constant_fqns(self) -> list[str]:
        """Names of the parameters, buffers and constants."""
        return list(self._tensors)

    def load_constants(
        self, constants_map: dict[str, Any], *, check_full_update: bool = True, user_managed: bool = False
    ) -> None:
        """Replace tensors by copies of others of the same shape and dtype; all of them unless ``check_full_update`` is False. RuntimeError for
        names that are unknown or missing, and for tensors that don't fit; then nothing is replaced."""
        unknown = sorted(set(constants_map) - set(self._tensors))
        missing = sorted(set(self._tensors) - set(constants_map)) if check_full_update else []
        if unknown or missing:
            raise RuntimeError(f"load_constants: unknown names {unknown}, missing names {missing}")
        for name, t in constants_map.items():
            own = self._tensors[name]
            if t.shape != own.shape or t.dtype is not own.dtype:
                raise RuntimeError(
                    f"load_constants: {name} is {own.dtype} of shape {list(own.shape)}, got {t.dtype} of shape {list(t.shape)}"
                )
        with no_grad():
            for name, t in constants_map.items():
                if user_managed:
                    self._tensors[name] = t.detach()
                else:
                    self._tensors[name].copy_(t)


def _stored(x: Any) -> Any:
    """What kernels can read of an input: one that is conjugated or negated lazily is computed."""
    return x.resolve_conj().resolve_neg() if isinstance(x, Tensor) and (x.is_conj() or x.is_neg()) else x


def _load_kernels(members: dict[str, bytes], names: list[str]) -> dict[str, int]:
    out: dict[str, int] = {}
    engine = llvm.new_engine() if names else None  # of its own: names of other code mean other code
    for name in names:
        data = members[f"kernels/{name}"]
        if not cache.is_object(data, name):
            raise ValueError(f"kernels/{name} is no object code of that name")
        out.update(llvm.load_object(data, [name], engine))
    return out
