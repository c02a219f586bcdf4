"""Draws from a generator."""
