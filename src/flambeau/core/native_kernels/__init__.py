"""Calls of native kernels (csrc/runtime/kernels.def): what each is handed, written once against a handler ``h``.

The override "lower" of an operator says which kernel makes it; two handlers run it. Lowering makes a launch in a compiled graph, where sizes may
be expressions (inductor/lowering/lowering.py); call plans make a step of an eager call (eager/plans/native_kernels.py). A handler has

``launch(kernel, operands, outs, flops, **numbers)``: the tensors that a kernel makes; ``outs`` has the ResultSpec of
each, None for one that isn't wanted; ``flops``: about how many operations it makes; ``by_planes=True``: worth going on by finished planes
``realize(x)``, ``contiguous(x)``: where a tensor lies, in C order: a part with ``shape`` and ``strides``
``image(x)``: the same in C order or with channels last; ``image_strides(shape, ruled, as_ruled)``: how a result lies whose shape rule says ``ruled``
``part(part, shape, strides)``: the same memory seen with other sizes; ``in_memory(part, dtype, strides, device)``: it as a tensor
``as_dtype(x, dtype)``, ``copied(x)``, ``biased(x, bias)`` (a tensor (N, C, ...) plus one of (C,)), ``full(shape, dtype, number, device)``: tensors
``message(text, about)``: the number of what an error of the kernel is about (core/messages.py)

NotImplementedError: there is no kernel for that.
"""

from __future__ import annotations

from . import convolutions, elements, losses, ordering, products, rows, segment_sums, transforms, whole_rows, windows

__all__ = ["SUBJECTS"]

SUBJECTS = (convolutions, elements, losses, ordering, products, rows, segment_sums, transforms, whole_rows, windows)
