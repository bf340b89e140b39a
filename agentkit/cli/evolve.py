"""``agentkit evolve``: let tools' definitions repair themselves from what went wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import click

from agentkit._waiting import wait_for
from agentkit.cli.agents import tell_binding
from agentkit.cli.boundary import Failure
from agentkit.cli.evaluate import (
    concurrency_of,
    concurrency_option,
    data_option,
    environment_option,
    is_local,
    max_steps_option,
    max_tokens_option,
    tool_choice_option,
)
from agentkit.cli.evaluate_report import listener, tell_left_out
from agentkit.cli.evolve_report import log_lines, print_round
from agentkit.cli.loading import load_tools
from agentkit.cli.options import (
    answers_option,
    command,
    common_options,
    flag,
    is_typed,
    model_option,
    option,
    seconds,
    several,
    tools_option,
)
from agentkit.cli.output import LineProgress, print_json, say
from agentkit.cli.project import current_project
from agentkit.cli.stores import manager_of, opened, opened_if_there, opened_to_read
from agentkit.episodes import Episode
from agentkit.episodes.files import read_episodes
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
from agentkit.library import EpisodeFilter, Library, Store
from agentkit.library.code_registration import bind_code
from agentkit.models.base import ModelSettings, ToolChoice
from agentkit.models.resolve import resolve_model

WATCH_SECONDS = 30.0
"""How often ``--watch`` looks for new episodes."""

STEPS = ("evidence", "evolution", "feedback", "composites", "mine", "learn")
"""What a round may do; 'feedback' and 'composites' ask the model of --feedback-model."""

_NEXT = "agentkit evolve --tools FILE.py, or agentkit tools add FILE.py first"


def _steps(_: click.Context, __: click.Parameter, words: str | None) -> frozenset[str]:
    """The steps that are named; a callback of an option."""
    chosen = frozenset(STEPS if words is None else (one.strip() for one in words.split(",")))
    if unknown := sorted(chosen - set(STEPS)):
        raise click.BadParameter(f"{unknown[0]!r} is no step; there are {', '.join(STEPS)}")
    return chosen


@command()
@option(
    "--episodes",
    "source",
    metavar="URL|FILE",
    help="What happened: a store, or JSON lines. [default: the store of --store, and the one of "
    "'agentkit eval']",
)
@option("--run", metavar="NAME", help="Only the episodes of this run of 'agentkit eval'.")
@several("--tool", "tools", metavar="NAME", help="Look only at this tool")
@option(
    "--tasks",
    default="",
    metavar="NAME|FILE",
    help="Held-out tasks, as for 'agentkit eval'. Those that the episodes come from are left out; "
    "where all were asked, one half teaches and the other decides. Without tasks proposals wait "
    "for a person.",
)
@environment_option
@data_option
@model_option
@option(
    "--feedback-model",
    metavar="NAME",
    help="A model that reads what went wrong and what went well, and suggests changes and "
    "composites; without one, only what tools and verifiers said is used.",
)
@option(
    "--judge",
    default="",
    metavar="MODEL",
    help="A model that reads the changes that need a judge; without one they wait for a person.",
)
@option(
    "--only",
    "steps",
    metavar="STEPS",
    callback=_steps,
    help=f"Do only these steps, between commas: {', '.join(STEPS)}. [default: all]",
)
@flag("--shadow", help="Try proposals unseen beside the answers first.")
@flag("--canary", help="Let proposals serve a share of the sessions first.")
@tool_choice_option
@max_tokens_option
@max_steps_option
@concurrency_option
@answers_option
@tools_option
@seconds(
    "--watch",
    is_flag=False,
    flag_value=WATCH_SECONDS,
    metavar="[SECONDS]",
    help=f"Go on: make a round when there are new episodes, looked for every {WATCH_SECONDS:g} s.",
)
@option("--while-process", type=int, hidden=True, help="End --watch with this process.")
@common_options
def evolution_round(
    *,
    watch: float | None,
    while_process: int | None,
    store_url: str,
    shadow: bool,
    canary: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Learn from what happened: suggest changes of definitions, promote what gains.

    Every suggestion is checked, then compared with the present definition on held-out tasks; only
    a gain makes it active. Without tasks it waits for you ('agentkit review'), or for what shadow
    and canary show. Each round also advances what waited. The exit status is 1 when nothing was
    learned because the library does not know the tools.

    Examples:
      agentkit evolve
      agentkit evolve --tools my_shop.py --tasks held_out.jsonl --environment my_shop.py
      agentkit evolve --feedback-model openai:gpt-4o-mini --judge openai:gpt-4o
      agentkit evolve --watch --canary
    """
    policy = replace(current_project().policy, shadow=shadow, canary=canary)
    asked = RoundOptions(**options, policy=policy, quiet=watch is not None)
    if is_benchmark_name(asked.tasks) and not is_typed("environment"):
        asked = replace(asked, environment=None)  # the project's is for the project's tasks
    if watch is not None:
        if as_json:
            raise UsageError("--watch writes what it does, line by line; leave --json out")
        _watch(asked, store_url, pause=watch, parent=while_process)
        return
    opening = opened if asked.targets else opened_to_read
    with opening(store_url) as store, evolving(store_url):
        outcome = asked.round(store, store_url)
    print_json(outcome.to_json()) if as_json else print_round(outcome)
    unknown = [one.tool for one in outcome.passed_over if one.reason == "not_in_library"]
    if unknown and not outcome.has_learned:
        raise Failure(
            f"the library does not know {', '.join(map(repr, unknown))}, so nothing was learned; "
            f"give their code: {_NEXT}"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RoundOptions:
    """What a command line asks a round to do; see the options of ``agentkit evolve``.

    Attributes:
        policy: What proposals have to go through.
        quiet: Tell no progress, as for a log.
    """

    source: str | None
    run: str | None
    tools: Sequence[str]
    tasks: str
    environment: str | None
    data: Path | None
    model: str
    feedback_model: str | None
    judge: str
    steps: frozenset[str]
    tool_choice: ToolChoice
    max_tokens: int | None
    max_steps: int | None
    concurrency: int | None
    answers: str
    targets: Sequence[str]
    policy: LifecyclePolicy
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
        return tuple(dict.fromkeys((store_url, self.answers)))

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
        if not self.tasks:
            yield None, episodes
            return
        benchmark = load_benchmark(
            self.tasks,
            data=self.data,
            tools=() if self.environment else library.tools.values(),
            environment=self.environment,
        )
        tell_left_out(benchmark, self.tasks)
        labels = filter(None, map(EvaluationLabels.of, episodes))
        seen = frozenset(one.task for one in labels if one.task)
        deciding = deciding_tasks(benchmark.tasks, seen=seen)
        lessons = [one for one in episodes if one.metadata.get("task") not in deciding]
        model = resolve_model(self.model)
        with opened(self.answers) as answers:
            compare = HeldOut(
                benchmark=benchmark,
                model=model,
                store=answers,
                learned_from={one.task_id for one in benchmark.tasks} - deciding,
                settings=EvaluationSettings(
                    tool_choice=self.tool_choice,
                    max_steps=self.max_steps,
                    settings=ModelSettings(temperature=0.0, max_tokens=self.max_tokens),
                ),
                concurrency=self.concurrency or concurrency_of(model.name),
                begin=lambda words: ignore if self.quiet else listener(LineProgress(words)),
            )
            yield compare, lessons


def _watch(asked: RoundOptions, store_url: str, *, pause: float, parent: int | None) -> None:
    """Make a round whenever something happened, until Ctrl-C or until ``parent`` has ended."""
    last = None
    with opened(store_url) as store, _in_turn(store_url, pause=pause, parent=parent):
        say(f"watching {store_url} every {pause:g} s; Ctrl-C stops")
        while parent is None or os.getppid() == parent:
            newest = _newest(asked.places(store_url), asked.run)
            if newest is not None and newest != last:
                last = newest
                _watched_round(asked, store, store_url)
            time.sleep(pause)


@contextmanager
def _in_turn(store_url: str, *, pause: float, parent: int | None) -> Iterator[None]:
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
            time.sleep(pause)
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
