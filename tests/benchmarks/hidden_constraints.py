"""Do definitions that repair themselves win back what a definition does not say?

    python tests/benchmarks/hidden_constraints.py --store sqlite:///hidden.db [--hide forms]

Real tools of BFCL that demand something lose the statement of it (``hidden_cases.py``), and go on
demanding it. The model's calls are refused with the reason; the evidence proposer learns rules
from half of the questions of each tool, and the other half is asked with six definitions:

* hidden    what is left, as the proposer found it;
* words     with the learned rules as sentences only;
* rule      with the learned rules as data, so that the schema and with it the grammar hold them;
* rounds    as ``rule``, after further rounds: the questions learned from that still went wrong, or
  all of them where none did and nothing was learned, are asked again, twice, at a temperature of
  0.7 and with up to three tries each, as long as that teaches something new, and four rounds at
  most;
* shuffled  with rules of another tool at the same place: whether any would do;
* original  as BFCL has it.

With ``--feedback`` the model itself is asked as the feedback model about the half learned from,
and what it writes, if every check lets it pass, is the seventh.

A call is valid when the tool takes it, and right when BFCL's allowed values say so. The split into
halves is drawn anew for each seed; at temperature 0 an answer does not depend on it, so each
question is asked once with each definition and the answers are kept in the store.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench_evidence import Demand
from hidden_cases import Case, cases, refuses_gold, split

from agentkit import Episode, Library, ToolDefinition, open_store
from agentkit.evaluation import Benchmark, Task, episodes_of_run, evaluate, with_tools
from agentkit.evaluation.environments import EnvironmentFactory
from agentkit.evaluation.settings import EvaluationSettings
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.proposer import Observations, Proposer
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.evolution.proposers.streams import FeedbackStream
from agentkit.evolution.validation import validate
from agentkit.evolution.validation.report import ProposedChange
from agentkit.library.store import Store
from agentkit.metrics.intervals import Interval, Observation, bootstrap_interval
from agentkit.models.base import ChatModel, ModelSettings
from agentkit.models.resolve import resolve_model
from agentkit.testing import ReplayModel
from agentkit.tools.definition import Specification
from agentkit.tools.rules import Between, Form, OneOf, rule_sentence
from agentkit_bench import fetch_bfcl, load_bfcl

CONDITIONS = ("hidden", "words", "rule", "rounds", "shuffled", "original")
MOST_ROUNDS = 4
KNOBS = EvidenceConfig(min_failures=1, min_episodes=1)
SHORT = ModelSettings(temperature=0.0, max_tokens=200)


class Asking:
    """Asks each question once with each definition, and keeps what came of it."""

    def __init__(self, model: ChatModel, store: Store, max_tokens: int) -> None:
        self._model, self._store, self._most = model, store, max_tokens

    async def episodes(
        self,
        case: Case,
        shown: ToolDefinition,
        tasks: Sequence[Task] | None = None,
        *,
        runs: bool = True,
    ) -> dict[str, Episode]:
        """The episode of each question by its id; without ``runs`` the calls stay proposals."""
        settings = EvaluationSettings(
            tool_choice="required",
            max_steps=1,
            settings=ModelSettings(temperature=0.0, max_tokens=self._most),
        )
        run = f"{case.name}:{shown.digest[:16]}"
        environment = with_tools([case.enforcing(shown)]) if runs else None
        found = await self._run(tasks or case.tasks, shown, run, settings, environment)
        return {one.metadata["task"]: one for one in found}

    async def again(
        self, case: Case, shown: ToolDefinition, tasks: Sequence[Task]
    ) -> list[Episode]:
        """Episodes of some of the questions, asked with variety and with further tries."""
        if not tasks:
            return []
        settings = EvaluationSettings(
            tool_choice="required",
            max_steps=3,
            attempts=2,
            settings=ModelSettings(temperature=0.7, max_tokens=self._most, seed=0),
        )
        run = f"{case.name}:{shown.digest[:16]}:second"
        wanted = {task.task_id for task in tasks}
        environment = with_tools([case.enforcing(shown)])
        found = await self._run(tasks, shown, run, settings, environment)
        return [one for one in found if one.metadata["task"] in wanted]

    async def _run(
        self,
        tasks: Sequence[Task],
        shown: ToolDefinition,
        run: str,
        settings: EvaluationSettings,
        environment: EnvironmentFactory | None,
    ) -> list[Episode]:
        benchmark = Benchmark(
            name="hidden constraints",
            tasks=tuple(tasks),
            definitions=(shown,),
            environment=environment,
        )
        await evaluate(
            benchmark,
            model=self._model,
            store=self._store,
            run=run,
            settings=settings,
            concurrency=1,
        )
        return list(episodes_of_run(self._store, run))


@dataclass(kw_only=True)
class Learning:
    """Learns from episodes, and counts what came of it."""

    feedback: ChatModel | None = None
    answers: Counter[str] = field(default_factory=Counter)

    async def rules(self, base: ToolDefinition, episodes: Sequence[Episode]) -> tuple[Demand, ...]:
        """The rules that the evidence proposer learns and that every check lets pass."""
        for one in await self._passing(EvidenceProposer(KNOBS), base, episodes):
            if one.specification.rules:
                every = one.specification.rules
                return tuple(rule for rule in every if isinstance(rule, OneOf | Between | Form))
        return tuple(r for r in base.specification.rules if isinstance(r, OneOf | Between | Form))

    async def words(self, base: ToolDefinition, episodes: Sequence[Episode]) -> ToolDefinition:
        """What the feedback model makes of the definition; as it was where that is nothing."""
        if self.feedback is None:
            return base
        return await self.evolved(
            base, episodes, [FeedbackStream(self.feedback, settings=SHORT, structured=True)]
        )

    async def evolved(
        self, base: ToolDefinition, episodes: Sequence[Episode], proposers: Sequence[Proposer]
    ) -> ToolDefinition:
        """The definition after the first suggestion of each proposer that every check lets pass."""
        for proposer in proposers:
            passing = await self._passing(proposer, base, episodes)
            base = passing[0] if passing else base
        return base

    async def _passing(
        self, proposer: Proposer, base: ToolDefinition, episodes: Sequence[Episode]
    ) -> list[ToolDefinition]:
        library = Library([base])
        seen = Observations(library=library, episodes=tuple(episodes))
        passing = []
        for one in await proposer.propose(seen):
            kind = proposer.name.split(":")[0]
            if not isinstance(one, Proposal):
                self.answers.update(f"{kind} unreadable: {check.code}" for check in one.failed[:1])
                continue
            change = ProposedChange(base=base, candidate=one.candidate, library=library)
            report = validate(change)
            codes = [check.code for check in report.failed]
            self.answers[f"{kind} {'refused: ' + codes[0] if codes else 'passed'}"] += 1
            if report.is_valid:
                passing.append(one.candidate)
        return passing


def with_rules(definition: ToolDefinition, rules: Sequence[Demand]) -> ToolDefinition:
    """The definition with rules as data."""
    return replace(definition, specification=Specification(rules=tuple(rules)))


def with_words(definition: ToolDefinition, rules: Sequence[Demand]) -> ToolDefinition:
    """The definition with the sentences of rules, and nothing else of them."""
    words = tuple(rule_sentence(rule) for rule in rules)
    return replace(definition, description=replace(definition.description, usage_rules=words))


def shuffled(every: Mapping[str, tuple[Demand, ...]]) -> dict[str, tuple[Demand, ...]]:
    """To each tool what the next one's rules of the same kind say; the same for every seed."""
    rules = [(name, rule) for name in sorted(every) for rule in every[name]]
    return {
        name: tuple(_other(name, rule, rules) for rule in found) for name, found in every.items()
    }


