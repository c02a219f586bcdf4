"""Which placements an operator can run on: one rule for each kind of operator, read from its definition.

A Strategy says, for one dimension of the mesh, the placements of the tensor arguments under which calling the operator on each rank's parts gives
the parts of the result. A rule lists those besides the one that always holds, everything replicated. What has no rule is replicated.
``op.override("sharding", Letters(...))`` or ``Apart(...)`` next to an operator's definition gives it one (core/sharding.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...base.shapes import broadcast_shapes, normalize_dims
from ...core import body as bodies
from ...core import reductions
from ...core.operator import OpOverload
from ...core.sharding import Apart, Letters, Rows
from ...core.viewmap import record
from .placement_types import Partial, Placement, Replicate, Shard, chunk_of

__all__ = ["Call", "Strategy", "strategies"]

R = Replicate()


@dataclass(frozen=True)
class Strategy:
    """Placements of the tensors among the arguments, in order, and of the results."""

    ins: tuple[Placement, ...]
    outs: tuple[Placement, ...]
    rows: bool = False  # see sharding.Rows


@dataclass
class Call:
    """A call seen from dimension ``i`` of the mesh: ``values`` in the order of the schema, ``tensors`` the DTensors among them, ``at`` where each
    of these stands in ``values`` (a place in a list counts as the list's)."""

    op: OpOverload
    values: list
    tensors: list
    at: list[int]
    i: int

    def rows_dim(self, rule: Rows) -> int:
        """The dimension that an operator with this rule reads rows along."""
        if rule.dim is None:
            return 0
        names = [a.name for a in self.op._schema.arguments]
        return self.values[names.index(rule.dim)] % max(self.tensors[self.named(rule.source)].dim(), 1)

    @property
    def ranks(self) -> int:
        return self.tensors[0].device_mesh.size(self.i)

    def now(self, k: int) -> Placement:
        return self.tensors[k].placements[self.i]

    def partials(self) -> set[Placement]:
        return {p for k in range(len(self.tensors)) if (p := self.now(k)).is_partial()}

    def named(self, name: str) -> int | None:
        """Which of ``tensors`` the argument of that name is."""
        place = [a.name for a in self.op._schema.arguments].index(name)
        return self.at.index(place) if place in self.at else None

    def parts(self, k: int, d: int) -> int:
        """Into how many parts dimension ``d`` of a tensor is cut by the whole mesh."""
        t, n = self.tensors[k], 1
        for j, p in enumerate(t.placements):
            n *= t.device_mesh.size(j) if p.is_shard(d) else 1
        return max(n, self.ranks)


def strategies(call: Call) -> list[Strategy]:
    """Those that the operator's rule lists, then the replicated one."""
    op = call.op
    rule = op.overrides.get("sharding")
    if isinstance(rule, Letters):
        found = by_letters(call, rule.ins, rule.outs)
    elif isinstance(rule, Apart):
        found = apart(call, rule)
    else:
        found = _KINDS[op.kind](call) if op.kind in _KINDS else []
    if isinstance(rule, Rows):
        cut = call.named(rule.source)
        ins = tuple(Shard(call.rows_dim(rule)) if k == cut else R for k in range(len(call.tensors)))
        found = [*found, Strategy(ins, (Partial(),), rows=True)]
    results = len(op._schema.returns)
    return [*found, Strategy((R,) * len(call.tensors), (R,) * results)]


def has_rule(op: OpOverload) -> bool:
    return "sharding" in op.overrides or op.kind in _KINDS


# ---- pointwise -------------------------------------------------------------------------------------------------------


def pointwise(call: Call) -> list[Strategy]:
    """Parts along any dimension of the result; summands where the body is linear in them."""
    shapes = [tuple(t.shape) for t in call.tensors]
    shape = broadcast_shapes(*shapes)
    found = []
    for d, n in enumerate(shape):
        ins = []
        for s in shapes:
            e = d - (len(shape) - len(s))
            ins.append(Shard(e) if e >= 0 and s[e] == n else R)
        found.append(Strategy(tuple(ins), (Shard(d),)))
    for p in call.partials():
        if p.reduce_op in ("sum", "avg"):
            found += [Strategy(tuple(p if k in s else R for k in range(len(shapes))), (p,)) for s in _linear_in(call)]
    return found


def _linear_in(call: Call) -> list[set[int]]:
    """The sets of tensors in which the body is linear, all of them or one, the others held fixed."""
    op, count = call.op, len(call.tensors)
    dtype = op.facet("meta")(*call.values).dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        return []
    values = list(call.values)
    for k, place in enumerate(call.at):
        values[place] = bodies.Input(str(k))
    try:
        root, _ = bodies.trace(op.definition.body, values)
    except Exception:  # a body that wants to look at its arguments: nothing is known of it
        return []
    sets = [set(range(count)), *({k} for k in range(count) if count > 1)]
    return [s for s in sets if _is_linear(root, {str(k) for k in s})]


def _is_linear(root, names: set[str]) -> bool:
    """Whether an expression is linear in the inputs ``names``: each node is constant, linear, or neither (None)."""
    constant, linear = 0, 1
    state: dict[int, int | None] = {}

    def of(x):
        return state[id(x)] if isinstance(x, bodies.Expr) else constant

    for node in bodies.topological(root):
        if node.op == "input":
            state[id(node)] = linear if node.args[0] in names else constant
            continue
        args = [of(a) for a in node.args]
        if all(a == constant for a in args):
            made: int | None = constant
        elif node.op in ("add", "sub"):
            made = linear if all(a == linear for a in args) else None
        elif node.op == "mul":
            made = linear if sorted(map(str, args)) == ["0", "1"] else None
        elif node.op == "div":
            made = linear if args == [linear, constant] else None
        elif node.op == "neg":
            made = args[0]
        elif node.op == "cast":  # to a dtype or NumPy's
            to = node.args[1]
            rounds = to.kind not in "fc" if hasattr(to, "kind") else not (to.is_floating_point or to.is_complex)
            made = None if rounds else args[0]
        elif node.op == "where":
            zero = [a == linear or (type(x) in (int, float) and x == 0) for a, x in zip(args[1:], node.args[1:])]
            made = linear if args[0] == constant and all(zero) else None
        else:
            made = None
        state[id(node)] = made
    return of(root) == linear


# ---- reductions ------------------------------------------------------------------------------------------------------

_COMBINED = {"add": "sum", "mul": "product", "maximum": "max", "minimum": "min"}


def reduced_dims(call: Call) -> tuple[list[int], bool]:
    """(the dimensions reduced, keepdim)."""
    a = reductions.arguments(call.op)(call.values)
    ndim = len(call.tensors[0].shape)
    dims = a.dims
    if dims is None or (isinstance(dims, list | tuple) and not dims):
        return list(range(ndim)), bool(a.keepdim)
    return sorted(normalize_dims(dims if isinstance(dims, list | tuple) else [dims], ndim)), bool(a.keepdim)


def plain_reduction(op: OpOverload) -> bool:
    d = op.definition
    return d.map is None and d.finalize is None and d.combine in _COMBINED


def reduction(call: Call) -> list[Strategy]:
    """Shards along the dimensions that stay. Along a reduced dimension the results are partial: summands, factors, or candidates for a maximum."""
    x = call.tensors[0]
    dims, keepdim = reduced_dims(call)
    found = []
    for d, n in enumerate(x.shape):
        if d not in dims:
            found.append(Strategy((Shard(d),), (Shard(d if keepdim else d - sum(e < d for e in dims)),)))
        elif plain_reduction(call.op):
            word = _COMBINED[call.op.definition.combine]
            if word == "sum" or chunk_of(n, call.parts(0, d), call.parts(0, d) - 1)[0]:
                found.append(Strategy((Shard(d),), (Partial(word),)))
    for p in call.partials():
        if plain_reduction(call.op) and _COMBINED[call.op.definition.combine] == "sum" and x.dtype.is_floating_point:
            found += [Strategy((p,), (p,))] if p.reduce_op in ("sum", "avg") else []
    return found


# ---- views -----------------------------------------------------------------------------------------------------------


def view(call: Call) -> list[Strategy]:
    """The tensor as it lies, where each step of the view keeps the parts together."""
    now = call.now(0)
    records = recorded(call)
    if now.is_partial():
        return [Strategy((now,), (now,) * len(records))]
    if not now.is_shard():
        return []
    outs = []
    for each in records:
        d = now.dim
        for step in each.steps:
            d = STEPS[step.name](step, d, call.parts(0, now.dim)) if d is not None else None
        outs.append(d)
    return [] if None in outs else [Strategy((now,), tuple(map(Shard, outs)))]


def recorded(call: Call) -> list:
    """The steps of a view, one record a result."""
    made = record(call.op.definition.map, tuple(call.tensors[0].shape), *call.values[1:])
    return list(made) if isinstance(made, list | tuple) else [made]


def _of_reshape(step, d: int, parts: int) -> int | None:
    """The first dimension of a group of dimensions that is joined or split stays cut, when the parts are even."""
    src, dst = step.in_shape, step.out_shape
    if 0 in src:
        return None
    i = j = 0
    while i < len(src) and j < len(dst):
        i0, j0, a, b = i, j, src[i], dst[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b:
                a, i = a * src[i], i + 1
            else:
                b, j = b * dst[j], j + 1
        if i0 <= d < i:
            wide = [e for e in range(i0, i) if src[e] != 1] or [i0]
            out = [e for e in range(j0, j) if dst[e] != 1] or [j0]
            if d != wide[0]:
                return None
            even = src[d] % parts == 0 and dst[out[0]] % parts == 0
            return out[0] if even or (len(wide) == len(out) == 1) else None
    return None


def _of_squeeze(step, d: int, parts: int) -> int | None:
    return None if d in step.params[0] else d - sum(e < d for e in step.params[0])


def _of_slice(step, d: int, parts: int) -> int | None:
    at, start, length, stride = step.params
    return d if at != d or (start == 0 and stride == 1 and length == step.in_shape[d]) else None


def _of_expand(step, d: int, parts: int) -> int | None:
    at = d + len(step.out_shape) - len(step.in_shape)
    return at if step.in_shape[d] == step.out_shape[at] else None


def _of_diagonal(step, d: int, parts: int) -> int | None:
    return None if d in step.params[:2] else d - sum(e < d for e in step.params[:2])


STEPS: dict[str, Callable] = {
    "permute": lambda step, d, parts: step.params[0].index(d),
    "reshape": _of_reshape,
    "expand": _of_expand,
    "slice": _of_slice,
    "squeeze": _of_squeeze,
    "unsqueeze": lambda step, d, parts: d + (d >= step.params[0]),
    "diagonal": _of_diagonal,
    "unfold": lambda step, d, parts: None if d == step.params[0] else d,
}


# ---- letters: contractions, and operators that say which dimensions they treat apart -----------------------------------


def by_letters(call: Call, ins: list[str], outs: list[str]) -> list[Strategy]:
    """Parts along each letter. A result without the letter is a sum over it. ``.`` is a dimension that stays whole, and so do those behind the end of
    a term. A tensor of fewer dimensions than its term, or of size 1 where others aren't, is broadcast."""
    terms = [ins[place] if place < len(ins) else "" for place in call.at]
    terms = [term[max(len(term) - len(t.shape), 0) :] for term, t in zip(terms, call.tensors)]
    found = []
    for letter in dict.fromkeys(c for term in terms for c in term if c != "."):
        at = [term.find(letter) for term in terms]
        sizes = [None if d < 0 else t.shape[d] for d, t in zip(at, call.tensors)]
        n = max(size for size in sizes if size is not None)
        at = [-1 if size == 1 and n > 1 else d for d, size in zip(at, sizes)]
        parts = max(call.parts(k, d) for k, d in enumerate(at) if d >= 0)
        if any(d >= 0 and size not in (n, None) and (size % parts or n % parts) for d, size in zip(at, sizes)):
            continue
        if call.op.kind != "contraction" and not chunk_of(n, parts, parts - 1)[0]:
            continue  # a kernel need not take an empty part
        ins_ = tuple(R if d < 0 else Shard(d) for d in at)
        found.append(Strategy(ins_, tuple(Shard(o.index(letter)) if letter in o else Partial() for o in outs)))
    return found


def contraction(call: Call) -> list[Strategy]:
    """By letters; and a sum in one factor is a sum in the product."""
    left, _, right = call.op.definition.letters.partition("->")
    found = by_letters(call, left.split(","), [right])
    for k in range(len(call.tensors)):
        p = call.now(k)
        if p.is_partial("sum") or p.is_partial("avg"):
            found.append(Strategy(tuple(p if j == k else R for j in range(len(call.tensors))), (p,)))
    return found


def apart(call: Call, rule: Apart) -> list[Strategy]:
    """Parts along the dimensions that the operator goes along one by one."""
    names = [a.name for a in call.op._schema.arguments]
    ndim = len(call.tensors[0].shape)
    dims = call.values[names.index(rule.dim)]
    if dims is None or any(len(t.shape) != ndim for t in call.tensors):
        return []
    dims = normalize_dims(dims if isinstance(dims, list | tuple) else [dims], ndim) if ndim else []
    results = len(call.op._schema.returns)
    found = [Strategy((Shard(d),) * len(call.tensors), (Shard(d),) * results) for d in range(ndim) if d not in dims]
    for p in call.partials() if rule.linear else ():
        found += [Strategy((p,) * len(call.tensors), (p,))] if p.reduce_op in ("sum", "avg") else []
    return found


# ---- reads and writes by index ---------------------------------------------------------------------------------------


class _At:
    """A coordinate: ``loop`` when it is just that loop's index; ``direct``: the loops that it is computed from."""

    def __init__(self, loop: int | None, direct: frozenset):
        self.loop, self.direct = loop, direct


class _Computed:
    """The arithmetic of coordinate maps: only what a coordinate depends on is kept."""

    def __getattr__(self, name: str):
        return lambda *args: _At(None, frozenset().union(*(a.direct for a in args if isinstance(a, _At))))


class _Ask:
    @staticmethod
    def ndim(t) -> int:
        return len(t.shape)


def index(call: Call) -> list[Strategy]:
    """A loop whose index is used as it is, at one place of each tensor that it meets, can be cut."""
    d = call.op.definition
    shape, fn = d.coords(_Ask(), *call.values)
    used: dict[str, list[tuple[int, _At]]] = {}

    def load(name, *coordinates):
        used.setdefault(name, []).extend((p, c) for p, c in enumerate(coordinates) if isinstance(c, _At))
        return _At(None, frozenset())

    loops = tuple(_At(k, frozenset([k])) for k in range(len(shape)))
    target = [(p, c) for p, c in enumerate(fn(loops, load, _Computed())) if isinstance(c, _At)]
    reads = d.mode == "read"
    if reads:
        used.setdefault(d.source, []).extend(target)
    elif call.named(d.source) is not None:
        used.setdefault(d.source, []).extend(enumerate(loops))
    into = [] if reads else [target]
    found = []
    for k, n in enumerate(shape):
        met = [*used.values(), *into]
        if any(k in c.direct and c.loop != k for uses in met for _, c in uses):
            continue
        places = {name: {p for p, c in uses if c.loop == k} for name, uses in used.items()}
        written = {p for p, c in target if c.loop == k}
        if any(len(p) > 1 for p in (*places.values(), written)):
            continue
        ins: list[Placement] = [R] * len(call.tensors)
        fits = True
        for name, where in places.items():
            at = call.named(name)
            for p in where:
                fits = fits and at is not None and call.tensors[at].shape[p] == n
                if at is not None:
                    ins[at] = Shard(p)
        if not fits:
            continue
        if reads:
            found.append(Strategy(tuple(ins), (Shard(k),)))
            continue
        out: Placement = Shard(next(iter(written))) if written else Partial()
        base = None if d.base is None else call.named(d.base)
        if base is not None:
            if written and call.tensors[base].shape[out.dim] != n:
                continue
            ins[base] = out
        if written or d.combine == "add":
            found.append(Strategy(tuple(ins), (out,)))
    return found


# ---- factories ---------------------------------------------------------------------------------------------------------


def factory(call: Call) -> list[Strategy]:
    """What takes only its shape from a tensor lies as that does."""
    now, d = call.now(0), call.op.definition
    if tuple(d.shape(*call.values)) != tuple(call.tensors[0].shape) or len(call.tensors) != 1:
        return []
    if now.is_partial():
        return [Strategy((now,), (R,))]
    return [Strategy((now,), (now,))] if now.is_shard() and ignores_index(call) else []


def ignores_index(call: Call) -> bool:
    """Whether all elements are alike."""
    if call.op.definition.body is None:
        return True
    try:
        call.op.definition.body(None, None, *call.values)
    except (AttributeError, TypeError):
        return False
    return True


_KINDS: dict[str, Callable[[Call], list[Strategy]]] = {
    "pointwise": pointwise,
    "reduction": reduction,
    "view": view,
    "contraction": contraction,
    "index": index,
    "factory": factory,
}
