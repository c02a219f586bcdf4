"""Quantised tensors in a trace: codes that are a tensor of the graph, and how they are read; see ops/affine/traced."""

from __future__ import annotations

from flambeau.core.definition import TensorMeta
from flambeau.core.quantized import PACKED, QUANTISED, Affine
from flambeau.core.tensor import CPU
from flambeau.fake import FakeTensor
from flambeau.ops.affine.tracing import rebuilt, stand_in

from ...exc import unsupported
from ...graph import tensor_queries
from ...guards.dynamic import take_marks
from ...guards.source import GetAttrSource
from ...tracing.wrapping import pin
from ..values.constant import ConstantVariable
from ..values.symbolic import require_element
from .tensor_subclass import SubclassVariable
from .torch_functions import special

__all__ = ["CodesVariable", "of_argument"]

PARTS = ("_codes", "_scale", "_zero_point", "_axis", "_packed")


class CodesVariable(SubclassVariable):
    """``parts``: the variables of the attributes of a ``CodesTensor``. To the program it is a plain tensor."""

    def __init__(self, tx, parts: dict, source=None, value=None):
        codes, packed = tx.realize(parts["_codes"]).val, parts["_packed"].as_constant()
        kind = QUANTISED[codes._dtype] if packed is None else PACKED
        shape = (0,) * (codes.ndim if packed is None else len(packed))
        fake = FakeTensor(tx.output.fake_mode, TensorMeta(shape, shape, kind, CPU))
        super().__init__(None, fake, source, stand_in(), value)
        self.parts = parts

    def __repr__(self):
        return f"a {self.val._dtype} tensor"

    def python_type(self):
        return tensor_queries.Tensor if self.value is None else type(self.value)

    def own_attribute(self, tx, name):
        return self.parts.get(name) or super().own_attribute(tx, name)

    def getattr(self, tx, name):
        if name in self.parts:
            return self.parts[name]
        if name == "dtype":
            return tx.wrap_known(self.val._dtype)
        if name == "__class__":
            return tx.wrap_known(self.python_type())
        return super().getattr(tx, name)

    def setattr(self, tx, name, value):
        unsupported("tensor-setattr", f"setting {name} of {self!r}")

    def reconstruct(self, cg):
        cg.call_function(rebuilt, lambda: cg.all(self.parts.values()), len(PARTS))


def of_argument(tx, value, source) -> CodesVariable:
    """The variable of a quantised tensor that existed before the call. Its class and how its codes are read are guarded; sizes are guarded
    as those of the codes, a scale and a zero point as the numbers or tensors that they are."""
    pin(tx, source, "TYPE_MATCH", type(value))
    record, place = value._payload, GetAttrSource(source, "_payload")
    pin(tx, place, "TYPE_MATCH", Affine)
    if record.packed is None:
        take_marks(value, record.codes)
    parts = {name: tx.wrap(getattr(record, name[1:]), GetAttrSource(place, name[1:])) for name in PARTS}
    return CodesVariable(tx, parts, source, value)


@special("quantised_of")
def _(tx, var, args, kwargs):
    given = dict.fromkeys(PARTS, ConstantVariable(None)) | dict(zip(PARTS, args))
    given |= {f"_{k}": v for k, v in kwargs.items()}
    return CodesVariable(tx, {k: tx.realize(v) for k, v in given.items()})


@special("uncaptured_codes")
def _(tx, var, args, kwargs):
    unsupported("quantised-tensor", args[0].as_constant(), "There is no rule for it in captured code.")


@special("code_parameters")
def _(tx, var, args, kwargs):
    return tx.make_tuple(args)


@special("check_codes")
def _(tx, var, args, kwargs):
    with tx.output.shapes.data_numbers():
        require_element(tx, args[0].call_method(tx, "all", [], {}), args[1].as_constant())
    return ConstantVariable(None)
