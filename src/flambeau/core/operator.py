"""Operators: one :class:`OpOverload` a schema, grouped in packets and namespaces (``torch.ops.aten.add.Tensor``).

An operator holds its schema text and its definition (core/definition.py). What subsystems derive from them are its *facets*
(eager kernel, meta, vjp, batch): each subsystem installs one builder, a facet is built at its first use and kept. An override declared next to
the definition replaces the derived facet. Schemas are parsed when first looked at: importing flambeau declares every operator.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import _C
from ..base.cached import cached_property
from ..base.errors import MissingFacet
from . import schema as schemas
from .definition import Inplace, Out

__all__ = ["FACETS", "Namespace", "OpOverload", "Packet", "inplace_overload", "namespace", "namespaces", "redefined"]


_REDEFINED: set[OpOverload] = set()
FACETS: dict[str, Callable] = {}  # facet name -> builder(op) -> callable or None


class OpOverload(_C.Operator):
    """One operator. Calling it dispatches. ``definition``/``kind``: see core/definition.py. ``tags``: a set of strings."""

    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)

    def __init__(self, ns: str, name: str, overload: str, definition, schema_text: str | None = None, schema=None):
        self.namespace = ns
        self._opname = name
        self._overloadname = overload or "default"
        self.definition = definition
        self.kind = definition.kind
        self.__name__ = f"{name}.{self._overloadname}"
        self.__qualname__ = self.__name__
        self.__module__ = f"torch._ops.{ns}"
        self._schema_text = schema_text
        if schema is not None:
            self.__dict__["_schema"] = schema
        self.overrides: dict[str, Callable] = {}
        self.vjp_formulas: dict | None = None
        self.differentiable_outputs: tuple[int, ...] | None = None  # None: all floating results
        self.refuses: frozenset | None = None  # names of dtypes it doesn't take
        self.tags: frozenset = frozenset()
        self.out_rules: frozenset = frozenset()  # what its out= form asks of what it writes to: core.out_rules.RULES
        self.takes_numbers = True  # where there are several tensor arguments, users may give Python numbers for them
        self.version = 0  # counts redefinitions, see redefine()

    def redefine(self) -> None:
        """A program has given the operator another meaning."""
        self.version += 1
        _REDEFINED.add(self)

    # -- identity ------------------------------------------------------------------------------------------------------
    def name(self) -> str:
        return f"{self.namespace}::{self._opname}" + (
            "" if self._overloadname == "default" else f".{self._overloadname}"
        )

    def __str__(self):
        return f"{self.namespace}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __reduce__(self):
        return (_find, (self.namespace, self._opname, self._overloadname))

    def __deepcopy__(self, memo):
        return self

    def __hash__(self):
        return object.__hash__(self)

    def __eq__(self, other):
        return self is other

    # -- what follows from the schema ----------------------------------------------------------------------------------
    @cached_property
    def _schema(self):
        return schemas.parse(self._schema_text, self.namespace)

    @cached_property
    def effects(self) -> frozenset:
        """What a call does beside returning a value: ``"writes"`` to an argument, ``"draws"`` random numbers,
        ``"checks"`` (raises when its argument is false). Such a call is never dropped because its result is unused."""
        draws = any(
            "nondeterministic_seeded" in op.tags or op.kind == "random"
            for op in (self, getattr(self.definition, "functional", None) or self)
        )
        return frozenset(
            name
            for name, does in (
                ("writes", self._schema.is_mutable),
                ("draws", draws),
                ("checks", "has_side_effects" in self.tags),
            )
            if does
        )

    @property
    def overloadpacket(self):
        return getattr(namespace(self.namespace), self._opname)

    def parameters(self, env: dict) -> tuple[str, list[str]]:
        """The signature as Python text, and the names of all arguments in schema order. Defaults are put into ``env``, in which it is to be run."""
        params, names, star = [], [], False
        for a in self._schema.arguments:
            if a.kwarg_only and not star:
                params.append("*")
                star = True
            name = _safe(a.name)
            if a.has_default or a.is_out:
                env[f"_d_{name}"] = a.default_value if a.has_default else None
                params.append(f"{name}=_d_{name}")
            else:
                params.append(name)
            names.append(name)
        return ", ".join(params), names

    def behind_signature(self, impl: Callable, first: str = "", **env) -> Callable:
        """``impl(*all arguments in schema order)`` as a function with the operator's own signature; ``first``: statements run before."""
        env["_impl"] = impl
        params, names = self.parameters(env)
        exec(f"def {_safe(self._opname)}({params}):\n    {first}return _impl({', '.join(names)})", env)
        return env[_safe(self._opname)]

    @cached_property
    def full(self) -> Callable:
        """``full(*args, **kwargs)``: all arguments in schema order with defaults filled in, as a tuple."""
        env: dict = {}
        params, names = self.parameters(env)
        exec(f"def full({params}): return ({', '.join(names)}{',' if names else ''})", env)
        return env["full"]

    def split(self, values) -> tuple[tuple, dict]:
        """(args, kwargs) from all arguments in schema order."""
        arguments = self._schema.arguments
        return (
            tuple(v for a, v in zip(arguments, values) if not a.kwarg_only),
            {a.name: v for a, v in zip(arguments, values) if a.kwarg_only and not (a.is_out and v is None)},
        )

    @cached_property
    def required(self) -> int:
        """Number of positional arguments without a default: a call with just those is normal."""
        return sum(not a.has_default for a in self._schema.arguments if not a.kwarg_only)

    def normalize(self, args, kwargs) -> tuple[tuple, dict]:
        """(args, kwargs) without the arguments that equal their defaults: a suffix of the positional ones, any keyword-only one."""
        if not kwargs and len(args) == self.required:
            return args, kwargs
        return self._normalize(*args, **kwargs)

    @cached_property
    def _normalize(self) -> Callable:
        """Generated: compares each optional argument with its default."""
        env: dict = {"_same": _same}
        params, _ = self.parameters(env)
        body, positional = ["kw = {}"], []
        for a in self._schema.arguments:
            name = _safe(a.name)
            if not a.kwarg_only:
                positional.append((a, name))
            elif a.has_default or a.is_out:
                body.append(f"if {_differs(a, name)}: kw[{a.name!r}] = {name}")
            else:
                body.append(f"kw[{a.name!r}] = {name}")
        keep = len(positional)
        tuple_of = lambda n: f"({', '.join(name for _, name in positional[:n])}{',' if n else ''})"  # noqa: E731
        while keep and positional[keep - 1][0].has_default:
            body.append(f"if {_differs(*positional[keep - 1])}: return {tuple_of(keep)}, kw")
            keep -= 1
        body.append(f"return {tuple_of(keep)}, kw")
        exec(f"def normal({params}):\n    " + "\n    ".join(body), env)
        return env["normal"]

    # -- facets --------------------------------------------------------------------------------------------------------
    def facet(self, name: str) -> Callable:
        """The facet, built at first use. MissingFacet when there is neither rule nor override."""
        cache = self.__dict__.setdefault("_facets", {})
        found = cache.get(name)
        if found is None:
            found = self.overrides.get(name)
            if found is None:
                builder = FACETS.get(name)
                found = builder(self) if builder is not None else None
            if found is None:
                raise MissingFacet(name, self, name)
            cache[name] = found
        return found

    def has_facet(self, name: str) -> bool:
        try:
            self.facet(name)
        except MissingFacet:
            return False
        return True

    def override(self, facet: str, fn: Callable | None = None):
        """Replace a derived facet. All arguments arrive positionally in schema order."""
        if fn is None:
            return lambda fn: self.override(facet, fn)
        self.overrides[facet] = fn
        self.__dict__.pop("_facets", None)
        self.forget()
        return fn

    def derivative(self, only=None, /, **formulas) -> OpOverload:
        """Vector-Jacobian products: ``argument=lambda ct, ...: cotangent``.

        The parameter names of each formula say what is saved for it: argument names, ``<argument>_like`` (its shape, dtype and device only),
        ``result`` (``result0``, ``result1`` ...), and ``ct``
        (``ct0``, ``ct1`` ... with several results). A key ``a__b__c`` gives several cotangents at once and may take ``mask``. ``only``: positions of
        the results that are differentiable (a tuple; all floating ones when not given).
        """
        self.vjp_formulas = formulas
        if only is not None:
            self.differentiable_outputs = only
        self.forget()
        return self

    def meta(self, *args, **kwargs):
        """TensorMeta (or a tuple or list of them) of the result, from arguments with or without data."""
        return self.facet("meta")(*self.full(*args, **kwargs))

    @property
    def decompose(self) -> Callable | None:
        """Python over other operators (composites), else None."""
        fn = getattr(self.definition, "fn", None)
        return None if fn is None else lambda *args, **kwargs: fn(*self.full(*args, **kwargs))

    @property
    def is_view(self) -> bool:
        return self._schema.is_view

    @property
    def tracks_views(self) -> bool:
        """Whether a write to its results that records a gradient must reach what they are views of (``detach`` leads nowhere)."""
        return self._schema.is_view and self.vjp_formulas != {}


