"""Graphs on the second device: kernels for threads, launched in order, beside operators that the device has no kernel for."""
