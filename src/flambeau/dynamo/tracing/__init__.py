"""The executor and what it asks while it traces: reads of the outside world, wrapping of values, writes to be replayed."""
