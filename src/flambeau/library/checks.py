"""``opcheck``: is an operator registered so that every subsystem can use it?"""

from __future__ import annotations

from .. import _C
from ..base.pytree import tree_flatten, tree_map
from ..compiler import compile
from ..core.operator import OpOverload
from ..testing.cross_ref import CrossRefFakeMode
from ..testing.schema_check import SchemaCheckMode
from . import fallback

__all__ = ["OpCheckError", "opcheck"]


class OpCheckError(AssertionError):
    """A check failed; the message names the operator and the check."""


def _clone(args, kwargs):
    def one(x):
        if not isinstance(x, _C.TensorBase):
            return x
        return x.detach().clone().requires_grad_(x._requires_grad)

    return tree_map(one, list(args)), tree_map(one, dict(kwargs))


def _schema(op, args, kwargs):
    with SchemaCheckMode():
        op(*args, **kwargs)


def _autograd(op, args, kwargs):
    tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, _C.TensorBase)]
    if not any(t._requires_grad for t in tensors) or op._schema.is_mutable:
        return
    if isinstance(op.overrides.get("autograd"), fallback.Fallback):
        _without_autograd(op, args, kwargs)
        return
    outputs = [o for o in tree_flatten(op(*args, **kwargs))[0] if isinstance(o, _C.TensorBase) and o._requires_grad]
    if outputs:
        sum(o.sum() for o in outputs).backward()


def _without_autograd(op, args, kwargs) -> None:
    """OpCheckError for an operator without an autograd kernel whose kernel for a backend records all the same."""
    given = {id(x) for x in tree_flatten((args, kwargs))[0]}
    before = fallback.get_mode()
    fallback.set_mode("nothing")
    try:
        results = tree_flatten(op(*args, **kwargs))[0]
    finally:
        fallback.set_mode(before)
    if any(isinstance(o, _C.TensorBase) and o._requires_grad and id(o) not in given for o in results):
        raise OpCheckError(
            f"{op.name()}: at least one output of this operator has requires_grad=True but the operator does not have an autograd kernel "
            "defined at an autograd key (e.g. DispatchKey::Autograd): a kernel for a backend that records gradients gives others in compiled "
            "code. Register the autograd.Function for 'Autograd', or use register_autograd."
        )


def _fake(op, args, kwargs):
    if not op.has_facet("meta"):
        raise OpCheckError(f"{op.name()} has no fake rule: register one with torch.library.register_fake")
    with CrossRefFakeMode():
        op(*tree_map(_detached, args), **tree_map(_detached, kwargs))


def _detached(x):
    return x.detach() if isinstance(x, _C.TensorBase) else x


def _compiled(op, args, kwargs):
    def run(*args, **kwargs):
        return op(*args, **kwargs)

    want = tree_flatten(run(*_clone(args, kwargs)[0], **kwargs))[0]
    got = tree_flatten(compile(run, backend="aot_eager", fullgraph=True)(*args, **kwargs))[0]
    for k, (a, b) in enumerate(zip(want, got)):
        if isinstance(a, _C.TensorBase) and not a.allclose(b, equal_nan=True):
            raise OpCheckError(f"{op.name()}: output {k} differs when compiled with backend aot_eager")


_CHECKS = {
    "test_schema": _schema,
    "test_autograd_registration": _autograd,
    "test_faketensor": _fake,
    "test_aot_dispatch_dynamic": _compiled,
}


def opcheck(
    op, args, kwargs=None, *, test_utils=tuple(_CHECKS), raise_exception: bool = True, atol=None, rtol=None
) -> dict[str, str]:
    """Run the checks on sample arguments: the schema tells the truth, a backward exists, the fake rule agrees, it compiles.

    Returns check -> "SUCCESS" or the error; raises OpCheckError at the first failure unless ``raise_exception`` is False.
    """
    op = getattr(op, "_opoverload", op)
    if not isinstance(op, OpOverload):
        raise ValueError(
            f"opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got {type(op)}"
        )
    chosen = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    if not set(chosen) <= _CHECKS.keys():
        raise ValueError(
            f"opcheck(op, ..., test_utils={chosen}), expected test_utils to be subset of {tuple(_CHECKS)} but it was not"
        )
    results: dict = {}
    for name in chosen:
        try:
            a, k = _clone(args, kwargs or {})
            _CHECKS[name](op, a, k)
            results[name] = "SUCCESS"
        except Exception as e:
            if raise_exception:
                raise OpCheckError(f"opcheck({op.name()}): {name} failed with {type(e).__name__}: {e}") from e
            results[name] = e
    return results
