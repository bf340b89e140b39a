"""``agentkit search``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import click

from agentkit._waiting import wait_for
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import (
    Column,
    one_line,
    plural,
    print_json,
    print_table,
    print_text,
    say,
    stdout,
)
from agentkit.cli.stores import opened_to_read
from agentkit.episodes import StageReport
from agentkit.library import Library
from agentkit.retrieval.cascade import default_retriever
from agentkit.retrieval.features import GraphFeatures, graph_features
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.retriever import Hit, Retrieval
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.types.fit import Unification, signature_types, unify_signatures

_SHOWN_AS = {"shortlist": "shortlist, as cards", "offer": "offer, as schemas"}
"""Reports about what the model gets: their tokens are really spent, cards first."""

_SCORE_WIDTH = 6
_TOOL_WIDTH = 40
"""Columns that rank, mark, tool and score take up at least."""


def print_explanation(found: Retrieval, library: Library, limit: int) -> None:
    """Tables for people: stages, scores by field, reasons; then what else there is to know."""
    goals = [goal for goal in found.goals if goal.intent != found.query or is_typed(goal)]
    if goals:
        click.echo("Steps\n")
        print_table(
            [
                Column(title="#", align="right"),
                Column(title="looked for", fit="fold"),
                Column(title="takes", fit="fold"),
                Column(title="gives", fit="fold"),
            ],
            (
                (number, one_line(goal.intent), _inputs(goal), _output(goal))
                for number, goal in enumerate(goals, start=1)
            ),
        )
        click.echo()
    click.echo("Stages\n")
    _print_stages(found.stages)
    click.echo()
    print_text("CPU times are those of a first query, loading included; later ones take less.")
    if found.hits:
        click.echo("\nScores\n")
        _print_scores(found, limit)
        click.echo("\nReasons\n")
        _print_reasons(found, library, limit)
    for line in _remarks(found):
        click.echo()
        print_text(line)


def explanation(found: Retrieval) -> dict[str, Any]:
    """The same as JSON, beside what a search prints anyway."""
    return {
        "steps": [
            {
                "intent": goal.intent,
                "argument_names": list(goal.argument_names),
                "inputs": _inputs(goal),
                "output": _output(goal),
            }
            for goal in found.goals
        ],
        "stages": [
            {
                "stage": report.stage,
                "goal": report.goal,
                "survivors": report.survivors,
                "tokens": report.tokens,
                "cpu_ms": round(report.cpu_seconds * 1e3, 3),
                "ms": round(report.seconds * 1e3, 3),
            }
            for report in found.stages
        ],
        "notes": list(found.notes),
        "unmatched": list(found.unmatched),
    }


def hit_explanation(hit: Hit, found: Retrieval, library: Library) -> dict[str, Any]:
    """What is known about one hit, as JSON."""
    features = _features(hit, library)
    types = _types(hit.definition, found.goals)
    return {
        "fields": {name: round(score, 4) for name, score in hit.fields.items()},
        "types": None if types is None else {"score": types.score, "reasons": [*types.reasons]},
        "graph": {
            "depth": features.depth,
            "children": [*features.children],
            "subgraph_size": features.subgraph_size,
        },
    }


def is_typed(goal: SubGoal) -> bool:
    """Whether the types of a goal say anything."""
    slots = (*goal.inputs, *filter(None, (goal.output,)))
    return any(not slot.is_untyped for slot in slots)


def _print_stages(reports: Sequence[StageReport]) -> None:
    by_goal = any(report.goal for report in reports)
    columns = [
        Column(title="stage"),
        *([Column(title="step", fit="cut")] if by_goal else []),
        Column(title="tools left", align="right"),
        Column(title="tokens", align="right"),
        Column(title="CPU ms", align="right"),
    ]
    print_table(columns, (_stage_row(report, by_goal=by_goal) for report in reports))


def _stage_row(report: StageReport, *, by_goal: bool) -> tuple[object, ...]:
    return (
        _SHOWN_AS.get(report.stage, _words(report.stage)),
        *([one_line(report.goal)] if by_goal else []),
        f"{report.survivors:,}",
        f"{report.tokens:,}",
        f"{report.cpu_seconds * 1e3:.2f}" if report.cpu_seconds else "",
    )


def _print_scores(found: Retrieval, limit: int) -> None:
    """One column a kind of evidence, or all in one where the line is too short for that."""
    hits = found.hits[:limit]
    offered = {definition.name for definition in found.offered}
    kinds = list(dict.fromkeys(kind for hit in hits for kind in hit.fields))
    wide = stdout().width >= _TOOL_WIDTH + sum(max(len(kind), _SCORE_WIDTH) + 2 for kind in kinds)
    titles = [_words(kind) for kind in kinds] if wide else ["from"]
    columns = [
        Column(title="#", align="right"),
        Column(title=""),
        Column(title="tool", fit="fold"),
        Column(title="score", align="right"),
        *(Column(title=title, align="right" if wide else "left") for title in titles),
    ]
    if not wide:
        columns[-1] = replace(columns[-1], fit="fold")
    print_table(
        columns,
        (
            (
                rank,
                "*" if hit.definition.name in offered else "",
                hit.definition.name,
                f"{hit.score:.3f}",
                *(_shares(hit, kinds) if wide else [", ".join(_named_shares(hit))]),
            )
            for rank, hit in enumerate(hits, start=1)
        ),
    )


def _shares(hit: Hit, kinds: Sequence[str]) -> Iterator[str]:
    return (f"{hit.fields[kind]:+.3f}" if kind in hit.fields else "" for kind in kinds)


def _named_shares(hit: Hit) -> Iterator[str]:
    return (f"{_words(kind)} {score:+.3f}" for kind, score in hit.fields.items())


def _words(name: str) -> str:
    return name.replace("_", " ")


def _print_reasons(found: Retrieval, library: Library, limit: int) -> None:
    typed = any(map(is_typed, found.goals))
    rows = []
    for rank, hit in enumerate(found.hits[:limit], start=1):
        types = _types(hit.definition, found.goals)
        words = [] if types is None else [_type_words(types)]
        place = _place(_features(hit, library))
        rows.append((rank, hit.definition.name, hit.reason, *words, place))
    graph = any(row[-1] for row in rows)
    columns = [
        Column(title="#", align="right"),
        Column(title="tool", fit="fold"),
        Column(title="why", fit="fold"),
        *([Column(title="types", fit="fold")] if typed else []),
        *([Column(title="composite", fit="fold")] if graph else []),
    ]
    print_table(columns, (row if graph else row[:-1] for row in rows))


def _features(hit: Hit, library: Library) -> GraphFeatures:
    return graph_features(library, hit.definition.name)


def _place(features: GraphFeatures) -> str:
    """Where a composite stands; empty for a primitive."""
    if not features.children:
        return ""
    depth = "unknown" if features.depth is None else str(features.depth)
    return f"depth {depth}, calls {', '.join(features.children)} ({features.subgraph_size} tools)"


def _types(definition: ToolDefinition, goals: Sequence[SubGoal]) -> Unification | None:
    """How well the tool's types fit the step that they fit best; None when no step has types."""
    typed = [goal for goal in goals if is_typed(goal)]
    tool = signature_types(definition) if typed else None
    fits = [unify_signatures(goal.inputs, goal.output, tool) for goal in typed if tool is not None]
    return max(fits, key=lambda fit: fit.score, default=None)


