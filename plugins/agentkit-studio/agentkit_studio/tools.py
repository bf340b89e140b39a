"""The tools: search with reasons, one tool with its versions, and the composites around it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agentkit.composites.composite import program_of
from agentkit.composites.language import render
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit.evolution.differences import model_view, view_changes
from agentkit.evolution.review import summary_of
from agentkit.library.store import ToolRevision
from agentkit.metrics.statistics import Interval, wilson_interval
from agentkit.retrieval.cards import card, estimate_tokens, schema_text
from agentkit.tools.definition import ToolDefinition
from agentkit_studio.figures import graph_around
from agentkit_studio.findings import can_mend, text_fields
from agentkit_studio.inbox import author, typed_reason
from agentkit_studio.pages import Asked, BadRequestError, Goto, NotThereError, Page, Place, whole
from agentkit_studio.views import lines, pretty, side_by_side

_PAGE = 50
_MOST_REVISIONS = 100
_LONGEST_QUERY = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Worth:
    """How calls of a tool went before and after a change was promoted.

    Attributes:
        proposal_id: The change.
        summary: What it changed.
        version: The library version that it made.
        before: Calls since the change before it, and the share of them that failed.
        after: The same until the next change.
    """

    proposal_id: str
    summary: str
    version: int
    before: tuple[int, Interval | None]
    after: tuple[int, Interval | None]


async def listed(asked: Asked) -> Page:
    """The tools by name, or ranked for a request, with what each kind of evidence added."""
    library = asked.studio.manager.library
    query = asked.query.get("q", "").strip()[:_LONGEST_QUERY]
    values: dict[str, Any] = {"query": query, "count": len(library), "more": ""}
    if query:
        found = await asked.studio.retriever.retrieve(query, library)
        offered = {one.name for one in found.offered}
        values["hits"] = [(hit, hit.definition.name in offered) for hit in found.hits[:_PAGE]]
        values["unmatched"] = ", ".join(found.unmatched[:16])
    else:
        names = sorted(tool.name for tool in library)
        after = asked.query.get("after", "")
        rest = list(islice((name for name in names if name > after), _PAGE + 1))
        values["tools"] = [
            (library[name].definition, _tokens(library[name].definition)) for name in rest[:_PAGE]
        ]
        values["more"] = rest[_PAGE - 1] if len(rest) > _PAGE else ""
    return Page(template="tools.html", section="tools", values=values)


def _tokens(definition: ToolDefinition) -> int:
    return estimate_tokens(schema_text(definition))


def tool(asked: Asked) -> Page:
    """One tool: what models see, what that costs, where it came from, what is around it."""
    manager, name = asked.studio.manager, asked.path["name"]
    library = manager.refresh()
    revisions = list(reversed(asked.studio.store.history(name)))[:_MOST_REVISIONS]
    known = library.get(name)
    if known is None and not revisions:
        raise NotThereError(f"No tool is called {name[:100]!r}, and none ever was.")
    definition = known.definition if known is not None else None
    program = None if definition is None else program_of(definition)
    asked.studio.health.update()
    values = {
        "name": name,
        "definition": definition,
        "card": "" if definition is None else card(definition),
        "parts": () if definition is None else side_by_side(definition, definition),
        "schema": "" if definition is None else pretty(model_view(definition)),
        "tokens": 0 if definition is None else _tokens(definition),
        "program": "" if program is None else render(program, name),
        "revisions": revisions,
        "compared": _compared(asked.query, revisions),
        "findings": [] if definition is None else examine(Catalogue.of([definition])).findings,
        "can_mend": can_mend,
        "fields": {} if definition is None else text_fields(definition),
        "graph": graph_around(library, name),
        "worth": list(_worth(asked, name)),
        "is_counting": asked.studio.health.is_working,
        "pin": manager.ledger.pins.get(name),
    }
    return Page(template="tool.html", section="tools", values=values)


def _compared(query: Mapping[str, str], revisions: Sequence[ToolRevision]) -> dict[str, Any]:
    """How two versions differ for models: those that were chosen, or the last two."""
    by = {one.version: one.definition for one in revisions}
    versions = list(by)
    chosen = [whole(query.get("old", "")), whole(query.get("new", ""))]
    if strange := [one for one in chosen if one is not None and one not in by]:
        raise NotThereError(f"The tool did not change in library version {strange[0]}.")
    if len(versions) < 2:
        return {}
    old, new = (
        usual if one is None else one
        for one, usual in zip(chosen, (versions[1], versions[0]), strict=True)
    )
    before, after = by[old], by[new]
    texts = ["" if one is None else pretty(model_view(one)) for one in (before, after)]
    return {
        "old": old,
        "new": new,
        "parts": side_by_side(before, after),
        "json": list(lines(*texts)) if texts[0] != texts[1] else [],
    }


def _worth(asked: Asked, name: str) -> Iterator[Worth]:
    """What came of each promoted change of a tool, the newest first."""
    manager, health = asked.studio.manager, asked.studio.health
    made = [
        (record.activation.library_version, record)
        for record in manager.ledger.proposals.values()
        if record.tool_name == name and record.activation is not None
    ]
    made.sort(key=lambda pair: pair[0])
    bounds = [0, *(version for version, _ in made), None]
    for at in range(len(made) - 1, -1, -1):
        version, record = made[at]
        base = manager.revision(name, record.base) if record.base else None
        changes = view_changes(base, record.candidate)
        yield Worth(
            proposal_id=record.proposal_id,
            summary=summary_of(base, record.candidate, changes),
            version=version,
            before=_share(*health.calls_of(name, bounds[at] or 0, version)),
            after=_share(*health.calls_of(name, version, bounds[at + 2])),
        )


def _share(calls: int, failed: int) -> tuple[int, Interval | None]:
    return calls, wilson_interval(failed, calls) if calls else None


def pin(asked: Asked) -> Goto:
    """Hold a tool at a version, or take the pin off."""
    manager, name = asked.studio.manager, asked.path["name"]
    manager.refresh()
    if asked.form.get("off"):
        manager.unpin(name, reason=typed_reason(asked), author=author(asked))
        notice = f"{name} is not pinned any more"
    else:
        version = whole(asked.form.get("version", ""))
        if version is None:
            raise BadRequestError("Say to which library version the tool is pinned.")
        manager.pin(version, name, reason=typed_reason(asked), author=author(asked))
        notice = f"{name} is pinned to version {version}"
    return Goto(route="tool", values={"name": name}, notice=notice)


PLACES = (
    Place(path="/tools", name="tools", view=listed, title="Tools"),
    Place(path="/tools/{name:path}/pin", name="pin", view=pin, role="operator", acts=True),
    Place(path="/tools/{name:path}", name="tool", view=tool),
)
