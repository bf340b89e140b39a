"""A round of evolution for people: what it looked at, what was decided, and why nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import click

from agentkit.cli.options import typed
from agentkit.cli.output import one_line, plural, say
from agentkit.evaluation.results.texts import label_name, shown
from agentkit.evolution.review import STATE_WORDS
from agentkit.evolution.round import EvolutionReport, ProposalOutcome

_LONGEST = 300
_MOST_FAILING = 5
_MOST_PASSED_OVER = 20


def print_round(outcome: EvolutionReport) -> None:
    """What a round looked at, each decision, what was passed over, and what to do next."""
    for line in _looked_at(outcome):
        say(line)
    for line in decisions(outcome, with_reasons=True):
        click.echo(line)
    if outcome.passed_over:
        click.echo("passed over:")
    for one in outcome.passed_over[:_MOST_PASSED_OVER]:
        click.echo(f"  {shown(one.place)}: {one_line(shown(one.why, _LONGEST))}")
    rest = len(outcome.passed_over) - _MOST_PASSED_OVER
    if rest > 0:
        say(f"  and {rest:,} more; --json has all")
    if not (outcome.has_learned or outcome.passed_over):
        say(_why_nothing(outcome))
    promoted = len(outcome.promoted)
    changed = f", library version {outcome.after}" if outcome.after != outcome.before else ""
    say(f"{plural(len(outcome.considered), 'proposal')}, {promoted} promoted{changed}")
    for line in next_commands(outcome):
        say(f"next: {line}{typed('store', 'store_url')}")


def decisions(outcome: EvolutionReport, *, with_reasons: bool = False) -> Iterator[str]:
    """A line for each proposal, for what was learned, and for each proposer that was silent.

    Args:
        outcome: The round.
        with_reasons: Whether what each proposal is for follows it.
    """
    for one in outcome.considered:
        record = one.record
        why = one_line(shown(_found(one), _LONGEST))
        state = STATE_WORDS[record.state]
        yield f"{shown(record.tool_name)}: {state}; {why} ({shown(record.proposal_id)})"
        if with_reasons and record.reason:
            yield f"  {one_line(shown(record.reason, _LONGEST))}"
    learned = outcome.learned
    if learned is not None and learned.added:
        yield str(learned)
    for silent in outcome.silent:
        yield f"{silent.proposer} could not be asked: {shown(silent.error, 200)}"


def log_lines(outcome: EvolutionReport) -> Iterator[str]:
    """The decisions with the time, for a log; what waits as it waited before is left out."""
    at = datetime.now(UTC).isoformat(timespec="seconds")
    moved = tuple(one for one in outcome.considered if one.before != one.record.state)
    for line in decisions(replace(outcome, considered=moved)):
        yield f"{at} {line}"


def next_commands(outcome: EvolutionReport) -> list[str]:
    """What may be typed next, the most useful first."""
    waiting = [f"agentkit review show {one.record.proposal_id}" for one in outcome.waiting[:3]]
    promoted = [
        line
        for one in outcome.promoted[:1]
        for line in (
            f"agentkit review show {one.record.proposal_id}",
            "agentkit eval",
            f"agentkit rollback {shown(one.record.tool_name)}",
        )
    ]
    missing = [one.command for one in outcome.passed_over if one.reason == "not_in_library"]
    found = [*waiting, *promoted, *dict.fromkeys(missing)]
    has_examples = outcome.learned is not None and bool(outcome.learned.added)
    return found or ["agentkit eval" if has_examples else "agentkit episodes list"]


def _looked_at(outcome: EvolutionReport) -> Iterator[str]:
    seen = outcome.looked_at
    runs = [f"{count:,} of the run {shown(name)}" for name, count in seen.runs.items() if name]
    named = f" ({', '.join(runs[:3])})" if runs else ""
    if list(seen.runs.values()) == [seen.episodes] and runs:
        named = f" of the run {shown(next(iter(seen.runs)))}"
    yield (
        f"looked at {plural(seen.episodes, 'episode')}{named}: {seen.judged:,} judged, "
        f"{seen.went_wrong:,} went wrong"
    )
    for one in seen.failing[:_MOST_FAILING]:
        labels = ", ".join(f"{label_name(name)} {count:,}" for name, count in one.labels.items())
        yield f"  {shown(one.tool)}: {one.failures:,} of {plural(one.calls, 'call')}: {labels}"


def _why_nothing(outcome: EvolutionReport) -> str:
    """Why a round found nothing at all."""
    seen = outcome.looked_at
    if not seen.episodes:
        return "nothing is left to learn from: all episodes answer tasks that decide"
    if not seen.calls:
        return "no tool was called, so there is nothing to learn about one"
    if not seen.went_wrong:
        return "no call failed, and no verdict says that an answer was wrong"
    return "what went wrong says nothing about a tool: no refusal and no evidence names one"


def _found(one: ProposalOutcome) -> str:
    """Why a proposal stands where it does, the comparison in words first."""
    if one.report is None:
        return one.why
    told = one.report.reason
    return one.why if told in one.why else f"{told}; {one.why}"
