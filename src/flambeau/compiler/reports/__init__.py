"""``torch.compiler.report``: the work of the compiler on a function, as one HTML file.

``collect.py`` runs the function and gathers, ``machine.py`` measures what the machine can do, ``advice.py`` says what to change; ``loops.py`` writes
kernels as loops, ``diagram.py`` draws graphs, ``page.py`` is the file."""
