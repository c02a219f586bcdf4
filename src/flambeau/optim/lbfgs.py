"""Limited-memory BFGS (Nocedal 1980), with an optional strong-Wolfe line search (Nocedal & Wright, algorithms 3.5 and 3.6)."""

from __future__ import annotations

from collections.abc import Callable

from flambeau.autograd.grad_mode import enable_grad, no_grad
from flambeau.core.bindings import function
from flambeau.core.tensor import Tensor
from flambeau.optim.optimizer import Optimizer, ParamsT, check_option, check_rate

__all__ = ["LBFGS"]

cat, view_as_real, zeros_like = function("cat"), function("view_as_real"), function("zeros_like")


def _real(t):
    """A complex tensor as a view of pairs: the search is one in real numbers."""
    return view_as_real(t) if t.is_complex() else t


def _cubic(x1, f1, g1, x2, f2, g2, bounds=None) -> float:
    """Where the cubic through two points with their slopes is least, within the bounds."""
    low, high = bounds if bounds is not None else ((x1, x2) if x1 <= x2 else (x2, x1))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = square**0.5
    if x1 <= x2:
        best = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        best = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(best, low), high)


def _strong_wolfe(evaluate, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance=1e-9, most=25):
    """(loss, gradient, step, evaluations): a step along ``d`` with enough decrease and a flat enough slope."""
    d_norm = d.abs().max()
    g = g.clone()
    f_new, g_new = evaluate(x, t, d)
    count, gtd_new = 1, g_new.dot(d)
    t_before, f_before, g_before, gtd_before = 0, f, g, gtd
    done, iteration = False, 0
    while iteration < most:
        if f_new > f + c1 * t * gtd or (iteration > 1 and f_new >= f_before):
            bracket = [t_before, t], [f_before, f_new], [g_before, g_new.clone()], [gtd_before, gtd_new]
            break
        if abs(gtd_new) <= -c2 * gtd:
            bracket = [t], [f_new], [g_new], [gtd_new]
            done = True
            break
        if gtd_new >= 0:
            bracket = [t_before, t], [f_before, f_new], [g_before, g_new.clone()], [gtd_before, gtd_new]
            break
        low, high = t + 0.01 * (t - t_before), t * 10
        last = t
        t = _cubic(t_before, f_before, gtd_before, t, f_new, gtd_new, bounds=(low, high))
        t_before, f_before, g_before, gtd_before = last, f_new, g_new.clone(), gtd_new
        f_new, g_new = evaluate(x, t, d)
        count += 1
        gtd_new = g_new.dot(d)
        iteration += 1
    else:
        bracket = [0, t], [f, f_new], [g, g_new], [gtd, gtd_new]
    ts, fs, gs, slopes = bracket
    slow = False
    low, high = (0, 1) if fs[0] <= fs[-1] else (1, 0)
    if len(ts) == 1:
        low = high = 0
    while not done and iteration < most:
        if abs(ts[1] - ts[0]) * d_norm < tolerance:
            break
        t = _cubic(ts[0], fs[0], slopes[0], ts[1], fs[1], slopes[1])
        span = 0.1 * (max(ts) - min(ts))
        if min(max(ts) - t, t - min(ts)) < span:  # too near to an end
            if slow or t >= max(ts) or t <= min(ts):
                t = max(ts) - span if abs(t - max(ts)) < abs(t - min(ts)) else min(ts) + span
                slow = False
            else:
                slow = True
        else:
            slow = False
        f_new, g_new = evaluate(x, t, d)
        count += 1
        gtd_new = g_new.dot(d)
        iteration += 1
        if f_new > f + c1 * t * gtd or f_new >= fs[low]:
            ts[high], fs[high], gs[high], slopes[high] = t, f_new, g_new.clone(), gtd_new
            low, high = (0, 1) if fs[0] <= fs[1] else (1, 0)
        else:
            if abs(gtd_new) <= -c2 * gtd:
                done = True
            elif gtd_new * (ts[high] - ts[low]) >= 0:
                ts[high], fs[high], gs[high], slopes[high] = ts[low], fs[low], gs[low], slopes[low]
            ts[low], fs[low], gs[low], slopes[low] = t, f_new, g_new.clone(), gtd_new
    return fs[low], gs[low], ts[low], count


