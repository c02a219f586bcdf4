"""What the smaller algorithms share: options checked and kept, and a step that updates one parameter at a time."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import Optimizer, check_option, check_rate, check_ways
from flambeau.optim.rates import count, number

__all__ = ["SimpleOptimizer"]


class SimpleOptimizer(Optimizer):
    """Subclasses define ``_update(p, grad, state, group, numbers)``, and ``_numbers(state, group)`` where the count of the step isn't enough.
    ``maximize`` and coupled weight decay are done before the update."""

    coupled_decay = True
    first_options: tuple[str, ...] = ()  # of a group, where they stand in another order than the others' do

    def _start(
        self, params, defaults: dict, *, foreach, maximize, differentiable, capturable=False, fused=None
    ) -> None:
        check_rate(defaults["lr"])
        check_option("learning rate", defaults["lr"], number(defaults["lr"]) >= 0.0)
        if "eps" in defaults:
            check_option("epsilon value", defaults["eps"], defaults["eps"] >= 0.0)
        if "weight_decay" in defaults:
            check_option("weight_decay value", defaults["weight_decay"], defaults["weight_decay"] >= 0.0)
        for k in range(2 if "betas" in defaults else 0):
            beta = defaults["betas"][k]
            check_option(f"beta parameter at index {k}", beta, 0.0 <= beta < 1.0)
        check_ways(foreach, fused, differentiable)
        defaults |= dict(foreach=foreach, maximize=maximize, differentiable=differentiable, capturable=capturable)
        super().__init__(params, {k: defaults.pop(k) for k in self.first_options if k in defaults} | defaults)

    def step(self, closure: Callable[[], Tensor | float] | None = None) -> Tensor | float | None:
        return self._updated(self._update_rows, closure)

    def _update_rows(self, group: dict, rows: list[tuple]) -> None:
        # First for all parameters: captured, they are one kernel then, and what follows for each parameter is another.
        numbers = [self._numbers(state, group) for _, _, state in rows]
        for (p, grad, state), of_step in zip(rows, numbers):
            if group.get("maximize"):
                grad = -grad
            if self.coupled_decay and group.get("weight_decay"):
                grad = grad.add(p, alpha=number(group["weight_decay"]))
            self._update(p, grad, state, group, of_step)

    def _numbers(self, state: dict, group: dict):
        """Count the step; what of the update follows from the count, and from other numbers in the state."""
        return count(state, group)

    def _update(self, p, grad, state: dict, group: dict, numbers) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _update")
