"""Example programs, written as any PyTorch program would be. ``examples/`` at the top of the repository is this folder."""
