"""Control flow as operators of the graph: ``cond``, ``while_loop``, ``scan``, ``map``, ``associative_scan``.

Called plainly they are loops and branches of ordinary Python, recorded by autograd as any code. Under tracing they become one node
(:class:`~..core.higher_order.HigherOrderOperator`) whose bodies are functional subgraphs; the derivative of a branch is a branch, that of a
scan a scan from the end. A body gets flat operands and returns a flat tuple; what it reads from outside is among the operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _C, batching
from .. import autograd as _autograd
from ..autograd.function import Function
from ..base import pytree
from ..base.dtypes import bool_
from ..base.symint import SymBool
from ..core.higher_order import HigherOrderOperator
from ..core.operator import namespace
from ..fake import FakeTensorMode
from ..proxy import ProxyTorchDispatchMode
from .tracing import trace_subgraph

__all__ = ["associative_scan", "cond", "cond_op", "map", "scan", "scan_op", "while_loop", "while_loop_op"]

aten = namespace("aten")
cond_op = HigherOrderOperator("cond")
while_loop_op = HigherOrderOperator("while_loop")
scan_op = HigherOrderOperator("scan")


def is_tensor(x) -> bool:
    return isinstance(x, _C.TensorBase)


# -- what users call --


def traced_or_mapped() -> bool:
    return bool(_C.tls("dispatch_modes") or _C.tls("transforms"))


class Flat:
    """A function of nested arguments as one of flat operands; the structure of its result is kept."""

    def __init__(self, fn: Callable, spec):
        self.fn, self.spec, self.out_spec = fn, spec, None

    def __call__(self, *operands):
        out, spec = pytree.tree_flatten(self.fn(*pytree.tree_unflatten(list(operands), self.spec)))
        if self.out_spec is not None and spec != self.out_spec:
            raise RuntimeError(
                f"a body returned {spec} and, elsewhere, {self.out_spec}: the structures must be the same"
            )
        self.out_spec = spec
        return tuple(out)


def cond(pred, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()):
    """``true_fn(*operands)`` where ``pred`` (a bool, symbolic or not, or a tensor of one element) holds, else ``false_fn(*operands)``.
    Both return tensors of the same structure, shapes and dtypes. RuntimeError for a predicate of another kind or branches that differ."""
    if isinstance(pred, SymBool):
        pred = aten.scalar_tensor.default(pred, dtype=bool_) if traced_or_mapped() else bool(pred)
    if not isinstance(pred, bool) and not is_tensor(pred):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if is_tensor(pred) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(is_tensor(x) for x in pytree.tree_leaves(operands)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, "
            f"but got {operands}."
        )
    if not is_tensor(pred) or not traced_or_mapped():
        return true_fn(*operands) if bool(pred) else false_fn(*operands)
    flat, spec = pytree.tree_flatten(tuple(operands))
    yes, no = Flat(true_fn, spec), Flat(false_fn, spec)
    out = cond_op(pred, yes, no, tuple(flat))
    return pytree.tree_unflatten(list(out), yes.out_spec or no.out_spec)


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list):
    """``carried = body_fn(*carried)`` as long as ``cond_fn(*carried)`` holds; the tuple of carried values. The body keeps their structure,
    shapes and dtypes."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list, got {type(carried_inputs)}")
    carried = tuple(carried_inputs)
    if not traced_or_mapped():
        while bool(cond_fn(*carried)):
            carried = body_fn(*carried)
            carried = tuple(carried) if isinstance(carried, (tuple, list)) else (carried,)
        return carried
    flat, spec = pytree.tree_flatten(carried)

    def body(*values):
        out = body_fn(*pytree.tree_unflatten(list(values), spec))
        return tuple(pytree.tree_leaves(tuple(out) if isinstance(out, (tuple, list)) else (out,)))

    def test(*values):
        return (cond_fn(*pytree.tree_unflatten(list(values), spec)),)

    return pytree.tree_unflatten(list(while_loop_op(test, body, tuple(flat), ())), spec)


def scan(combine_fn: Callable, init: Any, xs: Any, *, dim: int = 0, reverse: bool = False):
    """``carry, y = combine_fn(carry, x)`` for each slice ``x`` of ``xs`` along ``dim``, from the end with ``reverse``. Returns the last
    carry, and the ``y`` stacked along a new first dimension in the order of the slices."""
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    return _scan(combine_fn, init, xs, (), dim, reverse)


