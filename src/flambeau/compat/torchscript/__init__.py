"""TorchScript archives of PyTorch's: reading, running and writing them.

``reading.load`` opens the zip file. ``syntax`` parses its code with ``ast`` and refuses what isn't TorchScript; ``declared`` has the classes and
methods in it, which ``names`` finds by qualified name. ``lowering`` makes Python functions of methods, for which it infers the static types
(``types``) by which operators are chosen (``resolve``: the rows of ``rows`` for numbers and containers, ATen's schemas and those of ``schemas`` for
tensors). ``program`` compiles what one archive names, ``modules`` are what users get, ``calls`` looks at their arguments, ``pickles`` reads the
state, and ``writing`` writes all of it again.
Invariant: an archive is data. Nothing of its text is run but what ``lowering`` wrote: names lead to operators, to the archive's own classes and
functions, and to locals; attributes are those that the archive's classes declare.
"""
