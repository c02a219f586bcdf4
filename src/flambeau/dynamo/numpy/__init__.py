"""NumPy in captured code: its functions as functions on tensors."""
