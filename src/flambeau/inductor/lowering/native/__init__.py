"""Native kernels in a graph: the rules that only lowering can follow."""
