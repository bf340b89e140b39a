"""From proposals to one change of a library."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evaluation.doctor.finding import Proposal
from agentkit.library import Library, LibraryChange
from agentkit.library.pins import repinned


def change_of(
    library: Library, proposals: Iterable[Proposal], *, proposal_id: str, author: str = ""
) -> LibraryChange | None:
    """The proposals that still fit, as one change; None when there is none.

    A proposal fits when the library holds the very definition that was examined: what somebody
    else changed since is left alone. Composites that pin a mended tool get their pins moved.

    Args:
        library: The library as it is now.
        proposals: At most one a tool.
        proposal_id: Identifies the change, so that a store applies it once.
        author: Who makes it.

    Raises:
        LibraryError: Composites above a mended tool call each other in a circle.
    """
    fitting = [one for one in proposals if _fits(library, one)]
    if not fitting:
        return None
    upserts = repinned(library, [proposal.after for proposal in fitting])
    mends = dict.fromkeys(reason for one in fitting for reason in one.reason.split("; "))
    return LibraryChange(
        proposal_id=proposal_id,
        upserts=upserts,
        author=author,
        reason=f"doctor: {'; '.join(mends)}",
    )


def _fits(library: Library, proposal: Proposal) -> bool:
    held = library.get(proposal.before.name)
    return held is not None and held.definition == proposal.before
