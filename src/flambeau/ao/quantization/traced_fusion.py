"""Fusing layers that follow one another in a traced graph."""

from __future__ import annotations

from flambeau import fx, nn

from .fuse_modules import _FUSERS, fuse_known_modules
from .traced_operations import is_relu

__all__ = ["fuse_traced"]


def _chain(node, modules, length):
    """The ``length`` modules from ``node`` on, each of which the next one alone reads, with their nodes; None where there are fewer."""
    found, relu = [(node, modules[node.target])], None
    while len(found) < length:
        last = found[-1][0]
        if len(last.users) != 1:
            return None
        following = next(iter(last.users))
        if following.op == "call_module":
            module = modules[following.target]
        elif is_relu(following, modules):
            module = relu = nn.ReLU()
            relu.train(found[0][1].training)
        else:
            return None
        found.append((following, module))
    return found


def fuse_traced(gm: fx.GraphModule, is_qat: bool) -> fx.GraphModule:
    """Fuse what follows one another in the graph, the longest first."""
    called: dict[str, int] = {}
    for node in gm.graph.nodes:
        if node.op == "call_module":
            called[node.target] = called.get(node.target, 0) + 1
    for length in (3, 2):
        for node in list(gm.graph.nodes):
            modules = dict(gm.named_modules())
            if node.op != "call_module" or node.target not in modules:
                continue
            chain = _chain(node, modules, length)
            if chain is None or tuple(type(m) for _, m in chain) not in _FUSERS:
                continue
            if any(called.get(n.target, 1) > 1 for n, _ in chain if n.op == "call_module"):
                continue
            fused = fuse_known_modules([m for _, m in chain], is_qat)[0]
            gm.set_submodule(node.target, fused)
            for other, _ in reversed(chain[1:]):
                other.replace_all_uses_with(other.args[0])
                gm.graph.erase_node(other)
    gm.delete_all_unused_submodules()
    gm.recompile()
    return gm
