"""Quantised tensors: making them, and what operators do with them. Declared when used."""
