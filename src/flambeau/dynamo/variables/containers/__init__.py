"""Containers: lists, tuples, deques, dicts, sets and views of them."""
