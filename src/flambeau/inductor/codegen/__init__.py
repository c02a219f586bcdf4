"""A fused kernel as LLVM instructions."""
