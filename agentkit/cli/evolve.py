"""``agentkit evolve``: let tools' definitions repair themselves from what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from agentkit import evolution
from agentkit._waiting import wait_for
from agentkit.cli.evaluate import concurrency_of, is_local
from agentkit.cli.evolve_report import print_round
from agentkit.cli.loading import load_tools
from agentkit.cli.options import evaluation_store_url, json_option, model_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import event_signer, opened, opened_to_read
from agentkit.episodes import Episode
from agentkit.episodes.jsonl import read_episodes
from agentkit.errors import UsageError
from agentkit.evaluation.benchmarks.loading import load_benchmark
from agentkit.evaluation.held_out import HeldOut
from agentkit.evaluation.labels import EvaluationLabels
from agentkit.evaluation.running.settings import EvaluationSettings
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposals.evidence_proposer import EvidenceProposer
from agentkit.evolution.proposals.evolution_stream import EvolutionStream
from agentkit.evolution.proposals.feedback_stream import FeedbackStream
from agentkit.evolution.proposals.proposer import Proposer
from agentkit.evolution.round import Compare, Round, evolve
from agentkit.library import Author, EpisodeFilter, Library, LibraryChange, Store
from agentkit.library.opening import file_of, open_store
from agentkit.models.base import ModelSettings, ToolChoice
from agentkit.models.resolve import resolve_model


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
        concurrency: Attempts at the same time; None for one with a model in this process, else 8.
        answers: URL of the store that keeps the answers.
    """

    tasks: str
    environment: str | None
    data: Path | None
    model: str
    tool_choice: ToolChoice
    max_tokens: int | None
    concurrency: int | None
    answers: str


@click.command(
    epilog="""\b
Examples:
  agentkit evolve --run customers --tasks held_out.jsonl --environment shop.py:Shop
  agentkit evolve --episodes failures.jsonl --feedback-model openai:gpt-4o-mini
  agentkit evolve --run before --tasks bfcl --dry-run"""
)
@click.option(
    "--episodes",
    "source",
    metavar="URL|FILE",
    help="What happened: a store, or JSON lines. [default: the store of --store; for a --run that "
    "it does not have, the one of 'agentkit eval']",
)
@click.option("--run", metavar="NAME", help="Only the episodes of this run of 'agentkit eval'.")
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="Look only at these tools.")
@click.option(
    "--tasks",
    default="",
    metavar="NAME|FILE",
    help="Held-out tasks, as for 'agentkit eval'; those that the episodes come from are left out. "
    "Without them proposals wait for a person.",
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
    help="A model that reads what went wrong and what went well, and suggests changes; without "
    "one, only what tools and verifiers said is used, and descriptions in perfect episodes.",
)
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
    "--concurrency",
    type=click.IntRange(min=1),
    metavar="N",
    help="Held-out tasks at the same time. [default: 1 for local models, 8 for others]",
)
@click.option(
    "--answers",
    metavar="URL",
    default=evaluation_store_url,
    show_default="evaluations.db in your data folder",
    help="Where the answers to held-out tasks are kept; known ones are not asked again.",
)
@click.option(
    "--code",
    "targets",
    multiple=True,
    metavar="MODULE:NAME",
    help="Tools in Python, for composites that have to be tried again.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing; show what would come of it.")
@store_option
@json_option
def evolution_round(
    *,
    source: str | None,
    run: str | None,
    tools: Sequence[str],
    feedback_model: str | None,
    targets: Sequence[str],
    dry_run: bool,
    store_url: str,
    as_json: bool,
    **options: object,
) -> None:
    """Make one round: look at what went wrong, take suggestions, promote what gains.

    Every suggestion is checked, then compared with the present definition on held-out tasks; only
    a gain makes it active. What waits is for you to decide: 'agentkit proposals list'.
    """
    episodes = _episodes(source, store_url, run)
    with _writable(store_url, dry_run=dry_run) as store:
        manager = evolution.ToolManager(
            store,
            tools=load_tools(targets),
            author=Author(kind="program", name="agentkit"),
            signer=event_signer(),
        )
        outcome = _round(
            manager,
            episodes,
            tools,
            feedback_model=feedback_model,
            held_out=HeldOutOptions(**options),  # type: ignore[arg-type]  # click made them
        )
    say(f"looked at {plural(outcome.episodes, 'episode')}")
    if as_json:
        print_json(outcome.to_json())
    else:
        print_round(outcome, store_url, dry_run=dry_run)


