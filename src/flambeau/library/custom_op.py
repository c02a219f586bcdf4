"""``custom_op``: an operator from a Python function."""

from __future__ import annotations

import functools

from .. import _C
from ..aot.settings import config
from ..autograd import Function
from ..autograd.grad_mode import no_grad
from ..base.pytree import tree_flatten
from ..core import keys as K
from ..core.bindings import packet_call
from ..core.dispatch import excluding
from ..core.operator import OpOverload
from ..core.schema import parse_checked
from .infer import infer_schema
from .registry import Library, call, find, kept, run_on_fakes, when_defined

__all__ = ["CustomOpDef", "custom_op", "register_autograd", "register_fake", "register_kernel", "register_vmap"]

_libraries: dict[str, Library] = {}  # the fragment that custom ops of a namespace live in


def custom_op(name: str, fn=None, /, *, mutates_args, device_types=None, schema: str | None = None, tags=()):
    """Decorator: the function becomes the operator ``"ns::name"``, opaque to autograd and the compiler.

    ``mutates_args``: names of tensor arguments the function writes. ``schema``: in place of the annotations. Results must be new tensors.
    """
    if fn is None:
        return lambda fn: custom_op(
            name, fn, mutates_args=mutates_args, device_types=device_types, schema=schema, tags=tags
        )
    if "::" not in name:
        raise ValueError(f'expected name to be of the form "namespace::name", got {name!r}')
    made = CustomOpDef(name, _described(name, schema, fn, mutates_args), fn, tags)
    if device_types is None or "cpu" in ([device_types] if isinstance(device_types, str) else device_types):
        made.register_kernel("cpu")(fn)
    return made


