"""What an operator's author writes: a kind, and the data of that kind.

Every subsystem has one rule per kind and reads these records; none looks at an operator's name. ``ops/`` creates them through the
functions in ``core/declare.py``. See docs/design/architecture.md for the table kind x facet and for the designs that were considered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..base.records import slotted

__all__ = [
    "Composite",
    "Contraction",
    "Extern",
    "Factory",
    "Index",
    "Inplace",
    "Kind",
    "Out",
    "Pointwise",
    "Random",
    "Reduction",
    "TensorMeta",
    "View",
]


@slotted
class TensorMeta:
    """What is known of a tensor without its data: shape (ints), strides (in elements), dtype, device, offset (in elements)."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any
    device: Any
    offset: int = 0

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        n = 1
        for s in self.shape:
            n *= s
        return n


@slotted
class Pointwise:
    """``body(s, *arguments)``: one element of the result from one element of each tensor argument (broadcast).

    ``promote``: how the compute dtype follows from the tensors and numbers in ``operands``:
    ``"default"`` torch.result_type; ``"float"`` the same, integers becoming the default float; ``"keep"`` the first operand's dtype;
    or a function of all arguments giving one of these.
    ``operands``: names of the arguments that take part and are cast to it (all tensor arguments unless given); others keep their dtype.
    ``wraps``: names of ``Scalar`` arguments that convert as a tensor would, integers modulo the range of the dtype; the other ones must fit.
    ``layout``: names of the tensor arguments whose dimension order the result takes over (all, in their order, unless given; none: row-major; None
    among them stands for a number that PyTorch computes with). A single name, not in a tuple: laid out as ``empty_like`` of that argument.
    ``factor``: name of a ``Scalar`` argument that the body only multiplies with (and compares with 1): one call plan serves all its values.
    ``out``: dtype of the result: ``"same"`` as computed, or a dtype. float16 and bfloat16 are computed in float32 and rounded once.
    """

    body: Callable
    promote: str | Callable = "default"
    operands: tuple[str, ...] | None = None
    out: Any = "same"
    wraps: tuple[str, ...] = ()
    layout: tuple[str | None, ...] | str | None = None
    factor: str | None = None
    kind = "pointwise"


@slotted
class Reduction:
    """``map(s, x, *params)`` of each element, combined by the scalar operation ``combine`` starting from ``init``, then
    ``finalize(s, acc, n, *params)`` with ``n`` the number of elements reduced.

    ``dims``, ``keepdim``, ``dtype``: names of the schema arguments holding them (None: all dims, False, no such argument).
    ``acc``: accumulation dtype rule: ``"same"``, ``"sum"`` (bool and integers to int64), ``"float"``, ``"bool"``. float16/bfloat16
    accumulate in float32. ``params`` are the remaining non-tensor arguments in schema order.
    ``combine="argmax"``/``"argmin"``: the state is (value, index), the result the index (int64, first occurrence).
    ``init`` None: the first element (an empty reduction is an error naming the operator).
    """

    combine: str
    init: Any
    map: Callable | None = None
    finalize: Callable | None = None
    acc: str = "same"
    dims: str | None = "dim"
    keepdim: str | None = "keepdim"
    dtype: str | None = None
    kind = "reduction"


@slotted
class View:
    """``map(v, *other_arguments)`` rearranges a *view handler* ``v`` and returns it (or a list of them, for split and unbind).

    The handler has ``shape``, ``ndim`` and the steps of core/viewmap.py: ``permute``, ``reshape``, ``expand``, ``slice``,
    ``squeeze``, ``unsqueeze``, ``diagonal``, ``unfold``. Each step has a strided meaning (eager, fake), a transposed one (derivative),
    a batched one and a meaning on index expressions (lowering).
    """

    map: Callable
    kind = "view"


@slotted
class Index:
    """A map with a loaded index. ``read``: the element of ``source`` that output position ``i`` is taken from;
    ``write``: the position of the result that element ``i`` of ``source`` is combined into.

    ``coords(ix, *arguments)`` gets the handler ``ix`` and returns ``(shape, fn)``: the shape iterated over, and ``fn(i, load)`` giving a
    tuple of coordinates, where ``i`` is a tuple of loop indices and ``load(name, *coords)`` reads the tensor argument ``name``
    (an integer tensor). Bounds are checked (IndexError naming the operator, the value, the size); negative values count from the end
    if ``wrap``, else they are out of bounds. The result is row-major, or with ``keeps_order`` in the dimension order of ``source`` (of ``base``
    when writing).

    mode ``"read"``: out[i] = source[fn(i)].
    mode ``"write"``: out = base or zeros; out[fn(i)] combine= source[i], for ``combine`` in assign, add, multiply, minimum, maximum.
    ``base``: the argument that the result starts from (None: zeros of ``shape_of(*arguments)``).
    """

    mode: str
    source: str
    coords: Callable
    combine: str = "assign"
    base: str | None = None
    shape_of: Callable | None = None
    wrap: bool = False
    keeps_order: bool = False
    kind = "index"


@slotted
class Contraction:
    """Letters of an einsum over the tensor arguments, e.g. ``"mk,kn->mn"``. Letters that only appear on the left are summed over.

    ``mismatch``: text of the error for sizes that don't agree, with ``{0}`` for the shapes, ``{1}`` and ``{2}`` for the sizes; ``ranks``: for a
    wrong number of dimensions, with a ``{}`` for each argument's ("2D"). General ones when not given.
    """

    letters: str
    mismatch: str | None = None
    ranks: str | None = None
    kind = "contraction"


@slotted
class Factory:
    """No tensor is read (a ``*_like`` argument gives shape, dtype and device only). ``body(s, i, *arguments)`` gives the element
    at index ``i`` (a tuple of loop indices). ``shape(*arguments)``, ``dtype(*arguments)`` say what is made."""

    body: Callable | None
    shape: Callable
    dtype: Callable
    kind = "factory"


@slotted
class Random:
    """Draws from the generator: ``draw(generator, shape, dtype, *arguments)`` returns an ndarray. Never recomputed by the partitioner."""

    draw: Callable
    shape: Callable
    dtype: Callable
    kind = "random"


@slotted
class Composite:
    """Python over other operators. ``implicit`` ones vanish above autograd; explicit ones stay visible to autograd and to modes under
    their own name and are decomposed at lowering. ``eager`` may give a direct NumPy kernel, ``meta`` a direct shape rule (both tested
    against ``fn``). ``each``: of an operator on lists, (the operator that ``fn`` calls for each row of them, the place of each of its
    arguments among ours or a 1-tuple with a constant)."""

    fn: Callable
    implicit: bool
    meta: Callable | None = None
    eager: Callable | None = None
    each: tuple | None = None
    kind = "composite"


@slotted
class Extern:
    """A NumPy/SciPy kernel on ndarrays and a shape rule ``meta(*arguments) -> TensorMeta | tuple``."""

    meta: Callable
    eager: Callable
    kind = "extern"


@slotted
class Inplace:
    """``add_``: the result of ``functional`` is written into its first argument. Derived from the functional operator."""

    functional: Any
    kind = "inplace"


@slotted
class Out:
    """``add.out``: the results of ``functional`` are written into the ``out`` arguments. Derived from the functional operator."""

    functional: Any
    kind = "out"


Kind = Pointwise | Reduction | View | Index | Contraction | Factory | Random | Composite | Extern | Inplace | Out
