"""Trajectories: the calls of episodes, with where each argument came from.

Mining makes composites of them, and the evidence proposer finds required look-ups in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names, with_late_verdicts

# --- ``Trajectory``: the calls of one episode, with where each argument came from ----------------


Path: TypeAlias = tuple[str | int, ...]
"""Steps into JSON data: keys of objects, indexes of lists. Empty for the whole value."""

Cast = Literal["", "str", "int", "float"]

_INTEGER = re.compile(r"-?[0-9]{1,15}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """An argument that no earlier result holds as it stands.

    Attributes:
        value: What was given.
        uses: Positions of earlier calls that the value was made from, in a way that no path
            describes, such as a sentence with a result in it. They only order the calls.
    """

    value: Any
    uses: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow:
    """An argument that is part of an earlier result.

    Attributes:
        step: LibraryState of the earlier call.
        path: Where in its result.
        cast: The function of the composite language that turns what is there into the argument:
            ``str`` for a number that is passed on as text, ``int`` or ``float`` for the reverse;
            empty when it is passed on as it is.
    """

    step: int
    path: Path = ()
    cast: Cast = ""


Source: TypeAlias = Given | Flow


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedCall:
    """What a primitive was asked, and what it answered.

    Attributes:
        tool: Its name.
        arguments: As JSON data.
        result: As JSON data.
    """

    tool: str
    arguments: Mapping[str, Any]
    result: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One call that succeeded.

    Attributes:
        tool: Name of the tool.
        sources: Where each argument came from, by name in the order of the call.
        result: What came back, as JSON data.
        is_whole: Whether ``result`` is all that came back; a recording may be cut short.
    """

    tool: str
    sources: Mapping[str, Source] = field(default_factory=dict)
    result: Any = None
    is_whole: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Trajectory:
    """The calls of one episode in order.

    Attributes:
        trajectory_id: Id of the episode.
        steps: The calls that succeeded.
        request: What the user asked.
        answered: Positions of calls whose results the final answer shows. Results that no later
            call uses count as shown anyway.
    """

    trajectory_id: str
    steps: tuple[Step, ...]
    request: str = ""
    answered: frozenset[int] = frozenset()

    def value(self, source: Source) -> Any:
        """The value of an argument.

        Raises:
            LookupError: The result that it is read from does not hold it, as when the recording
                of that result was cut short.
        """
        if isinstance(source, Given):
            return source.value
        value = at_path(self.steps[source.step].result, source.path)
        return cast_value(value, source.cast) if source.cast else value

    def arguments(self, position: int) -> dict[str, Any]:
        """The arguments of the call at ``position``, as the tool got them.

        Raises:
            LookupError: One of them cannot be read.
        """
        sources = self.steps[position].sources
        return {name: self.value(source) for name, source in sources.items()}

    def recorded(self, position: int) -> RecordedCall:
        """The call at ``position``, with its answer.

        Raises:
            LookupError: An argument cannot be read.
        """
        step = self.steps[position]
        return RecordedCall(tool=step.tool, arguments=self.arguments(position), result=step.result)


def at_path(value: Any, path: Path) -> Any:
    """The part of ``value`` at ``path``.

    Raises:
        LookupError: There is no such part.

    Example:
        >>> at_path([{"id": 7}], (0, "id"))
        7
    """
    for depth, step in enumerate(path):
        try:
            value = value[step]
        except (LookupError, TypeError) as error:
            raise LookupError(f"no {step!r} at {path[:depth]!r}") from error
    return value


def casts(value: Any) -> Iterator[tuple[Cast, Any]]:
    """What a scalar can be turned into without a loss, and how.

    Example:
        >>> list(casts(32.5)), list(casts("-7")), list(casts("seven"))
        ([('str', '32.5')], [('int', -7)], [])
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield "str", str(value)
    elif isinstance(value, str) and _INTEGER.fullmatch(value):
        yield "int", int(value)
    elif isinstance(value, str) and _NUMBER.fullmatch(value):
        yield "float", float(value)


def cast_value(value: Any, cast: Cast) -> Any:
    """``value`` turned into another type.

    Raises:
        LookupError: It cannot be, without a loss.
    """
    for known, made in casts(value):
        if known == cast:
            return made
    raise LookupError(f"{cast}() does not apply to {value!r:.40}")


def used_steps(source: Source) -> tuple[int, ...]:
    """Positions of the calls that an argument depends on."""
    return (source.step,) if isinstance(source, Flow) else source.uses


def parts_of(value: Any) -> Iterator[tuple[Path, Any]]:
    """Every part of ``value`` with its path, outer ones first; empty containers included.

    Example:
        >>> list(parts_of({"a": [7]}))
        [((), {'a': [7]}), (('a',), [7]), (('a', 0), 7)]
    """
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, part = waiting.pop()
        yield path, part
        if isinstance(part, Mapping):
            waiting.extend(((*path, key), item) for key, item in reversed([*part.items()]))
        elif isinstance(part, list | tuple):
            waiting.extend(((*path, at), part[at]) for at in range(len(part) - 1, -1, -1))


# --- Where the arguments of calls came from, found by comparing values ---------------------------
# An episode records values, not where the model took them from. A value that an earlier result
# holds may have been taken from there, from the request, from an earlier argument, or be the same
# by chance. So one episode proves nothing; what counts is that the same place of the same tool's
# result explains the same argument in several episodes, with values that nothing else explains.


class Route(NamedTuple):
    """A way that data takes: from a place of one tool's result to an argument of another tool."""

    producer: str
    path: Path
    cast: Cast
    consumer: str
    argument: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataflow:
    """Trajectories whose flows of data were found.

    Attributes:
        trajectories: In the order given.
        routes: The routes that were accepted, best first; each with its support, the number of
            trajectories in which it explains a value that nothing else explains.
    """

    trajectories: tuple[Trajectory, ...]
    routes: Mapping[Route, int]


