"""Passes that hold for every set of operators."""
