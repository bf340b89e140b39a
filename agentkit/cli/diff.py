"""``agentkit diff``: what changed between two libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import one_line, plural, print_json, stdout
from agentkit.cli.signatures import signature_line
from agentkit.cli.sources import label, read_source, split_version
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown, visible
from agentkit.evolution.differences import Difference, Part
from agentkit.interop.export import diff as diffing
from agentkit.interop.export.artifact import GateEvidence, gate_evidence
from agentkit.interop.export.diff import LibraryDiff, ToolChange, evidence_lines, headline
from agentkit.library import Library
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


_STYLES = {"breaking": "bold red", "compatible": "green", "words": "cyan", "pins": "dim"}
_SIGNS = {"breaking": ("✗", "red"), "compatible": ("✓", "green")}
_LONGEST = 300
_INDENT = "    "
_PARTS: Mapping[Part, str] = {"same": "", "removed": "red strike", "added": "bold green"}
_MARKS: Mapping[Part, str] = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}


def print_diff(diff: LibraryDiff, *, before: str, after: str) -> None:
    """Print a diff for people.

    Args:
        diff: What changed.
        before: What the earlier library is called.
        after: What the later one is called.
    """
    console = stdout()
    for line in _heading(diff, before, after):
        console.print(line, soft_wrap=True)
    for one in diff.removed:
        _print_removed(one, diff)
    for change in sorted(diff.changed, key=lambda one: not one.is_breaking):
        _print_changed(change)
    for one in diff.added:
        _print_added(one, diff)


def _heading(diff: LibraryDiff, before: str, after: str) -> Iterator[Text]:
    from rich.text import Text

    for sign, name, library in (("a", before, diff.before), ("b", after, diff.after)):
        line = Text()
        line.append(f"{sign}  ", style="dim")
        line.append(shown(name), style="bold")
        line.append(f"  version {library.version}, {plural(len(library), 'tool')}, ", style="dim")
        line.append(library.digest[:12], style="dim")
        yield line
    style = "bold red" if diff.is_breaking else "bold green" if diff.is_empty else "bold"
    yield Text(headline(diff), style=style)


def _print_removed(definition: ToolDefinition, diff: LibraryDiff) -> None:
    _print_title("-", "red", definition.name, "removed", "bold red")
    _print_line(shown(definition.description.summary, _LONGEST), "dim")
    callers = diff.broken_by_removal.get(definition.name, ())
    if callers:
        _print_line(f"still called by {_names(callers)}", "red")


def _print_added(definition: ToolDefinition, diff: LibraryDiff) -> None:
    _print_title("+", "green", definition.name, "added", "green")
    _print_line(shown(signature_line(definition), _LONGEST) or "no parameters", "")
    _print_line(shown(definition.description.summary, _LONGEST), "dim")
    children = [child.name for child in definition.signature.children]
    if children:
        _print_line(f"made of {_names(children)}", "dim")
    _print_evidence(diff.evidence.get(definition.name, ()))


def _print_changed(change: ToolChange) -> None:
    word = change.mark
    _print_title("~", "yellow", change.name, word, _STYLES[word])
    for one in change.contract:
        sign, style = _SIGNS[one.impact]
        _print_line(f"{sign} {shown(one.words, _LONGEST)}", style)
    _print_differences(change.differences)
    if not change.contract and not change.differences:
        children = [child.name for child in change.after.signature.children]
        _print_line(f"pinned anew to {_names(children)}", "dim")
    if change.affected:
        _print_line(f"composites above: {_names(change.affected)}", "magenta")
    _print_evidence(change.evidence)


def _print_title(sign: str, style: str, name: str, word: str, word_style: str) -> None:
    from rich.text import Text

    line = Text()
    line.append(f"{sign} ", style=f"bold {style}")
    line.append(shown(name), style="bold")
    line.append(f"  {word}", style=word_style)
    stdout().print()
    stdout().print(line, soft_wrap=True)


def _print_evidence(evidence: tuple[GateEvidence, ...]) -> None:
    for line in evidence_lines(evidence):
        _print_line(f"evidence: {shown(line, _LONGEST)}", "dim")


def _print_line(text: str, style: str) -> None:
    from rich.text import Text

    console = stdout()
    for line in Text(one_line(text), style=style).wrap(console, max(console.width - 2, 20)):
        line.rstrip()
        console.print(Text("  ").append_text(line), soft_wrap=True)


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(shown, names))


def _print_differences(differences: Sequence[Difference]) -> None:
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
        for line in _worded(one, console):
            console.print(line, soft_wrap=True)


def _worded(one: Difference, console: Console) -> Iterator[Text]:
    from rich.text import Text

    text = Text()
    coloured = console.is_terminal and not console.no_color
    for kind, words in one.words:
        seen = visible(words)
        text.append(
            seen if coloured else _MARKS[kind].format(seen),
            style=_PARTS[kind] if coloured else "",
        )
        if kind == "removed" and one.words == (("removed", one.before), ("added", one.after)):
            text.append("\n")
    for line in text.wrap(console, max(console.width - len(_INDENT), 20)):
        line.rstrip()
        yield Text(_INDENT).append_text(line)


@click.command(
    epilog="""\b
Examples:
  agentkit diff 3 5                                  versions of the project's library
  agentkit diff 3                                    what came since version 3
  agentkit diff old.json new.json
  agentkit diff library.db@3 library.db
  agentkit diff tools.json sqlite:///library.db --tool weather_now
  agentkit diff main.json branch.json --exit-code"""
)
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", default="")
@click.option(
    "--tool",
    "only",
    multiple=True,
    metavar="NAME",
    help="Only this tool; may be given several times.",
)
@click.option("--exit-code", "with_exit_code", is_flag=True, help="Exit status 1 on a difference.")
@store_option
@json_option
def diff(
    before: str,
    after: str,
    *,
    only: Sequence[str],
    with_exit_code: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Show what changed from the library A to the library B.

    Each is a version of --store, or an artifact's file or the URL of a store, with @VERSION for an
    earlier version; without B it is the newest version of --store. Changes of contracts are told as
    breaking or compatible, those of words are shown word by word, with the composites above and
    what the gates said.
    """
    places = [_place(one, store_url) for one in (before, after)]
    (old, _), (new, evidence) = map(_load, places)
    if only:
        unknown = [name for name in only if name not in old and name not in new]
        if unknown:
            raise UsageError(f"neither library has a tool {', '.join(map(repr, unknown))}")
    found = diffing.compare_libraries(old, new, evidence=evidence, only=only)
    if as_json:
        print_json(found.to_json())
    else:
        print_diff(found, before=label(places[0]), after=label(places[1]))
    if with_exit_code and not found.is_empty:
        raise click.exceptions.Exit(1)


def _place(typed: str, store_url: str) -> str:
    """Where a library lies: a number, or nothing, means a version of the command's store."""
    if not typed:
        return store_url
    return f"{store_url}@{typed}" if typed.isdecimal() and not Path(typed).exists() else typed


def _load(place: str) -> tuple[Library, tuple[GateEvidence, ...]]:
    url, version = split_version(place)
    with read_source(url, version=version) as store:
        library = store.load(version)
        events = [one for one in store.events() if one.library_version <= library.version]
        evidence = gate_evidence(events)
        held = getattr(store, "artifact", None)
    return library, evidence if held is None or events else held.evidence
