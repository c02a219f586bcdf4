"""Arithmetic as modules, so that its results can be observed: ``self.add = FloatFunctional()``, ``self.add.add(x, y)``."""

from __future__ import annotations

import flambeau as torch
from flambeau import nn
from flambeau.core.operator import namespace

from .utils import ScaledModule, output_qparams

__all__ = ["FXFloatFunctional", "FloatFunctional", "QFunctional"]

ops = namespace("quantized")


class FloatFunctional(nn.Module):
    """Arithmetic on floats; ``activation_post_process`` sees the results once the model is prepared."""

    def __init__(self):
        super().__init__()
        self.activation_post_process = nn.Identity()

    def forward(self, x):
        raise RuntimeError("FloatFunctional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        """``x + y``."""
        return self.activation_post_process(torch.add(x, y))

    def add_scalar(self, x, y):
        """``x + y`` with a number; not observed."""
        return torch.add(x, y)

    def mul(self, x, y):
        """``x * y``."""
        return self.activation_post_process(torch.mul(x, y))

    def mul_scalar(self, x, y):
        """``x * y`` with a number; not observed."""
        return torch.mul(x, y)

    def cat(self, x, dim=0):
        """The tensors of ``x``, joined along ``dim``."""
        return self.activation_post_process(torch.cat(x, dim=dim))

    def add_relu(self, x, y):
        """``relu(x + y)``."""
        return self.activation_post_process(torch.relu(torch.add(x, y)))

    def matmul(self, x, y):
        """``x @ y``."""
        return self.activation_post_process(torch.matmul(x, y))


class FXFloatFunctional(nn.Module):
    """Arithmetic on floats, never observed."""

    def forward(self, x):
        raise RuntimeError(
            "FXFloatFunctional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x, y):
        """``x + y``."""
        return torch.add(x, y)

    def add_scalar(self, x, y):
        """``x + y`` with a number."""
        return torch.add(x, y)

    def mul(self, x, y):
        """``x * y``."""
        return torch.mul(x, y)

    def mul_scalar(self, x, y):
        """``x * y`` with a number."""
        return torch.mul(x, y)

    def cat(self, x, dim=0):
        """The tensors of ``x``, joined along ``dim``."""
        return torch.cat(x, dim=dim)

    def add_relu(self, x, y):
        """``relu(x + y)``."""
        return torch.relu(torch.add(x, y))

    def matmul(self, x, y):
        """``x @ y``."""
        return torch.matmul(x, y)


class QFunctional(ScaledModule):
    """Arithmetic on codes, quantised by ``scale`` and ``zero_point``."""

    def __init__(self):
        super().__init__()
        self.scale, self.zero_point = 1.0, 0
        self.activation_post_process = nn.Identity()

    def _get_name(self):
        return "QFunctional"

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}"

    def forward(self, x):
        raise RuntimeError("Functional is not intended to use the 'forward'. Please use the underlying operation")

    def add(self, x, y):
        """``x + y``."""
        return self.activation_post_process(ops.add.default(x, y, self.scale, self.zero_point))

    def add_scalar(self, x, y):
        """``x + y`` with a number."""
        return ops.add_scalar.default(x, y)

    def mul(self, x, y):
        """``x * y``."""
        return self.activation_post_process(ops.mul.default(x, y, self.scale, self.zero_point))

    def mul_scalar(self, x, y):
        """``x * y`` with a number."""
        return ops.mul_scalar.default(x, y)

    def cat(self, x, dim=0):
        """The tensors of ``x``, joined along ``dim``."""
        return self.activation_post_process(ops.cat.default(list(x), dim, self.scale, self.zero_point))

    def add_relu(self, x, y):
        """``relu(x + y)``."""
        return self.activation_post_process(ops.add_relu.default(x, y, self.scale, self.zero_point))

    def matmul(self, x, y):
        """``x @ y``."""
        return self.activation_post_process(ops.matmul.default(x, y, self.scale, self.zero_point))

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Of an observed ``FloatFunctional``."""
        made = cls()
        made.scale, made.zero_point = output_qparams(mod)
        return made
