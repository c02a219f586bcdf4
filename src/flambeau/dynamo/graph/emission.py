"""From a trace to captured code: the graph is handed to the backend, and the bytecode around its call is written."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable

import numpy as np

from flambeau import _C, _frame, fx
from flambeau.fake.active import handing_over
from flambeau.loops.random_numbers.streams import journaled

from ..bytecode.codegen import TEMP, Codegen
from ..exc import BackendCompilerFailed, SkipFrame, Unsupported
from ..modes import autocast
from ..numpy import floating_errors, numpy_bridge
from ..numpy.views import only_views
from ..rules.reflect import name_of
from ..subclasses import subclass_operations
from ..subclasses.gradients import GradientRegion, Runner, region_of
from ..variables.base import Variable
from ..variables.functions.cells import CellVariable
from . import tensor_queries
from .effects import drawing_again, draws, has_effects, may_run_again, refuse_shared_memory, writes, written_inputs
from .inputs import GraphInput

__all__ = ["Emission"]


class Emission:
    def __init__(self, output):
        self.output = weakref.proxy(output)  # no cycle: a trace is freed with its last reference
        self.region: GradientRegion | None = None
        """The derivative, when wrappers have a history."""
        self.graph_module = None
        self.compile_seconds = 0.0
        self.takes_arrays = False

    def emit(
        self,
        tx,
        stack: list[Variable],
        local_names: dict[str, Variable],
        tail: Callable[[Codegen], None],
        returning: bool,
    ) -> list:
        """Bytecode that computes the graph, rebuilds ``stack`` and the named locals, replays side effects, and goes on with ``tail``."""
        output, recorder = self.output, self.output.recorder
        if output.side_effects.drops_finalizers({id(o): o for o in output.objects.keep}, output.objects.by_id):
            raise SkipFrame("an object that has __del__ may be dropped from what existed before")
        cg = Codegen(output.code, output.globals, recorder.root)
        cg.made_classes, cg.enumerations = output.objects.made_classes, output.objects.enumerations
        cg.returning = returning
        final_grad = tensor_queries.grad_enabled()
        body = self._behind_the_graph(tx, cg, stack, local_names, tail)
        outputs = list(cg.outputs)
        drawn = self._python_draws(cg)
        if not outputs and (not recorder.has_work() or only_views(recorder)):
            recorder.drop_calls()
            return drawn + body
        for block in reversed(autocast.blocks(output)):
            block.end(recorder.root)
        if final_grad != output.initial_grad:
            recorder.root.call_function(tensor_queries.set_grad_enabled, (output.initial_grad,)).meta["val"] = None
        fn = self.compile(tx, outputs)
        cg.start()
        cg.counting = False
        pushed = len(self.region.pushed()) if self.region is not None else 0
        cg.call_function(fn, lambda: self._push_inputs(cg), len(recorder.inputs) + pushed)
        cg.emit("STORE_FAST", f"{TEMP}graph_out")
        return drawn + cg.code + body

    def _behind_the_graph(self, tx, cg: Codegen, stack, local_names, tail) -> list:
        """What follows the call of the graph. The code is written twice: the first time counts how often each value is used."""
        final_grad = tensor_queries.grad_enabled()
        base_grad = tx.base_grad_mode()  # outside the with blocks that the rebuilt stack enters again

        def flush(cell: CellVariable) -> bool:
            return cell.root_name is not None and (not cg.returning or cell.escapes or cell.root_name in cg.free)

        for counting in (True, False):
            cg.counting = counting
            cg.start()
            if base_grad != self.output.initial_grad:
                _set_grad_mode(cg, base_grad)
            cg.stack(stack)
            cg.all(local_names.values())
            write = self.output.side_effects.codegen(cg, flush)
        if not cg.returning and tx.rebuilt_grad_mode() != final_grad:
            _set_grad_mode(cg, final_grad)
        write()
        for place in cg.behind_writes:
            place()
        for name in reversed(list(local_names)):
            cg.store_local(name)
        tail(cg)
        body = cg.code
        if cg.wants_outer:
            cg.start()
            cg.call_function(sys.exc_info, None, 0)
            cg.load_const(1)
            cg.emit("BINARY_SUBSCR")
            cg.emit("STORE_FAST", f"{TEMP}outer")
            body = cg.code + body
        return body

    def _python_draws(self, cg: Codegen) -> list:
        cg.start()
        cg.counting = False
        for source, call, local in self.output.python_draws:
            cg.call_function(call, lambda source=source: cg.load_source(source), 1)
            cg.emit("STORE_FAST", local)
        return cg.code

    def _push_inputs(self, cg: Codegen) -> None:
        inputs = self.output.recorder.inputs
        with cg.sharing([i.source for i in inputs], self.output.guards.node):
            for i in inputs:
                if i.numpy_number:
                    convert = np.asarray if self.takes_arrays else numpy_bridge.from_number
                    cg.call_function(convert, lambda i=i: cg.load_source(i.source), 1)
                elif i.ndarray and not (self.takes_arrays and not i.carried):
                    convert = numpy_bridge.tensor_of if i.carried else _C.from_array
                    cg.call_function(convert, lambda i=i: cg.load_source(i.source), 1)
                else:
                    cg.load_source(i.source)
            for v in self.region.pushed() if self.region is not None else ():
                cg.load_source(v.source)

    # -- the backend --
    def compile(self, tx, outputs: list):
        """Hand the graph to the backend. What captured code calls: the backend's function, with what it needs around it."""
        gm, keep = self._finished_graph(tx, outputs)
        fn = self._compiled(gm, keep)
        if callable(fn) and any(
            n.target is getattr(autocast.library(), "_enter_autocast", n) for n in self.output.recorder.root.nodes
        ):
            fn = autocast.restoring(fn)
        # Ahead-of-time graphs don't switch; a backend of the program's may run the nodes by whatever way.
        runs_nodes = callable(fn) and not hasattr(fn, "keeps_inputs_at_errors")
        if runs_nodes and any(n.target is tensor_queries.set_grad_enabled for n in self.output.recorder.root.nodes):
            fn = tensor_queries.restoring_grad_mode(fn)
        if self.output.has_subclasses and callable(fn):
            fn = subclass_operations.without_overrides(fn)
        if not callable(fn):
            raise BackendCompilerFailed(
                self.output.compiler.backend, TypeError(f"a backend must return a callable, got {name_of(type(fn))}")
            )
        if self.output.draws:
            fn = journaled(fn)
        return self._guarded_against_errors(fn, gm.meta["arrays"], keep)

    def _finished_graph(self, tx, outputs: list) -> tuple[fx.GraphModule, list[GraphInput]]:
        """The module of the graph with these outputs, and the inputs that it needs."""
        output, recorder, shapes = self.output, self.output.recorder, self.output.shapes
        root = recorder.root
        region = self.region = region_of(tx, outputs)
        if region is not None:
            region.prepare(root)
            outputs = region.results()
        elif root.holds_arrays:
            outputs = outputs + floating_errors.unused(root.nodes, outputs)
        out = root.output(tuple(outputs))
        out.meta["val"] = tuple(n.meta["val"] for n in outputs)
        keep = []
        for i in recorder.inputs:
            if i.node.users or (region is not None and region.needed(i.node)):
                keep.append(i)
            else:
                root.erase_node(i.node)
        recorder.inputs = keep
        if any(writes(n) for n in root.nodes if n.op.startswith("call")):
            refuse_shared_memory(output, [i for i in keep if not i.number])
        gm = fx.GraphModule(recorder.attributes, root)
        gm.meta["arrays"] = root.holds_arrays
        if shapes.env is not None and all(i.number for i in keep):
            gm.meta["fake_mode"] = output.fake_mode  # no input leads to it
        weakref.finalize(gm, release, recorder.graph).atexit = False
        self.graph_module = gm
        return gm, keep

    def _compiled(self, gm: fx.GraphModule, keep: list[GraphInput]):
        """What the backend makes of the graph, and of the derivative of a region."""
        output, env, region = self.output, self.output.shapes.env, self.region
        examples = [i.example if env is None else i.node.meta["val"] for i in keep]
        if region is not None:
            examples = [x.detach() if tensor_queries.is_tensor(x) else x for x in examples]
        # As the graph is called: where a break is inside a region, the trace is in its mode.
        grad, inference = tensor_queries.grad_enabled(), tensor_queries.inference_enabled()
        tensor_queries.set_inference(bool(output.process.field("inference")))
        tensor_queries.set_grad_enabled(output.initial_grad and region is None)
        if env is not None and (output.shapes.has_data_numbers or output.draws or output.python_draws):
            env.allow_data_dependent_numbers = True  # what a generator gives may be a Python number
        start = time.perf_counter()
        try:
            with handing_over(output.fake_mode):
                fn = output.modes.backend_call(output.compiler, gm, examples)
                if region is not None and callable(fn):
                    backward = output.modes.backend_call(output.compiler, region.graph, region.examples)
                    fn = Runner(region, fn, backward, keep)
            return fn
        except (Unsupported, BackendCompilerFailed):
            raise
        except Exception as e:
            raise BackendCompilerFailed(output.compiler.backend, e).with_traceback(e.__traceback__) from e
        finally:
            self.compile_seconds = time.perf_counter() - start
            tensor_queries.set_inference(inference)
            tensor_queries.set_grad_enabled(grad)

    def _guarded_against_errors(self, fn: Callable, arrays: bool, keep: list[GraphInput]):
        """The call of the graph with what is done at an error in it: where nothing has happened yet the frame is run plainly, which raises the
        error at the program's own line, where a handler may wait for it, as NumPy does for arrays."""
        output, nodes = self.output, self.output.recorder.root.nodes
        written = () if getattr(fn, "keeps_inputs_at_errors", False) else written_inputs(keep)
        repeatable = output.under_handler or (not output.modes.dispatch and all(map(may_run_again, nodes)))
        again = (arrays or repeatable) and not has_effects(output)
        if again and any(map(draws, nodes)):
            # Setting the generator back costs a little at each call.
            again = output.under_handler or output.shapes.has_data_numbers
            fn = drawing_again(fn) if again else fn
        graph = _frame.DisabledFunction(fn)
        self.takes_arrays = getattr(fn, "takes_arrays", False)
        if not again:
            return graph
        if not written or getattr(fn, "untouched_at_errors", False):
            graph.again = numpy_bridge.is_ours if arrays else numpy_bridge.is_of_data
            if written:
                graph.again = numpy_bridge.is_told_before_writing
        # Plain NumPy takes no tensor of autograd's or of a transform.
        given = [i.example for i in keep if not i.number]
        if arrays and not any(t.requires_grad or t._keys for t in given) and all(keep[k].ndarray for k in written):
            graph.watch, graph.flagged = floating_errors.watched(nodes)
            graph.written = tuple(written)
            graph.keeps = floating_errors.kept_at_each_call(nodes, [keep[k].node.meta["val"] for k in written])
        return graph


def _set_grad_mode(cg: Codegen, mode: bool) -> None:
    cg.call_function(tensor_queries.set_grad_enabled, lambda: cg.load_const(mode), 1)
    cg.emit("POP_TOP")


def release(graph) -> None:
    """The module of a captured graph is gone: if nobody else has the graph, what its nodes hold is freed without the collector."""
    # References that a graph has by itself: from each node and from its root; from the arguments of this call, and of getrefcount.
    if sys.getrefcount(graph) <= len(graph.nodes) + 1 + 4:
        graph.release()
