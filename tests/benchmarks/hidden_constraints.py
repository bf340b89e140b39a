"""Do definitions that repair themselves win back what a definition does not say?

    python tests/benchmarks/hidden_constraints.py --store sqlite:///hidden.db [--tools 60]

Real tools of BFCL that demand one of a list of texts lose that list: the schema's enum, and every
sentence that quotes one of the values. The tool goes on demanding it. The model's calls are refused
with the list; the evidence proposer learns rules from half of the questions of each tool, and the
other half is asked with five definitions:

* hidden    what is left, as the proposer found it;
* words     with the learned rule as a sentence only;
* rule      with the learned rule as data, so that the schema and with it the grammar hold it;
* shuffled  with the rule of another tool at the same place: whether any list would do;
* original  as BFCL has it.

A call is valid when the tool takes it, and right when BFCL's allowed values say so. The split into
halves is drawn anew for each seed; at temperature 0 an answer does not depend on it, so each
question is asked once with each definition and the answers are kept in the store.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentkit import Episode, Library, ModelRetry, Tool, ToolDefinition, open_store
from agentkit.evaluation import AllowedCalls, Benchmark, Task, fetch_bfcl, load_bfcl, with_tools
from agentkit.evaluation.running import episodes_of_run, evaluate
from agentkit.evaluation.running.settings import EvaluationSettings
from agentkit.evolution.proposals.evidence.knobs import EvidenceRules
from agentkit.evolution.proposals.evidence_proposer import EvidenceProposer
from agentkit.evolution.proposals.proposer import Observations
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.validate import validate
from agentkit.library.store import Store
from agentkit.metrics.intervals import Interval, Observation, bootstrap_interval
from agentkit.models.base import ChatModel, ModelSettings
from agentkit.models.resolve import resolve_model
from agentkit.tools.definition import Description, Origin, Specification
from agentkit.tools.rules import OneOf, rule_sentence
from agentkit.tools.schema import copied
from agentkit.tools.validation import ArgumentProblem, ArgumentValidator

CONDITIONS = ("hidden", "words", "rule", "shuffled", "original")
KNOBS = EvidenceRules(least_failures=1, least_episodes=1)


@dataclass(frozen=True, kw_only=True)
class Case:
    """A tool whose lists are hidden, and the questions that call it."""

    original: ToolDefinition
    hidden: ToolDefinition
    tasks: tuple[Task, ...]

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.original.name

    def enforcing(self, shown: ToolDefinition) -> Tool:
        """The tool under another definition, which still demands what the original does."""
        validator = ArgumentValidator(self.original)

        def call(**arguments: Any) -> str:
            problem = validator.runnable(arguments)
            if isinstance(problem, ArgumentProblem):
                raise ModelRetry(_refusal(self, problem, arguments))
            return "done"

        return Tool(definition=shown, function=call)


def _refusal(case: Case, problem: ArgumentProblem, arguments: Mapping[str, Any]) -> str:
    """What the service behind the tool says: as ours, but with the whole list, however long."""
    values = enums(case.original).get(problem.path_text, ())
    if problem.keyword != "enum" or not values:
        return problem.rule
    told = ", ".join(repr(value) for value in values)
    return f"`{problem.path_text}` must be one of {told}, got {arguments[problem.path_text]!r}"


def enums(definition: ToolDefinition) -> Mapping[str, Sequence[str]]:
    """The lists that parameters at the top level are taken from."""
    properties = definition.signature.properties
    return {
        name: schema["enum"]
        for name, schema in properties.items()
        if schema.get("type") == "string"
        and all(isinstance(one, str) for one in schema.get("enum", [0]))
    }


def hide(definition: ToolDefinition) -> ToolDefinition:
    """The definition without its lists, and without sentences that quote a value of one."""
    lists = enums(definition)
    parameters = copied(definition.signature.parameters)
    for name in lists:
        parameters["properties"][name].pop("enum")
        parameters["properties"][name].pop("default", None)
    values = [value for several in lists.values() for value in several if len(value) > 1]
    quoted = re.compile("|".join(rf"(?<!\w){re.escape(value)}(?!\w)" for value in values) or "(?!)")
    texts = {
        name: _without(text, quoted if name in lists else None)
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


def _without(text: str, quoted: re.Pattern[str] | None) -> str:
    if quoted is None:
        return text
    sentences = re.split(r"(?<=[.;!?])\s+", text)
    return " ".join(one for one in sentences if not quoted.search(one))


def cases(benchmark: Benchmark, *, most_tools: int, per_tool: int, seed: int) -> list[Case]:
    """Tools with a list that at least two different questions need, drawn at random."""
    # Namesakes are offered under BFCL's own name, by which a library could not tell them apart.
    definitions = {
        definition.name: replace(definition, origin=Origin())
        for definition in benchmark.definitions
    }
    asked: dict[str, dict[str, Task]] = defaultdict(dict)
    for task in benchmark.tasks:
        calls = task.gold
        if len(calls) != 1 or calls[0].name not in definitions:
            continue
        name = calls[0].name
        if any(parameter in calls[0].allowed for parameter in enums(definitions[name])):
            asked[name].setdefault(task.request, replace(task, offered=(name,)))
    names = sorted(name for name, tasks in asked.items() if len(tasks) > 1)
    random.Random(seed).shuffle(names)  # more tools are the same ones and further ones
    return [
        Case(
            original=definitions[name],
            hidden=hide(definitions[name]),
            tasks=_drawn(list(asked[name].values()), per_tool, f"{seed}:{name}"),
        )
        for name in names[:most_tools]
    ]


def _drawn(tasks: list[Task], most: int, seed: str) -> tuple[Task, ...]:
    random.Random(seed).shuffle(tasks)
    return tuple(tasks[:most])


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How one question went with one definition."""

    valid: bool
    right: bool


