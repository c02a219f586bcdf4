"""PyTorch's private and moved module paths, as aliases of the modules that implement them: one table.

``import flambeau._dynamo.config`` gives the very module of the right column. Nothing is imported until somebody asks: a finder on
``sys.meta_path`` knows the names. It builds the namespaces of ``namespaces.py`` too; a module with code of its own comes before both.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
import types

from .. import _C
from ..base.nearest import Absent

# Alias (below "flambeau.") -> module (below "flambeau."), or "module:attribute" when the target is an object used as a module.
ALIASES: dict[str, str] = {
    "_dynamo": "compiler.dynamo_api",
    "_dynamo.backends": "compiler.dynamo_api:backends",
    "_dynamo.backends.common": "compiler.dynamo_api:backends.common",
    "_dynamo.callback": "compiler.dynamo_api:callback",
    "_dynamo.comptime": "dynamo.comptime",
    "_dynamo.config": "compiler.dynamo_api:config",
    "_dynamo.device_interface": "compat.device_interface",
    "_dynamo.exc": "dynamo.exc",
    "_dynamo.testing": "compiler.dynamo_api:testing",
    "_dynamo.utils": "compiler.dynamo_api:utils",
    "_VF": "compat.variable_functions",
    "_functorch": "aot",
    "_higher_order_ops": "aot.higher_order",
    "_higher_order_ops.associative_scan": "aot.control_flow",
    "_higher_order_ops.cond": "aot.control_flow",
    "_higher_order_ops.flex_attention": "nn.attention.flex_operator",
    "_higher_order_ops.inline_asm_elementwise": "aot.traced_calls",
    "_higher_order_ops.local_map": "aot.wrap",
    "_higher_order_ops.map": "aot.control_flow",
    "_higher_order_ops.register_hook": "aot.traced_calls",
    "_higher_order_ops.scan": "aot.control_flow",
    "_higher_order_ops.while_loop": "aot.control_flow",
    "_higher_order_ops.wrap": "aot.wrap",
    "_functorch.aot_autograd": "aot.api",
    "_functorch.config": "aot.settings:config",
    "_functorch.partitioners": "aot.partitioners",
    "_inductor": "inductor",
    "_inductor.config": "inductor.settings:config",
    "_inductor.metrics": "inductor.metrics",
    "_inductor.utils": "inductor.utils",
    "_numpy": "numpy",
    "_library": "library",
    "_library.custom_ops": "library.custom_op",
    "_library.infer_schema": "library.infer",
    "_library.utils": "library.utils",
    "_subclasses": "fake",
    "_subclasses.fake_tensor": "fake.fake_tensor",
    "_subclasses.functional_tensor": "functionalize.switch",
    "_subclasses.fake_utils": "testing.cross_ref",
    "_subclasses.schema_check_mode": "testing.schema_check",
    "distributed._functional_collectives": "distributed.functional_collectives",
    "distributed.algorithms.ddp_comm_hooks.default_hooks": "distributed.comm_hooks",
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": "distributed.local_sgd",
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": "distributed.power_sgd",
    "distributed.algorithms.join": "distributed.join",
    "distributed.launch": "distributed.run",
    "distributed.nn.functional": "distributed.differentiable",
    "distributed.rpc.backend_registry": "distributed.rpc.options",
    "distributed.pipelining._IR": "distributed.pipelining.pipe",
    "fx.experimental": "proxy",
    "fx.experimental.const_fold": "fx.const_fold",
    "proxy.const_fold": "fx.const_fold",
    "fx.experimental.rewriter": "fx.rewriter",
    "proxy.rewriter": "fx.rewriter",
    "proxy.proxy_tensor": "proxy",
    "proxy.symbolic_shapes": "base.shape_env",
    "fx._symbolic_trace": "fx.tracer",
    "fx.experimental._config": "base.shape_settings:config",
    "fx.experimental.proxy_tensor": "proxy",
    "fx.experimental.symbolic_shapes": "base.shape_env",
    "autograd.forward_ad": "func.forward_ad",
    "masked": "compat.masked",
    "masked.maskedtensor": "compat.masked_tensor",
    "masked.maskedtensor.core": "compat.masked_tensor",
    "masked.maskedtensor.creation": "compat.masked_tensor",
    "nn.intrinsic": "ao.nn.intrinsic",
    "nn.qat": "ao.nn.qat",
    "nn.quantized": "ao.nn.quantized",
    "nn.quantized.dynamic": "ao.nn.quantized.dynamic",
    "quantization": "ao.quantization",
    "quantization.observer": "ao.quantization.observer",
    "quantization.fake_quantize": "ao.quantization.fake_quantize",
    "quantization.qconfig": "ao.quantization.qconfig",
    "quasirandom": "compat.quasirandom",
    "nn.grad": "compat.convolution_gradients",
    "random": "compat.random",
    "types": "compat.types",
    "cpu": "compat.cpu",
    "accelerator": "compat.accelerator",
    "cuda": "compat.cuda",
    "hub": "compat.hub",
    "jit": "compat.jit",
    "_utils": "compat.utils",
    "special": "compat.operators:special",
    "linalg": "compat.operators:linalg",
    "fft": "compat.operators:fft",
    "signal": "compat.operators:signal",
    "signal.windows": "compat.windows",
    "nested._internal.nested_tensor": "nested.converters",
    "utils.data.dataloader": "utils.data.loader",
    "utils.data._utils.collate": "utils.data.collate",
    "utils.data._utils.worker": "utils.data.worker",
    "utils._cxx_pytree": "base.pytree",
    "utils._pytree": "base.pytree",
    "utils.dlpack": "compat.dlpack",
    "utils.hooks": "compat.hooks",
    "utils.weak": "compat.weak",
    "utils.model_zoo": "compat.hub",
    "nn.modules.module": "modules.module",
    "nn.modules.utils": "nn.modules._tuples",
    "nn.parameter": "modules.parameter",
}


# Packages of PyTorch whose modules have the names of functions of our one module: they stand beside it, or importing such a module would put it
# in the function's place. -> the names that mean the function, as in PyTorch, once the module was imported.
BESIDE = {
    "_functorch": frozenset(),
    "_higher_order_ops": frozenset(
        "associative_scan cond inline_asm_elementwise invoke_subgraph map scan while_loop".split()
    ),
}


class _Beside(types.ModuleType):
    """A module that has another's names and keeps what is set on it to itself."""

    def __init__(self, name: str, target: types.ModuleType):
        super().__init__(name)
        self.__dict__.update(_target=target, _functions=BESIDE[name.removeprefix("flambeau.")], __path__=[])

    def __getattr__(self, name):
        found = getattr(self._target, name)
        # Kept, so that capture finds it in the module's names.
        if not name.startswith("__") and not isinstance(found, types.ModuleType):
            self.__dict__[name] = found
        return found

    def __dir__(self):
        return dir(self._target)

    def __setattr__(self, name, value):
        if not (name in self._functions and isinstance(value, types.ModuleType)):
            super().__setattr__(name, value)


