"""Public functions with more than one form, over the operators."""

from __future__ import annotations

import math

from .. import _C
from ..base.dtypes import complex64, float32, limits, result_type
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
    while len(terms) > 1:
        (a, la), (b, lb), *rest = terms
        needed = set(output).union(*(letters for _, letters in rest)) if rest else set(output)
        terms = [_pair(call, a, la, b, lb, needed, output + "".join(sizes)), *rest]
    t, letters = terms[0]
    gone = [d for d, c in enumerate(letters) if c not in output]
    if gone:
        t = call(aten.sum.dim_IntList, t, gone)
        letters = "".join(c for c in letters if c in output)
    order = [letters.index(c) for c in output]
    return (
        call(aten.permute.default, t, order) if order != list(range(len(order))) or any(t is x for x in operands) else t
    )


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
    t = call(aten.permute.default, t, [mine.index(c) for c in letters if c in mine])
    for d, c in enumerate(letters):
        if c not in mine:
            t = call(aten.unsqueeze.default, t, d)
    return t


def _pair(call, a, la, b, lb, needed, order):
    """Contract two operands: letters in both and not needed later are summed by the matrix product. ``order``: all letters, the output's first."""
    for c in dict.fromkeys(la + lb):  # a size 1 that broadcasts is summed out or left to expand
        both = c in la and c in lb
        if both and a.shape[la.index(c)] != b.shape[lb.index(c)]:
            if a.shape[la.index(c)] == 1:
                a, la = call(aten.squeeze.dim, a, la.index(c)), la.replace(c, "")
            else:
                b, lb = call(aten.squeeze.dim, b, lb.index(c)), lb.replace(c, "")
    for which in (0, 1):  # what only one side has and nobody needs
        t, mine, others = (a, la, lb) if which == 0 else (b, lb, la)
        gone = [d for d, c in enumerate(mine) if c not in others and c not in needed]
        if gone:
            t, mine = call(aten.sum.dim_IntList, t, gone), "".join(c for c in mine if c in others or c in needed)
        a, la, b, lb = (t, mine, b, lb) if which == 0 else (a, la, t, mine)
    batch = [c for c in la if c in lb and c in needed]
    inner = [c for c in la if c in lb and c not in needed]
    left, right = [c for c in la if c not in lb], [c for c in lb if c not in la]
    letters = "".join(batch + left + right)
    if not inner:  # nothing is summed: an elementwise product in the order of the output
        letters = "".join(sorted(letters, key=order.index))
        return call(aten.mul.Tensor, *(_aligned(call, t, mine, letters) for t, mine in ((a, la), (b, lb)))), letters
    dims = {c: t.shape[ls.index(c)] for t, ls in ((a, la), (b, lb)) for c in ls}
    size = lambda group: math.prod(dims[c] for c in group)  # noqa: E731
    x = call(aten.permute.default, a, [la.index(c) for c in batch + left + inner])
    y = call(aten.permute.default, b, [lb.index(c) for c in batch + inner + right])
    x = call(aten.reshape.default, x, [size(batch), size(left), size(inner)])
    y = call(aten.reshape.default, y, [size(batch), size(inner), size(right)])
    return call(aten.view.default, call(aten.bmm.default, x, y), [dims[c] for c in letters]), letters


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
