"""Proposals for people: where they stand, what happened to them, and what they change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from agentkit.cli.audit_view import who
from agentkit.cli.output import Column, one_line, plural, print_json, print_table, stdout
from agentkit.evaluation.results.texts import shown, visible
from agentkit.evaluation.results.wording import label_name
from agentkit.evolution.lifecycle.differences import Difference, Part
from agentkit.evolution.lifecycle.moves import command
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.lifecycle.standing import Standing
from agentkit.evolution.proposals.proposal import ProposalState

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_STATES: Mapping[ProposalState, str] = {
    "proposed": "yellow",
    "validated": "cyan",
    "shadow": "cyan",
    "canary": "cyan",
    "active": "green",
    "superseded": "dim",
    "rejected": "red",
    "quarantined": "red",
    "rolled_back": "red",
}
"""How a terminal shows a state."""

_STYLES: Mapping[Part, str] = {"same": "", "removed": "red strike", "added": "bold green"}
_MARKS: Mapping[Part, str] = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
_INDENT = "    "
_LONGEST = 600


def print_proposals(records: Sequence[tuple[ProposalRecord, Standing]]) -> None:
    """A table of proposals, with what each waits for or why it ended."""
    columns = [
        Column(title="proposal", fit="fold"),
        Column(title="tool", fit="fold"),
        Column(title="state"),
        Column(title="from"),
        Column(title="why it is there", fit="cut"),
    ]
    rows = [
        (
            shown(record.proposal_id),
            shown(record.tool_name),
            label_name(record.state),
            shown(record.stream),
            one_line(shown(stands.why, _LONGEST)),
        )
        for record, stands in records
    ]
    print_table(columns, rows)


def brief(record: ProposalRecord, stands: Standing) -> dict[str, Any]:
    """One proposal in short, as a JSON object."""
    return {
        "proposal_id": record.proposal_id,
        "tool": record.tool_name,
        "state": record.state,
        "stream": record.stream,
        "author": record.author.name,
        "reason": record.reason,
        "last_word": record.last_word,
        "awaits": list(record.awaits),
        "why": stands.why,
        "next": list(stands.commands),
        "created_at": record.events[0].at,
    }


def print_decided(record: ProposalRecord, stands: Standing, *, as_json: bool) -> None:
    """Where a proposal stands after a decision."""
    if as_json:
        print_json(brief(record, stands))
    else:
        print_heading(record, stands)


def print_record(
    record: ProposalRecord, stands: Standing, differences: Sequence[Difference]
) -> None:
    """All about one proposal: what it changes, why it was rejected, what happened to it."""
    console = stdout()
    print_heading(record, stands)
    if record.unreadable_text:
        console.print("\nwhat was answered", style="bold")
        for line in visible(record.unreadable_text).splitlines():
            console.print(f"{_INDENT}{line}", soft_wrap=True)
    if record.failed:
        console.print("\nwhat is wrong", style="bold")
        for check in record.failed:
            where = f" in {shown(check.field)}" if check.field else ""
            _print_wrapped(f"[{check.code}]{where}: {check.message}", style="red")
            _print_wrapped(check.advice, indent=f"{_INDENT}{_INDENT}", style="dim")
    if record.overrulable:
        codes = [word for code in record.overrulable for word in ("--code", code)]
        line = command("overrule", record.proposal_id, *codes, "--reason", "WHY")
        console.print("\nwhere the checks are wrong about the words", style="bold")
        console.print(f"{_INDENT}{shown(line, _LONGEST)}", style="dim", soft_wrap=True)
    if differences:
        console.print("\nwhat it changes", style="bold")
        print_differences(differences)
    console.print("\nwhat happened", style="bold")
    for event in record.events:
        when = event.at[:19].replace("T", " ")
        made = f", library version {event.library_version}" if event.digest_after else ""
        kind = label_name(event.kind)
        console.print(f"{_INDENT}{when}  {kind:<11} {who(event.author)}{made}", soft_wrap=True)
        if event.reason:
            _print_wrapped(shown(event.reason, _LONGEST), indent=f"{_INDENT}{_INDENT}", style="dim")


def print_heading(record: ProposalRecord, stands: Standing) -> None:
    """Which proposal it is, who suggests it, what it waits for, and which command comes next."""
    from rich.text import Text

    console = stdout()
    line = Text(shown(record.tool_name) or "(no tool)", style="bold")
    line.append(f"  {shown(record.proposal_id)}  ", style="dim")
    line.append(label_name(record.state), style=_STATES[record.state])
    console.print(line, soft_wrap=True)
    evidence = len(record.events[0].evidence)
    seen = f", from {plural(evidence, 'episode')}" if evidence else ""
    why = f": {shown(record.reason, _LONGEST)}" if record.reason else ""
    _print_wrapped(f"{shown(record.stream)} of {who(record.author)}{seen}{why}", indent="")
    if record.is_open:
        _print_wrapped(shown(stands.why, _LONGEST), indent="", style="yellow")
    for number, typed in enumerate(stands.commands):
        title = "" if number else "next"
        console.print(f"  {title:<6}{shown(typed, _LONGEST)}", style="dim", soft_wrap=True)


def print_differences(differences: Sequence[Difference]) -> None:
    """Field by field, word by word: coloured on a terminal, else marked as ``git diff`` marks it.

    ``[-gone-]`` and ``{+new+}`` stand in files, in pipes and where ``NO_COLOR`` is set, as in
    ``git diff --word-diff``.
    """
    console = stdout()
    field = ""
    for one in differences:
        if one.field != field:
            field = one.field
            console.print(f"  {shown(field)}", style="cyan")
        for line in _lines(one, console):
            console.print(line, soft_wrap=True)


def _lines(one: Difference, console: Console) -> Iterator[Text]:
    from rich.text import Text

    text = Text()
    coloured = console.is_terminal and not console.no_color
    for kind, words in one.words:
        seen = visible(words)
        text.append(
            seen if coloured else _MARKS[kind].format(seen),
            style=_STYLES[kind] if coloured else "",
        )
        if kind == "removed" and one.words == (("removed", one.before), ("added", one.after)):
            text.append("\n")
    for line in text.wrap(console, max(console.width - len(_INDENT), 20)):
        line.rstrip()
        yield Text(_INDENT).append_text(line)


def _print_wrapped(text: str, *, indent: str = _INDENT, style: str = "") -> None:
    from rich.text import Text

    console = stdout()
    for line in Text(visible(text)).wrap(console, max(console.width - len(indent), 20)):
        line.rstrip()
        line.stylize(style) if style else None
        console.print(Text(indent).append_text(line), soft_wrap=True)


def print_counts(counts: Mapping[ProposalState, int]) -> None:
    """How many proposals stand where, on stderr."""
    told = ", ".join(f"{count:,} {label_name(state)}" for state, count in counts.items() if count)
    click.echo(told or "no proposals yet", err=True)
