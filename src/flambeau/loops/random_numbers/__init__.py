"""Random generators in a loop: their tables, NumPy's algorithms on their bits, and the methods that draw."""
