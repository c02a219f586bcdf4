"""The machine: LLVM, what it made, and the processor that it was made for."""
