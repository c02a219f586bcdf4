"""Several passes after each other, in an order that their constraints allow, repeated while they change something."""

from __future__ import annotations

import graphlib
from collections.abc import Callable

from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Callable) -> Callable:
    """A function over modules as a pass: what returns None, or a module, gives a PassResult."""

    def run(gm):
        result = fn(gm)
        if isinstance(result, PassResult):
            return result
        return PassResult(result if isinstance(result, GraphModule) else gm, True)

    run.__name__ = getattr(fn, "__name__", type(fn).__name__)
    return run


def this_before_that_pass_constraint(this: Callable, that: Callable) -> Callable:
    """A constraint ``(a, b) -> may a come before b``: ``that`` never comes before ``this``."""

    def constraint(a: Callable, b: Callable) -> bool:
        return a is not that or b is not this

    return constraint


class PassManager:
    """``PassManager(passes, constraints, steps)(gm)``: a PassResult. Runs up to ``steps`` rounds, until a round changes nothing."""

    def __init__(
        self,
        passes=None,
        constraints=None,
        steps: int = 1,
        run_checks_after_each_pass=False,
        suppress_check_failures=False,
    ):
        self.passes: list[Callable] = list(passes or [])
        self.constraints: list[Callable] = list(constraints or [])
        self.steps = steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Callable) -> None:
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Callable) -> None:
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """RuntimeError when the passes' order breaks a constraint."""
        for constraint in self.constraints:
            for i, a in enumerate(self.passes):
                for b in self.passes[i + 1 :]:
                    if not constraint(a, b):
                        raise RuntimeError(
                            f"pass schedule constraint violated. Expected {b} before {a} but found {a} before {b} in pass list."
                        )

    def solve_constraints(self) -> None:
        """Order the passes as the constraints ask. RuntimeError when they contradict each other."""
        before = {
            i: {j for j, b in enumerate(self.passes) if i != j and not all(c(a, b) for c in self.constraints)}
            for i, a in enumerate(self.passes)
        }
        try:
            self.passes = [self.passes[i] for i in graphlib.TopologicalSorter(before).static_order()]
        except graphlib.CycleError as e:
            names = " -> ".join(str(self.passes[i]) for i in e.args[1])
            raise RuntimeError(f"Circular dependency detected in constraints: {names}") from e
        self._validated = True

    def check(self, module: GraphModule) -> None:
        """Called before the first and (``run_checks_after_each_pass``) after every pass; for subclasses."""

    def __call__(self, module: GraphModule) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            again = False
            for step in self.passes:
                result = step(module)
                if result is None or not hasattr(result, "graph_module"):
                    raise TypeError(
                        f"The result of the pass {getattr(step, '__name__', step)} should be type PassResult. Please wrap it with "
                        "pass_result_wrapper()"
                    )
                module, again = result.graph_module, again or result.modified
                module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            changed = changed or again
            if not again:
                break
        return PassResult(module, changed)
