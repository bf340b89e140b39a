"""How much a server may say."""

from __future__ import annotations

from dataclasses import dataclass, fields

from agentkit.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class McpLimits:
    """Bounds on one server. What is beyond them is reported, and not offered.

    Attributes:
        max_tools: Tools that are read of a listing; after them reading stops.
        max_pages: Pages of a listing that are asked for.
        max_listing_chars: Characters of a listing in all; after them reading stops.
        max_text_chars: Characters of one description. Longer texts are not looked through, so a
            tool that has one is held.
        max_definition_chars: Characters of one tool's listing in all, as JSON.
        max_result_chars: Characters of one answer in all; a longer one is a failed call.
        max_result_parts: Texts, pictures and the like in one answer; more are a failed call.
        max_message_bytes: Bytes of one message before it is decoded; a call that is answered with
            more fails.
        connect_seconds: Longest wait for a connection, start of the process included.
        list_seconds: Longest wait for the whole listing.
        call_seconds: Longest wait for one answer.
        reconnects: Attempts in a row after a connection was lost; then the next call tries again.
        backoff_seconds: Wait before the second attempt; doubles each time.
        max_backoff_seconds: Longest wait between attempts.
    """

    max_tools: int = 5_000
    max_pages: int = 1_000
    max_listing_chars: int = 10_000_000
    max_text_chars: int = 8_000
    max_definition_chars: int = 30_000
    max_result_chars: int = 1_000_000
    max_result_parts: int = 2_000
    max_message_bytes: int = 10_000_000
    connect_seconds: float = 30.0
    list_seconds: float = 30.0
    call_seconds: float = 60.0
    reconnects: int = 5
    backoff_seconds: float = 0.2
    max_backoff_seconds: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise UsageError(f"{field.name} is {value}; use a number above 0")

    def backoff(self, attempt: int) -> float:
        """Seconds to wait after the failed attempt of that number, from 1."""
        return min(self.backoff_seconds * 2.0 ** min(attempt - 1, 30), self.max_backoff_seconds)
