"""Public functions with more than one form, over the operators."""

from __future__ import annotations

import math

from .. import _C
from ..base.dtypes import complex64, float32, limits, result_type
from ..base.shapes import statically_equal
from ..base.symint import check_fits, is_int, is_number
from ..core.bindings import Binder, function
from ..core.operator import namespace
from ..core.overrides import wrap_function, wrap_native

aten = namespace("aten")
_where = function("where")
_WIDE = (float32, complex64)  # which don't hold all Python floats, and take no infinity for one
_HELD = limits(float32)[1]  # floats up to it fit, as integers take none


def _check_beside(number, tensor):
    """RuntimeError when a number, selected or not, doesn't fit into the dtype of the result; floats of 16 bits take all."""
    if number.__class__ is float and -_HELD <= number <= _HELD:
        return
    if isinstance(tensor, _C.TensorBase):
        kind = tensor._dtype
        made = kind if kind.category == 1 and is_int(number) else result_type(tensor, number)
        if made.category == 1 or made in _WIDE:
            check_fits(number, made)


def where(condition, input=None, other=None, *, out=None):
    """``where(condition)``: the indices of true elements, a tuple; ``where(condition, input, other)``: elements of one or the other."""
    if not isinstance(condition, _C.TensorBase):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if input is None and other is None:
        return (
            tuple(aten.unbind.int(aten.nonzero.default(condition), 1)) if condition._ndim else tuple(_where(condition))
        )
    if is_number(other):
        _check_beside(other, input)
    elif is_number(input):
        _check_beside(input, other)
    return _where(condition, input, other) if out is None else _where(condition, input, other, out=out)


def einsum(equation, *operands):
    """Sum of products by letters. Reduces to permutes, reshapes and one ``bmm`` for each pair of operands, left to right.

    ``...`` stands for any further dimensions, a letter that occurs twice in one operand takes the diagonal. RuntimeError for letters
    that don't fit.
    """
    if not isinstance(equation, str):
        return _from_lists(equation, *operands)
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    for k, t in enumerate(operands):
        if not isinstance(t, _C.TensorBase):
            raise TypeError(f"einsum(): expected Tensor as element {k} in argument 1, but got {type(t).__name__}")
    known = all(isinstance(t, _C.TensorBase) and t._has_data for t in operands)
    key = (equation, *_sames(operands), *(t._shape for t in operands)) if known else None
    steps = _steps.get(key)
    if steps is not None:
        return _replayed(steps, operands)
    call = _Calls(operands)
    made = _einsum(call, equation, operands)
    if known:
        if len(_steps) >= 512:
            _steps.clear()
        _steps[key] = call.steps
    return made


def _sames(operands):
    """Of each operand the number of the first one that is the same tensor."""
    return [next(i for i, x in enumerate(operands) if x is t) for t in operands]


_steps: dict = {}  # equation and shapes -> the operators that a call is, each with the numbers of its tensors and its further arguments


class _Calls:
    """Calls operators and writes down which. What operands and results are is known by their number."""

    def __init__(self, operands):
        self.steps, self.values = [], list(operands)

    def __call__(self, op, *args):
        tensors = [x for x in args if isinstance(x, _C.TensorBase)]
        at = [next(i for i in reversed(range(len(self.values))) if self.values[i] is x) for x in tensors]
        self.steps.append((op, at, args[len(tensors) :]))
        self.values.append(op(*args))
        return self.values[-1]


def _replayed(steps, operands):
    values = list(operands)
    for op, at, rest in steps:
        values.append(op(*[values[i] for i in at], *rest))
    return values[-1]


