"""Library: a fragment of a namespace. ``define`` adds an operator, ``impl`` a kernel for a key; both are undone by ``_destroy``."""

from __future__ import annotations

import contextlib
import weakref

from .. import _C
from ..base.device import Device
from ..base.public import public_in
from ..base.pytree import tree_map
from ..core import bindings, modes
from ..core import keys as K
from ..core.definition import Composite, Extern, TensorMeta
from ..core.dispatch import excluding
from ..core.operator import OpOverload, decomposed, namespace, namespaces
from ..core.schema import parse_checked
from ..core.tensor import meta_tensor
from ..fake import FakeTensor, FakeTensorMode
from ..fake.meta import common_device, meta_of
from . import fake_context
from .fallback import Fallback, recording

__all__ = ["Library", "call", "define", "fallthrough_kernel", "find", "impl", "run_on_fakes", "scoped_library"]

_ABOVE = K.PYTHON | K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM
_EXPLICIT = {"CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"}
_AUTOGRAD = {"Autograd", "AutogradCPU"}
_ELSEWHERE = {
    "CUDA",
    "XPU",
    "MPS",
    "HPU",
    "AutogradCUDA",
    "SparseCPU",
    "QuantizedCPU",
    "PrivateUse1",
}  # devices that aren't here
_KEYS = {"CPU", "Meta", "CompositeImplicitAutograd", *_EXPLICIT, *_AUTOGRAD, *_ELSEWHERE}
_defined: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()  # by namespace, its DEF library


def fallthrough_kernel():
    """Given to ``impl``: the key does nothing, the call goes on below it."""
    raise NotImplementedError("fallthrough_kernel() should never be called")


def find(qualname) -> OpOverload:
    """The operator for ``"ns::name"``, ``"ns::name.overload"``, an OpOverload or a custom op."""
    if isinstance(qualname, OpOverload):
        return qualname
    qualname = getattr(qualname, "_qualname", qualname)
    if not isinstance(qualname, str) or "::" not in qualname:
        raise ValueError(f'expected an operator or its name in the form "namespace::name", got {qualname!r}')
    ns, name = qualname.split("::")
    name, _, overload = name.partition(".")
    packet = namespace(ns)._packet(name)
    if packet is None:
        raise RuntimeError(f"operator {ns}::{name} does not exist")
    return getattr(packet, overload or "default")


_later: dict[str, list] = {}  # name of an operator that isn't defined yet -> what to do with it then


def when_defined(qualname, action) -> bool:
    """Whether ``action(operator)`` has to wait for the definition of ``"ns::name"``, as a library's registrations for its native part do."""
    if not isinstance(qualname, str) or "::" not in qualname:
        return False
    ns, _, name = qualname.partition("::")
    if ns == "aten" or namespace(ns)._packet(name.partition(".")[0]) is not None:
        return False
    _later.setdefault(qualname.removesuffix(".default"), []).append(action)
    return True


def call(op: OpOverload, fn, values):
    """``fn`` on all arguments in schema order, keyword-only ones by name; a suffix that equals the defaults is left out."""
    args, kwargs = op.normalize(*op.split(values))
    return fn(*args, **kwargs)


def _missing(op: OpOverload):
    def run(*args):
        if not any(
            a.is_tensor and v is not None and not (a.is_list and not len(v))
            for a, v in zip(op._schema.arguments, args, strict=False)
        ):
            raise NotImplementedError(
                f"There were no tensor arguments to this function (e.g., you passed an empty list of Tensors), but no fallback function "
                f"is registered for schema {op.name()}: give it a kernel with Library.impl(name, fn, 'CompositeExplicitAutograd')."
            )
        raise NotImplementedError(
            f"Could not run '{op.name()}' with arguments from the 'CPU' backend. This could be because the operator "
            "doesn't exist for this backend: give it a kernel with Library.impl(name, fn, 'CPU')."
        )

    return run


def _without_derivative(op: OpOverload):
    """Formulas that raise when the backward pass comes to them."""

    def formula(ct):
        raise RuntimeError(
            f"Trying to backward through {op.name()} but no autograd formula was registered. Please use register_autograd "
            "to add one."
        )

    return {a.name: formula for a in op._schema.arguments if a.is_tensor and not a.is_write}


