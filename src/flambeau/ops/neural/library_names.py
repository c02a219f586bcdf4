"""Operators of layers under names that libraries call directly."""

from __future__ import annotations

from ...core.declare import COMPLEX, composite, explicit
from ...core.operator import namespace

aten = namespace("aten")


composite("relu6(Tensor self) -> Tensor", variants="", inplace=True)(lambda self: aten.hardtanh.default(self, 0, 6))


explicit("_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", refuse=COMPLEX)(
    lambda self, output_size: aten.adaptive_avg_pool2d.default(self, output_size)
)


explicit("_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", refuse=COMPLEX)(
    lambda self, output_size: aten.adaptive_avg_pool3d.default(self, output_size)
)


@explicit("native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor", variants="function")
def native_dropout_backward(grad_output, mask, scale):
    return aten.mul.Tensor(aten.mul.Tensor(grad_output, mask), scale)
