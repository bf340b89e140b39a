"""``agentkit evolve``: let tools' definitions repair themselves from what went wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import click

from agentkit._waiting import wait_for
from agentkit.cli.agents import tell_binding
from agentkit.cli.boundary import Failure
from agentkit.cli.evaluate import concurrency_of, is_local
from agentkit.cli.evaluate_report import listener, tell_left_out
from agentkit.cli.evolve_report import log_lines, print_round
from agentkit.cli.loading import load_tools
from agentkit.cli.managing import manager_of
from agentkit.cli.options import (
    answers_option,
    is_typed,
    json_option,
    model_option,
    store_option,
    tools_option,
)
from agentkit.cli.output import print_json, say
from agentkit.cli.progress import progress
from agentkit.cli.project import current_project
from agentkit.cli.stores import opened, opened_if_there, opened_to_read
from agentkit.episodes import Episode
from agentkit.episodes.jsonl import read_episodes
from agentkit.errors import AgentKitError, StoreError, UsageError
from agentkit.evaluation.held_out import HeldOut, deciding_tasks, is_held_out_answer
from agentkit.evaluation.loading import is_benchmark_name, load_benchmark
from agentkit.evaluation.settings import EvaluationLabels, EvaluationSettings, ignore
from agentkit.evolution.compare import Compare
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.evolver_lock import evolving
from agentkit.evolution.learning import LearningConfig
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.mining import MiningConfig
from agentkit.evolution.proposer import Proposer
from agentkit.evolution.proposers.composites import CompositeStream
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.streams import EvolutionStream, FeedbackStream
from agentkit.evolution.round import EvolutionReport, evolve
from agentkit.library import EpisodeFilter, Library, LibraryChange, Store
from agentkit.library.code_registration import bind_code
from agentkit.library.opening import open_store
from agentkit.models.base import ModelSettings, ToolChoice
from agentkit.models.resolve import resolve_model

WATCH_SECONDS = 30.0
"""How often ``--watch`` looks for new episodes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HeldOutOptions:
    """How held-out tasks are asked.

    Attributes:
        tasks: A benchmark's name or a file of tasks; empty for none.
        environment: The world of the tasks' tools.
        data: Where a benchmark's files are.
        model: Answers.
        tool_choice: Whether it may or must call a tool.
        max_tokens: Longest answer.
        max_steps: Model turns for each task; None for as many as ``EvaluationSettings`` says.
        concurrency: Attempts at the same time; None for one with a model in this process, else 8.
        answers: URL of the store that keeps the answers.
    """

    tasks: str
    environment: str | None
    data: Path | None
    model: str
    tool_choice: ToolChoice
    max_tokens: int | None
    max_steps: int | None
    concurrency: int | None
    answers: str


STEPS = ("evidence", "evolution", "feedback", "composites", "mine", "learn")
"""What a round may do; 'feedback' and 'composites' ask the model of --feedback-model."""