def _direction(
    g: Tensor, ys: list[Tensor], ss: list[Tensor], ro: list[Tensor], al: list, scale: Tensor | float
) -> Tensor:
    """The approximate inverse Hessian times ``-g``, by the two loops over the kept steps ``ss`` and changes of gradient ``ys``."""
    q = g.neg()
    for i in range(len(ys) - 1, -1, -1):
        al[i] = ss[i].dot(q) * ro[i]
        q.add_(ys[i] * -al[i])
    d = q.mul(scale)
    for i in range(len(ys)):
        d.add_(ss[i] * (al[i] - ys[i].dot(d) * ro[i]))
    return d


class LBFGS(Optimizer):
    """``step(closure)`` makes up to ``max_iter`` iterations, each evaluating the closure. One group of parameters only."""

    def __init__(
        self,
        params: ParamsT,
        lr: Tensor | float = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        check_option("learning rate", lr, lr >= 0.0)
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(
            params,
            dict(
                lr=lr,
                max_iter=max_iter,
                max_eval=max_eval,
                tolerance_grad=tolerance_grad,
                tolerance_change=tolerance_change,
                history_size=history_size,
                line_search_fn=line_search_fn,
            ),  # fmt: skip
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def _flat_grad(self):
        grads = [zeros_like(p) if p.grad is None else p.grad for p in self._params]
        return cat([_real(g.to_dense() if g.is_sparse else g).reshape(-1) for g in grads], 0)

    def _move(self, t: float, direction) -> None:
        at = 0
        for p in map(_real, self._params):
            p.add_(direction[at : at + p.numel()].view_as(p), alpha=t)
            at += p.numel()

    def _evaluate(self, closure, start, t: float, direction):
        self._move(t, direction)
        with enable_grad():
            loss = float(closure())
        gradient = self._flat_grad()
        for p, value in zip(self._params, start):
            p.copy_(value)
        return loss, gradient

    def step(self, closure: Callable[[], Tensor | float]) -> Tensor | float:  # type: ignore[override]
        with no_grad():
            return self._step(closure)

    def _step(self, closure):
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        lr, search = float(group["lr"]), group["line_search_fn"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with enable_grad():
            first = closure()
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        g = self._flat_grad()
        if g.abs().max() <= group["tolerance_grad"]:
            return first
        d, t = state.get("d"), state.get("t")
        ys, ss, ro = state.get("old_dirs"), state.get("old_stps"), state.get("ro")
        scale, g_before, loss_before = state.get("H_diag"), state.get("prev_flat_grad"), state.get("prev_loss")
        n = 0
        while n < group["max_iter"]:
            n += 1
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                d, ys, ss, ro, scale = g.neg(), [], [], [], 1
            else:
                y, s = g.sub(g_before), d.mul(t)
                ys_now = y.dot(s)
                if ys_now > 1e-10:
                    if len(ys) == group["history_size"]:
                        ys.pop(0), ss.pop(0), ro.pop(0)
                    ys.append(y), ss.append(s), ro.append(1.0 / ys_now)
                    scale = ys_now / y.dot(y)
                al = state.setdefault("al", [None] * group["history_size"])
                d = _direction(g, ys, ss, ro, al, scale)
            g_before = g.clone() if g_before is None else g_before.copy_(g)
            loss_before = loss
            t = min(1.0, 1.0 / g.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
            slope = g.dot(d)
            if slope > -group["tolerance_change"]:
                break
            used = 0
            if search is not None:
                start = [p.clone() for p in self._params]
                loss, g, t, used = _strong_wolfe(
                    lambda x, t, d: self._evaluate(closure, x, t, d), start, t, d, loss, g, slope
                )
                t = float(t)
                self._move(t, d)
                optimal = g.abs().max() <= group["tolerance_grad"]
            else:
                self._move(t, d)
                optimal = False
                if n != group["max_iter"]:
                    with enable_grad():
                        loss = float(closure())
                    g = self._flat_grad()
                    optimal = g.abs().max() <= group["tolerance_grad"]
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if n == group["max_iter"] or evaluations >= group["max_eval"] or optimal:
                break
            if d.mul(t).abs().max() <= group["tolerance_change"] or abs(loss - loss_before) < group["tolerance_change"]:
                break
        state.update(
            d=d, t=t, old_dirs=ys, old_stps=ss, ro=ro, H_diag=scale, prev_flat_grad=g_before, prev_loss=loss_before
        )
        return first
