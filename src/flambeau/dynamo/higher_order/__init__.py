"""Calls that take functions of the program: each becomes one node with subgraphs."""
