"""Exploration: calls that nobody asked for, so that a tool says what it takes before users fail.

A tool is probed that is declared to only read, or that a person said yes to. Values come from its
schema, its examples, what was learned, and the errors that it gives. No model is asked. Each probe
is a run of an agent, with limits, approvals and timeouts, and an episode that is labelled so.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from agentkit.agent.agent import Agent
from agentkit.agent.types import Approver, Limits, SelectionPolicy, ToolPolicy
from agentkit.episodes import Episode
from agentkit.episodes.labels import PROBE_OF
from agentkit.errors import UsageError
from agentkit.evolution.proposers.constraints import stated_in_error
from agentkit.evolution.proposers.discovery import is_of_type, names_in_error, type_name
from agentkit.evolution.validation.texts import stands_in
from agentkit.library.library import Library
from agentkit.library.store import EpisodeStore
from agentkit.messages import AssistantMessage, JsonObject, ToolCall, ToolMessage
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit.tools.canonical import canonical_json, is_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import plural
from agentkit.tools.rules import Between, CallBefore, Form, OneOf
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool

_PATIENCE = 10
"""Probes in a row that teach nothing, after which a tool is left alone."""

_MOST_SILENT = 3
"""Probes in a row without an answer, after which a tool is left alone."""

_MOST_NAMES = 16
_MOST_VALUES = 20
"""Values of a parameter that are known and tried; a tool that takes ten alike shows nothing new."""

_DIGITS_AND_QUOTES = re.compile(r"\d+|'[^']*'|\"[^\"]*\"")
_UNKNOWN_NAME = "agentkit_probe"


@dataclass(frozen=True, kw_only=True, slots=True)
class Exploration:
    """What became of probing one tool.

    Attributes:
        tool: The tool.
        episodes: The probes, in order.
        stopped: Why there were no more: ``budget``, ``nothing new``, ``no answer`` or ``approval``.
    """

    tool: str
    episodes: tuple[Episode, ...]
    stopped: str

    def __str__(self) -> str:
        taken = sum(_Outcome.of(one).is_accepted for one in self.episodes)
        count = plural(len(self.episodes), "probe")
        return f"{count} of {self.tool}, {taken} taken; stopped: {self.stopped}"

    def to_json(self) -> dict[str, Any]:
        """The exploration as a JSON object, with the ids of its episodes."""
        ids = [one.episode_id for one in self.episodes]
        return {"tool": self.tool, "episodes": ids, "stopped": self.stopped}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Outcome:
    """How one probe ended.

    Attributes:
        is_accepted: Whether the tool took it.
        refusal: What it said when it did not; empty for nothing.
        waits: Whether a person would have to approve it.
    """

    is_accepted: bool
    refusal: str = ""
    waits: bool = False

    @property
    def complaint(self) -> str:
        """The refusal without what differs from call to call."""
        return _DIGITS_AND_QUOTES.sub("", self.refusal)

    @classmethod
    def of(cls, episode: Episode) -> _Outcome:
        """The outcome of a probe."""
        results = episode.results
        if not results:
            return cls(is_accepted=False)
        status, failure = results[0].status, results[0].failure
        is_answer = failure is not None and failure.kind not in {"timeout", "denied"}
        return cls(
            is_accepted=status == "ok",
            refusal=failure.rule if failure is not None and is_answer else "",
            waits=status == "deferred",
        )


@dataclass(kw_only=True, slots=True)
class _Prober:
    """A model that makes one call and ends."""

    tool: str
    arguments: JsonObject = field(default_factory=dict)
    name: str = "probe"

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The call; nothing once it has a result."""
        if isinstance(request.messages[-1], ToolMessage):
            return ModelResponse(message=AssistantMessage(text="Done."))
        call = ToolCall(call_id="1", name=self.tool, arguments=self.arguments)
        return ModelResponse(message=AssistantMessage(tool_calls=(call,)))


