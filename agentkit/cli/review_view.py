"""A review for people, and how what models see changes: coloured on a terminal, plain in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

import click

from agentkit.cli.options import typed
from agentkit.cli.output import ADDED, DIM, HEADING, REMOVED, WRONG, one_line, print_line
from agentkit.evaluation.results.texts import visible
from agentkit.evolution.differences import PARAMETER, ViewChange
from agentkit.evolution.gates import GateReport
from agentkit.evolution.review import Review
from agentkit.tools.error_messages import plural

_MOST_ARGUMENTS = 6
_MOST_LINES = 5_000
"""Of two texts together, that are compared: the time of it grows with their square."""


class Line(NamedTuple):
    """One line of a page, whatever breaks its text holds.

    Attributes:
        text: What it says.
        style: How it looks.
        indent: The columns in front of it.
        is_whole: Whether its blanks count, as in a line of a longer text; it holds no breaks then.
    """

    text: str
    style: str = ""
    indent: int = 0
    is_whole: bool = False


def print_review(review: Review) -> None:
    """Print all about one proposal; the parts that have nothing to say are left out."""
    print_line(one_line(f"{review.tool or '(no tool)'}: {review.status}"), style="bold")
    if review.summary:
        print_line(one_line(review.summary))
    when = review.history[0].at[:10] if review.history else ""
    print_line(f"{review.proposal_id}, {when}", style=DIM)
    shown_count, count = len(review.conversations), review.evidence
    parts: dict[str, Iterable[Line]] = {
        "Why": _why(review),
        "What models see": diff_lines(review.changes),
        "What it demands": (Line(text, WRONG) for text in review.demands),
        "Whose words these are": map(Line, review.foreign_words),
        "What else changes": (
            line
            for one in review.other_changes
            for line in (
                Line(one.field.replace("_", " "), DIM),
                *text_diff(one.before, one.after, indent=2),
            )
        ),
        f"Conversations that failed ({shown_count} of {count:,})": _conversations(review),
        "Held-out tasks and traffic": _comparisons(review.comparisons),
        "Worth on later traffic": [] if review.worth is None else [Line(f"{review.worth}.")],
        "Back and forth": [Line(f"It {text}", WRONG) for text in review.undoing],
        "Checks": _checks(review),
        "Composites that use it": map(Line, review.dependents),
        "History": _history(review),
    }
    for title, lines in parts.items():
        if listed := list(lines):
            _print_part(title, listed)
    waits = f"{review.waits_for[:1].upper()}{review.waits_for[1:]}".removesuffix(".")
    _print_part("Next", [Line(f"{waits}.")] if waits else [])
    for line in review.commands:  # whole, to be copied
        click.echo(f"    {visible(line)}{typed('store', 'store_url')}")


def _print_part(title: str, lines: Iterable[Line]) -> None:
    click.echo()
    print_line(title, style=HEADING)
    for text, style, indent, is_whole in lines:
        print_line(text if is_whole else one_line(text), style=style, indent=indent + 2)


def print_diff(changes: Sequence[ViewChange], *, title: str) -> None:
    """Print how what models see changes."""
    _print_part(title, diff_lines(changes))


def diff_lines(changes: Iterable[ViewChange]) -> Iterator[Line]:
    """What changes for models: the tool's text by lines, then each parameter."""
    for place, some in groupby(changes, key=lambda change: change.place):
        group = list(some)
        indent = 2 if place else 0
        is_new = any(one.keyword == PARAMETER for one in group)
        if place:
            yield Line(f"parameter {place}", DIM)
        for change in group:
            sides = (change.before, change.after)
            if change.is_text:
                yield from text_diff(*sides, indent=indent)
                continue
            if not is_new or change.keyword == PARAMETER:
                yield Line(change.sentence, "", indent)
            if change.keyword not in {PARAMETER, "required"}:
                told = [f"{change.keyword}: {one}" if one else "" for one in sides]
                yield from text_diff(*told, indent=indent)
            elif is_new and change.keyword == "required":
                yield from text_diff(*("required" if one else "" for one in sides))


def text_diff(before: str, after: str, *, indent: int = 0) -> Iterator[Line]:
    """Two texts line by line; nothing where they are the same, very long ones whole."""
    old, new = before.splitlines(), after.splitlines()
    if old == new:
        return
    whole = ("replace", 0, len(old), 0, len(new))
    is_compared = len(old) + len(new) <= _MOST_LINES
    changes = SequenceMatcher(None, old, new).get_opcodes() if is_compared else [whole]
    for kind, i1, i2, j1, j2 in changes:
        if kind == "equal":
            yield from (Line(f"  {text}", DIM, indent, is_whole=True) for text in old[i1:i2])
        else:
            yield from (Line(f"- {text}", REMOVED, indent, is_whole=True) for text in old[i1:i2])
            yield from (Line(f"+ {text}", ADDED, indent, is_whole=True) for text in new[j1:j2])


def _why(review: Review) -> Iterator[Line]:
    yield Line(review.why)
    name = review.proposer
    who = {"model": f"the model {name}", "program": f"the {name} proposer"}
    made = f" from {plural(review.evidence, 'conversation')}" if review.evidence else ""
    by = who.get(review.proposer_kind, name)
    yield Line(f"Suggested by {by}{made}: {review.origin}.", DIM)
    if review.is_outdated:
        yield Line("The tool has changed since; the proposal is moved onto that.", WRONG)


def _conversations(review: Review) -> Iterator[Line]:
    """Those that failed; the wrong arguments of a call come first."""
    for one in review.conversations:
        yield Line(f'"{one.request}"')
        yield Line(one.episode_id, DIM, 2)
        yield from [Line(f"called {one.tool}", "", 2)] if one.tool else []
        ordered = sorted(one.arguments.items(), key=lambda item: item[0] not in one.wrong)
        for name, value in ordered[:_MOST_ARGUMENTS]:
            is_wrong = name in one.wrong
            mark = "   <- wrong" if is_wrong else ""
            text = one_line(f"{name} = {value}") + mark
            yield Line(text, WRONG if is_wrong else "", 4, is_whole=True)
        who = "tool" if one.tool else "agent"
        said = {f"the {who} answered": one.answer, "the verifier found": one.verdict}
        yield from (Line(f"{title}: {text}", "", 2) for title, text in said.items() if text)


def _comparisons(comparisons: Iterable[GateReport]) -> Iterator[Line]:
    for report in comparisons:
        yield Line(report.reason)
        sides = (("gained", report.gained, ADDED), ("lost", report.lost, REMOVED))
        for title, names, style in sides:
            if names:  # the first of them, where there are many
                yield Line(f"{title}: {', '.join(names)}", style)


def _checks(review: Review) -> Iterator[Line]:
    if not review.failed_checks and review.state not in {"proposed", "rejected"}:
        yield Line("Every check passed.")
    for check in review.failed_checks:
        where = f" in {check.field}" if check.field else ""
        yield Line(f"[{check.code}]{where}: {check.message}", WRONG)
        if check.advice:
            yield Line(check.advice, DIM, 2)
    yield from (Line(f"Agreed: {one}") for one in review.agreed)


def _history(review: Review) -> Iterator[Line]:
    for one in review.history:
        made = f", library version {one.library_version}" if one.library_version else ""
        kind = f" ({one.who_kind})" if one.who_kind == "model" else ""
        when = one.at[:19].replace("T", " ")
        yield Line(f"{when}  {one_line(f'{one.what} by {one.who}{kind}{made}')}", is_whole=True)
        if one.reason:
            yield Line(one.reason, DIM, 4)
