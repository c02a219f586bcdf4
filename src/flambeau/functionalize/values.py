"""Functional values: tensors under mutation, with operators that never mutate.

A :class:`FunctionalValue` is a view (a chain of view operators, possibly empty) of a :class:`Memory`, which holds the present
contents of one storage as an ordinary tensor. A write computes the new contents of the value and carries them back
through the chain to the memory; other views of the memory are computed again when they are next read. :func:`call`
runs any operator on Values this way."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..base.errors import SharedArguments
from ..base.records import slotted
from ..base.shapes import known_dense, same_shape, statically_equal
from ..core.operator import OpOverload, namespace
from .derived import functional_variant, take_apart
from .views import copying, place, repeats, settings, steps_of, write_back

__all__ = ["Link", "Memory", "FunctionalValue", "call", "call_higher_order"]


class Memory:
    """``base``: the contents now. ``version`` counts writes; ``initial`` is what it began with. A ``frozen`` one is never written again."""

    __slots__ = ("base", "frozen", "initial", "storage", "version")

    def __init__(self, base: Any):
        self.base = self.initial = base
        self.version = 0
        self.frozen = False
        self.storage: Any = None  # of the wrappers on this memory, so that aliases are seen as such


@slotted(eq=False)
class Link:
    """A view: the operator, its arguments after the first, its keyword arguments, and which of several results it is."""

    op: OpOverload
    rest: tuple
    kwargs: dict
    which: int | None = None
    copied: bool = False

    def follow(self, t: Any) -> Any:
        """The view of ``t``."""
        out = (copying(self.op) if self.copied else self.op)(t, *self.rest, **self.kwargs)
        return out if self.which is None else out[self.which]

    def steps(self, base: Any) -> tuple:
        """What it does to the places of ``base`` (core/viewmap.py)."""
        values = self.op.full(base, *self.rest, **self.kwargs)[1:]
        return steps_of(self.op, tuple(base.shape), values)[self.which or 0]

    def repeats(self, base: Any) -> bool:
        """Whether it shows elements of ``base`` more than once."""
        if self.op.kind != "view" or "write_back" in self.op.overrides:
            return False
        return any(map(repeats, self.steps(base)))

    def write_back(self, base: Any, contents: Any) -> Any:
        """``base`` after its view was overwritten with ``contents``."""
        own = self.op.overrides.get("write_back")
        if own is not None:
            return own(base, contents, *self.op.full(base, *self.rest, **self.kwargs)[1:])
        return write_back(base, self.steps(base), contents)


class FunctionalValue:
    """``chain``: the links from the memory's base to this value."""

    __slots__ = ("memory", "chain", "_tensor", "_version")

    def __init__(self, memory: Memory, chain: tuple = (), tensor: Any = None):
        self.memory, self.chain = memory, chain
        self._tensor, self._version = tensor, memory.version

    @property
    def tensor(self) -> Any:
        """The contents now."""
        if not self.chain:
            return self.memory.base
        if self._version != self.memory.version:
            self._tensor, self._version = self._seen(), self.memory.version
        return self._tensor

    def _seen(self) -> Any:
        t = self.memory.base
        for link in self.chain:
            t = link.follow(t)
        return t

    def sync(self) -> Any:
        """The contents now, as a view of the memory's present base, whatever was written last."""
        self._tensor, self._version = self._seen(), self.memory.version
        return self.tensor

    def laid_out(self, strides) -> Any:
        """The contents now, as a view of the memory where that alone has these strides: what was written last may be dense."""
        t = self.tensor
        return self._seen() if self.chain and not all(map(statically_equal, t.stride(), strides)) else t

    def write(self, new: Any) -> None:
        """Overwrite the contents; shape and dtype stay."""
        if self.memory.frozen:
            raise RuntimeError("Attempted to mutate a tensor that was frozen by functionalization")
        old = self.tensor
        if not same_shape(new.shape, old.shape):
            new = namespace("aten").expand(new, list(old.shape))
        if new.dtype != old.dtype:
            new = namespace("aten")._to_copy(new, dtype=old.dtype)
        bases = [self.memory.base]
        for link in self.chain[:-1]:
            bases.append(link.follow(bases[-1]))
        contents, chain = new, self.chain
        shared = next((i for i, (link, base) in enumerate(zip(chain, bases)) if link.repeats(base)), None)
        if shared is not None:
            contents = place(bases[shared], [link.follow for link in chain[shared:]], contents)
            chain, bases = chain[:shared], bases[:shared]
        for link, base in zip(reversed(chain), reversed(bases)):
            contents = link.write_back(base, contents)
        self.memory.base = _in_order(self.memory.base, contents)
        self.memory.version += 1
        self._tensor, self._version = new, self.memory.version


