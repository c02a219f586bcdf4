"""The frame of a generator while tracing: it runs to its next value, and can be thrown into."""

from __future__ import annotations

from ..bytecode.versions import PY312
from ..exc import UserRaises
from ..variables.base import Variable
from ..variables.exceptions.exception import variable_of
from ..variables.exceptions.tracebacks import Entry
from ..variables.iterators.generators import GeneratorVariable
from .executor import Frame

__all__ = ["GeneratorFrame"]


class GeneratorFrame(Frame):
    """One that can stop at a ``yield`` and go on. ``parent`` is the consumer while it runs, else the root frame."""

    def resume(self, consumer: Frame, sent: Variable) -> Variable | None:
        """Run to the next value; None when it is exhausted. ``sent``: the value of the yield."""
        self.refuse_running()
        if self.finished:
            return None
        if self.started:
            self.stack[-1] = sent
        self.started = True
        return self._go_on(consumer, self.run)

    def throw(self, consumer: Frame, exc: Variable) -> Variable | None:
        """As resume(), with the exception raised at the yield."""
        self.refuse_running()
        if self.finished:
            raise UserRaises(exc.exception, exc)
        if not self.started:
            return self._go_on(consumer, lambda: self._raise_first(exc))
        below = self.delegate()
        if below is not None:
            return self._go_on(consumer, lambda: self._throw_below(below, exc))
        return self._go_on(consumer, lambda: self._raise_here(exc))

    def refuse_running(self) -> None:
        if self.running:
            self.raise_user(ValueError("generator already executing"))

    def delegate(self) -> Variable | None:
        """The generator that ``yield from`` is at."""
        after = self.insts[self.ip] if self.suspended else self.inst  # one that runs may be at its last instruction
        if after.name == "RESUME" and after.arg & 3 == 2 and isinstance(self.stack[-2], GeneratorVariable):
            return self.stack[-2]
        return None

    def _throw_below(self, below: GeneratorVariable, exc: Variable) -> None:
        if isinstance(exc.exception, GeneratorExit):
            below.close(self)
            return self._raise_here(exc)
        try:
            v = below.frame.throw(self, exc)
        except UserRaises as e:
            return self._raise_here(e.variable)
        if v is not None:
            self.yielded, self.suspended = v, True
            return
        send = next(i for i in reversed(self.insts[: self.ip]) if i.name == "SEND")
        del self.stack[-2:]
        self.stack.append(below.returned())
        self.ip = send.target
        self.run()

    def _raise_here(self, exc: Variable) -> None:
        inst = self.inst
        self.suspended = False
        try:
            self._raise_thrown(exc)
        except UserRaises as e:
            self.passes(inst, e)
            if inst.handler is None:
                self.leaves_by_error()
                raise
            self.enter_handler(inst, e)
        self.run()

    def _raise_thrown(self, exc: Variable) -> None:
        """The context of an exception is the one that the generator itself handles. Its consumer's doesn't count."""
        if self.handling:
            exc.set_context(self, self.handling[-1])
        raise UserRaises(exc.exception, exc)

    def _raise_first(self, exc: Variable) -> None:
        """The exception is raised before the first instruction of the function."""
        try:
            self._raise_thrown(exc)
        except UserRaises as e:
            first = next(i for i in self.insts if i.name == "RETURN_GENERATOR")
            e.variable.add_entry(self, Entry(self.code, self.globals, first.offset, first.line))
            raise

    def _go_on(self, consumer: Frame, run) -> Variable | None:
        self.parent = consumer
        self.suspended, self.running = False, True
        try:
            run()
        except UserRaises as e:
            self.finished = True
            # Since 3.12 a handler in the function does it, which doesn't reach in front of it.
            if isinstance(e.exception, StopIteration) and (self.started or not PY312):
                stopped = UserRaises(RuntimeError("generator raised StopIteration"))
                stopped.variable = variable_of(consumer, stopped)
                stopped.variable.setattr(consumer, "__cause__", e.variable)
                stopped.variable.set_context(consumer, e.variable)
                raise stopped from None
            raise
        finally:
            self.running = False
            self.parent = consumer.root  # the consumer may be a generator that alone holds this one
        if self.suspended:
            return self.yielded
        self.finished = True
        return None

    def must_be_closed(self) -> bool:
        """Whether code runs when the generator is dropped now."""
        return self.started and not self.finished and (self.inst.handler is not None or self.delegate() is not None)
