"""flambeau: the PyTorch 2 system from scratch. ``import flambeau as torch``.

Eager tensors on NumPy storage behind a dispatcher that Python code interposes on, and a compiler (dynamo, aot, inductor) that turns Python and
NumPy functions into native kernels. Heavy parts (the compiler, distributed, ...) are imported when first used: see ``LAZY``.
"""

from __future__ import annotations

import contextvars as _contextvars
import importlib as _importlib
import os as _os
import sys as _sys

import numpy as _np

from . import _C
from .base.device import Device as device  # noqa: N813
from .base.dtypes import (  # noqa: F401
    DType as dtype,  # noqa: N813
)
from .base.dtypes import (
    bfloat16,
    complex64,
    complex128,
    finfo,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,  # noqa: F401
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,  # noqa: F401
)
from .base.memory_format import MemoryFormat as memory_format  # noqa: F401
from .base.memory_format import channels_last, channels_last_3d, contiguous_format, preserve_format  # noqa: F401
from .base.shape_checks import check as _check  # noqa: F401
from .base.shape_checks import check_index as _check_index  # noqa: F401
from .base.shape_checks import check_is_size as _check_is_size  # noqa: F401
from .base.shape_checks import check_not_implemented as _check_not_implemented  # noqa: F401
from .base.shape_checks import check_type as _check_type  # noqa: F401
from .base.shape_checks import check_value as _check_value  # noqa: F401
from .base.shapes import Size  # noqa: F401
from .base import upper_levels as _upper_levels
from .base.symint import (  # noqa: F401
    SymBool,
    SymFloat,
    SymInt,
    sym_float,
    sym_int,
    sym_ite,
    sym_max,
    sym_min,
    sym_not,
    sym_sqrt,
    sym_sum,
)
from .core.overrides import checked_input as _checked_input
from .core.tensor import Tensor, strided  # noqa: F401
from . import ops  # noqa: E402, F401, I001
from .core import conversion as _conversion
from .core import methods as _tensor_methods  # noqa: F401
from .core import generator as _generator
from .core import overload_arguments as _overload_arguments  # noqa: F401
from .core.attach import attach as _attach
from .core.overrides import wrap_native as _wrap
from .core.participation import participate as _participate
from . import autograd, eager, fake  # noqa: E402, F401
from .autograd import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled  # noqa: F401
from .autograd import methods as _methods  # noqa: F401
from .version import __version__  # noqa: F401


bool = _bool = __import__("flambeau.base.dtypes", fromlist=["bool_"]).bool_
half, float, double, short, int, long = float16, float32, float64, int16, int32, int64
cfloat, cdouble = complex64, complex128
inf, nan, pi, e = _np.inf, _np.nan, _np.pi, _np.e

# NumPy keeps its error state in one context variable: kernels run with that one set to "ignore everything".
_quiet = _contextvars.Context()
_quiet.run(_np.seterr, all="ignore")
_noting = _contextvars.Context()
_noting.run(_np.seterrcall, _C.note)
_noting.run(_np.seterr, all="call")
_C.set_handlers(quiet=next(iter(_quiet.items())), noting=next(iter(_noting.values())))
globals().update({name: fn for name, fn in _attach().items() if name not in globals()})

tensor, as_tensor, asarray, from_numpy = map(
    _wrap, (_conversion.tensor, _conversion.as_tensor, _conversion.asarray, _conversion.from_numpy)
)
is_tensor = _conversion.is_tensor
Generator, manual_seed, seed = _generator.Generator, _generator.manual_seed, _generator.seed
default_generator = _generator.default_generator


def _accelerate(op, args, now, exact=False):
    """Large eager operators, and frequent small ones, run compiled kernels; the compiler is imported when the first one is met."""
    find = _importlib.import_module("flambeau.inductor.single").find
    eager.backend.set_accelerator(find)
    return find(op, args, now, exact)


def _on_device(name):
    """A function of the compiler for the second device, imported when the first one is met."""
    return lambda *args: getattr(_importlib.import_module("flambeau.inductor.device.single"), name)(*args)


def _describe(function):
    """Signature and documentation of a public function, worked out when they are asked for."""
    return _importlib.import_module("flambeau.core.describe").describe(function)


def _vmap(fn):
    """What autograd.grad(is_grads_batched=True) maps with, imported when it is first asked for."""
    run = _importlib.import_module("flambeau.func").vmap(fn)
    return _importlib.import_module("flambeau.batching.functions").without_rules(run)


def _storage(self):
    """The elements of the memory, all of it: ``torch.TypedStorage``."""
    legacy = _importlib.import_module("flambeau.compat.legacy")
    return legacy.TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)


def _storage_type(self):
    """The class of ``storage()``: ``torch.FloatStorage`` and its like."""
    legacy = _importlib.import_module("flambeau.compat.legacy")
    return getattr(legacy, legacy.BY_DTYPE[self.dtype].replace("Tensor", "Storage"))


_storage.__name__, _storage_type.__name__ = "storage", "storage_type"
Tensor.storage, Tensor.storage_type = _storage, _storage_type


