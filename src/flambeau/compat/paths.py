"""Paths of PyTorch's modules whose names live elsewhere here: one table. ``folder: home: names`` says that ``folder.name``, for each of the names, is
a module that has every name of ``home``. Rows of ``rules`` (see namespaces.py) add what a path has besides.
"""

__all__ = ["PATHS"]

_TABLE = """
optim: optim: _adafactor _muon
nn.parallel: nn.parallel: replicate parallel_apply comm
nn.utils: nn.utils: memory_format
nn.utils: nn.init: init
signal.windows: signal.windows: windows
func: func: _random
multiprocessing: multiprocessing: pool queue
masked: masked: _ops
utils.data: utils.data: graph backward_compatibility
utils.benchmark.utils: utils.benchmark: sparse_fuzzer
utils.benchmark.utils.valgrind_wrapper: utils.benchmark: timer_interface
export: export: _trace _unlift _draft_export
nn.modules: nn.functional: _functions
autograd: autograd: variable
"""

_WHY = "why: a path of PyTorch's without a meaning of its own here\n"

# What these paths have besides, or have alone.
_RULES: dict[str, str] = {
    "functional": "rest",
    "torch_version": "from version: TorchVersion=__version__",
    "autograd.anomaly_mode": "from autograd: detect_anomaly set_detect_anomaly",
    "autograd.profiler_legacy": "from autograd.profiler: profile",
    "fx._symbolic_trace": "rest fx.tracer\nfrom fx: Tracer symbolic_trace wrap\nreturns False: is_fx_tracing is_fx_symbolic_tracing",
    "fx._compatibility": "decorator: compatibility",
    "fx._lazy_graph_module": "from fx: _LazyGraphModule=GraphModule _make_graph_module=GraphModule\ncontext: _use_lazy_graph_module",
    "fx._pytree": "rest utils._pytree\nfrom fx.pytree_codegen: tree_flatten_spec register_pytree_flatten_spec",
    "fx.config": "value False: disable_progress",
    "fx.passes.pass_manager": "rest fx.passes.infra.pass_manager",
    "fx.passes.graph_drawer": _WHY + "class: FxGraphDrawer",
    "nn.utils.spectral_norm": "rest nn.utils.renewed",
    "nn.utils.weight_norm": "rest nn.utils.renewed",
    "nn.cpp": _WHY + "class: ModuleWrapper",
    "numa": "module: binding",
    "numa.binding": _WHY + "class: AffinityMode NumaOptions",
    "export.decomp_utils": "from export: CustomDecompTable",
    "utils._sympy": "module: numbers value_ranges functions symbol",
    "utils._sympy.functions": _WHY + "class: FloorDiv ModularIndexing Where Mod",
    "utils._sympy.numbers": _WHY + "class: IntInfinity NegativeIntInfinity",
    "utils._sympy.symbol": _WHY + "class: SymT",
    "utils._sympy.value_ranges": _WHY + "class: ValueRanges",
    "nn.modules.linear_cross_entropy_options": "from nn.functions.linear_cross_entropy: LinearCrossEntropyOptions",
    "utils.benchmark.utils.valgrind_wrapper": "module: timer_interface",
    "utils.deterministic": "value True: fill_uninitialized_memory",
    "utils.serialization": "module: config",
    "utils.serialization.config": _WHY + "value None: load save",
    "utils.bundled_inputs": _WHY + "refuses: bundle_inputs augment_model_with_bundled_inputs",
    "utils.data.datapipes": "why: data pipes are not built\nmodule: iter map utils\n"
    "class utils.data.datapipes.datapipe: IterDataPipe MapDataPipe",
    "utils.data.datapipes.map": "why: data pipes are not built\nclass: Mapper Batcher Concater Shuffler Zipper SequenceWrapper",
    "utils.data.datapipes.utils": "why: data pipes are not built\nmodule: common",
    "utils.data.datapipes.utils.common": "why: data pipes are not built\nclass: StreamWrapper",
    "utils.data.datapipes.iter": "why: data pipes are not built\nmodule: combinatorics combining grouping callable selecting\n"
    "class: Mapper Batcher Filter Shuffler Zipper Concater Forker Demultiplexer UnBatcher IterableWrapper Collator Sampler FileLister FileOpener "
    "Grouper Multiplexer ShardingFilter StreamReader",
    "utils.data.datapipes.iter.combinatorics": "why: data pipes are not built\nclass: ShufflerIterDataPipe SamplerIterDataPipe",
    "utils.data.datapipes.iter.combining": "why: data pipes are not built\nclass: ConcaterIterDataPipe ZipperIterDataPipe MultiplexerIterDataPipe",
    "utils.data.datapipes.iter.grouping": "why: data pipes are not built\nclass: BatcherIterDataPipe GrouperIterDataPipe UnBatcherIterDataPipe",
    "utils.data.datapipes.iter.callable": "why: data pipes are not built\nclass: MapperIterDataPipe CollatorIterDataPipe",
    "utils.data.datapipes.iter.selecting": "why: data pipes are not built\nclass: FilterIterDataPipe",
    "utils.data.graph_settings": "why: data pipes are not built\nrefuses: apply_shuffle_settings apply_sharding apply_random_seed",
    "utils.data._utils.signal_handling": _WHY + "returns None: _set_SIGCHLD_handler _set_worker_signal_handlers",
    "utils.data._utils.fetch": "from utils.data.dataset: Dataset",
}


def _sections() -> dict[str, str]:
    out: dict[str, str] = {}
    for line in _TABLE.strip().splitlines():
        folder, home, names = line.split(": ")
        for name in names.split():
            out[f"{folder}.{name}"] = f"rest {home}"
    return out | _RULES


PATHS: dict[str, str] = _sections()