def _in_order(base, contents):
    """What was written, in the order of memory that ``base`` has: a write leaves it."""
    if all(map(statically_equal, contents.stride(), base.stride())) or not known_dense(base.shape, base.stride()):
        return contents
    return namespace("aten").copy(base, contents)


def _unwrap(a: Any) -> Any:
    if isinstance(a, FunctionalValue):
        return a.tensor
    if isinstance(a, (list, tuple)):
        return type(a)(map(_unwrap, a)) if type(a) in (list, tuple) else list(map(_unwrap, a))
    return a


def _wrap(a: Any) -> Any:
    if isinstance(a, _C.TensorBase):
        return FunctionalValue(Memory(a))
    if isinstance(a, (list, tuple)):
        return type(a)(map(_wrap, a))
    return a


def call(op: OpOverload, args: tuple, kwargs: dict) -> Any:
    """Run ``op`` on Values (and whatever else it takes); results are Values, the written arguments themselves where it
    returns them.
    """
    if (
        op._schema.is_view
        and (op.kind == "view" or "write_back" in op.overrides)
        and isinstance(args[0], FunctionalValue)
    ):
        return _view(op, args, kwargs)
    if op._schema.is_mutable:
        return _mutate(op, args, kwargs)
    return _wrap(op(*map(_unwrap, args), **{k: _unwrap(v) for k, v in kwargs.items()}))


def call_higher_order(op, args: tuple, kwargs: dict) -> Any:
    """Run an operator with bodies, which write to nothing they are given, on Values."""
    return _wrap(op(*map(_unwrap, args), **{k: _unwrap(v) for k, v in kwargs.items()}))


def _view(op: OpOverload, args: tuple, kwargs: dict) -> Any:
    source = args[0]
    rest = tuple(map(_unwrap, args[1:]))
    copied = settings.copies
    out = (copying(op) if copied else op)(source.tensor, *rest, **kwargs)

    def seen(part: Any, which: int | None) -> FunctionalValue:
        return FunctionalValue(source.memory, (*source.chain, Link(op, rest, kwargs, which, copied)), part)

    if isinstance(out, (list, tuple)):
        return type(out)(seen(part, i) for i, part in enumerate(out))
    return seen(out, None)


def _mutate(op: OpOverload, args: tuple, kwargs: dict) -> Any:
    functional = getattr(op.definition, "functional", None)
    if functional is None:
        return _mutate_through_copies(op, args, kwargs)
    written = [(a, v) for a, v in zip(op._schema.arguments, op.full(*args, **kwargs)) if a.is_write]
    keep = {k: v for k, v in kwargs.items() if not any(a.is_out and a.name == k for a, _ in written)}
    if len(args) < len(functional._schema.arguments):
        # Defaults may be those of the writing form alone (bernoulli_ has one for p).
        own = {a.name: v for a, v in zip(op._schema.arguments, op.full(*args, **kwargs)) if not a.is_out}
        wanted = [a.name for a in functional._schema.arguments[len(args) :] if not a.has_default]
        keep.update({name: own[name] for name in wanted if name in own and name not in keep})
    results = functional(*map(_unwrap, args), **{k: _unwrap(v) for k, v in keep.items()})
    several = len(written) > 1
    for i, (a, target) in enumerate(written):
        if not isinstance(target, FunctionalValue):
            raise RuntimeError(
                f"functionalization: argument {a.name!r} of {op.name()} is written but is not a functional value"
            )
        target.write(results[i] if several else results)
    targets = tuple(t for _, t in written)
    returned = len(op._schema.returns)
    return None if not returned else targets if several else targets[0]


def _values(x: Any) -> list[FunctionalValue]:
    if isinstance(x, (list, tuple)):
        return [v for part in x for v in _values(part)]
    return [x] if isinstance(x, FunctionalValue) else []


def _refuse_aliases(op: OpOverload, written: list[FunctionalValue], given: list[FunctionalValue]) -> None:
    """What is read beside a copy that is written wouldn't see the writes."""
    for w in written:
        if sum(v.memory is w.memory for v in given) > 1:
            raise SharedArguments(
                f"functionalization: {op.name()} writes to an argument that shares memory with another one; clone one of them"
            )


def _mutate_through_copies(op: OpOverload, args: tuple, kwargs: dict) -> Any:
    values = op.full(*args, **kwargs)
    written = [v for a, v in zip(op._schema.arguments, values) if a.is_write]
    _refuse_aliases(op, _values(written), _values(values))
    results = functional_variant(op)(*map(_unwrap, args), **{k: _unwrap(v) for k, v in kwargs.items()})
    out, contents = take_apart(op, list(results), written)
    for target, new in zip(written, contents):
        for t, n in zip(target, new) if isinstance(target, (list, tuple)) else [(target, new)]:
            if not isinstance(t, FunctionalValue):
                raise RuntimeError(f"functionalization: an argument that {op.name()} writes is not a functional value")
            t.write(n)
    return _wrap(out)