# Modules with code of their own that lack names which have no meaning here: rows of extras.py.
_EXTENDED = """
ao.quantization aot.api autograd autograd.graph base.shape_env compat.jit compat.masked compat.utils compiler compiler.dynamo_api distributed
distributed.checkpoint distributed.elastic distributed.fsdp distributed.tensor distributed.tensor.parallel
distributions distributions.transforms dynamo.exc export fake fake.fake_tensor func fx library modules.module nn nn.functional nn.init
nn.modules nn.modules.transformer nn.parallel optim overrides proxy return_types serialization sparse testing utils
utils._python_dispatch utils.data utils.data.collate utils.data.loader utils.data.worker
"""
EXTENDED = frozenset(_EXTENDED.split())


class _ExtendedLoader:
    """Loads a module as its own loader does, then lets it look up what it lacks in the tables."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        extend(module)


def extend(module: types.ModuleType) -> None:
    """Let ``module`` look up names that it lacks, and modules that the tables have below it."""
    own = module.__dict__.get("__getattr__")
    section = module.__name__.removeprefix("flambeau.")

    def __getattr__(name):
        if not name.startswith("__"):
            from .namespaces import extra

            found = extra(section, name)
            if found is not None:
                return found[0]
        if own is not None:
            try:
                return own(name)
            except AttributeError as error:
                raise AttributeError(
                    Absent.of_module(module, f"torch.{section}", name), name=name, obj=module
                ) from error
        raise AttributeError(Absent.of_module(module, f"torch.{section}", name), name=name, obj=module)

    module.__getattr__ = __getattr__


def _target(name: str) -> str | None:
    """What stands behind ``name``: a row of the table, or a module below the package that a row names (it must not be loaded a second time)."""
    found = ALIASES.get(name)
    if found is not None or "." not in name:
        return found
    parent, _, last = name.rpartition(".")
    package = _target(parent)
    if package is None or ":" in package:
        return None
    # A module made by hand stands in sys.modules without a spec.
    inside = f"flambeau.{package}.{last}"
    if inside in sys.modules:
        return f"{package}.{last}"
    if not hasattr(importlib.import_module(f"flambeau.{package}"), "__path__"):
        return None  # a file of ours where PyTorch has a folder: the tables have what is below it
    return f"{package}.{last}" if importlib.util.find_spec(inside) is not None else None


class _AliasFinder:
    """Loads an alias by importing its target; the module keeps its own name and spec."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("flambeau."):
            return None
        if _target(fullname[9:]) is not None:
            return importlib.machinery.ModuleSpec(fullname, self)
        if fullname[9:] in EXTENDED:
            spec = importlib.machinery.PathFinder.find_spec(fullname, path)
            if spec is not None:
                spec.loader = _ExtendedLoader(spec.loader)
            return spec
        return None

    def create_module(self, spec):
        module, _, attribute = _target(spec.name[9:]).partition(":")
        found = importlib.import_module(f"flambeau.{module}")
        for part in attribute.split(".") if attribute else ():
            found = getattr(found, part)
        spec.loader_state = (found, getattr(found, "__spec__", None))
        # The import system puts a spec on what it gets from here, so it gets a stand-in, which exec_module replaces.
        return types.ModuleType(spec.name)

    def exec_module(self, module):
        found, _ = module.__spec__.loader_state
        name = module.__spec__.name
        if name[9:] in BESIDE:
            found = _Beside(name, found)
        elif isinstance(found, types.ModuleType) and not hasattr(found, "__path__"):
            found.__path__ = []  # other aliases may be below it: the import system wants a package
        sys.modules[name] = found


class _NamespaceFinder:
    """Makes the namespaces that are only rows of tables. It is asked last, so the tables are read when nothing else has the name."""

    def find_spec(self, fullname, path=None, target=None):
        if not fullname.startswith("flambeau."):
            return None
        from .namespaces import SECTIONS

        return importlib.machinery.ModuleSpec(fullname, self) if fullname[9:] in SECTIONS else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        from .namespaces import build

        build(module.__spec__.name[9:], module)


def _native_name(name):
    """Names of PyTorch's native module that the tables give."""
    if name.startswith("__"):
        raise AttributeError(name)
    from .namespaces import lookup

    return lookup("_C", name)


def install() -> None:
    """Put the finders before and behind the ordinary ones (once)."""
    if not any(isinstance(f, _AliasFinder) for f in sys.meta_path):
        # In front: an alias whose parent is a package would otherwise be found on its path and loaded a second time.
        sys.meta_path.insert(0, _AliasFinder())
        for name in EXTENDED:
            if (module := sys.modules.get(f"flambeau.{name}")) is not None:
                extend(module)
        sys.meta_path.append(_NamespaceFinder())
        _C.__getattr__, _C.__path__ = _native_name, []
