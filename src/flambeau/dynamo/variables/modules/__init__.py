"""Modules (``nn.Module``), their hooks, ``functional_call`` and the library's optimizers."""
