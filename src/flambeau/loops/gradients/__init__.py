"""Derivatives of loops: kernels with a tape, lists of operations for higher orders, windows where memory is short, and the operators."""
