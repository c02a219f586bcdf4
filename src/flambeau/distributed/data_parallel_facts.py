"""What DistributedDataParallel tells of itself: its settings, its buckets, and times of some iterations."""

from __future__ import annotations

import os
import time

from ..base.dtypes import bfloat16, float16, float32, float64

__all__ = ["Times", "dump_environment", "facts"]

_DTYPES = {float32: "float", float64: "double", float16: "c10::Half", bfloat16: "c10::BFloat16"}
_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_PORT", "MASTER_ADDR", "CUDA_VISIBLE_DEVICES")
# Of libraries that carry the data of others; programs print them all.
_OTHERS = "GLOO_SOCKET_IFNAME GLOO_DEVICE_TRANSPORT NCCL_SOCKET_IFNAME TORCH_NCCL_BLOCKING_WAIT NCCL_DEBUG NCCL_IB_DISABLE NCCL_NTHREADS".split()
_OTHERS += "NCCL_ALGO NCCL_PROTO NCCL_TOPO_FILE NCCL_TOPO_DUMP_FILE TORCH_NCCL_ASYNC_ERROR_HANDLING".split()


class Times:
    """When the parts of an iteration began and ended, in nanoseconds. The first ten iterations are kept, then each ``rate``th."""

    def __init__(self):
        self.rate = 100
        self.samples = 0
        self.totals = dict.fromkeys(("forward_compute", "backward_compute", "backward_comm", "overlap"), 0)
        self.kept: dict[str, int] = {}
        self.iteration = 0
        self.forward = self.backward = self.last_gradient = self.communication = 0

    def begin(self) -> None:
        """A forward begins."""
        self.forward, self.backward, self.last_gradient, self.communication = time.perf_counter_ns(), 0, 0, 0

    def gradient(self) -> None:
        self.last_gradient = time.perf_counter_ns()
        self.backward = self.backward or self.last_gradient

    def reduction(self) -> None:
        """The first bucket is on its way."""
        self.communication = self.communication or time.perf_counter_ns()

    def end(self, iteration: int) -> None:
        """All buckets are reduced."""
        if not self.backward or (iteration >= 10 and iteration % self.rate):
            return
        end, communication = time.perf_counter_ns(), self.communication or self.last_gradient
        now = {
            "forward_compute": self.backward - self.forward,
            "backward_compute": max(1, self.last_gradient - self.backward),
            "backward_comm": end - communication,
            "overlap": max(0, self.last_gradient - communication),
        }
        self.samples += 1
        for key, value in now.items():
            self.totals[key] += value
        self.iteration = iteration
        self.kept = {
            **{_name(key): value for key, value in now.items()},
            **{f"avg_{_name(key)}": total // self.samples for key, total in self.totals.items()},
            "forward_compute_time_start": self.forward,
            "backward_compute_time_start": self.backward,
            "backward_compute_time_end": self.last_gradient,
            "backward_comm_time_start": communication,
            "backward_comm_time_end": end,
        }


def _name(key: str) -> str:
    return "backward_compute_comm_overlap_time" if key == "overlap" else f"{key}_time"


def facts(ddp) -> dict:
    """Facts about a module, its reducer and the environment, under PyTorch's names."""
    reducer, parameters = ddp.reducer, ddp.reducer.parameters
    sizes = ", ".join(str(b.size) for b in reducer.buckets)
    out = {
        "world_size": ddp.process_group.size(),
        "rank": ddp.process_group.rank(),
        "module_name": type(ddp.module).__name__,
        "device_ids": "",
        "output_device": -1,
        "backend_name": ddp.process_group.name(),
        "broadcast_buffers": int(ddp.broadcast_buffers),
        "iteration": reducer.times.iteration,
        "bucket_cap_bytes": ddp.bucket_bytes_cap,
        "bucket_sizes": sizes,
        "has_rebuilt_buckets": int(reducer.rebuilt),
        "find_unused_parameters": int(ddp.find_unused_parameters),
        "gradient_as_bucket_view": int(ddp.gradient_as_bucket_view),
        "static_graph": int(ddp.static_graph),
        "dtypes": ", ".join(sorted({_DTYPES.get(p.dtype, str(p.dtype)) for p in parameters})),
        "total_parameter_size_bytes": sum(p.numel() * p.element_size() for p in parameters),
        "num_parameter_tensors": len(parameters),
        "master_port": os.environ.get("MASTER_PORT", "N/A"),
        "master_addr": os.environ.get("MASTER_ADDR", "N/A"),
        "torch_distributed_debug": os.environ.get("TORCH_DISTRIBUTED_DEBUG", "N/A"),
        "cuda_visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES", "N/A"),
        "gloo_socket_ifname": os.environ.get("GLOO_SOCKET_IFNAME", "N/A"),
        "gloo_device_transport": os.environ.get("GLOO_DEVICE_TRANSPORT", "N/A"),
        "prev_iteration_grad_ready_order_indices": ", ".join(map(str, reducer.arrived)),
        **reducer.times.kept,
    }
    if reducer.rebuilt:
        out["rebuilt_bucket_sizes"] = sizes
        out["rebuilt_per_bucket_param_indices"] = ", ".join(" ".join(map(str, b.indices)) for b in reducer.buckets)
    if reducer.hook is not None:
        out["comm_hook"] = getattr(reducer.hook[1], "__qualname__", repr(reducer.hook[1]))
    return {**out, "has_error": int(bool(reducer.error)), "error": reducer.error}


def dump_environment() -> None:
    """Print the variables that matter to jobs of several processes."""
    print("\n".join(f"env:{name}={os.environ.get(name, 'N/A')}" for name in (*_VARIABLES, *_OTHERS)))
