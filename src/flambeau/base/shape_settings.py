"""Settings of sizes that are symbols, ``torch.fx.experimental._config``: PyTorch's, of most of which only the defaults are built."""

from __future__ import annotations

from .config import Config, Knob

__all__ = ["config"]

_ACCEPTED = {
    "extended_debug_cpp": False,
    "extended_debug_create_symbol": None,
    "extended_debug_current_loc": False,
    "extended_debug_guard_added": None,
    "enrich_profiler_metadata": False,
    "print_specializations": False,
    "skip_dtype_check_in_meta_registrations": False,
    "translation_validation_no_bisect": False,
    "translation_validation_timeout": 600000,
}
_ONLY = {
    "aggressive_guard_free_semantics": 0,
    "backed_size_oblivious": False,
    "inject_EVALUATE_EXPR_flip_equality_TESTING_ONLY": False,
    "meta_nonzero_assume_all_nonzero": False,
    "no_data_dependent_graph_break": False,
    "soft_pending_unbacked_not_found_error": False,
    "symbol_guard_limit_before_specialize": None,
    "translation_validation": False,
    "unify_view_symbols_bso_meta": False,
}

KNOBS = {"use_duck_shape": Knob(True, "sizes that are equal in the first call are one symbol")}
KNOBS["validate_shape_env_version_key"] = Knob(
    False, "accepted: no answer is kept from question to question, so there is none to validate"
)
KNOBS["check_shape_env_recorded_events"] = Knob(
    False, "check, whenever guards are made, that the facts recorded about sizes hold for those that were met"
)
KNOBS |= {name: Knob(value, "accepted for compatibility") for name, value in _ACCEPTED.items()}
KNOBS |= {name: Knob(value, f"only {value!r} is built", only=True) for name, value in _ONLY.items()}

config = Config("torch.fx.experimental._config", KNOBS)