def _described(name: str, schema: str | None, fn, mutates_args) -> str:
    """The schema, given or inferred. ValueError where it writes other arguments than ``mutates_args``, NotImplementedError for tensors by keyword."""
    text = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
    parsed = parse_checked(name.split("::")[1] + text, name.split("::")[0])
    _refuse_keyword_tensors("custom_op", parsed)
    written = {a.name for a in parsed.arguments if a.is_write}
    if schema is not None and mutates_args != "unknown" and written != set(mutates_args):
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}`. The schema suggests that the op "
            f"mutates {written or '{}'}, which is different from what was provided to us in `mutates_args`. Please make these consistent."
        )
    return text


def _refuse_keyword_tensors(what: str, schema) -> None:
    if any(a.kwarg_only and a.is_tensor for a in schema.arguments):
        raise NotImplementedError(
            f"{what} with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: {schema}"
        )


class CustomOpDef:
    """What :func:`custom_op` returns: call it like the function; the ``register_*`` methods are decorators that add to it."""

    def __init__(self, name: str, schema: str, fn, tags=()):
        self._qualname = name
        self._namespace, self._name = name.split("::")
        self._init_fn = fn
        lib = _libraries.setdefault(self._namespace, Library(self._namespace, "FRAGMENT"))
        existing = next((op for op in lib._ops if op._opname == self._name), None)
        if existing is not None:  # defined again, as in a notebook
            fresh = Library(self._namespace, "FRAGMENT")
            fresh._ops.append(existing)
            lib._ops.remove(existing)
            for key in [key for key in lib._impls if key[0] is existing]:
                del lib._impls[key]
            fresh._destroy()
        lib.define(self._name + schema, tags=tags)
        self._lib = lib
        self._opoverload: OpOverload = find(name)
        self._packet = self._opoverload.overloadpacket
        # Unlike the overload a packet looks at each argument's type. Overrides are handed the overload.
        self._call = packet_call(self._packet, self._opoverload)
        self._opoverload.override("missing_meta", self._without_fake)
        functools.update_wrapper(self, fn)

    def _without_fake(self):
        raise RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to work. "
            f"Please use `{self._name}.register_fake` to add an fake impl."
        )

    def __call__(self, *args, **kwargs):
        made = self._call(*args, **kwargs)
        return self._packet.of_several(made) if made.__class__ is tuple else made

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def register_kernel(self, device_types, fn=None, /):
        """The function for the CPU, in place of the one the operator was made from."""

        def give(fn):
            if "cpu" in ([device_types] if isinstance(device_types, str) else device_types or ["cpu"]):
                self._lib.impl(
                    self._opoverload,
                    _checked(self._opoverload, fn),
                    "CPU",
                    allow_override=True,
                    autograd_fallback=False,
                )
            return fn

        return give if fn is None else give(fn)

    def register_fake(self, fn, /):
        """``fn`` with the operator's signature returns empty tensors shaped like the result."""
        register_fake(self._opoverload, fn)
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """``setup_context(ctx, inputs, output)`` saves, ``backward(ctx, *grads)`` gives one gradient for each argument."""
        register_autograd(self._opoverload, backward, setup_context=setup_context)

    def register_vmap(self, fn=None, /):
        """``fn(info, in_dims, *args) -> (result, out_dims)``."""
        if fn is None:
            return self.register_vmap
        register_vmap(self._opoverload, fn)
        return fn


def _checked(op: OpOverload, fn):
    """The kernel, with writes counted and results that alias an argument refused."""
    written = [i for i, a in enumerate(op._schema.arguments) if a.is_write]

    def kernel(*args, **kwargs):
        values = op.full(*args, **kwargs)
        versions = [
            (t, t._writes) for i in written for t in tree_flatten([values[i]])[0] if isinstance(t, _C.TensorBase)
        ]
        with no_grad():  # a gradient comes of register_autograd, never of what the kernel does
            out = fn(*args, **kwargs)
        for t, v in versions:
            if t._writes == v:  # written through NumPy, say: autograd must know
                t._bump_version()
        if not config.check_custom_op_aliasing:
            return out
        owned = {id(t._storage) for t in tree_flatten(list(values))[0] if isinstance(t, _C.TensorBase)}
        for t in tree_flatten(out)[0]:
            if isinstance(t, _C.TensorBase):
                if id(t._storage) in owned:
                    raise RuntimeError(
                        f"{op.name()}: The output of this custom operator (1) must not also be an input to this custom "
                        "operator and (2) may not alias any inputs to this custom operator or other returns. The most common "
                        "way to trigger this error is if we have y = custom_op(x) and y and x are the same Tensor. Please "
                        "instead return a clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the "
                        "custom operator to not return y."
                    )
                owned.add(id(t._storage))
        return out

    return kernel


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Kernel of an operator for devices."""

    def give(fn):
        target = find(op)
        if "cpu" in ([device_types] if isinstance(device_types, str) else device_types or ["cpu"]):
            (lib or kept(Library(target.namespace, "IMPL"))).impl(
                target, _checked(target, fn), "CPU", allow_override=True, autograd_fallback=False
            )
        return fn

    return give if func is None else give(func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=False):
    """The shapes of an operator: ``func`` runs on fake tensors. A decorator without ``func``."""
    if func is None:
        return lambda func: register_fake(op, func, lib=lib)
    if when_defined(op, lambda op: register_fake(op, func)):
        return func
    op = find(op)
    if op.kind == "composite" and op.definition.implicit and op.namespace != "aten":
        raise RuntimeError(
            f"We should not register a meta kernel directly to the operator '{op.name()}', because it has a CompositeImplicitAutograd "
            "kernel. Instead we should let the operator decompose, and ensure that we have meta kernels for the base ops that it decomposes into."
        )
    op.override("meta", run_on_fakes(op, func))
    op.redefine()
    return func


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """The derivative of an operator. RuntimeError for one that writes its arguments or returns views."""
    if when_defined(op, lambda op: register_autograd(op, backward, setup_context=setup_context)):
        return
    op = find(op)
    if op._schema.is_mutable or op._schema.is_view:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {op} with schema {op._schema}. Please create a "
            "functional operator and register an autograd formula for that."
        )
    _refuse_keyword_tensors("register_autograd", op._schema)
    kwonly = [a.name for a in op._schema.arguments if a.kwarg_only]

    class Generated(Function):
        _nested_results = True

        @staticmethod
        def forward(spec, *flat):
            with excluding(K.AUTOGRAD):
                return call(op, op, spec.rebuild(flat))

        @staticmethod
        def setup_context(ctx, inputs, output):
            spec, *flat = inputs
            ctx._spec = spec
            if setup_context is not None:
                values = spec.rebuild(flat)
                args = tuple(v for v, a in zip(values, op._schema.arguments) if not a.kwarg_only)
                if kwonly:
                    setup_context(
                        ctx=ctx, inputs=args, keyword_only_inputs=dict(zip(kwonly, values[len(args) :])), output=output
                    )
                else:
                    setup_context(ctx, args, output)
            ctx._lengths = _lengths_of(output)
            needs = ctx.needs_input_grad[1:]
            ctx.needs_input_grad = tuple(spec.rebuild(needs, plain=False))

        @staticmethod
        def backward(ctx, *grads):
            got = backward(ctx, *_by_result(grads, ctx._lengths))
            got = got if isinstance(got, tuple) else (got,)
            positional = len(op._schema.arguments) - len(kwonly)
            if not ctx._spec.passed <= len(got) <= positional:
                raise RuntimeError(f"{op.name()}: backward returned {len(got)} gradients for {positional} arguments")
            # Arguments that were left to their defaults need no gradient.
            return (None, *ctx._spec.flatten((*got, *[None] * (len(op._schema.arguments) - len(got)))))

    Generated.__name__ = Generated.__qualname__ = f"GeneratedBackwardFor_{op.namespace}_{op._opname}_{op._overloadname}"

    def kernel(*values):
        spec = _Spec(values, len(op.normalize(*op.split(values))[0]))
        return Generated.apply(spec, *spec.flatten(values))

    op.override("autograd", kernel)
    op.redefine()


def _lengths_of(output) -> list:
    """The number of tensors of each result that is a list, None for another."""
    each = output if isinstance(output, tuple) else (output,)
    return [len(x) if isinstance(x, list) else None for x in each]


def _by_result(grads, lengths: list) -> list:
    """The gradients of the leaves as backward takes them, those of a list together."""
    it = iter(grads)
    return [next(it) if n is None else [next(it) for _ in range(n)] for n in lengths]


class _Spec:
    """Tensor lists spread out, since an autograd function takes tensors one by one. ``passed``: arguments before those left to their defaults."""

    def __init__(self, values, passed: int):
        self.passed = passed
        self._lengths = [
            len(v) if isinstance(v, (list, tuple)) and any(isinstance(x, _C.TensorBase) for x in v) else None
            for v in values
        ]

    def flatten(self, values) -> list:
        out = []
        for v, n in zip(values, self._lengths):
            out.extend([v] if n is None else [None] * n if v is None else v)
        return out

    def rebuild(self, flat, plain=True) -> list:
        it = iter(flat)
        return [next(it) if n is None else [next(it) for _ in range(n)] for n in self._lengths]


def register_vmap(op, func=None, /, *, lib=None):
    """How an operator works on a batch: ``func(info, in_dims, *args) -> (result, out_dims)``; ``info.batch_size``."""
    if func is None:
        return lambda func: register_vmap(op, func, lib=lib)
    op = find(op)

    class Info:
        randomness = "error"

        def __init__(self, size):
            self.batch_size = size

    def batch(b, *values):
        args, kwargs = op.split(values)
        in_dims = tuple(0 if mapped else None for mapped in b.mask[: len(args)])
        result, dims = func(Info(b.size), in_dims, *args, **kwargs)
        return _front(result, dims, b.size)

    op.override("batch", batch)
    op.redefine()
    return func


def _front(t, dim, size):
    """A result with the batch in front; numbers, which are never mapped, as they are."""
    if isinstance(t, (list, tuple)):
        dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(t)
        return type(t)(_front(x, d, size) for x, d in zip(t, dims, strict=True))
    if not isinstance(t, _C.TensorBase):
        return t
    if dim is None:
        return t.expand(size, *t.shape)
    return t.movedim(dim, 0) if dim else t