@click.command(
    epilog="""\b
Examples:
  agentkit evolve
  agentkit evolve --tools my_shop.py --tasks held_out.jsonl --environment my_shop.py
  agentkit evolve --feedback-model openai:gpt-4o-mini --judge openai:gpt-4o
  agentkit evolve --watch --canary"""
)
@click.option(
    "--episodes",
    "source",
    metavar="URL|FILE",
    help="What happened: a store, or JSON lines. [default: the store of --store, and the one of "
    "'agentkit eval']",
)
@click.option("--run", metavar="NAME", help="Only the episodes of this run of 'agentkit eval'.")
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="Look only at these tools.")
@click.option(
    "--tasks",
    default="",
    metavar="NAME|FILE",
    help="Held-out tasks, as for 'agentkit eval'. Those that the episodes come from are left out; "
    "where all were asked, one half teaches and the other decides. Without tasks proposals wait "
    "for a person.",
)
@click.option(
    "--environment",
    metavar="FILE.py",
    help="The world that the tools of the tasks act on, as FILE.py or FILE.py:NAME.",
)
@click.option("--data", type=click.Path(path_type=Path), help="Where the benchmark's files are.")
@model_option
@click.option(
    "--feedback-model",
    metavar="NAME",
    help="A model that reads what went wrong and what went well, and suggests changes and "
    "composites; without one, only what tools and verifiers said is used.",
)
@click.option(
    "--judge",
    default="",
    metavar="MODEL",
    help="A model that reads the changes that need a judge; without one they wait for a person.",
)
@click.option(
    "--only",
    metavar="STEPS",
    help=f"Do only these steps, between commas: {', '.join(STEPS)}. [default: all]",
)
@click.option("--shadow", is_flag=True, help="Try proposals unseen beside the answers first.")
@click.option("--canary", is_flag=True, help="Let proposals serve a share of the sessions first.")
@click.option(
    "--tool-choice",
    type=click.Choice(("auto", "required")),
    default="auto",
    show_default=True,
    help="Whether the model may or must call a tool in held-out tasks.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Longest answer in held-out tasks. [default: the model's own]",
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    metavar="N",
    help="Model turns for each held-out task. [default: 1; 21 where tools are run]",
)
@click.option(
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="Held-out tasks at the same time. [default: 1 for local models, 8 for others]",
)
@answers_option
@tools_option
@click.option(
    "--watch",
    type=click.FloatRange(min=0, min_open=True),
    is_flag=False,
    flag_value=WATCH_SECONDS,
    metavar="[SECONDS]",
    help=f"Go on: make a round when there are new episodes, looked for every {WATCH_SECONDS:g} s.",
)
@click.option("--while-process", type=int, hidden=True, help="End --watch with this process.")
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would come of it.")
@store_option
@json_option
def evolution_round(
    *,
    watch: float | None,
    while_process: int | None,
    dry_run: bool,
    store_url: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn from what happened: suggest changes of definitions, promote what gains.

    Every suggestion is checked, then compared with the present definition on held-out tasks; only
    a gain makes it active. Without tasks it waits for you ('agentkit review'), or for what shadow
    and canary show. Each round also brings on what waited. The exit status is 1 when nothing was
    learned because the library does not know the tools.
    """
    asked = _asked(options, quiet=watch is not None)
    if watch is not None:
        if dry_run or as_json:
            raise UsageError("--watch writes what it does, line by line; leave --dry-run, --json")
        _watch(asked, store_url, seconds=watch, parent=while_process)
        return
    lock = nullcontext() if dry_run else evolving(store_url)
    with _writable(store_url, dry_run=dry_run, new=bool(asked.targets)) as store, lock:
        outcome = asked.round(store, store_url)
    if as_json:
        print_json(outcome.to_json())
    else:
        print_round(outcome, dry_run=dry_run)
    unknown = [one.tool for one in outcome.passed_over if one.reason == "not_in_library"]
    if unknown and not outcome.has_learned:
        raise Failure(
            f"the library does not know {', '.join(map(repr, unknown))}, so nothing was learned; "
            f"give their code: {_NEXT}"
        )


_NEXT = "agentkit evolve --tools FILE.py, or agentkit tools add FILE.py first"


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundOptions:
    """What a command line asks a round to do.

    Attributes:
        source: Where the episodes are; None for the stores of traffic and of evaluations.
        run: Only the episodes of this evaluation run; None for all.
        tools: Look only at these tools.
        targets: Code of tools.
        feedback_model: Suggests changes; None for no model.
        judge: Reads changes that need a judge; empty for nobody.
        steps: What to do.
        policy: What proposals have to go through.
        held_out: The tasks that decide.
        quiet: Tell no progress, as for a log.
    """

    source: str | None
    run: str | None
    tools: Sequence[str]
    targets: Sequence[str]
    feedback_model: str | None
    judge: str
    steps: frozenset[str]
    policy: LifecyclePolicy
    held_out: HeldOutOptions
    quiet: bool = False

    def round(self, store: Store, store_url: str) -> EvolutionReport:
        """Make one round.

        Raises:
            UsageError: There are no episodes, or no such tool.
        """
        manager = self._manager(store)
        absent = [name for name in self.tools if name not in manager.library]
        if absent:
            raise UsageError(f"the library has no tool {', '.join(map(repr, absent))}")
        episodes = _episodes(self.places(store_url), self.run)
        with self._compared(episodes, manager.library) as (compare, lessons):
            return wait_for(
                evolve(
                    manager,
                    self._proposers(),
                    episodes=lessons,
                    compare=compare,
                    rules=current_project().rules,
                    tools=self.tools,
                    mining=MiningConfig() if "mine" in self.steps else None,
                    learning=LearningConfig() if "learn" in self.steps else None,
                )
            )

    def places(self, store_url: str) -> tuple[str, ...]:
        """Where episodes are; runs of ``agentkit eval`` have a store of their own."""
        if self.source is not None:
            return (self.source,)
        return tuple(dict.fromkeys((store_url, self.held_out.answers)))

    def _manager(self, store: Store) -> ToolManager:
        """The manager, which knows all tools whose code was given."""
        code = load_tools(self.targets)
        tell_binding(bind_code(store, code)[1])
        return manager_of(store, code, lifecycle=self.policy, judge=self.judge)

    def _proposers(self) -> list[Proposer]:
        found: list[tuple[str, Proposer]] = [("evidence", EvidenceProposer())]
        if self.feedback_model is None:
            found.append(("evolution", EvolutionStream()))  # reads what models wrote unasked
        else:
            model = resolve_model(self.feedback_model)
            # Small models do not keep to the form of a block alone.
            is_held = is_local(model.name)
            found += [
                ("feedback", FeedbackStream(model, structured=is_held)),
                ("evolution", EvolutionStream(model, structured=is_held)),
                ("composites", CompositeStream(model)),
            ]
        return [proposer for step, proposer in found if step in self.steps]

    @contextmanager
    def _compared(
        self, episodes: Sequence[Episode], library: Library
    ) -> Iterator[tuple[Compare | None, Sequence[Episode]]]:
        """What compares on held-out tasks, None where there are none, and what may be learned."""
        asked = self.held_out
        if not asked.tasks:
            yield None, episodes
            return
        benchmark = load_benchmark(
            asked.tasks,
            data=asked.data,
            tools=() if asked.environment else library.tools.values(),
            environment=asked.environment,
        )
        tell_left_out(benchmark, asked.tasks)
        deciding = deciding_tasks(benchmark.tasks, seen=_tasks_of(episodes))
        lessons = [one for one in episodes if one.metadata.get("task") not in deciding]
        model = resolve_model(asked.model)
        with opened(asked.answers) as answers, progress() as begin:
            compare = HeldOut(
                benchmark=benchmark,
                model=model,
                store=answers,
                learned_from={one.task_id for one in benchmark.tasks} - deciding,
                settings=EvaluationSettings(
                    tool_choice=asked.tool_choice,
                    max_steps=asked.max_steps,
                    settings=ModelSettings(temperature=0.0, max_tokens=asked.max_tokens),
                ),
                concurrency=asked.concurrency or concurrency_of(model.name),
                begin=lambda words: ignore if self.quiet else listener(begin(words)),
            )
            yield compare, lessons


def _asked(options: dict[str, Any], *, quiet: bool) -> RoundOptions:
    only = options.pop("only")
    steps = frozenset(STEPS if only is None else (one.strip() for one in only.split(",")))
    if not steps <= frozenset(STEPS):
        odd = ", ".join(sorted(map(repr, steps - frozenset(STEPS))))
        raise UsageError(f"--only has no step {odd}; there are {', '.join(STEPS)}")
    stages = {name: options.pop(name) for name in ("shadow", "canary")}
    policy = replace(current_project().policy, **stages)
    names = ("source", "run", "tools", "targets", "feedback_model", "judge")
    own = {name: options.pop(name) for name in names}
    if is_benchmark_name(options["tasks"]) and not is_typed("environment"):
        options["environment"] = None  # the project's is for the project's tasks
    held_out = HeldOutOptions(**options)
    return RoundOptions(**own, steps=steps, policy=policy, held_out=held_out, quiet=quiet)


def _watch(asked: RoundOptions, store_url: str, *, seconds: float, parent: int | None) -> None:
    """Make a round whenever something happened, until Ctrl-C or until ``parent`` has ended."""
    last = None
    with opened(store_url) as store, _in_turn(store_url, seconds=seconds, parent=parent):
        say(f"watching {store_url} every {seconds:g} s; Ctrl-C stops")
        while parent is None or os.getppid() == parent:
            newest = _newest(asked.places(store_url), asked.run)
            if newest is not None and newest != last:
                last = newest
                _watched_round(asked, store, store_url)
            time.sleep(seconds)


@contextmanager
def _in_turn(store_url: str, *, seconds: float, parent: int | None) -> Iterator[None]:
    """The right to evolve; beside a server it is waited for, since the round of another ends."""
    with ExitStack() as held:
        told = False
        while True:
            try:
                held.enter_context(evolving(store_url))
                break
            except StoreError as error:
                if parent is None or os.getppid() != parent:
                    raise
                if not told:
                    say(f"{error}; until then this server does not evolve")
                told = True
            time.sleep(seconds)
        yield


def _watched_round(asked: RoundOptions, store: Store, store_url: str) -> None:
    """A round that leaves lines in a log; where it fails, the next one may do better."""
    try:
        outcome = asked.round(store, store_url)
    except AgentKitError as error:
        say(f"the round failed, and is made again with the next episodes: {error}")
        return
    for line in log_lines(outcome):
        say(line)


def _newest(places: Sequence[str], run: str | None) -> tuple[str, ...] | None:
    """The ids of the newest records of the places that rounds read; None when there are none."""
    labels = {} if run is None else {"run": run}
    found = []
    for place in places:
        with opened_if_there(place) as store:
            records = () if store is None else store.select(EpisodeFilter(labels=labels))
            newest = (one for one in records if not is_held_out_answer(one))
            found += [one.episode_id for one in islice(newest, 1)]
    return tuple(found) or None


def _tasks_of(episodes: Iterable[Episode]) -> frozenset[str]:
    """Ids of the tasks that episodes of evaluations come from."""
    labels = (EvaluationLabels.of(episode) for episode in episodes)
    return frozenset(one.task for one in labels if one is not None and one.task)


def _episodes(places: Sequence[str], run: str | None) -> list[Episode]:
    """What is to be learned from: never the answers to held-out tasks."""
    labels = {} if run is None else {"run": run}
    found = [one for place in places for one in _matching(place, labels)]
    lessons = [one for one in found if not is_held_out_answer(one)]
    if not lessons:
        of_run = "" if run is None else f" of a run {run!r}"
        raise UsageError(
            f"{' or '.join(places)} holds no episodes{of_run} to learn from; 'agentkit chat', "
            "'agentkit serve' and 'agentkit eval' make some"
        )
    return lessons


def _matching(place: str, labels: Mapping[str, str]) -> list[Episode]:
    path = Path(place)
    if path.suffix == ".jsonl":
        return [one for one in read_episodes(path) if labels.items() <= one.metadata.items()]
    with opened_if_there(place) as store:
        which = EpisodeFilter(labels=labels, oldest_first=True)
        return [] if store is None else list(store.select(which))


@contextmanager
def _writable(store_url: str, *, dry_run: bool, new: bool) -> Iterator[Store]:
    """The store, made where tools are given; for a dry run a copy in memory, with all events."""
    opening = opened if new and not dry_run else opened_to_read
    with opening(store_url) as store:
        if not dry_run:
            yield store
            return
        library, events = store.load(), tuple(store.events())
    copy = open_store("memory:")
    if len(library):
        change = LibraryChange(proposal_id="dry-run", upserts=library.definitions, events=events)
        copy.commit(change, expected_version=0)
    yield copy
