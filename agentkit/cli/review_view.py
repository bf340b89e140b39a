"""A review as a page: coloured and folded on a terminal, whole and plain in a pipe, or Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal, TypeAlias

import click
from rich.console import Console
from rich.text import Text

from agentkit.cli.options import typed
from agentkit.cli.output import plural, stdout
from agentkit.evaluation.results.texts import shown, visible
from agentkit.evolution.differences import PARAMETER, ViewChange, word_diff
from agentkit.evolution.review import Comparison, Conversation, Review

Sign = Literal["", "+", "-", "!", "$", "~"]
"""What a line is: plain, added, removed, wrong, a command, or less important."""

_Spans: TypeAlias = tuple[tuple[int, int], ...]

_STYLES = {"": "", "+": "green", "-": "red", "!": "bold red", "$": "bold", "~": "dim"}
_FOLDED = 320  # characters of a text that a terminal shows
_MOST_ARGUMENTS = 6
_NAMES = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One line of a page.

    Attributes:
        text: What it says.
        sign: What it is.
        indent: Columns in front of it.
        changed: The parts of the text that differ from its counterpart, from and to.
    """

    text: str
    sign: Sign = ""
    indent: int = 0
    changed: _Spans = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of a page.

    Attributes:
        title: Its heading; empty for the beginning of the page.
        lines: What it says.
    """

    title: str
    lines: tuple[Line, ...]


def print_review(review: Review) -> None:
    """Print the page: for a terminal when there is one, else plain and uncut."""
    console = stdout()
    for section in sections(review):
        if section.title:
            console.print()
            console.print(section.title, style="bold cyan", soft_wrap=True)
        for line in section.lines:
            _print(line, console, indent=2 if section.title else 0)


def print_diff(changes: Sequence[ViewChange], *, title: str) -> None:
    """Print how what models see changes."""
    console = stdout()
    console.print(title, style="bold cyan", soft_wrap=True)
    for line in diff_lines(changes):
        _print(line, console, indent=2)


def as_markdown(review: Review) -> str:
    """The page as Markdown. Foreign text stands in fences that it can not close."""
    parts = []
    for section in sections(review):
        lines = [_plain(line) for line in section.lines]
        longest = max((len(run) for line in lines for run in _backticks(line)), default=0)
        fence = "`" * max(3, longest + 1)
        kind = "diff" if any(line.sign in {"+", "-"} for line in section.lines) else "text"
        title = f"## {section.title}" if section.title else f"# {visible(review.tool)}"
        parts.append("\n".join([title, "", f"{fence}{kind}", *lines, fence]))
    return "\n\n".join(parts)


def sections(review: Review) -> Iterator[Section]:
    """The parts of the page that have something to say, in the order in which they are read."""
    found = {
        "": _heading(review),
        "Why": _why(review),
        "What models see": diff_lines(review.changes),
        "What it demands": (Line(text=text, sign="!") for text in review.demands),
        "Whose words these are": (Line(text=text) for text in review.foreign_words),
        "What else changes": _other_changes(review),
        "The program": _program(review),
        _conversations_title(review): _conversations(review.conversations),
        "Held-out tasks and traffic": _comparisons(review.comparisons),
        "Checks": _checks(review),
        "Composites that use it": (Line(text=name) for name in review.dependents),
        "History": _history(review),
        "Next": _next(review),
    }
    for title, lines in found.items():
        kept = tuple(lines)
        if kept:
            yield Section(title=title, lines=kept)


def diff_lines(changes: Iterable[ViewChange]) -> Iterator[Line]:
    """What models see otherwise: the text of the tool by lines, then parameter by parameter."""
    for place, some in groupby(changes, key=lambda change: change.place):
        group = list(some)
        if place:
            yield Line(text=f"parameter {place}", sign="~")
        for change in group:
            if change.is_text:
                yield from _text_diff(change.before, change.after, indent=2 if place else 0)
                continue
            is_new = any(one.keyword == PARAMETER for one in group)
            if not is_new or change.keyword == PARAMETER:
                yield Line(text=change.sentence, indent=2 if place else 0)
            if change.keyword not in {PARAMETER, "required"}:
                for sign, side in (("-", change.before), ("+", change.after)):
                    if side:
                        text = f"{change.keyword}: {side}"
                        yield Line(text=text, sign=sign, indent=2 if place else 0)  # type: ignore[arg-type]
            elif is_new and change.keyword == "required":
                yield Line(text="required", sign="+" if change.after else "-", indent=2)


def _text_diff(before: str, after: str, *, indent: int) -> Iterator[Line]:
    """Two texts line by line; in a line that changes, its words."""
    old, new = before.splitlines(), after.splitlines()
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield from (Line(text=f"  {text}", indent=indent, sign="~") for text in old[i1:i2])
            continue
        pairs = zip(old[i1:i2], new[j1:j2], strict=False)
        spans = [_changed_words(gone, come) for gone, come in pairs]
        for at, text in enumerate(old[i1:i2]):
            changed = spans[at][0] if at < len(spans) else ()
            yield Line(text=text, sign="-", indent=indent, changed=changed)
        for at, text in enumerate(new[j1:j2]):
            changed = spans[at][1] if at < len(spans) else ()
            yield Line(text=text, sign="+", indent=indent, changed=changed)


def _changed_words(before: str, after: str) -> tuple[_Spans, _Spans]:
    """Where two lines differ; nowhere in particular when all of them does."""
    gone, come = list[tuple[int, int]](), list[tuple[int, int]]()
    old = new = 0  # how far each line is read
    parts = word_diff(before, after)
    for kind, words in parts:
        if kind != "added":
            old += len(words)
        if kind != "removed":
            new += len(words)
        if kind == "removed":
            gone.append((old - len(words), old))
        elif kind == "added":
            come.append((new - len(words), new))
    is_whole = not any(kind == "same" for kind, _ in parts)
    return ((), ()) if is_whole else (tuple(gone), tuple(come))


def _heading(review: Review) -> Iterator[Line]:
    sign: Sign = "$"
    yield Line(text=f"{review.tool or '(no tool)'}: {review.status}", sign=sign)
    if review.summary:
        yield Line(text=review.summary)
    when = review.history[0].at[:10] if review.history else ""
    yield Line(text=f"{review.proposal_id}, {when}", sign="~")


def _why(review: Review) -> Iterator[Line]:
    for text in review.why.splitlines():
        yield Line(text=text)
    name = review.proposer
    who = {"model": f"the model {name}", "program": f"the {name} proposer"}
    made = f" from {plural(review.evidence, 'conversation')}" if review.evidence else ""
    by = who.get(review.proposer_kind, name)
    yield Line(text=f"Suggested by {by}{made}: {review.origin}.", sign="~")
    if review.is_outdated:
        yield Line(text="The tool has changed since; the proposal is moved onto that.", sign="!")
    if review.answer:
        yield Line(text="The answer cannot be read as a proposal:")
        yield from (Line(text=text, indent=2, sign="~") for text in review.answer.splitlines())


def _other_changes(review: Review) -> Iterator[Line]:
    for one in review.other_changes:
        yield Line(text=one.field.replace("_", " "), sign="~")
        yield from _text_diff(one.before, one.after, indent=2)


def _program(review: Review) -> Iterator[Line]:
    if review.program_before != review.program_after:
        yield from _text_diff(review.program_before, review.program_after, indent=0)


def _conversations_title(review: Review) -> str:
    shown_count, count = len(review.conversations), review.evidence
    return f"Conversations that failed ({shown_count} of {count:,})"


def _conversations(conversations: Iterable[Conversation]) -> Iterator[Line]:
    for number, one in enumerate(conversations):
        if number:
            yield Line(text="")
        yield Line(text=f'"{one.request}"')
        yield Line(text=one.episode_id, sign="~", indent=2)
        if one.tool:
            yield Line(text=f"called {one.tool}", indent=2)
            yield from _arguments(one)
        if one.answer:
            yield Line(text=f"the tool answered: {one.answer}", indent=2)
        if one.verdict:
            yield Line(text=f"the verifier found: {one.verdict}", indent=2)


def _arguments(one: Conversation) -> Iterator[Line]:
    """The wrong ones first; of many others only how many there are."""
    ordered = sorted(one.arguments.items(), key=lambda item: item[0] not in one.wrong)
    for name, value in ordered[:_MOST_ARGUMENTS]:
        is_wrong = name in one.wrong
        text = f"{name} = {value}{'   <- wrong' if is_wrong else ''}"
        yield Line(text=text, sign="!" if is_wrong else "", indent=4)
    if len(ordered) > _MOST_ARGUMENTS:
        yield Line(text=f"and {len(ordered) - _MOST_ARGUMENTS} more", sign="~", indent=4)


def _comparisons(comparisons: Iterable[Comparison]) -> Iterator[Line]:
    for one in comparisons:
        yield from (Line(text=text) for text in one.words.splitlines())
        counts = one.report.statistics
        for title, names, key in (
            ("gained", one.report.gained, "wins"),
            ("lost", one.report.lost, "losses"),
        ):
            count = int(counts.get(key, len(names)))
            if count and names:
                rest = f" and {count - len(names):,} more" if count > len(names) else ""
                sign: Sign = "+" if title == "gained" else "-"
                yield Line(text=f"{title} ({count:,}): {', '.join(names)}{rest}", sign=sign)


def _checks(review: Review) -> Iterator[Line]:
    if not review.failed_checks and review.state not in {"proposed", "rejected"}:
        yield Line(text="Every check passed.")
    for check in review.failed_checks:
        where = f" in {check.field}" if check.field else ""
        yield Line(text=f"[{check.code}]{where}: {check.message}", sign="!")
        if check.advice:
            yield Line(text=check.advice, indent=2, sign="~")
    for one in review.agreed:
        yield Line(text=f"Agreed: {one}")


def _history(review: Review) -> Iterator[Line]:
    for one in review.history:
        made = f", library version {one.library_version}" if one.library_version else ""
        kind = f" ({one.who_kind})" if one.who_kind == "model" else ""
        when = one.at[:19].replace("T", " ")
        yield Line(text=f"{when}  {one.what} by {one.who}{kind}{made}")
        if one.reason:
            yield Line(text=one.reason, indent=4, sign="~")


def _next(review: Review) -> Iterator[Line]:
    if review.state == "active":  # why is said above, with the numbers
        yield Line(text=f"{review.waits_for.partition(':')[0].capitalize()}. To take it back:")
    elif review.waits_for:
        text = review.waits_for[:1].upper() + review.waits_for[1:]
        yield Line(text=f"{text}{'' if text.endswith('.') else '.'}")
    store = typed("store", "store_url")
    yield from (Line(text=f"{one}{store}", sign="$", indent=2) for one in review.commands)


def _print(line: Line, console: Console, *, indent: int) -> None:
    """One line: wrapped and folded on a terminal, as it is in a pipe."""
    pad = " " * (indent + line.indent)
    lead = f"{line.sign} " if line.sign in {"+", "-"} else ""
    if not console.is_terminal:
        for text in visible(line.text).splitlines() or [""]:
            click.echo(f"{pad}{lead}{text}".rstrip())
        return
    is_command = line.sign == "$"
    seen = visible(line.text) if is_command else shown_line(line.text)
    styled = Text(seen, style=_STYLES[line.sign])
    if seen == line.text:
        for start, end in line.changed:
            styled.stylize("bold underline", start, end)
    width = max(console.width - len(pad) - len(lead), 20)
    rows = [styled] if is_command else list(styled.wrap(console, width)) or [Text()]
    for number, row in enumerate(rows):
        row.rstrip()
        front = f"{pad}{' ' * len(lead) if number else lead}"
        console.print(Text(front, style=_STYLES[line.sign]).append_text(row), soft_wrap=True)


def shown_line(text: str) -> str:
    """A line as a terminal shows it: folded, its leading blanks kept."""
    blanks = len(text) - len(text.lstrip(" "))
    seen = shown(text[blanks:], _FOLDED)
    if len(text) > _FOLDED:
        seen += f" ({len(text):,} characters; --json has them all)"
    return " " * min(blanks, 40) + seen


def _plain(line: Line) -> str:
    lead = f"{line.sign} " if line.sign in {"+", "-"} else "  "
    return f"{lead}{' ' * line.indent}{visible(line.text)}".replace("\n", "\n  ").rstrip()


def _backticks(line: str) -> Iterator[str]:
    return ("".join(run) for is_tick, run in groupby(line, key="`".__eq__) if is_tick)
