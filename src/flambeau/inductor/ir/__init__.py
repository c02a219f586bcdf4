"""The loop IR: nodes that fill buffers, values, sizes."""
