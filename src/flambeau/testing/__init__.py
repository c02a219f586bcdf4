"""``torch.testing``, and the tables and checks that flambeau's own tests run over."""

from .comparison import assert_allclose, assert_close, make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
