"""Counters of what the compiler made since the last reset."""

__all__ = ["reset"]

generated_kernel_count = 0
"""Kernels in the graphs compiled (a kernel that two places share counts at each)."""

ir_nodes_pre_fusion = 0
num_fallbacks = 0
compiled_kernels = 0
"""Kernels that LLVM was run for; the others came from the cache."""

cache_hits = 0


def reset() -> None:
    global generated_kernel_count, ir_nodes_pre_fusion, num_fallbacks, compiled_kernels, cache_hits
    generated_kernel_count = ir_nodes_pre_fusion = num_fallbacks = compiled_kernels = cache_hits = 0