def _safe(name: str) -> str:
    return (
        name + "_" if name in ("from", "lambda", "self_", "print", "import", "is", "in", "and", "or", "not") else name
    )


def _differs(a, name: str) -> str:
    """Source of the test whether an argument isn't its default."""
    if a.is_out or a.default_value is None or isinstance(a.default_value, bool):
        return f"{name} is not _d_{name}"
    return f"{name} is not _d_{name} and not _same({name}, _d_{name})"


def _same(v, default) -> bool:
    if v is default:
        return True
    if default is None or isinstance(v, _C.TensorBase):
        return False
    if isinstance(default, list):
        return isinstance(v, (list, tuple)) and list(v) == default
    if isinstance(default, bool) or isinstance(v, bool):
        return isinstance(v, bool) and isinstance(default, bool) and v == default
    return isinstance(v, (int, float, str)) and v == default


_KERNELS = ("eager", "autograd")  # overrides with which an implicit composite is an operator of its own


def decomposed(op: OpOverload) -> bool:
    """Whether calls of ``op`` are calls of what it is made of: an implicit composite vanishes above every layer."""
    return op.kind == "composite" and op.definition.implicit and op.overrides.keys().isdisjoint(_KERNELS)


class Packet:
    """All overloads of one name. Calling it picks the overload by the arguments."""

    def __init__(self, ns: str, name: str):
        self._ns, self.__name__ = ns, name
        self._qualified_op_name = f"{ns}::{name}"
        self.__module__ = f"torch._ops.{ns}"
        self._overloads: dict[str, OpOverload] = {}
        self._resolve = None
        self._gives_list: bool | None = None

    def overloads(self) -> list[str]:
        return list(self._overloads)

    def _add(self, op: OpOverload):
        self._overloads[op._overloadname] = op
        self.__dict__.pop(op._overloadname, None)
        self._resolve = self._gives_list = None

    def _remove(self, overload: str):
        self._overloads.pop(overload, None)
        self.__dict__.pop(overload, None)
        self._resolve = self._gives_list = None

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._overloads.get(name) or self._derive(name)
        if found is None:
            raise AttributeError(f"The underlying op of '{self._ns}.{self.__name__}' has no overload name '{name}'")
        self.__dict__[name] = found  # the next look-up doesn't come here
        return found

    def _derive(self, name: str) -> OpOverload | None:
        """The out= variant of a functional overload: ``add.out`` of ``add.Tensor``, ``sum.dim_IntList_out`` ..."""
        bases = [o for o in self._overloads.values() if getattr(o, "has_out", False)]
        for op in bases:
            first = op is bases[0]
            names = {"out"} if first or op._overloadname == "default" else set()
            names.add(f"{op._overloadname}_out")
            if name in names:
                made = OpOverload(self._ns, self.__name__, name, Out(op), schema=schemas.out_variant(op._schema, name))
                self._overloads[name] = made
                return made
        return self._renamed(name)

    def _renamed(self, name: str) -> OpOverload | None:
        """An out= variant whose name and arguments follow no rule (``sort.values``), or what says that PyTorch's overload isn't built."""
        known = namespace(self._ns)._overload
        base, outs = known(self.__name__, name) if known is not None else (None, ())
        if base is None:
            return None
        op = self._overloads.get(base)
        if op is None:
            return Unbuilt(self._ns, f"{self.__name__}.{name}")
        made = OpOverload(self._ns, self.__name__, name, Out(op), schema=schemas.out_variant(op._schema, name, outs))
        self._overloads[name] = made
        return made

    def __call__(self, *args, **kwargs):
        if self._resolve is None:
            from .bindings import packet_call

            self._resolve = packet_call(self)
        made = self._resolve(*args, **kwargs)
        return self.of_several(made) if made.__class__ is tuple else made

    def of_several(self, made: tuple) -> list | tuple:
        """Results as ``torch.ops`` gives them: what the schema says is a list is one, where ``torch.split`` and its like give a tuple."""
        if self._gives_list is None:
            self._gives_list = any(r.is_list for op in self._overloads.values() for r in op._schema.returns)
        return list(made) if self._gives_list else made

    def __str__(self):
        return f"{self._ns}.{self.__name__}"

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._ns}.{self.__name__}')>"

    def __reduce__(self):
        return (_find, (self._ns, self.__name__))

    def __deepcopy__(self, memo):
        return self


