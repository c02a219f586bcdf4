"""Functions of NumPy, its random generators, and arrays that run backwards."""