_MIN_SUPPORT = 2  # trajectories that a route needs
_MIN_CONFIDENCE = 0.5
_MAX_PLACES = 20  # a value that more places hold is no evidence


def find_flows(trajectories: Sequence[Trajectory]) -> Dataflow:
    """Find out which arguments are parts of earlier results.

    Flows that are known already are kept. A value that an earlier result holds and that nothing
    else explains, but for which no route was accepted, is marked as made from that result
    (``Given.uses``): the calls have to stay in order.

    Trivial values (truth values, the empty text, one-digit numbers, ...) are never evidence for a
    route; where a route is accepted they may follow it.
    """
    views = [_View(trajectory) for trajectory in trajectories]
    accepted = _accepted(views, _votes(views))
    routes = _by_argument(accepted)
    return Dataflow(trajectories=tuple(view.traced(routes) for view in views), routes=accepted)


def _by_argument(routes: Iterable[Route]) -> dict[tuple[str, str], list[Route]]:
    found: dict[tuple[str, str], list[Route]] = {}
    for route in routes:
        found.setdefault((route.consumer, route.argument), []).append(route)
    return found


def _votes(views: Sequence[_View]) -> dict[Route, set[int]]:
    """For each route the trajectories in which it explains what nothing else explains."""
    votes: dict[Route, set[int]] = {}
    for index, view in enumerate(views):
        for position, name, value in view.given_arguments():
            if not is_specific(value) or view.is_told(position, value):
                continue
            places = view.places(position, value)
            if not 0 < len(places) <= _MAX_PLACES:
                continue
            for route in {view.route(place, position, name) for place in places}:
                votes.setdefault(route, set()).add(index)
    return {route: found for route, found in votes.items() if len(found) >= _MIN_SUPPORT}


def _accepted(views: Sequence[_View], votes: Mapping[Route, set[int]]) -> dict[Route, int]:
    """The support of the routes that are followed in half of all cases, the surest first."""
    by_argument = _by_argument(votes)
    hits, chances = dict.fromkeys(votes, 0), dict.fromkeys(votes, 0)
    for view in views:
        for position, name, value in view.given_arguments():
            for route in by_argument.get((view.tool(position), name), ()):
                held = [key_of(one) for _, one in view.along(route, position)]
                chances[route] += bool(held)
                hits[route] += key_of(value) in held
    sure = {route: round(hits[route] / chances[route], 3) for route in votes}

    def rank(route: Route) -> tuple[Any, ...]:
        text, support = json.dumps(route.path), len(votes[route])
        return (-sure[route], -support, route.cast, len(route.path), text, route.producer)

    accepted = [route for route in votes if hits[route] >= _MIN_CONFIDENCE * chances[route]]
    return {route: len(votes[route]) for route in sorted(accepted, key=rank)}


class _Place(NamedTuple):
    step: int
    path: Path
    cast: Cast


