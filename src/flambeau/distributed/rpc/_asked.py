"""What other workers ask for that concerns references and contexts, by kind. It is answered in the thread that reads, which must not wait."""

from __future__ import annotations

from ._agent import Agent, Kind
from ._calls import execute, finished

__all__ = ["HANDLERS"]


def _make(agent: Agent, source: int, number: int, note, body, context) -> None:
    entry = agent.references.entry(note)
    entry.made = True
    agent.references.count(note, entry)
    agent.later(agent.reply, source, number, None)
    if isinstance(body, Exception):
        entry.fill(None, body)
    else:
        agent.run(execute, agent, body, context, entry.fill)


def _fetch(agent: Agent, source: int, number: int, note, body, context) -> None:
    future = agent.references.entry(note).future
    future._inner.add_done_callback(
        lambda inner: agent.run(finished, inner, lambda v, e: _hand(agent, source, number, v, e, context))
    )


def _hand(agent: Agent, source: int, number: int, value, error, context) -> None:
    if error is None:
        agent.reply(source, number, value, context)
    else:
        agent.fail(source, number, error)


def _add(agent: Agent, source: int, number: int, note, body, context) -> None:
    agent.references.count(note, agent.references.entry(note))
    agent.later(agent.reply, source, number, None)


def _delete(agent: Agent, source: int, number: int, note, body, context) -> None:
    agent.references.discount(note)


def _accepted(agent: Agent, source: int, number: int, note, body, context) -> None:
    agent.later(agent.references.take_back, note)


def _release(agent: Agent, source: int, number: int, note, body, context) -> None:
    agent.contexts.forget(note)


HANDLERS = {
    Kind.RELEASE: _release,
    Kind.REMOTE: _make,
    Kind.FETCH: _fetch,
    Kind.ADD: _add,
    Kind.DELETE: _delete,
    Kind.ACCEPTED: _accepted,
}
