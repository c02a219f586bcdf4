"""Operators on lists of tensors: ``_foreach_*`` and whole optimizer steps."""
