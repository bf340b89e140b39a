"""``Meter``: what one run may still do, shared with all the composites that it calls."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from math import inf
from time import monotonic
from typing import Any

from agentkit.composites import ir
from agentkit.composites.interpreter.guard import Guard
from agentkit.composites.interpreter.weights import weigh
from agentkit.composites.limits import CompositeLimits

_TASKS_PER_CHILD = 4
"""Tasks are statements and items, of which some wait for others; children are fewer."""

_WORD_BITS = 62
_WORD = (1 << _WORD_BITS) - 1
"""Integers up to here take a machine word or two; nothing about them needs counting."""


class Meter:
    """Fuel, child calls and the deadline of one run.

    Every node that is evaluated costs a unit, which pays for a number or for an item of a
    container. A text costs a unit for eight characters. Items that are copied from one container to
    another, as by ``+`` or a slice, cost an eighth each. A value that is looked through, as by
    ``==`` or ``str``, costs its weight, contents included; one that crosses the border to a child
    or to the caller costs an eighth of it.

    Attributes:
        limits: What the run was given.
        fuel: Units of work left.
        calls: Calls of children left.
        ends_at: When the run has to end, by the monotonic clock; infinity for never.
        low: Smallest integer that needs no further check.
        high: Largest integer that needs no further check.
        permits: Lets so many children run at the same time; None where nothing is waited for.
        tasks: Tasks that the run has now.
        most_tasks: So many it may have; beyond, work is done one after the other.
        interrupted: Paths and calls that were waiting when the run was stopped.
    """

    __slots__ = (
        "calls",
        "ends_at",
        "fuel",
        "high",
        "interrupted",
        "limits",
        "low",
        "most_tasks",
        "permits",
        "tasks",
    )

    def __init__(self, limits: CompositeLimits) -> None:
        self.limits = limits
        self.fuel = limits.fuel
        self.calls = limits.child_calls
        seconds = limits.deadline_seconds
        self.ends_at = inf if seconds is None else monotonic() + seconds
        bits = limits.integer_bits
        self.high = _WORD if bits >= _WORD_BITS else (1 << bits) - 1
        self.low = -self.high

    def prepare_to_wait(self, permits: AbstractAsyncContextManager[None]) -> None:
        """Get ready for a run in which children are waited for; each holds a permit."""
        self.permits = permits
        self.tasks = 0
        self.most_tasks = _TASKS_PER_CHILD * self.limits.concurrency
        self.interrupted: list[tuple[tuple[str, ...], ir.Call]] = []

    def spend(self, units: int) -> None:
        """Take fuel.

        Raises:
            Guard: There is not enough left.
        """
        self.fuel -= units
        if self.fuel < 0:
            raise out_of_fuel(self)

    def too_many_calls(self) -> Guard:
        """What is raised for one call more than the limit."""
        most = self.limits.child_calls
        return Guard("child_calls", f"more than {most} calls of children; at most {most} are made")

    def too_late(self) -> Guard:
        """What is raised when the deadline has passed."""
        return Guard("deadline", f"the run has lasted {self.limits.deadline_seconds:g} seconds")

    def look(self, value: Any) -> None:
        """Pay for looking through a value once."""
        self.spend(weigh(value, self.fuel))

    def cross(self, value: Any) -> None:
        """Pay for a value that is handed over as it is."""
        self.spend(weigh(value, 8 * self.fuel + 7) >> 3)

    def make_text(self, characters: int) -> None:
        """Pay for a text before it is built."""
        if characters > self.limits.string_chars:
            raise Guard(
                "string_chars",
                f"a text of {characters} characters; at most {self.limits.string_chars} are built",
            )
        self.spend(characters >> 3)

    def copy_items(self, count: int) -> None:
        """Pay for a container of items that exist, before it is built."""
        if count > self.limits.collection_items:
            raise self.too_many_items()
        self.spend(count >> 3)

    def too_many_items(self) -> Guard:
        """What is raised when a container grows beyond the limit."""
        most = self.limits.collection_items
        return Guard("collection_items", f"more than {most} items; at most {most} are collected")

    def number(self, value: Any) -> Any:
        """A computed number, when it may be one."""
        if type(value) is int:
            self.check_bits(value.bit_length())
        elif type(value) is complex:
            raise Guard("complex_number", "the result is a complex number")
        return value

    def check_bits(self, bits: int) -> None:
        """Refuse integers beyond the limit."""
        if bits > self.limits.integer_bits:
            raise Guard(
                "integer_bits",
                f"an integer of {bits} bits; at most {self.limits.integer_bits} are computed",
            )


def out_of_fuel(meter: Meter) -> Guard:
    """What is raised when the work of a run is used up."""
    return Guard("fuel", f"the run has used its {meter.limits.fuel} units of work")
