"""A diff as Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import unified_diff

from agentkit.evaluation.results.texts import visible
from agentkit.evolution.differences import Difference
from agentkit.interop.export.artifact import GateEvidence
from agentkit.interop.export.diff.comparing import LibraryDiff, ToolChange
from agentkit.interop.export.renderers.markdown_pages import code, escaped
from agentkit.tools.definition import ToolDefinition


def headline(diff: LibraryDiff) -> str:
    """The diff in one sentence.

    Example:
        >>> from agentkit.interop.export.diff.comparing import compare_libraries
        >>> from agentkit.testing import sample_library
        >>> library = sample_library()
        >>> headline(compare_libraries(library.without(["bill_split"]), library))
        '1 tool added, 12 unchanged'
    """
    broken = sum(change.is_breaking for change in diff.changed)
    counts = {
        "added": len(diff.added),
        "removed": len(diff.removed),
        "changed": len(diff.changed),
    }
    parts = [f"{count:,} {what}" for what, count in counts.items() if count]
    if not parts:
        return f"no difference in {diff.unchanged:,} {'tool' if diff.unchanged == 1 else 'tools'}"
    first, *rest = parts
    number, what = first.split(" ")
    told = [f"{number} {'tool' if number == '1' else 'tools'} {what}", *rest]
    if broken:
        told[-1] += f" ({broken:,} breaking)"
    return ", ".join([*told, f"{diff.unchanged:,} unchanged"])


def evidence_lines(evidence: tuple[GateEvidence, ...]) -> Iterator[str]:
    """What gates, judges and people said, a line each."""
    for one in evidence:
        agreed = f"; agreed: {', '.join(one.agreed)}" if one.agreed else ""
        reason = f": {one.reason}" if one.reason else ""
        yield f"suggested by {one.author}{reason}{agreed}"
        yield from (f"{report.gate}: {report.decision}, {report.reason}" for report in one.reports)


def mark(change: ToolChange) -> str:
    """One word on what the change means for callers."""
    if change.is_breaking:
        return "breaking"
    return "compatible" if change.contract else "words" if change.differences else "pins"


_LONGEST = 2_000


def diff_markdown(diff: LibraryDiff, *, before: str, after: str) -> str:
    """The diff as a Markdown page.

    Removed words are struck out and new ones are bold. Foreign text is escaped, so that the words
    of a tool can not make headings, links or mentions in a review.

    Args:
        diff: What to tell.
        before: What the earlier library is called.
        after: What the later one is called.
    """
    lines = [
        f"## Tools: {code(before)} → {code(after)}",
        "",
        f"**{headline(diff)}**",
    ]
    if diff.removed:
        lines += ["", "### Removed", ""]
        lines += [_removed(one, diff) for one in diff.removed]
    for title, wanted in (("Changed, breaking", True), ("Changed", False)):
        found = [change for change in diff.changed if change.is_breaking is wanted]
        if found:
            lines += ["", f"### {title}"]
            lines += [line for change in found for line in _changed(change)]
    if diff.added:
        lines += ["", "### Added", ""]
        lines += [line for one in diff.added for line in _added(one, diff)]
    return "\n".join(lines) + "\n"


def _removed(definition: ToolDefinition, diff: LibraryDiff) -> str:
    callers = diff.broken_by_removal.get(definition.name, ())
    still = f" — **still called by** {_names(callers)}" if callers else ""
    return f"- {code(definition.name)}: {_text(definition.description.summary)}{still}"


def _added(definition: ToolDefinition, diff: LibraryDiff) -> Iterator[str]:
    parameters = ", ".join(definition.signature.properties)
    made_of = _names(child.name for child in definition.signature.children)
    of = f" Made of {made_of}." if made_of else ""
    call = code(f"{definition.name}({parameters})")
    yield f"- {call}: {_text(definition.description.summary)}{of}"
    yield from _evidence(diff.evidence.get(definition.name, ()), indent="  ")


def _changed(change: ToolChange) -> Iterator[str]:
    yield ""
    yield f"#### {code(change.name)} ({mark(change)})"
    yield ""
    for one in change.contract:
        sign = "**breaking:** " if one.impact == "breaking" else ""
        yield f"- {sign}{_text(one.words)}"
    for level, found in change.by_level.items():
        for difference in found:
            if difference.field == "body":
                yield from _program(difference)
            else:
                yield f"- {level}, {code(difference.field)}: {_words(difference)}"
    if not change.contract and not change.differences:
        yield f"- pinned anew to {_names(child.name for child in change.after.signature.children)}"
    if change.affected:
        yield f"- composites above: {_names(change.affected)}"
    yield from _evidence(change.evidence, indent="")


def _evidence(evidence: tuple[GateEvidence, ...], *, indent: str) -> Iterator[str]:
    yield from (f"{indent}- evidence: {_text(line)}" for line in evidence_lines(evidence))


def _program(one: Difference) -> Iterator[str]:
    """The two programs as a diff that pages colour."""
    lines = unified_diff(one.before.splitlines(), one.after.splitlines(), lineterm="", n=9)
    shown = [visible(line) for line in lines][2:]
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", "".join(shown)) or [""]))
    yield from ("- program:", "", f"  {fence}diff")
    yield from (f"  {line}" for line in shown if not line.startswith("@@"))
    yield f"  {fence}"


def _words(one: Difference) -> str:
    styles = {"same": "{}", "removed": "~~{}~~", "added": "**{}**"}
    return "".join(_styled(text, styles[kind]) for kind, text in one.words)[:_LONGEST]


def _styled(text: str, style: str) -> str:
    """Text in a style, with the white space at its ends outside, where Markdown wants it."""
    bare = text.strip()
    if not bare:
        return " " if text else ""
    start = " " if text[0].isspace() else ""
    end = " " if text[-1].isspace() else ""
    return f"{start}{style.format(_text(bare))}{end}"


def _text(text: str) -> str:
    return escaped(visible(text)).replace("@", "&#64;")


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(code, names))
