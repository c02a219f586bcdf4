"""Reads and writes at computed positions, and operators whose result size depends on values."""