class Asking:
    """Asks each question once with each definition, and keeps what came of it."""

    def __init__(self, model: ChatModel, store: Store, settings: EvaluationSettings) -> None:
        self._model, self._store, self._settings = model, store, settings

    async def episodes(self, case: Case, shown: ToolDefinition) -> dict[str, Episode]:
        """The episode of each question by its id."""
        run = f"{case.name}:{shown.digest[:16]}"
        benchmark = Benchmark(
            name="hidden constraints",
            tasks=case.tasks,
            definitions=(shown,),
            environment=with_tools([case.enforcing(shown)]),
        )
        await evaluate(
            benchmark,
            model=self._model,
            store=self._store,
            run=run,
            settings=self._settings,
            concurrency=1,
        )
        return {one.metadata["task"]: one for one in episodes_of_run(self._store, run)}


def answer(case: Case, episode: Episode) -> Answer:
    """What an episode's first call comes to."""
    validator = ArgumentValidator(case.original)
    valid = bool(episode.calls) and all(
        call.malformed is None
        and call.name == case.name
        and not isinstance(validator.runnable(call.arguments), ArgumentProblem)
        for call in episode.calls
    )
    return Answer(valid=valid, right=bool(episode.verdict and episode.verdict.passed))


async def learned(case: Case, episodes: Sequence[Episode]) -> tuple[OneOf, ...]:
    """The rules that the evidence proposer learns and that every check lets pass."""
    library = Library([case.hidden])
    seen = Observations(library=library, episodes=tuple(episodes))
    for proposal in await EvidenceProposer(KNOBS).propose(seen):
        change = ProposedChange(base=case.hidden, candidate=proposal.candidate, library=library)
        rules = proposal.candidate.specification.rules
        if rules and validate(change).is_valid:
            return tuple(rule for rule in rules if isinstance(rule, OneOf))
    return ()


def with_rules(definition: ToolDefinition, rules: Sequence[OneOf]) -> ToolDefinition:
    """The definition with rules as data."""
    return replace(definition, specification=Specification(rules=tuple(rules)))


def with_words(definition: ToolDefinition, rules: Sequence[OneOf]) -> ToolDefinition:
    """The definition with the sentences of rules, and nothing else of them."""
    words = tuple(rule_sentence(rule) for rule in rules)
    return replace(definition, description=replace(definition.description, usage_rules=words))


