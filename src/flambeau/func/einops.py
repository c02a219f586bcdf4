"""``functorch.einops.rearrange``: axes of a tensor, named in a pattern and put into another order, merged or taken apart.

The language of patterns is that of the einops package: ``"b (h w) c -> b c h w"``. A word names an axis, ``1`` and ``()`` are axes of size 1,
``...`` stands for any number of axes, parentheses for one axis that is the product of those inside.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from ..core.operator import namespace
from ..core.tensor import Tensor

__all__ = ["AnonymousAxis", "ParsedExpression", "parse_pattern", "rearrange", "validate_rearrange_expressions"]

aten = namespace("aten")
_ellipsis = "…"
_TOKENS = re.compile(r"[()]|[^\s()]+")


class AnonymousAxis:
    """An axis that is given by its size, at least 2. Each is another axis, whatever the size."""

    def __init__(self, value: str):
        self.value = int(value)
        if self.value < 2:
            raise ValueError(f"an axis without a name must have a size of at least 2, not {value}")

    def __repr__(self):
        return f"{self.value}-axis"


class ParsedExpression:
    """One side of a pattern. ``composition``: for each axis of the tensor the elementary axes that it is made of, or the ellipsis;
    ``identifiers``: the set of them all. ValueError for text that is no pattern."""

    def __init__(self, expression: str):
        self.identifiers: set[str | AnonymousAxis] = set()
        self.composition: list[list[str | AnonymousAxis] | str] = []
        self.has_ellipsis = self.has_ellipsis_parenthesized = self.has_non_unitary_anonymous_axes = False
        if _ellipsis in expression or "." in expression.replace("...", "", 1):
            raise ValueError(f"{expression!r}: at most one ellipsis '...' is allowed, and no other dots")
        group: list[str | AnonymousAxis] | None = None
        for token in _TOKENS.findall(expression.replace("...", _ellipsis)):
            if token == "(":
                if group is not None:
                    raise ValueError(f"{expression!r}: parentheses in parentheses")
                group = []
            elif token == ")":
                if group is None:
                    raise ValueError(f"{expression!r}: a closing parenthesis without an opening one")
                self.composition.append(group)
                group = None
            elif token == _ellipsis:
                self.has_ellipsis, self.has_ellipsis_parenthesized = True, group is not None
                self.identifiers.add(token)
                if group is None:
                    self.composition.append(token)
                else:
                    group.append(token)
            else:
                axes = self._axes(token)
                if group is None:
                    self.composition.append(axes)
                else:
                    group += axes
        if group is not None:
            raise ValueError(f"{expression!r}: a parenthesis isn't closed")

    def _axes(self, token: str) -> list[str | AnonymousAxis]:
        """The one axis of a word or a number; none for size 1."""
        if token.isdecimal():
            if int(token) == 1:
                return []
            axis: str | AnonymousAxis = AnonymousAxis(token)
            self.has_non_unitary_anonymous_axes = True
        elif not self.check_axis_name(token):
            raise ValueError(
                f"{token!r} is no name of an axis: it must be an identifier that neither starts nor ends with '_'"
            )
        elif token in self.identifiers:
            raise ValueError(f"the axis {token!r} occurs twice on one side")
        else:
            axis = token
        self.identifiers.add(axis)
        return [axis]

    @staticmethod
    def check_axis_name(name: str) -> bool:
        """Whether an axis may have the name."""
        return name.isidentifier() and not name.startswith("_") and not name.endswith("_")


def parse_pattern(pattern: str, axes_lengths: Mapping[str, int]) -> tuple[ParsedExpression, ParsedExpression]:
    """The two sides of a pattern. ValueError for none or several arrows, and for an ellipsis in the wrong place."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError(f"a pattern is two expressions with one '->' between, got {pattern!r}")
    left, right = map(ParsedExpression, sides)
    if right.has_ellipsis and not left.has_ellipsis:
        raise ValueError(f"an ellipsis on the right side, none on the left: {pattern!r}")
    if left.has_ellipsis_parenthesized:
        raise ValueError(f"an ellipsis in parentheses on the left side: {pattern!r}")
    return left, right


