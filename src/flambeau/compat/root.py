"""Names of the root namespace that ``flambeau/__init__.py`` doesn't hold: the section "" of the tables, and every module there is."""

from __future__ import annotations

import importlib
import importlib.util
import sys

from ..core.bindings import LATER, function
from ..core.operator import namespace
from ..ops.aten_names import NAMES
from .aliases import ALIASES
from .namespaces import SECTIONS, make, parse

__all__ = ["find", "is_built", "names", "public"]

# Operators that PyTorch has in its root namespace though they have no function of their own.
_NATIVE = frozenset(
    """_adaptive_avg_pool2d _adaptive_avg_pool3d _assert_scalar _coalesce _conj _conj_physical
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _is_all_true _is_any_true _linalg_check_errors _linalg_det _linalg_eigh
    _linalg_slogdet _linalg_solve_ex _linalg_svd _log_softmax _log_softmax_backward_data _native_batch_norm_legit_no_training _neg_view
    _prelu_kernel _safe_softmax _scaled_dot_product_flash_attention_for_cpu _softmax _softmax_backward_data _sparse_log_softmax_backward_data
    _sparse_softmax_backward_data _sparse_sparse_matmul _sparse_sum _unique _unique2 constant_pad_nd resize_as_sparse_ zero_""".split()
)
_MODULES = {
    *(n for n in (*ALIASES, *SECTIONS) if n and "." not in n and not n.startswith("+")),
    *("amp", "distributions", "serialization", "masked", "export"),
}


def names() -> set[str]:
    return {n for n in parse("") if n} | _MODULES


def find(name: str):
    """(the object,), or None when there is none of that name."""
    if name == "torch":  # ``torch.torch.Tensor``: PyTorch's package imports itself
        return (sys.modules["flambeau"],)
    if name and name in parse(""):
        return (make("", name),)
    if name in _MODULES and importlib.util.find_spec(f"flambeau.{name}") is not None:
        return (importlib.import_module(f"flambeau.{name}"),)
    return (function(name),) if name in _NATIVE and is_built(name) else None


def public(name: str):
    """What programs find under ``name`` in the root namespace: functions that modes and captures know. AttributeError where there is nothing."""
    return getattr(sys.modules["flambeau"], name)


def is_built(name: str) -> bool:
    """Whether ``name`` is an operator of ATen's that is built."""
    return name in LATER or (name in NAMES and namespace("aten")._packet(name) is not None)
