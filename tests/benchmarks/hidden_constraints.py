"""Do definitions that repair themselves win back what a definition does not say (docs/evolution.md)?

    python tests/benchmarks/hidden_constraints.py --store sqlite:///hidden.db [--hide lists|forms]
    python tests/benchmarks/hidden_constraints.py --store sqlite:///whole.db --hide nothing

Real tools of BFCL that demand something lose the statement of it (``hidden_demands.py``), and go on
demanding it. The model's calls are refused with the reason; the evidence proposer learns rules
from half of the questions of each tool, and the other half is asked with six definitions:

* hidden    what is left, as the proposer found it;
* words     with the learned rules as sentences only;
* rule      with the learned rules as data, so that the schema and with it the grammar hold them;
* rounds    as ``rule``, after further rounds: the questions learned from that still went wrong, or
  all of them where none did and nothing was learned, are asked again, twice, at a temperature of
  0.7 and with up to three tries each, as long as that teaches something new, and four rounds at most;
* shuffled  with rules of another tool at the same place: whether any would do;
* original  as BFCL has it.

``--hide nothing`` takes tools as they are (fixed) and asks whether evolution gains anything there:
*evolved* has the first suggestion that every check lets pass of the evidence proposer, and of the model
itself as feedback model and in the evolution stream; *shuffled* has the words that another tool learned.

A call is valid when the tool takes it, and right when BFCL's allowed values say so. The split into
halves is drawn anew for each seed; at temperature 0 an answer does not depend on it, so each
question is asked once with each definition and the answers are kept in the store.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import arguments, report
from hidden_demands import Case, Demand, cases, split

from agentkit import Episode, Library, ToolDefinition, open_store
from agentkit.evaluation import Benchmark, Task, episodes_of_run, evaluate, with_tools
from agentkit.evaluation.settings import EvaluationSettings
from agentkit.evolution.proposal import Observations, PassedOver, Proposer
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.evolution.proposers.streams import EvolutionStream, FeedbackStream
from agentkit.evolution.validation import validate
from agentkit.evolution.validation.report import ProposedChange
from agentkit.library.store import Store
from agentkit.metrics.statistics import Observation, bootstrap_interval
from agentkit.models.base import ChatModel, ModelSettings, resolve_model
from agentkit.tools.definition import Specification
from agentkit.tools.rules import Between, Form, OneOf, rule_sentence
from agentkit_bench import fetch_bfcl, load_bfcl

MOST_ROUNDS = 4
EVIDENCE = EvidenceProposer(EvidenceConfig(min_failures=1, min_episodes=1))
SHORT = ModelSettings(temperature=0.0, max_tokens=200)

Answers = dict[str, Episode]
"""The episode of each question by its id."""


class Asking:
    """Asks each question once with each definition, and keeps what came of it in the store."""

    def __init__(self, model: ChatModel, store: Store, *, runs: bool) -> None:
        self._model, self._store, self._runs = model, store, runs

    async def once(
        self, case: Case, shown: ToolDefinition, tasks: Sequence[Task] | None = None
    ) -> Answers:
        """Greedily; where nothing is hidden the calls stay proposals."""
        greedy = ModelSettings(temperature=0.0, max_tokens=160)
        settings = EvaluationSettings(tool_choice="required", max_steps=1, settings=greedy)
        found = await self._run(case, shown, tasks or case.tasks, "", settings)
        return {one.metadata["task"]: one for one in found}

    async def again(
        self, case: Case, shown: ToolDefinition, tasks: Sequence[Task]
    ) -> list[Episode]:
        """With variety and further tries."""
        varied = ModelSettings(temperature=0.7, max_tokens=160, seed=0)
        settings = EvaluationSettings(
            tool_choice="required", max_steps=3, attempts=2, settings=varied
        )
        wanted = {task.task_id for task in tasks}
        found = await self._run(case, shown, tasks, ":second", settings) if tasks else []
        return [one for one in found if one.metadata["task"] in wanted]

    async def _run(
        self,
        case: Case,
        shown: ToolDefinition,
        tasks: Sequence[Task],
        label: str,
        settings: EvaluationSettings,
    ) -> list[Episode]:
        run = f"{case.name}:{shown.digest[:16]}{label}"
        benchmark = Benchmark(
            name="hidden constraints",
            tasks=tuple(tasks),
            definitions=(shown,),
            environment=with_tools([case.enforcing(shown)]) if self._runs else None,
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


async def learned(
    base: ToolDefinition,
    episodes: Sequence[Episode],
    proposers: Sequence[Proposer],
    counts: Counter[str],
) -> ToolDefinition:
    """The definition after the first suggestion of each proposer that every check lets pass."""
    for proposer in proposers:
        library = Library([base])
        unread: list[PassedOver] = []
        seen = Observations(library=library, episodes=tuple(episodes), pass_over=unread.append)
        kind, passing = proposer.name.split(":")[0], []
        for one in await proposer.propose(seen):
            said = validate(ProposedChange(base=base, candidate=one.candidate, library=library))
            codes = [check.code for check in said.failed]
            counts[f"{kind} {'refused: ' + codes[0] if codes else 'passed'}"] += 1
            passing += [one.candidate] if said.is_valid else []
        counts[f"{kind} unreadable"] += sum(one.reason == "unreadable" for one in unread)
        base = passing[0] if passing else base
    return base


async def learned_rules(
    base: ToolDefinition, episodes: Sequence[Episode], counts: Counter[str]
) -> tuple[Demand, ...]:
    """The rules of a definition after the evidence proposer."""
    rules = (await learned(base, episodes, [EVIDENCE], counts)).specification.rules
    return tuple(rule for rule in rules if isinstance(rule, OneOf | Between | Form))


def with_rules(definition: ToolDefinition, rules: Sequence[Demand]) -> ToolDefinition:
    """The definition with rules as data."""
    return replace(definition, specification=Specification(rules=tuple(rules)))


def with_words(definition: ToolDefinition, rules: Sequence[Demand]) -> ToolDefinition:
    """The definition with the sentences of rules, and nothing else of them."""
    words = tuple(rule_sentence(rule) for rule in rules)
    return replace(definition, description=replace(definition.description, usage_rules=words))


def rules_of_others(every: Mapping[str, Sequence[Demand]]) -> dict[str, list[Demand]]:
    """To each tool what the next one's rules of the same kind say; the same for every seed."""
    rules = [(name, rule) for name in sorted(every) for rule in every[name]]

    def other(name: str, rule: Demand) -> Demand:
        later = [one for one in rules if one[0] > name] + [one for one in rules if one[0] < name]
        same = (one for _, one in later if one.kind == rule.kind)
        moved = (replace(one, parameter=rule.parameter) for one in same)
        return next((one for one in moved if one != rule), rule)

    return {name: [other(name, rule) for rule in found] for name, found in every.items()}


