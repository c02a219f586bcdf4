"""Operators that combine the elements along dimensions: sums and extremes, moments, quantiles, scans and sorting."""