def metas_of(out, device=None):
    """TensorMeta of what a shape function returned."""

    def one(x):
        if not isinstance(x, _C.TensorBase):
            return x
        m = meta_of(x)
        return m if device is None else TensorMeta(m.shape, m.strides, m.dtype, device, m.offset)

    if isinstance(out, (list, tuple)):
        return type(out)(metas_of(x, device) for x in out)
    return one(out)


def run_on_fakes(op: OpOverload, fn):
    """The facet "meta" from a function on fake tensors."""

    def meta(*values):
        flat = [x for v in values for x in (v if isinstance(v, (list, tuple)) else [v])]
        mode = next((x.fake_mode for x in flat if isinstance(x, FakeTensor)), None) or FakeTensorMode(
            allow_non_fake_inputs=True
        )

        def fake(x):
            if isinstance(x, TensorMeta):
                return FakeTensor(mode, x)
            return mode.from_tensor(x) if isinstance(x, _C.TensorBase) else x

        with modes.disabled("dispatch"), excluding(K.FUNCTIONALIZE | K.AUTOGRAD | K.TRANSFORM), mode:
            with fake_context.entered(op):
                return metas_of(call(op, fn, tree_map(fake, list(values))))

    return meta


def _run_on_meta(op: OpOverload, fn):
    """The facet "meta" from a kernel for tensors on the meta device."""

    def meta(*values):
        flat = [
            x
            for v in values
            for x in (v if isinstance(v, (list, tuple)) else [v])
            if isinstance(x, (_C.TensorBase, TensorMeta))
        ]

        def lower(x):
            return (
                meta_tensor(x)
                if isinstance(x, TensorMeta)
                else meta_tensor(meta_of(x))
                if isinstance(x, _C.TensorBase)
                else x
            )

        with excluding(_ABOVE):
            return metas_of(call(op, fn, tree_map(lower, list(values))), common_device(flat))

    return meta