class _View:
    """One trajectory, with its values looked up once."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._request = trajectory.request.casefold()
        self._first_told: dict[Hashable, int] = {}
        for position, _, value in self.given_arguments():
            self._first_told.setdefault(key_of(value), position)
        self._held: dict[Hashable, list[_Place]] = {}
        kinds = {type(value) for _, _, value in self.given_arguments()}
        for position, step in enumerate(trajectory.steps):
            for path, value in parts_of(step.result) if kinds else ():
                kind = type(value)
                if kind in kinds:
                    self._hold(position, path, value, "")
                if kind in {int, float, str}:
                    for cast, made in casts(value):
                        self._hold(position, path, made, cast)

    def _hold(self, position: int, path: Path, value: Any, cast: Cast) -> None:
        key = key_of(value)
        if key in self._first_told:
            self._held.setdefault(key, []).append(_Place(position, path, cast))

    def tool(self, position: int) -> str:
        return self._trajectory.steps[position].tool

    def given_arguments(self) -> Iterator[tuple[int, str, Any]]:
        for position, step in enumerate(self._trajectory.steps):
            for name, source in step.sources.items():
                if isinstance(source, Given) and not source.uses:
                    yield position, name, source.value

    def places(self, position: int, value: Any) -> list[_Place]:
        """Where results before ``position`` hold the value."""
        return [place for place in self._held.get(key_of(value), ()) if place.step < position]

    def route(self, place: _Place, position: int, name: str) -> Route:
        return Route(self.tool(place.step), place.path, place.cast, self.tool(position), name)

    def along(self, route: Route, position: int) -> Iterator[tuple[int, Any]]:
        """What earlier results hold at the start of a route, the latest first."""
        for step in range(position - 1, -1, -1):
            if self.tool(step) != route.producer:
                continue
            source = Flow(step=step, path=route.path, cast=route.cast)
            try:
                yield step, self._trajectory.value(source)
            except LookupError:
                continue  # this result has another shape

    def is_told(self, position: int, value: Any) -> bool:
        """Whether the request or an argument of an earlier call holds the value."""
        if self._first_told.get(key_of(value), position) < position:
            return True
        if not isinstance(value, str | int | float):
            return False
        text = str(value).casefold()
        if text not in self._request:
            return False
        return re.search(rf"(?<![\w.]){re.escape(text)}(?!\w)", self._request) is not None

    def traced(self, routes: Mapping[tuple[str, str], Sequence[Route]]) -> Trajectory:
        """The trajectory with its arguments traced along routes."""
        steps = []
        for position, step in enumerate(self._trajectory.steps):
            sources = {
                name: self._traced(position, source, routes.get((step.tool, name), ()))
                for name, source in step.sources.items()
            }
            steps.append(replace(step, sources=sources))
        return replace(self._trajectory, steps=tuple(steps))

    def _traced(self, position: int, source: Source, routes: Sequence[Route]) -> Source:
        if isinstance(source, Flow) or source.uses:
            return source
        key = key_of(source.value)
        for route in routes:
            for step, value in self.along(route, position):
                if key_of(value) == key:
                    return Flow(step=step, path=route.path, cast=route.cast)
        if is_specific(source.value) and not self.is_told(position, source.value):
            found = self.places(position, source.value)
            if found:
                return replace(source, uses=(found[-1].step,))
        return source


def is_specific(value: Any) -> bool:
    """Whether a value says something by being equal to another.

    Example:
        >>> [is_specific(value) for value in (True, "", "en", 7, 2.5, "LHR", [], [1])]
        [False, False, False, False, True, True, False, True]
    """
    if value is None or isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        return abs(value) >= 10 or not float(value).is_integer()
    if isinstance(value, str):
        return len(value) >= 3
    return bool(value)


def key_of(value: Any) -> Hashable:
    """A key that is equal exactly for equal JSON data of the same types.

    Example:
        >>> key_of(1) == key_of(True), key_of([1, {"a": 2}]) == key_of([1, {"a": 2}])
        (False, True)
    """
    if isinstance(value, list | tuple | Mapping):
        return json.dumps(value, sort_keys=True)
    return (type(value), value)


# --- From episodes to trajectories: which episodes count, and what of them -----------------------


def is_success(episode: Episode) -> bool:
    """Whether an episode went well: its verdict says so, or, without one, it looks so.

    Without a verdict an episode went well when it finished and none of its calls failed.
    """
    if episode.verdict is not None:
        return episode.verdict.passed
    return episode.stop_reason == "finished" and all(r.status == "ok" for r in episode.results)


def trajectories_of(episodes: Iterable[Episode], *, failed_too: bool = False) -> Dataflow:
    """The calls of successful episodes, with the flows of data between them.

    Calls that failed, were denied or wait for an answer are left out; so are episodes without any
    other call, and records of shadow runs and views, which tell of nothing that a user saw.

    Args:
        episodes: What happened; a verdict that came later counts in place of the episode's own.
        failed_too: Take episodes that did not go well, too.
    """
    served = map(in_library_names, with_late_verdicts(episodes))
    taken = (episode for episode in served if failed_too or is_success(episode))
    found = [trajectory for trajectory in map(_trajectory, taken) if trajectory.steps]
    return find_flows(found)


def _trajectory(episode: Episode) -> Trajectory:
    steps = tuple(_succeeded(episode))
    shown = episode.output if isinstance(episode.output, str) else json.dumps(episode.output)
    asked = episode.request.casefold()
    return Trajectory(
        trajectory_id=episode.episode_id,
        steps=steps,
        request=episode.request,
        answered=frozenset(
            position
            for position, step in enumerate(steps)
            if _shows(shown.casefold(), step.result, asked)
        ),
    )


def _succeeded(episode: Episode) -> Iterator[Step]:
    for turn in episode.turns:
        for call, result in turn.steps():
            if result is not None and result.status == "ok":
                sources = {name: Given(value=value) for name, value in call.arguments.items()}
                yield Step(tool=call.name, sources=sources, result=result.value)


def _shows(answer: str, result: Any, asked: str) -> bool:
    """Whether an answer holds something of a result that was not in the request already."""
    for _, value in parts_of(result):
        if is_specific(value) and isinstance(value, str | int | float):
            text = str(value).casefold()
            if text in answer and text not in asked:
                return True
    return False
