"""Give Tensor its operator methods and Python operators, from the declarations. Run once, after ops/ is imported."""

from __future__ import annotations

import types

from . import public, python_operators, subscript
from .bindings import Binder, functions, new_function
from .declare import is_public
from .operator import namespace
from .overrides import wrap_function
from .tensor import Tensor


def _where(self, condition, other):
    """Elements of ``self`` where ``condition`` holds, else those of ``other``."""
    return namespace("aten").where(condition, self, other)


_where.__name__ = "where"


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm of all elements, or along ``dim``. ``"fro"``: the Euclidean norm. RuntimeError for an unknown name of a norm."""
    aten = namespace("aten")
    if p == "nuc":
        rest = {} if out is None else {"out": out}
        dim = list(range(input._ndim)) if dim is None else dim
        if not isinstance(dim, int) and len(dim) != 2:
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
        return aten.linalg_matrix_norm(input, "nuc", dim, keepdim, dtype=dtype, **rest)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"only valid string values are 'fro' and 'nuc', found {p}")
    dim = [dim] if isinstance(dim, int) else dim
    rest = {} if out is None else {"out": out}
    return aten.linalg_vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, **rest)


def _transposed(self, methods):
    """The transpose of the last two dimensions; of a number, itself. RuntimeError for a vector."""
    if self._ndim == 1:
        raise RuntimeError("tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return methods["transpose"](self, -2, -1) if self._ndim else self


def _adjoint(self, methods):
    """The conjugate transpose of a matrix. RuntimeError for more than two dimensions."""
    if self._ndim not in (0, 2):
        batches = " For batches of matrices, consider using tensor.mH" if self._ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self._ndim}-D tensor.{batches}")
    return methods["adjoint" if self._ndim else "conj"](self)


def _conjugate_transposed(self, methods):
    """The conjugate transpose of the last two dimensions. RuntimeError for a vector."""
    if self._ndim == 1:
        raise RuntimeError("tensor.mH is only supported on matrices or batches of matrices. Got 1-D tensor.")
    return methods["adjoint"](self)


def _part(view):
    """The property of the real or the imaginary parts: a view, and what is assigned is written into it."""

    def write(self, value):
        aten = namespace("aten")
        (aten.copy_ if isinstance(value, Tensor) else aten.fill_)(view(self), value)

    return property(lambda self: view(self), write)


# Second names of operators.
SAME = {
    **{f"arc{n}{end}": f"a{n}{end}" for n in ("cos", "cosh", "sin", "sinh", "tan", "tanh") for end in ("", "_")},
    **{f"{long}{end}": f"{short}{end}" for long, short in {
        "absolute": "abs", "arctan2": "atan2", "clip": "clamp", "fix": "trunc", "greater": "gt", "greater_equal": "ge", "less": "lt",
        "less_equal": "le", "negative": "neg", "not_equal": "ne", "concat": "cat", "concatenate": "cat", "row_stack": "vstack",
    }.items() for end in ("", "_")},
}  # fmt: skip


def _second(name, fn, method=False):
    """``fn`` under a second name: a function of its own, for modes and subclasses see which one was called."""
    if isinstance(fn.impl, Binder):
        return new_function(fn.impl.name, name, method)
    return wrap_function(_renamed(fn.impl, name))


def _renamed(fn, name):
    made = types.FunctionType(fn.__code__, fn.__globals__, name, fn.__defaults__, fn.__closure__)
    made.__kwdefaults__, made.__doc__ = fn.__kwdefaults__, fn.__doc__
    return made


# Functions of torch.functional, which PyTorch has in Python.
_IN_PYTHON = frozenset("atleast_1d atleast_2d atleast_3d cdist lu split stft unique unique_consecutive".split())


def attach() -> dict:
    """Returns the public functions of the ``torch`` namespace by name."""
    public_functions = functions("function")
    subscript.attach()
    methods = functions("method")
    for name, fn in methods.items():
        if name not in Tensor.__dict__:
            setattr(Tensor, name, fn)
    m = methods

    python_operators.attach(m)
    Tensor.where = wrap_function(_where)
    Tensor.norm = wrap_function(norm)
    Tensor.T = property(lambda self: m["permute"](self, list(range(self._ndim))[::-1]))
    Tensor.H = property(lambda self: _adjoint(self, m))
    Tensor.mH = property(lambda self: _conjugate_transposed(self, m))
    for part in ("real", "imag"):
        setattr(Tensor, part, _part(public_functions[part]))
    Tensor.mT = property(lambda self: _transposed(self, m))
    for name, fn in public.METHODS.items():
        setattr(Tensor, name, wrap_function(fn))
    made = public_functions
    for name, other in SAME.items():
        if other in m and name not in Tensor.__dict__:
            setattr(Tensor, name, _second(name, m[other], method=True))
    for name in _IN_PYTHON & made.keys():
        made[name].binds = True
    return {
        **{
            name: _second(name, made[other])
            for name, other in SAME.items()
            if other in made and is_public("function", name)
        },
        **made,
        "norm": wrap_function(norm),
        **{n: wrap_function(f, binds=n in _IN_PYTHON) for n, f in public.FUNCTIONS.items()},
    }
