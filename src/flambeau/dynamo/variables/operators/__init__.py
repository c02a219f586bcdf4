"""Operators, identity, equality and membership on variables: folded on constants, recorded on tensors, traced on containers and objects.

Frames hand this package to variables as ``tx.operators``. :mod:`.dispatch` chooses the rules by the operands. Rules that need an operator on
elements ask the frame for it, so no module here imports one above it."""

from .dispatch import binary as binary
from .dispatch import unary as unary
from .equality import found_among as found_among
from .equality import same_or_equal as same_or_equal
from .equality import searched as searched
from .folding import fold as fold
from .same_object import identical as identical
from .tables import INPLACE as INPLACE
from .tables import OPERATORS as OPERATORS
from .tables import UNARY as UNARY
