"""Random numbers in a native loop: NumPy's own bit generator is asked, and NumPy's own distributions are called, so that the numbers are NumPy's.

The stream is an operand, the generator's table (see streams.py). What NumPy computes from the bits of its generator around the calls it exports
(ends of an interval, location and scale, integers below a bound, orders, shares of probabilities, RandomState's normal numbers) is computed here, by
the algorithms that NumPy documents: integers of Generator by Lemire's method (Lemire 2019, "Fast random integer generation in an interval"), those
of RandomState, and places in a shuffle, by masks and rejection, RandomState's normal numbers by Marsaglia's polar method, of which it keeps the
second. A parameter that NumPy would refuse ends the loop, and plain code tells the error.
"""

from .methods import NORMALS, draw

__all__ = ["NORMALS", "draw"]
