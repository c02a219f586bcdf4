"""Graphs of Python operations, after torch.fx: build, print as Python that runs, edit, verify, interpret.

Enter at graph.py (Graph, its invariants and :meth:`Graph.lint`), node.py, codegen.py (printing), graph_module.py (a
graph that can be called), interpreter.py. Nothing here knows tensors: targets are any callables, operators are
recognised by their ``_schema``."""

import importlib

from .codegen import CodeGen as CodeGen
from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .immutable_collections import immutable_dict as immutable_dict
from .immutable_collections import immutable_list as immutable_list
from .interpreter import Interpreter as Interpreter
from .interpreter import Transformer as Transformer
from .node import Node as Node
from .node import has_side_effect as has_side_effect
from .node import map_aggregate as map_aggregate
from .node import map_arg as map_arg
from .proxy import Attribute as Attribute
from .proxy import Proxy as Proxy
from .proxy import ProxyableClassMeta as ProxyableClassMeta
from .proxy import TraceError as TraceError
from .tracer import PH as PH
from .tracer import Tracer as Tracer
from .tracer import symbolic_trace as symbolic_trace
from .tracer import wrap as wrap


def __getattr__(name):
    """What a first call of compiled code has no use for loads when it is asked for: ``replace_pattern`` with its matcher, and the tools."""
    if name == "replace_pattern":
        return importlib.import_module("flambeau.fx.subgraph_rewriter").replace_pattern
    if name in ("operator_schemas", "passes", "subgraph_rewriter", "traceback"):
        return importlib.import_module(f"flambeau.fx.{name}")
    if name == "experimental":
        importlib.import_module("flambeau.fx.experimental.proxy_tensor")
        importlib.import_module("flambeau.fx.experimental.symbolic_shapes")
        return importlib.import_module("flambeau.fx.experimental")
    raise AttributeError(f"module 'torch.fx' has no attribute {name!r}")
