"""``_foreach_*``: an operator on each row of lists of tensors, and the forms that write into the first list.

A declaration names the operator and which of the arguments its own are; native code calls it row by row (csrc/core/foreach.c).
"""

from __future__ import annotations

from ...core.declare import composite
from ...core.operator import namespace
from ...core.out_lists import write_list

aten = namespace("aten")

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh "
    "sqrt tan tanh trunc"
).split()


def _same_length(*lists):
    if not lists[0]:
        raise RuntimeError("Tensor list must have at least one tensor.")
    if any(len(x) != len(lists[0]) for x in lists):
        raise RuntimeError(
            f"Tensor lists must have the same number of tensors, got {' and '.join(str(len(x)) for x in lists)}"
        )


def _rows(op, places, values):
    """Arguments of ``op`` for each row of ``values``."""
    lists = [v for v in values if isinstance(v, (list, tuple))]
    _same_length(*lists)
    for k in range(len(lists[0])):
        row = [v[k] if isinstance(v, (list, tuple)) else v for v in values]
        yield op.split(tuple(p[0] if isinstance(p, tuple) else row[p] for p in places))


def _declare(schema: str, target: str, *places):
    """``target``: name and overload of the operator; ``places``: of its arguments among those of ``schema`` (default: in the same order)."""
    name, _, overload = target.partition(".")
    op = getattr(getattr(aten, name), overload or "default")
    places = places or tuple(range(len(op._schema.arguments)))

    def functional(*values):
        return [op(*args, **kwargs) for args, kwargs in _rows(op, places, values)]

    composite(f"_foreach_{schema} -> Tensor[]", variants="function", each=(op, places))(functional)
    _declare_out(schema, functional)
    return op, places, functional


def _declare_out(schema: str, functional) -> None:
    """The form that writes what ``functional`` returns into the tensors of a list, which have its dtypes."""
    name, _, parameters = schema.partition("(")
    name, _, overload = name.partition(".")
    star = "" if "*" in parameters else "*, "
    if not parameters.startswith("Tensor[] self"):
        return  # ATen has none

    def into(*values):
        *given, out = values
        write_list(out, functional(*given))

    composite(
        f"_foreach_{name}.{f'{overload}_out' if overload else 'out'}({parameters[:-1]}, {star}Tensor(a!)[] out) -> ()",
        variants="",
    )(into)


def _declare_written(schema: str, op, places, functional=None):
    """The form that writes. ``op`` writes its first argument, or ``functional`` gives what is copied there."""
    if functional is None:

        def written(*values):
            for args, kwargs in _rows(op, places, values):
                op(*args, **kwargs)

        return composite(f"_foreach_{schema} -> ()", variants="function", each=(op, places))(written)

    def copied(self, *rest):
        for t, new in zip(self, functional(self, *rest)):
            aten.copy_.default(t, new)

    return composite(f"_foreach_{schema} -> ()", variants="function")(copied)


def _both(name: str, overload: str, parameters: str, target: str, in_place: str = "", *places):
    """The form that returns a list, and the one that writes with ``in_place`` (default: the in-place form of ``target``)."""
    dot = f".{overload}" if overload else ""
    op, places, functional = _declare(f"{name}{dot}(Tensor[] self{parameters})", target, *places)
    base, _, which = (in_place or target).partition(".")
    packet = getattr(aten, base if in_place else f"{base}_", None)
    written = getattr(packet, which or "default", None)
    more = (written, places) if written is not None else (None, None, functional)
    _declare_written(f"{name}_{dot}(Tensor(a!)[] self{parameters})", *more)


for _name in _UNARY:
    _both(_name, "", "", _name)

for _name in ("add", "sub"):
    _both(_name, "List", ", Tensor[] other, *, Scalar alpha=1", f"{_name}.Tensor")
    _both(_name, "Scalar", ", Scalar scalar", f"{_name}.Tensor", "", 0, 1, (1,))
    _both(_name, "ScalarList", ", Scalar[] scalars", f"{_name}.Tensor", "", 0, 1, (1,))
for _name in ("mul", "div"):
    _both(_name, "List", ", Tensor[] other", f"{_name}.Tensor")
    _both(_name, "Scalar", ", Scalar scalar", f"{_name}.Tensor")
    _both(_name, "ScalarList", ", Scalar[] scalars", f"{_name}.Tensor")
    _both(_name, "Tensor", ", Tensor other", f"{_name}.Tensor")
_both("add", "Tensor", ", Tensor other, *, Scalar alpha=1", "add.Tensor")
for _name, _of in (
    ("maximum", "maximum"), ("minimum", "minimum"), ("clamp_max", "clamp_max"), ("clamp_min", "clamp_min"),
):  # fmt: skip
    _bound = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(_of, _of)
    _both(_name, "List", ", Tensor[] other", f"{_of}.Tensor" if _of == _bound else _of, f"{_bound}_.Tensor")
    _both(_name, "Scalar", ", Scalar scalar", _bound, f"{_bound}_")
    _both(_name, "ScalarList", ", Scalar[] scalars", _bound, f"{_bound}_")
_both("pow", "List", ", Tensor[] exponent", "pow.Tensor_Tensor")
_both("pow", "Scalar", ", Scalar exponent", "pow.Tensor_Scalar")
_both("pow", "ScalarList", ", Scalar[] exponent", "pow.Tensor_Scalar")
_declare("pow.ScalarAndTensor(Scalar self, Tensor[] exponent)", "pow.Scalar")
for _name in ("addcmul", "addcdiv"):
    _lists = ", Tensor[] tensor1, Tensor[] tensor2"
    _both(_name, "Scalar", f"{_lists}, Scalar value=1", _name)
    _both(_name, "ScalarList", f"{_lists}, Scalar[] scalars", _name)
_both("lerp", "List", ", Tensor[] tensors1, Tensor[] weights", "lerp.Tensor")
_both("lerp", "Scalar", ", Tensor[] tensors1, Scalar weight", "lerp.Scalar")
_both("lerp", "ScalarList", ", Tensor[] tensors1, Scalar[] weight", "lerp.Scalar")


def _by_numbers_of(name: str):
    """The forms of addcmul and addcdiv that take their factors from a tensor."""
    lists = ", Tensor[] tensor1, Tensor[] tensor2, Tensor scalars"

    @composite(f"_foreach_{name}.Tensor(Tensor[] self{lists}) -> Tensor[]", variants="function")
    def functional(self, tensor1, tensor2, scalars):
        return getattr(aten, f"_foreach_{name}").ScalarList(self, tensor1, tensor2, scalars.tolist())

    _declare_out(
        f"{name}.Tensor(Tensor[] self{lists})", lambda *values: getattr(aten, f"_foreach_{name}").Tensor(*values)
    )

    @composite(f"_foreach_{name}_.Tensor(Tensor(a!)[] self{lists}) -> ()", variants="function")
    def written(self, tensor1, tensor2, scalars):
        getattr(aten, f"_foreach_{name}_").ScalarList(self, tensor1, tensor2, scalars.tolist())


_by_numbers_of("addcmul")
_by_numbers_of("addcdiv")

_declare(
    "norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None)",
    "linalg_vector_norm", 0, 1, (None,), (False,), 2,
)  # fmt: skip
_declare("max(Tensor[] self)", "max")
_declare_written("zero_(Tensor(a!)[] self)", aten.zero_.default, (0,))
_declare_written("copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False)", aten.copy_.default, (0, 1, 2))
_declare("copy(Tensor[] self, Tensor[] src, bool non_blocking=False)", "copy")