async def damaged(
    chosen: Sequence[Case], asking: Asking, seeds: int, counts: Counter[str]
) -> list[dict[str, Any]]:
    """A row for each seed and held-out question of tools that do not say what they demand."""
    hidden = {case.name: await asking.once(case, case.hidden) for case in chosen}
    original = {case.name: await asking.once(case, case.original) for case in chosen}
    every = {
        case.name: await learned_rules(case.hidden, list(hidden[case.name].values()), Counter())
        for case in chosen
    }
    others, rows = rules_of_others(every), list[dict[str, Any]]()
    for seed in range(seeds):
        for case in chosen:
            train, held_out = split(case.name, case.tasks, seed)
            seen = [hidden[case.name][task.task_id] for task in train]
            first = await learned_rules(case.hidden, seen, counts)
            last = await further_rounds(case, first, seen, asking, counts)
            shown = {
                "words": with_words(case.hidden, first),
                "rule": with_rules(case.hidden, first),
                "rounds": with_rules(case.hidden, last),
                "shuffled": with_rules(case.hidden, others[case.name] if first else ()),
            }
            asked = {name: await asking.once(case, one, held_out) for name, one in shown.items()}
            found = {"hidden": hidden[case.name], **asked, "original": original[case.name]}
            rows += rows_of(case, held_out, found)
    return rows


async def further_rounds(
    case: Case,
    rules: tuple[Demand, ...],
    seen: list[Episode],
    asking: Asking,
    counts: Counter[str],
) -> tuple[Demand, ...]:
    """The rules after the questions that still went wrong were asked again, and again."""
    train = {episode.metadata["task"] for episode in seen}
    tasks = [task for task in case.tasks if task.task_id in train]
    for _ in range(MOST_ROUNDS - 1):
        base = with_rules(case.hidden, rules)
        answers = await asking.once(case, base)
        wrong = [task for task in tasks if not case.is_valid(answers[task.task_id])]
        if rules and not wrong:
            break
        seen = [*seen, *await asking.again(case, base, wrong or tasks)]
        before, rules = rules, await learned_rules(base, seen, counts)
        if rules == before:
            break
    return rules


