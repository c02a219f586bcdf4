"""Settings of ahead-of-time autograd, ``torch._functorch.config``."""

from __future__ import annotations

from ..base.config import Config, Knob

__all__ = ["config"]

KNOBS = {
    "activation_memory_budget": Knob(
        1.0,
        "bytes that a forward keeps for its backward, as a part of what it keeps at 1.0 (0 to 1): the rest is computed again",
        in_key=True,
    ),
}

config = Config("torch._functorch.config", KNOBS)
