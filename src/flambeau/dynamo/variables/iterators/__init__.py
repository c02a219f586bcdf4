"""Iterators, generators and what consumes them. All are pulled: one element at a time, as the interpreter does."""
