"""Several passes after each other, in an order that their constraints allow, repeated while they change something."""

from __future__ import annotations

import inspect
from collections import deque
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


def _topological_sort_passes(passes: list[Callable], constraints: list[Callable]) -> list[Callable]:
    """``passes`` in an order that ``constraints`` allow, else in theirs. RuntimeError when the constraints contradict each other."""
    if not constraints:
        return passes
    after: list[list[int]] = [[] for _ in passes]
    waits = [0] * len(passes)
    for i, a in enumerate(passes):
        for j, b in enumerate(passes):
            if i != j and not all(c(a, b) for c in constraints):
                after[j].append(i)  # b before a
                waits[i] += 1
    ready = deque(i for i, n in enumerate(waits) if n == 0)
    order: list[int] = []
    while ready:
        i = ready.popleft()
        order.append(i)
        for j in after[i]:
            waits[j] -= 1
            if waits[j] == 0:
                ready.append(j)
    if len(order) < len(passes):
        left = [p for i, p in enumerate(passes) if i not in order]
        raise RuntimeError(f"Circular dependency detected within the following passes: {left}")
    return [passes[i] for i in order]


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
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable) -> None:
        """Call ``check(module)`` where :meth:`check` is called. TypeError for a function of other parameters."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        setattr(self, "check", check)  # noqa: B010

    def check(self, module: GraphModule) -> None:
        """Called before the first and (``run_checks_after_each_pass``) after every pass; for subclasses."""

    def __call__(self, module: GraphModule) -> PassResult:
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            again = False
            done: list[str] = []
            for step in self.passes:
                name = getattr(step, "__name__", type(step).__name__)
                try:
                    result = step(module)
                    if result is None or not hasattr(result, "graph_module"):
                        raise TypeError(
                            f"The result of the pass {name} should be type PassResult. Please wrap it with pass_result_wrapper()"
                        )
                except Exception as error:
                    raise type(error)(
                        f"An error occurred when running the {name!r} pass after the following passes: {done}: {error}"
                    ) from error
                done.append(name)
                module, again = result.graph_module, again or result.modified
                module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            changed = changed or again
            if not again:
                break
        return PassResult(module, changed)
