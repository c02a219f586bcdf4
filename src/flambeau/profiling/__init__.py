"""``torch.profiler``: what runs, when and where from.

The native core records (csrc/core/events.c): calls of operators, nodes of backward passes, launches of compiled graphs, their kernels, native
loops, and ranges that programs name. ``recorded.py`` makes a tree of events of the rows, ``averages.py`` sums them, ``table.py`` and ``trace.py``
write them down, ``profiler.py`` is what users call."""
