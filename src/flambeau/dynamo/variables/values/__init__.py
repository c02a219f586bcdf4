"""Values that are known while tracing, numbers that vary, and text."""
