# mypy: disallow-subclassing-any=False
"""How graphs end: by a limit, an error, an interrupt, or by somebody who stops reading.

A middleware is told of answers alone. Callbacks are told of every end; but those of a graph are
chosen by who makes or runs it. A middleware is neither: it has no say in the graph's configuration,
and by the time that one of its hooks runs, the graph has its handlers, and hands copies of them to
its nodes. ``library_agent`` could set some, and whoever adds the middleware by hand would lose the
episodes of runs that break. So one handler is registered with LangChain, for the whole process.

It hears of all chains, also those of others, so it does next to nothing there: it writes down which
chain is a part of which, for as long as LangChain itself knows the chain, and nothing of what
chains are given or give. Runs find their own graph by its id, so any number of libraries, agents
and threads may share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from agentkit.episodes import StopReason
from agentkit.interop.langchain.framework import current_config
from agentkit.interop.toolset_run import stop_reason

Ended = Callable[[StopReason, BaseException | None], None]

_LIMITS: dict[str, StopReason] = {"GraphRecursionError": "step_limit"}

_STEP = "graph:step:"
"""How LangGraph's tag of a node begins, as a chain among the chains of callbacks."""


class Chains:
    """Which of LangChain's chains is a part of which, and who waits for the end of one.

    A chain is known by the id that its manager holds. One whose end is never told, such as a stream
    that somebody forgot, is forgotten together with its manager.
    """

    def __init__(self) -> None:
        self._above: WeakKeyDictionary[UUID, tuple[UUID | None, bool]] = WeakKeyDictionary()
        self._waiting: dict[UUID, Ended] = {}

    def __len__(self) -> int:
        """How many chains are under way, as far as that is known."""
        return len(self._above)

    def expect(self, ended: Ended) -> None:
        """Call ``ended`` when the graph ends whose node runs now."""
        chain = getattr(current_config().get("callbacks"), "parent_run_id", None)
        while chain is not None:
            chain, is_node = self._above.get(chain, (None, False))
            if is_node and chain is not None:
                self._waiting[chain] = ended
                return

    def began(self, chain: UUID, above: UUID | None, tags: Sequence[str]) -> None:
        """A chain has begun, as a part of ``above``."""
        self._above[chain] = (above, any(tag.startswith(_STEP) for tag in tags))

    def ended(self, chain: UUID, error: BaseException | None = None) -> None:
        """A chain has ended.

        One that ends without an error stopped for somebody, unless it has told its answer before.
        """
        self._above.pop(chain, None)
        ended = self._waiting.pop(chain, None)
        if ended is None:
            return
        if error is None or _is_interrupt(error):
            ended("deferred", None)
        else:
            ended(stop_reason(error, _LIMITS), error)


@cache
def chains() -> Chains:
    """The chains of this process; LangChain tells of those that begin after the first call."""
    from langchain_core.tracers.context import register_configure_hook

    known = Chains()
    handler = ContextVar("agentkit_endings", default=_listener(known))  # noqa: B039 - one for all
    register_configure_hook(handler, inheritable=True)
    return known


def _listener(known: Chains) -> Any:
    from langchain_core.callbacks import BaseCallbackHandler

    class Listener(BaseCallbackHandler):
        """Hears of chains, and of nothing else; inline, so that nothing waits for a thread."""

        run_inline = True
        ignore_llm = ignore_chat_model = ignore_retriever = ignore_agent = True
        ignore_custom_event = ignore_retry = True

        def on_chain_start(
            self, *_: Any, run_id: Any, parent_run_id: Any = None, tags: Any = None, **__: Any
        ) -> None:
            known.began(run_id, parent_run_id, tags or ())

        def on_chain_end(self, *_: Any, run_id: Any, **__: Any) -> None:
            known.ended(run_id)

        def on_chain_error(self, error: BaseException, *, run_id: Any, **_: Any) -> None:
            known.ended(run_id, error)

    return Listener()


def _is_interrupt(error: BaseException) -> bool:
    """Whether it is LangGraph's way to stop for a person, and no error."""
    from langgraph.errors import GraphBubbleUp

    return isinstance(error, GraphBubbleUp)
