"""Devices that this system doesn't have, and libraries that it doesn't use: what asking for them answers. See namespaces.py for the rules.
Where there is a CUDA device, cuda_device.py has the names of ``torch.cuda`` first."""

_STREAMS = """
class: StreamContext
context: stream device device_of
"""

_MEMORY = """
returns 0: memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached
returns {}: memory_stats memory_stats_as_nested_dict
returns None: empty_cache reset_peak_memory_stats reset_accumulated_memory_stats
"""

_RANDOM = """
returns None: manual_seed manual_seed_all seed seed_all
refuses: initial_seed get_rng_state set_rng_state
returns []: get_rng_state_all
returns None: set_rng_state_all
"""

_ABSENT = """
returns False: is_available is_initialized is_bf16_supported is_tf32_supported is_current_stream_capturing can_device_access_peer
returns 0: device_count
value (): default_generators
refuses: init synchronize current_device set_device current_stream set_stream get_stream_from_external
refuses: get_device_name get_device_capability get_device_properties mem_get_info memory_usage utilization temperature power_draw clock_rate
refuses: set_per_process_memory_fraction get_per_process_memory_fraction memory_snapshot graph_pool_handle make_graphed_callables
refuses: change_current_allocator use_mem_pool graph default_stream
returns []: get_arch_list
returns '': get_gencode_flags
"""

_TYPED = "BFloat16 Bool Byte Char Double Float Half Int Long Short"