def _other(name: str, rule: Demand, rules: Sequence[tuple[str, Demand]]) -> Demand:
    later = [one for one in rules if one[0] > name] + [one for one in rules if one[0] < name]
    moved = (replace(one, parameter=rule.parameter) for _, one in later if one.kind == rule.kind)
    return next((one for one in moved if one != rule), rule)


@dataclass(kw_only=True)
class Results:
    """All that was found: a row for each seed and held-out question."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    wrong_rules: int = 0
    learned: Counter[int] = field(default_factory=Counter)


async def experiment(
    chosen: Sequence[Case], asking: Asking, learning: Learning, seeds: int
) -> Results:
    """Ask everything that is needed for every seed."""
    known = {
        case.name: {
            "hidden": await asking.episodes(case, case.hidden),
            "original": await asking.episodes(case, case.original),
        }
        for case in chosen
    }
    every = {
        case.name: await Learning().rules(case.hidden, list(known[case.name]["hidden"].values()))
        for case in chosen
    }
    mixed, results = shuffled(every), Results()
    for seed in range(seeds):
        for case in chosen:
            train, held_out = split(case.name, case.tasks, seed)
            found = known[case.name]
            seen = [found["hidden"][task.task_id] for task in train]
            first = await learning.rules(case.hidden, seen)
            last = await further_rounds(case, first, seen, asking, learning)
            shown = {
                "words": with_words(case.hidden, first),
                "rule": with_rules(case.hidden, first),
                "rounds": with_rules(case.hidden, last),
                "shuffled": with_rules(case.hidden, mixed[case.name] if first else ()),
                "feedback": await learning.words(case.hidden, seen),
            }
            asked = {
                name: await asking.episodes(case, one, held_out) for name, one in shown.items()
            }
            results.rows.extend(rows_of(case, held_out, {**found, **asked}, seed))
            results.wrong_rules += refuses_gold(case, last)
            results.learned[seed] += bool(last)
    return results


async def further_rounds(
    case: Case,
    rules: tuple[Demand, ...],
    seen: list[Episode],
    asking: Asking,
    learning: Learning,
) -> tuple[Demand, ...]:
    """The rules after the questions that still went wrong were asked again, and again."""
    train = {episode.metadata["task"] for episode in seen}
    for _ in range(MOST_ROUNDS - 1):
        base = with_rules(case.hidden, rules)
        answers = await asking.episodes(case, base)
        tasks = [task for task in case.tasks if task.task_id in train]
        wrong = [task for task in tasks if not case.is_valid(answers[task.task_id])]
        if rules and not wrong:
            break
        seen = [*seen, *await asking.again(case, base, wrong or tasks)]
        before, rules = rules, await learning.rules(base, seen)
        if rules == before:
            break
    return rules


def rows_of(
    case: Case, tasks: Sequence[Task], found: Mapping[str, Mapping[str, Episode]], seed: int
) -> Iterator[dict[str, Any]]:
    """One row for each held-out question."""
    for task in tasks:
        episodes = {name: every[task.task_id] for name, every in found.items()}
        passed = {
            name: one.verdict is not None and one.verdict.passed for name, one in episodes.items()
        }
        yield {
            "seed": seed,
            "tool": case.name,
            "task": task.task_id,
            "kinds": sorted({demand.kind for demand in case.demands}),
            "can_be_met": case.can_be_met,
            **{f"{name}_valid": float(case.is_valid(one)) for name, one in episodes.items()},
            **{f"{name}_right": float(one) for name, one in passed.items()},
        }


def mean(rows: Sequence[Mapping[str, Any]], column: str, less: str = "") -> Interval:
    """The mean over questions with an interval that resamples tools, which are what varies."""
    observed = [
        Observation(value=row[column] - (row[less] if less else 0.0), task=row["tool"])
        for row in rows
    ]
    return bootstrap_interval(observed, resamples=5_000)


def told(rows: Sequence[Mapping[str, Any]], conditions: Sequence[str]) -> None:
    """A table."""
    print(f"{'':<10} {'valid':>22} {'less hidden':>22} {'right':>22} {'less hidden':>22}")
    for name in conditions:
        parts = [
            mean(rows, f"{name}_{what}", less)
            for what in ("valid", "right")
            for less in ("", f"hidden_{what}")
        ]
        print(f"{name:<10}", *(f"{shown_interval(one):>22}" for one in parts))
    valid = {name: mean(rows, f"{name}_valid").value for name in conditions}
    gap = valid["original"] - valid["hidden"]
    for name in conditions:
        if name not in {"hidden", "original"} and gap:
            print(f"{name} closes {100 * (valid[name] - valid['hidden']) / gap:.0f}% of the gap")


def shown_interval(one: Interval) -> str:
    """A share in percent with its interval."""
    return f"{100 * one.value:5.1f} ({100 * one.low:.1f}, {100 * one.high:.1f})"


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--store", default="memory:", help="keeps the answers")
    parser.add_argument("--model", default="local:smollm2-135m")
    parser.add_argument("--hide", choices=("lists", "forms"), default="lists")
    parser.add_argument("--tools", type=int, default=60)
    parser.add_argument("--per-tool", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--feedback", type=Path, metavar="CASSETTE", help="ask the model, and keep")
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args()
    benchmark = load_bfcl(fetch_bfcl(Path.home() / ".cache" / "agentkit"))
    chosen = cases(
        benchmark, options.hide, max_tools=options.tools, per_tool=options.per_tool, seed=0
    )
    kinds = Counter(demand.kind for case in chosen for demand in case.demands)
    questions = sum(len(case.tasks) for case in chosen)
    print(f"{len(chosen)} tools, {questions} questions, hidden: {dict(kinds)}", flush=True)
    model = resolve_model(options.model)
    asking = Asking(model, open_store(options.store), options.max_tokens)
    feedback = ReplayModel(options.feedback, model, "auto") if options.feedback else None
    learning = Learning(feedback=feedback)
    results = asyncio.run(experiment(chosen, asking, learning, options.seeds))
    conditions = [*CONDITIONS, *(["feedback"] if feedback else [])]
    told(results.rows, conditions)
    met = [row for row in results.rows if row["can_be_met"]]
    print(f"\nwithout tools whose own list refuses gold: {len({row['tool'] for row in met})} tools")
    told(met, conditions)
    print("tools with a learned rule, by seed:", *results.learned.values())
    print("rules that refuse a gold value, all seeds:", results.wrong_rules)
    print("suggestions, all seeds and rounds:", dict(learning.answers.most_common()))
    if options.json:
        options.json.write_text(json.dumps(results.rows, indent=1))


if __name__ == "__main__":
    main()
