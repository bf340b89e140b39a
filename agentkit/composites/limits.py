"""How much a composite may be, and may do."""

from __future__ import annotations

from dataclasses import dataclass, fields

from agentkit.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class CompositeLimits:
    """Caps on the text of a composite and on one run of it.

    A run shares them with all the composites that it calls.

    Attributes:
        source_bytes: Longest source text, in UTF-8.
        nodes: Most nodes of the program.
        nesting: Deepest nesting of expressions and blocks, and of composites within composites.
        integer_bits: Largest integer that may be computed.
        string_chars: Longest text that may be built.
        collection_items: Longest list, tuple or dict that may be built.
        fuel: Work of one run: one unit for each node evaluated and for about eight bytes built or
            looked through.
        child_calls: Most calls of children in one run.
        deadline_seconds: Longest run, waiting included; None for no deadline.
        concurrency: Most children that run at the same time.
    """

    source_bytes: int = 8_192
    nodes: int = 600
    nesting: int = 24
    integer_bits: int = 4_096
    string_chars: int = 100_000
    collection_items: int = 10_000
    fuel: int = 50_000
    child_calls: int = 500
    deadline_seconds: float | None = 30.0
    concurrency: int = 16

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not value > 0:
                raise UsageError(f"CompositeLimits.{field.name} must be positive, got {value!r}")


CONTRACT_LIMITS = CompositeLimits(fuel=300_000, collection_items=100_000)
"""For one pre- or postcondition, which has the whole of a table to look through: enough for
simple conditions on each of 50,000 items, and still no more than about a quarter of a second."""

READING_LIMITS = CompositeLimits(source_bytes=1_048_576, nodes=20_000, nesting=80)
"""For looking at the programs of a library: one that was accepted under limits of its author's own
stays readable to those who count its calls or draw it."""