def _scan(combine_fn: Callable, init: Any, xs: Any, others: tuple, dim: int = 0, reverse: bool = False):
    """:func:`scan` of a ``combine_fn`` that takes tensors ``others`` too, the same for each slice: gradients reach them."""
    inits, init_spec = pytree.tree_flatten(init)
    slices, xs_spec = pytree.tree_flatten(xs)
    if not slices:
        raise RuntimeError("scan() operator requires non-empty xs.")
    lengths = [x.shape[dim] for x in slices]
    if any(n != lengths[0] for n in lengths):
        raise RuntimeError(f"scan() operator requires xs of one length along dim {dim}, got {lengths}")
    slices = [aten.movedim.int(x, dim, 0) if dim else x for x in slices]
    y_spec: list = []

    def combine(*values):
        carry = pytree.tree_unflatten(list(values[: len(inits)]), init_spec)
        x = pytree.tree_unflatten(list(values[len(inits) : len(inits) + len(slices)]), xs_spec)
        carry, y = combine_fn(carry, x, *values[len(inits) + len(slices) :])
        leaves, spec = pytree.tree_flatten(y)
        new, new_spec = pytree.tree_flatten(carry)
        if new_spec != init_spec:
            raise RuntimeError(f"scan: combine_fn returned a carry of structure {new_spec}, init has {init_spec}")
        y_spec[:] = [spec]
        return (*new, *leaves)

    out = scan_op(combine, tuple(inits), tuple(slices), others, reverse)
    carry = pytree.tree_unflatten(list(out[: len(inits)]), init_spec)
    return carry, pytree.tree_unflatten(list(out[len(inits) :]), y_spec[0])


