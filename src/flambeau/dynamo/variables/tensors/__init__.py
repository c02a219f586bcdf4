"""Tensors, and functions of the library on them."""
