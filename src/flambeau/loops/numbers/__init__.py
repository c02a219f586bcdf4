"""Python's and NumPy's rules of numbers: arithmetic, comparisons, conversions, functions, and what integers are known to lie between."""
