"""Real tools of BFCL that no longer say what they demand, and go on demanding it.

``lists``: parameters that are one of several texts lose that list, the schema's enum and every
sentence of their text that quotes one of its values. ``forms``: parameters whose text or schema
states a range of numbers or the form of a date lose that sentence and that keyword; lists stay.
``nothing``: the tools stay as they are.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from agentkit import ModelRetry, Tool, ToolDefinition
from agentkit.episodes import Episode
from agentkit.evaluation import Benchmark, Task
from agentkit.messages import ToolFailure
from agentkit.tools.definition import Description, Origin
from agentkit.tools.rules import Between, Form, OneOf
from agentkit.tools.rules.checking import holds
from agentkit.tools.schema import copied
from agentkit.tools.schema_validator import fits
from agentkit.tools.validation import ArgumentValidator

Demand: TypeAlias = OneOf | Between | Form
Hidden: TypeAlias = Literal["lists", "forms", "nothing"]

RANGE = re.compile(
    r"(?:between|from|range[sd]?(?: is| from)?)\s+(-?\d+(?:\.\d+)?)\s*(?:\([^)]*\)\s*)?(?:to|and|-)\s*"
    r"(-?\d+(?:\.\d+)?)(?![\d-])",
    re.IGNORECASE,
)
DAY = re.compile(r"'?(YYYY-MM-DD|MM/DD/YYYY|DD-MM-YYYY|DD/MM/YYYY)'?(?![A-Za-z' T]*HH)")
DAYS: Mapping[str, tuple[str, str]] = {
    "MM/DD/YYYY": (r"^(0[1-9]|1[0-2])/(0[1-9]|[12]\d|3[01])/\d{4}$", "05/31/2026"),
    "DD-MM-YYYY": (r"^(0[1-9]|[12]\d|3[01])-(0[1-9]|1[0-2])-\d{4}$", "31-05-2026"),
    "DD/MM/YYYY": (r"^(0[1-9]|[12]\d|3[01])/(0[1-9]|1[0-2])/\d{4}$", "31/05/2026"),
}


def demands_of_part(part: Mapping[str, Any], path: str, text: str) -> Iterator[Demand]:
    """What a parameter's schema and text demand of it."""
    kind = part.get("type")
    if isinstance(part.get("enum"), list):
        bare = {keyword: value for keyword, value in part.items() if keyword != "enum"}
        # "True" for a boolean, or a text for a list: a demand that no call can meet
        if len(part["enum"]) > 1 and all(fits(value, bare) is True for value in part["enum"]):
            yield OneOf(parameter=path, values=tuple(part["enum"]))
    elif part.get("format") == "date":
        yield Form(parameter=path, format="date")
    elif kind in {"integer", "number"} and (found := RANGE.search(text)):
        low, high = float(found[1]), float(found[2])
        if low < high:
            whole = kind == "integer"
            bounds = [int(b) if whole or b.is_integer() else b for b in (low, high)]
            yield Between(parameter=path, minimum=bounds[0], maximum=bounds[1])
    elif kind == "string" and (day := DAY.search(text)):
        named = day[1] == "YYYY-MM-DD"
        pattern, example = ("", "") if named else DAYS[day[1]]
        yield Form(
            parameter=path,
            format="date" if named else "",
            pattern=pattern,
            words="" if named else day[1],
            example=example,
        )


def members(demand: OneOf, *, quote: str = "'") -> str:
    """The values of a list, as an author quotes them."""
    return ", ".join(f"{quote}{v}{quote}" if isinstance(v, str) else str(v) for v in demand.values)


def form(demand: Form) -> str:
    """The form of a date, as an author writes it."""
    return "YYYY-MM-DD" if demand.format == "date" else demand.words


