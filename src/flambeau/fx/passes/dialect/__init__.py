"""Passes by the operators that they know."""
