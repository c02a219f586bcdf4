"""Python loops over NumPy arrays and numbers as native loops.

A loop that capture meets is a region of bytecode (:mod:`.region`). :mod:`.interpreter` runs it abstractly on types (:mod:`.values`) until they are
stable, and then once more writing LLVM instructions (:mod:`.emitter`), of which :mod:`.module` makes the kernel. The result is one node of the
graph, the operator ``flambeau::loop`` (:mod:`.operator`). All of this is imported as :mod:`.compile`, by the first loop: importing the package is
free.

What programs say is in :mod:`.instructions`, of loops in :mod:`.iteration`, of functions in :mod:`.inlining`. What values do is in :mod:`.numbers`,
:mod:`.arrays`, :mod:`.containers`, :mod:`.text`, :mod:`.random_numbers`, :mod:`.numpy_functions`; what there is no code for is left to NumPy
(:mod:`.numpy_calls`). How turns run is in :mod:`.threads` and :mod:`.turns`, derivatives are in :mod:`.gradients`.

Invariant: what isn't understood raises :class:`Declined`, and the loop is unrolled or runs plainly; what is, gives Python's and NumPy's results,
types and errors.
"""