def map(f: Callable, xs: Any, *args):
    """``f(x, *args)`` for each slice ``x`` of ``xs`` along the first dimension, stacked. RuntimeError for leaves that aren't tensors, that differ in
    the first dimension, or that have nothing in it."""
    leaves = pytree.tree_leaves(xs)
    if not all(is_tensor(x) for x in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [x.shape for x in leaves]
    if any(shape[0] != shapes[0][0] for shape in shapes):
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    if any(shape[0] == 0 for shape in shapes):
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    given, spec = pytree.tree_flatten(args)

    def combine(carry, x, *others):
        left = iter(others)
        return (), f(x, *pytree.tree_unflatten([next(left) if is_tensor(a) else a for a in given], spec))

    return _scan(combine, (), xs, tuple(a for a in given if is_tensor(a)))[1]


def _unstack_pytree(xs: Any) -> list:
    """What ``xs`` is at each index of the first dimension of its leaves, which are tensors of one length."""
    leaves, spec = pytree.tree_flatten(xs)
    return [pytree.tree_unflatten(list(parts), spec) for parts in zip(*(aten.unbind.int(x) for x in leaves))]


def _stack_pytree(trees: list) -> Any:
    """Trees of one structure as one, their leaves stacked along a new first dimension."""
    flat = [pytree.tree_flatten(tree) for tree in trees]
    stacked = [aten.stack.default(list(parts)) for parts in zip(*(leaves for leaves, _ in flat))]
    return pytree.tree_unflatten(stacked, flat[0][1])


def associative_scan(combine_fn: Callable, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "generic"):
    """The running combination of the slices of ``xs`` along ``dim`` by an associative function of two slices. It is called on whole
    parts of ``xs``, about 2 log n times, so it has to work elementwise along ``dim``; "pointwise" and "generic" are the same here."""
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    leaves = [aten.movedim.int(x, dim, 0) if dim else x for x in leaves]
    if reverse:
        leaves = [aten.flip.default(x, [0]) for x in leaves]

    def combine(a, b):
        out = combine_fn(pytree.tree_unflatten(a, spec), pytree.tree_unflatten(b, spec))
        return pytree.tree_leaves(out)

    out = _scanned(combine, leaves)
    if reverse:
        out = [aten.flip.default(x, [0]) for x in out]
    return pytree.tree_unflatten([aten.movedim.int(x, 0, dim) if dim else x for x in out], spec)


def _part(values, start, stop, step):
    return [aten.slice.Tensor(v, 0, start, stop, step) for v in values]


def _scanned(combine: Callable, values: list) -> list:
    n = values[0].shape[0]
    if n < 2:
        return values
    odd = _scanned(combine, combine(_part(values, 0, n - 1, 2), _part(values, 1, n, 2)))
    rest = _part(values, 2, n, 2)
    if not rest[0].shape[0]:
        return [aten.cat.default([a, b], 0) for a, b in zip(_part(values, 0, 1, 1), odd)]
    even = combine(_part(odd, 0, rest[0].shape[0], 1), rest)
    even = [aten.cat.default([a, b], 0) for a, b in zip(_part(values, 0, 1, 1), even)]
    return [interleaved(a, b) for a, b in zip(even, odd)]


def interleaved(even, odd):
    """Slices of two tensors in turn; ``even`` has as many as ``odd`` or one more."""
    n = odd.shape[0]
    both = aten.stack.default([aten.slice.Tensor(even, 0, 0, n), odd], 1)
    both = aten.reshape.default(both, [2 * n, *odd.shape[1:]])
    return both if even.shape[0] == n else aten.cat.default([both, aten.slice.Tensor(even, 0, n, n + 1)], 0)


# -- eager --


@cond_op.rule("eager")
def _(op, pred, yes, no, operands):
    return tuple((yes if bool(pred) else no)(*operands))


@while_loop_op.rule("eager")
def _(op, test, body, carried, others):
    carried = tuple(carried)
    while bool(test(*carried, *others)[0]):
        carried = tuple(body(*carried, *others))
    return carried


@scan_op.rule("eager")
def _(op, combine, init, xs, others, reverse):
    n, carry, rows = xs[0].shape[0], tuple(init), []
    if not n:
        raise RuntimeError("scan() operator doesn't support zero-sized tensors during tracing.")
    for i in reversed(range(n)) if reverse else range(n):
        out = tuple(combine(*carry, *(aten.select.int(x, 0, i) for x in xs), *others))
        carry = out[: len(init)]
        rows.append(out[len(init) :])
    rows = rows[::-1] if reverse else rows
    return (*carry, *(aten.stack.default(list(column), 0) for column in zip(*rows)))


# -- shapes --


def described(x):
    return f"{x.dtype}{list(x.shape)}" if is_tensor(x) else repr(x)


def must_agree(what: str, first, second) -> None:
    a, b = [described(x) for x in first], [described(x) for x in second]
    if a != b:
        raise RuntimeError(f"{what} must have the same shapes and dtypes, got {a} and {b}")


@cond_op.rule(FakeTensorMode)
def _(op, mode, pred, yes, no, operands):
    with mode:
        first, second = yes(*operands), no(*operands)
    must_agree("torch.cond: the outputs of true_fn and false_fn", first, second)
    return tuple(first)


@while_loop_op.rule(FakeTensorMode)
def _(op, mode, test, body, carried, others):
    with mode:
        (pred,) = test(*carried, *others)
        if is_tensor(pred) and pred.numel() != 1:
            raise RuntimeError(f"while_loop: cond_fn must return a boolean scalar, got shape {list(pred.shape)}")
        out = tuple(body(*carried, *others))
    must_agree("while_loop: carried inputs and what body_fn returns", carried, out)
    return out


@scan_op.rule(FakeTensorMode)
def _(op, mode, combine, init, xs, others, reverse):
    with mode:
        out = combine(*init, *(aten.select.int(x, 0, 0) for x in xs), *others)
        must_agree("scan: init and the carry that combine_fn returns", init, out[: len(init)])
        n = xs[0].shape[0]
        ys = [aten.new_empty.default(y, [n, *y.shape]) for y in out[len(init) :]]
        return (*out[: len(init)], *ys)


# -- graphs --


def recorded(mode, op, bodies: list[tuple[Callable, list]], rest: Callable[[list, list], tuple], out):
    """A node of ``op`` in the trace of ``mode``. ``bodies``: functions with operands to trace them on; ``rest(subgraphs, lifted)`` gives the
    arguments, tensors among them."""
    traced = [trace_subgraph(mode, fn, operands) for fn, operands in bodies]
    lifted: dict[int, Any] = {}
    for t in traced:
        lifted.update({id(x): x for x in t.lifted})
    graphs = [t.module(list(lifted.values())) for t in traced]
    nodes = []
    for gm in graphs:
        name = f"body_graph_{len(mode.constants)}"
        mode.constants[name] = gm
        nodes.append(mode.graph.create_node("get_attr", name, name=name))
        nodes[-1].meta["val"] = None
    args = rest(nodes, list(lifted.values()))
    node = mode.graph.create_node("call_function", op, mode.argument(args))
    mode.track_result(out, node)
    return out


@cond_op.rule(ProxyTorchDispatchMode)
def _(op, mode, pred, yes, no, operands):
    out = tuple(op(pred, yes, no, operands))
    bodies = [(yes, list(operands)), (no, list(operands))]
    return recorded(mode, op, bodies, lambda g, lifted: (pred, *g, (*operands, *lifted)), out)


@while_loop_op.rule(ProxyTorchDispatchMode)
def _(op, mode, test, body, carried, others):
    out = tuple(op(test, body, carried, others))
    operands = [*carried, *others]
    return recorded(mode, op, [(test, operands), (body, operands)], lambda g, x: (*g, carried, (*others, *x)), out)


@scan_op.rule(ProxyTorchDispatchMode)
def _(op, mode, combine, init, xs, others, reverse):
    out = tuple(op(combine, init, xs, others, reverse))
    with mode.fake_mode:
        first = [aten.select.int(x, 0, 0) for x in xs]
    operands = [*init, *first, *others]
    return recorded(mode, op, [(combine, operands)], lambda g, x: (*g, init, xs, (*others, *x), reverse), out)


# -- derivatives --


def differentiable(x) -> bool:
    return is_tensor(x) and (x.dtype.is_floating_point or x.dtype.is_complex)


def pullback(fn: Callable, n: int) -> Callable:
    """``(*n operands, *cotangents) -> cotangents of the differentiable operands``, of a function of n operands."""

    def pull(*values):
        operands, cts = values[:n], values[n:]
        with _autograd.enable_grad():
            fresh = [aten.detach.default(x).requires_grad_() if differentiable(x) else x for x in operands]
            outs = fn(*fresh)
            pairs = [(o, c) for o, c in zip((o for o in outs if differentiable(o)), cts) if o.requires_grad]
            wanted = [x for x in fresh if differentiable(x)]
            got = [None] * len(wanted)
            if pairs:
                got = _autograd.grad([o for o, _ in pairs], wanted, [c for _, c in pairs], allow_unused=True)
        return tuple(aten.zeros_like.default(x) if g is None else g for g, x in zip(got, wanted))

    return pull


def spread(grads, operands) -> list:
    """Cotangents of the differentiable operands in their places, None in the others'."""
    left = iter(grads)
    return [next(left) if differentiable(x) else None for x in operands]


class CondFunction(Function):
    @staticmethod
    def forward(ctx, yes, no, pred, *operands):
        ctx.bodies = yes, no
        ctx.save_for_backward(pred, *operands)
        return tuple(cond_op(pred, yes, no, operands))

    @staticmethod
    def backward(ctx, *cts):
        pred, *operands = ctx.saved_tensors
        n = len(operands)
        cts = [c for c in cts if differentiable(c)]
        grads = cond_op(pred, *(pullback(f, n) for f in ctx.bodies), (*operands, *cts))
        return (None, None, None, *spread(grads, operands))


@cond_op.rule("autograd")
def _(op, pred, yes, no, operands):
    return CondFunction.apply(yes, no, pred, *operands)


class ScanFunction(Function):
    """Backwards it is a scan from the other end, whose carry are the cotangents of the carry and, summed up, of the other operands."""

    @staticmethod
    def forward(ctx, combine, reverse, n_init, n_xs, *operands):
        init, xs, others = operands[:n_init], operands[n_init : n_init + n_xs], operands[n_init + n_xs :]

        def keeping(*values):
            out = combine(*values)
            # NOTE: copies, as a result may not be an operand itself.
            return (*out, *(aten.clone.default(c) for c in values[:n_init]))

        out = scan_op(keeping, init, xs, others, reverse)
        n = len(out) - n_init
        ctx.combine, ctx.reverse, ctx.n = combine, reverse, (n_init, n_xs)
        ctx.save_for_backward(*operands, *out[n:])
        return tuple(out[:n])

    @staticmethod
    def backward(ctx, *cts):
        n_init, n_xs = ctx.n
        saved = ctx.saved_tensors
        operands, carries = saved[: len(saved) - n_init], saved[len(saved) - n_init :]
        xs, others = operands[n_init : n_init + n_xs], operands[n_init + n_xs :]
        pull = pullback(ctx.combine, len(operands))
        kinds = [differentiable(x) for x in operands]
        k = sum(kinds[:n_init])  # differentiable carries, first among all cotangents
        m = sum(kinds[n_init : n_init + n_xs])
        g_out = [c for c in cts[:n_init] if differentiable(c)]
        g_ys = [c for c in cts[n_init:] if differentiable(c)]
        sums = [aten.zeros_like.default(x) for x in others if differentiable(x)]
        q = len(sums)

        def back(*values):
            g_carry, total = values[:k], values[k : k + q]
            rest = values[k + q :]
            before, x = rest[:n_init], rest[n_init : n_init + n_xs]
            gy = rest[n_init + n_xs : n_init + n_xs + len(g_ys)]
            other = rest[n_init + n_xs + len(g_ys) :]
            got = pull(*before, *x, *other, *g_carry, *gy)
            totals = [aten.add.Tensor(t, g) for t, g in zip(total, got[k + m :])]
            return (*got[:k], *totals, *got[k : k + m])

        out = scan_op(back, (*g_out, *sums), (*carries, *xs, *g_ys), tuple(others), not ctx.reverse)
        grads = [*out[:k], *out[k + q :], *out[k : k + q]]
        return (None, None, None, None, *spread(grads, operands))


@scan_op.rule("autograd")
def _(op, combine, init, xs, others, reverse):
    return ScanFunction.apply(combine, reverse, len(init), len(xs), *init, *xs, *others)


# -- vmap --


def innermost_level(tree):
    levels = [x._payload[1] for x in pytree.tree_leaves(tree) if isinstance(x, batching.BatchedTensor)]
    return max(levels, key=lambda lv: lv.number)


def mapped_body(fn: Callable, lvl, mask: list[bool]) -> Callable:
    """``fn`` on whole batches: the values of operands where ``mask`` says they are mapped; every result has the batch in front."""

    def run(*values):
        with batching.level(lvl.size, lvl.randomness) as inner:
            given = [batching.wrap(v, inner) if m else v for v, m in zip(values, mask)]
            taken = [batching.value_at(x, inner) for x in fn(*given)]
        return tuple(v if m else in_front(v, lvl.size) for v, m in taken)

    return run


def in_front(v, size: int):
    return aten.clone.default(aten.expand.default(aten.unsqueeze.default(v, 0), [size, *v.shape]))


def take(values, lvl):
    pairs = [batching.value_at(v, lvl) if is_tensor(v) else (v, False) for v in values]
    return [v for v, _ in pairs], [m for _, m in pairs]


@cond_op.rule("vmap")
def _(op, pred, yes, no, operands):
    lvl = innermost_level((pred, operands))
    if batching.value_at(pred, lvl)[1]:  # each example has its own branch: both are run
        first, second = yes(*operands), no(*operands)
        must_agree("torch.cond: the outputs of true_fn and false_fn", first, second)
        shape = lambda a: aten.reshape.default(pred, [1] * a.dim()) if a.dim() else pred  # noqa: E731
        return tuple(aten.where.self(shape(a), a, b) for a, b in zip(first, second))
    values, mask = take(operands, lvl)
    with batching.below(lvl):
        out = op(pred, mapped_body(yes, lvl, mask), mapped_body(no, lvl, mask), tuple(values))
    return tuple(batching.wrap(x, lvl) for x in out)


@while_loop_op.rule("vmap")
def _(op, test, body, carried, others):
    lvl = innermost_level((carried, others))
    values, mask = take([*carried, *others], lvl)
    n = len(carried)
    with batching.below(lvl):
        values = [v if m or i >= n else in_front(v, lvl.size) for i, (v, m) in enumerate(zip(values, mask))]
        mask = [True] * n + mask[n:]
        tests, step = mapped_body(test, lvl, mask), mapped_body(body, lvl, mask)

        def any_left(*vs):
            return (aten.any.default(tests(*vs)[0]),)

        def masked(*vs):
            (on,) = tests(*vs)
            new = step(*vs)
            return tuple(
                aten.where.self(aten.reshape.default(on, [-1, *[1] * (v.dim() - 1)]), v, o) for v, o in zip(new, vs)
            )

        out = op(any_left, masked, tuple(values[:n]), tuple(values[n:]))
    return tuple(batching.wrap(x, lvl) for x in out)


@scan_op.rule("vmap")
def _(op, combine, init, xs, others, reverse):
    lvl = innermost_level((init, xs, others))
    values, mask = take([*init, *xs, *others], lvl)
    n, m = len(init), len(xs)
    with batching.below(lvl):
        values = [v if k or i >= n else in_front(v, lvl.size) for i, (v, k) in enumerate(zip(values, mask))]
        mask = [True] * n + mask[n:]
        # The batch of xs goes behind the dimension that is scanned.
        rows = [batching.movedim(v, 0, 1) if k else v for v, k in zip(values[n : n + m], mask[n:])]
        out = op(mapped_body(combine, lvl, mask), tuple(values[:n]), tuple(rows), tuple(values[n + m :]), reverse)
        carry, ys = out[:n], [batching.movedim(y, 1, 0) for y in out[n:]]
    return tuple(batching.wrap(x, lvl) for x in (*carry, *ys))
