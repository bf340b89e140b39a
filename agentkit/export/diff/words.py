"""What terminals and pages say of a diff in the same words."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.export.diff.comparing import LibraryDiff, ToolChange
from agentkit.export.evidence import GateEvidence


def headline(diff: LibraryDiff) -> str:
    """The diff in one sentence.

    Example:
        >>> from agentkit.export.diff.comparing import compare_libraries
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
