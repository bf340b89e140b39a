"""The seam of tracing: ``Tracer``, one method, and the ``Span`` that it gives, three.

An agent without a tracer does none of this. What a tracer raises never reaches a run, see
``agentkit.tracing.guarded``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Protocol

from agentkit.tracing.operations import Operation, Outcome

ChildSpans = Literal["all", "errors", "off"]
"""Which calls inside composites are told: all of them, those of composites that failed, or none."""


class Span(Protocol):
    """One operation that has begun."""

    @property
    def ids(self) -> Mapping[str, str]:
        """Labels by which the operation is found again; an episode keeps those of its run."""
        ...

    def activate(self) -> object:
        """Make this the parent of what begins from now on in the current context.

        Returns:
            What ``deactivate`` needs.
        """
        ...

    def deactivate(self, token: object) -> None:
        """Undo ``activate``, in the context in which it was called."""
        ...

    def end(self, outcome: Outcome, *, at_ns: int | None = None) -> None:
        """The operation is over; called exactly once.

        Args:
            outcome: What came of it.
            at_ns: When, in nanoseconds since 1970; None for now.
        """
        ...


class Tracer(Protocol):
    """Is told what an agent does while it does it. One serves any number of agents and runs.

    Its methods are called on the event loop of the run and have to return at once: hand what you
    have to send to a queue.
    """

    @property
    def child_spans(self) -> ChildSpans:
        """Which calls inside composites are told."""
        ...

    def start(
        self, operation: Operation, *, at_ns: int | None = None, parent: Span | None = None
    ) -> Span:
        """An operation begins.

        Args:
            operation: What.
            at_ns: When it began, in nanoseconds since 1970; None for now.
            parent: What it is a part of; None for the one that is active in this context.
        """
        ...
