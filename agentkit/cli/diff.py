"""``agentkit diff``: what changed between two libraries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import click

from agentkit.cli.options import AsJson, StoreUrl, argument, command
from agentkit.cli.output import one_line, plural, print_json, print_line
from agentkit.cli.review_view import ADDED, DIM, REMOVED, WRONG, text_diff
from agentkit.cli.stores import label, read_source
from agentkit.cli.tools import signature_line
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.interop.export.diff import LibraryDiff, ToolChange, compare_libraries, headline
from agentkit.library import Library

_VERSIONED = re.compile(r"(.+)@(\d{1,18})")
_STYLES = {"breaking": WRONG, "compatible": ADDED, "words": "cyan", "pins": DIM}


@command()
def diff(
    before: Annotated[str, argument("A")],
    after: Annotated[str, argument("[B]")] = "",
    *,
    tool: tuple[str, ...] = (),
    exit_code: bool = False,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Show what changed from the library A to the library B.

    Each is a version of --store, or an artifact's file or the URL of a store, with @VERSION for an
    earlier version; without B it is the newest version of --store. Changes of contracts are
    reported as breaking or compatible, other changes line by line, with the composites above.

    Args:
        tool (NAME): Only this tool
        exit_code: Exit status 1 on a difference.

    Examples:
      agentkit diff 3 5                                  versions of the project's library
      agentkit diff 3                                    what came since version 3
      agentkit diff old.json new.json
      agentkit diff library.db@3 library.db
      agentkit diff tools.json sqlite:///library.db --tool weather_now
      agentkit diff main.json branch.json --exit-code
    """
    places = [_place(one, store_url) for one in (before, after)]
    old, new = map(_load, places)
    if unknown := [name for name in tool if name not in old and name not in new]:
        raise UsageError(f"neither library has a tool {', '.join(map(repr, unknown))}")
    found = compare_libraries(old, new, only=tool)
    if as_json:
        print_json(found.to_json())
    else:
        _print(found, *map(label, places))
    if exit_code and not found.is_empty:
        raise click.exceptions.Exit(1)


def _place(typed: str, store_url: str) -> str:
    """Where a library lies: a number, or nothing, means a version of the command's store."""
    if not typed:
        return store_url
    return f"{store_url}@{typed}" if typed.isdecimal() and not Path(typed).exists() else typed


def _load(place: str) -> Library:
    """The library at a place, and the version behind its last ``@``; a file may be named so."""
    found = None if Path(place).exists() else _VERSIONED.fullmatch(place)
    url, version = (place, None) if found is None else (found[1], int(found[2]))
    with read_source(url, version=version) as store:
        return store.load(version)


def _print(diff: LibraryDiff, before: str, after: str) -> None:
    for sign, name, library in (("a", before, diff.before), ("b", after, diff.after)):
        tools = plural(len(library), "tool")
        print_line(f"{sign}  {name}  version {library.version}, {tools}, {library.digest[:12]}")
    print_line(headline(diff), style=WRONG if diff.is_breaking else "bold")
    for one in diff.removed:
        _print_title(f"- {one.name}  removed", REMOVED)
        print_line(one_line(one.description.summary), style=DIM, indent=2)
        if callers := diff.broken_by_removal.get(one.name, ()):
            print_line(f"still called by {', '.join(callers)}", style=WRONG, indent=2)
    for change in sorted(diff.changed, key=lambda one: not one.is_breaking):
        _print_changed(change)
    for one in diff.added:
        _print_title(f"+ {one.name}  added", ADDED)
        print_line(shown(signature_line(one)) or "no parameters", indent=2)
        print_line(one_line(one.description.summary), style=DIM, indent=2)
        if children := [child.name for child in one.signature.children]:
            print_line(f"made of {', '.join(children)}", style=DIM, indent=2)


def _print_changed(change: ToolChange) -> None:
    _print_title(f"~ {change.name}  {change.mark}", _STYLES[change.mark])
    for one in change.contract:
        sign, style = ("✗", REMOVED) if one.impact == "breaking" else ("✓", ADDED)
        print_line(f"{sign} {one.words}", style=style, indent=2)
    for difference in change.differences:
        print_line(difference.field, style="cyan", indent=2)
        for text, style, indent in text_diff(difference.before, difference.after, indent=4):
            print_line(text, style=style, indent=indent)
    if not change.contract and not change.differences:
        children = ", ".join(child.name for child in change.after.signature.children)
        print_line(f"pinned anew to {children}", style=DIM, indent=2)
    if change.affected:
        print_line(f"composites above: {', '.join(change.affected)}", indent=2)


def _print_title(title: str, style: str) -> None:
    click.echo()
    print_line(title, style=f"bold {style}")
