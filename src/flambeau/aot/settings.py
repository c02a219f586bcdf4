"""Settings of ahead-of-time autograd, ``torch._functorch.config``."""

from __future__ import annotations

from typing import Any

from ..base.config import Config, Knob
from ..fake.constants import set_allow_data_ptr, set_allow_meta, set_real_propagation

__all__ = ["config"]

KNOBS = {
    "activation_memory_budget": Knob(
        1.0,
        "bytes that a forward keeps for its backward, as a part of what it keeps at 1.0 (0 to 1): the rest is computed again",
        in_key=True,
    ),
    "enable_autograd_cache": Knob(True, "keep traced graphs on disk, so that the next process doesn't trace them"),
}

# PyTorch's other settings. Nothing here depends on the first ones; of the others only the default is built.
_ACCEPTED = {
    "autograd_cache_allow_custom_autograd_functions": False,
    "autograd_cache_normalize_inputs": True,
    "ban_recompute_long_fusible_chains": True,
    "ban_recompute_materialized_backward": True,
    "ban_recompute_not_in_allowlist": True,
    "ban_recompute_reductions": True,
    "ban_recompute_used_far_apart": True,
    "bundled_autograd_cache": False,
    "cse": True,
    "custom_op_default_layout_constraint": "needs_exact_strides",
    "debug_assert": False,
    "debug_partitioner": False,
    "decompose_custom_triton_ops": True,
    "donated_buffer": True,
    "enable_remote_autograd_cache": None,
    "guess_tangent_strides_as_outputs": True,
    "max_dist_from_bw": 1000,
    "static_weight_shapes": True,
    "strict_autograd_cache": False,
    "torch_compile_graph_format": "svg",
    "treat_parameters_as_free_to_save": True,
    "view_replay_for_aliased_outputs": True,
}
_ONLY = {
    "activation_memory_budget_runtime_estimator": "flops",
    "activation_memory_budget_solver": "dp",
    "aggressive_recomputation": False,
    "backward_pass_autocast": "same_as_forward",
    "enable_activation_offloading": False,
    "error_on_custom_op_aliasing": False,
    "fake_tensor_crossref": False,
    "functionalize_rng_ops": False,
    "generate_fake_kernels_from_real_mismatches": False,
    "joint_custom_pass": None,
    "recompute_views": False,
    "selective_decompose": False,
    "unlift_effect_tokens": False,
    "visualize_memory_budget_pareto": False,
}
KNOBS |= {name: Knob(value, "accepted for compatibility") for name, value in _ACCEPTED.items()}
KNOBS |= {name: Knob(value, f"only {value!r} is built", only=True) for name, value in _ONLY.items()}

KNOBS["check_custom_op_aliasing"] = Knob(True, "results of custom operators that alias an argument are errors")
KNOBS["fake_tensor_propagate_real_tensors"] = Knob(
    False, "modes of fake tensors made from now on keep the values that theirs were made from"
)

KNOBS["fake_tensor_allow_unsafe_data_ptr_access"] = Knob(
    True, "data_ptr() of a fake tensor is 0 where nothing is traced"
)
KNOBS["fake_tensor_allow_meta"] = Knob(True, "fake tensors may be of the device meta")

config = Config("torch._functorch.config", KNOBS)


def _tell(name: str, value: Any) -> None:
    if name == "fake_tensor_propagate_real_tensors":
        set_real_propagation(value)
    elif name == "fake_tensor_allow_unsafe_data_ptr_access":
        set_allow_data_ptr(value)
    elif name == "fake_tensor_allow_meta":
        set_allow_meta(value)


config._listeners.append(_tell)
