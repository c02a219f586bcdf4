"""Fourier transforms, windows, and numerical calculus on samples."""