async def explore(
    tool: Tool,
    *,
    budget: int = 30,
    agreed: Collection[str] = (),
    store: EpisodeStore | None = None,
    approve: Approver | None = None,
    timeout_seconds: float = 10.0,
) -> Exploration:
    """Probe a tool.

    Args:
        tool: The tool, bound to what runs it, with the definition that is known of it.
        budget: Most probes.
        agreed: Names of tools that a person said may be probed although they are not declared to
            only read.
        store: Where the probes are kept; None for nowhere.
        approve: Asks a person about calls that need it; without it they end the exploration.
        timeout_seconds: Longest run of a probe, where the tool does not say otherwise.

    Raises:
        UsageError: The tool is not declared to only read and nobody agreed; it does not run here;
            or the budget is less than one.
        StoreError: The store failed.

    Example:
        >>> import asyncio
        >>> from agentkit import tool
        >>> @tool(effects=["reads"])
        ... def loan(periods: int) -> int:
        ...     '''A loan.'''
        ...     if periods not in (36, 48):
        ...         raise ValueError(f"periods must be one of 36, 48, got {periods}")
        ...     return periods
        >>> print(asyncio.run(explore(loan, budget=10)))
        7 probes of loan, 2 taken; stopped: nothing new
    """
    _check(tool, budget, agreed)
    definition = tool.definition
    rules = tuple(one for one in definition.specification.rules if isinstance(one, CallBefore))
    bare = replace(definition, specification=replace(definition.specification, rules=rules))
    prober = _Prober(tool=tool.name)
    agent: Agent[Any, Any] = Agent(
        prober,
        library=Library([tool.with_definition(bare)]),
        retriever=None,
        selection=SelectionPolicy(search_tool=False),
        tool_policy=ToolPolicy(
            approve=approve, timeout_seconds=timeout_seconds, retries=0, repeats=0
        ),
        limits=Limits(max_steps=2, max_calls=1),
    )
    steps, seen = _Plan(definition).steps(), _Seen()
    episodes: list[Episode] = []
    outcome: _Outcome | None = None
    stopped = "budget"
    while len(episodes) < budget:
        # schemas of strangers are long; what to try is worked out beside the loop
        chosen = await asyncio.to_thread(_next, steps, outcome)
        if chosen is None:
            stopped = "nothing new"
            break
        prober.arguments = chosen
        result = await agent.run(f"Probe of {tool.name}.", metadata={PROBE_OF: tool.name})
        episodes.append(result.episode)
        if store is not None:
            store.append(result.episode)
        outcome = _Outcome.of(result.episode)
        if why := seen.enough(prober.arguments, outcome):
            stopped = why
            break
    return Exploration(tool=tool.name, episodes=tuple(episodes), stopped=stopped)


def _next(
    steps: Generator[JsonObject, _Outcome, None], outcome: _Outcome | None
) -> JsonObject | None:
    try:
        return next(steps) if outcome is None else steps.send(outcome)
    except StopIteration:
        return None


def _check(tool: Tool, budget: int, agreed: Collection[str]) -> None:
    if budget < 1:
        raise UsageError(f"a budget of {budget} probes explores nothing; give 1 or more")
    if isinstance(agreed, str):  # "str" holds "tr"
        raise UsageError(f"agreed={agreed!r} is one text; give a list: agreed=[{agreed!r}]")
    if not tool.is_bound:
        raise UsageError(f"{tool.name!r} does not run here; give its code, or connect its server")
    if not tool.definition.signature.effects.is_read_only and tool.name not in agreed:
        raise UsageError(
            f"{tool.name!r} is not declared to only read, so a probe may change something; declare "
            'effects=["reads"] where that is true, or say yes for this one tool with '
            f"agreed=[{tool.name!r}], on the command line --probe-anyway"
        )


@dataclass(kw_only=True, slots=True)
class _Seen:
    """What probes showed so far, to tell when they show nothing new."""

    shown: set[object] = field(default_factory=set)
    idle: int = 0
    silent: int = 0

    def enough(self, arguments: JsonObject, outcome: _Outcome) -> str:
        """Why to stop; empty to go on."""
        if outcome.waits:
            return "approval"
        self.silent = 0 if outcome.is_accepted or outcome.refusal else self.silent + 1
        if self.silent >= _MOST_SILENT:
            return "no answer"
        kinds = tuple(sorted((name, type(value).__name__) for name, value in arguments.items()))
        news = kinds if outcome.is_accepted else outcome.complaint
        self.idle = self.idle + 1 if news in self.shown else 0
        self.shown.add(news)
        return "nothing new" if self.idle >= _PATIENCE else ""


# --- What to try, one call after another ---------------------------------------------------------

_SAMPLES: tuple[Any, ...] = (1, "a", [1, 2], ["a", "b"], [[1, 2], [3, 4]], 0.5, True, {})
"""What is tried where nothing says what a parameter takes, the usual first."""

_AROUND: Mapping[str, tuple[Any, ...]] = {
    "integer": (0.5, -1, -2, 1_000, 10_000),
    "number": (-0.5, -1.5, 1_000.5, 10_000.5),
    "string": ("", "zzz", "qq-qq"),
    "boolean": (False,),
    "integer[]": ([0.5, 1.5],),
    "string[]": (["zzz"],),
    "integer[][]": ([[0.5, 1.5], [2.5, 3.5]],),
}
"""What is tried beside a value that was taken: fractions, and what makes a tool state its bounds,
lists and forms, two of each since one proves nothing. None is large: a tool may count up to it."""