def validate_rearrange_expressions(
    left: ParsedExpression, right: ParsedExpression, axes_lengths: Mapping[str, int]
) -> None:
    """TypeError for lengths that aren't ints, ValueError where the sides don't have the same axes or a length is of none of them."""
    for name, length in axes_lengths.items():
        if not isinstance(length, int):
            raise TypeError(f"the length of axis {name!r} must be an int, got {type(length).__name__}")
    if left.has_non_unitary_anonymous_axes or right.has_non_unitary_anonymous_axes:
        raise ValueError("rearrange takes axes without names of size 1 only")
    different = left.identifiers ^ right.identifiers
    if different:
        raise ValueError(f"axes on one side of the pattern only: {', '.join(sorted(map(str, different)))}")
    unknown = axes_lengths.keys() - left.identifiers
    if unknown:
        raise ValueError(f"lengths for axes that aren't in the pattern: {', '.join(sorted(unknown))}")


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """``tensor`` (or several, stacked along a first axis) with its axes as the right side of ``pattern`` says: a view where strides allow it.

    ``axes_lengths``: sizes of axes that the left side has in parentheses; one of each pair of parentheses may be left out. ValueError where the
    tensor isn't what the left side says.

    >>> import flambeau as torch
    >>> rearrange(torch.ones(2, 6, 5), "b (h w) c -> b c h w", h=2).shape
    torch.Size([2, 5, 2, 3])
    """
    if not isinstance(tensor, Tensor):
        tensor = aten.stack(list(tensor))
    left, right = parse_pattern(pattern, axes_lengths)
    validate_rearrange_expressions(left, right, axes_lengths)
    sizes = _sizes(left, tensor.shape, axes_lengths, pattern)
    elementary = [a for a in _flat(left.composition) if a in sizes]
    spread = [n for a in elementary for n in sizes[a]]
    places, at = {}, 0
    for a in elementary:
        places[a] = range(at, at + len(sizes[a]))
        at += len(sizes[a])
    order = [d for a in _flat(right.composition) for d in places[a]]
    out: list[int] = []
    for group in right.composition:
        if group == _ellipsis:
            out += sizes[_ellipsis]
        else:
            out.append(math.prod(n for a in group for n in sizes[a]))
    return tensor.reshape(spread).permute(order).reshape(out)


def _flat(composition: list) -> list:
    return [a for group in composition for a in ([group] if group == _ellipsis else group)]


def _sizes(left: ParsedExpression, shape: Sequence[int], lengths: Mapping[str, int], pattern: str) -> dict:
    """For each elementary axis of the left side its size, in a tuple; for the ellipsis those of all of its axes."""
    given = len(shape) - len(left.composition) + left.has_ellipsis
    if given < 0 or (given and not left.has_ellipsis):
        raise ValueError(
            f"{pattern!r} is for {len(left.composition) - left.has_ellipsis} axes"
            f"{' at least' if left.has_ellipsis else ''}, the tensor has {len(shape)}"
        )
    sizes: dict = {}
    at = 0
    for group in left.composition:
        if group == _ellipsis:
            sizes[group] = tuple(shape[at : at + given])
            at += given
            continue
        n = shape[at]
        at += 1
        known = math.prod(lengths[a] for a in group if a in lengths)
        unknown = [a for a in group if a not in lengths]
        if len(unknown) > 1:
            raise ValueError(f"{pattern!r}: the sizes of {', '.join(unknown)} can't be told apart; give all but one")
        if (n % known if unknown else n != known) if known else n:
            raise ValueError(f"{pattern!r}: an axis of size {n} isn't made of {group} with {dict(lengths)}")
        sizes |= {a: (lengths[a],) for a in group if a in lengths}
        sizes |= {a: (n // known if known else 0,) for a in unknown}
    return sizes