def _round(
    manager: ToolManager,
    episodes: Sequence[Episode],
    tools: Sequence[str],
    *,
    feedback_model: str | None,
    held_out: HeldOutOptions,
) -> Round:
    absent = [name for name in tools if name not in manager.library]
    if absent:
        raise UsageError(f"the library has no tool {', '.join(map(repr, absent))}")
    with _compare(held_out, episodes, manager.library) as compare:
        return wait_for(
            evolve(
                manager,
                _proposers(feedback_model),
                episodes=episodes,
                compare=compare,
                tools=tools,
            )
        )


def _proposers(feedback_model: str | None) -> list[Proposer]:
    if feedback_model is None:
        return [EvidenceProposer(), EvolutionStream()]  # reads what models wrote unasked
    model = resolve_model(feedback_model)
    is_held = is_local(
        model.name
    )  # to the schema of a block, which small models do not keep to alone
    return [
        EvidenceProposer(),
        FeedbackStream(model, structured=is_held),
        EvolutionStream(model, structured=is_held),
    ]


@contextmanager
def _compare(
    asked: HeldOutOptions, episodes: Iterable[Episode], library: Library
) -> Iterator[Compare | None]:
    """Compares on held-out tasks; None where there are none."""
    if not asked.tasks:
        yield None
        return
    benchmark = load_benchmark(
        asked.tasks,
        data=asked.data,
        tools=() if asked.environment else library.tools.values(),
        environment=asked.environment,
    )
    model = resolve_model(asked.model)
    with opened(asked.answers) as answers:
        yield HeldOut(
            benchmark=benchmark,
            model=model,
            store=answers,
            learned_from=_tasks_of(episodes),
            settings=EvaluationSettings(
                tool_choice=asked.tool_choice,
                settings=ModelSettings(temperature=0.0, max_tokens=asked.max_tokens),
            ),
            concurrency=asked.concurrency or concurrency_of(model.name),
        )


def _tasks_of(episodes: Iterable[Episode]) -> frozenset[str]:
    """Ids of the tasks that episodes of evaluations come from."""
    labels = (EvaluationLabels.of(episode) for episode in episodes)
    return frozenset(one.task for one in labels if one is not None and one.task)


def _episodes(source: str | None, store_url: str, run: str | None) -> list[Episode]:
    """What is to be learned from; runs of ``agentkit eval`` have a store of their own."""
    places = [source or store_url]
    if source is None and run is not None:
        places.append(evaluation_store_url())
    labels = {} if run is None else {"run": run}
    for place in dict.fromkeys(places):
        found = _matching(place, labels)
        if found:
            return found
    of_run = "" if run is None else f" of a run {run!r}"
    raise UsageError(f"{' or '.join(places)} holds no episodes{of_run} to learn from")


def _matching(place: str, labels: Mapping[str, str]) -> list[Episode]:
    path = Path(place)
    if path.suffix == ".jsonl":
        return [one for one in read_episodes(path) if labels.items() <= one.metadata.items()]
    file = file_of(place)
    if file is not None and not file.exists():
        return []
    with opened(place) as store:
        return list(store.select(EpisodeFilter(labels=labels, oldest_first=True)))


@contextmanager
def _writable(store_url: str, *, dry_run: bool) -> Iterator[Store]:
    """The store; for a dry run a copy in memory, with the events of the original."""
    with opened_to_read(store_url) as store:
        if not dry_run:
            yield store
            return
        library, events = store.load(), tuple(store.events())
    copy = open_store("memory:")
    if len(library):
        change = LibraryChange(proposal_id="dry-run", upserts=library.definitions, events=events)
        copy.commit(change, expected_version=0)
    yield copy
