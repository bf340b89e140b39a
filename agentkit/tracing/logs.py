"""``LoggingTracing``: runs as lines of Python's ``logging``, for those without OpenTelemetry."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from contextvars import ContextVar, Token
from typing import Any

from agentkit.tracing import conventions as names
from agentkit.tracing.content import ContentPolicy, content_of
from agentkit.tracing.facts import facts_after, facts_before, title
from agentkit.tracing.tracer import ChildSpans, Operation, Outcome, RunOperation, Span

LOGGER = "agentkit.trace"
"""Name of the logger unless another one is given."""

_EPISODE: ContextVar[str] = ContextVar("episode", default="")
_SHOWN = {
    names.EPISODE: "episode",
    names.ERROR: "error",
    names.STOP_REASON: "stop",
    names.TURNS: "turns",
    names.INPUT_TOKENS: "input_tokens",
    names.OUTPUT_TOKENS: "output_tokens",
    names.FINISH_REASONS: "finish",
    names.REFINEMENT: "refine_round",
    names.RETRIES: "retries",
    names.OFFERED: "offered",
    names.TOOL_CALL: "call",
    names.TOOL_ATTEMPTS: "attempts",
    names.FAILURE_LABEL: "label",
    names.GUARDRAIL_CAUSE: "cause",
}
"""What the text of a line tells, and as what; all of it is in the record's ``agentkit``."""


class LoggingTracing:
    """Tells a logger what agents do: one line when an operation ends, and one when it begins.

    Lines about runs have the level INFO, those about their parts and about beginnings DEBUG, those
    about failures WARNING, and a run that failed ERROR. The text is a few
    ``key=value`` pairs; ``record.agentkit`` is a dictionary of all attributes under their names
    in OpenTelemetry, for formatters that write JSON.

    Args:
        logger: Receives the lines; None takes the one named ``agentkit.trace``.
        content: How texts, arguments and results are written into ``record.agentkit``; None, the
            default, writes none of them.
        child_spans: Which calls inside composites are told, see ``OpenTelemetryTracing``.

    Example:
        >>> from agentkit import Agent
        >>> from agentkit.testing import ScriptedModel
        >>> agent = Agent(ScriptedModel(["Hello."]), tracer=LoggingTracing())
        >>> agent.run_sync("Hello?").output
        'Hello.'
    """

    def __init__(
        self,
        logger: logging.Logger | None = None,
        *,
        content: ContentPolicy | None = None,
        child_spans: ChildSpans = "errors",
    ) -> None:
        self._logger = logging.getLogger(LOGGER) if logger is None else logger
        self._content = content
        self._child_spans = child_spans

    @property
    def child_spans(self) -> ChildSpans:
        """Which calls inside composites are told."""
        return self._child_spans

    def start(
        self,
        operation: Operation,
        *,
        at_ns: int | None = None,
        parent: Span | None = None,
    ) -> LoggedSpan:
        """Tell that an operation begins, unless it is told afterwards."""
        span = LoggedSpan(self._logger, operation, at_ns or time.time_ns(), self._content, parent)
        if at_ns is None or isinstance(operation, RunOperation):
            span.begin()
        return span


class LoggedSpan:
    """One operation as lines of a log; made by ``LoggingTracing``."""

    __slots__ = ("_began_ns", "_content", "_logger", "_operation", "episode")

    def __init__(
        self,
        logger: logging.Logger,
        operation: Operation,
        began_ns: int,
        content: ContentPolicy | None,
        parent: Span | None,
    ) -> None:
        self._logger = logger
        self._operation = operation
        self._began_ns = began_ns
        self._content = content
        if isinstance(operation, RunOperation):
            self.episode = operation.episode_id
        else:
            self.episode = parent.episode if isinstance(parent, LoggedSpan) else _EPISODE.get()

    @property
    def ids(self) -> Mapping[str, str]:
        """None: lines are found by the id of the episode."""
        return {}

    def activate(self) -> Token[str]:
        """Let the lines of what begins from now on carry the episode of this one."""
        return _EPISODE.set(self.episode)

    def deactivate(self, token: Any) -> None:
        """Undo ``activate``."""
        _EPISODE.reset(token)

    def begin(self) -> None:
        """Tell that it begins."""
        if self._logger.isEnabledFor(logging.DEBUG):
            self._log(logging.DEBUG, "begin", facts_before(self._operation))

    def end(self, outcome: Outcome, *, at_ns: int | None = None) -> None:
        """Tell that it is over."""
        facts = facts_after(self._operation, outcome)
        level = self._level(failed=names.ERROR in facts)
        if not self._logger.isEnabledFor(level):
            return
        seconds = max((at_ns or time.time_ns()) - self._began_ns, 0) / 1e9
        told = {"seconds": seconds, **facts_before(self._operation), **facts}
        try:
            if self._content is not None:
                told |= content_of(self._operation, outcome, self._content)
        finally:  # where redaction fails, the line is there without content
            self._log(level, "end", told)

    def _level(self, *, failed: bool) -> int:
        if isinstance(self._operation, RunOperation):
            return logging.ERROR if failed else logging.INFO
        return logging.WARNING if failed else logging.DEBUG

    def _log(self, level: int, event: str, facts: Mapping[str, Any]) -> None:
        kind, subject = title(self._operation)
        told = {**facts, names.EPISODE: self.episode} if self.episode else facts
        pairs = [f"{key}={_value(told[name])}" for name, key in _SHOWN.items() if name in told]
        if "seconds" in told:
            pairs.insert(0, f"seconds={told['seconds']:.6f}")
        message = " ".join((event, kind, *((_value(subject),) if subject else ()), *pairs))
        self._logger.log(level, "%s", message, extra={"agentkit": {"event": event, **told}})


def _value(value: object) -> str:
    """A value for a line: as it is when it is one word, else as JSON, which has no line breaks."""
    text = ",".join(value) if isinstance(value, tuple) else str(value)
    return text if text and text.isprintable() and " " not in text else json.dumps(text)
