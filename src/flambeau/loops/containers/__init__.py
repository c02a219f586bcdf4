"""Lists, deques, dicts and sets of numbers that a loop changes: objects of the kernel's own (csrc/runtime/containers.c), which become Python's
behind it.

Where a container is made, or given empty or with a few numbers, is its *site*; what its items are is found while the region is run on types, and
where a site learns more the region is run again (:mod:`.sites`). Items are words of 8 bytes: numbers, and tuples of them (:mod:`.items`). What
lists do is in :mod:`.lists`, what dicts and sets do in :mod:`.tables`; :mod:`.containers` is what a program says of them, :mod:`.python_objects`
what they become. Builtins and methods that take all items are functions whose bytecode joins that of the loop (:mod:`.list_functions`).
"""

from .containers import Containers
from .items import CHAIN
from .python_objects import made, take
from .sites import MOST, MOST_ALIKE, Changed, Given

__all__ = ["CHAIN", "MOST", "MOST_ALIKE", "Changed", "Containers", "Given", "made", "take"]