@public_in("library")
class Library:
    """``Library(ns, "DEF")`` owns a namespace (one at a time), ``"FRAGMENT"`` adds to it, ``"IMPL"`` only gives kernels. What a library
    registered lives as long as the library. ValueError for another kind, and for ``prim``, which is reserved."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns == "prim" and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF":
            if ns in ("aten", "prim", "prims") or (ns in _defined):
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your definitions "
                    "in a single TORCH_LIBRARY block, or use Library(ns, 'FRAGMENT')."
                )
            _defined[ns] = self
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._ops: list[OpOverload] = []
        self._impls: dict[tuple, object] = {}  # (operator name, key) -> undo
        self._finalizer = weakref.finalize(self, _undo, self._ops, self._impls)
        self._finalizer.atexit = False

    def __repr__(self):
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})"

    def define(self, schema: str, alias_analysis: str = "", *, tags=()) -> str:
        """Add the operator; returns its name."""
        if self.kind == "IMPL":
            raise RuntimeError("Library.define() can't be used with a library of kind IMPL")
        parsed = parse_checked(schema, self.ns)
        ns, name = parsed.name.split("::")
        if ns != self.ns:
            raise RuntimeError(f"Library for namespace {self.ns} can't define {parsed.name}")
        packet = namespace(ns)._packets.get(name)
        if packet is not None and (parsed.overload_name or "default") in packet._overloads:
            raise RuntimeError(
                f"Tried to register an operator ({parsed}) with the same name and overload name multiple times."
            )
        op = OpOverload(ns, name, parsed.overload_name, Extern(None, None), schema=parsed)
        op.definition = Extern(None, _missing(op))
        op._schema_text = schema
        op.tags = list(tags) if isinstance(tags, (list, tuple, set, frozenset)) else [tags]
        # As PyTorch has it, where no tag says another constraint: a kernel of one's own may look at strides.
        op.override(
            "exact_strides",
            not {"flexible_layout", "needs_fixed_stride_order"} & {getattr(t, "value", t) for t in op.tags},
        )
        op.derivative(**_without_derivative(op))
        namespace(ns)._register(op)
        self._ops.append(op)
        for action in _later.pop(f"{ns}::{name}" + (f".{parsed.overload_name}" if parsed.overload_name else ""), ()):
            action(op)
        return op.name().split("::")[1]

    def impl(
        self,
        op_name,
        fn=None,
        dispatch_key: str = "",
        *,
        with_keyset=False,
        allow_override=False,
        autograd_fallback: bool = True,
    ):
        """Give ``op_name`` (a name of this namespace, or an OpOverload) the kernel ``fn`` for a key. A decorator without ``fn``. A kernel for CPU of
        an operator without one for autograd is run under the fallback of :mod:`.fallback`, unless ``autograd_fallback`` is False."""
        if fn is None:
            return lambda fn: (
                self.impl(
                    op_name,
                    fn,
                    dispatch_key,
                    with_keyset=with_keyset,
                    allow_override=allow_override,
                    autograd_fallback=autograd_fallback,
                )
                or fn
            )
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if dispatch_key and self.dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(
                f"Explicitly provided dispatch key ({dispatch_key}) is inconsistent with the dispatch key of the enclosing "
                f"TORCH_LIBRARY_IMPL block ({self.dispatch_key})"
            )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if isinstance(op_name, str):
            full = op_name if "::" in op_name else f"{self.ns}::{op_name}"
            if self.kind == "IMPL" and when_defined(
                full,
                lambda op: self.impl(
                    op, fn, dispatch_key, allow_override=allow_override, autograd_fallback=autograd_fallback
                ),
            ):
                return
            op = find(op_name if "::" in op_name else f"{self.ns}::{op_name}")
        else:
            op = find(op_name)
        if op.namespace != self.ns:
            raise RuntimeError(f"Library for namespace {self.ns} can't give {op.name()} a kernel")
        if (op, key) in self._impls and not allow_override:
            raise RuntimeError(
                f"This is not allowed since there's already a kernel registered from python overriding {op.name()}'s behavior "
                f"for {key} dispatch key and {self.ns} namespace."
            )
        if fn is fallthrough_kernel:
            if key not in _AUTOGRAD:
                raise NotImplementedError(f"fallthrough_kernel for the key {key} is not supported; it is for Autograd")
            if isinstance(op.overrides.get("autograd"), Fallback):
                del op.overrides["autograd"]
                _changed(op)
            return
        self._impls.setdefault((op, key), _snapshot(op))
        if key == "CPU" and autograd_fallback and op in self._ops and "autograd" not in op.overrides:
            op.override("autograd", Fallback(op, call))
        if key == "CPU" and isinstance(op.overrides.get("autograd"), Fallback):
            fn = recording(fn)
        _give(op, key, fn)

    @property
    def m(self):
        """What was registered; ``del library.m`` undoes it."""
        return self._impls

    @m.deleter
    def m(self):
        self._destroy()

    def _destroy(self):
        """Undo every define and impl."""
        _undo(self._ops, self._impls)
        if _defined.get(self.ns) is self:
            del _defined[self.ns]


def _undo(ops: list[OpOverload], impls: dict[tuple, object]) -> None:
    """Take back the kernels, then the operators; the lists are empty afterwards."""
    for undo in reversed(list(impls.values())):
        undo()
    for op in ops:
        space = namespace(op.namespace)
        packet = space._packets[op._opname]
        packet._remove(op._overloadname)
        packet._resolve = None
        if not packet._overloads:
            del space._packets[op._opname]
            space.__dict__.pop(op._opname, None)
    ops.clear()
    impls.clear()


@contextlib.contextmanager
def scoped_library(*args, **kwargs):
    """A Library that is undone when the block ends."""
    made = Library(*args, **kwargs)
    try:
        yield made
    finally:
        made._destroy()


def _snapshot(op: OpOverload):
    before = (op.definition, op.kind, dict(op.overrides), op.vjp_formulas)

    def undo():
        op.definition, op.kind, op.overrides, op.vjp_formulas = before
        _changed(op)

    return undo


def _changed(op: OpOverload) -> None:
    """Forget what was derived from the old definition, also for the in-place and out= operators made from it."""
    op.redefine()
    op.forget()
    op.__dict__.pop("_facets", None)
    for packet in (*namespaces[op.namespace]._packets.values(),):
        for other in packet._overloads.values():
            if getattr(other.definition, "functional", None) is op:
                other.forget()
                other.__dict__.pop("_facets", None)
    bindings.forget(op)


def _give(op: OpOverload, key: str, fn) -> None:
    run = lambda *values: call(op, fn, values)  # noqa: E731
    if key == "CompositeImplicitAutograd":
        op.definition, op.kind = Composite(run, True), "composite"
        op.vjp_formulas = None
    elif key in _EXPLICIT:
        op.definition, op.kind = Composite(run, False), "composite"
    elif key == "CPU":
        op.override("eager", run)
    elif key == "Meta":
        op.override("meta", _run_on_meta(op, fn))
    elif key in _AUTOGRAD:
        op.override("autograd", run)
    elif key in _ELSEWHERE:
        op.override(key, run)  # nothing calls it here, but the operator has it
    else:
        raise NotImplementedError(
            f"Library.impl: kernels for the dispatch key {key} are not supported; there are CPU, Meta, Autograd, "
            "CompositeExplicitAutograd and CompositeImplicitAutograd"
        )
    _changed(op)


def define(qualname: str | Library, schema: str, alias_analysis: str = "", *, lib: Library | None = None, tags=()):
    """``define("ns::name", "(Tensor x) -> Tensor")``.

    The older way, ``define(library, schema)``, is a decorator that gives the operator its kernel.
    """
    if isinstance(qualname, Library):
        name = qualname.define(schema, alias_analysis, tags=tags)
        return lambda fn: qualname.impl(name, fn) or fn
    if "::" not in qualname:
        raise ValueError(f'expected qualname to be of the form "namespace::name", got {qualname!r}')
    if not schema.lstrip().startswith("("):
        raise ValueError(
            f'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got "{schema}"'
        )
    ns, name = qualname.split("::")
    library = lib or kept(Library(ns, "FRAGMENT"))
    library.define(name + schema, tags=tags)


_kept: list[Library] = []


def kept(library: Library) -> Library:
    """A library that the registry keeps alive, so that its registrations last without a reference of the caller's."""
    _kept.append(library)
    return library


