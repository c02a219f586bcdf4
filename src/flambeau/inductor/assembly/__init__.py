"""LLVM instructions as objects: what they are, how they are built, printed and verified."""
