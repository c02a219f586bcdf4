"""The operators of neural networks: activations, normalization, losses, convolution, pooling, attention, recurrence."""
