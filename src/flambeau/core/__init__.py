"""Level 1: operators and their definitions, the tensor class, dispatch, modes and overrides. Knows no particular operator."""