def in_words(demand: Demand, value: Any, name: str) -> str:
    """How an author of a tool refuses a value by hand."""
    match demand:
        case OneOf():
            return f"{name} must be one of {members(demand)}, got {value!r}"
        case Between():
            return f"{name} must be between {demand.minimum} and {demand.maximum}, got {value}"
        case Form():
            return f"{name} must be given as {form(demand)}, got {value!r}"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A tool whose demands are hidden, and the questions that call it."""

    original: ToolDefinition
    hidden: ToolDefinition
    demands: tuple[Demand, ...]
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.original.name

    def enforcing(self, shown: ToolDefinition) -> Tool:
        """The tool under another definition, which still demands what the original does."""

        def call(**arguments: Any) -> str:
            refusal = self.refusal(arguments)
            if refusal is not None:
                raise ModelRetry(refusal)
            return "done"

        return Tool(definition=shown, function=call)

    def refusal(self, arguments: Mapping[str, Any]) -> str | None:
        """What the service behind the tool says to arguments; None when it takes them.

        It takes what the original's schema takes once plain slips are mended, such as the case of
        a word, and says the whole list where one is missed, however long.
        """
        runnable = self._validator.runnable(arguments)
        if not isinstance(runnable, ToolFailure):
            given = [one for one in self.demands if one.parameter in runnable]
            broken = [one for one in given if not holds(one, runnable[one.parameter])]
            return _said(broken[0], arguments) if broken else None
        missed = [one for one in self.demands if one.parameter == runnable.path]
        return _said(missed[0], arguments) if runnable.cause == "enum" and missed else runnable.rule

    def is_valid(self, episode: Episode) -> bool:
        """Whether the tool takes every call of an episode."""
        return bool(episode.calls) and all(
            call.malformed is None
            and call.name == self.name
            and self.refusal(call.arguments) is None
            for call in episode.calls
        )

    @cached_property
    def _validator(self) -> ArgumentValidator:
        return ArgumentValidator(self.original)


def _said(demand: Demand, arguments: Mapping[str, Any]) -> str:
    return in_words(demand, arguments[demand.parameter], f"`{demand.parameter}`")


def cases(
    benchmark: Benchmark, hidden: Hidden, *, max_tools: int, per_tool: int, seed: int = 0
) -> list[Case]:
    """Tools with a demand that at least two different questions meet, drawn at random."""
    found = {}
    for name, (definition, tasks) in asked_tools(benchmark).items():
        demands = () if hidden == "nothing" else demands_of(definition, hidden, tasks)
        met = {one.parameter for one in demands}
        meeting = [t for t in tasks if hidden == "nothing" or met & set(t.gold[0].allowed)]
        if len(meeting) > 1:
            found[name] = (definition, demands, meeting)
    names = sorted(found)
    random.Random(seed).shuffle(names)  # more tools are the same ones and further ones
    chosen = []
    for name in names[:max_tools]:
        definition, demands, tasks = found[name]
        random.Random(f"{seed}:{name}").shuffle(tasks)
        shown = hide(definition, demands) if demands else definition
        tasks = tasks[:per_tool]
        chosen.append(Case(original=definition, hidden=shown, demands=demands, tasks=tuple(tasks)))
    return chosen


def asked_tools(benchmark: Benchmark) -> dict[str, tuple[ToolDefinition, list[Task]]]:
    """Each tool that questions of one call want, with these questions; no question twice."""
    # Namesakes are offered under BFCL's own name, by which a library could not tell them apart.
    definitions = {
        definition.name: replace(definition, origin=Origin())
        for definition in benchmark.definitions
    }
    asked: dict[str, dict[str, Task]] = defaultdict(dict)
    for task in benchmark.tasks:
        if len(task.gold) == 1 and (name := task.gold[0].name) in definitions:
            asked[name].setdefault(task.request, replace(task, offered=(name,)))
    return {name: (definitions[name], list(tasks.values())) for name, tasks in asked.items()}


def split(name: str, tasks: Sequence[Task], seed: int) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Questions to learn from, and others to be asked."""
    order = random.Random(f"{seed}:{name}").sample(tasks, len(tasks))
    half = (len(order) + 1) // 2
    return tuple(order[:half]), tuple(order[half:])


def demands_of(
    definition: ToolDefinition, hidden: Hidden, tasks: Sequence[Task]
) -> tuple[Demand, ...]:
    """What a tool demands of its parameters at the top level."""
    parts = definition.signature.properties.items()
    if hidden == "lists":
        return tuple(
            OneOf(parameter=name, values=tuple(part["enum"]))
            for name, part in parts
            if part.get("type") == "string"
            and all(isinstance(one, str) for one in part.get("enum", [0]))
        )
    texts = definition.description.parameters
    every = (
        one for name, part in parts for one in demands_of_part(part, name, texts.get(name, ""))
    )
    forms = [one for one in every if isinstance(one, Between | Form)]
    return tuple(one for one in forms if keeps_gold(one, tasks))


def keeps_gold(demand: Demand, tasks: Sequence[Task]) -> bool:
    """Whether every question can be answered; it is we who read the demand out of a text."""
    allowed = [task.gold[0].allowed.get(demand.parameter, ("",)) for task in tasks]
    return all("" in values or any(holds(demand, one) for one in values) for values in allowed)


def hide(definition: ToolDefinition, demands: Sequence[Demand]) -> ToolDefinition:
    """The definition without its demands, and without the sentences that state them."""
    parameters = copied(definition.signature.parameters)
    for demand in demands:
        for keyword in ("enum", "format", "default"):
            parameters["properties"][demand.parameter].pop(keyword, None)
    names = {demand.parameter for demand in demands}
    listed = [value for one in demands if isinstance(one, OneOf) for value in one.values]
    quoted = [rf"(?<!\w){re.escape(value)}(?!\w)" for value in listed if len(value) > 1]
    stating = [re.compile("|".join(quoted))] if quoted else []
    if any(isinstance(one, Between | Form) for one in demands):
        stating += [RANGE, DAY]
    texts = {
        name: _without(text, stating) if name in names else text
        for name, text in definition.description.parameters.items()
    }
    return replace(
        definition,
        signature=replace(definition.signature, parameters=parameters),
        description=Description(
            summary=definition.description.summary,
            tags=definition.description.tags,
            parameters={name: text for name, text in texts.items() if text},
        ),
    )


def _without(text: str, stating: Sequence[re.Pattern[str]]) -> str:
    sentences = re.split(r"(?<=[.;!?])\s+", text)
    kept = [one for one in sentences if not any(pattern.search(one) for pattern in stating)]
    return " ".join(kept)
