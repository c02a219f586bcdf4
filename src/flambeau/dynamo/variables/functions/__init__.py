"""Functions: those written in Python (inlined), builtins, and those of the standard library that have a twin in Python."""
