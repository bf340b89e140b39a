# mypy: disallow-subclassing-any=False
"""How graphs end: by a limit, an error, an interrupt, or by somebody who stops reading.

A middleware is told of answers alone. Callbacks are told of every end; those of a graph are chosen
by who runs it, except for handlers that are registered with LangChain for the whole process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

from agentkit.episodes import StopReason
from agentkit.interop.langchain.framework import current_config
from agentkit.interop.toolset_run import stop_reason

Ended = Callable[[StopReason, BaseException | None], None]

_LIMITS: dict[str, StopReason] = {"GraphRecursionError": "step_limit"}

_STEP = "graph:step:"
"""How LangGraph's tag of a node begins, as a chain among the chains of callbacks."""


class Chains:
    """Which of LangChain's chains is a part of which, and who waits for the end of one."""

    def __init__(self) -> None:
        self._above: dict[Any, tuple[Any, bool]] = {}
        self._waiting: dict[Any, Ended] = {}

    def expect(self, ended: Ended) -> None:
        """Call ``ended`` when the graph ends whose node runs now."""
        chain = getattr(current_config().get("callbacks"), "parent_run_id", None)
        while chain in self._above:
            chain, is_node = self._above[chain]
            if is_node:
                self._waiting[chain] = ended
                return

    def began(self, chain: Any, above: Any, tags: Sequence[str]) -> None:
        """A chain has begun, as a part of ``above``."""
        self._above[chain] = (above, any(tag.startswith(_STEP) for tag in tags))

    def ended(self, chain: Any, error: BaseException | None = None) -> None:
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
        """Hears of chains, and of nothing else."""

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