def _einsum(call, equation, operands):
    inputs, output = _parse(equation.replace(" ", ""), operands)
    terms = [_diagonals(call, t, letters) for t, letters in zip(operands, inputs)]
    sizes: dict[str, int] = {}
    for k, (t, letters) in enumerate(terms):
        for d, c in enumerate(letters):
            n = t.shape[d]
            if sizes.setdefault(c, n) != n:
                if sizes[c] == 1:
                    sizes[c] = n
                elif n != 1:
                    raise RuntimeError(
                        f"einsum(): subscript {c} has size {n} for operand {k} which does not broadcast with previously "
                        f"seen size {sizes[c]}"
                    )
    order = output + "".join(sorted(sizes))
    while len(terms) > 1:
        (a, la), (b, lb), *rest = terms
        needed = set(output).union(*(letters for _, letters in rest)) if rest else set(output)
        terms = [_pair(call, a, la, b, lb, needed, order), *rest]
    t, letters = terms[0]
    if len(operands) == 1:
        t, letters = _summed(call, t, letters, set(output), order)
    places = [letters.index(c) for c in output]
    if places != list(range(len(places))) or any(t is x for x in operands):
        t = call(aten.permute.default, t, places)
    if len(operands) > 1 and len(sizes) > len(output) and any(statically_equal(n, 1) for n in t.shape):
        t = call(aten.view.default, t, list(t.shape))  # the strides of sizes of 1, which no number depends on
    return t


_ELLIPSIS = "".join(map(chr, range(0x2460, 0x2474)))  # letters that nobody writes stand for the dimensions of "..."


def _parse(equation, operands):
    left, arrow, right = equation.partition("->")
    inputs = left.split(",")
    if len(inputs) != len(operands):
        more = "more" if len(inputs) < len(operands) else "fewer"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    widest, out = 0, []
    for k, (letters, t) in enumerate(zip(inputs, operands)):
        named = letters.replace("...", "", 1)
        if not all(c.isascii() and c.isalpha() for c in named):
            bad = next(c for c in named if not (c.isascii() and c.isalpha()))
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {left.index(bad)} in the equation string, subscripts must be "
                "in [a-zA-Z]"
            )
        free = t.ndim - len(named)
        if ("..." not in letters and free) or free < 0:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(named)}) does not match the number of dimensions "
                f"({t.ndim}) for operand {k}" + ("" if "..." in letters or free < 0 else " and no ellipsis was given")
            )
        widest = max(widest, free)
        out.append(letters.replace("...", _ELLIPSIS[len(_ELLIPSIS) - free :] if free else ""))
    dots = _ELLIPSIS[len(_ELLIPSIS) - widest :] if widest else ""
    if arrow:
        output = right.replace("...", dots)
        for c in output:
            if output.count(c) > 1:
                raise RuntimeError(f"einsum(): output subscript {c} appears more than once in the output")
            if not any(c in letters for letters in out):
                raise RuntimeError(
                    f"einsum(): output subscript {c} does not appear in the equation for any input operand"
                )
    else:
        every = "".join(out)
        output = dots + "".join(sorted(c for c in set(every) if every.count(c) == 1 and c not in dots))
    return out, output


def _diagonals(call, t, letters):
    for c in dict.fromkeys(letters):
        while letters.count(c) > 1:
            first = letters.index(c)
            second = letters.index(c, first + 1)
            if t.shape[first] != t.shape[second]:
                raise RuntimeError(
                    f"einsum(): subscript {c} is repeated for an operand but the sizes don't match, {t.shape[second]} != {t.shape[first]}"
                )
            t = call(aten.diagonal.default, t, 0, first, second)  # the diagonal becomes the last dimension
            letters = letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + c
    return t, letters


def _aligned(call, t, mine, letters):
    """``t`` with a dimension for each of ``letters``, of size 1 where it has none."""
    for c in letters:
        if c not in mine:
            t, mine = call(aten.unsqueeze.default, t, len(mine)), mine + c
    return call(aten.permute.default, t, [mine.index(c) for c in letters])


def _without_ones(call, t, letters, needed):
    """Without letters of size 1 that nobody needs: there is nothing to sum."""
    for c in letters:
        if c not in needed and statically_equal(t.shape[letters.index(c)], 1):
            t, letters = call(aten.squeeze.dim, t, letters.index(c)), letters.replace(c, "")
    return t, letters


def _summed(call, t, letters, kept, order):
    """The sum over letters that aren't kept, and its letters. What was summed has its memory in ``order``."""
    gone = [c for c in letters if c not in kept]
    if not gone:
        return t, letters
    kept = sorted((c for c in letters if c in kept), key=order.index)
    places = [letters.index(c) for c in (*kept, *gone)]
    if places != list(range(len(places))):
        t = call(aten.permute.default, t, places)
    return call(aten.sum.dim_IntList, t, list(range(len(kept), len(places)))), "".join(kept)


