"""The graph that a trace records, its inputs, and what its nodes do."""
