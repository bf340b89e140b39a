"""``agentkit tools mine``: composites from what episodes did, without asking any model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from agentkit.cli.loading import load_tools
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import Column, plural, print_json, print_table, say
from agentkit.cli.stores import author, event_signer, opened_to_read
from agentkit.episodes import Episode
from agentkit.episodes.jsonl import BrokenLine, read_episodes
from agentkit.errors import EpisodeFormatError
from agentkit.evolution.insertion.outcome import Added, InsertOutcome, Merged, Rejected
from agentkit.evolution.mining.candidates import MinedComposite
from agentkit.evolution.mining.dataflow import RouteEvidence
from agentkit.evolution.mining.inserting import insert_mined
from agentkit.evolution.mining.miner import MiningResult, MiningRules, mine
from agentkit.evolution.mining.patterns import SearchLimits
from agentkit.evolution.mining.sources import trajectories_of
from agentkit.library import Store


@click.command(
    "mine",
    short_help="Propose composites: calls that recur in episodes.",
    epilog="""\b
Examples:
  agentkit tools mine
  agentkit tools mine --from episodes.jsonl --min-support 5 --json
  agentkit tools mine --output proposals
  agentkit tools mine --insert --tools my_package.travel""",
)
@click.option(
    "--from",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Episodes as JSON lines.  [default: those in the store]",
)
@click.option(
    "--min-support",
    type=click.IntRange(min=2),
    metavar="N",
    default=3,
    show_default=True,
    help="Episodes that a group of calls has to occur in.",
)
@click.option(
    "--max-calls",
    type=click.IntRange(min=2, max=12),
    metavar="N",
    default=6,
    show_default=True,
    help="Most calls of one composite.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=20,
    show_default=True,
    help="Most composites, those that save most.",
)
@click.option("--failed-too", is_flag=True, help="Also take episodes that did not go well.")
@click.option("--insert", is_flag=True, help="Add them to the library, as 'tools compose' does.")
@click.option(
    "--tools",
    "targets",
    multiple=True,
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="With --insert: Python code of the tools that they call. Tools that read or change "
    "anything are answered from the episodes' records.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write each as NAME.py, to read, and NAME.json, the definition.",
)
@store_option
@json_option
def mine_command(
    file: Path | None,
    min_support: int,
    max_calls: int,
    limit: int,
    *,
    failed_too: bool,
    insert: bool,
    targets: Sequence[str],
    output: Path | None,
    store_url: str,
    as_json: bool,
) -> None:
    """Propose composites: groups of calls that recur in episodes and pass data to each other.

    Taken are episodes whose verdict is 'passed' and, of those without a verdict, the ones that
    finished without a failed call. Nothing is changed without --insert; with it the exit status is
    1 when one of the proposals was rejected.
    """
    rules = MiningRules(
        search=SearchLimits(min_support=min_support, max_calls=max_calls), limit=limit
    )
    with opened_to_read(store_url) as store:
        library = store.load()
        flow = trajectories_of(episodes_of(store, file), failed_too=failed_too)
        tools = {definition.name: definition for definition in library.definitions}
        result = mine(flow.trajectories, tools, rules)
        outcomes: Mapping[str, InsertOutcome] = {}
        if insert:
            code = load_tools(targets)
            outcomes = insert_mined(
                store, result.composites, tools=code, author=author(), signer=event_signer()
            )
    if output is not None:
        _write(output, result.composites)
    if as_json:
        print_json({**_record(result, outcomes), "routes": [_route(one) for one in flow.routes]})
    else:
        _report(result, outcomes)
    if any(isinstance(outcome, Rejected) for outcome in outcomes.values()):
        raise click.exceptions.Exit(1)


def episodes_of(store: Store, file: Path | None) -> list[Episode]:
    """The episodes in a file, or else those in the store; broken lines are told.

    Raises:
        EpisodeFormatError: Nothing in the file is an episode.
    """
    if file is None:
        return list(store.select())
    broken: list[BrokenLine] = []
    episodes = list(read_episodes(file, on_broken=broken.append))
    for line in broken:
        say(f"skipped {line}")
    if broken and not episodes:
        raise EpisodeFormatError(f"{file} holds no episode: {plural(len(broken), 'line')} skipped")
    return episodes


def _write(folder: Path, composites: Sequence[MinedComposite]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for composite in composites:
        (folder / f"{composite.name}.py").write_text(composite.source, encoding="utf-8")
        text = json.dumps(composite.definition.to_json(), indent=2, ensure_ascii=False)
        (folder / f"{composite.name}.json").write_text(text + "\n", encoding="utf-8")
    say(f"{plural(2 * len(composites), 'file')} written to {folder}")


def _report(result: MiningResult, outcomes: Mapping[str, InsertOutcome]) -> None:
    if result.composites:
        columns = [
            Column(title="composite", fit="fold"),
            Column(title="calls", align="right"),
            Column(title="episodes", align="right"),
            Column(title="uses", align="right"),
            Column(title="saves", align="right"),
        ]
        print_table(columns, (_row(composite) for composite in result.composites))
    for composite in result.composites:
        click.echo(f"\n{composite.source}", nl=False)
        if composite.name in outcomes:
            click.echo(f"# {_told(outcomes[composite.name])}")
    if result.unknown_tools:
        say(f"not in the library, so in no composite: {', '.join(result.unknown_tools)}")
    found, episodes = len(result.composites), plural(result.trajectories, "episode")
    say(
        f"{plural(found, 'composite')} from {episodes}: "
        f"{result.calls:,} calls would have been {result.calls_after:,}"
    )


def _row(composite: MinedComposite) -> tuple[object, ...]:
    return composite.name, composite.calls, composite.support, composite.uses, composite.saves


def _told(outcome: InsertOutcome) -> str:
    match outcome:
        case Added():
            return f"added in library version {outcome.version}, depth {outcome.depth}"
        case Merged():
            return f"merged into {outcome.into}: {outcome.reason}"
        case Rejected():
            return f"rejected [{outcome.code}]: {outcome.explanation}"


def _route(evidence: RouteEvidence) -> dict[str, Any]:
    route = evidence.route
    return {
        "from": route.producer,
        "path": list(route.path),
        "cast": route.cast,
        "to": route.consumer,
        "argument": route.argument,
        "support": evidence.support,
        "confidence": evidence.confidence,
        "places": evidence.places,
    }


def _record(result: MiningResult, outcomes: Mapping[str, InsertOutcome]) -> dict[str, Any]:
    return {
        "episodes": result.trajectories,
        "calls": result.calls,
        "calls_after": result.calls_after,
        "unknown_tools": list(result.unknown_tools),
        "composites": [
            {
                "name": composite.name,
                "calls": composite.calls,
                "support": composite.support,
                "uses": composite.uses,
                "saves": composite.saves,
                "round": composite.round,
                "source": composite.source,
                "evidence": list(composite.evidence),
                "definition": composite.definition.to_json(),
                "outcome": outcomes[composite.name].to_json()
                if composite.name in outcomes
                else None,
            }
            for composite in result.composites
        ],
    }
