"""make_fx: tracing functions of tensors into graphs of operators, by a dispatch mode that records what it sees."""

from .make_fx import find_fake_mode as find_fake_mode
from .make_fx import make_fx as make_fx
from .tracing import ASSERT_SCALAR as ASSERT_SCALAR
from .tracing import ProxyTorchDispatchMode as ProxyTorchDispatchMode
from .tracing import current_proxy_mode as current_proxy_mode
