"""Elementwise operators: a scalar body each."""
