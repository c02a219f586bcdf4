"""Parts of a graph that look like another graph (matcher_utils.py), or come from one call of the program (source_matcher_utils.py)."""