def _of(module, name):
    """What loads ``name`` of a module of the package, for a level below it."""
    return lambda: getattr(_importlib.import_module(f"flambeau.{module}"), name)


def _higher_order(name):
    """The operator ``torch.ops.higher_order.<name>``, with the modules that make them."""
    for module in ("aot.higher_order", "nn.attention.flex_operator"):
        _importlib.import_module(f"flambeau.{module}")
    return _importlib.import_module("flambeau.core.higher_order").NAMED.get(name)


def _operator_of_loops(name):
    """Declare what a graph that was made elsewhere may name: the operators of native loops come with their compiler."""
    _importlib.import_module("flambeau.loops.compile")
    return True


ops.higher_order._unbuilt = _higher_order
ops.flambeau._load = _operator_of_loops
_upper_levels.provide("composites that PyTorch decomposes", _of("ops.aten_names", "DECOMPOSED"))
_upper_levels.provide("config.verify", _of("debug.verify", "verified"))
_upper_levels.provide("config.repro_after", _of("debug.repro", "watch"))
_upper_levels.provide("order of collectives", _of("distributed.collective_order", "compared"))
_upper_levels.provide("strict calls", _of("debug.strict_calls", "call"))
_upper_levels.provide("compiler", lambda: _importlib.import_module("flambeau.compiler"))
_upper_levels.provide("byte_arrays", lambda: _importlib.import_module("flambeau.numpy.byte_arrays"))
_upper_levels.provide("core decompositions", _of("library.decompositions", "core_aten_decompositions"))
for _name in ("aoti_compile_and_package", "aoti_load_package"):
    _upper_levels.provide(_name, _of("export.package", _name))
_participate()
autograd.engine.set_vmap(_vmap)
_C.set_handlers(describe=_describe)
if _os.environ.get("FLAMBEAU_EAGER_KERNELS", "1") != "0":
    eager.backend.set_accelerator(_accelerate, there=False)
    eager.on_device.set_kernels(_on_device("run"), _on_device("copy"))


@_wrap
def is_floating_point(input):
    """Whether the dtype of ``input`` is floating."""
    return _checked_input("is_floating_point", input).is_floating_point()


@_wrap
def numel(input):
    """Number of elements."""
    return _checked_input("numel", input).numel()


# Name -> module (the attribute is the module itself) or (module, attribute). Imported when first asked for.
LAZY: dict[str, object] = {
    "nn": "flambeau.nn",
    "optim": "flambeau.optim",
    "fx": "flambeau.fx",
    "func": "flambeau.func",
    "ao": "flambeau.ao",
    "sparse": "flambeau.sparse",
    "nested": "flambeau.nested",
    "package": "flambeau.package",
    "utils": "flambeau.utils",
    "overrides": "flambeau.overrides",
    "return_types": "flambeau.return_types",
    "library": "flambeau.library",
    "distributed": "flambeau.distributed",
    "testing": "flambeau.testing",
    "compiler": "flambeau.compiler",
    "_dynamo": "flambeau._dynamo",
    "numpy": "flambeau.numpy",
    "_inductor": "flambeau._inductor",
    "_functorch": "flambeau._functorch",
    "_subclasses": "flambeau._subclasses",
    "_library": "flambeau._library",
    "_numpy": "flambeau._numpy",
    "compile": ("flambeau.compiler", "compile"),
    "vmap": ("flambeau.func", "vmap"),
    "cond": ("flambeau.aot.control_flow", "cond"),
    "while_loop": ("flambeau.aot.control_flow", "while_loop"),
    "_higher_order_ops": "flambeau._higher_order_ops",
    "set_num_threads": ("flambeau.base.threads", "set_num_threads"),
    "get_num_threads": ("flambeau.base.threads", "get_num_threads"),
    "where": ("flambeau.compat.functions", "where"),
    "einsum": ("flambeau.compat.functions", "einsum"),
    "set_printoptions": ("flambeau.core.printing", "set_printoptions"),
}


def __getattr__(name):
    target = LAZY.get(name)
    if target is None:
        if name.startswith("__") and name.endswith("__") and name not in ("__config__", "__future__"):
            raise AttributeError(name)  # what the import system asks
        value = _importlib.import_module("flambeau.compat.root").find(name)
        if value is None:
            absent = _importlib.import_module("flambeau.base.nearest").Absent
            raise AttributeError(absent(f"module 'torch' has no attribute '{name}' (flambeau)", name, __dir__))
        globals()[name] = value[0]
        return value[0]
    if name == "compile":
        loading = _importlib.import_module("flambeau.base.loading")
        if not loading.is_whole(target[0]):  # a handler runs in the middle of the import
            return loading.compile_later
    value = (
        _importlib.import_module(target)
        if isinstance(target, str)
        else getattr(_importlib.import_module(target[0]), target[1])
    )
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *LAZY, *_importlib.import_module("flambeau.compat.root").names()})


__import__("flambeau.compat.aliases", fromlist=["install"]).install()

if (
    "multiprocessing.reduction" in _sys.modules
):  # a process that was spawned, say: its queues must not copy what is shared
    _importlib.import_module("flambeau.core.sending")
