"""``torch.distributions.utils``: the helpers of distributions, which libraries import from here."""

from ..core.operator import namespace
from .discrete import clamp_probs, logits_to_probs, probs_to_logits
from .distribution import broadcast_all, lazy_property
from .distribution import sum_rightmost as _sum_rightmost  # noqa: F401
from .lower import tril_matrix_to_vec, vec_to_tril_matrix

_randn = namespace("aten").randn


def _standard_normal(shape, dtype, device):
    """Independent draws of the normal distribution with mean 0 and deviation 1, a tensor of ``shape``."""
    return _randn(list(shape), dtype=dtype, device=device)


__all__ = [
    "broadcast_all",
    "logits_to_probs",
    "clamp_probs",
    "probs_to_logits",
    "lazy_property",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]
euler_constant = 0.57721566490153286060
