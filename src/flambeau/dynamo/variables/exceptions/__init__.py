"""Exceptions, their groups and their tracebacks."""
