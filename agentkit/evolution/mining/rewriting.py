"""Putting composites in the place of the calls that they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agentkit.evolution.mining.lifting import Lifting, fingerprint, live_results
from agentkit.evolution.mining.ordering import Grouping, Ordering, arrange, bits
from agentkit.evolution.mining.patterns import Pattern, PatternSearch
from agentkit.evolution.mining.trajectory import (
    Given,
    Path,
    RecordedCall,
    Source,
    Step,
    Trajectory,
)

Misfit = Literal[
    "result_needed",  # a result that the composite keeps to itself is used outside
    "arguments_differ",  # arguments that became one parameter have different values
    "constant_differs",  # an argument that became a constant has another value
    "unreadable",  # a flow reads what the recording does not hold
]
"""Why a composite can not stand in for calls that have its pattern."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placement:
    """A composite in the place of some calls.

    Attributes:
        name: Name of the composite.
        lifting: Its program.
        positions: Position of each call, in the program's order.
    """

    name: str
    lifting: Lifting
    positions: tuple[int, ...]

    @property
    def group(self) -> int:
        """The positions as a set of bits."""
        return sum(1 << position for position in self.positions)


def misfit(
    lifting: Lifting, trajectory: Trajectory, ordering: Ordering, positions: Sequence[int]
) -> Misfit | None:
    """Why a program can not stand in for these calls; None when it can."""
    live = live_results(trajectory, ordering, positions)
    if not set(live) <= set(lifting.returned):
        return "result_needed"
    steps = [trajectory.steps[position] for position in positions]
    for parameter in lifting.parameters:
        sources = [steps[call].sources[name] for call, name in parameter.slots]
        if len({fingerprint(trajectory, source) for source in sources}) > 1:
            return "arguments_differ"
    for (call, name), value in lifting.constants.items():
        if fingerprint(trajectory, steps[call].sources[name]) != fingerprint(
            trajectory, Given(value=value)
        ):
            return "constant_differs"
    for step, shape in zip(steps, lifting.pattern.steps, strict=True):
        for name, link in shape.arguments:
            source = step.sources[name]
            if link is not None and fingerprint(trajectory, source).startswith("unread "):
                return "unreadable"
    return None


def place(
    trajectory: Trajectory, composites: Mapping[str, Lifting], search: PatternSearch
) -> tuple[Placement, ...]:
    """Where composites can stand in for calls, greedily: earlier composites first.

    Args:
        trajectory: The calls.
        composites: Programs by name, the most useful first.
        search: Knows which calls may change places.
    """
    by_pattern: dict[Pattern, list[str]] = {}
    for name, lifting in composites.items():
        by_pattern.setdefault(lifting.pattern, []).append(name)
    ordering = search.ordering(trajectory)
    found = search.matching(trajectory, by_pattern)
    grouping = Grouping(ordering=ordering)
    placed: list[Placement] = []
    for name, lifting in composites.items():
        for positions in found.get(lifting.pattern, ()):
            if misfit(lifting, trajectory, ordering, positions) is None:
                placement = Placement(name=name, lifting=lifting, positions=positions)
                if grouping.add(placement.group):
                    placed.append(placement)
    return tuple(placed)


def rewrite(
    trajectory: Trajectory, ordering: Ordering, placements: Sequence[Placement]
) -> Trajectory:
    """The trajectory with one call of a composite in the place of each group of calls.

    Args:
        trajectory: The calls.
        ordering: The order that they need.
        placements: Disjoint, and together in an order that exists, as ``place`` gives them.

    Raises:
        ValueError: The placements overlap or need each other's results.
    """
    order = arrange(ordering, [placement.group for placement in placements])
    if order is None:
        raise ValueError("the placements need results of each other")
    by_group = {placement.group: placement for placement in placements}
    moved = _Moved(trajectory)
    for new, unit in enumerate(order):
        placement = by_group.get(unit)
        for old in bits(unit):
            path: Path | None = ()
            if placement is not None:
                path = placement.lifting.result_path(placement.positions.index(old))
            moved.places[old] = (new, path)
    steps = tuple(
        moved.single(next(bits(unit))) if unit not in by_group else moved.composite(by_group[unit])
        for unit in order
    )
    return Trajectory(
        trajectory_id=trajectory.trajectory_id,
        steps=steps,
        request=trajectory.request,
        answered=frozenset(moved.places[position][0] for position in trajectory.answered),
    )


class _Moved:
    """Where the results of the old calls are among the new ones."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._old = trajectory
        self.places: dict[int, tuple[int, Path | None]] = {}

    def single(self, position: int) -> Step:
        step = self._old.steps[position]
        sources = {name: self._source(source) for name, source in step.sources.items()}
        return Step(
            tool=step.tool,
            sources=sources,
            result=step.result,
            is_whole=step.is_whole,
            inside=step.inside,
        )

    def composite(self, placement: Placement) -> Step:
        steps = [self._old.steps[position] for position in placement.positions]
        inside: list[RecordedCall] = []
        is_whole = all(step.is_whole for step in steps)
        for position in placement.positions:
            try:
                inside.extend(self._old.recorded(position))
            except LookupError:  # an argument that the recording does not hold
                is_whole = False
        sources: dict[str, Source] = {}
        for parameter in placement.lifting.parameters:
            call, name = parameter.slots[0]
            sources[parameter.name] = self._source(steps[call].sources[name])
        return Step(
            tool=placement.name,
            sources=sources,
            result=placement.lifting.result_of([step.result for step in steps]),
            is_whole=is_whole,
            inside=tuple(inside),
        )

    def _source(self, source: Source) -> Source:
        if isinstance(source, Given):
            return Given(
                value=source.value, uses=tuple(self.places[used][0] for used in source.uses)
            )
        step, path = self.places[source.step]
        if path is None:
            raise ValueError(f"the result of call {source.step} is needed but not returned")
        return replace(source, step=step, path=(*path, *source.path))
