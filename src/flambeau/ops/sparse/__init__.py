"""Sparse tensors: construction, elementwise rules, products, rearranging."""
