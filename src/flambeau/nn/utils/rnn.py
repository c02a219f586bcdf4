"""``torch.nn.utils.rnn``: packed and padded sequences."""

from flambeau.nn.utils.packed import *  # noqa: F403
from flambeau.nn.utils.packed import __all__ as __all__
