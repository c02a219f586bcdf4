"""Integer arithmetic of a kernel: indices and addresses, each part in the outermost scope that it can be computed in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...base.expr import Div, Expr, Mod, Prod, Var, at_least, const, of, terms
from ..assembly.builder import Builder
from ..assembly.code import Code
from ..assembly.dtypes import stored_type
from ..assembly.instructions import I64, PTR, Instruction, Operand
from ..ir.nodes import Buffer
from ..ir.values import Value, loaded_atoms
from .scopes import Lanes, Scope, Scopes

if TYPE_CHECKING:
    from .expressions import Expressions

__all__ = ["Addresses"]

DEFINED = ", !noundef !0"


def _runs(atom) -> bool:
    """Whether an atom depends on loop variables or on loaded values; it is a size otherwise."""
    return bool(atom.variables()) or bool(loaded_atoms(of(atom)))


class Addresses:
    """Indices of one kernel. ``expressions``: writes the values that are loaded for them. ``pointers``: buffer -> its memory."""

    def __init__(
        self,
        kernel,
        buffers: dict[str, Buffer],
        scopes: Scopes,
        lanes: Lanes,
        expressions: Expressions,
    ):
        self.kernel, self.buffers, self.scopes, self.lanes = kernel, buffers, scopes, lanes
        self.expressions = expressions
        self.pointers: dict[str, Operand] = {}
        self.narrow: Callable[[Operand, Code], Operand] | None = None  # what is said of a size that a call brings
        entry = scopes.entry.code
        for i, name in enumerate(kernel.args):
            self.pointers[name] = entry.read(PTR, self.argument(i), DEFINED)
        self.status = self.argument(len(kernel.args))  # where the address of the status words lies

    def argument(self, i: int) -> Instruction:
        """Where argument number ``i`` of the kernel lies."""
        return self.scopes.entry.code.place(PTR, Operand("%args", PTR), i)

    # --- scalars ------------------------------------------------------------------------------------------------------
    def size(self, e) -> Operand | int:
        """An int or an expression of symbols, as an operand."""
        return self.index(e) if type(e) is Expr else e

    def _parameter(self, atom) -> Operand:
        """A size that is passed at the call."""
        entry, params = self.scopes.entry, self.kernel.params
        key = ("parameter", atom)
        if key not in entry.cache:
            first = len(self.kernel.args) + 1
            if self.kernel.threads:
                at = self.argument(first + len(params))
            else:
                if not params:
                    entry.cache["parameters"] = entry.code.read(PTR, self.argument(first), DEFINED)
                at = entry.code.place(I64, entry.cache["parameters"], len(params))
            params.append(of(atom))
            read = entry.code.read(I64, at, DEFINED, prefix="n")
            entry.cache[key] = self.narrow(read, entry.code) if self.narrow is not None else read
        return entry.cache[key]

    def index(self, ix: Expr | int) -> Operand | int:
        """A scalar i64; partial sums are emitted scope by scope, so that the outer part is computed outside."""
        scopes = self.scopes
        groups: dict[int, list] = {}
        for atom, c in terms(ix):
            groups.setdefault(scopes.level(self._atom_scope(atom)), []).append((atom, c))
        total: Operand | int = const(ix)
        so_far: tuple = ()
        for level in sorted(groups):
            scope = scopes.open[level]
            so_far = (*so_far, *groups[level])
            key = ("index", so_far, const(ix))
            if key in scope.cache:
                total = scope.cache[key]
                continue
            for atom, c in groups[level]:
                part = self._atom(atom, scope.code)
                if c != 1:
                    part = scope.code.op("mul", part, c, "nsw")
                total = part if total == 0 else scope.code.op("add", total, part, "nsw")
            scope.cache[key] = total
        return total

    def _atom_scope(self, atom) -> Scope:
        if isinstance(atom, Var):
            return self.scopes.of({atom})
        if isinstance(atom, Value):
            return self.expressions.scope(atom)
        if not _runs(atom):
            return self.scopes.entry
        parts = atom.args if isinstance(atom, Prod) else [a for e in atom.args for a, _ in terms(e)]
        return max(map(self._atom_scope, parts), key=self.scopes.level)

    def _atom(self, atom, code: Code) -> Operand | int:
        if isinstance(atom, Var):
            return self.scopes.variable(atom)
        if isinstance(atom, Prod):
            return self._product(atom)
        if isinstance(atom, Value):
            made, vector = self.expressions.emit(atom)
            assert not vector, "a loaded index that varies along the lanes is not a scalar"
            return made
        if not _runs(atom):
            return self._parameter(atom)
        if isinstance(atom, (Div, Mod)):
            num, den = (self.index(a) for a in atom.args)
            return _divided(code, isinstance(atom, Div), num, den, at_least(atom.args[0], 0))
        raise NotImplementedError(f"inductor: an index with {atom!r}")

    def _product(self, atom) -> Operand | int:
        """The factors of outer scopes first, each product in the innermost scope of its factors."""
        parts = sorted(atom.args, key=lambda a: self.scopes.level(self._atom_scope(a)))
        made: Operand | int = 1
        so_far: tuple = ()
        for part in parts:
            scope = self._atom_scope(part)
            so_far = (*so_far, part)
            key = ("product", so_far)
            if key in scope.cache:
                made = scope.cache[key]
                continue
            factor = self._atom(part, scope.code)
            made = scope.cache[key] = scope.code.op("mul", made, factor, "nsw") if len(so_far) > 1 else factor
        return made

    # --- vectors ------------------------------------------------------------------------------------------------------
    def in_lanes(self, ix: Expr, b: Builder) -> Operand:
        """The index in every lane, i64."""
        uniform, total = [], None
        for atom, c in terms(ix):
            if self.lanes.variable not in atom.variables():
                uniform.append((atom, c))
                continue
            part = self.atom_in_lanes(atom, b)
            if c != 1:
                part = b.mul(part, c)
            total = part if total is None else b.add(total, part)
        rest = const(ix)
        for atom, c in uniform:
            rest = of(atom) * c + rest
        if total is None:
            return self.spread(rest, b)
        if isinstance(rest, Expr) or rest:
            total = b.add(total, self.spread(rest, b))
        return total

    def spread(self, e, b: Builder) -> Operand:
        """An index that is the same in all lanes."""
        return b.splat(self.index(e)) if isinstance(e, Expr) else b.const("i64", e)

    def atom_in_lanes(self, atom, b: Builder) -> Operand:
        if self.lanes.variable not in atom.variables():
            return self.spread(of(atom), b)
        if isinstance(atom, Var):
            if self.lanes.last is not None:
                return self.lanes.last
            return b.add(b.splat(self.scopes.variable(atom)), b.steps())
        if isinstance(atom, Prod):
            first, *rest = atom.args
            made = self.atom_in_lanes(first, b)
            for part in rest:
                made = b.mul(made, self.atom_in_lanes(part, b))
            return made
        if isinstance(atom, (Div, Mod)):
            num, den = (self.in_lanes(e, b) if type(e) is Expr else b.const("i64", e) for e in atom.args)
            return _divided(b, isinstance(atom, Div), num, den, at_least(atom.args[0], 0))
        return self.expressions.operand(atom, b)

    def pointer(self, buffer: str, position: Operand | int, code: Code) -> Operand:
        """The address of an element."""
        t = self.kernel.scratch.get(buffer) or self.buffers[buffer].dtype
        return code.place(stored_type(t), self.pointers[buffer], position, inbounds=True)


def _divided(code: Code, quotient: bool, num, den, unsigned: bool) -> Operand:
    """Rounded down; divisors are positive."""
    if unsigned:
        return code.op("udiv" if quotient else "urem", num, den)
    rest = code.op("srem", num, den)
    sign = code.op("ashr", rest, 63)
    if quotient:
        return code.op("add", code.op("sdiv", num, den), sign)
    return code.op("add", rest, code.op("and", sign, den))