def shuffled(every: Mapping[str, tuple[OneOf, ...]]) -> dict[str, tuple[OneOf, ...]]:
    """To each tool the values of the next one's rules; the same for every seed."""
    names = sorted(name for name, rules in every.items() if rules)
    found = dict(every)
    for at, name in enumerate(names):
        other = every[names[(at + 1) % len(names)]]
        found[name] = tuple(
            replace(rule, values=other[number % len(other)].values)
            for number, rule in enumerate(every[name])
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Results:
    """All that was found, by seed, condition and question."""

    rows: list[dict[str, Any]]
    wrong_rules: int
    learned: Mapping[int, int]


async def experiment(chosen: Sequence[Case], asking: Asking, seeds: int) -> Results:
    """Ask everything that is needed for every seed."""
    base = {case.name: await asking.episodes(case, case.hidden) for case in chosen}
    original = {case.name: await asking.episodes(case, case.original) for case in chosen}
    rows: list[dict[str, Any]] = []
    wrong, count = 0, {}
    mixed = shuffled(
        {case.name: await learned(case, list(base[case.name].values())) for case in chosen}
    )
    for seed in range(seeds):
        halves = {case.name: split(case, seed) for case in chosen}
        rules = {
            case.name: await learned(
                case, [base[case.name][task.task_id] for task in halves[case.name][0]]
            )
            for case in chosen
        }
        count[seed] = sum(bool(found) for found in rules.values())
        wrong += sum(refuses_gold(case, rules[case.name]) for case in chosen)
        for case in chosen:
            others = mixed[case.name] if rules[case.name] else ()
            found = {
                "hidden": base[case.name],
                "original": original[case.name],
                "words": await asking.episodes(case, with_words(case.hidden, rules[case.name])),
                "rule": await asking.episodes(case, with_rules(case.hidden, rules[case.name])),
                "shuffled": await asking.episodes(case, with_rules(case.hidden, others)),
            }
            rows.extend(rows_of(case, halves[case.name][1], found, seed))
    return Results(rows=rows, wrong_rules=wrong, learned=count)


def split(case: Case, seed: int) -> tuple[tuple[Task, ...], tuple[Task, ...]]:
    """Questions to learn from, and others to be asked."""
    order = random.Random(f"{seed}:{case.name}").sample(case.tasks, len(case.tasks))
    half = (len(order) + 1) // 2
    return tuple(order[:half]), tuple(order[half:])


def refuses_gold(case: Case, rules: Sequence[OneOf]) -> int:
    """How many rules refuse a value that a question's gold allows and the tool takes."""
    allowed = enums(case.original)
    gold = [
        c
        for task in case.tasks
        for e in task.expects
        if isinstance(e, AllowedCalls)
        for c in e.calls
    ]
    return sum(
        any(
            value in allowed.get(rule.parameter, ()) and value not in rule.values
            for call in gold
            for value in call.allowed.get(rule.parameter, ())
        )
        for rule in rules
    )


def rows_of(
    case: Case, tasks: Sequence[Task], found: Mapping[str, Mapping[str, Episode]], seed: int
) -> Iterator[dict[str, Any]]:
    """One row for each held-out question."""
    for task in tasks:
        answers = {name: answer(case, found[name][task.task_id]) for name in CONDITIONS}
        yield {
            "seed": seed,
            "tool": case.name,
            "task": task.task_id,
            **{f"{name}_valid": float(one.valid) for name, one in answers.items()},
            **{f"{name}_right": float(one.right) for name, one in answers.items()},
        }


def mean(rows: Sequence[Mapping[str, Any]], column: str, less: str = "") -> Interval:
    """The mean over questions with an interval that resamples tools, which are what varies."""
    observed = [
        Observation(value=row[column] - (row[less] if less else 0.0), task=row["tool"])
        for row in rows
    ]
    return bootstrap_interval(observed, resamples=5_000)


def told(results: Results) -> None:
    """The tables."""
    rows = results.rows
    print(f"{'':<10} {'valid':>22} {'right':>22} {'right, less hidden':>24}")
    for name in CONDITIONS:
        valid, right = mean(rows, f"{name}_valid"), mean(rows, f"{name}_right")
        gain = mean(rows, f"{name}_right", "hidden_right")
        print(f"{name:<10} {_shown(valid):>22} {_shown(right):>22} {_shown(gain):>24}")
    for what in ("valid", "right"):
        parts = {name: mean(rows, f"{name}_{what}").value for name in CONDITIONS}
        gap = parts["original"] - parts["hidden"]
        for name in ("words", "rule", "shuffled"):
            closed = (parts[name] - parts["hidden"]) / gap if gap else float("nan")
            print(f"{name} closes {100 * closed:.0f}% of the gap in {what}")
    print("tools with a learned rule, by seed:", *results.learned.values())
    print("rules that refuse a gold value, all seeds:", results.wrong_rules)


def _shown(one: Interval) -> str:
    return f"{100 * one.value:5.1f} ({100 * one.low:.1f}, {100 * one.high:.1f})"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--store", default="memory:", help="keeps the answers")
    parser.add_argument("--model", default="local:smollm2-135m")
    parser.add_argument("--tools", type=int, default=60)
    parser.add_argument("--per-tool", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args()
    benchmark = load_bfcl(fetch_bfcl(Path.home() / ".cache" / "agentkit"))
    chosen = cases(benchmark, most_tools=options.tools, per_tool=options.per_tool, seed=0)
    print(f"{len(chosen)} tools, {sum(len(case.tasks) for case in chosen)} questions")
    settings = EvaluationSettings(
        tool_choice="required",
        max_steps=1,
        settings=ModelSettings(temperature=0.0, max_tokens=options.max_tokens),
    )
    asking = Asking(resolve_model(options.model), open_store(options.store), settings)
    results = asyncio.run(experiment(chosen, asking, options.seeds))
    told(results)
    if options.json:
        options.json.write_text(json.dumps(results.rows, indent=1))


if __name__ == "__main__":
    main()