DEVICES: dict[str, str] = {
    "cuda": f"""
why: Torch not compiled with CUDA enabled (flambeau runs on the CPU)
from base.errors: OutOfMemoryError
{_ABSENT}{_STREAMS}{_MEMORY}{_RANDOM}
module: amp graphs memory nvtx random streams profiler tunable sparse nccl jiterator
class cuda.graphs: CUDAGraph
class cuda.memory: CUDAPluggableAllocator MemPool
class cuda.green_contexts: GreenContext
class cuda.streams: Event Stream ExternalStream
class: CudaError DeferredCudaCallError _CudaDeviceProperties
class: {" ".join(f"{n}Tensor {n}Storage" for n in _TYPED.split())} ComplexDoubleStorage ComplexFloatStorage _CudaStreamBase _CudaEventBase
refuses: caching_allocator_alloc caching_allocator_delete cudart check_error cudaStatus list_gpu_processes memory_summary current_blas_handle
refuses: current_solver_handle device_memory_used get_allocator_backend get_sync_debug_mode set_sync_debug_mode host_memory_stats
refuses: host_memory_stats_as_nested_dict _lazy_init
returns None: ipc_collect reset_max_memory_allocated reset_max_memory_cached reset_peak_host_memory_stats reset_accumulated_host_memory_stats
returns None: caching_allocator_enable _lazy_call
returns False: _is_in_bad_fork _is_compiled
context: caching_allocator_disabled
value False: has_half has_magma
""",
    "cuda.amp": """
from amp: custom_bwd custom_fwd
from amp.autocast_mode: autocast=CudaAutocast
from amp.grad_scaler: GradScaler=CudaGradScaler
returns True: amp_definitely_not_available
module: autocast_mode grad_scaler common
""",
    "cuda.amp.autocast_mode": "from amp: custom_bwd custom_fwd\nfrom amp.autocast_mode: autocast=CudaAutocast",
    "cuda.amp.common": "returns True: amp_definitely_not_available",
    "cuda.amp.grad_scaler": "from amp.grad_scaler: GradScaler=CudaGradScaler OptState",
    "cuda.graphs": "from cuda: graph graph_pool_handle is_current_stream_capturing make_graphed_callables",
    "cuda.memory": "from cuda: empty_cache memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats memory_snapshot "
    "reset_peak_memory_stats caching_allocator_alloc mem_get_info memory_summary\nrefuses: _record_memory_history _dump_snapshot",
    "cuda.nvtx": "context: range\nreturns 0: range_push range_pop\nreturns None: mark",
    "cuda.random": "from cuda: manual_seed manual_seed_all seed seed_all initial_seed get_rng_state set_rng_state get_rng_state_all set_rng_state_all",
    "cuda.profiler": "context: profile\nreturns None: start stop init",
    "cuda.tunable": "returns False: is_enabled tuning_is_enabled\nreturns None: enable",
    "cuda.sparse": "refuses: mm",
    "cuda.nccl": "returns False: is_available\nreturns (0, 0, 0): version\nrefuses: all_reduce broadcast",
    "cuda.jiterator": "refuses: _create_jit_fn _create_multi_output_jit_fn",
    "xpu": f"""
why: Torch not compiled with XPU enabled (flambeau runs on the CPU)
{_ABSENT}{_STREAMS}{_MEMORY}{_RANDOM}
class xpu.graphs: XPUGraph
class xpu.memory: MemPool XPUPluggableAllocator
class xpu.streams: Event Stream
class: ExternalStream
module: amp random
""",
    "xpu.amp": "from cuda.amp: autocast GradScaler",
    "xpu.random": "from xpu: manual_seed manual_seed_all seed seed_all get_rng_state set_rng_state",
    "mtia": f"""
why: Torch not compiled with MTIA enabled (flambeau runs on the CPU)
{_ABSENT}{_STREAMS}{_MEMORY}{_RANDOM}
class mtia.mtia_graph: MTIAGraph
class: Event Stream ExternalStream MemPool
refuses: attach_out_of_memory_observer record_memory_history snapshot
""",
    "mps": """
why: Torch not compiled with MPS enabled (flambeau runs on the CPU)
returns False: is_available
returns 0: device_count current_allocated_memory driver_allocated_memory recommended_max_memory
returns None: empty_cache manual_seed seed
refuses: get_rng_state set_rng_state synchronize set_per_process_memory_fraction compile_shader load_metallib
class mps.event: Event
module: profiler event
""",
    "mps.profiler": "context: profile\nreturns None: start stop",
    "accelerator": """
why: this system has no accelerator; flambeau runs on the CPU
returns False: is_available
returns None: current_accelerator empty_cache empty_host_cache reset_accumulated_memory_stats reset_peak_memory_stats
returns 0: device_count max_memory_allocated max_memory_reserved memory_allocated memory_reserved
returns {}: memory_stats
refuses: current_device_idx current_device_index current_stream get_device_capability get_memory_info set_device_idx set_device_index set_stream
refuses: synchronize
context: device_index
class accelerator.graphs: Graph
module: memory
""",
    "accelerator.memory": "from accelerator: empty_cache memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats",
    # The rest of torch.cpu: compat/cpu.py has the counters of memory.
    "cpu": """
returns True: is_initialized
returns None: set_device stream_synchronize manual_seed current_stream
context: Stream Event StreamContext stream
returns {}: get_capabilities
module: amp
returns False: _is_amx_tile_supported _is_avx512_supported _is_vnni_supported _is_avx512_bf16_supported _is_avx2_supported
""",
    "cpu.amp": "from amp.autocast_mode: autocast=CpuAutocast\nfrom amp.grad_scaler: GradScaler=CpuGradScaler\nmodule: autocast_mode grad_scaler",
    "cpu.amp.autocast_mode": "from amp.autocast_mode: autocast=CpuAutocast",
    "cpu.amp.grad_scaler": "from amp.grad_scaler: GradScaler=CpuGradScaler",
    "backends": """
module: cpu cuda cudnn mkl mkldnn mps openmp opt_einsum quantized xeon nnpack xnnpack cusparselt kleidiai mha miopen
value None: fp32_precision
context: __allow_nonbracketed_mutation flags
""",
    "backends.cpu": "returns 'DEFAULT': get_cpu_capability\nmodule: amx",
    "backends.cuda": """
why: Torch not compiled with CUDA enabled (flambeau runs on the CPU)
from compat.flags: is_built
returns False: is_flash_attention_available is_ck_sdpa_available flash_sdp_enabled mem_efficient_sdp_enabled cudnn_sdp_enabled
returns False: can_use_flash_attention can_use_efficient_attention can_use_cudnn_attention fp16_bf16_reduction_math_sdp_allowed
returns True: math_sdp_enabled
returns None: enable_flash_sdp enable_math_sdp enable_mem_efficient_sdp enable_cudnn_sdp allow_fp16_bf16_reduction_math_sdp
returns None: blas_workspace_size cublas_workspace_size cublaslt_workspace_size preferred_rocm_fa_library
returns 'default': preferred_linalg_library preferred_blas_library
context: sdp_kernel
class: SDPAParams cuBLASModule cuFFTPlanCache cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager
from compat.flags: matmul cufft_plan_cache
""",
    "backends.cudnn": """
returns False: is_available is_acceptable
returns None: version set_flags
from compat.flags: enabled=cudnn.enabled benchmark=cudnn.benchmark deterministic=cudnn.deterministic allow_tf32=cudnn.allow_tf32
value 10: benchmark_limit
value '': fp32_precision
context: flags __allow_nonbracketed_mutation
module: rnn
value False: CUDNN_TENSOR_DTYPES
""",
    "backends.cudnn.rnn": "refuses: get_cudnn_mode",
    "backends.mkl": "returns False: is_available\ncontext: verbose\nvalue 0: VERBOSE_OFF\nvalue 1: VERBOSE_ON",
    "backends.mkldnn": "returns False: is_available is_acl_available\ncontext: flags verbose\nreturns None: set_flags\nvalue True: enabled\n"
    "value False: deterministic allow_tf32\nvalue 0: VERBOSE_OFF\nvalue 1: VERBOSE_ON\nvalue 2: VERBOSE_ON_CREATION\nvalue '': fp32_precision\n"
    "module: matmul conv rnn",
    "backends.mps": "why: Torch not compiled with MPS enabled\nreturns False: is_available is_built is_macos13_or_newer is_macos_or_newer\n"
    "refuses: get_core_count get_name",
    "backends.openmp": "returns True: is_available",
    "backends.opt_einsum": "returns False: is_available\nreturns None: get_opt_einsum\nvalue False: enabled\nvalue None: strategy\ncontext: flags\nreturns None: set_flags",
    "backends.quantized": "value 'none': engine\nvalue []: supported_engines",
    "backends.nnpack": "returns False: is_available\ncontext: flags\nreturns None: set_flags",
    "backends.xnnpack": "value False: enabled",
    "backends.xeon": "why: a launcher for Intel servers",
    "backends.cusparselt": "returns False: is_available\nreturns None: version",
    "backends.kleidiai": "returns False: is_available",
    "backends.mha": "returns True: get_fastpath_enabled\nreturns None: set_fastpath_enabled",
    "backends.miopen": "value False: immediate\ncontext: flags",
    "backends.mkldnn.matmul": "value '': fp32_precision",
    "backends.mkldnn.conv": "value '': fp32_precision",
    "backends.mkldnn.rnn": "value '': fp32_precision",
    "backends.cpu.amx": "returns False: is_available",
}