class _Plan:
    """Chooses the next probe from how the last ones ended.

    First nothing is given, so that the tool says what it lacks; then one value after the other is
    changed until a call is taken; then the values of that call are varied, one at a time.
    """

    def __init__(self, definition: ToolDefinition) -> None:
        self._definition = definition
        self._schema = definition.known_signature.parameters
        self._names = list(definition.known_signature.properties)[:_MOST_NAMES]
        self._wanted: dict[str, list[Any]] = {}  # what errors suggest, by name
        self._types: dict[str, str] = {}
        self._tried: set[bytes] = set()
        self._fit: dict[tuple[str, bytes], bool] = {}

    def steps(self) -> Generator[JsonObject, _Outcome, None]:
        """The probes; each is answered with its outcome."""
        if not self._definition.signature.required:
            yield from self._try({})
            self._learn((yield {}))  # what is said once proves nothing
        base = yield from self._first_taken()
        if base is None:
            return
        for name in base:
            for value in self._around(name, base[name]):
                yield from self._try({**base, name: value})
            yield from self._try({one: base[one] for one in base if one != name})
        yield from self._try({**base, _UNKNOWN_NAME: 1})

    def _try(self, arguments: JsonObject) -> Generator[JsonObject, _Outcome, _Outcome | None]:
        """The outcome of a call; None for one that was tried, or that the contract forbids."""
        key = canonical_json(arguments)
        if key in self._tried or fits(arguments, self._definition.signature.parameters) is False:
            return None
        self._tried.add(key)
        outcome = yield arguments
        self._learn(outcome)
        return outcome

    def _learn(self, outcome: _Outcome) -> None:
        """Note the names, types and values that a refusal states."""
        said = names_in_error(outcome.refusal)
        for name in (*said.missing, *said.types):
            if name not in self._names and len(self._names) < _MOST_NAMES:
                self._names.append(name)
        self._types |= said.types
        if about := self._about(outcome):
            for one in stated_in_error(outcome.refusal, self._names):
                self._wanted.setdefault(about, []).extend(_values_of_rule(one.rule))

    def _about(self, outcome: _Outcome) -> str:
        """The one parameter that a refusal names; empty for none, or several."""
        text = outcome.refusal.casefold()
        named = [name for name in self._names if stands_in(name.casefold(), text)]
        return named[0] if len(named) == 1 else ""

    def _first_taken(self) -> Generator[JsonObject, _Outcome, JsonObject | None]:
        """A call that the tool takes, found by changing what it complains of; None for none."""
        current = self._filled({})
        found = yield from self._try(current)
        outcome = found or _Outcome(is_accepted=not current)
        heard = {outcome.complaint}
        while not outcome.is_accepted:
            for trial in map(self._filled, self._changes(current, outcome)):
                found = yield from self._try(trial)
                if found is not None and (found.is_accepted or found.complaint not in heard):
                    current, outcome = trial, found
                    heard.add(found.complaint)
                    break
            else:
                return None
        return current

    def _changes(self, current: JsonObject, outcome: _Outcome) -> Iterator[JsonObject]:
        """What to change in a call that was refused: what it names, all alike, or one by one."""
        if about := self._about(outcome):
            yield from ({**current, about: value} for value in self._samples(about))
        samples = {name: [*self._samples(name)] for name in self._names}
        for sample in _SAMPLES:
            yield {name: sample for name in self._names if sample in samples[name]}
        for name in self._names:
            yield from ({**current, name: value} for value in self._samples(name))

    def _filled(self, arguments: JsonObject) -> JsonObject:
        """The arguments with a value for each parameter that they lack."""
        firsts = {name: next(self._samples(name), None) for name in self._names}
        return {**{name: one for name, one in firsts.items() if one is not None}, **arguments}

    def _around(self, name: str, value: Any) -> Iterator[Any]:
        """What else to try for a parameter that took a value."""
        yield from self._first(name)
        yield from _AROUND.get(type_name(value), ())

    def _samples(self, name: str) -> Iterator[Any]:
        """Values for a parameter that its schema allows, what is known of it first."""
        wanted = self._types.get(name)
        for value in (*self._first(name), *_SAMPLES):
            if (wanted is None or is_of_type(value, wanted)) and self._is_allowed(name, value):
                yield value

    def _is_allowed(self, name: str, value: Any) -> bool:
        """Whether the schema of a parameter may take a value; asked once of each."""
        key = (name, canonical_json(value))
        if key not in self._fit:
            self._fit[key] = fits(value, self._part(name), root=self._schema) is not False
        return self._fit[key]

    def _first(self, name: str) -> Iterator[Any]:
        """The first of the values that are known; an error may name some that JSON has not."""
        return islice(filter(is_json, self._known(name)), _MOST_VALUES)

    def _known(self, name: str) -> Iterator[Any]:
        """Values that errors, worked calls and the schema speak of."""
        part = self._part(name)
        yield from tuple(self._wanted.get(name, ()))
        calls = (one.arguments for one in self._definition.examples)
        yield from (given[name] for given in calls if name in given)
        for key in ("enum", "examples"):
            yield from part[key] if isinstance(part.get(key), list) else ()
        yield from (part[key] for key in ("default", "const", "minimum", "maximum") if key in part)

    def _part(self, name: str) -> JsonObject:
        part = self._definition.parameters_schema.get("properties", {}).get(name)
        return part if isinstance(part, Mapping) else {}


def _values_of_rule(rule: object) -> Iterator[Any]:
    """Values that a stated rule allows; listed ones are texts, which may stand for numbers."""
    match rule:
        case OneOf(values=values):
            for value in values[:3]:
                yield value
                yield from _read(value)
        case Between():
            yield from (int(n) if n % 1 == 0 else n for n in (*rule.lows, *rule.highs))
        case Form(example=example) if example:
            yield example


def _read(value: Any) -> Iterator[Any]:
    try:
        yield from (json.loads(value),) if isinstance(value, str) else ()
    except ValueError:  # it is the text that it seems to be
        return
