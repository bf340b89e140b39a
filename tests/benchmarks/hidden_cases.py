"""Real tools that no longer say what they demand, and go on demanding it.

``lists``: parameters that are one of several texts lose that list, the schema's enum and every
sentence of their text that quotes one of its values. ``forms``: parameters whose text or schema
states a range of numbers or the form of a date lose that sentence and that keyword; lists stay.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

from bench_evidence import DAY, RANGE, Demand, demands_of_part, in_words

from agentkit import ModelRetry, Tool, ToolDefinition
from agentkit.episodes import Episode
from agentkit.evaluation import AllowedCalls, Benchmark, Task
from agentkit.tools.definition import Description, Origin
from agentkit.tools.error_messages import ArgumentProblem
from agentkit.tools.rules import Between, Form, OneOf
from agentkit.tools.rules.checking import holds
from agentkit.tools.schema import copied
from agentkit.tools.validation import ArgumentValidator

Hidden: TypeAlias = Literal["lists", "forms"]


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
        if not isinstance(runnable, ArgumentProblem):
            broken = _broken(self.demands, runnable)
            return None if broken is None else _said(broken, arguments)
        missed = [one for one in self.demands if one.parameter == runnable.path_text]
        return (
            _said(missed[0], arguments) if runnable.keyword == "enum" and missed else runnable.rule
        )

    def is_valid(self, episode: Episode) -> bool:
        """Whether the tool takes every call of an episode."""
        return bool(episode.calls) and all(
            call.malformed is None
            and call.name == self.name
            and self.refusal(call.arguments) is None
            for call in episode.calls
        )

    @cached_property
    def can_be_met(self) -> bool:
        """Whether gold keeps to the tool's own demands; some of BFCL's does not."""
        return all(keeps_gold(one, self.tasks) for one in self.demands)

    @cached_property
    def _validator(self) -> ArgumentValidator:
        return ArgumentValidator(self.original)


def _broken(demands: Sequence[Demand], arguments: Mapping[str, Any]) -> Demand | None:
    given = [one for one in demands if one.parameter in arguments]
    return next((one for one in given if not holds(one, arguments[one.parameter])), None)


def _said(demand: Demand, arguments: Mapping[str, Any]) -> str:
    return in_words(demand, arguments[demand.parameter], f"`{demand.parameter}`")


def cases(
    benchmark: Benchmark, hidden: Hidden, *, max_tools: int, per_tool: int, seed: int
) -> list[Case]:
    """Tools with a demand that at least two different questions meet, drawn at random."""
    found = {
        name: (definition, demands, meeting)
        for name, (definition, tasks) in asked_tools(benchmark).items()
        if (demands := demands_of(definition, hidden, tasks))
        and len(meeting := _meeting(tasks, demands)) > 1
    }
    names = sorted(found)
    random.Random(seed).shuffle(names)  # more tools are the same ones and further ones
    return [
        Case(
            original=definition,
            hidden=hide(definition, demands),
            demands=demands,
            tasks=drawn(tasks, per_tool, f"{seed}:{name}"),
        )
        for name in names[:max_tools]
        for definition, demands, tasks in [found[name]]
    ]


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


def drawn(tasks: Sequence[Task], most: int, seed: str) -> tuple[Task, ...]:
    """Some of the questions, the same for the same seed."""
    order = list(tasks)
    random.Random(seed).shuffle(order)
    return tuple(order[:most])


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


def _meeting(tasks: Sequence[Task], demands: Sequence[Demand]) -> list[Task]:
    names = {one.parameter for one in demands}
    return [task for task in tasks if names & set(task.gold[0].allowed)]


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
    stating = _stating(demands)
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


def _stating(demands: Sequence[Demand]) -> tuple[re.Pattern[str], ...]:
    listed = [value for one in demands if isinstance(one, OneOf) for value in one.values]
    quoted = [rf"(?<!\w){re.escape(value)}(?!\w)" for value in listed if len(value) > 1]
    patterns = [re.compile("|".join(quoted))] if quoted else []
    if any(isinstance(one, Between | Form) for one in demands):
        patterns += [RANGE, DAY]
    return tuple(patterns)


def _without(text: str, stating: Sequence[re.Pattern[str]]) -> str:
    sentences = re.split(r"(?<=[.;!?])\s+", text)
    kept = [one for one in sentences if not any(pattern.search(one) for pattern in stating)]
    return " ".join(kept)


def refuses_gold(case: Case, rules: Sequence[Demand]) -> int:
    """How many rules refuse a value that a question's gold allows and the tool takes."""
    demanded = {one.parameter: one for one in case.demands}
    gold = [
        call.allowed
        for task in case.tasks
        for expectation in task.expects
        if isinstance(expectation, AllowedCalls)
        for call in expectation.calls
    ]
    return sum(
        any(
            rule.parameter in demanded
            and holds(demanded[rule.parameter], value)
            and not holds(rule, value)
            for allowed in gold
            for value in allowed.get(rule.parameter, ())
        )
        for rule in rules
    )
