"""Passes over the graph of operators, before it is lowered."""
