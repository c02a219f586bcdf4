"""Operators that make tensors from numbers."""
