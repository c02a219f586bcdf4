"""``_foreach_*``: an operator on each tensor of a list, and the forms that write into the list. Made of the single operators."""

from __future__ import annotations

from ..core.declare import composite
from ..core.operator import namespace

aten = namespace("aten")

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh "
    "sqrt tan tanh trunc"
).split()
_BINARY = {
    "add": ", *, Scalar alpha=1", "sub": ", *, Scalar alpha=1", "mul": "", "div": "", "maximum": "", "minimum": "", "clamp_max": "",
    "clamp_min": "", "pow": "",
}  # fmt: skip


def _same_length(name, *lists):
    if not lists[0]:
        raise RuntimeError("Tensor list must have at least one tensor.")
    if any(len(x) != len(lists[0]) for x in lists):
        raise RuntimeError(
            f"Tensor lists must have the same number of tensors, got {' and '.join(str(len(x)) for x in lists)}"
        )


def _declare(name, overload, parameters, each):
    """``each(tensor, position, *parameters)``: the result for one tensor of the list."""
    dot = f".{overload}" if overload else ""

    def functional(self, *rest):
        _same_length(name, self, *[r for r in rest if isinstance(r, (list, tuple))])
        return [each(t, k, *rest) for k, t in enumerate(self)]

    def written(self, *rest):
        for t, new in zip(self, functional(self, *rest)):
            aten.copy_.default(t, new)

    composite(f"_foreach_{name}{dot}(Tensor[] self{parameters}) -> Tensor[]", variants="function")(functional)
    composite(f"_foreach_{name}_{dot}(Tensor(a!)[] self{parameters}) -> ()", variants="function")(written)


for _name in _UNARY:
    _declare(_name, "", "", lambda t, k, name=_name: getattr(aten, name)(t))

for _name, _more in _BINARY.items():

    def _pair(x, y, more, name=_name):
        return getattr(aten, name)(x, y, alpha=more[0]) if more else getattr(aten, name)(x, y)

    _declare(
        _name,
        "List",
        f", Tensor[] other{_more}" if _name != "pow" else ", Tensor[] exponent",
        lambda t, k, other, *more, pair=_pair: pair(t, other[k], more),
    )
    _declare(
        _name,
        "Scalar",
        ", Scalar scalar" if _name != "pow" else ", Scalar exponent",
        lambda t, k, value, pair=_pair: pair(t, value, ()),
    )
    _declare(
        _name,
        "ScalarList",
        ", Scalar[] scalars" if _name != "pow" else ", Scalar[] exponent",
        lambda t, k, values, pair=_pair: pair(t, values[k], ()),
    )
    if _name in ("add", "mul", "div"):
        _declare(_name, "Tensor", f", Tensor other{_more}", lambda t, k, other, *more, pair=_pair: pair(t, other, more))

for _name in ("addcmul", "addcdiv"):
    _lists = ", Tensor[] tensor1, Tensor[] tensor2"
    _declare(
        _name,
        "Scalar",
        f"{_lists}, Scalar value=1",
        lambda t, k, a, b, value, name=_name: getattr(aten, name)(t, a[k], b[k], value=value),
    )
    _declare(
        _name,
        "ScalarList",
        f"{_lists}, Scalar[] scalars",
        lambda t, k, a, b, values, name=_name: getattr(aten, name)(t, a[k], b[k], value=values[k]),
    )
    _declare(
        _name,
        "Tensor",
        f"{_lists}, Tensor scalars",
        lambda t, k, a, b, values, name=_name: getattr(aten, name)(
            t, a[k], b[k], value=aten.select.int(values, 0, k).item()
        ),
    )
_declare(
    "lerp",
    "List",
    ", Tensor[] tensors1, Tensor[] weights",
    lambda t, k, ends, weights: aten.lerp.Tensor(t, ends[k], weights[k]),
)
_declare(
    "lerp",
    "Scalar",
    ", Tensor[] tensors1, Scalar weight",
    lambda t, k, ends, weight: aten.lerp.Scalar(t, ends[k], weight),
)


@composite("_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", variants="function")
def _foreach_pow(self, exponent):
    _same_length("pow", exponent)
    return [aten.pow.Scalar(self, e) for e in exponent]


@composite("_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]", variants="function")
def _foreach_norm(self, ord, dtype):
    _same_length("norm", self)
    return [aten.linalg_vector_norm.default(t, ord, None, False, dtype=dtype) for t in self]


@composite("_foreach_max(Tensor[] self) -> Tensor[]", variants="function")
def _foreach_max(self):
    _same_length("max", self)
    return [aten.max.default(t) for t in self]


@composite("_foreach_zero_(Tensor(a!)[] self) -> ()", variants="function")
def _foreach_zero_(self):
    for t in self:
        aten.zero_.default(t)


@composite("_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()", variants="function")
def _foreach_copy_(self, src, non_blocking):
    _same_length("copy", self, src)
    for t, s in zip(self, src):
        aten.copy_.default(t, s)