class Unbuilt(Packet):
    """A name that PyTorch's namespace has and ours doesn't: it can be looked at, and says so when it is called."""

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"{self._ns}::{self.__name__} is an operator of PyTorch's that flambeau doesn't have")


def inplace_overload(op: OpOverload) -> str:
    """The name of the in-place overload: the functional one's, unless the declaration says another."""
    name = op.has_inplace if isinstance(op.has_inplace, str) else op._overloadname
    return "" if name == "default" else name


class Namespace:
    """``torch.ops.aten``: packets by name. An in-place packet (``add_``) is derived from the functional one when asked for."""

    def __init__(self, name: str):
        self._name = name
        self._packets: dict[str, Packet] = {}
        self._load: Callable[[str], bool] | None = (
            None  # declares the family that has a packet of this name, if there is one
        )
        self._unbuilt: Callable[[str], Packet | None] | None = (
            None  # stands for a name that PyTorch has and this namespace hasn't
        )
        # (packet, overload) -> (overload that it writes the results of, names of its out arguments), ("", ()) of one that isn't built, (None, ())
        self._overload: Callable[[str, str], tuple] | None = None

    def _packet(self, name: str) -> Packet | None:
        found = self._packets.get(name)
        if found is None and self._load is not None and self._load(name):
            found = self._packets.get(name)
        if found is None and name.endswith("_") and not name.endswith("__"):
            base = self._packet(name[:-1])
            if base is not None:
                ops = [o for o in base._overloads.values() if getattr(o, "has_inplace", False)]
                if ops:
                    found = Packet(self._name, name)
                    for o in ops:
                        found._add(
                            OpOverload(
                                self._name,
                                name,
                                inplace_overload(o),
                                Inplace(o),
                                schema=schemas.inplace_variant(o._schema, inplace_overload(o)),
                            )
                        )
                    self._packets[name] = found
        return found

    def __getattr__(self, name: str) -> Packet:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._packet(name)
        if found is None and self._unbuilt is not None:
            found = self._unbuilt(name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        setattr(self, name, found)
        return found

    def __dir__(self):
        return list(self._packets)

    def __repr__(self):
        return f"<namespace torch.ops.{self._name}>"

    def _register(self, op: OpOverload):
        packet = self._packets.get(op._opname)
        if packet is None:
            packet = self._packets[op._opname] = Packet(self._name, op._opname)
        packet._add(op)


namespaces: dict[str, Namespace] = {}


def namespace(name: str) -> Namespace:
    """The namespace, made if new."""
    found = namespaces.get(name)
    if found is None:
        found = namespaces[name] = Namespace(name)
    return found


def redefined() -> list[tuple[str, int]]:
    """Names of ATen's operators that a program has redefined, and how often: what is kept on disk of others is not theirs."""
    return sorted((o.name(), o.version) for o in _REDEFINED if o.namespace == "aten")


def _find(ns, name, overload=None):
    packet = getattr(namespace(ns), name)
    return packet if overload is None else getattr(packet, overload)