def _type_words(fit: Unification) -> str:
    return "fit" if not fit.reasons else f"x{fit.score:g}: " + "; ".join(fit.reasons)


def _inputs(goal: SubGoal) -> str:
    return ", ".join(
        f"{slot.name}: {slot.type}" if slot.name else str(slot.type) for slot in goal.inputs
    )


def _output(goal: SubGoal) -> str:
    return "" if goal.output is None else str(goal.output.type)


def _remarks(found: Retrieval) -> Iterator[str]:
    if not any(map(is_typed, found.goals)):
        yield "Types: the request says none, so they changed nothing."
    if found.unmatched:
        yield f"No tool has: {', '.join(found.unmatched)}"
    for note in found.notes:
        yield f"Note: {note}"


@click.command(
    epilog="""\b
Examples:
  agentkit search "area of a triangle"
  agentkit search "book a flight" --limit 3 --json
  agentkit search "book a flight" --explain"""
)
@click.argument("query")
@click.option(
    "--limit",
    default=10,
    show_default=True,
    type=click.IntRange(min=1),
    metavar="N",
    help="Most rows.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Show what each stage left and cost, and where the score of each tool comes from.",
)
@store_option
@json_option
def search(query: str, *, limit: int, explain: bool, store_url: str, as_json: bool) -> None:
    """Rank the library's tools for QUERY, as an agent would.

    Tools marked with * would be offered to the model in full; the others of the shortlist would
    appear as one-line cards at most.
    """
    with opened_to_read(store_url) as store:
        library = store.load()  # while it is open it also gives, and keeps, the search index
        found = wait_for(default_retriever().retrieve(query, library))
    if as_json:
        print_json(_as_json(found, library, limit, explain=explain))
        return
    if explain:
        print_explanation(found, library, limit)
    if not found.hits:
        for line in _why_nothing(found, library, explain=explain):
            say(line)
        return
    if not explain:
        _print(found, limit)
    say(_outline(found, library))


def _why_nothing(found: Retrieval, library: Library, *, explain: bool) -> Iterator[str]:
    """What to do about an empty answer, unless an explanation has said it already."""
    if not library:
        yield "The library is empty; 'agentkit tools import FILE' or 'agentkit tools add' fills it."
        return
    yield (
        f"Nothing in library version {library.version} ({plural(len(library), 'tool')}) matches."
    )
    if explain:
        return
    if found.unmatched:
        yield f"No tool has: {', '.join(found.unmatched)}"
    elif not terms(found.query):
        yield "The query has no words to search for."
    yield from (f"Note: {note}" for note in found.notes)


def _print(found: Retrieval, limit: int) -> None:
    offered = {definition.name for definition in found.offered}
    columns = [
        Column(title="#", align="right"),
        Column(title="", fit="keep"),
        Column(title="tool", fit="fold"),
        Column(title="score", align="right"),
        Column(title="summary", fit="cut"),
    ]
    print_table(
        columns,
        (
            (
                rank,
                "*" if hit.definition.name in offered else "",
                hit.definition.name,
                f"{hit.score:.3f}",
                one_line(hit.definition.description.summary),
            )
            for rank, hit in enumerate(found.hits[:limit], start=1)
        ),
    )


def _outline(found: Retrieval, library: Library) -> str:
    return (
        f"{len(found.hits)} of {len(library):,} tools in the shortlist, {len(found.offered)} "
        f"offered in full (*), about {found.tokens:,} prompt tokens; "
        f"library version {library.version}"
    )


def _as_json(found: Retrieval, library: Library, limit: int, *, explain: bool) -> dict[str, Any]:
    offered = [definition.name for definition in found.offered]
    return {
        "query": found.query,
        "library_version": library.version,
        "tokens": found.tokens,
        "offered": offered,
        "hits": [
            {
                "name": hit.definition.name,
                "score": hit.score,
                "reason": hit.reason,
                "summary": hit.definition.description.summary,
            }
            | (hit_explanation(hit, found, library) if explain else {})
            for hit in found.hits[:limit]
        ],
    } | (explanation(found) if explain else {})