def impl(qualname, types, func=None, *, lib: Library | None = None):
    """A kernel for devices ("cpu", "default") or dispatch keys. A decorator without ``func``.

    The older way, ``impl(library, name, dispatch_key)``, is a decorator too.
    """
    if isinstance(qualname, Library):
        return lambda fn: qualname.impl(types, fn, func or "") or fn
    keys = [_key_of(t) for t in ([types] if isinstance(types, str) else types)]
    if func is None:
        return lambda func: impl(qualname, types, func, lib=lib) or func
    op = find(qualname)
    library = lib or kept(Library(op.namespace, "IMPL"))
    for key in keys:
        library.impl(op, func, key)


def _key_of(name: str) -> str:
    """The dispatch key of a device type, of "default", or itself. RuntimeError for what is neither."""
    if name == "default":
        return "CompositeExplicitAutograd"
    if name in _KEYS:
        return name
    kind = Device(name).type
    return "Meta" if kind == "meta" else kind.upper()


def has_kernel(qualname: str, key: str) -> bool:
    """Whether the operator has something of its own for a dispatch key: a kernel, a derivative, shapes, or what it is made of."""
    op = find(qualname)
    if key in _AUTOGRAD:
        own = op.overrides.get("autograd")
        return (own is not None and not isinstance(own, Fallback)) or (op.namespace == "aten" and not decomposed(op))
    if key == "Meta":
        return "meta" in op.overrides
    if key in ("CompositeImplicitAutograd", *_EXPLICIT):
        return op.kind == "composite" and op.definition.implicit == (key == "CompositeImplicitAutograd")
    return key in op.overrides or key == "CPU" and ("eager" in op.overrides or op.namespace == "aten")
