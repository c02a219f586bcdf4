"""Tensor subclasses: the handlers of the program run while tracing, so that graphs hold operations on plain tensors only."""
