"""What runs on several threads: turns of the outermost loop, loops within one, rows, and the elements of statements; the conditions for each."""
