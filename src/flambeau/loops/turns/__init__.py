"""Several turns of a loop taken at once, or all of them: rewrites of the instructions that were written for one turn."""