def _pair(call, a, la, b, lb, needed, order):
    """Contract two operands: letters in both and not needed later are summed by the matrix product. ``order``: all letters, the output's first.

    It decides the strides of the product: what both have, what the left one has, what the right one has and sizes of 1, each in this order;
    the right one first where all that it has is in front.
    """
    for c in dict.fromkeys(la + lb):  # a size 1 that broadcasts is summed out or left to expand
        both = c in la and c in lb
        if both and a.shape[la.index(c)] != b.shape[lb.index(c)]:
            if a.shape[la.index(c)] == 1:
                a, la = call(aten.squeeze.dim, a, la.index(c)), la.replace(c, "")
            else:
                b, lb = call(aten.squeeze.dim, b, lb.index(c)), lb.replace(c, "")
    a, la = _without_ones(call, a, la, needed)
    b, lb = _without_ones(call, b, lb, needed)
    shared = needed.union(c for c in la if c in lb)
    a, la = _summed(call, a, la, shared, order)
    b, lb = _summed(call, b, lb, shared, order)
    dims = {c: t.shape[ls.index(c)] for t, ls in ((a, la), (b, lb)) for c in ls}
    long = {c for c, n in dims.items() if not statically_equal(n, 1)}
    letters = sorted(dims, key=order.index)
    batch = [c for c in letters if c in long and c in la and c in lb and c in needed]
    inner = [c for c in letters if c in la and c in lb and c not in needed]
    left = [c for c in letters if c in long and c not in lb]
    right = [c for c in letters if c not in (*batch, *inner, *left)]
    if not inner:  # nothing is summed: an elementwise product in the order of the output
        letters = "".join(letters)
        return call(aten.mul.Tensor, *(_aligned(call, t, mine, letters) for t, mine in ((a, la), (b, lb)))), letters
    size = lambda group: math.prod(dims[c] for c in group)  # noqa: E731
    if left and max((order.index(c) for c in order if c not in (*batch, *inner, *left)), default=0) < order.index(
        left[0]
    ):
        a, la, left, b, lb, right = b, lb, right, a, la, left
    # A size of 1 may be one that the other operand has.
    x = call(aten.permute.default, a, [la.index(c) for c in (*batch, *left, *inner, *right) if c in la])
    y = call(aten.permute.default, b, [lb.index(c) for c in (*batch, *inner, *right, *left) if c in lb])
    x = call(aten.reshape.default, x, [size(batch), size(left), size(inner)])
    y = call(aten.reshape.default, y, [size(batch), size(inner), size(right)])
    letters = batch + left + right
    return call(aten.view.default, call(aten.bmm.default, x, y), [dims[c] for c in letters]), "".join(letters)


def _from_lists(*parts):
    """``einsum(op1, [0, 1], op2, [1, 2], [0, 2])``."""
    name = lambda k: "..." if k is Ellipsis else chr(ord("A") + k) if k < 26 else chr(ord("a") + k - 26)  # noqa: E731
    if len(parts) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"
        )
    operands = [p for p in parts if isinstance(p, _C.TensorBase)]
    if len(operands) < len(parts) // 2:
        raise TypeError(f"einsum(): argument 'equation' (position 1) must be str, not {type(parts[0]).__name__}")
    lists = [p for p in parts if not isinstance(p, _C.TensorBase)]
    texts = ["".join(map(name, p)) for p in lists]
    return einsum(
        ",".join(texts[: len(operands)]) + ("->" + texts[-1] if len(texts) > len(operands) else ""), *operands
    )


where, einsum = wrap_native(where), wrap_function(einsum, operands_from=1)
_meshgrid, _broadcast_tensors = Binder("meshgrid"), Binder("broadcast_tensors")


@wrap_function
def meshgrid(*tensors, indexing=None):
    """Coordinates of a grid, a tensor for each vector: of shape (len(a), len(b), ...), or transposed in its first two with "xy"."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    return tuple(_meshgrid(list(tensors), indexing="ij" if indexing is None else indexing))


@wrap_function
def broadcast_tensors(*tensors):
    """All of them expanded to their common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    return tuple(_broadcast_tensors(list(tensors)))


def assert_int_or_pair(arg, arg_name: str, message: str) -> None:
    """AssertionError unless ``arg`` is a number or two."""
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))
