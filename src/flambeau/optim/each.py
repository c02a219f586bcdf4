"""The operators on lists that update rules are made of: ``each.add_(params, grads, alpha=-lr)`` is one native call over all parameters."""

from __future__ import annotations

from flambeau.core.bindings import function

add, mul, neg, pow, reciprocal, sqrt = (
    function(f"_foreach_{name}") for name in ("add", "mul", "neg", "pow", "reciprocal", "sqrt")
)
add_, mul_, div_, lerp_ = (function(f"_foreach_{name}_") for name in ("add", "mul", "div", "lerp"))
maximum_, addcmul_, addcdiv_ = (function(f"_foreach_{name}_") for name in ("maximum", "addcmul", "addcdiv"))
