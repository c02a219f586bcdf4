"""Passes as objects, and several after each other."""