async def whole(
    chosen: Sequence[Case],
    asking: Asking,
    seeds: int,
    counts: Counter[str],
    proposers: Sequence[Proposer],
) -> list[dict[str, Any]]:
    """A row for each seed and held-out question of tools that lack nothing."""
    fixed = {case.name: await asking.once(case, case.original) for case in chosen}
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        halves = {case.name: split(case.name, case.tasks, seed) for case in chosen}
        evolved = {}
        for case in chosen:
            seen = [fixed[case.name][task.task_id] for task in halves[case.name][0]]
            evolved[case.name] = await learned(case.original, seen, proposers, counts)
        changed = sorted(case.name for case in chosen if evolved[case.name] != case.original)
        after = dict(zip(changed, changed[1:] + changed[:1], strict=True))
        for case in chosen:
            source = evolved[after.get(case.name, case.name)].description
            words = replace(
                case.original.description, summary=source.summary, usage_rules=source.usage_rules
            )
            other = replace(case.original, description=words)
            held_out = halves[case.name][1]
            found = {
                "fixed": fixed[case.name],
                "evolved": await asking.once(case, evolved[case.name], held_out),
                "shuffled": await asking.once(case, other, held_out),
            }
            rows += rows_of(case, held_out, found)
    return rows


def rows_of(
    case: Case, tasks: Sequence[Task], found: Mapping[str, Answers]
) -> Iterator[dict[str, Any]]:
    """One row for each held-out question: what each definition brings."""
    for task in tasks:
        episodes = {name: every[task.task_id] for name, every in found.items()}
        right = {name: one.verdict and one.verdict.passed for name, one in episodes.items()}
        yield {
            "tool": case.name,
            **{f"{name} valid": float(case.is_valid(one)) for name, one in episodes.items()},
            **{f"{name} right": float(bool(one)) for name, one in right.items()},
        }


def mean(rows: Sequence[Mapping[str, Any]], column: str, less: str = "") -> str:
    """The mean in percent, with an interval that resamples tools, which are what varies."""
    observed = [
        Observation(value=row[column] - (row[less] if less else 0.0), task=row["tool"])
        for row in rows
    ]
    one = bootstrap_interval(observed, resamples=5_000)
    return f"{100 * one.value:.1f} ({100 * one.low:.1f} to {100 * one.high:.1f})"


def table_of(rows: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """A row for each definition, beside the first one."""
    names = [name.removesuffix(" valid") for name in rows[0] if name.endswith(" valid")]
    for name in names:
        yield {
            "definition": name,
            "valid %": mean(rows, f"{name} valid"),
            f"less {names[0]}": mean(rows, f"{name} valid", f"{names[0]} valid"),
            "right %": mean(rows, f"{name} right"),
            f"right, less {names[0]}": mean(rows, f"{name} right", f"{names[0]} right"),
        }


def main(options: argparse.Namespace) -> None:
    """Ask everything that is needed for every seed, and print what came of it."""
    benchmark = load_bfcl(fetch_bfcl(Path.home() / ".cache" / "agentkit"))
    chosen = cases(benchmark, options.hide, max_tools=options.tools, per_tool=options.per_tool)
    questions = sum(len(case.tasks) for case in chosen)
    print(f"{len(chosen)} tools, {questions} questions", flush=True)
    model, counts = resolve_model(options.model), Counter[str]()
    asking = Asking(model, open_store(options.store), runs=options.hide != "nothing")
    if options.hide == "nothing":
        proposers: list[Proposer] = [
            EVIDENCE,
            FeedbackStream(model, settings=SHORT, structured=True),
            EvolutionStream(model, min_episodes=1, settings=SHORT, structured=True),
        ]
        found = asyncio.run(whole(chosen, asking, options.seeds, counts, proposers))
    else:
        found = asyncio.run(damaged(chosen, asking, options.seeds, counts))
    print(f"suggestions, all seeds and rounds: {dict(counts.most_common())}\n")
    report(list(table_of(found)), options)


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--store", default="memory:", help="keeps the answers")
    parser.add_argument("--model", default="local:smollm2-135m")
    parser.add_argument("--hide", choices=("lists", "forms", "nothing"), default="lists")
    parser.add_argument("--tools", type=int, default=45)
    parser.add_argument("--per-tool", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    main(parser.parse_args())
